/* SPDX-License-Identifier: MIT */
/*
 * Inside the device model: device, contexts, regions, queues, commands.
 *
 * Locks: engine->lock guards everything here, except where a comment gives a
 * member to the thread that has taken a command. Commands are checked, copied
 * and run without it. Three things take long under it: the self-tests of a boot,
 * the first mapping of a region, and freeing the tables of a context.
 */
#ifndef EMBENG_ENGINE_DEVICE_H
#define EMBENG_ENGINE_DEVICE_H

#include "../../uapi/embeng_barrier.h"
#include "../../uapi/embeng_firmware.h"
#include "../engine.h"
#include "pieces.h"

struct model;
struct context;
struct workers;
struct pool;
struct pending;
struct kernel_ops;
struct used_parts;
struct pcsr;

/* A fault of a command; goes into its completion as it is. */
struct fault {
	u16 status; /* enum embeng_status */
	u32 field;
	u32 feature;
	u64 element;
	u64 value;
	u64 limit;
};

/* Sets *fault and returns the status, so that callers can return it on. */
u16 fault_set(struct fault *fault, u16 status, u32 field, u32 feature, u64 element, u64 value,
	      u64 limit);

/* The reason why a command waits; becomes the report of its queue. */
struct wait {
	u32 what; /* enum embeng_wait */
	u32 replica;
	u64 step;
};

/* A region as resolved for one access: valid until region_put(). */
struct view {
	struct region *region;
	void *data; /* at the offset asked for; NULL when not given */
	u64 length;
};

/*
 * region_get() - resolve a key for an access of a command
 * @mem: private copy of what the program named
 * @rights: EMBENG_REGION_DEVICE_* needed
 * @align: element width in bytes; the offset must be a multiple
 *
 * Checks index, generation, rights, overflow, bounds and alignment, in this
 * order, and keeps the region from being invalidated until region_put(). Takes
 * engine->lock. Return: 0 or a status, with the command's fault set for @field and @feature.
 */
u16 region_get(struct command *command, const struct embeng_mem *mem, u32 rights, u32 align,
	       u32 field, u32 feature, struct view *view);
void region_put(struct context *context, struct view *view);

/* For one of several: engine->lock is held. */
u16 region_get_held(struct command *command, const struct embeng_mem *mem, u32 rights, u32 align,
		    u32 field, u32 feature, struct view *view);
/* Those of @views that were got. Takes engine->lock, once. */
void region_put_all(struct context *context, struct view *views, u32 count);

static inline bool mem_given(const struct embeng_mem *mem)
{
	return mem->index || mem->generation || mem->offset || mem->length;
}

struct command {
	struct embeng_cmd cmd; /* the private copy */
	struct queue *queue;
	struct context *context;
	struct command *next;  /* in its queue, oldest first */
	struct fault fault;    /* status 0 while all is well */
	u32 index;	       /* free-running submission index */
	u64 result;	       /* embeng_cqe.value on success */
	u64 ids, rows;	       /* looked up, and updated */
	u64 ready_ns;	       /* NOP: not before */
	u64 accepted_ns;       /* when it was fetched */
	u64 order;	       /* among the commands of its context, as they were committed */
	u64 began_ns;	       /* when it was last taken up, to be accepted or to run */
	u64 tag;	       /* its context's turn_tag() then */
	u64 lent_ns;	       /* used for other contexts since then, between its pieces */
	void *state;	       /* the model layer's; released by model_release() */
	struct model *brought; /* in place of the context's, while it runs; or NULL */
	bool holds_model;      /* the model layer counts it as a user of the model */
	bool cut;	       /* it was told to stop before its end; atomic */
	bool finishes;	       /* at work on tables: only the end of its context stops it */
	bool committed;	       /* checked and copied; may run when its turn comes */
	bool lost_data;	       /* while it worked, tables did: the device asks for a reset */
	struct used_parts
		*used; /* memory that it used, where that is recorded; see memory/record.c */
};

/* It stopped on the way, so what it made is not whole. */
static inline bool command_is_cut(const struct command *command)
{
	return command && __atomic_load_n(&command->cut, __ATOMIC_RELAXED);
}

/* Its context or its queue is to end; see piece_over(). */
bool command_stops(const struct command *command);

/* The status of a command that is cut, which its fault says, too. */
static inline u16 abort_command(struct command *command)
{
	return fault_set(&command->fault, EMBENG_STATUS_ABORTED, EMBENG_FIELD_NONE, EMBENG_NO_INDEX,
			 0, 0, 0);
}

enum verdict { VERDICT_READY, VERDICT_WAIT, VERDICT_FAILED };

/*
 * struct verb - the functions of an opcode, one for each phase of its command
 * @admits_itself: false: the command uses a loaded model. The model layer looks for one before it
 *	calls @admit, and counts the command as a user of it until the release
 * @without_model: whether a command that uses a loaded model is admitted also where there is none,
 *	which it then sees by @holds_model of the command. NULL: it is refused
 * @admit: lock held. May it be checked and copied now? READY, WAIT with *wait (its queue takes
 *	nothing further; tried again when something moved) or FAILED with command->fault. Takes
 *	what @accept needs (a step's slot). NULL: READY
 * @accept: no lock, the caller alone. Checks and copies all that the command names. Return: 0, or
 *	a status with command->fault
 * @commit: lock held. @status as @accept returned: makes the command visible to others (the step
 *	now has this part), or undoes @admit so that the same step may be given again. It may
 *	refuse a command of status 0 by command->fault
 * @ready: lock held. Can it run now? READY, WAIT with *wait, or FAILED with command->fault. NULL:
 *	READY
 * @bytes: lock held, READY. The memory that it touches, about: tells a command that is sooner done than
 *	another thread wakes up, and one that others need not wait for. NULL: unknown, taken as large
 * @run: no lock; one command of the device runs at a time. Does it, and sets command->result.
 *	Return: 0, or a status with command->fault
 * @finish: lock held, after @run or after the failure of a committed command: steps and models
 *	move on
 * @release: lock held, last: frees command->state
 *
 * The phases come in this order; one that is NULL does nothing. The verbs of a layer stand in one
 * table, by opcode: queue/command.c has NOP and FENCE, and model/dispatch.c has all others.
 */
struct verb {
	bool admits_itself;
	bool (*without_model)(const struct command *command);
	enum verdict (*admit)(struct command *command, struct wait *wait);
	u16 (*accept)(struct command *command);
	void (*commit)(struct command *command, u16 status);
	enum verdict (*ready)(struct command *command, struct wait *wait);
	u64 (*bytes)(const struct command *command);
	u16 (*run)(struct command *command);
	void (*finish)(struct command *command);
	void (*release)(struct command *command);
};

/* Sets the fault of a command that a phase refuses. Return: the verdict of the phase. */
static inline enum verdict refuse_command(struct command *command, u16 status, u32 field, u64 value,
					  u64 limit)
{
	fault_set(&command->fault, status, field, EMBENG_NO_INDEX, 0, value, limit);
	return VERDICT_FAILED;
}

/* Says what a command waits for; @what: enum embeng_wait. Return: the verdict of the phase. */
static inline enum verdict wait_for(struct wait *wait, u32 what, u32 replica, u64 step)
{
	*wait = (struct wait){ what, replica, step };
	return VERDICT_WAIT;
}

/* Another command of the device ends this wait, and the program need not do anything. */
static inline enum verdict wait_for_nothing(struct wait *wait)
{
	return wait_for(wait, EMBENG_WAIT_NOTHING, 0, 0);
}

/* The model layer's side of each phase: the queue layer calls these for all but its own verbs. */
enum verdict model_admit(struct command *command, struct wait *wait);
u16 model_accept(struct command *command);
void model_commit(struct command *command, u16 status);
enum verdict model_ready(struct command *command, struct wait *wait);
u64 model_touched(const struct command *command);
void model_run(struct command *command);
void model_finish(struct command *command);
void model_release(struct command *command);

/* Drops the context's model and tables; nothing of it is in flight. */
void model_destroy(struct context *context);

/* Drops the memory that the context keeps for PARTITION; none runs. */
void context_pcsr_free(struct context *context);

/* Drops the memory that the context keeps for exchanges of rows; none runs. */
void context_exchange_free(struct context *context);

/*
 * workers_new() - spread the rows and floats of one command over the threads of a pool
 * @engine: its pool grows to as many threads; without one, it gets a pool of its own
 * @cores: how many work on it, the caller too
 * @piece_done: called after each piece by the thread that did it, without a lock; of memory that is
 *	cleared the command is NULL
 *
 * Return: NULL without memory or threads.
 */
struct workers *workers_new(struct engine *engine, u32 cores,
			    void (*piece_done)(struct engine *engine, struct command *command));
void workers_free(struct workers *workers);

/*
 * workers_run() - fn(arg, task, worker) for task in [0, tasks), worker < cores
 * @command: the tasks are its work; its device has the workers
 *
 * Tasks are taken in order by whoever is free, the caller too; returns when all
 * are done. @bytes: memory touched in all; below engine->inline_bytes the
 * caller does it alone, since waking a sleeping core costs more. The result
 * of a task must not depend on which worker does it. Each task is a piece of the command, or
 * several.
 *
 * Return: false where the command is to stop: tasks were left out.
 */
bool workers_run(struct command *command, void (*fn)(void *arg, u64 task, u32 worker), void *arg,
		 u64 tasks, u64 bytes);

/*
 * workers_run_rows() - workers_run() for tasks of like size, each of which fetches ahead what the
 * next one begins with: a free worker takes several that follow each other
 */
bool workers_run_rows(struct command *command, void (*fn)(void *arg, u64 task, u32 worker),
		      void *arg, u64 tasks, u64 bytes);

/* A piece of a command is done: the device lives, however long the whole takes. No lock. */
void heartbeat_piece(struct engine *e, struct command *command);

struct region {
	u32 generation; /* the generation of the entry this was mapped from, 0: not mapped */
	u32 rights;
	u64 length;
	void *data;
	u32 users; /* accesses in flight */
};

struct context {
	struct engine *engine;
	u32 number;
	struct embeng_region *table; /* host memory, the driver writes it */
	u32 region_count;
	struct region *regions;	   /* as last mapped; [region_count] */
	struct model *model;	   /* the model layer's */
	struct pcsr *pcsr;	   /* memory of PARTITION, the one that runs */
	struct exchange *exchange; /* the same of UNIQUE, POOL and SUM */
	u32 report_epoch;
	u32 in_flight; /* commands accepted and not completed */
	u64 accepted;  /* commands in all */
	u32 accesses;  /* sum of users over its regions */
	bool dying;    /* nothing new is taken; freed when nothing is in flight */
	bool running;  /* a thread is running a command of it */
	bool moving;   /* since the last look something of it ran or could have run */
	u64 served_ns; /* virtual time up to which it had its share; see queue/share.c */
};

struct queue {
	struct engine *engine;
	struct context *context; /* NULL: the admin queue */
	u32 number;
	u32 kind; /* enum embeng_queue_kind */
	u32 priority;
	u32 replica;
	u32 vector;
	void *ring; /* mapped ring memory */
	struct embeng_queue_layout layout;
	struct embeng_doorbell *doorbell;
	u32 sq_head; /* the device's own indices; shared words are copies of them */
	u32 cq_tail;
	u32 armed;	/* embeng_doorbell.armed when it last interrupted */
	u32 state;	/* enum embeng_queue_state */
	u32 completed;	/* free-running index below which all commands are done */
	bool accepting; /* a thread is fetching from it */
	bool stuck;	/* its next command cannot be taken before something else moves */
	bool running;	/* a thread is running its oldest command */
	bool dying;	/* being destroyed: what waits is aborted, nothing more is taken */
	bool lost;	/* dying with its context, which the program is told */
	struct wait wait;
	struct command *oldest, *newest;
	u32 accepted; /* length of that list */
	u32 accept_limit;
	struct command *pool, *free; /* [accept_limit], and those not in use */
	u32 tail_seen, cq_head_seen; /* as of the last look */
	u32 tail_at_drain; /* submission tail when a DRAIN of the context was last accepted */
	u64 publish_ns;	   /* completions wait until then to be seen, 0: they do not */
	bool stalled;	   /* a fault: it takes nothing more */
	bool late;	   /* a fault: what is published later should have been there */
	u32 sent;	   /* completions given out, lost ones too */
	bool hung;	   /* dying: the oldest command made no progress, for so long */
	u32 hung_ms;
	u64 turn;		 /* engine->turn when it last ran a command */
	u64 busy_ns;		 /* worked for it */
	u64 ids, rows, commands; /* looked up, updated, completed */
	u32 waits[EMBENG_WAITS]; /* times that it began to wait, by enum embeng_wait */
	u32 progress;		 /* heartbeats at which it was known what it waits for */
	struct embeng_queue_report reported;
};

/* How serving a device has ended. */
enum served {
	SERVED_ASLEEP, /* nothing is left; a kick or its time wakes it */
	SERVED_AGAIN,  /* others want the thread, and something may be left */
	SERVED_LOOKED, /* the rest is long */
};

/* A device in the queue of its pool. The pool's lock guards it; see device/pool.h. */
struct served_state {
	enum served (*serve)(struct engine *e, bool briefly, u64 *wake_ns); /* NULL: nobody does */
	struct engine *next_member, *next;
	u64 wake_ns; /* when it is due */
	u32 servers; /* threads that serve it */
	bool queued;
	bool looked;  /* its work is long */
	bool leaving; /* no thread is to serve it any more */
	bool lending; /* atomic: a thread that works for it serves others, or must not */
};

struct engine {
	struct engine_config config;
	struct port_mutex *lock;
	struct port_event *bell; /* the last thread that served it has gone */
	int (*serve)(struct engine *e,
		     enum engine_run_mode mode); /* its work, see service_start() */
	struct pool *pool;			 /* the threads that work for it */
	struct served_state served;
	struct workers *workers;
	void (*beat)(struct engine *e); /* a sign of life, by who holds the lock; or NULL */
	/* Between pieces of a command, lock held: serves others; @command: NULL: the driver alone. */
	void (*attend)(struct engine *e, struct command *command);
	const struct kernel_ops *kernels;
	struct fetch_plan fetch; /* config.fetch leads here */
	bool stopping;
	bool sleeping; /* atomic: no thread looks at it, so that engine_kick() is to call one */
	bool busy;     /* a thread is in model_run() */
	bool left;     /* engine_run() of this thread has left a command to others */
	bool cut_off;  /* from the host's memory */
	struct embeng_caps caps;
	u32 inline_bytes;
	u32 heartbeat_ms;
	u64 firmware_minimum;
	u32 boot_sequence, control_sequence; /* last answered */
	u64 table_memory_used;
	struct context **contexts; /* [caps.contexts] */
	u32 context_count;	   /* contexts that exist */
	struct queue **queues;	   /* [config.queues]; 0 is the admin queue */
	struct queue **order;	   /* [config.queues]; by priority, then number */
	u32 order_count;
	u64 turn;
	u64 share_ns;		 /* virtual time: where the context stands that was taken up last */
	struct pending *pending; /* admin commands that wait for accesses in flight */
	u32 pending_count;
	bool resetting;		       /* a warm reset waits for what is in flight */
	u64 wake_ns;		       /* when the next delayed NOP is due, U64_MAX: none */
	u64 heartbeat_ns, attended_ns; /* atomic */
	u64 progress_beaten;	       /* EMBENG_REG_PROGRESS at the last heartbeat */
	u32 attending; /* depth: a command that is run between pieces has pieces, too */
	u64 now_ns;    /* the clock when it was last read: a reading costs more than most looks */
	u32 pieces;    /* pieces of commands, done by any thread */
	struct {
		u64 time_ns, busy_ns; /* up to which power and temperature go */
		u32 power_uw;
		s64 temperature_uc; /* 0: not known yet */
	} thermal;
	u64 charged_bytes, charged_rows; /* the counters as far as they were charged */
	u64 free_ns;			 /* when what was charged is over */
	u64 virtual_ns;			 /* the device's clock, when it is not the host's */
	bool recording;			 /* config.recorder gets what happens */
	u32 recorded;			 /* entries so far */
};

static inline void *reg_at(struct engine *e, u32 offset)
{
	return (u8 *)e->config.registers + offset;
}

u32 reg_read32(struct engine *e, u32 reg);
u64 reg_read64(struct engine *e, u32 reg);
void reg_write32(struct engine *e, u32 reg, u32 value);
void reg_write64(struct engine *e, u32 reg, u64 value);
/* Adds to a counter register; any thread. */
void reg_count(struct engine *e, u32 reg, u64 add);
/* A core has worked so long; any thread. */
void busy_core(struct engine *e, u32 core, u64 passed_ns);

/* From here on engine->lock is held, but where a comment says otherwise. */

/* clock.c: e->now_ns, which never goes back */
u64 clock_read(struct engine *e);
void clock_saw(struct engine *e, u64 now); /* for a time that was read without the lock */

/* thermal.c */
void thermal_begin(struct engine *e);
void thermal_step(struct engine *e); /* does nothing when little time has passed */

/* events.c */
struct event {
	u32 context; /* or EMBENG_NO_INDEX */
	u32 queue;   /* or EMBENG_EVENT_NO_QUEUE */
	u32 detail;
	u64 value;
};
void event_open(struct engine *e);
void event(struct engine *e, u32 kind, const struct event *what);
void event_of_device(struct engine *e, u32 kind, u32 detail, u64 value);
void event_of_context(const struct context *c, u32 kind, u64 value);
void event_of_queue(const struct queue *q, u32 kind, u32 detail, u64 value);

/* region.c */
u16 region_table_map(struct context *c, u64 address, u32 count);
void region_table_unmap(struct context *c);
bool region_invalidate(struct context *c, u32 index); /* false: an access is in flight */

/* service.c; without the lock */
/* @run: called by the thread again and again; returns whether something moved */
int service_start(struct engine *e, int (*run)(struct engine *e, enum engine_run_mode mode));
void service_stop(struct engine *e);

#endif
