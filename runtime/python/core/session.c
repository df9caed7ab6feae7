// SPDX-License-Identifier: MIT
/*
 * The order of an engine's steps (session.h): which batches of each replica are enqueued, which wait for
 * gradients, and which are void. It is a file of its own because Engine's methods and kernels of
 * TensorFlow share it, and because it must not need Python.
 *
 * An enqueue for several replicas that fails behind the first of them cannot be undone in the library,
 * which counts the steps of each replica. So the other replicas get batches without samples, and all of
 * them are void: each is taken back as soon as it is the oldest and earlier steps are complete.
 *
 * session->lock guards all that a session has. It is held while the library is called, with a timeout of
 * 0: the library then computes, but waits for no other call. Where it would, the thread sleeps without
 * the lock, until another call of the session ends or 20 ms are over, looks at everything again, and
 * calls again. A batch that is filled belongs to its thread alone. Nobody takes the interpreter's lock
 * with this one held. Callers are in a use of the engine (open_engine_find()), which keeps the session.
 */
#include "session_queue.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND_NS 1000000000ll
#define NAP_NS 20000000ll

static int64_t now_monotonic(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * SECOND_NS + now.tv_nsec;
}

int running_refuse_memory(const struct running *run)
{
	return running_refuse(run, -ENOMEM, "no memory for the steps of engine %" PRId64,
			      run->call->engine);
}

int running_report(const struct running *run, int code)
{
	if (code)
		embeng_last_error(run->call->error);
	return code;
}

/* -- making and freeing --------------------------------------------------------------- */

static void free_session(struct session *session)
{
	if (!session)
		return;
	for (uint32_t k = 0; session->queues && k < session->replicas; k++) {
		embeng_batch_free(session->queues[k].batches[0]);
		embeng_batch_free(session->queues[k].batches[1]);
		free(session->queues[k].items);
	}
	free(session->queues);
	free(session->gradients);
	free(session->elements);
	free(session->modes);
	pthread_cond_destroy(&session->changed);
	pthread_mutex_destroy(&session->lock);
	free(session);
}

void raw_session_free(struct open_engine *open)
{
	free_session(open->session);
	open->session = NULL;
}

static struct session *make_session(struct embeng *handle)
{
	struct embeng_engine_config config = EMBENG_INIT(embeng_engine_config);
	struct session *session = calloc(1, sizeof(*session));
	pthread_condattr_t clock;

	if (!session)
		return NULL;
	pthread_mutex_init(&session->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&session->changed, &clock);
	pthread_condattr_destroy(&clock);
	embeng_model_get_engine(embeng_get_model(handle), &config);
	session->replicas = config.replicas ? config.replicas : 1;
	session->late = config.pipelining ? 1 : 0;
	session->mode_count = session->mode_room = SESSION_MODE_FIRST;
	session->queues = calloc(session->replicas, sizeof(*session->queues));
	session->modes = calloc(SESSION_MODE_FIRST, sizeof(*session->modes));
	if (!session->queues || !session->modes) {
		free_session(session);
		return NULL;
	}
	session->modes[SESSION_MODE_TRAIN] = true;
	return session;
}

/* An engine may have got features since the last call. Called with the lock. */
static int fit_features(struct running *run)
{
	struct session *session = run->session;
	size_t count = embeng_model_feature_count(embeng_get_model(run->open->handle));
	const float **gradients;
	size_t *elements;

	if (session->gradients && session->feature_count == count)
		return 0;
	gradients = calloc(count + 1, sizeof(*gradients));
	elements = calloc(count + 1, sizeof(*elements));
	if (!gradients || !elements) {
		free(gradients);
		free(elements);
		return running_refuse_memory(run);
	}
	free(session->gradients);
	free(session->elements);
	session->gradients = gradients;
	session->elements = elements;
	session->feature_count = count;
	return 0;
}

static struct session *find_session(struct open_engine *open)
{
	struct session *session;

	pthread_mutex_lock(&open->lock);
	if (!open->session)
		open->session = make_session(open->handle);
	session = open->session;
	pthread_mutex_unlock(&open->lock);
	return session;
}

int running_begin(struct running *run, const struct session_call *call)
{
	int ret;

	*run = (struct running){.call = call};
	run->open = open_engine_find(call->engine, call->error);
	if (!run->open)
		return call->error->code;
	run->session = find_session(run->open);
	if (!run->session) {
		ret = running_refuse_memory(run);
		open_engine_done(run->open);
		return ret;
	}
	if (__builtin_add_overflow(now_monotonic(), call->timeout_ns, &run->end))
		run->end = INT64_MAX;
	pthread_mutex_lock(&run->session->lock);
	ret = fit_features(run);
	if (ret) {
		pthread_mutex_unlock(&run->session->lock);
		open_engine_done(run->open);
	}
	return ret;
}

void running_unlock(struct running *run)
{
	pthread_cond_broadcast(&run->session->changed);
	pthread_mutex_unlock(&run->session->lock);
}

void running_end(struct running *run)
{
	running_unlock(run);
	open_engine_done(run->open);
}

/* -- waits ---------------------------------------------------------------------------- */

static bool is_closed_meanwhile(struct open_engine *open)
{
	bool closed;

	pthread_mutex_lock(&open->lock);
	closed = open->closed;
	pthread_mutex_unlock(&open->lock);
	return closed;
}

/* Asks whether the call shall end. Called with the lock, which it gives up meanwhile. */
static int ask_caller(struct running *run)
{
	int ret;

	if (!run->call->ask)
		return 0;
	pthread_mutex_unlock(&run->session->lock);
	ret = run->call->ask(run->call->arg);
	pthread_mutex_lock(&run->session->lock);
	return ret ? running_refuse(run, -EINTR, "a signal ended the wait") : 0;
}

int running_await(struct running *run)
{
	int64_t now = now_monotonic(), nap = run->end - now;
	struct timespec until;
	int ret;

	if (is_closed_meanwhile(run->open))
		return running_refuse(run, -ENODEV, "the engine was closed during the call");
	if (nap <= 0)
		return -ETIME;
	ret = ask_caller(run);
	if (ret)
		return ret;
	now += nap < NAP_NS ? nap : NAP_NS;
	until = (struct timespec){.tv_sec = now / SECOND_NS, .tv_nsec = now % SECOND_NS};
	pthread_cond_timedwait(&run->session->changed, &run->session->lock, &until);
	return 0;
}

/* -- queues --------------------------------------------------------------------------- */

int running_find_queue(const struct running *run, uint32_t replica, struct queue **queue)
{
	if (replica >= run->session->replicas)
		return running_refuse(run, -EINVAL, "there is no replica %u; the engine has %u",
				      replica, run->session->replicas);
	*queue = &run->session->queues[replica];
	return 0;
}

static void drop_first(struct queue *queue)
{
	queue->count--;
	queue->dropped++;
	memmove(queue->items, queue->items + 1, queue->count * sizeof(*queue->items));
}

bool session_lacks_gradients(const struct session *session, const struct queue *queue)
{
	if (!queue->items[0].train)
		return false;
	for (uint32_t k = 0; k < session->replicas; k++)
		if (session->queues[k].given + session->late < queue->taken)
			return true;
	return false;
}

/* -- taking batches -------------------------------------------------------------------- */

int running_take(struct running *run, uint32_t replica, struct embeng_activations *activations)
{
	struct queue *queue = &run->session->queues[replica];
	int ret;

	*activations = EMBENG_INIT(embeng_activations);
	ret = running_report(run, embeng_dequeue(run->open->handle, replica, 0, activations));
	if (ret)
		return ret;
	drop_first(queue);
	queue->taken += activations->mode == EMBENG_TRAIN;
	return 0;
}

int running_refuse_take(const struct running *run, uint32_t replica)
{
	char text[EMBENG_ERROR_TEXT];

	snprintf(text, sizeof(text), "%s", run->call->error->text);
	return running_refuse(run, -EPROTO, "replica %u: its batch cannot be dequeued now: %s",
			      replica, text);
}

/* The library waits for nothing here: no view came with a fence. */
int running_discard(struct running *run, uint32_t replica)
{
	int ret = running_report(run, embeng_discard(run->open->handle, replica, 0));

	if (!ret)
		run->session->queues[replica].given++;
	return ret;
}

int running_take_back(struct running *run, uint32_t replica)
{
	struct embeng_activations activations;
	int ret = running_take(run, replica, &activations);

	if (!ret && activations.mode == EMBENG_INFERENCE)
		ret = running_report(run, embeng_release(run->open->handle, &activations));
	return ret;
}

/* A replica whose oldest batch is void, and waits for nothing; or as many as there are. */
static uint32_t find_void(const struct session *session)
{
	for (uint32_t k = 0; k < session->replicas; k++) {
		const struct queue *queue = &session->queues[k];

		if (queue->count && queue->items[0].is_void &&
		    !session_lacks_gradients(session, queue))
			return k;
	}
	return session->replicas;
}

int running_drop_void(struct running *run)
{
	struct session *session = run->session;

	for (;;) {
		uint32_t replica = find_void(session);
		bool train;
		int ret;

		if (replica == session->replicas)
			return 0;
		train = session->queues[replica].items[0].train;
		ret = running_take_back(run, replica);
		if (ret == -ETIME) {
			ret = running_await(run);
			if (ret == -ETIME)
				return running_refuse_take(run, replica);
		} else if (!ret && train) {
			ret = running_discard(run, replica);
		}
		if (ret)
			return ret;
	}
}

/* -- modes ------------------------------------------------------------------------------ */

static int grow_modes(const struct running *run)
{
	struct session *session = run->session;
	size_t room = 2 * session->mode_room;
	bool *modes;

	if (session->mode_count < session->mode_room)
		return 0;
	modes = realloc(session->modes, room * sizeof(*modes));
	if (!modes)
		return running_refuse_memory(run);
	session->modes = modes;
	session->mode_room = room;
	return 0;
}

int raw_session_add_mode(const struct session_call *call, bool train, int64_t *number)
{
	struct running run;
	int ret = running_begin(&run, call);

	if (ret)
		return ret;
	ret = grow_modes(&run);
	if (!ret) {
		*number = (int64_t)run.session->mode_count;
		run.session->modes[run.session->mode_count++] = train;
	}
	running_end(&run);
	return ret;
}

int raw_session_set_mode(const struct session_call *call, int64_t number, bool train)
{
	struct running run;
	int ret = running_begin(&run, call);

	if (ret)
		return ret;
	if (number < SESSION_MODE_FIRST || (size_t)number >= run.session->mode_count)
		ret = running_refuse(&run, -EINVAL, "mode %" PRId64 " cannot be set", number);
	else
		run.session->modes[number] = train;
	running_end(&run);
	return ret;
}
