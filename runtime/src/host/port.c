// SPDX-License-Identifier: MIT
/*
 * Implements engine/port.h for a process: memory, locks, threads, time, DMA addresses, interrupts
 * and the state of the floating-point unit. The emulator implements it for a kernel in
 * kmod/emulator/.
 *
 * Objects belong to the engine that asked for them. The functions may be called by any thread.
 */
#define _GNU_SOURCE
#include "port.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../../../uapi/embeng_regs.h"
#include "blocks.h"
#include "thread.h"

#define NS_PER_S 1000000000ull

void *port_alloc(u64 bytes)
{
	return bytes > SIZE_MAX ? NULL : calloc(1, bytes ? bytes : 1);
}

/* The kernel of this process clears pages as they are touched. */
void *port_alloc_large(u64 bytes, const struct port_pace *pace)
{
	(void)pace;
	return port_alloc(bytes);
}

void port_free(void *p)
{
	free(p);
}

void *port_alloc_table(u64 bytes, const struct port_pace *pace)
{
	void *p = host_block_take(bytes);

	(void)pace;
	if (p)
		return p;
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		 -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	/*
	 * Only a wish: without huge pages it is slower, not wrong. Blocks of old rows are made during a
	 * step, which must not wait until the system has moved other pages out of the way for a huge one.
	 */
	if (bytes > HOST_BLOCK)
		(void)madvise(p, bytes, MADV_HUGEPAGE);
	return p;
}

void port_free_table(void *p, u64 bytes)
{
	if (p)
		munmap(p, bytes);
}

/* All memory is the process's. */
void *port_charge_begin(const void *at)
{
	(void)at;
	return NULL;
}

void port_charge_end(void *charged)
{
	(void)charged;
}

struct port_mutex {
	pthread_mutex_t mutex;
};

struct port_mutex *port_mutex_new(void)
{
	struct port_mutex *m = malloc(sizeof(*m));

	if (m && pthread_mutex_init(&m->mutex, NULL)) {
		free(m);
		return NULL;
	}
	return m;
}

void port_mutex_free(struct port_mutex *m)
{
	pthread_mutex_destroy(&m->mutex);
	free(m);
}

void port_lock(struct port_mutex *m)
{
	pthread_mutex_lock(&m->mutex);
}

void port_unlock(struct port_mutex *m)
{
	pthread_mutex_unlock(&m->mutex);
}

struct port_event {
	u32 counter;
	u32 sleepers; /* a signal without any makes no system call */
};

struct port_event *port_event_new(void)
{
	return calloc(1, sizeof(struct port_event));
}

void port_event_free(struct port_event *e)
{
	free(e);
}

u32 port_event_read(struct port_event *e)
{
	return __atomic_load_n(&e->counter, __ATOMIC_SEQ_CST);
}

void port_event_wait(struct port_event *e, u32 seen, u64 timeout_ns)
{
	struct timespec timeout = {
		.tv_sec = (time_t)(timeout_ns / NS_PER_S),
		.tv_nsec = (long)(timeout_ns % NS_PER_S),
	};

	__atomic_fetch_add(&e->sleepers, 1, __ATOMIC_SEQ_CST);
	if (port_event_read(e) == seen)
		syscall(SYS_futex, &e->counter, FUTEX_WAIT_PRIVATE, seen,
			timeout_ns == U64_MAX ? NULL : &timeout, NULL, 0);
	__atomic_fetch_sub(&e->sleepers, 1, __ATOMIC_SEQ_CST);
}

void port_event_signal(struct port_event *e)
{
	port_event_signal_some(e, INT32_MAX);
}

void port_event_signal_some(struct port_event *e, u32 count)
{
	__atomic_fetch_add(&e->counter, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&e->sleepers, __ATOMIC_SEQ_CST))
		syscall(SYS_futex, &e->counter, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

struct port_thread {
	pthread_t thread;
	void (*fn)(void *arg);
	void *arg;
	int cpu;
};

/*
 * @number: index among the processors that the process may use. A greater number sets no
 * preference.
 */
static void prefer_cpu(int number)
{
	cpu_set_t allowed, wanted;

	if (number < 0 || sched_getaffinity(0, sizeof(allowed), &allowed))
		return;
	CPU_ZERO(&wanted);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &allowed) || number--)
			continue;
		CPU_SET(cpu, &wanted);
		(void)pthread_setaffinity_np(pthread_self(), sizeof(wanted), &wanted);
		return;
	}
}

static void *thread_main(void *arg)
{
	struct port_thread *t = arg;

	prefer_cpu(t->cpu);
	t->fn(t->arg);
	return NULL;
}

struct port_thread *port_thread_start(void (*fn)(void *arg), void *arg, const char *name, int cpu)
{
	struct port_thread *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->fn = fn;
	t->arg = arg;
	t->cpu = cpu;
	if (thread_start(&t->thread, name, thread_main, t)) {
		free(t);
		return NULL;
	}
	return t;
}

void port_thread_join(struct port_thread *t)
{
	pthread_join(t->thread, NULL);
	free(t);
}

bool port_alone(void)
{
	cpu_set_t allowed;

	return !sched_getaffinity(0, sizeof(allowed), &allowed) && CPU_COUNT(&allowed) == 1;
}

void port_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* The process is preempted whenever others need the processor. */
void port_yield(void)
{
}

u64 port_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (u64)now.tv_sec * NS_PER_S + (u64)now.tv_nsec;
}

/* One address space: segments make one view only where they already lie side by side. */
void *port_dma_map(void *host, const struct embeng_segment *segments, u32 count, u64 length)
{
	const struct port_host *h = host;
	u64 end, whole = 0;
	u32 i;

	if (!count || !length)
		return NULL;
	for (i = 0; i < count; i++) {
		if (i && segments[i].address != segments[0].address + whole)
			return NULL;
		if (__builtin_add_overflow(whole, segments[i].length, &whole))
			return NULL;
	}
	if (whole < length || __builtin_add_overflow(segments[0].address, length, &end) ||
	    (h->dma_ok && !h->dma_ok(h->arg, segments[0].address, length)))
		return NULL;
	return (void *)(uintptr_t)segments[0].address;
}

void port_dma_unmap(void *host, void *view, u64 length)
{
	(void)host;
	(void)view;
	(void)length;
}

void port_interrupt(void *host, u32 vector)
{
	const struct port_host *h = host;

	h->interrupt(h->arg, vector);
}

u64 port_fault(void *host, enum port_fault fault, u32 target)
{
	const struct port_host *h = host;

	return h->fault ? h->fault(h->arg, fault, target) : 0;
}

bool port_has_keys(void *host)
{
	const struct port_host *h = host;

	return h->signature;
}

u32 port_signature(void *host, const void *image, u64 length, const void *message,
		   u64 message_length)
{
	const struct port_host *h = host;

	return h->signature(h->arg, image, length, message, message_length);
}

/* A process is itself the device. */
bool port_speed(void *host, struct port_speed *speed)
{
	(void)host;
	(void)speed;
	return false;
}

/* It has no sensors. */
bool port_thermal(void *host, struct port_thermal *thermal)
{
	(void)host;
	(void)thermal;
	return false;
}

/* The floating-point control word: rounding, traps, flush to zero. */
static u32 read_control(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_stmxcsr();
#elif defined(__aarch64__)
	return (u32)__builtin_aarch64_get_fpcr();
#else
	return 0;
#endif
}

static void write_control(u32 control)
{
#if defined(__x86_64__)
	__builtin_ia32_ldmxcsr(control);
#elif defined(__aarch64__)
	__builtin_aarch64_set_fpcr(control);
#else
	(void)control;
#endif
}

#if defined(__x86_64__)
#define CONTROL_DEFAULT 0x1f80u /* all exceptions masked */
#else
#define CONTROL_DEFAULT 0u
#endif

void port_fpu_begin(struct port_fpu *fpu)
{
	fpu->saved = read_control();
	write_control(CONTROL_DEFAULT);
}

void port_fpu_end(struct port_fpu *fpu)
{
	write_control(fpu->saved);
}

void port_log(void *host, enum port_log_level level, const char *fmt, ...)
{
	const struct port_host *h = host;
	char text[512];
	va_list args;

	if (!h->log)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	h->log(h->arg, level, text);
}
