// SPDX-License-Identifier: MIT
/*
 * Any numbers in doorbells, rings, admin commands and boot registers. A queue whose indices
 * make no sense stops; the others, and those of other contexts, go on.
 */
#include "../unit/support/failing_alloc.h"
#include "watch.h"

#define MINE 4u /* queues of context 0 */
#define SQ 8u
#define CQ 16u

/* Faults of the device that are injected into queues of context 0, at one of OCCASIONS chances. */
enum strike {
	STRIKE_NONE,
	STRIKE_CORRUPT,
	STRIKE_DROP,
	STRIKE_DELAY,
	STRIKE_STALL,
	STRIKE_ECC,
	STRIKE_DMA,
};

static const enum port_fault strikes[] = {
	[STRIKE_CORRUPT] = PORT_FAULT_CORRUPT_COMPLETION,
	[STRIKE_DROP] = PORT_FAULT_DROP_COMPLETION,
	[STRIKE_DELAY] = PORT_FAULT_DELAY_COMPLETION,
	[STRIKE_STALL] = PORT_FAULT_STALL_QUEUE,
	[STRIKE_ECC] = PORT_FAULT_ECC_CORRECTABLE,
	[STRIKE_DMA] = PORT_FAULT_DMA_ERROR,
};

#define OCCASIONS 4u /* one chance in so many to inject the fault is taken */
#define DELAY_NS 1000u

struct abuse {
	struct rig *rig;
	struct rig_queue *queues[MINE];
	bool destroyed[MINE];
	struct watch good; /* the queue of context 1, which must not notice */
	u8 *memory;	   /* addresses that admin commands may name */
	struct view held;  /* as a thread that checks or runs a command would */
	struct context *holder;
	enum strike strike;
	u32 occasions;
};

#define MEMORY 65536u

static u64 fault(void *arg, enum port_fault which, u32 target)
{
	const struct rig *rig = arg;
	struct abuse *a = rig->fault_arg;

	if (!a->strike || which != strikes[a->strike])
		return 0;
	for (u32 i = 0; i < MINE; i++) {
		if (a->queues[i] && a->queues[i]->number == target)
			return ++a->occasions % OCCASIONS ? 0 : DELAY_NS;
	}
	return 0;
}

static struct abuse *abuse_new(struct fuzz *f, u32 strike)
{
	static const u32 kinds[MINE] = {EMBENG_QUEUE_INPUT, EMBENG_QUEUE_INFERENCE,
					EMBENG_QUEUE_GRADIENT, EMBENG_QUEUE_TRANSFER};
	struct abuse *a = fuzz_memory(sizeof(*a));
	u32 start = (u32)fuzz_near(f, 0);

	a->rig = watch_power_on();
	a->memory = aligned_alloc(64, MEMORY);
	memset(a->memory, 0, MEMORY);
	rig_grant(a->rig, a->memory, MEMORY);
	rig_context(a->rig, 0);
	rig_context(a->rig, 1);
	for (u32 i = 0; i < MINE; i++)
		a->queues[i] = rig_queue_at(a->rig, 0, kinds[i], 0, SQ, CQ, start);
	watch_queue(&a->good, a->rig, 1, EMBENG_QUEUE_TRANSFER, 0);
	a->strike = strike < sizeof(strikes) / sizeof(strikes[0]) ? strike : STRIKE_NONE;
	a->rig->fault_arg = a;
	a->rig->host.fault = fault;
	return a;
}

static void release(struct abuse *a)
{
	if (a->holder)
		region_put(a->holder, &a->held);
	a->holder = NULL;
}

/* An access in flight: what ends its region has to wait. */
static void hold(struct abuse *a, struct fuzz *f)
{
	struct context *c = a->rig->engine->contexts[0];
	struct embeng_mem mem = {fuzz_below(f, 5), (u32)fuzz_near(f, 1), fuzz_near(f, 0),
				 fuzz_near(f, 16)};
	struct command command = {.context = c};
	u32 rights = 1 + fuzz_below(f, 3), align = 1u << fuzz_below(f, 4);

	release(a);
	if (!c || c->dying)
		return;
	if (!region_get(&command, &mem, rights, align, EMBENG_FIELD_DATA, 0, &a->held))
		a->holder = c;
	else
		fuzz_check(command.fault.status, "no fault");
}

static void abuse_free(struct abuse *a)
{
	rig_free(a->rig);
	free(a->memory);
	free(a);
}

/* Another context's NOP is done, whatever goes on beside it. */
static void good_goes_on(struct abuse *a)
{
	struct embeng_cmd nop = {.opcode = EMBENG_OP_NOP};

	if (a->good.submitted < WATCH_COMMANDS)
		fuzz_check(!watch_call(a->rig, &a->good, &nop), "status %u", a->good.last);
}

static void write_doorbell(struct abuse *a, struct fuzz *f)
{
	struct rig_queue *q = a->queues[fuzz_below(f, MINE)];
	u32 *words[] = {&q->doorbell->sq_tail, &q->doorbell->cq_head, &q->doorbell->arm,
			&q->doorbell->armed};
	u32 which = fuzz_below(f, 4), usual = which == 1 ? rig_header(q)->cq_tail : ++q->tail;

	EMBENG_STORE_RELEASE(words[which], (u32)fuzz_near(f, usual));
}

/* Rings as a program should, so that what was written is looked at. */
static void ring(struct rig_queue *q)
{
	EMBENG_STORE_RELEASE(&q->doorbell->sq_tail, ++q->tail);
	EMBENG_STORE_RELEASE(&q->doorbell->cq_head, rig_header(q)->cq_tail);
}

static void write_command(struct abuse *a, struct fuzz *f)
{
	struct rig_queue *q = a->queues[fuzz_below(f, MINE)];
	u32 slot = (u32)fuzz_near(f, q->tail) & (SQ - 1), opcode = fuzz_below(f, 24);
	struct embeng_cmd cmd = {.opcode = opcode < 16 ? (u16)opcode : EMBENG_OP_FENCE,
				 .cookie = fuzz_take(f, 1)};

	if (cmd.opcode)
		cmd.desc = (struct embeng_mem){fuzz_below(f, 5), (u32)fuzz_near(f, 1),
					       fuzz_near(f, 0), fuzz_near(f, 16)};
	fuzz_edit(f, &cmd, sizeof(cmd), 1);
	if (cmd.opcode == EMBENG_OP_NOP)
		cmd.arg &= ~0ull >> 24 | 0xffull << EMBENG_NOP_DELAY_SHIFT;
	memcpy(q->ring + q->layout.sq + slot * sizeof(cmd), &cmd, sizeof(cmd));
	if (!fuzz_rarely(f, 4))
		ring(q);
}

static bool names_good(const struct embeng_admin_cmd *cmd, const struct abuse *a)
{
	if (cmd->opcode == EMBENG_ADMIN_QUEUE_DESTROY)
		return cmd->queue == a->good.queue->number;
	return cmd->opcode == EMBENG_ADMIN_CONTEXT_DESTROY && cmd->context == 1;
}

static u64 any_address(struct abuse *a, struct fuzz *f)
{
	return fuzz_near(f, (u64)(size_t)a->memory + fuzz_take(f, 2) % MEMORY / 64 * 64);
}

/* Admin commands are the driver's; a driver with faults harms nobody but itself. */
static void admin(struct abuse *a, struct fuzz *f)
{
	struct embeng_admin_cmd cmd = {
		.opcode = (u8)fuzz_below(f, 8),
		.kind = (u8)fuzz_below(f, 6),
		.priority = (u8)fuzz_below(f, 5),
		.context = fuzz_below(f, 4),
		.queue = 16 + fuzz_below(f, 20),
		.index = fuzz_below(f, 80),
		.count = fuzz_below(f, 80),
		.address = any_address(a, f),
		.sq_entries = (u32)fuzz_near(f, 1u << fuzz_below(f, 5)),
		.cq_entries = (u32)fuzz_near(f, 1u << fuzz_below(f, 6)),
		.vector = fuzz_below(f, 10),
		.replica = (u32)fuzz_near(f, 0),
	};
	struct embeng_cqe cqe;

	if (fuzz_rarely(f, 4))
		cmd.queue = fuzz_below(f, MINE + 2);
	fuzz_edit(f, &cmd, sizeof(cmd), 1);
	if (names_good(&cmd, a))
		return;
	rig_admin_submit(a->rig, &cmd);
	engine_run(a->rig->engine, ENGINE_RUN_ALL);
	release(a);
	cqe = rig_wait(&a->rig->admin);
	fuzz_check(cqe.cookie == cmd.cookie && cqe.flags == EMBENG_CQE_DONE, "cookie %llu",
		   cqe.cookie);
	for (u32 i = 0; i < MINE && !cqe.status; i++)
		a->destroyed[i] |= !a->rig->engine->queues[a->queues[i]->number];
}

/* The region table's entries may say anything; where they say memory, a fence is in it. */
static void write_region(struct abuse *a, struct fuzz *f)
{
	struct embeng_region *entry = &a->rig->contexts[0].table[fuzz_below(f, 4)];
	const struct embeng_fence_point points[] = {
		{1 + fuzz_below(f, 5), (u32)fuzz_near(f, a->queues[0]->tail)},
		{1 + fuzz_below(f, 5), (u32)fuzz_near(f, a->queues[1]->tail)}};
	struct embeng_segment segment = {fuzz_near(f, (u64)(size_t)a->memory + 4096),
					 fuzz_near(f, 4096)};

	memcpy(a->memory, &segment, sizeof(segment));
	memcpy(a->memory + 4096, points, sizeof(points));
	*entry = (struct embeng_region){
		.generation = (u32)fuzz_near(f, 1),
		.rights = (u32)fuzz_near(f, 3),
		.length = fuzz_near(f, 64),
		.segments = fuzz_near(f, (u64)(size_t)a->memory),
		.segment_count = (u32)fuzz_near(f, 1),
	};
	fuzz_edit(f, entry, sizeof(*entry), 1);
}

/* After a look, a queue with an index outside its ring is in state ERROR. */
static void check_states(const struct abuse *a)
{
	for (u32 i = 0; i < MINE; i++) {
		const struct rig_queue *q = a->queues[i];
		const struct queue *inside = a->rig->engine->queues[q->number];
		u32 ahead = q->doorbell->sq_tail - rig_header((struct rig_queue *)q)->sq_head;

		if (a->destroyed[i] || !inside || inside->dying)
			continue;
		if (ahead > SQ)
			fuzz_check(inside->state == EMBENG_QUEUE_ERROR, "queue %u: %u ahead", i,
				   ahead);
	}
}

static void act(struct abuse *a, struct fuzz *f)
{
	switch (fuzz_below(f, 8)) {
	case 0:
		hold(a, f);
		break;
	case 1:
	case 2:
		write_doorbell(a, f);
		break;
	case 3:
	case 4:
		write_command(a, f);
		break;
	case 5:
		admin(a, f);
		break;
	case 6:
		write_region(a, f);
		break;
	case 7:
		engine_run(a->rig->engine, ENGINE_RUN_ALL);
		break;
	}
}

/* A bad admin ring is the device's fault to report, a reset's to mend. */
static void end(struct abuse *a, struct fuzz *f)
{
	struct engine *e = a->rig->engine;
	u32 tail = (u32)fuzz_near(f, a->rig->admin.tail);
	bool bad = tail - a->rig->admin.tail > a->rig->admin.layout.sq_entries;

	if (bad) {
		EMBENG_STORE_RELEASE(&a->rig->admin.doorbell->sq_tail, tail);
		engine_run(e, ENGINE_RUN_ALL);
		fuzz_check(reg_read32(e, EMBENG_REG_STATUS) == EMBENG_DEVICE_FAULT, "tail %u",
			   tail);
		EMBENG_STORE_RELEASE(&a->rig->admin.doorbell->sq_tail, a->rig->admin.tail);
	}
	rig_warm_reset(a->rig);
	fuzz_check(reg_read32(e, EMBENG_REG_BOOT_STATE) == EMBENG_BOOT_ROM, "reset");
}

/* Boots again behind an admin ring of any size: refused, or it runs and is good. */
static void boot_again(struct abuse *a, struct fuzz *f)
{
	struct engine *e = a->rig->engine;
	u32 sq = reg_read32(e, EMBENG_REG_ADMIN_SQ_ENTRIES), odd = (u32)fuzz_near(f, sq);

	reg_write32(e, EMBENG_REG_ADMIN_SQ_ENTRIES, odd);
	if (!watch_boot(a->rig) || odd != sq) {
		rig_warm_reset(a->rig);
		reg_write32(e, EMBENG_REG_ADMIN_SQ_ENTRIES, sq);
		fuzz_check(watch_boot(a->rig), "a good admin ring");
	}
	watch_known_good(a->rig, 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = {data, size};
	u32 first = (u32)fuzz_take(&f, 1);
	struct abuse *a = abuse_new(&f, first >> 5);

	scarce_begin(first & 31);
	for (u32 i = 0; i < 64 && f.left; i++)
		act(a, &f);
	scarce_end();
	release(a);
	engine_run(a->rig->engine, ENGINE_RUN_ALL);
	check_states(a);
	good_goes_on(a);
	end(a, &f);
	boot_again(a, &f);
	abuse_free(a);
	return 0;
}
