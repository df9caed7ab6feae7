/* SPDX-License-Identifier: MIT */
/* The parts of a good firmware image, small enough to be worked out by hand. */
#ifndef EMBENG_TESTS_IMAGE_HELP_H
#define EMBENG_TESTS_IMAGE_HELP_H

#include "engine/types.h"
#include "firmware-loader/image.h"
#include "uapi/embeng_engine.h"

#define GOOD_VERSION (3ull << 48 | 2ull << 32 | 1ull << 16)

static const struct embeng_fw_parameters good_parameters = {
	.step_depth = 8,
	.contexts = 64,
	.queues = 256,
	.regions = 4096,
	.features = EMBENG_CAP_MAPPED_QUEUES | EMBENG_CAP_PIPELINING,
	.inline_bytes = 4096,
	.minimum_version = 2ull << 48,
	.heartbeat_ms = 1000,
};

static const char good_strings[] = "name=me\0empty=";

/* SGD with rate 0.5, sum: rows 0 and 1, bags {0, 0, 1} and {}. */
struct good_vector {
	struct embeng_fw_self_test test;
	u32 offsets[3], ids[3];
	float table[2][1], gradients[2][1], activations[2][1], table_after[2][1];
	u8 filling[8];
};

static const struct good_vector good_vector __attribute__((unused)) = {
	.test = {.length = sizeof(struct good_vector),
		 .kind = EMBENG_FW_TEST_STEP,
		 .rows = 2,
		 .dim = 1,
		 .samples = 2,
		 .ids = 3,
		 .combiner = EMBENG_COMBINER_SUM,
		 .optimizer = EMBENG_OPTIMIZER_SGD,
		 .learning_rate = 0x3f000000,
		 .step = 1},
	.offsets = {0, 3, 3},
	.ids = {0, 0, 1},
	.table = {{1}, {10}},
	.gradients = {{3}, {100}},
	.activations = {{12}, {0}},
	.table_after = {{-2}, {8.5f}},
};

_Static_assert(sizeof(struct good_vector) == 192, "a multiple of EMBENG_FW_ALIGN");

#endif
