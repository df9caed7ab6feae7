// SPDX-License-Identifier: MIT
/*
 * Work that is large enough for all cores: the same bits for any number of them, any variant.
 * A model runs on two of the numbers, the models of a variant on all of them.
 */
#include "suite.h"
#include "trace.h"
#include "variants.h"

#define MODELS 8

START_TEST(same_bits_on_any_cores)
{
	static const int cores[] = {1, 2, 3, 4, 7};
	const char *variant = kernel_variant((u32)(_i / MODELS));
	uint64_t seed = 70 + (uint64_t)(_i % MODELS);
	struct trace first = trace_run(seed, 1, "portable");

	printf("seed %d: %zu bytes\n", (int)seed, first.length);
	for (int i = 0; i < 2; i++) {
		int count = cores[(_i + 2 * i) % 5];
		struct trace t = trace_run(seed, count, variant);

		ck_assert_uint_eq(t.length, first.length);
		ck_assert_msg(!memcmp(t.bytes, first.bytes, t.length),
			      "seed %d: %d cores, %s differ", (int)seed, count, variant);
		free(t.bytes);
	}
	free(first.bytes);
}
END_TEST

static void add(TCase *tcase)
{
	add_sampled_variant_tests(tcase, same_bits_on_any_cores, MODELS);
}

int main(void)
{
	return suite_main("engine_cores", add);
}
