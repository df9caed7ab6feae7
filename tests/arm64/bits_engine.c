// SPDX-License-Identifier: MIT
/* Training through the public calls, in every mode of the caller's FP unit. */
#include "../unit/support/fp_mode.h"
#include "../unit/support/trace.h"
#include "bits.h"

/* Together they have all optimizers; modes are tried with the first. */
static const uint64_t seeds[] = {70, 72};

static void trained(const char *variant, int mode)
{
	struct sha256 hash;
	char title[64];

	sha256_init(&hash);
	for (int i = 0; i < (mode == FP_DEFAULT ? 2 : 1); i++) {
		struct trace t;

		fp_mode_set(mode);
		t = trace_run(seeds[i], 2, variant);
		fp_mode_set(FP_DEFAULT);
		hash_floats(&hash, (const float *)t.bytes, t.length / sizeof(float));
		free(t.bytes);
	}
	snprintf(title, sizeof(title), "train, %s", fp_mode_names[mode]);
	hash_print(&hash, title);
}

void bits_of_engine(const char *variant)
{
	for (int mode = 0; mode < FP_MODES; mode++)
		trained(variant, mode);
}
