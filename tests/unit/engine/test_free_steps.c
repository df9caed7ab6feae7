/* SPDX-License-Identifier: MIT */
/*
 * Steps beside the strict order: LOOKUPs that take ids alone, and UPDATEs that say that there are no
 * gradients, each with what it waits for, what it refuses and what it leaves in tables and counts.
 */
#include "direct_main.h"
#include "engine/update/update.h"
#include "direct_model.h"

static const s64 ids[] = {1, 2}, others[] = {2, 3};

static struct direct *open_steps_on(u32 cores, u32 replicas, u32 flags)
{
	struct small_model m = small_model(4, 1);

	m.engine.replicas = replicas;
	m.engine.flags = flags;
	m.engine.step_depth = 3;
	return small_open(&m, cores);
}

static struct direct *open_steps(u32 replicas, u32 flags)
{
	return open_steps_on(2, replicas, flags);
}

static struct command *take_ids(struct direct *d, u32 replica, u64 step, const s64 *rows)
{
	struct small_lookup l = small_lookup(d, &d->input[replica], step, rows, 2);

	l.command->cmd.flags = EMBENG_CMD_IDS_ONLY;
	l.feature->activations = (struct embeng_mem){0};
	return l.command;
}

static struct command *discard(struct direct *d, u32 replica, u64 step)
{
	struct command *command = direct_command(&d->gradient[replica], EMBENG_OP_UPDATE);

	command->cmd.flags = EMBENG_CMD_DISCARD;
	command->cmd.step = step;
	return command;
}

static struct command *update(struct direct *d, u32 replica, u64 step, float gradient)
{
	return small_update(d, replica, step, 2, gradient);
}

static void expect_rows(struct direct *d, float one, float two, float three)
{
	float *rows;

	ck_assert_uint_eq(direct_rows(d, EMBENG_OP_ROWS_READ, 0, 0, 0, 4, (void **)&rows), 0);
	ck_assert(rows[0] == 0.0f && rows[1] == one && rows[2] == two && rows[3] == three);
}

static u64 batches_of(struct direct *d)
{
	return reg_read64(&d->engine, EMBENG_REG_COUNT_BATCHES);
}

static u64 optimizer_steps(struct direct *d)
{
	struct command *command = direct_command(&d->transfer, EMBENG_OP_STATE_READ);
	u64 *count = direct_memory(d, 8, &command->cmd.desc);

	command->cmd.after = d->context.model->applied;
	ck_assert_uint_eq(direct_do(d, command), 0);
	return *count;
}

static struct embeng_stats table_stats(struct direct *d)
{
	struct command *command = direct_command(&d->transfer, EMBENG_OP_STATS);
	struct embeng_stats *stats = direct_memory(d, sizeof(*stats), &command->cmd.desc);

	command->cmd.after = d->context.model->applied;
	ck_assert_uint_eq(direct_do(d, command), 0);
	return *stats;
}

/* It waits for no update, but for the lookup of its replica before it. */
START_TEST(test_ids_wait_for_no_update)
{
	struct direct *d = open_steps(1, 0);
	struct small_lookup second;
	struct command *third;

	ck_assert_uint_eq(direct_do(d, take_ids(d, 0, 1, ids)), 0);
	second = small_lookup(d, &d->input[0], 2, ids, 2);
	ck_assert_int_eq(direct_submit(d, second.command), VERDICT_READY);
	ck_assert_int_eq(direct_try(d, second.command), VERDICT_WAIT);
	third = take_ids(d, 0, 3, others);
	ck_assert_int_eq(direct_submit(d, third), VERDICT_READY);
	ck_assert_int_eq(direct_try(d, third), VERDICT_WAIT);
	ck_assert_uint_eq(d->wait.what, EMBENG_WAIT_NOTHING);
	ck_assert_uint_eq(direct_do(d, update(d, 0, 1, -1)), 0);
	ck_assert_int_eq(direct_try(d, second.command), VERDICT_READY);
	ck_assert(second.out[0] == 1.0f);
	ck_assert_int_eq(direct_try(d, third), VERDICT_READY);
	ck_assert_uint_eq(direct_do(d, update(d, 0, 2, -1)), 0);
	ck_assert_uint_eq(direct_do(d, update(d, 0, 3, -1)), 0);
	expect_rows(d, 2, 3, 1);
	free(second.command);
	free(third);
	direct_free(d);
}
END_TEST

START_TEST(test_ids_have_no_activations)
{
	struct direct *d = open_steps(1, 0);
	struct small_lookup l = small_lookup(d, &d->input[0], 1, ids, 2);
	struct command *strange = take_ids(d, 0, 1, (const s64[]){1, 4});
	u64 looked = batches_of(d);

	l.command->cmd.flags = EMBENG_CMD_IDS_ONLY;
	ck_assert_int_eq(direct_submit(d, l.command), VERDICT_FAILED);
	ck_assert_uint_eq(l.command->fault.status, EMBENG_STATUS_LENGTH);
	ck_assert_uint_eq(l.command->fault.field, EMBENG_FIELD_ACTIVATIONS);
	ck_assert_uint_eq(direct_do(d, strange), EMBENG_STATUS_ID);
	ck_assert_uint_eq(direct_do(d, take_ids(d, 0, 1, ids)), 0);
	ck_assert_uint_eq(batches_of(d), looked);
	free(l.command);
	direct_free(d);
}
END_TEST

/* The held rows of an early update are for lookups that read. */
START_TEST(test_ids_behind_an_early_update)
{
	struct direct *d = open_steps(1, EMBENG_ENGINE_PIPELINING);
	struct command *first, *drain = direct_command(&d->transfer, EMBENG_OP_DRAIN);

	ck_assert_uint_eq(direct_do(d, take_ids(d, 0, 1, ids)), 0);
	first = update(d, 0, 1, -1);
	ck_assert_int_eq(direct_submit(d, first), VERDICT_READY);
	drain->cmd.step = 1;
	ck_assert_uint_eq(direct_do(d, drain), 0);
	ck_assert_int_eq(direct_try(d, first), VERDICT_READY);
	ck_assert_uint_eq(direct_do(d, take_ids(d, 0, 2, ids)), 0);
	expect_rows(d, 1, 1, 0);
	free(first);
	direct_free(d);
}
END_TEST

/* No table and no count changes, with optimizers that change all rows at each step neither. */
START_TEST(test_a_step_that_all_discard)
{
	struct direct *d = open_steps(2, 0);
	struct command *first = discard(d, 0, 1);
	struct embeng_stats stats;

	for (u32 r = 0; r < 2; r++)
		ck_assert_uint_eq(direct_do(d, take_ids(d, r, 1, ids)), 0);
	ck_assert_int_eq(direct_submit(d, first), VERDICT_READY);
	ck_assert_int_eq(direct_try(d, first), VERDICT_WAIT);
	ck_assert_uint_eq(d->wait.what, EMBENG_WAIT_UPDATE);
	ck_assert_uint_eq(d->wait.replica, 1);
	ck_assert_uint_eq(direct_do(d, discard(d, 1, 1)), 0);
	ck_assert_int_eq(direct_try(d, first), VERDICT_READY);
	ck_assert_uint_eq(first->result, 0);
	ck_assert_uint_eq(d->context.model->applied, 1);
	ck_assert_uint_eq(optimizer_steps(d), 0);
	stats = table_stats(d);
	ck_assert_uint_eq(stats.steps + stats.ids + stats.updated_rows, 0);
	expect_rows(d, 0, 0, 0);
	for (u32 r = 0; r < 2; r++)
		ck_assert_uint_eq(direct_do(d, take_ids(d, r, 2, ids)), 0);
	free(first);
	first = update(d, 0, 2, -1);
	ck_assert_int_eq(direct_submit(d, first), VERDICT_READY);
	ck_assert_uint_eq(direct_do(d, update(d, 1, 2, -2)), 0);
	ck_assert_int_eq(direct_try(d, first), VERDICT_READY);
	ck_assert_uint_eq(optimizer_steps(d), 1);
	expect_rows(d, 3, 3, 0);
	free(first);
	direct_free(d);
}
END_TEST

/* @counted: STATS has sorted the ids of both replicas before. */
static void discard_one(u32 gone, bool counted)
{
	struct direct *d = open_steps(2, 0);
	struct command *first;
	struct embeng_stats stats;

	ck_assert_uint_eq(direct_do(d, take_ids(d, 0, 1, ids)), 0);
	ck_assert_uint_eq(direct_do(d, take_ids(d, 1, 1, others)), 0);
	if (counted)
		ck_assert_uint_eq(table_stats(d).ids, 4);
	first = gone ? update(d, 0, 1, -1) : discard(d, 0, 1);
	/* Gradients of a step before, whose memory is gone, are nobody's any more. */
	model_part(d->context.model, 1, gone)->gradients->features[0].gradients =
		(struct embeng_mem){1, 99, 0, 8};
	ck_assert_int_eq(direct_submit(d, first), VERDICT_READY);
	ck_assert_uint_eq(direct_do(d, gone ? discard(d, 1, 1) : update(d, 1, 1, -1)), 0);
	ck_assert_int_eq(direct_try(d, first), VERDICT_READY);
	ck_assert_uint_eq(first->result, 2);
	if (gone)
		expect_rows(d, 1, 1, 0);
	else
		expect_rows(d, 0, 1, 1);
	stats = table_stats(d);
	ck_assert_uint_eq(stats.ids, counted ? 4 : 2);
	ck_assert_uint_eq(stats.updated_rows, 2);
	ck_assert_uint_eq(optimizer_steps(d), 1);
	free(first);
	direct_free(d);
}

START_TEST(test_a_step_that_one_discards)
{
	for (u32 gone = 0; gone < 2; gone++) {
		discard_one(gone, false);
		discard_one(gone, true);
	}
}
END_TEST

static void train_once(struct direct *d)
{
	struct command *first;

	ck_assert_uint_eq(direct_do(d, take_ids(d, 0, 1, ids)), 0);
	ck_assert_uint_eq(direct_do(d, take_ids(d, 1, 1, others)), 0);
	first = update(d, 0, 1, -1);
	ck_assert_int_eq(direct_submit(d, first), VERDICT_READY);
	ck_assert_uint_eq(direct_do(d, update(d, 1, 1, -1)), 0);
	ck_assert_int_eq(direct_try(d, first), VERDICT_READY);
	expect_rows(d, 1, 2, 1);
	free(first);
}

/* Fails a discard that was accepted. */
static void fail_discard(struct direct *d, struct command *command)
{
	d->table[1].generation = 8;
	ck_assert_int_eq(direct_try(d, command), VERDICT_FAILED);
	ck_assert_uint_eq(command->fault.status, EMBENG_STATUS_KEY);
	d->table[1].generation = 7;
	free(command);
}

/*
 * The step fails in the command that came last, which was a discard; it may be given again, as
 * gradients too.
 */
START_TEST(test_a_discard_that_failed_may_be_an_update)
{
	struct direct *d = open_steps(2, 0);
	struct command *first, *last, *again;
	struct embeng_update *header;

	ck_assert_uint_eq(direct_do(d, take_ids(d, 0, 1, ids)), 0);
	ck_assert_uint_eq(direct_do(d, take_ids(d, 1, 1, others)), 0);
	first = update(d, 0, 1, -1);
	ck_assert_int_eq(direct_submit(d, first), VERDICT_READY);
	last = discard(d, 1, 1);
	ck_assert_int_eq(direct_submit(d, last), VERDICT_READY);
	fail_discard(d, last);
	/* The other replica has given its multiplier. */
	again = update(d, 1, 1, -2);
	header = (void *)(d->arena + again->cmd.desc.offset);
	header->flags = EMBENG_UPDATE_MULTIPLIER;
	header->multiplier = 0x40000000;
	ck_assert_uint_eq(direct_do(d, again), EMBENG_STATUS_RATE);
	ck_assert_uint_eq(direct_do(d, update(d, 1, 1, -2)), 0);
	ck_assert_int_eq(direct_try(d, first), VERDICT_READY);
	expect_rows(d, 1, 3, 2);
	free(first);
	direct_free(d);
}
END_TEST

/*
 * STATS sorts the ids of a step without those of a replica that discards its part. If that replica
 * gives gradients after all, they are sorted anew. One core has one memory for what is sorted, and the
 * step before has made it large enough for the ids of both replicas.
 */
START_TEST(test_ids_sorted_without_a_part_are_sorted_again)
{
	struct direct *d = open_steps_on(1, 2, 0);
	struct command *first, *last;

	train_once(d);
	ck_assert_uint_eq(direct_do(d, take_ids(d, 0, 2, ids)), 0);
	ck_assert_uint_eq(direct_do(d, take_ids(d, 1, 2, others)), 0);
	first = update(d, 0, 2, -1);
	ck_assert_int_eq(direct_submit(d, first), VERDICT_READY);
	last = discard(d, 1, 2);
	ck_assert_int_eq(direct_submit(d, last), VERDICT_READY);
	ck_assert_uint_eq(table_stats(d).ids, 6); /* four of the first step */
	fail_discard(d, last);
	ck_assert_uint_eq(direct_do(d, update(d, 1, 2, -2)), 0);
	ck_assert_int_eq(direct_try(d, first), VERDICT_READY);
	ck_assert_uint_eq(first->result, 3);
	expect_rows(d, 2, 5, 3);
	free(first);
	direct_free(d);
}
END_TEST

START_TEST(test_discards_keep_the_order_of_steps)
{
	struct direct *d = open_steps(1, 0);

	ck_assert_uint_eq(direct_do(d, discard(d, 0, 1)), EMBENG_STATUS_STEP_ORDER);
	ck_assert_uint_eq(direct_do(d, take_ids(d, 0, 1, ids)), 0);
	ck_assert_uint_eq(direct_do(d, discard(d, 0, 2)), EMBENG_STATUS_STEP_ORDER);
	ck_assert_uint_eq(direct_do(d, discard(d, 0, 1)), 0);
	ck_assert_uint_eq(direct_do(d, discard(d, 0, 1)), EMBENG_STATUS_STEP_ORDER);
	ck_assert_uint_eq(direct_do(d, update(d, 0, 1, -1)), EMBENG_STATUS_STEP_ORDER);
	direct_free(d);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {test_ids_wait_for_no_update,
				      test_ids_have_no_activations,
				      test_ids_behind_an_early_update,
				      test_a_step_that_all_discard,
				      test_a_step_that_one_discards,
				      test_a_discard_that_failed_may_be_an_update,
				      test_ids_sorted_without_a_part_are_sorted_again,
				      test_discards_keep_the_order_of_steps,
				      NULL};

	return direct_main("free_steps", tests);
}
