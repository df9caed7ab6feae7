// SPDX-License-Identifier: MIT
/*
 * A device for fuzzers, and queues that they use correctly. Each command must have its
 * completions, with a status that exists, and a command that is not done must be explained by a
 * report.
 */
#include "watch.h"

#include "builtin_image.h"

#define ONE(...) +1
#define STATUSES (0 EMBENG_STATUS_TABLE(ONE))
#define FIELDS (0 EMBENG_FIELD_TABLE(ONE))

bool watch_boot(struct rig *rig)
{
	if (rig_boot(rig, embeng_builtin_image, sizeof(embeng_builtin_image)) !=
	    EMBENG_BOOT_RUNNING)
		return false;
	/* Small enough that no model takes the memory of the machine. */
	rig->engine->caps.table_memory = 1 << 20;
	rig->engine->caps.ids = rig->engine->caps.samples = 1 << 10;
	rig->engine->caps.dim = 64;
	return true;
}

struct rig *watch_power_on(void)
{
	struct rig *rig = rig_power_on(1, 0);

	fuzz_check(watch_boot(rig), "the built-in image");
	return rig;
}

void watch_queue(struct watch *w, struct rig *rig, u32 context, u32 kind, u32 replica)
{
	memset(w, 0, sizeof(*w));
	w->queue = rig_queue(rig, context, kind, replica);
}

bool watch_submit(struct watch *w, struct embeng_cmd *cmd)
{
	struct rig_queue *q = w->queue;
	u32 head = embeng_observe_sq_head(&rig_header(q)->sq_head);

	if (q->tail - head >= q->layout.sq_entries || w->submitted == WATCH_COMMANDS)
		return false;
	w->opcodes[w->submitted] = cmd->opcode;
	w->states[w->submitted] = WATCH_SUBMITTED;
	cmd->cookie = w->submitted++;
	rig_submit(q, cmd);
	return true;
}

static void accept(struct watch *w, const struct embeng_cqe *cqe)
{
	fuzz_check(w->opcodes[cqe->cookie] == EMBENG_OP_LOOKUP, "opcode %u",
		   w->opcodes[cqe->cookie]);
	fuzz_check(w->states[cqe->cookie] == WATCH_SUBMITTED, "state %u", w->states[cqe->cookie]);
	fuzz_check(!cqe->status, "status %u", cqe->status);
	w->states[cqe->cookie] = WATCH_ACCEPTED;
}

u32 watch_reap(struct watch *w)
{
	struct embeng_cqe cqe;
	u32 count = 0;

	for (; rig_reap(w->queue, &cqe); count++) {
		fuzz_check(cqe.cookie < w->submitted, "cookie %llu", cqe.cookie);
		fuzz_check(cqe.status < STATUSES && cqe.field < FIELDS, "status %u, field %u",
			   cqe.status, cqe.field);
		if (cqe.flags == EMBENG_CQE_ACCEPTED) {
			accept(w, &cqe);
			continue;
		}
		fuzz_check(cqe.flags == EMBENG_CQE_DONE, "flags %u", cqe.flags);
		fuzz_check(w->states[cqe.cookie] == WATCH_SUBMITTED ||
				   w->states[cqe.cookie] == WATCH_ACCEPTED,
			   "state %u", w->states[cqe.cookie]);
		w->states[cqe.cookie] = WATCH_DONE;
		w->last = cqe.status;
		w->done++;
	}
	return count;
}

/* A queue with commands left says that they wait, having seen them all. */
static void check_report(const struct watch *w)
{
	struct embeng_queue_report report = rig_report(w->queue);

	if (w->done == w->submitted || rig_header(w->queue)->dead)
		return;
	fuzz_check(report.state == EMBENG_QUEUE_BLOCKED, "state %u, %u of %u done", report.state,
		   w->done, w->submitted);
	fuzz_check(report.tail == w->queue->tail, "tail %u of %u", report.tail, w->queue->tail);
}

void watch_settle(struct rig *rig, struct watch *queues, u32 count)
{
	bool moved;

	do {
		moved = engine_run(rig->engine, ENGINE_RUN_ALL) != 0;
		for (u32 i = 0; i < count; i++)
			moved |= queues[i].queue && watch_reap(&queues[i]);
		moved |= rig->engine->wake_ns != U64_MAX;
	} while (moved);
	for (u32 i = 0; i < count; i++) {
		if (queues[i].queue)
			check_report(&queues[i]);
	}
}

void watch_ended(const struct watch *w)
{
	const struct rig_queue *q = w->queue;
	u32 untouched = q->tail - embeng_observe_sq_head(&rig_header(w->queue)->sq_head);

	fuzz_check(w->done + untouched == w->submitted, "%u done, %u untouched, of %u", w->done,
		   untouched, w->submitted);
}

u16 watch_call(struct rig *rig, struct watch *w, struct embeng_cmd *cmd)
{
	w->last = WATCH_NO_STATUS;
	fuzz_check(watch_submit(w, cmd), "no room");
	watch_settle(rig, w, 1);
	return w->last;
}
