// SPDX-License-Identifier: GPL-2.0-only
/*
 * The part of engine/port.h that is memory, time, floating point, interrupts and messages, in
 * terms of the kernel. Each function is a thin cover of the kernel's own, and has no state.
 *
 * Memory is zeroed, in pieces where it is large, and charged to the program for which it is
 * (port_charge_begin()). Its absence is reported by the engine: it neither wakes the OOM killer nor
 * warns. Floating point is allowed between port_fpu_begin() and port_fpu_end() only, where
 * preemption is off, so the engine keeps those stretches short. port_interrupt() may be called in
 * any context; the others run on threads and may sleep.
 */
#include <linux/fpu.h>
#include <linux/ktime.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "emu.h"

/* The engine reports that memory is short; the kernel neither kills nor warns for it. */
#define PORT_GFP (GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)
/* Cleared at once; more than that is cleared by this much at a time. */
#define CLEAR_BYTES SZ_1M

void *port_alloc(u64 bytes)
{
	return kvmalloc(bytes, PORT_GFP | __GFP_ZERO);
}

static void clear_memory(void *p, u64 bytes, const struct port_pace *pace)
{
	u64 at, n;

	for (at = 0; at < bytes; at += n) {
		n = min_t(u64, bytes - at, CLEAR_BYTES);
		memset(p + at, 0, n);
		if (pace)
			pace->piece(pace->arg);
		cond_resched();
	}
}

void *port_alloc_large(u64 bytes, const struct port_pace *pace)
{
	void *p;

	if (bytes <= CLEAR_BYTES)
		return port_alloc(bytes);
	p = kvmalloc(bytes, PORT_GFP);
	if (p)
		clear_memory(p, bytes, pace);
	return p;
}

void port_free(void *p)
{
	kvfree(p);
}

/*
 * The kernel has no memory that is allocated when it is touched, so the whole table is allocated
 * at once, and refused early where there is not that much.
 */
void *port_alloc_table(u64 bytes, const struct port_pace *pace)
{
	void *p;

	if (bytes >> PAGE_SHIFT >= si_mem_available())
		return NULL;
	p = vmalloc_huge(bytes, PORT_GFP);
	if (p)
		clear_memory(p, bytes, pace);
	return p;
}

void port_free_table(void *p, u64 bytes)
{
	vfree(p);
}

static struct page *find_page(const void *at)
{
	return is_vmalloc_addr(at) ? vmalloc_to_page(at) : virt_to_page(at);
}

/*
 * The driver has region tables and rings accounted to the control group of the program that they
 * are for; the service thread itself belongs to none.
 */
void *port_charge_begin(const void *at)
{
	struct mem_cgroup *memcg;

	rcu_read_lock();
	memcg = folio_memcg(page_folio(find_page(at)));
	if (memcg && !mem_cgroup_tryget(memcg))
		memcg = NULL;
	rcu_read_unlock();
	if (memcg)
		set_active_memcg(memcg);
	return memcg;
}

void port_charge_end(void *charged)
{
	if (!charged)
		return;
	set_active_memcg(NULL);
	mem_cgroup_put(charged);
}

u64 port_now_ns(void)
{
	return ktime_get_ns();
}

/* Sets default rounding, all exceptions masked, denormals kept (MXCSR). */
void port_fpu_begin(struct port_fpu *fpu)
{
	kernel_fpu_begin();
}

void port_fpu_end(struct port_fpu *fpu)
{
	kernel_fpu_end();
	cond_resched();
}

void port_interrupt(void *host, u32 vector)
{
	if (!emu_fault(host, EMU_FAULT_LOSE_INTERRUPT, vector))
		emu_msix_raise(host, vector, emu_fault(host, EMU_FAULT_REPEAT_INTERRUPT, vector));
}

void port_log(void *host, enum port_log_level level, const char *fmt, ...)
{
	static const char *const levels[] = {
		[PORT_LOG_ERROR] = KERN_ERR,
		[PORT_LOG_WARNING] = KERN_WARNING,
		[PORT_LOG_INFO] = KERN_INFO,
		[PORT_LOG_DEBUG] = KERN_DEBUG,
	};
	struct va_format text;
	va_list args;

	va_start(args, fmt);
	text.fmt = fmt;
	text.va = &args;
	dev_printk(levels[level], emu_dev(host), "%pV\n", &text);
	va_end(args);
}
