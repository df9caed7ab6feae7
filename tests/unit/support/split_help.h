/* SPDX-License-Identifier: MIT */
/*
 * Tests of tables that are split over hosts: numbers that depend on their place alone, rows that move
 * between the hosts' handles and whole tables, and the calls of a step.
 */
#ifndef SPLIT_HELP_H
#define SPLIT_HELP_H

#include <stdbool.h>

#include "checkpoint_help.h"
#include "embeng/shard.h"

static inline uint32_t help_draw(int step, uint32_t replica, int feature, size_t at)
{
	uint64_t x = ((uint64_t)step << 40) + ((uint64_t)replica << 32) + ((uint64_t)feature << 24);

	x = (x + at + 1) * 0x9e3779b97f4a7c15u;
	return (uint32_t)((x ^ x >> 31) * 0xbf58476d1ce4e5b9u >> 33);
}

/* Parameters and slots of a table, which are @most at most. */
static inline size_t help_array_count(const struct embeng *e, int table, size_t most)
{
	size_t count = 1 + embeng_model_slot_count(embeng_get_model(e), table);

	ck_assert_uint_le(count, most);
	return count;
}

/**
 * struct whole_table - a whole table outside of all handles
 * @rows: all rows, those of every host
 * @dim: numbers in a row
 * @arrays: parameters and slots
 * @numbers: [@arrays][@apart]
 * @apart: from one array to the next
 */
struct whole_table {
	int64_t rows;
	size_t dim, arrays, apart;
	float *numbers;
};

/* All rows that a handle has of a table, to or from the places that they have in the whole one. */
static inline void help_move_rows(struct embeng *e, int table, const struct embeng_shard *shard,
				  bool write, const struct whole_table *whole)
{
	struct embeng_shard_rows part;
	float *rows;

	help_expect_ok(embeng_shard_rows(shard, whole->rows, &part));
	rows = malloc((size_t)part.count * whole->dim * sizeof(float));
	ck_assert_ptr_nonnull(rows);
	for (size_t a = 0; a < whole->arrays; a++) {
		const char *slot = help_slot(embeng_get_model(e), (size_t)table, a);

		if (!write)
			help_expect_ok(
				embeng_rows_read(e, table, slot, NULL, (size_t)part.count, rows));
		for (size_t i = 0; i < (size_t)part.count; i++) {
			float *here = rows + i * whole->dim;
			float *there = whole->numbers + a * whole->apart +
				       (size_t)(part.first + (int64_t)i * part.stride) * whole->dim;

			memcpy(write ? here : there, write ? there : here,
			       whole->dim * sizeof(float));
		}
		if (write)
			help_expect_ok(
				embeng_rows_write(e, table, slot, NULL, (size_t)part.count, rows));
	}
	free(rows);
}

static inline void help_look_up(struct embeng *e, uint32_t replica, struct embeng_batch *b,
				struct embeng_activations *a)
{
	help_expect_ok(embeng_enqueue(e, b, 0));
	embeng_batch_free(b);
	help_expect_ok(embeng_dequeue(e, replica, 0, a));
}

static inline void help_give_gradients(struct embeng *e, uint32_t replica, size_t count,
				       const float *const *features, int sums)
{
	const struct embeng_gradients g = {.size = sizeof(g),
					   .replica = replica,
					   .count = count,
					   .features = features,
					   .sums = sums};

	help_expect_ok(embeng_apply_gradients(e, &g, 0));
}

#endif
