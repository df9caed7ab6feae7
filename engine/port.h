/* SPDX-License-Identifier: MIT */
/*
 * The functions that the engine needs of its host, and nothing else: the one file between
 * engine/ and the world. Each host (process, kernel module) implements it once.
 */
#ifndef EMBENG_ENGINE_PORT_H
#define EMBENG_ENGINE_PORT_H

#include "types.h"

#ifdef __KERNEL__
#include <linux/string.h>
#else
#include <string.h>
#endif

struct port_mutex;
struct port_event;
struct port_thread;

/* Memory, zeroed. NULL when there is none. Small things and per-step copies. */
void *port_alloc(u64 bytes);
void port_free(void *p);

/*
 * Called between the pieces in which a host clears memory, if it has to: by the thread that
 * allocates. NULL: nobody waits for a sign of life.
 */
struct port_pace {
	void (*piece)(void *arg);
	void *arg;
};

/* The same for what may be large. */
void *port_alloc_large(u64 bytes, const struct port_pace *pace);

/*
 * Memory for tables and slots, zeroed, page-aligned, huge pages where the host
 * has them. Pages that are never touched cost nothing.
 */
void *port_alloc_table(u64 bytes, const struct port_pace *pace);
void port_free_table(void *p, u64 bytes);

/*
 * Between the two, what this thread allocates is charged to whoever the memory @at, which is
 * mapped, was allocated for, if the host counts that.
 */
void *port_charge_begin(const void *at);
void port_charge_end(void *charged);

struct port_mutex *port_mutex_new(void);
void port_mutex_free(struct port_mutex *m);
void port_lock(struct port_mutex *m);
void port_unlock(struct port_mutex *m);

/*
 * An event is a counter that can be waited for. port_event_wait() returns when
 * the counter is no longer @seen, or after @timeout_ns (U64_MAX: no limit), or
 * for no reason.
 */
struct port_event *port_event_new(void);
void port_event_free(struct port_event *e);
u32 port_event_read(struct port_event *e);
void port_event_wait(struct port_event *e, u32 seen, u64 timeout_ns);
void port_event_signal(struct port_event *e);
/* Counts as well, and wakes @count of those who wait, at least. */
void port_event_signal_some(struct port_event *e, u32 count);

/*
 * @cpu: number of the preferred one among the processors that the host may use, or -1. Joined by
 * port_thread_join().
 */
struct port_thread *port_thread_start(void (*fn)(void *arg), void *arg, const char *name, int cpu);
void port_thread_join(struct port_thread *t);
void port_relax(void); /* inside a spin */
void port_yield(void); /* between two pieces of long work: others may have the processor */
bool port_alone(void); /* the caller has one processor: a spin would keep others from running */

u64 port_now_ns(void); /* monotonic */

/*
 * DMA. The engine reaches memory that the driver gave it by DMA address.
 * port_dma_map() makes one contiguous view of segments, or NULL when any of it
 * is not memory that the device was given.
 */
struct embeng_segment;
void *port_dma_map(void *host, const struct embeng_segment *segments, u32 count, u64 length);
void port_dma_unmap(void *host, void *view, u64 length);

void port_interrupt(void *host, u32 vector);

/*
 * Brackets every call into engine/kernels/: default rounding, denormals kept,
 * whatever the caller's environment. Not nested, no sleeping inside.
 */
struct port_fpu {
	u32 saved;
};
void port_fpu_begin(struct port_fpu *fpu);
void port_fpu_end(struct port_fpu *fpu);

/*
 * Faults that a host injects to see how others bear them. port_fault() is asked at each
 * occasion and is not 0 when the fault strikes now; what the number says stands here, with
 * the target that it is asked for. A host without faults answers 0.
 */
enum port_fault {
	PORT_FAULT_DROP_COMPLETION,    /* queue */
	PORT_FAULT_DELAY_COMPLETION,   /* queue; ns */
	PORT_FAULT_CORRUPT_COMPLETION, /* queue */
	PORT_FAULT_STALL_QUEUE,	       /* queue: takes nothing more until it is destroyed */
	PORT_FAULT_REFUSE_REGION,      /* context */
	PORT_FAULT_DMA_ERROR,	       /* queue whose command meets it */
	PORT_FAULT_ECC_CORRECTABLE,    /* queue whose command meets it */
	PORT_FAULT_ECC_UNCORRECTABLE,  /* queue whose command meets it */
	PORT_FAULT_FIRMWARE_REFUSES,   /* enum embeng_boot_error */
	PORT_FAULT_HEARTBEAT_STOPS,
};
u64 port_fault(void *host, enum port_fault fault, u32 target);

/*
 * How fast the device is to look, when the host models one: what a command costs, beginning
 * when it was accepted and the one before it was over. Its completion is seen no earlier and
 * carries that time. With @virtual_time nothing waits, and completions carry what the clock
 * of such a device would show. False: as fast as it goes, at the host's time.
 */
struct port_speed {
	u64 fixed_ns;
	u64 ns_per_kib; /* for table rows and gradients to and from the host */
	u64 ns_per_row; /* looked up or updated */
	bool virtual_time;
};
bool port_speed(void *host, struct port_speed *speed);

/*
 * The device as a heat source and its clock, when the host models them. False: the registers say
 * that nothing is measured.
 */
struct port_thermal {
	u32 ambient_mc; /* thousandths of a degree Celsius */
	u32 limit_mc;	/* critical temperature of the engine, not 0 */
	u32 mk_per_w;	/* how much warmer than @ambient_mc for each watt, in the end */
	u32 time_ms;	/* in which 63 % of the way there are gone */
	u32 idle_uw;
	u32 full_uw;  /* with all cores busy, not below @idle_uw */
	u32 idle_khz; /* clock of the engine, not above @full_khz */
	u32 full_khz; /* with all cores busy; 0: the device does not tell its clock */
};
bool port_thermal(void *host, struct port_thermal *thermal);

/*
 * The keys of a device whose host gives it some: such a device boots signed images alone.
 * port_signature() says whether one of them has signed @image by the PKCS #7 message @message; it
 * may sleep. Return: enum embeng_boot_error, NONE or one of those about signatures, or MEMORY.
 */
bool port_has_keys(void *host);
u32 port_signature(void *host, const void *image, u64 length, const void *message,
		   u64 message_length);

enum port_log_level { PORT_LOG_ERROR, PORT_LOG_WARNING, PORT_LOG_INFO, PORT_LOG_DEBUG };
void port_log(void *host, enum port_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
