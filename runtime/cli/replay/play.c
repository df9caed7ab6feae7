// SPDX-License-Identifier: MIT
/*
 * Plays the entries of a recording in their order. The order in which commands are accepted and run is
 * the recorded one: each is submitted when its COMMAND entry comes, and is let run when its RUN entry
 * comes, so that nothing depends on time or on threads. Each completion is compared when its DONE
 * entry comes; difference.c does that.
 *
 * A command that was stopped on its way (its completion has ABORTED or HUNG) is not run: it waits
 * here, and the admin command or reset that stopped it ends it here, too.
 *
 * The thread that calls play() does everything; on_seen() comes from the engine, with its lock held.
 */
#include "play.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../decode/words.h"
#include "difference.h"
#include "twin.h"
#include "where.h"

/* A NOP may wait for 10 seconds, and a machine that is busy takes longer. */
#define RUN_PATIENCE_MS 30000u
/* A command that the device here has not ended by now will not end. */
#define END_PATIENCE_MS 1000u
/* A RUN is looked for from its DONE so far: other contexts' commands stand between them. */
#define AHEAD_MOST 65536u

struct play {
	const struct recording_entry *entries;
	size_t count, at;
	struct twin *twin;
	struct outcomes outcomes;
	struct play_result *result;
	bool *early; /* by entry: a fault, region or operand that was played before its turn */
	uint32_t admin_status, command_status, boot_error;
	uint32_t run_queue, run_index;
	bool run_done;
	uint32_t recorded_cores;
	uint64_t open; /* commands that were submitted and have not completed */
};

static void on_seen(void *arg, uint16_t type, const void *fixed, const void *bytes)
{
	const struct embeng_recording_done *done = fixed;
	struct play *p = arg;

	switch (type) {
	case EMBENG_RECORDING_DONE:
		outcome_add(&p->outcomes, done, bytes);
		if (done->queue == p->run_queue && done->index == p->run_index)
			p->run_done = true;
		break;
	case EMBENG_RECORDING_COMMAND:
		p->command_status = ((const struct embeng_recording_command *)fixed)->status;
		break;
	case EMBENG_RECORDING_ADMIN:
		p->admin_status = ((const struct embeng_recording_admin *)fixed)->status;
		break;
	case EMBENG_RECORDING_BOOTED:
		p->boot_error = ((const struct embeng_recording_booted *)fixed)->error;
		break;
	case EMBENG_RECORDING_FAULT:
		p->result->injected++;
		break;
	default:
		break;
	}
}

/* Return: false, since the replay ends. */
static bool end_play(struct play *p)
{
	snprintf(p->result->impossible, sizeof(p->result->impossible),
		 "entry %" PRIu32 " at byte %" PRIu64 ": %s", p->entries[p->at].number,
		 p->entries[p->at].offset, twin_problem(p->twin));
	return false;
}

/* -- faults -------------------------------------------------------------- */

/*
 * These are not injected: a queue that takes nothing more has no more entries, a region that was not
 * mapped has none, and a heartbeat changes no result.
 */
static bool is_injected(uint32_t fault)
{
	return fault != 3 && fault != 4 && fault != 9;
}

static bool arm_entry(struct play *p, size_t i)
{
	const struct embeng_recording_fault *fault = p->entries[i].fixed;

	if (p->early[i] || !is_injected(fault->fault))
		return true;
	p->early[i] = true;
	return twin_arm(p->twin, fault) ? end_play(p) : true;
}

/* Faults that stand behind entry @i, up to the next thing that the program or the driver did. */
static bool arm_behind(struct play *p, size_t i)
{
	bool goes_on = true;

	for (i++; goes_on && i < p->count &&
		  (p->entries[i].type == EMBENG_RECORDING_FAULT ||
		   p->entries[i].type == EMBENG_RECORDING_DONE);
	     i++) {
		if (p->entries[i].type == EMBENG_RECORDING_FAULT)
			goes_on = arm_entry(p, i);
	}
	return goes_on;
}

/* Faults of one queue between two entries, and those directly behind the second. */
static bool arm_between(struct play *p, size_t from, size_t to, uint32_t queue)
{
	bool goes_on = true;

	for (size_t i = from + 1; goes_on && i < to; i++) {
		const struct embeng_recording_fault *fault = p->entries[i].fixed;

		if (p->entries[i].type == EMBENG_RECORDING_FAULT && fault->target == queue)
			goes_on = arm_entry(p, i);
	}
	for (size_t i = to + 1;
	     goes_on && i < p->count && p->entries[i].type == EMBENG_RECORDING_FAULT; i++)
		goes_on = arm_entry(p, i);
	return goes_on;
}

/* -- memory -------------------------------------------------------------- */

static bool play_region(struct play *p, size_t i)
{
	if (p->early[i])
		return true;
	p->early[i] = true;
	return twin_region(p->twin, p->entries[i].fixed) ? end_play(p) : true;
}

static bool play_memory(struct play *p, size_t i)
{
	if (p->early[i])
		return true;
	p->early[i] = true;
	return twin_memory(p->twin, p->entries[i].fixed, p->entries[i].bytes) ? end_play(p) : true;
}

/* -- commands ------------------------------------------------------------ */

/* The DONE of a command from the current entry on, or @count. */
static size_t find_done(const struct play *p, uint32_t queue, uint32_t index)
{
	size_t end = p->count - p->at > AHEAD_MOST ? p->at + AHEAD_MOST : p->count;

	for (size_t i = p->at; i < end; i++) {
		const struct embeng_recording_done *done = p->entries[i].fixed;

		if (p->entries[i].type == EMBENG_RECORDING_DONE && done->queue == queue &&
		    done->index == index)
			return i;
	}
	return p->count;
}

static bool was_stopped(const struct play *p, size_t done)
{
	uint32_t status;

	if (done == p->count)
		return false;
	status = ((const struct embeng_recording_done *)p->entries[done].fixed)->status;
	return status == EMBENG_STATUS_ABORTED || status == EMBENG_STATUS_HUNG;
}

static bool play_command(struct play *p)
{
	const struct embeng_recording_command *c = p->entries[p->at].fixed;
	enum twin_result result;
	char recorded[PLAY_WORDS];

	if (!arm_behind(p, p->at))
		return false;
	p->result->commands++;
	p->open++;
	snprintf(recorded, sizeof(recorded), "%s", word_or_unknown(word_status(c->status)));
	result = twin_submit(p->twin, c);
	if (result == TWIN_IMPOSSIBLE)
		return end_play(p);
	if (result == TWIN_OK && p->command_status == c->status)
		return true;
	where_command(p->entries, p->at, p->result->difference.command, PLAY_WORDS);
	if (result)
		return difference_note(p->result, &p->entries[p->at],
				       "the answer to the submitted command", recorded,
				       "the command is not accepted");
	return difference_note(p->result, &p->entries[p->at], "the status of the command's checks",
			       recorded, "%s", word_or_unknown(word_status(p->command_status)));
}

static bool run_until_done(struct play *p, uint32_t queue, uint32_t index, uint32_t patience_ms,
			   enum twin_result *result)
{
	p->run_queue = queue;
	p->run_index = index;
	p->run_done = outcome_find(&p->outcomes, queue, index);
	*result = p->run_done ? TWIN_OK
			      : twin_run(p->twin, queue, index, &p->run_done, patience_ms);
	return *result == TWIN_IMPOSSIBLE ? end_play(p) : true;
}

/* Plays the operands that the command asked for while it ran: they stand behind its RUN. */
static bool bring_operands(struct play *p, size_t done, const struct embeng_recording_run *run)
{
	size_t end = p->count - p->at > AHEAD_MOST ? p->at + AHEAD_MOST : p->count;
	bool goes_on = true;

	for (size_t i = p->at + 1; goes_on && i < done && i < end; i++) {
		const struct embeng_recording_region *region = p->entries[i].fixed;
		const struct embeng_recording_memory *memory = p->entries[i].fixed;

		if (p->entries[i].type == EMBENG_RECORDING_POWER_OFF)
			break;
		if (p->entries[i].type == EMBENG_RECORDING_REGION &&
		    region->context == run->context)
			goes_on = play_region(p, i);
		if (p->entries[i].type == EMBENG_RECORDING_MEMORY &&
		    memory->context == run->context && memory->queue == run->queue)
			goes_on = play_memory(p, i);
	}
	return goes_on;
}

static bool play_run(struct play *p)
{
	const struct embeng_recording_run *run = p->entries[p->at].fixed;
	size_t done = find_done(p, run->queue, run->index);
	enum twin_result result;

	if (was_stopped(p, done))
		return true;
	if (!bring_operands(p, done, run))
		return false;
	if (done < p->count && !arm_between(p, p->at, done, run->queue))
		return false;
	if (!run_until_done(p, run->queue, run->index, RUN_PATIENCE_MS, &result))
		return false;
	if (result == TWIN_OK)
		return true;
	where_run(p->entries, p->at, p->result->difference.command, PLAY_WORDS);
	return difference_note(p->result, &p->entries[p->at],
			       "the begin of the work on the command", "it ran",
			       "it waits, and nothing else is to come before it");
}

/* -- completions --------------------------------------------------------- */

static bool play_done(struct play *p)
{
	const struct embeng_recording_done *recorded = p->entries[p->at].fixed;
	enum twin_result result;
	struct outcome *here;
	bool same;

	if (!run_until_done(p, recorded->queue, recorded->index, END_PATIENCE_MS, &result))
		return false;
	here = outcome_find(&p->outcomes, recorded->queue, recorded->index);
	if (!here) {
		where_done(p->entries, p->at, p->result->difference.command, PLAY_WORDS);
		return difference_note(p->result, &p->entries[p->at], "the completion",
				       word_or_unknown(word_status(recorded->status)),
				       "the command does not complete");
	}
	same = completion_compare(p->result, p->entries, p->at, here,
				  twin_cores(p->twin) != p->recorded_cores);
	outcome_drop(&p->outcomes, here);
	if (p->open)
		p->open--;
	return same;
}

/* -- the driver ---------------------------------------------------------- */

/* The index of the first command of a queue that is made here; 0 if none comes. */
static uint32_t first_index(const struct play *p, uint32_t queue)
{
	for (size_t i = p->at + 1; i < p->count; i++) {
		const struct embeng_recording_command *c = p->entries[i].fixed;
		const struct embeng_recording_admin *a = p->entries[i].fixed;

		if (p->entries[i].type == EMBENG_RECORDING_COMMAND && c->queue == queue)
			return c->index;
		if (p->entries[i].type == EMBENG_RECORDING_POWER_ON ||
		    (p->entries[i].type == EMBENG_RECORDING_ADMIN &&
		     a->command.opcode == EMBENG_ADMIN_QUEUE_CREATE && a->command.queue == queue))
			break;
	}
	return 0;
}

static bool play_admin(struct play *p)
{
	const struct embeng_recording_admin *admin = p->entries[p->at].fixed;
	uint32_t first = admin->command.opcode == EMBENG_ADMIN_QUEUE_CREATE && !admin->status
				 ? first_index(p, admin->command.queue)
				 : 0;

	if (!arm_behind(p, p->at))
		return false;
	if (twin_admin(p->twin, &admin->command, first, &p->admin_status))
		return end_play(p);
	if (p->admin_status == admin->status)
		return true;
	snprintf(p->result->difference.command, PLAY_WORDS, "the driver's command %s",
		 word_or_unknown(word_admin(admin->command.opcode)));
	return difference_note(p->result, &p->entries[p->at], "the status",
			       word_or_unknown(word_status(admin->status)), "%s",
			       word_or_unknown(word_status(p->admin_status)));
}

/* A device that has keys refuses for reasons that are not in the recording. */
static bool play_booted(struct play *p)
{
	const struct embeng_recording_booted *booted = p->entries[p->at].fixed;

	if (booted->error == p->boot_error || (booted->error && !p->boot_error))
		return true;
	snprintf(p->result->difference.command, PLAY_WORDS, "the boot");
	return difference_note(p->result, &p->entries[p->at], "the error",
			       word_or_unknown(word_boot_error(booted->error)), "%s",
			       word_or_unknown(word_boot_error(p->boot_error)));
}

static bool play_power_on(struct play *p)
{
	const struct embeng_recording_power_on *on = p->entries[p->at].fixed;

	p->recorded_cores = on->cores;
	if (twin_power_on(p->twin, on))
		return end_play(p);
	p->result->cores = twin_cores(p->twin);
	snprintf(p->result->variant, sizeof(p->result->variant), "%s", twin_variant(p->twin));
	return true;
}

static bool play_entry(struct play *p)
{
	const struct recording_entry *entry = &p->entries[p->at];

	switch (entry->type) {
	case EMBENG_RECORDING_POWER_ON:
		return play_power_on(p);
	case EMBENG_RECORDING_POWER_OFF:
		twin_power_off(p->twin);
		return true;
	case EMBENG_RECORDING_BOOT:
		return twin_boot(p->twin, entry->fixed, entry->bytes) ? end_play(p) : true;
	case EMBENG_RECORDING_BOOTED:
		return play_booted(p);
	case EMBENG_RECORDING_RESET:
		return twin_reset(p->twin) ? end_play(p) : true;
	case EMBENG_RECORDING_ADMIN:
		return play_admin(p);
	case EMBENG_RECORDING_REGION:
		return play_region(p, p->at);
	case EMBENG_RECORDING_MEMORY:
		return play_memory(p, p->at);
	case EMBENG_RECORDING_COMMAND:
		return play_command(p);
	case EMBENG_RECORDING_RUN:
		return play_run(p);
	case EMBENG_RECORDING_FAULT:
		p->result->faults++;
		return arm_entry(p, p->at);
	default:
		return play_done(p);
	}
}

int play(const struct recording_entry *entries, size_t count, const struct play_options *options,
	 struct play_result *result)
{
	struct play p = {.entries = entries, .count = count, .result = result};
	const struct twin_setup setup = {
		.cores = options->cores, .variant = options->variant, .seen = on_seen, .arg = &p};
	bool goes_on = true;

	memset(result, 0, sizeof(*result));
	p.twin = twin_new(&setup);
	p.early = calloc(count + 1, sizeof(*p.early));
	if (!p.twin || !p.early) {
		twin_free(p.twin);
		free(p.early);
		return -ENOMEM;
	}
	for (; goes_on && p.at < count; p.at += goes_on)
		goes_on = play_entry(&p);
	result->entries = p.at;
	if (goes_on && p.open)
		snprintf(result->unfinished, sizeof(result->unfinished),
			 "%" PRIu64 " command%s had not completed when the recording ended", p.open,
			 p.open == 1 ? "" : "s");
	twin_free(p.twin);
	free(p.early);
	outcomes_free(&p.outcomes);
	return p.outcomes.lost ? -ENOMEM : 0;
}
