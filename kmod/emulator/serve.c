// SPDX-License-Identifier: GPL-2.0-only
/*
 * The service thread of a device, which runs its engine. Registers and doorbells are ordinary
 * memory, so no access traps, and the thread has to look. It looks without pause while there is
 * work, then at intervals in proportion to how long nothing has happened. A device that was just
 * used answers within microseconds; one that is idle costs next to nothing.
 *
 * While it runs, the engine belongs to this thread alone, which also resets it. Others ask by
 * setting a word and waking the thread (emu_serve_reset()), and learn the outcome from `absent`
 * and `on_bus`, which the thread publishes with barriers. No lock is taken. The thread lives from
 * emu_serve_start() to emu_serve_stop().
 */
#include <linux/kthread.h>
#include <linux/sched.h>

#include "emu.h"

#define SPIN_NS (50 * NSEC_PER_USEC)
#define SLEEP_LEAST_NS (20 * NSEC_PER_USEC)
#define SLEEP_MOST_NS (100 * NSEC_PER_MSEC)
#define IDLE_SHARE 16 /* a nap lasts this fraction of the time since anything happened */

static int power_on_engine(struct emu *emu)
{
	struct engine_config config = {
		.host = emu,
		.registers = emu_bar(emu, EMBENG_BAR_REGISTERS),
		.doorbells = emu_bar(emu, EMBENG_BAR_DOORBELLS),
		.doorbell_stride = PAGE_SIZE,
		.queues = emu->options.queues,
		.vectors = emu->options.vectors,
		.cores = emu->options.cores,
		.table_memory = emu->options.memory,
		.firmware_minimum = emu->firmware_minimum,
		.recorder = emu->record.chunks ? &emu_recorder : NULL,
	};

	return engine_create(&config, &emu->engine);
}

static void power_off_engine(struct emu *emu)
{
	if (emu->engine)
		emu->firmware_minimum = engine_firmware_minimum(emu->engine);
	engine_destroy(emu->engine);
	emu->engine = NULL;
}

static void fill_bars(struct emu *emu, u8 byte, size_t registers)
{
	memset(emu_bar(emu, EMBENG_BAR_REGISTERS), byte, registers);
	memset(emu_bar(emu, EMBENG_BAR_DOORBELLS), byte, emu_doorbell_bytes(emu));
}

/* Switches the engine off and on, and clears registers and doorbells, but not the event log. */
static void power_cycle_engine(struct emu *emu)
{
	int ret;

	power_off_engine(emu);
	fill_bars(emu, 0, EMBENG_EVENT_LOG);
	emu->dead = false;
	ret = power_on_engine(emu);
	if (ret)
		dev_err(emu_dev(emu), "no engine after the reset (%pe)\n", ERR_PTR(ret));
	/*
	 * Pairs with read_config() and cut_off_engine(): anyone who sees the function sees it
	 * reset.
	 */
	smp_store_release(&emu->absent, false);
}

/**
 * emu_serve_reset() - ask for a reset of the engine, in any context
 * @emu: the device
 * @absent: config space answers all ones until the reset is done, so that a caller that waits for
 *	the function knows that it has let go of all memory
 */
void emu_serve_reset(struct emu *emu, bool absent)
{
	if (absent)
		WRITE_ONCE(emu->absent, true);
	WRITE_ONCE(*(u32 *)(emu_bar(emu, EMBENG_BAR_REGISTERS) + EMBENG_REG_BOOT_STATE),
		   EMBENG_BOOT_RESET);
	WRITE_ONCE(emu->reset_wanted, true);
	wake_up_process(emu->thread);
}

static void take_nap(struct emu *emu, u64 idle_ns)
{
	u64 ns = clamp(idle_ns / IDLE_SHARE, SLEEP_LEAST_NS, SLEEP_MOST_NS);
	ktime_t expires = ns_to_ktime(ns);

	set_current_state(TASK_IDLE);
	if (kthread_should_stop() || READ_ONCE(emu->reset_wanted))
		__set_current_state(TASK_RUNNING);
	else
		schedule_hrtimeout_range(&expires, ns / 8, HRTIMER_MODE_REL);
}

/* Injects a fault: the function vanishes at once, with everything that it had begun. */
static void leave_bus(struct emu *emu)
{
	WRITE_ONCE(emu->gone, true);
	power_off_engine(emu);
	fill_bars(emu, 0xff, EMBENG_REGISTERS_SIZE);
}

/* The function is gone for good and has let go of all memory, so nobody need wait for a reset. */
static void end_absence(struct emu *emu)
{
	fill_bars(emu, 0xff, EMBENG_REGISTERS_SIZE);
	/* Pairs with cut_off_engine(). */
	smp_store_release(&emu->absent, false);
}

/* Brings the function back, if it is time. This is a reset, and serves one that was asked for. */
static bool come_back_to_bus(struct emu *emu)
{
	if (xchg(&emu->reset_wanted, false) && !emu->back_ns)
		end_absence(emu);
	if (!emu->back_ns || ktime_get_ns() < emu->back_ns)
		return false;
	emu->back_ns = 0;
	emu_config_reset(emu);
	power_cycle_engine(emu);
	WRITE_ONCE(emu->gone, false);
	return true;
}

static bool meet_faults(struct emu *emu)
{
	u64 down_ns = emu_fault(emu, EMU_FAULT_LINK_DOWN, 0);

	if (down_ns)
		emu->back_ns = ktime_get_ns() + down_ns;
	if (down_ns || emu_fault(emu, EMU_FAULT_CONFIG_ALL_ONES, 0))
		leave_bus(emu);
	if (emu_fault(emu, EMU_FAULT_ENGINE_DIES, 0))
		emu->dead = true;
	return emu->gone || emu->dead;
}

/**
 * emu_serve_booting() - inject the faults of a boot, while the device reports that it loads
 * @emu: the device, on its service thread
 */
void emu_serve_booting(struct emu *emu)
{
	u64 ns = emu_fault(emu, EMU_FAULT_FIRMWARE_SLOW, 0), began = ktime_get_ns();

	if (emu_fault(emu, EMU_FAULT_FIRMWARE_DIES, 0))
		ns = U64_MAX;
	/*
	 * The engine does not access memory while it waits, and asks for the bus before it reads
	 * again.
	 */
	WRITE_ONCE(emu->on_bus, false);
	while (ktime_get_ns() - began < ns && !kthread_should_stop() &&
	       !READ_ONCE(emu->reset_wanted))
		schedule_timeout_idle(1);
	WRITE_ONCE(emu->on_bus, true);
	/* Pairs with read_pending_bit(). */
	smp_mb();
}

/* A driver that takes the bus away sees in config space when this run has ended. */
static bool run_engine(struct emu *emu)
{
	bool moved;

	WRITE_ONCE(emu->on_bus, true);
	/*
	 * Pairs with read_pending_bit(): either this side sees no bus master, or that side sees
	 * on_bus.
	 */
	smp_mb();
	engine_bus(emu->engine, emu_config_bus_master(emu));
	moved = engine_run(emu->engine, ENGINE_RUN_ALL);
	/* Pairs with read_pending_bit(), for all reads and writes of this run. */
	smp_store_release(&emu->on_bus, false);
	return moved;
}

static bool serve_once(struct emu *emu)
{
	if (emu->gone)
		return come_back_to_bus(emu);
	if (xchg(&emu->reset_wanted, false)) {
		power_cycle_engine(emu);
		return true;
	}
	if (meet_faults(emu))
		return false;
	emu_msix_replay(emu);
	if (!emu->engine || emu_config_asleep(emu))
		return false;
	return run_engine(emu);
}

static int serve_device(void *data)
{
	struct emu *emu = data;
	u64 moved = ktime_get_ns(), now;

	while (!kthread_should_stop()) {
		bool work = serve_once(emu);

		now = ktime_get_ns();
		if (work)
			moved = now;
		if (now - moved < SPIN_NS)
			cond_resched();
		else
			take_nap(emu, now - moved);
	}
	return 0;
}

int emu_serve_start(struct emu *emu)
{
	int ret = power_on_engine(emu);

	if (ret)
		return dev_err_probe(emu_dev(emu), ret, "the engine does not start\n");
	emu->thread = kthread_create(serve_device, emu, EMU_NAME "/%u", emu->number);
	if (IS_ERR(emu->thread)) {
		engine_destroy(emu->engine);
		return PTR_ERR(emu->thread);
	}
	get_task_struct(emu->thread);
	wake_up_process(emu->thread);
	return 0;
}

void emu_serve_stop(struct emu *emu)
{
	kthread_stop_put(emu->thread);
	engine_destroy(emu->engine);
}
