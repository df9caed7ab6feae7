// SPDX-License-Identifier: MIT
/*
 * The life of a handle's steps: the memory that they need, the threads that move them, and the wait until
 * complete ones are applied.
 *
 * Memory and threads live from steps_start() to steps_stop() and steps_free(). e->lock is taken here, or
 * held where steps.h says so.
 */
#include <stdlib.h>

#include "host/thread.h"
#include "joined.h"
#include "steps.h"

/* A stage that can move does so also when the handle is closed: other hosts wait for it. */
static void run_stage(struct hosts *h, uint32_t stage)
{
	struct embeng *e = h->e;

	pthread_mutex_lock(&e->lock);
	while (!h->failed) {
		if (stage_can_move(h, stage)) {
			h->working++;
			stage_move(h, stage);
			h->working--;
			pthread_cond_broadcast(&h->changed);
		} else if (h->stop) {
			break;
		} else {
			pthread_cond_wait(&h->changed, &e->lock);
		}
	}
	pthread_mutex_unlock(&e->lock);
}

static void *run_ids(void *hosts)
{
	run_stage(hosts, CHANNEL_IDS);
	return NULL;
}

static void *run_answers(void *hosts)
{
	run_stage(hosts, CHANNEL_ANSWERS);
	return NULL;
}

static void *run_gradients(void *hosts)
{
	run_stage(hosts, CHANNEL_GRADIENTS);
	return NULL;
}

static int start_threads(struct hosts *h)
{
	static void *(*const runs[HOSTS_THREADS])(void *hosts) = {run_ids, run_answers,
								  run_gradients};
	static const char *const names[HOSTS_THREADS] = {"embeng-ids", "embeng-answers",
							 "embeng-grads"};
	int ret = 0;

	for (uint32_t i = 0; !ret && i < HOSTS_THREADS; i++) {
		ret = thread_start(&h->threads[i], names[i], runs[i], h);
		pthread_mutex_lock(&h->e->lock);
		h->running += !ret;
		pthread_mutex_unlock(&h->e->lock);
	}
	return ret ? fail(ret, "a thread cannot be started for a handle over a group") : 0;
}

static int make_parcels(const struct hosts *h, struct cargo *cargo)
{
	cargo->ids_for = calloc(h->hosts, sizeof(*cargo->ids_for));
	cargo->gradients_for = calloc(h->hosts, sizeof(*cargo->gradients_for));
	cargo->at = calloc(h->hosts, sizeof(*cargo->at));
	cargo->bags = calloc(h->e->model->feature_count + 1, sizeof(*cargo->bags));
	if (!cargo->ids_for || !cargo->gradients_for || !cargo->at || !cargo->bags)
		return -ENOMEM;
	return lists_new(h, cargo);
}

static int make_cargo(struct hosts *h)
{
	struct embeng *e = h->e;
	struct cargo *cargo = h->cargo;

	for (uint32_t i = 0; i < e->local_replicas; i++) {
		for (uint32_t k = 0; k < e->slot_count; k++, cargo++) {
			if (make_parcels(h, cargo))
				return -ENOMEM;
			e->replicas[e->first_replica + i].training[k].cargo = cargo;
		}
	}
	return 0;
}

static int make_batches(struct hosts *h)
{
	const uint32_t replicas = h->e->replica_count;

	h->batches = calloc(replicas, sizeof(*h->batches));
	h->views = calloc(replicas, sizeof(*h->views));
	h->ids_only = calloc(h->e->depth, sizeof(*h->ids_only));
	h->firsts = calloc(h->e->depth, sizeof(*h->firsts));
	if (!h->batches || !h->views || !h->ids_only || !h->firsts)
		return -ENOMEM;
	h->asked = embeng_batch_new(h->owner, EMBENG_INFERENCE, 0);
	h->outputs = calloc(h->owner->model->feature_count + 1, sizeof(*h->outputs));
	if (!h->asked || !h->outputs || make_parcels(h, &h->asking_cargo))
		return -ENOMEM;
	for (uint32_t d = 0; d < h->e->depth; d++) {
		h->ids_only[d] = calloc(replicas, sizeof(*h->ids_only[d]));
		h->firsts[d] = calloc((size_t)replicas * h->list_count + 1, sizeof(*h->firsts[d]));
		if (!h->ids_only[d] || !h->firsts[d])
			return -ENOMEM;
	}
	if (hosts_joins(h) && joined_new(h))
		return -ENOMEM;
	for (uint32_t r = 0; r < h->owner->replica_count; r++) {
		h->batches[r] = embeng_batch_new(h->owner, EMBENG_TRAIN, r);
		if (!h->batches[r])
			return -ENOMEM;
	}
	return 0;
}

static int make_lists(struct hosts *h)
{
	const uint32_t count = h->e->local_replicas;
	bool made = true;

	h->cargo = calloc((size_t)count * h->e->slot_count + 1, sizeof(*h->cargo));
	h->notices = calloc(count + 1, sizeof(*h->notices));
	for (uint32_t i = 0; i < HOSTS_THREADS; i++) {
		h->slots[i] = calloc(count + 1, sizeof(struct slot *));
		made &= h->slots[i] != NULL;
	}
	return h->cargo && h->notices && made ? 0 : -ENOMEM;
}

int steps_start(struct hosts *h)
{
	int ret = make_lists(h);

	ret = ret ? ret : make_cargo(h);
	ret = ret ? ret : make_batches(h);
	if (ret)
		return fail(ret, "there is no memory for the steps of a group");
	/* The host that hands gradients in is the one that warns. */
	for (size_t f = 0; f < h->owner->model->feature_count; f++)
		h->owner->null_gradient_said[f] = true;
	return start_threads(h);
}

static bool has_applied(struct embeng *e, void *arg)
{
	(void)arg;
	return hosts_serves_only(e->hosts) || e->hosts->updated >= session_complete(e);
}

static bool is_over(struct embeng *e, void *arg)
{
	(void)arg;
	return steps_are_over(e->hosts);
}

/*
 * A host without replicas waits in exchanges that no batch will come for. So where there is one, all hosts
 * close together, and then pass each stage once more with nothing.
 */
static void end_together(struct hosts *h)
{
	struct embeng *e = h->e;
	int ret = hosts_enter(e);

	if (ret)
		return;
	ret = hosts_control(e, "close", 0, NULL, NULL);
	hosts_leave(e);
	pthread_mutex_lock(&e->lock);
	h->ending = !ret;
	pthread_cond_broadcast(&h->changed);
	if (!ret)
		hosts_wait(h, is_over, NULL, deadline_never());
	pthread_mutex_unlock(&e->lock);
}

static void finish_steps(struct hosts *h)
{
	struct embeng *e = h->e;

	if (e->replica_count < h->hosts) {
		end_together(h);
		return;
	}
	pthread_mutex_lock(&e->lock);
	hosts_wait(h, has_applied, NULL, deadline_never());
	pthread_mutex_unlock(&e->lock);
}

void steps_stop(struct hosts *h)
{
	uint32_t running;

	if (h->running == HOSTS_THREADS)
		finish_steps(h);
	pthread_mutex_lock(&h->e->lock);
	h->stop = true;
	running = h->running;
	pthread_cond_broadcast(&h->changed);
	pthread_mutex_unlock(&h->e->lock);
	for (uint32_t i = 0; i < running; i++)
		pthread_join(h->threads[i], NULL);
	h->running = 0;
}

static void free_parcels(struct hosts *h, struct cargo *cargo)
{
	free(cargo->ids.data);
	free(cargo->gradients.data);
	free(cargo->ids_for);
	free(cargo->gradients_for);
	free(cargo->at);
	free(cargo->bags);
	lists_free(h, cargo);
}

static void free_cargo(struct hosts *h)
{
	const size_t count = (size_t)h->e->local_replicas * h->e->slot_count;

	for (size_t i = 0; h->cargo && i < count; i++)
		free_parcels(h, &h->cargo[i]);
	free_parcels(h, &h->asking_cargo);
	free(h->cargo);
}

void steps_free(struct hosts *h)
{
	free_cargo(h);
	joined_free(h);
	for (uint32_t r = 0; h->batches && r < h->e->replica_count; r++)
		embeng_batch_free(h->batches[r]);
	for (uint32_t d = 0; h->ids_only && d < h->e->depth; d++)
		free(h->ids_only[d]);
	for (uint32_t d = 0; h->firsts && d < h->e->depth; d++)
		free(h->firsts[d]);
	for (uint32_t i = 0; i < HOSTS_THREADS; i++) {
		free(h->memory[i].data);
		free(h->slots[i]);
	}
	embeng_batch_free(h->asked);
	free(h->answer.data);
	free(h->looked_for.data);
	free(h->outputs);
	free(h->batches);
	free(h->views);
	free(h->ids_only);
	free(h->firsts);
	free(h->summing.data);
	free(h->notices);
}

int hosts_flush(struct embeng *e, int64_t timeout_ns)
{
	struct hosts *h = e->hosts;
	char missing[128];
	int ret;

	pthread_mutex_lock(&e->lock);
	ret = hosts_check(h);
	ret = ret ? ret : hosts_wait(h, has_applied, NULL, deadline_in(timeout_ns));
	if (hosts_is_late(h, ret)) {
		missing_part(e, missing, sizeof(missing));
		ret = fail(ret, "embeng_flush: missing is %s%s", missing, wait_advice(ret));
	}
	pthread_mutex_unlock(&e->lock);
	return ret ? ret : embeng_flush(h->owner, -1);
}
