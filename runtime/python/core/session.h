/* SPDX-License-Identifier: MIT */
/*
 * Steps of an engine whose order is checked, for programs that call one after another: enqueue, dequeue,
 * apply gradients, for each replica. A call for which the engine would wait for gradients is refused by
 * name (-EPROTO), because in such a program nothing that comes later can end the wait.
 *
 * Engines are given by their numbers (handles.h). An engine has one session, which is made by the first
 * call and lasts as long as its handle is open. Functions return 0, or a negative errno with the error
 * of their struct session_call filled. They need no Python, and any thread may call them at any time, also
 * while the engine is closed.
 */
#ifndef EMBENG_PYTHON_SESSION_H
#define EMBENG_PYTHON_SESSION_H

#include "raw.h"

/*
 * The engine of a call, and how it waits. Within @timeout_ns another thread may do what a call needs. Meanwhile @ask, if
 * it is not NULL, is called every 20 ms without any lock; the call ends with -EINTR when it returns
 * another number than 0.
 */
struct session_call {
	int64_t engine, timeout_ns;
	int (*ask)(void *arg);
	void *arg;
	struct embeng_error *error;
};

/* One feature of a batch: its input, and what its activations are to be. */
struct session_feature {
	struct raw_feature input; /* without outputs and gradients */
	int64_t samples;	  /* rows of the activations */
	bool weighted;		  /* there are weights, as many as ids, which is checked */
	bool sequence; /* each id has a row of its own, also with as many rows as samples */
};

/* A batch of one replica. Features that are left out have no samples. */
struct session_batch {
	uint32_t replica;
	const struct session_feature *features;
	size_t count;
};

/* The numbers of the modes that do not change; raw_session_add_mode() gives others. */
enum { SESSION_MODE_INFERENCE, SESSION_MODE_TRAIN, SESSION_MODE_FIRST };

/*
 * Looks a batch up for each of some replicas; after an error there is none of any. @mode: whether
 * gradients will come.
 */
int raw_session_enqueue(const struct session_call *call, const struct session_batch *batches,
			size_t count, int64_t mode);

/* The oldest batch of a replica. Its views are there until the gradients of a training batch are given. */
struct session_view {
	struct open_engine *open;
	struct embeng_activations activations;
};

/* Takes it. After 0 the caller calls raw_session_end_view(), which ends views of inference. */
int raw_session_dequeue(const struct session_call *call, uint32_t replica,
			struct session_view *view);
void raw_session_end_view(struct session_view *view);

/* Gradients of one feature. Those of features that are left out are zeros: their rows are touched. */
struct session_gradient {
	int feature;
	const float *data;
	size_t elements;
	int64_t columns; /* the last dimension, checked; -1: it is not known */
};

/* Gives them to the oldest training batch of a replica that was dequeued. */
int raw_session_apply(const struct session_call *call, uint32_t replica,
		      const struct session_gradient *gradients, size_t count,
		      const struct embeng_rate *rates, size_t rate_count);

/* Takes back every batch that is under way. @count: how many there were. */
int raw_session_discard(const struct session_call *call, int64_t *count);

/*
 * Modes that a program finds out after it has made a graph: a batch reads that of its number when it is
 * enqueued.
 */
int raw_session_add_mode(const struct session_call *call, bool train, int64_t *number);
int raw_session_set_mode(const struct session_call *call, int64_t number, bool train);

/* Frees the session of an engine, before the handle is closed. */
void raw_session_free(struct open_engine *open);

/* -- session_forms.c: inputs as the engine takes them -------------------------------- */

/* An input, and the memory of one that had to be made. */
struct session_input {
	struct raw_feature input;
	void *ids;
	int64_t *splits;
	float *weights;
};

/*
 * session_input_make() - check the samples of an input, and give each id of a sequence a bag of its own
 * @name: the feature's name
 *
 * The result points into @from's memory where that can be. It is given to session_input_put(), also
 * after an error.
 */
int session_input_make(const struct session_feature *from, const char *name,
		       struct session_input *to, struct embeng_error *error);
void session_input_put(struct session_input *input);

/* The samples that an input has; -1 where it cannot say. */
int64_t session_count_samples(const struct raw_feature *input);
/* The sample of the id @at of a sparse tensor. Return: -1 with an error for one outside of the shape. */
int64_t session_find_sample(const struct raw_feature *input, const char *name, size_t at,
			    struct embeng_error *error);
/* Checks the bounds of a ragged tensor of @samples, and copies them to @splits: [samples + 1]. */
int session_read_splits(const struct raw_feature *input, const char *name, int64_t samples,
			int64_t *splits, struct embeng_error *error);

#endif
