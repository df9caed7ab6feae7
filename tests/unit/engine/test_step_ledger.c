// SPDX-License-Identifier: MIT
/*
 * The cases of step_cases.h, asked of the driver's ledger, which is compiled in: can a command end
 * with what has been submitted? The ledger's own tests are in kmod/tests/fence_steps_test.c.
 */
#include <check.h>

#include "step_cases.h"
#include "suite.h"

#include "../../../kmod/fence_steps.c"

/* The driver sees commands when they are submitted, so it takes all of them for done. */
static struct embeng_ledger open_ledger(const struct step_case *c)
{
	const struct embeng_record_engine model = {
		.replicas = c->replica_count,
		.flags = c->pipelining ? EMBENG_ENGINE_PIPELINING : 0,
	};
	struct embeng_ledger ledger = {.mapped = false};

	embeng_ledger_load(&ledger, &model);
	for (u32 r = 0; r < c->replica_count; r++) {
		for (u64 step = 1; step <= c->counts[r].accepted; step++) {
			struct embeng_cmd cmd = {.opcode = EMBENG_OP_LOOKUP, .step = step};

			embeng_ledger_add(&ledger, EMBENG_QUEUE_INPUT, r, &cmd);
		}
		for (u64 step = 1; step <= c->counts[r].updated; step++) {
			struct embeng_cmd cmd = {.opcode = EMBENG_OP_UPDATE, .step = step};

			embeng_ledger_add(&ledger, EMBENG_QUEUE_GRADIENT, r, &cmd);
		}
	}
	for (u64 step = 1; step <= c->applied; step++)
		embeng_ledger_done(&ledger, EMBENG_QUEUE_GRADIENT, 0, step, EMBENG_STATUS_OK);
	return ledger;
}

START_TEST(the_driver_answers)
{
	const struct step_case *c = &step_cases[_i];
	const struct embeng_cmd cmd = step_case_command(c);
	struct embeng_ledger ledger = open_ledger(c);
	u32 kind = step_case_kind(c);
	struct embeng_need need = {0};

	for (u32 r = 0; r < c->replica_count; r++) {
		ck_assert_uint_eq(ledger.submitted[r].accepted, c->counts[r].accepted);
		ck_assert_uint_eq(ledger.submitted[r].updated, c->counts[r].updated);
	}
	ck_assert_uint_eq(ledger.applied, c->applied);
	if (c->phase == STEP_ADMIT)
		embeng_ledger_add(&ledger, kind, c->replica, &cmd);
	embeng_ledger_need(&ledger, kind, c->replica, &cmd, &need);
	ck_assert_msg(embeng_ledger_met(&ledger, &need) == c->ends, "%s: needs %llu, %llu", c->name,
		      need.applied, need.looked);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_add_loop_test(tcase, the_driver_answers, 0, STEP_CASES);
}

int main(void)
{
	return suite_main("step_ledger", add_tests);
}
