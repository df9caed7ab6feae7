// SPDX-License-Identifier: MIT
/*
 * The cases of step_cases.h, asked of the rules of steps and of the engine, which keeps its own
 * counts. test_step_ledger.c asks the driver.
 */
#include "direct_model.h"
#include "step_cases.h"
#include "suite.h"

#include "engine/step/step.h"

static struct embeng_step_answer ask_rules(const struct step_case *c)
{
	const struct embeng_steps steps = {
		.replicas = c->counts,
		.replica_count = c->replica_count,
		.depth = c->depth,
		.applied = c->applied,
		.pipelining = c->pipelining,
	};

	switch (c->opcode) {
	case EMBENG_OP_LOOKUP:
		return c->phase == STEP_ADMIT
			       ? embeng_steps_admit_lookup(&steps, c->replica, c->step)
			       : embeng_steps_lookup_ready(&steps, c->replica, c->step);
	case EMBENG_OP_UPDATE:
		return c->phase == STEP_ADMIT
			       ? embeng_steps_admit_update(&steps, c->replica, c->step)
			       : embeng_steps_update_ready(&steps, c->step);
	case EMBENG_OP_DRAIN:
		return embeng_steps_drain_ready(&steps, c->step);
	}
	return embeng_steps_after_ready(&steps, c->step);
}

START_TEST(the_rules_answer)
{
	const struct step_case *c = &step_cases[_i];
	struct embeng_step_answer got = ask_rules(c);

	ck_assert_msg(got.verdict == c->want.verdict, "%s: verdict %u", c->name, got.verdict);
	ck_assert_msg(got.what == c->want.what, "%s: what %u", c->name, got.what);
	ck_assert_msg(got.replica == c->want.replica, "%s: replica %u", c->name, got.replica);
	ck_assert_msg(got.step == c->want.step, "%s: step %llu", c->name, got.step);
}
END_TEST

static struct direct *open_case(const struct step_case *c)
{
	struct small_model m = small_model(4, 1);
	struct direct *d;

	m.engine.replicas = c->replica_count;
	m.engine.flags = c->pipelining ? EMBENG_ENGINE_PIPELINING : 0;
	m.engine.step_depth = c->depth;
	d = small_open(&m, 1);
	memcpy(d->context.model->replicas, c->counts, c->replica_count * sizeof(c->counts[0]));
	d->context.model->applied = c->applied;
	return d;
}

static struct command *make_command(struct direct *d, const struct step_case *c)
{
	struct queue *q = &d->transfer;
	struct command *command;

	if (c->opcode == EMBENG_OP_LOOKUP)
		q = &d->input[c->replica];
	if (c->opcode == EMBENG_OP_UPDATE)
		q = &d->gradient[c->replica];
	command = direct_command(q, c->opcode);
	command->cmd = step_case_command(c);
	return command;
}

/* An accepted command is its step's. */
static enum verdict ask_engine(struct direct *d, const struct step_case *c, struct command *command)
{
	struct part *part = model_part(d->context.model, c->step, c->replica);

	switch (c->opcode) {
	case EMBENG_OP_LOOKUP:
		if (c->phase == STEP_ADMIT)
			return step_admit_lookup(command, &d->wait);
		part->lookup = command;
		return step_lookup_ready(command, &d->wait);
	case EMBENG_OP_UPDATE:
		if (c->phase == STEP_ADMIT)
			return step_admit_update(command, &d->wait);
		part->update = command;
		return step_update_ready(command, &d->wait);
	case EMBENG_OP_DRAIN:
		return step_drain_ready(command, &d->wait);
	}
	return step_after_ready(command, &d->wait);
}

static enum verdict wanted_verdict(const struct step_case *c)
{
	if (c->want.verdict == EMBENG_STEP_READY)
		return VERDICT_READY;
	return c->want.verdict == EMBENG_STEP_WAITS ? VERDICT_WAIT : VERDICT_FAILED;
}

static void check_refusal(const struct step_case *c, const struct fault *fault)
{
	u32 field = c->want.what == EMBENG_STATUS_STEP_PASSED ? EMBENG_FIELD_AFTER
							      : EMBENG_FIELD_STEP;

	ck_assert_msg(fault->status == c->want.what, "%s: status %u", c->name, fault->status);
	ck_assert_uint_eq(fault->field, field);
	ck_assert_uint_eq(fault->value, c->step);
	ck_assert_uint_eq(fault->limit, c->want.step);
}

START_TEST(the_engine_answers)
{
	const struct step_case *c = &step_cases[_i];
	struct direct *d = open_case(c);
	struct command *command = make_command(d, c);
	enum verdict verdict = ask_engine(d, c, command);

	ck_assert_msg(verdict == wanted_verdict(c), "%s: verdict %u", c->name, verdict);
	if (verdict == VERDICT_WAIT) {
		ck_assert_msg(d->wait.what == c->want.what, "%s: what %u", c->name, d->wait.what);
		ck_assert_uint_eq(d->wait.replica, c->want.replica);
		ck_assert_uint_eq(d->wait.step, c->want.step);
	}
	if (verdict == VERDICT_FAILED)
		check_refusal(c, &command->fault);
	else
		ck_assert_uint_eq(command->fault.status, 0);
	free(command);
	direct_free(d);
}
END_TEST

/* While a command of the replica is being copied, the next one is not looked at. */
START_TEST(one_command_of_a_replica_is_accepted_at_a_time)
{
	const struct step_case first = {.replica_count = 1, .depth = 2, .counts = {{1, 1, 0}}};
	struct direct *d = open_case(&first);
	struct command *lookup = direct_command(&d->input[0], EMBENG_OP_LOOKUP);
	struct command *drain = direct_command(&d->transfer, EMBENG_OP_DRAIN);

	lookup->cmd.step = 2;
	ck_assert_int_eq(step_admit_lookup(lookup, &d->wait), VERDICT_READY);
	ck_assert_int_eq(step_admit_lookup(lookup, &d->wait), VERDICT_WAIT);
	ck_assert_uint_eq(d->wait.what, EMBENG_WAIT_NOTHING);
	ck_assert_int_eq(step_drain_ready(drain, &d->wait), VERDICT_WAIT);
	step_commit_lookup(lookup, EMBENG_STATUS_KEY);
	ck_assert_uint_eq(d->context.model->replicas[0].accepted, 1);
	ck_assert_int_eq(step_drain_ready(drain, &d->wait), VERDICT_READY);
	free(lookup);
	free(drain);
	direct_free(d);
}
END_TEST

START_TEST(a_lookup_alone_completes_twice)
{
#define CHECK_COMPLETIONS(name, value, kinds, flags, words) \
	ck_assert_uint_eq(embeng_completions(value), (value) == EMBENG_OP_LOOKUP ? 2 : 1);
	EMBENG_OPCODE_TABLE(CHECK_COMPLETIONS)
	ck_assert_uint_eq(EMBENG_COMPLETIONS_MAX, 2);
}
END_TEST

START_TEST(a_completion_ring_holds_what_its_queue_takes)
{
	ck_assert_uint_eq(embeng_completions_least(EMBENG_QUEUE_INPUT, 1), 2);
	ck_assert_uint_eq(embeng_completions_least(EMBENG_QUEUE_INPUT, 0x80000000u), 1ull << 32);
	ck_assert_uint_eq(embeng_completions_least(EMBENG_QUEUE_INFERENCE, 64), 2);
	ck_assert_uint_eq(embeng_completions_least(EMBENG_QUEUE_GRADIENT, 64), 1);
	ck_assert_uint_eq(embeng_completions_least(EMBENG_QUEUE_TRANSFER, 64), 1);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_add_loop_test(tcase, the_rules_answer, 0, STEP_CASES);
	tcase_add_loop_test(tcase, the_engine_answers, 0, STEP_CASES);
	tcase_add_test(tcase, one_command_of_a_replica_is_accepted_at_a_time);
	tcase_add_test(tcase, a_lookup_alone_completes_twice);
	tcase_add_test(tcase, a_completion_ring_holds_what_its_queue_takes);
}

int main(void)
{
	return suite_main("step_rules", add_tests);
}
