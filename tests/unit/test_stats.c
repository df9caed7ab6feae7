/* SPDX-License-Identifier: MIT */
#include "direct_main.h"
#include "direct_model.h"

static struct embeng_stats read_stats(struct direct *d, bool clear)
{
	struct command *command = direct_command(&d->transfer, EMBENG_OP_STATS);
	struct embeng_stats *stats = direct_memory(d, sizeof(*stats), &command->cmd.desc);

	command->cmd.arg = clear ? EMBENG_STATS_CLEAR : 0;
	command->cmd.after = d->context.model->applied;
	ck_assert_uint_eq(direct_do(d, command), 0);
	return *stats;
}

START_TEST(test_each_step_counts_once)
{
	struct small_model m = small_model(10, 1);
	s64 ids[] = { 3, 3, 12, 4, -1, 3 };
	struct embeng_stats s;
	struct direct *d;

	m.table.out_of_range = EMBENG_OUT_OF_RANGE_DROP;
	d = small_open(&m, 3);
	ck_assert_uint_eq(direct_do(d, small_lookup(d, &d->input[0], 1, ids, 6).command), 0);
	s = read_stats(d, false);
	ck_assert(s.ids == 6 && s.unique_ids == 2 && s.dropped_ids == 2 && s.steps == 1);
	ck_assert(s.updated_rows == 0 && s.hot_count == 2 && s.hot_error == 0);
	ck_assert(s.hot[0].row == 3 && s.hot[0].count == 3 && s.hot[1].row == 4);
	ck_assert(s.core_count == 3 && s.core_ids[0] == 3 && s.core_ids[1] == 1);
	ck_assert_uint_eq(direct_do(d, small_update(d, 0, 1, 6, 1)), 0);
	s = read_stats(d, true);
	ck_assert(s.ids == 6 && s.unique_ids == 2 && s.steps == 1 && s.updated_rows == 2);
	s = read_stats(d, false);
	ck_assert(s.ids == 0 && s.unique_ids == 0 && s.dropped_ids == 0 && s.hot_count == 0);
	ck_assert_uint_eq(direct_do(d, small_lookup(d, &d->inference, 0, ids, 6).command),
			  EMBENG_STATUS_STEP_PASSED);
	direct_free(d);
}
END_TEST

/* Far more rows than the sketch holds: no count too high, none short by more than said. */
START_TEST(test_hot_rows_keep_their_bound)
{
	enum { ROWS = 5000 };
	struct hot hot = { .rows = calloc(2 * HOT_ROWS + 1, sizeof(*hot.rows)) };
	struct kernel_group *groups = calloc(ROWS, sizeof(*groups));
	u64 *truth = calloc(ROWS, sizeof(*truth)), state = 5, all = 0;

	for (u32 step = 0; step < 40; step++) {
		u64 count = 0;

		for (u64 row = 0; row < ROWS; row++) {
			u64 n;

			state = state * 6364136223846793005ull + 1442695040888963407ull;
			n = row < 20 ? 400 + (state >> 60) : (state >> 62) + (step % 9 == 8) * 300;
			if (!n)
				continue;
			groups[count++] = (struct kernel_group){ row, 0, n };
			truth[row] += n;
			all += n;
		}
		hot_add(&hot, groups, count);
	}
	ck_assert_uint_le(hot.error, all / HOT_ROWS);
	for (u32 i = 0; i < hot.count; i++) {
		u64 row = hot.rows[i].row, n = hot.rows[i].count;

		ck_assert_uint_le(n, truth[row]);
		ck_assert_uint_le(truth[row] - n, hot.error);
		truth[row] = 0;
	}
	for (u64 row = 0; row < ROWS; row++)
		ck_assert_uint_le(truth[row], hot.error);
	free(hot.rows);
	free(groups);
	free(truth);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { test_each_step_counts_once, test_hot_rows_keep_their_bound,
				       NULL };

	return direct_main("stats", tests);
}
