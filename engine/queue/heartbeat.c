// SPDX-License-Identifier: MIT
/*
 * Signs of life for the driver, which tells a long command from a device that hangs by them. They
 * come from wherever the engine gets to in time: between looks, and between the pieces of a long
 * command. There the device also attends to what it is asked meanwhile.
 *
 * heartbeat() is called with engine->lock held. heartbeat_piece() is called without it, by
 * whichever core has done a piece, and takes it when a heartbeat is due.
 */
#include "internal.h"

#include "../device/pool.h"

#define PIECES 16 /* that one look at the clock stands for */
/* A command that runs is interrupted so often for what its device is asked meanwhile. */
#define ATTEND_NS 1000000u

/* Nothing but time is missing: a delayed NOP, or a completion that the host's model holds. */
static bool waits_for_time(const struct queue *q)
{
	const struct command *oldest = q->oldest;

	if (q->publish_ns)
		return !q->late;
	return oldest && oldest->committed && oldest->cmd.opcode == EMBENG_OP_NOP &&
	       q->engine->now_ns < oldest->ready_ns;
}

/*
 * Whether it is known why a queue takes time. @works: pieces were done since the last heartbeat; then a
 * queue with commands runs one or waits for its turn. That another queue's NOP waits says nothing.
 */
static bool is_explained(const struct queue *q, bool works)
{
	return waits_for_time(q) || (works && (q->accepting || q->running || queue_has_work(q)));
}

static void attend_queues(struct engine *e, u32 beat)
{
	u64 done = reg_read64(e, EMBENG_REG_PROGRESS);
	bool works = done != e->progress_beaten;
	u32 i;

	e->progress_beaten = done;
	for (i = 0; i < e->order_count; i++) {
		struct queue *q = e->order[i];

		if (q->stalled || e->cut_off)
			continue;
		EMBENG_STORE_RELEASE(&queue_header(q)->heartbeat, beat);
		if (is_explained(q, works))
			EMBENG_STORE_RELEASE(&queue_header(q)->progress, ++q->progress);
	}
}

static bool is_due(struct engine *e, u64 now)
{
	return now - __atomic_load_n(&e->heartbeat_ns, __ATOMIC_RELAXED) >=
	       (u64)e->heartbeat_ms * 1000000;
}

void heartbeat(struct engine *e)
{
	u32 beat;

	if (!is_due(e, e->now_ns) || reg_read32(e, EMBENG_REG_BOOT_STATE) != EMBENG_BOOT_RUNNING)
		return;
	if (fault_strikes(e, PORT_FAULT_HEARTBEAT_STOPS, 0))
		return;
	__atomic_store_n(&e->heartbeat_ns, e->now_ns, __ATOMIC_RELAXED);
	beat = reg_read32(e, EMBENG_REG_HEARTBEAT) + 1;
	attend_queues(e, beat);
	reg_write32(e, EMBENG_REG_HEARTBEAT, beat);
}

void heartbeat_now(struct engine *e)
{
	clock_read(e);
	heartbeat(e);
}

/* Whether it is time to attend_device() again. */
static bool has_waited(struct engine *e, u64 now)
{
	return e->attend && now - __atomic_load_n(&e->attended_ns, __ATOMIC_RELAXED) >= ATTEND_NS;
}

/* A command that is served here has pieces, too: in those only the driver is. */
#define ATTEND_DEPTH 2u

static void attend_device(struct engine *e, struct command *command, u64 now)
{
	if (!e->attend || e->attending == ATTEND_DEPTH)
		return;
	e->attend(e, e->attending++ ? NULL : command);
	e->attending--;
	__atomic_store_n(&e->attended_ns, now, __ATOMIC_RELAXED);
}

/* Small commands of other devices of the pool do not wait for the end of a long one. */
static void lend_thread(struct engine *e, struct command *command)
{
	u64 lent_ns = pool_lend(e, ATTEND_NS);

	if (!lent_ns || !command)
		return;
	port_lock(e->lock);
	command->lent_ns += lent_ns;
	port_unlock(e->lock);
}

void heartbeat_piece(struct engine *e, struct command *command)
{
	u64 now;

	if (__atomic_add_fetch(&e->pieces, 1, __ATOMIC_RELAXED) % PIECES)
		return;
	reg_count(e, EMBENG_REG_PROGRESS, PIECES);
	now = port_now_ns();
	if (!is_due(e, now) && !has_waited(e, now))
		return;
	port_lock(e->lock);
	clock_saw(e, now);
	heartbeat(e);
	attend_device(e, command, now);
	port_unlock(e->lock);
	lend_thread(e, command);
}
