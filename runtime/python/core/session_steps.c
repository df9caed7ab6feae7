// SPDX-License-Identifier: MIT
/*
 * The other half of a session's steps: batches are dequeued, get their gradients, or are taken back
 * (session.h). It is a file of its own because session.c has what all calls share. session.c has the
 * lock, too; a view is read by its thread without it, and keeps the engine in use until it ends.
 */
#include "session_queue.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* -- dequeue -------------------------------------------------------------------------- */

/* Says whose gradients the oldest batch of a replica waits for. */
static int refuse_missing(const struct running *run, uint32_t replica)
{
	const struct session *session = run->session;
	uint64_t needed = session->queues[replica].taken - session->late;
	char missing[256];
	size_t used = 0;

	for (uint32_t k = 0; k < session->replicas && used + 1 < sizeof(missing); k++) {
		uint64_t given = session->queues[k].given;

		if (given < needed)
			used += (size_t)snprintf(missing + used, sizeof(missing) - used,
						 "%sstep %" PRIu64 " of replica %u",
						 used ? ", " : "", given + 1, k);
	}
	return running_refuse(
		run, -EPROTO,
		"replica %u: the next training batch needs gradients that were not given: "
		"%s; call apply_gradients() for each batch that is enqueued with "
		"training=True, enqueue with training=False, or take the steps back by "
		"discard()",
		replica, missing);
}

static int check_dequeue(struct running *run, uint32_t replica)
{
	struct queue *queue;
	int ret = running_find_queue(run, replica, &queue);

	ret = ret ? ret : running_drop_void(run);
	if (ret)
		return ret;
	if (!queue->count)
		return running_refuse(
			run, -EPROTO,
			"replica %u: nothing is enqueued; call enqueue() before dequeue()",
			replica);
	return session_lacks_gradients(run->session, queue) ? refuse_missing(run, replica) : 0;
}

static int dequeue_oldest(struct running *run, uint32_t replica,
			  struct embeng_activations *activations)
{
	for (;;) {
		int ret = check_dequeue(run, replica);

		ret = ret ? ret : running_take(run, replica, activations);
		if (ret != -ETIME)
			return ret;
		ret = running_await(run);
		if (ret == -ETIME)
			return running_refuse_take(run, replica);
		if (ret)
			return ret;
	}
}

int raw_session_dequeue(const struct session_call *call, uint32_t replica,
			struct session_view *view)
{
	struct running run;
	int ret = running_begin(&run, call);

	if (ret)
		return ret;
	ret = dequeue_oldest(&run, replica, &view->activations);
	if (ret) {
		running_end(&run);
		return ret;
	}
	view->open = run.open;
	running_unlock(&run);
	return 0;
}

void raw_session_end_view(struct session_view *view)
{
	if (view->activations.mode == EMBENG_INFERENCE)
		embeng_release(view->open->handle, &view->activations);
	open_engine_done(view->open);
}

/* -- gradients ------------------------------------------------------------------------ */

static int take_session_gradient(struct running *run, const struct session_gradient *gradient)
{
	struct embeng_feature_config config = EMBENG_INIT(embeng_feature_config);
	struct embeng_table_config table = EMBENG_INIT(embeng_table_config);
	const struct embeng_model *model = embeng_get_model(run->open->handle);

	if (gradient->feature < 0 || (size_t)gradient->feature >= run->session->feature_count)
		return running_refuse(run, -EINVAL, "feature %d is not there; the engine has %zu",
				      gradient->feature, run->session->feature_count);
	embeng_model_get_feature(model, (size_t)gradient->feature, &config);
	embeng_model_get_table(model, (size_t)config.table, &table);
	if (gradient->columns >= 0 && gradient->columns != table.dim)
		return running_refuse(run, -EINVAL,
				      "feature %s: gradients: rows have %" PRId64
				      " numbers; those of the activations have %" PRId64,
				      config.name, gradient->columns, (int64_t)table.dim);
	run->session->gradients[gradient->feature] = gradient->data;
	run->session->elements[gradient->feature] = gradient->elements;
	return 0;
}

static int give_gradients(struct running *run, uint32_t replica, const struct embeng_rate *rates,
			  size_t rate_count)
{
	const struct embeng_gradients given = EMBENG_INIT(
		embeng_gradients, .replica = replica, .count = run->session->feature_count,
		.features = run->session->gradients, .elements = run->session->elements,
		.rates = rates, .rate_count = rate_count);

	return running_report(run, embeng_apply_gradients(run->open->handle, &given, 0));
}

static int check_apply(const struct running *run, uint32_t replica, struct queue **queue)
{
	int ret = running_find_queue(run, replica, queue);

	if (ret || (*queue)->given < (*queue)->taken)
		return ret;
	return running_refuse(
		run, -EPROTO,
		"replica %u: no training batch was dequeued that waits for gradients; enqueue "
		"with training=True, and dequeue it",
		replica);
}

int raw_session_apply(const struct session_call *call, uint32_t replica,
		      const struct session_gradient *gradients, size_t count,
		      const struct embeng_rate *rates, size_t rate_count)
{
	struct running run;
	struct queue *queue;
	int ret = running_begin(&run, call);

	if (ret)
		return ret;
	for (size_t k = 0; k < run.session->feature_count; k++) {
		run.session->gradients[k] = NULL;
		run.session->elements[k] = 0;
	}
	ret = check_apply(&run, replica, &queue);
	for (size_t k = 0; !ret && k < count; k++)
		ret = take_session_gradient(&run, &gradients[k]);
	ret = ret ? ret : give_gradients(&run, replica, rates, rate_count);
	if (!ret) {
		queue->given++;
		ret = running_drop_void(&run);
	}
	running_end(&run);
	return ret;
}

/* -- taking everything back ------------------------------------------------------------- */

/* Ends a training batch that waits for gradients. Return: 1 if there was one, 0, or an error. */
static int discard_waiting(struct running *run, int64_t *count)
{
	for (uint32_t k = 0; k < run->session->replicas; k++) {
		int ret;

		if (run->session->queues[k].given == run->session->queues[k].taken)
			continue;
		++*count;
		ret = running_discard(run, k);
		return ret ? ret : 1;
	}
	return 0;
}

/* The replicas that are behind: those that dequeued the fewest training batches. */
struct stragglers {
	uint32_t first, inference, empty; /* each the first of its kind, or -1 */
	uint32_t empties;
};

static struct stragglers find_stragglers(const struct session *session)
{
	struct stragglers found = {
		.first = UINT32_MAX, .inference = UINT32_MAX, .empty = UINT32_MAX};
	uint64_t least = UINT64_MAX;

	for (uint32_t k = 0; k < session->replicas; k++)
		if (session->queues[k].taken < least)
			least = session->queues[k].taken;
	for (uint32_t k = session->replicas; k-- > 0;) {
		const struct queue *queue = &session->queues[k];

		if (queue->taken != least)
			continue;
		found.first = k;
		if (!queue->count)
			found.empty = k;
		else if (!queue->items[0].train)
			found.inference = k;
		found.empties += !queue->count;
	}
	return found;
}

static int take_patiently(struct running *run, uint32_t replica)
{
	int ret = running_take_back(run, replica);

	if (ret != -ETIME)
		return ret;
	ret = running_await(run);
	return ret == -ETIME ? running_refuse_take(run, replica) : ret;
}

/*
 * Takes one batch back, or gives a replica that is behind a batch without samples, which is taken back
 * later. Return: 1, 0 when nothing is under way any more, or an error.
 */
static int discard_next(struct running *run, int64_t *count)
{
	int ret = discard_waiting(run, count);
	struct stragglers found;
	uint64_t place;

	if (ret)
		return ret;
	found = find_stragglers(run->session);
	if (found.inference != UINT32_MAX) {
		size_t before = run->session->queues[found.inference].count;

		ret = take_patiently(run, found.inference);
		*count += (int64_t)(before - run->session->queues[found.inference].count);
	} else if (found.empties == run->session->replicas) {
		return 0;
	} else if (found.empty != UINT32_MAX) {
		ret = running_push_nothing(run, found.empty, true, &place);
		--*count;
	} else {
		ret = take_patiently(run, found.first);
	}
	return ret ? ret : 1;
}

int raw_session_discard(const struct session_call *call, int64_t *count)
{
	struct running run;
	int ret = running_begin(&run, call);

	*count = 0;
	if (ret)
		return ret;
	do
		ret = discard_next(&run, count);
	while (ret > 0);
	running_end(&run);
	return ret;
}
