// SPDX-License-Identifier: MIT
/* Gradient sums, and every optimizer with every flag, of one variant. */
#include "../unit/support/test_kernels_step.h"
#include "bits.h"

#define FLAGS 64u /* each of these, then the options behind them with most of these */
#define OPTIONS 8u

static const u32 dims[] = {1, 3, 16, 19, 32, 47, 64, 66, 128};

#define DIMS (sizeof(dims) / sizeof(dims[0]))

static void *scratch_new(u32 dim)
{
	return aligned_alloc(64, (kernel_scratch_bytes(dim) + 63) / 64 * 64);
}

static void summed(const struct kernel_ops *ops)
{
	struct sha256 hash;

	sha256_init(&hash);
	for (u32 i = 0; i < DIMS; i++) {
		float *sum = malloc(dims[i] * sizeof(*sum));
		void *scratch = scratch_new(dims[i]);
		struct step s;
		struct kernel_update u = {.dim = dims[i], .segment_count = SEGMENTS};

		step_random(&s, dims[i], 900);
		u.segments = s.segments;
		for (u32 row = 0; row < ROWS; row++) {
			ops->row_gradient(&u, sum, s.occ + s.groups[row].first, s.groups[row].count,
					  scratch);
			hash_floats(&hash, sum, dims[i]);
		}
		step_free(&s);
		free(scratch);
		free(sum);
	}
	hash_print(&hash, "gradient sums");
}

static void update(const struct kernel_ops *ops, const struct step *s, u32 optimizer, u32 flags,
		   struct sha256 *hash)
{
	const u32 slots = kernel_optimizers[optimizer].slot_count;
	struct kernel_update u = update_random(s, optimizer);
	void *scratch = scratch_new(s->dim);

	u.flags = flags;
	u.table = copy_rows(s, s->table);
	for (u32 i = 0; i < slots; i++)
		u.slots[i] = copy_rows(s, s->slots[i]);
	ops->update_rows(&u, s->groups, ROWS, 0, s->occ, scratch);
	hash_floats(hash, u.table, ROWS * s->stride);
	free(u.table);
	for (u32 i = 0; i < slots; i++) {
		hash_floats(hash, u.slots[i], ROWS * s->stride);
		free(u.slots[i]);
	}
	free(scratch);
}

static void updated(const struct kernel_ops *ops, u32 optimizer)
{
	char title[64];
	struct sha256 hash;

	sha256_init(&hash);
	for (u32 i = 0; i < DIMS; i++) {
		struct step s;

		step_random(&s, dims[i], i ? 20 : 300);
		for (u32 flags = 0; flags < FLAGS; flags++)
			update(ops, &s, optimizer, flags, &hash);
		for (u32 option = 1; option < OPTIONS; option++)
			update(ops, &s, optimizer, option * FLAGS | 31, &hash);
		step_free(&s);
	}
	snprintf(title, sizeof(title), "update %s", kernel_optimizers[optimizer].name);
	hash_print(&hash, title);
}

void bits_of_updates(const struct kernel_ops *ops)
{
	random_start();
	summed(ops);
	for (u32 optimizer = 0; optimizer < KERNEL_OPTIMIZER_COUNT; optimizer++)
		updated(ops, optimizer);
}
