/* SPDX-License-Identifier: MIT */
/*
 * An open device with a model: replicas, the steps in flight, their buffers.
 *
 * e->lock guards all members, except where a comment says otherwise. It is never held while
 * waiting for the engine: wait_until() lets go of it.
 */
#ifndef EMBENG_SESSION_H
#define EMBENG_SESSION_H

#include <pthread.h>

#include "base/error.h"
#include "base/fork.h"
#include "base/log.h"
#include "device/buffer.h"
#include "device/device.h"
#include "device/layout.h"
#include "device/ring.h"
#include "device/status_text.h"
#include "model/model.h"

#include "batch/batch.h"

enum slot_state {
	SLOT_FREE,
	SLOT_LOOKUP,   /* submitted, not accepted */
	SLOT_ACCEPTED, /* may be dequeued */
	SLOT_VIEW,     /* dequeued, the program has the activations */
	SLOT_IDS,      /* the ids of an update that had no lookup: no view is made of it */
	SLOT_UPDATE,   /* gradients handed in, not applied */
};

/* One batch from enqueue to its end: memory, commands, views. */
struct slot {
	struct embeng *e;
	enum slot_state state;
	enum embeng_mode mode;
	uint32_t replica;
	uint64_t step;	  /* training */
	uint64_t order;	  /* number of the enqueue within the replica */
	bool ids_only;	  /* it has no activations: embeng_update() */
	pthread_t viewer; /* the thread that dequeued it */
	struct request lookup, update;
	struct region input;		     /* descriptor and copies of ids */
	struct region activations;	     /* all features, one after another */
	struct region gradients;	     /* descriptor and rates, then the same shapes */
	uint64_t *at;			     /* [features] byte offset in activations */
	uint64_t *elements;		     /* [features] */
	uint64_t bytes;			     /* bytes of the activations */
	struct embeng_view *views;	     /* [features] */
	const struct embeng_output *outputs; /* [features] of an embeng_lookup(), or NULL */
	struct embeng_mem *placed; /* [features] where the engine writes them in place, or zeros */
	int64_t **lengths;	   /* [features], sequence features */
	struct output *resolved;   /* [features] */
	struct array *arrays;	   /* offsets, ids, weights of features, then those of stacks */
	struct pins input_pins, gradient_pins;
	uint32_t *rates; /* f32 bits of the dynamic rates of its update, as @multiplier */
	uint32_t multiplier;
	bool sums;	     /* its gradients are sums; see sums.c, and @takes_sums */
	bool withdrawn;	     /* a lookup of a step before failed, so this one will */
	struct cargo *cargo; /* NULL without a group of hosts */
	int ready; /* sync_file of a view that was given before its lookup was done, or -1 */
};

struct replica {
	bool started; /* this handle feeds it; always, unless the context is shared */
	struct ring input, inference, gradient;
	struct slot *training, *serving; /* [slot_count] each */
	uint64_t applied;		 /* last step whose update is done */
	uint64_t order;
};

/* Values that all replicas of a step must agree on, as f32 bits, and how many gave it up. */
struct agreed {
	uint64_t step;	/* 0: none yet */
	uint64_t count; /* steps of the optimizers before it, from 1: 0: nobody has asked */
	const struct slot *giver; /* the first that gave gradients, with: */
	uint32_t multiplier;
	uint32_t *rates;
	uint32_t discards;
};

/*
 * The public functions that do something else for a handle whose tables lie on the hosts of a group (hosts/).
 * They check their arguments, and go on here. A function that is NULL is refused. @status: what was found,
 * where all hosts must learn it: 0, or a negative errno with the thread's last sentence.
 */
struct rows_asked;
struct rows_reading;
struct norm_call;
struct norm_fault;

struct calls {
	int (*enqueue)(struct embeng *e, struct embeng_batch *b, int64_t timeout_ns);
	int (*dequeue)(struct embeng *e, uint32_t replica, int64_t timeout_ns,
		       struct embeng_activations *activations);
	int (*lookup)(struct embeng *e, struct embeng_batch *b, const struct embeng_output *outputs,
		      int64_t timeout_ns);
	int (*apply)(struct embeng *e, const struct embeng_gradients *g);
	int (*update)(struct embeng *e, struct embeng_batch *b, const struct embeng_gradients *g,
		      int64_t timeout_ns);
	int (*discard)(struct embeng *e, uint32_t replica);
	float *(*gradient_buffer)(struct embeng *e, struct slot *slot, size_t feature);
	int (*flush)(struct embeng *e, int64_t timeout_ns);
	int (*fd)(struct embeng *e);
	int (*rows)(struct embeng *e, const struct rows_asked *asked);
	int (*read_together)(struct embeng *e, const char *what,
			     const struct rows_reading *readings, size_t count, int status);
	int (*norm)(const struct norm_call *call, int status, double *squares,
		    struct norm_fault *fault);
	int (*step)(struct embeng *e, uint64_t *step);
	int (*set_step)(struct embeng *e, uint64_t step, int status);
	int (*freeze)(struct embeng *e, int table, int frozen, int status);
	int (*stats)(struct embeng *e, int table, int clear, struct embeng_table_stats *stats,
		     int status);
	int (*save)(struct embeng *e, const char *dir, const struct embeng_save_options *options);
	int (*restore)(struct embeng *e, const char *dir,
		       const struct embeng_restore_options *options);
	void (*info)(struct embeng *e, struct embeng_device_info *info);
	void (*close)(struct embeng *e);
};

struct hosts;

struct embeng {
	pthread_mutex_t lock;
	uint32_t fork;		    /* constant, as all up to @slot_count */
	struct embeng_model *model; /* replaced by embeng_add_tables() alone, as @model_hash */
	const struct kernel_ops *kernels; /* the best of this processor */
	uint64_t model_hash;
	struct embeng_model **replaced; /* [replaced_count], kept for embeng_get_model() */
	size_t replaced_count;
	size_t begun; /* tables of @model that have the rows that they begin with */
	struct device *device;
	const struct calls *calls;		/* NULL without a group of hosts */
	struct hosts *hosts;			/* likewise; @device is then its owner handle's */
	uint32_t first_replica, local_replicas; /* those that this process feeds */
	struct embeng_group *group;		/* that embeng_close() closes, or NULL */
	uint32_t replica_count, depth, slot_count;
	struct ring transfer;
	struct ring **rings; /* [ring_count], those that are open */
	uint32_t ring_count;
	struct replica *replicas;
	struct embeng_replica_steps *steps; /* [replica_count], see session_steps() */
	struct output *outputs;		    /* [features] */
	struct agreed *agreed;		    /* [depth], step n at n % depth */
	uint64_t updates_before; /* that a restore brought, less this session's until then */
	uint64_t skipped;	 /* steps that all replicas gave up: they count for no schedule */
	uint64_t fenced;	 /* last step whose gradients wait for a fence */
	uint32_t gate;		 /* commands that still read the tables: no update may pass */
	uint32_t shut_out;	 /* updates that wait until no reader has the gate */
	uint32_t direct;	 /* calls that read rows where the engine has them */
	uint32_t changing;	 /* commands that change rows, under way or waiting for those */
	struct buffers buffers;
	bool *null_gradient_said; /* [features] */
	bool *takes_sums; /* [features] that are given sums of gradients by all updates, or NULL */
	bool *frozen;	  /* [tables], atomic; see freeze.c */
	bool wants_fd;	  /* embeng_fd() was called: interrupts stay armed */
	bool shared;	  /* other handles may feed replicas of the same context */
	bool interrupted; /* atomic; see embeng_interrupt() */
	int failed;	  /* an update failed after it was taken */
	char failed_text[EMBENG_ERROR_TEXT];
	struct embeng_counter_values counters;
	struct log log;		 /* has its own lock */
	struct tracer *tracer;	 /* constant, with its own lock; NULL: nothing is recorded */
	pthread_mutex_t saves;	 /* one snapshot at a time; taken before e->rows */
	pthread_mutex_t rows;	 /* one row transfer at a time; taken before e->lock */
	struct region staging;	 /* its memory */
	pthread_mutex_t grid;	 /* one partitioning at a time; taken before e->lock */
	struct region partition; /* its memory */
};

/* handle/check.c: 0, or -EINVAL for NULL, -ENOTSUP in the child of a fork. */
int session_check(const struct embeng *e, const char *call);
/* The same of a call that a handle over a group of hosts refuses, with -ENOTSUP. */
int session_check_alone(const struct embeng *e, const char *call);
int session_check_replica(const struct embeng *e, uint32_t replica, const char *call);
/* For a batch of @mode: one that trains must be of a replica of this host. */
int session_check_feeder(const struct embeng *e, uint32_t replica, enum embeng_mode mode,
			 const char *call);

/*
 * load.c: loads e->model, whose tables an @attached context has already. Then gives tables the rows that
 * they begin with, where they have none yet. Without e->lock.
 */
int session_load(struct embeng *e, bool attached);
int session_begin_tables(struct embeng *e);
/* Gives the engine a blob. Return: 0 with the engine's @answer, or a negative errno. */
int session_load_blob(struct embeng *e, const struct model_blob *blob, struct embeng_cqe *answer);
/* Whether the device has memory for the tables of a model. */
int session_check_limit(const struct embeng *e, const struct embeng_model *model);
uint64_t blob_hash(const struct model_blob *blob);
void session_free_models(struct embeng *e);

/* Room for a model of more features, tables and rates. Return: 0, or -ENOMEM with all as it was. */
int session_grow(struct embeng *e, const struct embeng_model *larger);

/* Replicas of a shared context start with their first batch. */
int session_start(struct embeng *e);
/* The same for a handle over a group of hosts: replicas of this host, without queues. */
int session_start_local(struct embeng *e, uint32_t depth);
void session_stop(struct embeng *e);
int session_start_replica(struct embeng *e, uint32_t index);
/* enqueue.c: 0, or an errno for a batch that is not this handle's, or cannot train. */
int session_check_batch(const struct embeng *e, struct embeng_batch *b, const char *call);
/* From now on others may feed the replicas that this handle has not fed yet. */
void session_share(struct embeng *e);

/* rings.c: takes all completions of all queues. */
void session_reap(struct embeng *e);

/* Each open ring of the session; NULL behind the last. */
struct ring *session_ring(struct embeng *e, uint32_t index);

struct deadline;

/*
 * enqueue.c, e->lock held: a free slot for a batch, or NULL for -EBUSY; waiting until its step is
 * within the step depth; its LOOKUP, which is accepted on return.
 */
struct slot *slot_take(struct embeng *e, const struct embeng_batch *b);
int slot_await_room(struct embeng *e, struct slot *slot, struct deadline deadline);
/* Whether the step of a slot, @arg, is within the step depth; the sentence for one that is not. */
bool slot_has_room(struct embeng *e, void *arg);
int slot_say_room(struct embeng *e, const struct slot *slot, int ret);
/* The first accepted batch fixes what was open, if the model wants that. */
void session_fix_outputs(struct embeng *e, const struct slot *slot);
int slot_look_up(struct embeng *e, struct slot *slot, const struct embeng_batch *b,
		 const struct embeng_mem *descriptor, uint64_t after);

/*
 * gradients.c: makes the UPDATE of a slot in its memory; without e->lock. Then hands it to the
 * engine; e->lock held.
 */
int update_make(struct embeng *e, struct slot *slot, const struct embeng_gradients *g);
int update_give(struct embeng *e, struct slot *slot, const struct embeng_gradients *g,
		struct deadline deadline);
/* update.c: whether a replica, @arg, has no view; the sentence for one that has, @ret: its errno. */
bool update_has_no_view(struct embeng *e, void *arg);
int update_say_older(const struct embeng *e, uint32_t replica, int ret);
/* The same for a slot that no gradients come for. */
int update_discard(struct embeng *e, struct slot *slot, struct deadline deadline);
/* gradients.c: the oldest view of a replica, or NULL with a sentence for -EPROTO; e->lock held. */
struct slot *session_view_or_fail(struct embeng *e, uint32_t replica);

/*
 * agreed.c, e->lock held: the slot's rates and multiplier are those of its step, until it takes
 * them back; a replica gives a step up; the number that a step has for schedules, from 1; the
 * number of the step before the next, now that @after is applied.
 */
int step_agree(struct embeng *e, const struct slot *slot);
void step_take_back(struct embeng *e, const struct slot *slot);
void step_give_up(struct embeng *e, uint64_t step);
uint64_t step_count(struct embeng *e, uint64_t step);
/* The same where it is known which of the steps before were given up. */
uint64_t step_count_behind(const struct embeng *e, uint64_t step);
void step_set(struct embeng *e, uint64_t after, uint64_t number);

/* descriptor.c: what the engine reads. e->lock is held, but while arrays are copied. */
int describe_lookup(struct embeng *e, struct slot *slot, const struct embeng_batch *b,
		    struct embeng_mem *descriptor);
/* Copies @bytes and counts them. */
void copy_counted(struct embeng *e, void *to, const void *from, uint64_t bytes);
/* descriptor.c, e->lock held: finds the arrays that lie in buffers, and pins the buffers. 0, or -ENOMEM. */
int arrays_pin(struct embeng *e, struct array *arrays, size_t count, struct pins *pins);

/*
 * outputs.c: checks the caller's outputs of an embeng_lookup(), and finds those that lie in buffers;
 * e->lock held. Then copies the others out of the slot; without it.
 */
int outputs_place(struct embeng *e, struct slot *slot, const struct embeng_batch *b);
void outputs_copy(struct embeng *e, const struct slot *slot, const struct embeng_batch *b);

/* lookup_error.c: the sentence of a failed lookup. Returns the negative errno. */
int lookup_error(const struct embeng *e, const struct embeng_batch *b, const struct embeng_cqe *c);

/*
 * command_error.c: sentences of other commands, which name the table or feature at fault. @what
 * starts them; they return the negative errno.
 */
int table_command_error(const struct embeng *e, const char *what, const struct embeng_cqe *c);
int feature_command_error(const struct embeng *e, const char *what, const struct embeng_cqe *c);
struct embeng_rows;
int rows_command_error(const struct embeng *e, const char *what, const struct embeng_rows *rows,
		       const struct embeng_cqe *c);

/* finite.c: the sentence of a gradient that is not finite. Returns the negative errno. */
int gradient_error(const struct embeng *e, uint64_t step, uint32_t replica, uint32_t feature,
		   uint64_t element, float value);
/*
 * gradients.c: the counts of what the caller gave, against the @elements of each feature. @what starts
 * the sentence. Return: 0, -EINVAL.
 */
int gradients_check_given(const struct embeng *e, const char *what, const uint64_t *elements,
			  const struct embeng_gradients *g);
/* The same for those of a step; its multiplier; a warning, once, that a feature's are taken as zeros. */
int gradients_check_step(const struct embeng *e, const struct slot *slot,
			 const struct embeng_gradients *g);
int gradients_take_multiplier(struct slot *slot, const struct embeng_gradients *g);
void gradients_say_null(struct embeng *e, size_t f);
/* Whether the library refuses such gradients itself. */
bool gradients_are_checked(const struct embeng *e, const struct slot *slot, size_t f);
/* Looks at a feature's gradients. Return: 0, or -ERANGE for one that is refused. */
int gradients_check(const struct embeng *e, const struct slot *slot, size_t f, const float *from);
/* Copies and counts a feature's gradients; otherwise likewise. */
int gradients_copy(struct embeng *e, const struct slot *slot, size_t f, float *to,
		   const float *from);

/* submit.c: once the ring has room, and for an update the gate is open; waits for that. */
int submit(struct embeng *e, struct ring *ring, struct embeng_cmd *cmd, struct request *request);

/*
 * gate.c: the tables stand as they are after @step until gate_leave(). e->lock
 * held, but not while waiting.
 */
int gate_enter(struct embeng *e, struct deadline deadline, const char *call, uint64_t *step);
void gate_leave(struct embeng *e);
/*
 * Lets updates that wait for the gate go first, of a caller that has no part in it yet: threads that
 * read all the time would otherwise keep updates out for ever.
 */
int gate_give_way(struct embeng *e);
/*
 * direct.c, e->lock held: whether this handle can read rows where the engine has them; and if it
 * can, the rows stand as gate_enter() says until direct_leave(), without a command.
 */
bool direct_can(const struct embeng *e);
int direct_enter(struct embeng *e, struct deadline deadline, const char *call);
void direct_leave(struct embeng *e);
/* A transfer command from submission to its end; the other leaves its status to the caller. */
int transfer_quietly(struct embeng *e, struct embeng_cmd *cmd, struct embeng_cqe *answer);
int transfer(struct embeng *e, struct embeng_cmd *cmd, const char *what, struct embeng_cqe *answer);

/*
 * fence.c, e->lock held. The lookup's sync_file, once it can have one; else the lookup is waited
 * for. The descriptor is the caller's.
 */
int fence_of_lookup(struct embeng *e, struct slot *slot, struct deadline deadline, int *file);
/* Can these gradients wait for what they say? Without e->lock. */
int fences_check(const struct embeng *e, const struct slot *slot, const struct embeng_gradients *g);
/* submit() of an UPDATE behind them, and behind its own LOOKUP. */
int fences_submit(struct embeng *e, struct slot *slot, const struct embeng_gradients *g,
		  struct deadline deadline, struct embeng_cmd *cmd);

/* Whether the gradients of a feature are sums. */
static inline bool slot_takes_sums(const struct embeng *e, const struct slot *slot, size_t f)
{
	return slot->sums || (e->takes_sums && e->takes_sums[f]);
}
/* sums.c: notes whether the gradients are sums, and checks that those can be taken. */
int sums_check_table(const struct slot *slot, const struct table *t);
/* Returns -EINVAL: sums came for bags. */
int sums_refuse_bags(const struct slot *slot, const char *feature);
int sums_take(const struct embeng *e, struct slot *slot, const struct embeng_gradients *g);

/* freeze.c: whether updates do not change the table of a feature, as far as this handle knows. */
bool session_leaves_alone(const struct embeng *e, size_t feature);
/* The gradients that a caller gave for a feature; NULL also where nobody will read them. */
const float *session_gradient(const struct embeng *e, const struct embeng_gradients *g,
			      size_t feature);

/*
 * rates.c: the dynamic rates of this step, into the slot. Without e->lock.
 * Return: 0, -EINVAL, -ENOENT, -ERANGE.
 */
int rates_take(struct embeng *e, struct slot *slot, const struct embeng_gradients *g);
/*
 * Over hosts it is not known before all gradients of a step have come whether it is given up, which schedules of
 * later steps do not count. rates_defer() replaces what rates_take() computed by RATE_OF_SCHEDULE, and
 * rates_find() has the value, without e->lock, once all steps before @step are over: NaN if there is none.
 */
#define RATE_OF_SCHEDULE 0x7fc05c4du /* a NaN: no rate that is given has it */
void rates_defer(const struct embeng *e, struct slot *slot, const struct embeng_gradients *g);
float rates_find(struct embeng *e, uint64_t step, size_t rate, uint32_t given);

/*
 * progress.c: 0, or -EPROTO: a lookup of a step before failed, and this one's step is open again.
 */
int session_withdrawn(const struct slot *slot);

/* wait_lookup.c: until the lookup is done; what failed frees its slot. */
int session_await(struct embeng *e, struct slot *slot, struct deadline deadline);

/*
 * dequeue.c: the views of a slot, whose activations stand where @at says; what the program gets of
 * them. descriptor.c: ids per sample of sequence features, for the views.
 */
int session_check_activations(const struct embeng_activations *activations);
void slot_make_views(struct embeng *e, struct slot *slot);
void session_show(const struct slot *slot, struct embeng_activations *activations);
int slot_note_lengths(struct embeng *e, struct slot *slot, const struct embeng_batch *b);

/* slot.c */
int slot_init(struct embeng *e, struct slot *slot);
/* Room in a slot for a larger model. Return: 0, or -ENOMEM. */
int slot_grow(struct slot *slot, const struct embeng_model *larger);
void slot_free(struct slot *slot);
/* Closes the fence of a view, if it has one. */
void fence_forget(struct slot *slot);
/* The oldest slot of a replica in a state, or NULL; @serving: also of inference batches. */
struct slot *slot_oldest(struct embeng *e, uint32_t replica, enum slot_state state, bool serving);
/* The oldest dequeued training batch without gradients, or NULL. */
struct slot *session_view(struct embeng *e, uint32_t replica);
/* Memory of a replica's activations or gradients that @p lies in, or NULL. */
const struct region *slot_region(const struct embeng *e, const struct replica *r, const void *p);

/*
 * progress.c: the steps as this handle sees them, for the rules of uapi/embeng_steps.h. Commands
 * count once they are submitted. A replica that another handle may feed is taken to be ahead of
 * all steps, since only the device knows how far it is.
 */
struct embeng_steps session_steps(const struct embeng *e);

/* Writes what the next step still needs: "step 12: gradients of replica 1". */
void missing_part(struct embeng *e, char *text, size_t size);
/* The view whose gradients the next step still needs, or NULL. */
struct slot *missing_view(struct embeng *e);
/* Writes what a command still needs that has to wait, as the rules of steps say. */
void waited_part(struct embeng *e, struct embeng_step_answer wait, char *text, size_t size);
/* Writes what a queue still needs, as the device reports it; false when it reports nothing. */
bool reported_part(const struct ring *ring, char *text, size_t size);

/* Step that all replicas of this handle handed in gradients for. */
uint64_t session_complete(const struct embeng *e);
uint64_t session_applied(const struct embeng *e);

/*
 * open.c: opens a device that no group shares. hosts/ builds embeng_open() on it, and handles that have
 * no device of their own on the other two: one that nothing is set in but its locks, and its end.
 */
int session_open(const struct embeng_open_options *options, const struct embeng_model *model,
		 struct embeng **out);
struct embeng *session_new(void);
void session_destroy(struct embeng *e);
/* The thread's last error, for a caller's own. */
void give_error(struct embeng_error *error);

#endif
