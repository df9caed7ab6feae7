/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * The rules of training steps as functions: which command waits for which, and how many
 * completions a command posts. "DOC: Steps" in embeng_engine.h says the same in words.
 *
 * DOC: One law, three readers
 *
 * The engine decides by these rules what it takes from a ring and what it runs. The driver decides
 * by them whether a command can end without its program doing anything more. The library decides
 * by them how far a program may run ahead, and names the command that a step still needs.
 *
 * Each of them counts what it sees (&struct embeng_steps) and asks. The driver and the library see
 * commands only when they are submitted. They count a submitted LOOKUP as one that has read the
 * tables, since nothing but the engine's own work lies in between.
 *
 * All functions are pure: they read the counts that they are given and change nothing.
 *
 * The interface is unstable until the driver has been used with it for some time.
 */
#ifndef _EMBENG_STEPS_H_
#define _EMBENG_STEPS_H_

#include "embeng_engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The most completions that one command posts. */
#define EMBENG_COMPLETIONS_MAX 2

/**
 * embeng_completions() - tell how many completions a command posts
 * @opcode: enum embeng_opcode
 *
 * Return: 2 for a LOOKUP, which posts ACCEPTED and DONE, and 1 for all others. A LOOKUP that is
 * refused posts one less.
 */
static inline __u32 embeng_completions(__u16 opcode)
{
	return opcode == EMBENG_OP_LOOKUP ? EMBENG_COMPLETIONS_MAX : 1;
}

/**
 * embeng_completions_least() - tell how large the completion ring of a queue must be
 * @kind: enum embeng_queue_kind
 * @sq_entries: entries of its submission ring
 *
 * A command is only taken when there is room for all its completions. A queue for training must
 * take as many LOOKUPs as it has room for, since none of them is done before another queue moves.
 *
 * Return: the least number of entries.
 */
static inline __u64 embeng_completions_least(__u32 kind, __u32 sq_entries)
{
	if (kind == EMBENG_QUEUE_INPUT)
		return (__u64)EMBENG_COMPLETIONS_MAX * sq_entries;
	return kind == EMBENG_QUEUE_INFERENCE ? EMBENG_COMPLETIONS_MAX : 1;
}

/**
 * struct embeng_replica_steps - how far a replica has come; 0 is before its first step
 * @accepted: last step whose LOOKUP was accepted
 * @looked: last step whose LOOKUP has read the tables
 * @updated: last step whose UPDATE was accepted
 */
struct embeng_replica_steps {
	__u64 accepted;
	__u64 looked;
	__u64 updated;
};

/**
 * struct embeng_steps - how far a model has come
 * @replicas: one for each replica
 * @replica_count: number of @replicas
 * @depth: how many steps may be ahead of @applied
 * @applied: last step whose update is in the tables, 0: none
 * @pipelining: not 0: an update is held back until the next step was looked up
 */
struct embeng_steps {
	const struct embeng_replica_steps *replicas;
	__u32 replica_count;
	__u32 depth;
	__u64 applied;
	__u32 pipelining;
};

enum embeng_step_verdict {
	EMBENG_STEP_READY = 0,
	EMBENG_STEP_WAITS = 1,
	EMBENG_STEP_REFUSED = 2,
};

/**
 * struct embeng_step_answer - the answer of the rules about a command
 * @verdict: enum embeng_step_verdict
 * @what: WAITS: enum embeng_wait, where NOTHING means that no command of the program is missing.
 *	REFUSED: enum embeng_status. Otherwise 0
 * @replica: WAITS: the replica whose command is missing. Otherwise 0
 * @step: WAITS: the step of the missing command. REFUSED: the step that would have been right.
 *	Otherwise 0
 */
struct embeng_step_answer {
	__u32 verdict;
	__u32 what;
	__u32 replica;
	__u64 step;
};

static inline struct embeng_step_answer embeng_step_answer(__u32 verdict, __u32 what,
							   __u32 replica, __u64 step)
{
	struct embeng_step_answer answer;

	answer.verdict = verdict;
	answer.what = what;
	answer.replica = replica;
	answer.step = step;
	return answer;
}

static inline struct embeng_step_answer embeng_step_ready(void)
{
	return embeng_step_answer(EMBENG_STEP_READY, 0, 0, 0);
}

/**
 * embeng_steps_follows() - ask whether a step comes directly after the last one
 * @last: last step of the replica, of the same kind of command
 * @step: step of the next command
 *
 * Return: 1 if it does; otherwise the command is refused.
 */
static inline int embeng_steps_follows(__u64 last, __u64 step)
{
	return step == last + 1;
}

/**
 * embeng_steps_complete() - find the last step of which all replicas gave an UPDATE
 * @steps: counts
 * @most: no step beyond this one is asked for
 *
 * Return: the step, or @most.
 */
static inline __u64 embeng_steps_complete(const struct embeng_steps *steps, __u64 most)
{
	__u32 r;

	for (r = 0; r < steps->replica_count; r++) {
		if (steps->replicas[r].updated < most)
			most = steps->replicas[r].updated;
	}
	return most;
}

/**
 * embeng_steps_looked() - find the last step that all replicas have looked up
 * @steps: counts
 *
 * Return: the step.
 */
static inline __u64 embeng_steps_looked(const struct embeng_steps *steps)
{
	__u64 least = ~(__u64)0;
	__u32 r;

	for (r = 0; r < steps->replica_count; r++) {
		if (steps->replicas[r].looked < least)
			least = steps->replicas[r].looked;
	}
	return least;
}

/**
 * embeng_steps_missing() - find the command without which the next step cannot be applied
 * @steps: counts
 *
 * Return: WAITS, for the first replica that has not given its LOOKUP of the step, or else its
 * UPDATE, or else with pipelining the LOOKUP of the step behind it. The wait is for NOTHING if all
 * of them were given.
 */
static inline struct embeng_step_answer embeng_steps_missing(const struct embeng_steps *steps)
{
	__u64 next = steps->applied + 1;
	__u32 r;

	for (r = 0; r < steps->replica_count; r++) {
		if (steps->replicas[r].accepted < next)
			return embeng_step_answer(EMBENG_STEP_WAITS, EMBENG_WAIT_LOOKUP, r, next);
	}
	for (r = 0; r < steps->replica_count; r++) {
		if (steps->replicas[r].updated < next)
			return embeng_step_answer(EMBENG_STEP_WAITS, EMBENG_WAIT_UPDATE, r, next);
	}
	for (r = 0; steps->pipelining && r < steps->replica_count; r++) {
		if (steps->replicas[r].accepted < next + 1)
			return embeng_step_answer(EMBENG_STEP_WAITS, EMBENG_WAIT_LOOKUP, r,
						  next + 1);
	}
	return embeng_step_answer(EMBENG_STEP_WAITS, EMBENG_WAIT_NOTHING, 0, 0);
}

/**
 * embeng_steps_have_room() - ask whether a step is within the step depth
 * @steps: counts
 * @step: step of a LOOKUP
 *
 * Return: 1 if it is; otherwise its LOOKUP stays in the ring.
 */
static inline int embeng_steps_have_room(const struct embeng_steps *steps, __u64 step)
{
	return step <= steps->applied + steps->depth;
}

/**
 * embeng_steps_lookup_after() - find the update that the LOOKUP of a step must see, and no later
 * @steps: counts
 * @step: step of a LOOKUP
 *
 * Return: the step of that update, or 0 for the tables before any update.
 */
static inline __u64 embeng_steps_lookup_after(const struct embeng_steps *steps, __u64 step)
{
	__u64 lag = steps->pipelining ? 2 : 1;

	return step > lag ? step - lag : 0;
}

/**
 * embeng_steps_can_apply() - ask whether all that the update of a step needs is there
 * @steps: counts
 * @step: step of the update
 *
 * The updates of the steps before it need less.
 *
 * Return: 1 if all replicas gave an UPDATE and, with pipelining, have looked up the next step.
 */
static inline int embeng_steps_can_apply(const struct embeng_steps *steps, __u64 step)
{
	if (embeng_steps_complete(steps, step) < step)
		return 0;
	return !steps->pipelining || embeng_steps_looked(steps) > step;
}

/**
 * embeng_steps_drain_lookup() - find the lookup that all replicas must make before a DRAIN
 * @steps: counts
 * @step: &embeng_cmd.step of the DRAIN
 *
 * With pipelining, all replicas must have read the same tables in a step. So once one of them has
 * begun the step behind the last one that the DRAIN applies, the DRAIN waits for the others.
 *
 * Return: the step of that lookup, or 0 if there is none to wait for.
 */
static inline __u64 embeng_steps_drain_lookup(const struct embeng_steps *steps, __u64 step)
{
	__u64 next = embeng_steps_complete(steps, step) + 1;
	__u32 r;

	for (r = 0; steps->pipelining && r < steps->replica_count; r++) {
		if (steps->replicas[r].accepted >= next)
			return next;
	}
	return 0;
}

/**
 * embeng_steps_admit_lookup() - judge whether a LOOKUP for training may be taken from its ring
 * @steps: counts
 * @replica: replica of its queue
 * @step: its &embeng_cmd.step
 */
static inline struct embeng_step_answer
embeng_steps_admit_lookup(const struct embeng_steps *steps, __u32 replica, __u64 step)
{
	__u64 accepted = steps->replicas[replica].accepted;

	if (!embeng_steps_follows(accepted, step))
		return embeng_step_answer(EMBENG_STEP_REFUSED, EMBENG_STATUS_STEP_ORDER, 0,
					  accepted + 1);
	if (!embeng_steps_have_room(steps, step))
		return embeng_steps_missing(steps);
	return embeng_step_ready();
}

/**
 * embeng_steps_lookup_ready() - judge whether an accepted LOOKUP for training may run
 * @steps: counts
 * @replica: replica of its queue
 * @step: its &embeng_cmd.step
 */
static inline struct embeng_step_answer
embeng_steps_lookup_ready(const struct embeng_steps *steps, __u32 replica, __u64 step)
{
	if (!embeng_steps_follows(steps->replicas[replica].looked, step))
		return embeng_step_answer(EMBENG_STEP_WAITS, EMBENG_WAIT_NOTHING, 0, 0);
	if (steps->applied < embeng_steps_lookup_after(steps, step))
		return embeng_steps_missing(steps);
	return embeng_step_ready();
}

/**
 * embeng_steps_ids_ready() - judge whether an accepted LOOKUP with EMBENG_CMD_IDS_ONLY may run
 * @steps: counts
 * @replica: replica of its queue
 * @step: its &embeng_cmd.step
 *
 * It reads no table, so only the LOOKUPs of its replica come before it.
 */
static inline struct embeng_step_answer
embeng_steps_ids_ready(const struct embeng_steps *steps, __u32 replica, __u64 step)
{
	if (!embeng_steps_follows(steps->replicas[replica].looked, step))
		return embeng_step_answer(EMBENG_STEP_WAITS, EMBENG_WAIT_NOTHING, 0, 0);
	return embeng_step_ready();
}

/**
 * embeng_steps_admit_update() - judge whether an UPDATE may be taken from its ring
 * @steps: counts
 * @replica: replica of its queue
 * @step: its &embeng_cmd.step
 */
static inline struct embeng_step_answer
embeng_steps_admit_update(const struct embeng_steps *steps, __u32 replica, __u64 step)
{
	const struct embeng_replica_steps *own = &steps->replicas[replica];

	if (!embeng_steps_follows(own->updated, step) || step > own->looked)
		return embeng_step_answer(EMBENG_STEP_REFUSED, EMBENG_STATUS_STEP_ORDER, 0,
					  own->updated + 1);
	return embeng_step_ready();
}

/**
 * embeng_steps_update_ready() - judge whether an accepted UPDATE may run, and apply its step
 * @steps: counts
 * @step: its &embeng_cmd.step, beyond @steps->applied
 */
static inline struct embeng_step_answer
embeng_steps_update_ready(const struct embeng_steps *steps, __u64 step)
{
	if (steps->applied + 1 < step || !embeng_steps_can_apply(steps, step))
		return embeng_steps_missing(steps);
	return embeng_step_ready();
}

/**
 * embeng_steps_drain_ready() - judge whether a DRAIN may run
 * @steps: counts
 * @step: its &embeng_cmd.step
 *
 * Lookups of the step behind the last complete one read before the DRAIN, or not at all.
 */
static inline struct embeng_step_answer
embeng_steps_drain_ready(const struct embeng_steps *steps, __u64 step)
{
	__u64 next = embeng_steps_complete(steps, step) + 1;
	__u64 lookup = embeng_steps_drain_lookup(steps, step);
	__u32 r;

	for (r = 0; r < steps->replica_count; r++) {
		if (steps->replicas[r].accepted < lookup)
			return embeng_step_answer(EMBENG_STEP_WAITS, EMBENG_WAIT_LOOKUP, r, lookup);
	}
	for (r = 0; r < steps->replica_count; r++) {
		if (steps->replicas[r].accepted >= next && steps->replicas[r].looked < next)
			return embeng_steps_missing(steps);
	}
	return embeng_step_ready();
}

/**
 * embeng_steps_after_ready() - judge whether a command with &embeng_cmd.after may run
 * @steps: counts
 * @after: its &embeng_cmd.after
 */
static inline struct embeng_step_answer
embeng_steps_after_ready(const struct embeng_steps *steps, __u64 after)
{
	if (steps->applied < after)
		return embeng_steps_missing(steps);
	if (steps->applied > after)
		return embeng_step_answer(EMBENG_STEP_REFUSED, EMBENG_STATUS_STEP_PASSED, 0,
					  steps->applied);
	return embeng_step_ready();
}

#ifdef __cplusplus
}
#endif

#endif
