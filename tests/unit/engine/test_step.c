/* SPDX-License-Identifier: MIT */
/*
 * The order of steps: which LOOKUP, UPDATE and DRAIN may run, wait or fail, with and without
 * pipelining.
 */
#include "direct_main.h"
#include "direct_model.h"

static const s64 ids[] = {1, 2};

static struct direct *open_model(u32 replicas, bool pipelining)
{
	struct small_model m = small_model(4, 1);

	m.engine.replicas = replicas;
	m.engine.flags = pipelining ? EMBENG_ENGINE_PIPELINING : 0;
	m.engine.step_depth = 2;
	return small_open(&m, 2);
}

static float look(struct direct *d, u32 replica, u64 step)
{
	struct small_lookup l = small_lookup(d, &d->input[replica], step, ids, 2);

	ck_assert_uint_eq(direct_do(d, l.command), 0);
	return l.out[0];
}

static void expect_wait(struct direct *d, u32 what, u32 replica, u64 step)
{
	ck_assert_uint_eq(d->wait.what, what);
	ck_assert_uint_eq(d->wait.replica, replica);
	ck_assert_uint_eq(d->wait.step, step);
}

START_TEST(test_steps_out_of_order_fail_at_once)
{
	struct direct *d = open_model(1, false);

	ck_assert_uint_eq(direct_do(d, small_lookup(d, &d->input[0], 2, ids, 2).command),
			  EMBENG_STATUS_STEP_ORDER);
	ck_assert_uint_eq(direct_do(d, small_update(d, 0, 1, 2, 1)), EMBENG_STATUS_STEP_ORDER);
	look(d, 0, 1);
	ck_assert_uint_eq(direct_do(d, small_lookup(d, &d->input[0], 1, ids, 2).command),
			  EMBENG_STATUS_STEP_ORDER);
	ck_assert_uint_eq(direct_do(d, small_update(d, 0, 1, 2, 1)), 0);
	ck_assert_uint_eq(direct_do(d, small_update(d, 0, 1, 2, 1)), EMBENG_STATUS_STEP_ORDER);
	direct_free(d);
}
END_TEST

START_TEST(test_a_lookup_waits_for_what_is_missing)
{
	struct direct *d = open_model(2, false);
	struct small_lookup next;
	struct command *first, *second;

	look(d, 0, 1);
	next = small_lookup(d, &d->input[0], 2, ids, 2);
	ck_assert_int_eq(direct_submit(d, next.command), VERDICT_READY);
	ck_assert_int_eq(direct_try(d, next.command), VERDICT_WAIT);
	expect_wait(d, EMBENG_WAIT_LOOKUP, 1, 1);
	look(d, 1, 1);
	first = small_update(d, 0, 1, 2, -1);
	second = small_update(d, 1, 1, 2, -2);
	ck_assert_int_eq(direct_submit(d, first), VERDICT_READY);
	ck_assert_int_eq(direct_try(d, next.command), VERDICT_WAIT);
	expect_wait(d, EMBENG_WAIT_UPDATE, 1, 1);
	ck_assert_int_eq(direct_submit(d, second), VERDICT_READY);
	ck_assert_int_eq(direct_try(d, second), VERDICT_READY);
	ck_assert_int_eq(direct_try(d, first), VERDICT_READY);
	ck_assert_uint_eq(first->result, 2);
	ck_assert_uint_eq(second->result, 2);
	ck_assert_int_eq(direct_try(d, next.command), VERDICT_READY);
	ck_assert(next.out[0] == 3.0f);
	free(first);
	free(second);
	free(next.command);
	direct_free(d);
}
END_TEST

/* The one that was taken first waits for its replica's sibling, and keeps its gradients. */
START_TEST(test_a_repeated_update_leaves_the_first_alone)
{
	struct direct *d = open_model(2, false);
	struct command *first, *again;

	look(d, 0, 1);
	look(d, 1, 1);
	first = small_update(d, 0, 1, 2, -1);
	ck_assert_int_eq(direct_submit(d, first), VERDICT_READY);
	again = small_update(d, 0, 1, 2, -100);
	ck_assert_int_eq(direct_submit(d, again), VERDICT_FAILED);
	ck_assert_uint_eq(again->fault.status, EMBENG_STATUS_STEP_ORDER);
	ck_assert_uint_eq(direct_do(d, small_update(d, 1, 1, 2, -2)), 0);
	ck_assert_int_eq(direct_try(d, first), VERDICT_READY);
	ck_assert(look(d, 0, 2) == 3.0f);
	free(first);
	free(again);
	direct_free(d);
}
END_TEST

START_TEST(test_beyond_the_depth_a_lookup_waits_unfetched)
{
	struct direct *d = open_model(1, false);
	struct small_lookup second, third;

	look(d, 0, 1);
	second = small_lookup(d, &d->input[0], 2, ids, 2);
	third = small_lookup(d, &d->input[0], 3, ids, 2);
	ck_assert_int_eq(direct_submit(d, second.command), VERDICT_READY);
	ck_assert_int_eq(direct_submit(d, third.command), VERDICT_WAIT);
	expect_wait(d, EMBENG_WAIT_UPDATE, 0, 1);
	ck_assert_uint_eq(direct_do(d, small_update(d, 0, 1, 2, 0)), 0);
	ck_assert_int_eq(direct_submit(d, third.command), VERDICT_READY);
	ck_assert_int_eq(direct_try(d, second.command), VERDICT_READY);
	ck_assert_uint_eq(direct_do(d, small_update(d, 0, 2, 2, 0)), 0);
	ck_assert_int_eq(direct_try(d, third.command), VERDICT_READY);
	free(second.command);
	free(third.command);
	direct_free(d);
}
END_TEST

START_TEST(test_pipelining_lags_exactly_one_update)
{
	struct direct *d = open_model(1, true);
	struct command *first, *drain;

	look(d, 0, 1);
	first = small_update(d, 0, 1, 2, -1);
	ck_assert_int_eq(direct_submit(d, first), VERDICT_READY);
	ck_assert_int_eq(direct_try(d, first), VERDICT_WAIT);
	ck_assert(look(d, 0, 2) == 0.0f);
	ck_assert_int_eq(direct_try(d, first), VERDICT_READY);
	free(first);
	first = small_update(d, 0, 2, 2, -1);
	ck_assert_int_eq(direct_submit(d, first), VERDICT_READY);
	drain = direct_command(&d->transfer, EMBENG_OP_DRAIN);
	drain->cmd.step = 2;
	ck_assert_uint_eq(direct_do(d, drain), 0);
	ck_assert_int_eq(direct_try(d, first), VERDICT_READY);
	free(first);
	/* The drain came early, and yet the next lookup is stale by one. */
	ck_assert(look(d, 0, 3) == 1.0f);
	direct_free(d);
}
END_TEST

START_TEST(test_a_drain_waits_for_the_other_replicas)
{
	struct direct *d = open_model(2, true);
	struct command *drain = direct_command(&d->transfer, EMBENG_OP_DRAIN);

	look(d, 0, 1);
	ck_assert_int_eq(direct_submit(d, drain), VERDICT_READY);
	ck_assert_int_eq(direct_try(d, drain), VERDICT_WAIT);
	expect_wait(d, EMBENG_WAIT_LOOKUP, 1, 1);
	look(d, 1, 1);
	ck_assert_int_eq(direct_try(d, drain), VERDICT_READY);
	free(drain);
	direct_free(d);
}
END_TEST

START_TEST(test_after_is_exact)
{
	struct direct *d = open_model(1, false);
	struct small_lookup l = small_lookup(d, &d->inference, 0, ids, 2);

	l.command->cmd.after = 1;
	ck_assert_int_eq(direct_submit(d, l.command), VERDICT_READY);
	ck_assert_int_eq(direct_try(d, l.command), VERDICT_WAIT);
	expect_wait(d, EMBENG_WAIT_LOOKUP, 0, 1);
	look(d, 0, 1);
	ck_assert_uint_eq(direct_do(d, small_update(d, 0, 1, 2, -1)), 0);
	ck_assert_int_eq(direct_try(d, l.command), VERDICT_READY);
	ck_assert(l.out[0] == 1.0f);
	free(l.command);
	l = small_lookup(d, &d->inference, 0, ids, 2);
	ck_assert_uint_eq(direct_do(d, l.command), EMBENG_STATUS_STEP_PASSED);
	direct_free(d);
}
END_TEST

START_TEST(test_a_failed_lookup_can_be_given_again)
{
	struct direct *d = open_model(1, false);
	struct small_lookup l = small_lookup(d, &d->input[0], 1, ids, 2);
	struct small_lookup ahead = small_lookup(d, &d->input[0], 2, ids, 2);

	ck_assert_int_eq(direct_submit(d, l.command), VERDICT_READY);
	ck_assert_int_eq(direct_submit(d, ahead.command), VERDICT_READY);
	d->table[1].generation = 8;
	ck_assert_int_eq(direct_try(d, l.command), VERDICT_FAILED);
	ck_assert_uint_eq(l.command->fault.status, EMBENG_STATUS_KEY);
	d->table[1].generation = 7;
	ck_assert_int_eq(direct_try(d, ahead.command), VERDICT_FAILED);
	ck_assert_uint_eq(ahead.command->fault.status, EMBENG_STATUS_STEP_ORDER);
	look(d, 0, 1);
	free(l.command);
	free(ahead.command);
	direct_free(d);
}
END_TEST

static enum verdict admit(struct direct *d, struct command *command)
{
	enum verdict verdict;

	port_lock(d->engine.lock);
	verdict = model_admit(command, &d->wait);
	port_unlock(d->engine.lock);
	return verdict;
}

static void refuse(struct direct *d, struct command *command)
{
	fault_set(&command->fault, EMBENG_STATUS_ID, EMBENG_FIELD_IDS, 0, 0, 0, 0);
	port_lock(d->engine.lock);
	model_commit(command, EMBENG_STATUS_ID);
	port_unlock(d->engine.lock);
}

/* Two queues of a replica: the second waits until it is known what becomes of the first. */
static void accept_two(bool updates)
{
	struct direct *d = open_model(1, false);
	struct command *pair[2];

	look(d, 0, 1);
	for (u32 i = 0; i < 2; i++)
		pair[i] = updates ? small_update(d, 0, 1, 2, -1)
				  : small_lookup(d, &d->input[0], 2, ids, 2).command;
	ck_assert_int_eq(admit(d, pair[0]), VERDICT_READY);
	ck_assert_int_eq(admit(d, pair[1]), VERDICT_WAIT);
	expect_wait(d, EMBENG_WAIT_NOTHING, 0, 0);
	refuse(d, pair[0]);
	ck_assert_int_eq(admit(d, pair[1]), VERDICT_READY);
	refuse(d, pair[1]);
	free(pair[0]);
	free(pair[1]);
	direct_free(d);
}

START_TEST(test_one_of_a_replica_is_accepted_at_a_time)
{
	accept_two(false);
	accept_two(true);
}
END_TEST

/* An update that was refused when it was to be accepted was not given. */
START_TEST(test_a_refused_update_can_be_given_again)
{
	struct direct *d = open_model(1, false);
	struct command *wrong;

	look(d, 0, 1);
	wrong = small_update(d, 0, 1, 2, -1);
	wrong->cmd.desc.length -= 8;
	ck_assert_uint_eq(direct_do(d, wrong), EMBENG_STATUS_LENGTH);
	ck_assert_uint_eq(direct_do(d, small_update(d, 0, 1, 2, -1)), 0);
	ck_assert(look(d, 0, 2) == 1.0f);
	direct_free(d);
}
END_TEST

START_TEST(test_unload_waits_for_users)
{
	struct direct *d = open_model(1, false);
	struct small_lookup l = small_lookup(d, &d->input[0], 1, ids, 2);
	struct command *unload = direct_command(&d->transfer, EMBENG_OP_MODEL_UNLOAD);

	ck_assert_int_eq(direct_submit(d, l.command), VERDICT_READY);
	ck_assert_int_eq(direct_submit(d, unload), VERDICT_READY);
	ck_assert_int_eq(direct_try(d, unload), VERDICT_WAIT);
	ck_assert_int_eq(direct_try(d, l.command), VERDICT_READY);
	ck_assert_int_eq(direct_try(d, unload), VERDICT_READY);
	ck_assert_ptr_null(d->context.model);
	free(l.command);
	free(unload);
	direct_free(d);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {test_steps_out_of_order_fail_at_once,
				      test_a_lookup_waits_for_what_is_missing,
				      test_a_repeated_update_leaves_the_first_alone,
				      test_beyond_the_depth_a_lookup_waits_unfetched,
				      test_pipelining_lags_exactly_one_update,
				      test_a_drain_waits_for_the_other_replicas,
				      test_after_is_exact,
				      test_a_failed_lookup_can_be_given_again,
				      test_unload_waits_for_users,
				      test_one_of_a_replica_is_accepted_at_a_time,
				      test_a_refused_update_can_be_given_again,
				      NULL};

	return direct_main("step", tests);
}
