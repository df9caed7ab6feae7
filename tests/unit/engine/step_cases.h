/* SPDX-License-Identifier: MIT */
/*
 * Cases of the rules of steps (uapi/embeng_steps.h): how far the replicas have come, a command, and
 * what becomes of it. The rules themselves, the engine and the driver are run on all of them.
 */
#ifndef EMBENG_TESTS_STEP_CASES_H
#define EMBENG_TESTS_STEP_CASES_H

#include "engine/types.h"
#include "embeng_steps.h"

#define STEP_CASE_REPLICAS 3

/* The two times at which the engine asks about a command. */
enum step_phase { STEP_ADMIT, STEP_RUN };

/*
 * struct step_case - one case
 * @phase: ADMIT: the command is not in @counts yet. RUN: it is
 * @opcode: EMBENG_OP_ROWS_READ stands for all commands that use embeng_cmd.after
 * @step: embeng_cmd.step of the command, or its embeng_cmd.after
 * @want: answer of the rules and of the engine
 * @ends: answer of the driver: the command comes to an end without anything more from the program,
 *	when all that was accepted has been submitted to it
 */
struct step_case {
	const char *name;
	u32 pipelining, depth, replica_count;
	u64 applied;
	struct embeng_replica_steps counts[STEP_CASE_REPLICAS]; /* accepted, looked, updated */
	enum step_phase phase;
	u16 opcode;
	u32 replica;
	u64 step;
	struct embeng_step_answer want;
	bool ends;
};

#define WANT_READY {EMBENG_STEP_READY, 0, 0, 0}
#define WANT_WAIT(what, replica, step) {EMBENG_STEP_WAITS, EMBENG_WAIT_##what, replica, step}
#define WANT_REFUSED(status, step) {EMBENG_STEP_REFUSED, EMBENG_STATUS_##status, 0, step}

/* clang-format off */
static const struct step_case step_cases[] = {
	/* Taking a LOOKUP: its order, then the step depth. */
	{ "first lookup", 0, 2, 2, 0, { { 0, 0, 0 }, { 0, 0, 0 } },
	  STEP_ADMIT, EMBENG_OP_LOOKUP, 0, 1, WANT_READY, true },
	{ "lookup of step 0", 0, 2, 1, 0, { { 0, 0, 0 } },
	  STEP_ADMIT, EMBENG_OP_LOOKUP, 0, 0, WANT_REFUSED(STEP_ORDER, 1), true },
	{ "lookup that leaves a step out", 0, 2, 2, 0, { { 0, 0, 0 }, { 0, 0, 0 } },
	  STEP_ADMIT, EMBENG_OP_LOOKUP, 0, 2, WANT_REFUSED(STEP_ORDER, 1), true },
	{ "lookup given twice", 0, 2, 2, 0, { { 1, 1, 0 }, { 0, 0, 0 } },
	  STEP_ADMIT, EMBENG_OP_LOOKUP, 0, 1, WANT_REFUSED(STEP_ORDER, 2), true },
	{ "lookup within the depth", 0, 2, 1, 5, { { 6, 6, 5 } },
	  STEP_ADMIT, EMBENG_OP_LOOKUP, 0, 7, WANT_READY, false },
	{ "lookup beyond the depth", 0, 2, 1, 5, { { 7, 6, 5 } },
	  STEP_ADMIT, EMBENG_OP_LOOKUP, 0, 8, WANT_WAIT(UPDATE, 0, 6), false },
	{ "lookup beyond the depth, another replica has not begun", 0, 2, 2, 0,
	  { { 2, 1, 1 }, { 0, 0, 0 } },
	  STEP_ADMIT, EMBENG_OP_LOOKUP, 0, 3, WANT_WAIT(LOOKUP, 1, 1), false },
	{ "pipelined lookup beyond the depth, another replica holds the update", 1, 2, 2, 0,
	  { { 2, 2, 1 }, { 1, 1, 1 } },
	  STEP_ADMIT, EMBENG_OP_LOOKUP, 0, 3, WANT_WAIT(LOOKUP, 1, 2), false },

	/* Running a LOOKUP: it sees the update before it, with pipelining the one before that. */
	{ "lookup without an update", 0, 2, 2, 0, { { 2, 1, 0 }, { 1, 1, 0 } },
	  STEP_RUN, EMBENG_OP_LOOKUP, 0, 2, WANT_WAIT(UPDATE, 0, 1), false },
	{ "lookup with the update of one replica", 0, 2, 2, 0, { { 2, 1, 1 }, { 1, 1, 0 } },
	  STEP_RUN, EMBENG_OP_LOOKUP, 0, 2, WANT_WAIT(UPDATE, 1, 1), false },
	{ "lookup with all updates, not applied", 0, 2, 2, 0, { { 2, 1, 1 }, { 1, 1, 1 } },
	  STEP_RUN, EMBENG_OP_LOOKUP, 0, 2, WANT_WAIT(NOTHING, 0, 0), true },
	{ "lookup with the update applied", 0, 2, 2, 1, { { 2, 1, 1 }, { 1, 1, 1 } },
	  STEP_RUN, EMBENG_OP_LOOKUP, 0, 2, WANT_READY, true },
	{ "lookup behind another of its replica", 0, 2, 1, 0, { { 2, 0, 0 } },
	  STEP_RUN, EMBENG_OP_LOOKUP, 0, 2, WANT_WAIT(NOTHING, 0, 0), false },
	{ "pipelined lookup without an update", 1, 2, 2, 0, { { 2, 1, 0 }, { 1, 1, 0 } },
	  STEP_RUN, EMBENG_OP_LOOKUP, 0, 2, WANT_READY, true },
	{ "pipelined lookup two ahead, an update is missing", 1, 3, 2, 0,
	  { { 3, 2, 1 }, { 2, 2, 0 } },
	  STEP_RUN, EMBENG_OP_LOOKUP, 0, 3, WANT_WAIT(UPDATE, 1, 1), false },
	{ "pipelined lookup two ahead, a lookup is missing", 1, 3, 2, 0,
	  { { 3, 2, 1 }, { 1, 1, 1 } },
	  STEP_RUN, EMBENG_OP_LOOKUP, 0, 3, WANT_WAIT(LOOKUP, 1, 2), false },
	{ "pipelined lookup two ahead, nothing is missing", 1, 3, 2, 0,
	  { { 3, 2, 1 }, { 2, 2, 1 } },
	  STEP_RUN, EMBENG_OP_LOOKUP, 0, 3, WANT_WAIT(NOTHING, 0, 0), true },

	/* Taking an UPDATE: its own LOOKUP is done, and no other UPDATE was given. */
	{ "update of a step that was looked up", 0, 2, 2, 0, { { 1, 1, 0 }, { 1, 1, 0 } },
	  STEP_ADMIT, EMBENG_OP_UPDATE, 0, 1, WANT_READY, false },
	{ "update before its lookup is done", 0, 2, 1, 0, { { 1, 0, 0 } },
	  STEP_ADMIT, EMBENG_OP_UPDATE, 0, 1, WANT_REFUSED(STEP_ORDER, 1), true },
	{ "update that leaves a step out", 1, 2, 1, 0, { { 2, 2, 0 } },
	  STEP_ADMIT, EMBENG_OP_UPDATE, 0, 2, WANT_REFUSED(STEP_ORDER, 1), true },
	{ "update given twice", 0, 2, 1, 1, { { 2, 2, 1 } },
	  STEP_ADMIT, EMBENG_OP_UPDATE, 0, 1, WANT_REFUSED(STEP_ORDER, 2), true },

	/* Running an UPDATE: all replicas gave theirs, with pipelining the next LOOKUPs too. */
	{ "update of one replica of two", 0, 2, 2, 0, { { 1, 1, 1 }, { 1, 1, 0 } },
	  STEP_RUN, EMBENG_OP_UPDATE, 0, 1, WANT_WAIT(UPDATE, 1, 1), false },
	{ "update whose last replica has not looked up", 0, 2, 3, 0,
	  { { 1, 1, 1 }, { 1, 1, 1 }, { 0, 0, 0 } },
	  STEP_RUN, EMBENG_OP_UPDATE, 1, 1, WANT_WAIT(LOOKUP, 2, 1), false },
	{ "update of all replicas", 0, 2, 2, 0, { { 1, 1, 1 }, { 1, 1, 1 } },
	  STEP_RUN, EMBENG_OP_UPDATE, 0, 1, WANT_READY, true },
	{ "pipelined update before the next lookup", 1, 2, 1, 0, { { 1, 1, 1 } },
	  STEP_RUN, EMBENG_OP_UPDATE, 0, 1, WANT_WAIT(LOOKUP, 0, 2), false },
	{ "pipelined update, the next lookup has not run", 1, 2, 1, 0, { { 2, 1, 1 } },
	  STEP_RUN, EMBENG_OP_UPDATE, 0, 1, WANT_WAIT(NOTHING, 0, 0), true },
	{ "pipelined update after the next lookup", 1, 2, 1, 0, { { 2, 2, 1 } },
	  STEP_RUN, EMBENG_OP_UPDATE, 0, 1, WANT_READY, true },
	{ "pipelined update behind another step", 1, 4, 1, 0, { { 3, 3, 2 } },
	  STEP_RUN, EMBENG_OP_UPDATE, 0, 2, WANT_WAIT(NOTHING, 0, 0), true },

	/* A DRAIN: with pipelining, nobody may be alone in the step behind it. */
	{ "drain with nothing to do", 0, 2, 2, 0, { { 0, 0, 0 }, { 0, 0, 0 } },
	  STEP_RUN, EMBENG_OP_DRAIN, 0, 1, WANT_READY, true },
	{ "drain of a complete step", 0, 2, 2, 0, { { 1, 1, 1 }, { 1, 1, 1 } },
	  STEP_RUN, EMBENG_OP_DRAIN, 0, 1, WANT_READY, true },
	{ "drain, one replica has begun", 0, 2, 2, 0, { { 1, 1, 0 }, { 0, 0, 0 } },
	  STEP_RUN, EMBENG_OP_DRAIN, 0, 1, WANT_READY, true },
	{ "pipelined drain, one replica has begun", 1, 2, 2, 0, { { 1, 1, 0 }, { 0, 0, 0 } },
	  STEP_RUN, EMBENG_OP_DRAIN, 0, 1, WANT_WAIT(LOOKUP, 1, 1), false },
	{ "pipelined drain, all replicas have begun", 1, 2, 2, 0, { { 1, 1, 0 }, { 1, 1, 0 } },
	  STEP_RUN, EMBENG_OP_DRAIN, 0, 1, WANT_READY, true },
	{ "pipelined drain, a lookup has not run", 1, 2, 2, 0, { { 1, 0, 0 }, { 1, 1, 0 } },
	  STEP_RUN, EMBENG_OP_DRAIN, 0, 1, WANT_WAIT(UPDATE, 0, 1), true },
	{ "pipelined drain of an earlier step than the last", 1, 4, 2, 0,
	  { { 3, 3, 2 }, { 2, 2, 2 } },
	  STEP_RUN, EMBENG_OP_DRAIN, 0, 1, WANT_READY, true },
	{ "pipelined drain of all steps", 1, 4, 2, 0, { { 3, 3, 2 }, { 2, 2, 2 } },
	  STEP_RUN, EMBENG_OP_DRAIN, 0, U64_MAX, WANT_WAIT(LOOKUP, 1, 3), false },

	/* Commands after a step see its tables exactly. */
	{ "after no step", 0, 2, 1, 0, { { 1, 1, 0 } },
	  STEP_RUN, EMBENG_OP_ROWS_READ, 0, 0, WANT_READY, true },
	{ "after a step that nobody began", 0, 2, 1, 0, { { 0, 0, 0 } },
	  STEP_RUN, EMBENG_OP_ROWS_READ, 0, 1, WANT_WAIT(LOOKUP, 0, 1), false },
	{ "after a step that is being applied", 0, 2, 1, 0, { { 1, 1, 1 } },
	  STEP_RUN, EMBENG_OP_ROWS_READ, 0, 1, WANT_WAIT(NOTHING, 0, 0), true },
	{ "after a step that pipelining holds", 1, 2, 1, 0, { { 1, 1, 1 } },
	  STEP_RUN, EMBENG_OP_ROWS_READ, 0, 1, WANT_WAIT(LOOKUP, 0, 2), false },
	{ "after a step that is applied", 0, 2, 1, 1, { { 1, 1, 1 } },
	  STEP_RUN, EMBENG_OP_ROWS_READ, 0, 1, WANT_READY, true },
	{ "after a step that has passed", 0, 2, 1, 2, { { 2, 2, 2 } },
	  STEP_RUN, EMBENG_OP_ROWS_READ, 0, 1, WANT_REFUSED(STEP_PASSED, 2), true },
};
/* clang-format on */

#define STEP_CASES (int)(sizeof(step_cases) / sizeof(step_cases[0]))

/* The kind of queue that the command of a case comes from. */
static inline u32 step_case_kind(const struct step_case *c)
{
	if (c->opcode == EMBENG_OP_LOOKUP)
		return EMBENG_QUEUE_INPUT;
	return c->opcode == EMBENG_OP_UPDATE ? EMBENG_QUEUE_GRADIENT : EMBENG_QUEUE_TRANSFER;
}

/* The command of a case, as far as steps are concerned. */
static inline struct embeng_cmd step_case_command(const struct step_case *c)
{
	struct embeng_cmd cmd = {.opcode = c->opcode};

	if (c->opcode == EMBENG_OP_ROWS_READ)
		cmd.after = c->step;
	else
		cmd.step = c->step;
	return cmd;
}

#endif
