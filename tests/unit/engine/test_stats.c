/* SPDX-License-Identifier: MIT */
/* Statistics of a table: each step counts once, and the list of hot rows keeps its error bound. */
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
	s64 ids[] = {3, 3, 12, 4, -1, 3};
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

/* The counts of table @index at whatever step the model is. @tables: how many tables it has. */
static struct embeng_stats read_now(struct direct *d, u32 index, u64 tables)
{
	struct command *command = direct_command(&d->transfer, EMBENG_OP_STATS);
	struct embeng_stats *stats = direct_memory(d, sizeof(*stats), &command->cmd.desc);

	memset(stats, 0xa5, sizeof(*stats));
	command->cmd.arg = index | EMBENG_STATS_NOW;
	ck_assert_int_eq(direct_submit(d, command), VERDICT_READY);
	ck_assert_uint_eq(model_touched(command), sizeof(*stats));
	ck_assert_int_eq(direct_try(d, command), VERDICT_READY);
	ck_assert_uint_eq(command->result, tables);
	free(command);
	return *stats;
}

static void expect_same_stats(struct embeng_stats a, struct embeng_stats b)
{
	ck_assert_mem_eq(&a, &b, sizeof(a));
}

START_TEST(test_now_needs_no_step)
{
	struct small_model m = small_model(10, 1);
	s64 ids[] = {3, 3, 4};
	struct direct *d = small_open(&m, 3);
	struct embeng_stats s;

	ck_assert_uint_eq(read_now(d, 0, 1).steps, 0);
	for (u64 step = 1; step <= 3; step++) {
		ck_assert_uint_eq(direct_do(d, small_lookup(d, &d->input[0], step, ids, 3).command),
				  0);
		/* The step that is on its way is not counted yet. */
		s = read_now(d, 0, 1);
		ck_assert_uint_eq(s.steps, step - 1);
		ck_assert_uint_eq(s.ids, 3 * (step - 1));
		ck_assert_uint_eq(direct_do(d, small_update(d, 0, step, 3, 1)), 0);
		s = read_now(d, 0, 1);
		ck_assert_uint_eq(s.steps, step);
		ck_assert_uint_eq(s.hot_count, 2);
		ck_assert(s.hot[0].row == 3 && s.hot[0].count == 2 * step);
		ck_assert(s.hot[1].row == 4 && s.hot[1].count == step);
		expect_same_stats(s, read_stats(d, false));
	}
	read_stats(d, true);
	ck_assert_uint_eq(read_now(d, 0, 1).ids, 0);
	direct_free(d);
}
END_TEST

/* A step that is looked up and then discarded counts as if nobody had looked at the model. */
START_TEST(test_now_leaves_the_counts)
{
	struct embeng_stats stats[2];

	for (u32 looks = 0; looks < 2; looks++) {
		struct small_model m = small_model(10, 1);
		s64 ids[] = {3, 3, 4};
		struct direct *d = small_open(&m, 2);
		struct command *discard = direct_command(&d->gradient[0], EMBENG_OP_UPDATE);

		discard->cmd.step = 1;
		discard->cmd.flags = EMBENG_CMD_DISCARD;
		ck_assert_uint_eq(direct_do(d, small_lookup(d, &d->input[0], 1, ids, 3).command),
				  0);
		for (u32 i = 0; i < looks; i++)
			read_now(d, 0, 1);
		ck_assert_uint_eq(direct_do(d, discard), 0);
		stats[looks] = read_stats(d, false);
		direct_free(d);
	}
	ck_assert_uint_eq(stats[0].ids, 0);
	expect_same_stats(stats[0], stats[1]);
}
END_TEST

/* A look from outside knows neither whether there is a model nor its tables. */
START_TEST(test_now_of_what_is_not_there)
{
	const struct embeng_stats none = {.table = 7};
	struct small_model m = small_model(10, 1);
	struct direct *d = direct_new(2, NULL);
	struct direct_blob *b = calloc(1, sizeof(*b));
	struct command *early, *unload;
	struct embeng_stats *answer;

	expect_same_stats(read_now(d, 7, 0), none);
	/* A model that comes before its turn is not looked at. */
	early = direct_command(&d->transfer, EMBENG_OP_STATS);
	answer = direct_memory(d, sizeof(*answer), &early->cmd.desc);
	early->cmd.arg = EMBENG_STATS_NOW;
	ck_assert_int_eq(direct_submit(d, early), VERDICT_READY);
	small_blob(&m, b);
	ck_assert_uint_eq(direct_load(d, b), 0);
	ck_assert_int_eq(direct_try(d, early), VERDICT_READY);
	ck_assert_uint_eq(early->result, 0);
	ck_assert_uint_eq(answer->core_count, 0);
	free(early);
	expect_same_stats(read_now(d, 7, 1), none);
	ck_assert_uint_eq(read_now(d, 0, 1).core_count, 2);
	unload = direct_command(&d->transfer, EMBENG_OP_MODEL_UNLOAD);
	ck_assert_uint_eq(direct_do(d, unload), 0);
	expect_same_stats(read_now(d, 7, 0), none);
	free(b);
	direct_free(d);
}
END_TEST

/* An unload waits for a look that came before it. */
START_TEST(test_now_holds_the_model)
{
	struct small_model m = small_model(10, 1);
	struct direct *d = small_open(&m, 2);
	struct command *look = direct_command(&d->inference, EMBENG_OP_STATS);
	struct command *unload = direct_command(&d->transfer, EMBENG_OP_MODEL_UNLOAD);

	direct_memory(d, sizeof(struct embeng_stats), &look->cmd.desc);
	look->cmd.arg = EMBENG_STATS_NOW;
	ck_assert_int_eq(direct_submit(d, look), VERDICT_READY);
	ck_assert_int_eq(direct_submit(d, unload), VERDICT_READY);
	ck_assert_int_eq(direct_try(d, unload), VERDICT_WAIT);
	ck_assert_int_eq(direct_try(d, look), VERDICT_READY);
	ck_assert_uint_eq(look->result, 1);
	ck_assert_int_eq(direct_try(d, unload), VERDICT_READY);
	free(look);
	free(unload);
	direct_free(d);
}
END_TEST

/* A command says how much it did, for the counts of its queue, as the device's counters do. */
START_TEST(test_commands_say_what_they_did)
{
	struct small_model m = small_model(10, 1);
	s64 ids[] = {3, 3, 4};
	struct direct *d = small_open(&m, 2);
	struct command *lookup = small_lookup(d, &d->input[0], 1, ids, 3).command;
	struct command *update = small_update(d, 0, 1, 3, 1);

	ck_assert_int_eq(direct_submit(d, lookup), VERDICT_READY);
	ck_assert_int_eq(direct_try(d, lookup), VERDICT_READY);
	ck_assert_uint_eq(lookup->ids, 3);
	ck_assert_uint_eq(lookup->rows, 0);
	ck_assert_int_eq(direct_submit(d, update), VERDICT_READY);
	ck_assert_int_eq(direct_try(d, update), VERDICT_READY);
	ck_assert_uint_eq(update->ids, 0);
	ck_assert_uint_eq(update->rows, 2);
	ck_assert_uint_eq(reg_read64(&d->engine, EMBENG_REG_COUNT_IDS), 3);
	ck_assert_uint_eq(reg_read64(&d->engine, EMBENG_REG_COUNT_UNIQUE_ROWS), 2);
	free(lookup);
	free(update);
	direct_free(d);
}
END_TEST

/* Far more rows than the sketch holds: no count too high, none short by more than said. */
START_TEST(test_hot_rows_keep_their_bound)
{
	enum { ROWS = 5000 };
	struct hot hot = {.rows = calloc(2 * HOT_ROWS + 1, sizeof(*hot.rows))};
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
			groups[count++] = (struct kernel_group){row, 0, n};
			truth[row] += n;
			all += n;
		}
		hot_add(&hot, groups, count, NULL);
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

static int most_first(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? 1 : x > y ? -1 : 0;
}

/*
 * Reduces the counts of all rows of a table as hot_rows.h says that those of the hottest are.
 * Return: how much was taken from each.
 */
static u64 reduce_all(u64 *counts, u64 rows)
{
	u64 *ordered = malloc(rows * sizeof(*ordered)), excess;

	memcpy(ordered, counts, rows * sizeof(*ordered));
	qsort(ordered, rows, sizeof(*ordered), most_first);
	excess = ordered[HOT_ROWS];
	for (u64 row = 0; row < rows; row++)
		counts[row] = counts[row] > excess ? counts[row] - excess : 0;
	free(ordered);
	return excess;
}

/* Every other row or so, most with small counts and some with up to 2^27. Return: how many. */
static u64 draw_groups(struct kernel_group *groups, u64 *counts, u64 rows, u64 *state)
{
	u64 count = 0;

	for (u64 row = 0; row < rows; row++) {
		u32 n;

		*state = *state * 6364136223846793005ull + 1442695040888963407ull;
		n = 1 + (row % 300 == 7 ? (u32)(*state >> 37) : (u32)(*state >> 60) % 12);
		if (*state >> 32 & 1)
			continue;
		groups[count++] = (struct kernel_group){5 * row, 0, n};
		counts[row] += n;
	}
	return count;
}

static void assert_rows(const struct hot *hot, const u64 *counts, u64 rows)
{
	u32 at = 0;

	for (u64 row = 0; row < rows; row++) {
		if (!counts[row])
			continue;
		ck_assert_uint_lt(at, hot->count);
		ck_assert_uint_eq(hot->rows[at].row, 5 * row);
		ck_assert_uint_eq(hot->rows[at++].count, counts[row]);
	}
	ck_assert_uint_eq(at, hot->count);
}

static void assert_whole_steps(u64 rows)
{
	struct hot hot = {.rows = calloc(2 * HOT_ROWS + 1, sizeof(*hot.rows))};
	struct kernel_group *groups = calloc(rows, sizeof(*groups));
	u64 *counts = calloc(rows, sizeof(*counts)), state = rows, error = 0;

	for (u32 step = 0; step < 60; step++) {
		hot_add(&hot, groups, draw_groups(groups, counts, rows, &state), NULL);
		error += reduce_all(counts, rows);
		ck_assert_uint_eq(hot.error, error);
		assert_rows(&hot, counts, rows);
	}
	free(hot.rows);
	free(groups);
	free(counts);
}

/* One row too many, some, and far more than are kept. */
START_TEST(test_hot_rows_are_those_of_whole_steps)
{
	assert_whole_steps(HOT_ROWS + 1);
	assert_whole_steps(HOT_ROWS + 200);
	assert_whole_steps(6 * HOT_ROWS);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {test_each_step_counts_once,
				      test_now_needs_no_step,
				      test_now_leaves_the_counts,
				      test_now_of_what_is_not_there,
				      test_now_holds_the_model,
				      test_commands_say_what_they_did,
				      test_hot_rows_keep_their_bound,
				      test_hot_rows_are_those_of_whole_steps,
				      NULL};

	return direct_main("stats", tests);
}
