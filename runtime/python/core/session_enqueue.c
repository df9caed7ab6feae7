// SPDX-License-Identifier: MIT
/*
 * Enqueues batches of some replicas, or none of them (session.h). It is a file of its own because only
 * here batches are filled, and undone when one of them is refused; session.c says how, and has the lock.
 *
 * A batch and its inputs belong to the thread that fills them, also while it sleeps.
 */
#include "session_queue.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int reserve_place(const struct running *run, struct queue *queue)
{
	size_t room = queue->room ? 2 * queue->room : 8;
	struct queued *items;

	if (queue->count < queue->room)
		return 0;
	items = realloc(queue->items, room * sizeof(*items));
	if (!items)
		return running_refuse_memory(run);
	queue->items = items;
	queue->room = room;
	return 0;
}

/* -- enqueue -------------------------------------------------------------------------- */

/* A batch of a replica while it is filled and enqueued. */
struct filling {
	uint32_t replica;
	struct embeng_batch *batch;
	struct session_input *inputs; /* [count] */
	size_t count;
	uint64_t place; /* in the replica's queue, counted from its beginning */
};

static const char *name_of_feature(const struct running *run, int feature)
{
	struct embeng_feature_config config = EMBENG_INIT(embeng_feature_config);

	embeng_model_get_feature(embeng_get_model(run->open->handle), (size_t)feature, &config);
	return config.name;
}

static int get_batch(struct running *run, struct filling *filling, enum embeng_mode mode)
{
	struct queue *queue = &run->session->queues[filling->replica];

	filling->batch = queue->batches[mode];
	queue->batches[mode] = NULL;
	if (filling->batch)
		embeng_batch_reset(filling->batch, mode);
	else
		filling->batch = embeng_batch_new(run->open->handle, mode, filling->replica);
	return filling->batch ? 0 : running_report(run, -ENOMEM);
}

static void put_batch(struct running *run, struct filling *filling, enum embeng_mode mode)
{
	struct queue *queue = &run->session->queues[filling->replica];

	embeng_batch_free(queue->batches[mode]);
	queue->batches[mode] = filling->batch;
	filling->batch = NULL;
}

static int give_session_input(struct running *run, struct filling *filling, size_t at,
			      const struct session_feature *from)
{
	int feature = from->input.feature, ret;

	if (feature < 0 || (size_t)feature >= run->session->feature_count)
		return running_refuse(run, -EINVAL, "feature %d is not there; the engine has %zu",
				      feature, run->session->feature_count);
	filling->count = at + 1;
	ret = session_input_make(from, name_of_feature(run, feature), &filling->inputs[at],
				 run->call->error);
	return ret ? ret
		   : running_report(run,
				    raw_feature_give(filling->batch, &filling->inputs[at].input));
}

static bool is_given(const struct session_batch *batch, size_t feature)
{
	if (feature < batch->count && batch->features[feature].input.feature == (int)feature)
		return true;
	for (size_t k = 0; k < batch->count; k++)
		if (batch->features[k].input.feature == (int)feature)
			return true;
	return false;
}

/* Features that are left out have no samples. */
static int give_nothing_else(struct running *run, struct filling *filling,
			     const struct session_batch *from)
{
	const struct embeng_bags empty = {
		.size = sizeof(empty), .form = EMBENG_BAGS_EVEN, .length = 1, .type = EMBENG_I64};
	int ret = 0;

	for (size_t k = 0; !ret && k < run->session->feature_count; k++)
		if (!is_given(from, k))
			ret = running_report(run,
					     embeng_batch_bags(filling->batch, (int)k, &empty));
	return ret;
}

static int fill_batch(struct running *run, struct filling *filling,
		      const struct session_batch *from, enum embeng_mode mode)
{
	struct queue *queue;
	int ret = running_find_queue(run, from->replica, &queue);

	filling->replica = from->replica;
	filling->inputs = calloc(from->count + 1, sizeof(*filling->inputs));
	if (!ret && !filling->inputs)
		ret = running_refuse_memory(run);
	ret = ret ? ret : get_batch(run, filling, mode);
	for (size_t k = 0; !ret && k < from->count; k++)
		ret = give_session_input(run, filling, k, &from->features[k]);
	return ret ? ret : give_nothing_else(run, filling, from);
}

static void empty_filling(struct running *run, struct filling *filling, enum embeng_mode mode)
{
	if (filling->batch)
		put_batch(run, filling, mode);
	for (size_t k = 0; k < filling->count; k++)
		session_input_put(&filling->inputs[k]);
	free(filling->inputs);
}

static int refuse_enqueue(const struct running *run, uint32_t replica)
{
	char text[EMBENG_ERROR_TEXT];

	snprintf(text, sizeof(text), "%s", run->call->error->text);
	return running_refuse(
		run, -EPROTO,
		"replica %u: the engine takes no further batch now, when %zu are enqueued "
		"and not dequeued; call dequeue(), and apply_gradients() where training is "
		"True (%s)",
		replica, run->session->queues[replica].count, text);
}

static int push_batch(struct running *run, struct filling *filling, bool train)
{
	struct queue *queue = &run->session->queues[filling->replica];

	for (;;) {
		int ret = reserve_place(run, queue);

		if (ret)
			return ret;
		ret = running_report(run, embeng_enqueue(run->open->handle, filling->batch, 0));
		if (!ret)
			break;
		if (ret == -ETIME)
			ret = running_await(run);
		if (ret == -ETIME)
			return refuse_enqueue(run, filling->replica);
		if (ret)
			return ret;
	}
	filling->place = queue->dropped + queue->count;
	queue->items[queue->count++] = (struct queued){.train = train};
	return 0;
}

int running_push_nothing(struct running *run, uint32_t replica, bool train, uint64_t *place)
{
	const struct session_batch nothing = {.replica = replica};
	enum embeng_mode mode = train ? EMBENG_TRAIN : EMBENG_INFERENCE;
	struct filling filling = {.replica = replica};
	int ret = fill_batch(run, &filling, &nothing, mode);

	ret = ret ? ret : push_batch(run, &filling, train);
	*place = filling.place;
	empty_filling(run, &filling, mode);
	return ret;
}

static void mark_void(struct running *run, const struct filling *filling)
{
	struct queue *queue = &run->session->queues[filling->replica];

	if (filling->place >= queue->dropped)
		queue->items[filling->place - queue->dropped].is_void = true;
}

/* Has no replica a batch of an enqueue that failed behind the first @done replicas. */
static int void_all(struct running *run, struct filling *fillings, size_t count, size_t done,
		    bool train)
{
	for (size_t k = done; k < count; k++) {
		struct filling *filling = &fillings[k];
		int ret = running_push_nothing(run, filling->replica, train, &filling->place);

		if (ret)
			return ret;
	}
	for (size_t k = 0; k < count; k++)
		mark_void(run, &fillings[k]);
	return running_drop_void(run);
}

static int push_all(struct running *run, struct filling *fillings, size_t count, bool train)
{
	struct embeng_error first;
	int ret = 0, ret_void;
	size_t done = 0;

	while (done < count) {
		ret = push_batch(run, &fillings[done], train);
		if (ret)
			break;
		done++;
	}
	if (!ret || !done)
		return ret;
	first = *run->call->error;
	ret_void = void_all(run, fillings, count, done, train);
	if (ret_void)
		return ret_void;
	*run->call->error = first;
	return ret;
}

static int refuse_twice(const struct running *run, const struct session_batch *batches,
			size_t count)
{
	for (size_t k = 0; k < count; k++)
		for (size_t i = 0; i < k; i++)
			if (batches[i].replica == batches[k].replica)
				return running_refuse(run, -EINVAL,
						      "replica %u is given two batches",
						      batches[k].replica);
	return 0;
}

static int enqueue_all(struct running *run, const struct session_batch *batches, size_t count,
		       bool train)
{
	enum embeng_mode mode = train ? EMBENG_TRAIN : EMBENG_INFERENCE;
	struct filling *fillings = calloc(count + 1, sizeof(*fillings));
	int ret = fillings ? refuse_twice(run, batches, count) : running_refuse_memory(run);
	size_t filled = 0;

	while (!ret && filled < count) {
		ret = fill_batch(run, &fillings[filled], &batches[filled], mode);
		filled++;
	}
	if (!ret)
		ret = push_all(run, fillings, count, train);
	for (size_t k = 0; k < filled; k++)
		empty_filling(run, &fillings[k], mode);
	free(fillings);
	return ret;
}

static int find_mode(const struct running *run, int64_t number)
{
	if (number >= 0 && (size_t)number < run->session->mode_count)
		return 0;
	return running_refuse(run, -EINVAL, "engine %" PRId64 " has no mode %" PRId64,
			      run->call->engine, number);
}

int raw_session_enqueue(const struct session_call *call, const struct session_batch *batches,
			size_t count, int64_t mode)
{
	struct running run;
	int ret = running_begin(&run, call);

	if (ret)
		return ret;
	ret = find_mode(&run, mode);
	if (!ret)
		ret = enqueue_all(&run, batches, count, run.session->modes[mode]);
	running_end(&run);
	return ret;
}
