// SPDX-License-Identifier: MIT
/*
 * Makes one batch of the owner handle out of the row lists of all replicas, and one call with gradients out of
 * their sums. joined.h says why the bits are the same. It is a file because models of fewer replicas have a
 * batch for each.
 *
 * A step's lists come with its ids and are kept until it is applied. The owner handle gets them only when the updates
 * have been handed in that its lookup is to see. So a step that some replicas gave up can be made in two: the
 * batch is given up, and an update with the rows of the others follows, before the next lookup.
 *
 * Each function is one thread's, which hosts.h names. No lock is needed.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "joined.h"

static uint64_t *counts_of_step(const struct hosts *h, uint64_t step)
{
	return h->joined->counts[step % h->e->depth];
}

static uint64_t count_joined_rows(const struct hosts *h, const uint64_t *counts, size_t list)
{
	uint64_t count = 0;

	for (uint32_t r = 0; r < h->e->replica_count; r++)
		count += counts[r * h->list_count + list];
	return count;
}

static int new_steps(struct hosts *h, struct joined *j)
{
	const size_t lists = (size_t)h->e->replica_count * h->list_count + 1;

	for (uint32_t d = 0; d < h->e->depth; d++) {
		j->counts[d] = calloc(lists, sizeof(*j->counts[d]));
		if (!j->counts[d])
			return -ENOMEM;
	}
	return 0;
}

int joined_new(struct hosts *h)
{
	const size_t replicas = h->e->replica_count;
	struct joined *j = calloc(1, sizeof(*j));

	h->joined = j;
	if (!j)
		return -ENOMEM;
	j->rows = calloc(h->e->depth, sizeof(*j->rows));
	j->counts = calloc(h->e->depth, sizeof(*j->counts));
	j->from = calloc(replicas * h->list_count + 1, sizeof(*j->from));
	j->views = calloc(replicas * h->served + 1, sizeof(*j->views));
	j->read = embeng_batch_new(h->owner, EMBENG_TRAIN, 0);
	j->update = embeng_batch_new(h->owner, EMBENG_TRAIN, 0);
	if (!j->rows || !j->counts || !j->from || !j->views || !j->read || !j->update)
		return -ENOMEM;
	return new_steps(h, j);
}

void joined_free(struct hosts *h)
{
	struct joined *j = h->joined;

	if (!j)
		return;
	for (uint32_t d = 0; j->rows && d < h->e->depth; d++)
		free(j->rows[d].data);
	for (uint32_t d = 0; j->counts && d < h->e->depth; d++)
		free(j->counts[d]);
	free(j->rows);
	free(j->counts);
	free(j->from);
	free(j->views);
	free(j->sums.data);
	free(j->left.data);
	embeng_batch_free(j->read);
	embeng_batch_free(j->update);
	free(j);
	h->joined = NULL;
}

/* -- ids ------------------------------------------------------------------ */

static int note_lists(struct hosts *h, uint64_t step, uint32_t replica, struct embeng_batch *b)
{
	const size_t at = (size_t)replica * h->list_count;
	uint64_t *counts = counts_of_step(h, step);

	for (size_t i = 0; i < h->list_count; i++) {
		const int f = h->lists[i].served;

		counts[at + i] = f < 0 ? 0 : b->inputs[f].id_count;
		h->joined->from[at + i] = f < 0 ? NULL : b->inputs[f].ids;
	}
	return 0;
}

/*
 * Copies the lists of replicas to @to, one behind another. @heads: NULL, or lists of replicas that gave the step up
 * are left out.
 */
static int join_lists(struct hosts *h, const uint64_t *counts, const char *const *from,
		      const struct segment_head *const *heads, struct hosts_memory *to)
{
	uint64_t bytes = 8;
	char *at;
	int ret;

	for (size_t i = 0; i < h->list_count; i++)
		bytes += segment_pad(h->lists[i].width * count_joined_rows(h, counts, i));
	ret = memory_need(to, bytes);
	at = to->data;
	for (size_t i = 0; !ret && i < h->list_count; i++) {
		const uint32_t width = h->lists[i].width;
		char *begin = at;

		for (uint32_t r = 0; r < h->e->replica_count; r++) {
			const size_t k = r * h->list_count + i;

			if (!counts[k] || (heads && heads[r]->flags & SEGMENT_DISCARD))
				continue;
			memcpy(at, from[k], width * counts[k]);
			at += width * counts[k];
		}
		at = begin + segment_pad((uint64_t)(at - begin));
	}
	return ret;
}

int joined_keep(struct hosts *h, uint64_t step, const struct embeng_bytes *received)
{
	const struct ids_taker taker = {.batch = h->joined->read, .take = note_lists};
	const int ret = ids_read(h, step, received, &taker);

	return ret ? ret
		   : join_lists(h, counts_of_step(h, step), h->joined->from, NULL,
				&h->joined->rows[step % h->e->depth]);
}

/* -- activations ---------------------------------------------------------- */

/* @totals: [lists] */
static void fill_batch(struct hosts *h, struct embeng_batch *b, const char *rows,
		       const uint64_t *totals)
{
	for (size_t i = 0; i < h->list_count; i++) {
		if (h->lists[i].served >= 0)
			lists_input(&h->lists[i], rows, totals[i], &b->inputs[h->lists[i].served]);
		rows += segment_pad(h->lists[i].width * totals[i]);
	}
	for (size_t f = h->served; f < b->count; f++)
		ids_empty_input(&b->inputs[f]);
}

static void cut_view(struct hosts *h, const struct embeng_activations *view, const uint64_t *counts)
{
	for (uint32_t r = 0; r < h->e->replica_count; r++)
		h->views[r] = (struct embeng_activations){
			.size = sizeof(h->views[r]),
			.replica = r,
			.step = view->step,
			.count = h->served,
			.features = &h->joined->views[r * h->served],
		};
	for (size_t i = 0; i < h->list_count; i++) {
		const int f = h->lists[i].served;
		const int64_t dim = h->e->model->tables[h->lists[i].table].dim;
		const float *at = f < 0 ? NULL : view->features[f].data;

		for (uint32_t r = 0; f >= 0 && r < h->e->replica_count; r++) {
			const uint64_t count = counts[r * h->list_count + i];

			h->joined->views[r * h->served + (size_t)f] = (struct embeng_view){
				.data = at, .rank = 2, .shape = {(int64_t)count, dim}};
			at += count * (uint64_t)dim;
		}
	}
}

int joined_look_up(struct hosts *h, uint64_t step)
{
	const uint64_t *counts = counts_of_step(h, step);
	struct embeng_activations view = EMBENG_INIT(embeng_activations);
	uint64_t *totals = calloc(h->list_count + 1, sizeof(*totals));
	int ret = totals ? 0 : fail(-ENOMEM, "there is no memory to look rows up");

	for (size_t i = 0; !ret && i < h->list_count; i++)
		totals[i] = count_joined_rows(h, counts, i);
	if (!ret) {
		fill_batch(h, h->batches[0], h->joined->rows[step % h->e->depth].data, totals);
		ret = ids_await_owner(h->owner, ++h->joined->steps);
	}
	ret = ret ? ret : embeng_enqueue(h->owner, h->batches[0], -1);
	ret = ret ? ret : embeng_dequeue(h->owner, 0, HOSTS_LOOKUP_TIMEOUT, &view);
	if (!ret)
		cut_view(h, &view, counts);
	free(totals);
	return ret;
}

/* -- gradients ------------------------------------------------------------ */

/**
 * struct joining - the sums of a step
 * @g: the call; @features: [features of the owner handle]: its sums
 * @one, @elements: one replica's
 * @totals: [lists]: rows of replicas that did not give the step up, and @at: where the next sums go
 * @from: [replicas * lists]: the rows of all replicas
 */
struct joining {
	struct embeng_gradients g;
	const float **features, **one;
	size_t *elements;
	struct embeng_rate *rates;
	uint64_t *totals;
	char **at;
	const char **from;
};

static int new_joining(const struct hosts *h, struct joining *x)
{
	const struct embeng_model *part = h->owner->model;

	*x = (struct joining){
		.features = calloc(part->feature_count + 1, sizeof(*x->features)),
		.one = calloc(part->feature_count + 1, sizeof(*x->one)),
		.elements = calloc(part->feature_count + 1, sizeof(*x->elements)),
		.rates = calloc(part->rate_count + 1, sizeof(*x->rates)),
		.totals = calloc(h->list_count + 1, sizeof(*x->totals)),
		.at = calloc(h->list_count + 1, sizeof(*x->at)),
		.from = calloc(h->e->replica_count * h->list_count + 1, sizeof(*x->from)),
	};
	if (!x->features || !x->one || !x->elements || !x->rates || !x->totals || !x->at ||
	    !x->from)
		return fail(-ENOMEM, "there is no memory to apply gradients");
	return 0;
}

static void free_joining(struct joining *x)
{
	free(x->features);
	free(x->one);
	free(x->elements);
	free(x->rates);
	free(x->totals);
	free(x->at);
	free(x->from);
}

/* Room for the sums of all replicas, where @at and @features point. */
static int place_sums(struct hosts *h, struct joining *x, const uint64_t *counts,
		      const struct segment_head *const *heads)
{
	static const float none;
	uint64_t bytes = 8;
	char *to;
	int ret;

	for (uint32_t r = 0; r < h->e->replica_count; r++)
		for (size_t i = 0; !(heads[r]->flags & SEGMENT_DISCARD) && i < h->list_count; i++)
			x->totals[i] += counts[r * h->list_count + i];
	for (size_t i = 0; i < h->trained_lists; i++)
		bytes += 4 * x->totals[i] * (uint64_t)h->e->model->tables[h->lists[i].table].dim;
	ret = memory_need(&h->joined->sums, bytes);
	to = h->joined->sums.data;
	for (size_t f = 0; f < h->owner->model->feature_count; f++)
		x->features[f] = &none;
	for (size_t i = 0; !ret && i < h->trained_lists; i++) {
		x->at[i] = to;
		if (h->lists[i].served >= 0)
			x->features[h->lists[i].served] = (const float *)(const void *)to;
		to += 4 * x->totals[i] * (uint64_t)h->e->model->tables[h->lists[i].table].dim;
	}
	return ret;
}

static int add_sums(struct hosts *h, struct joining *x, const uint64_t *counts,
		    const struct segment_head *head, struct reading segment)
{
	int ret;

	for (size_t i = 0; i < h->list_count; i++)
		if (h->lists[i].served >= 0)
			x->elements[h->lists[i].served] =
				counts[i] * (uint64_t)h->e->model->tables[h->lists[i].table].dim;
	ret = gradients_find(h, head, &segment, x->one, x->elements);
	for (size_t i = 0; !ret && i < h->trained_lists; i++) {
		const int f = h->lists[i].served;

		if (f < 0 || !x->elements[f])
			continue;
		memcpy(x->at[i], x->one[f], 4 * x->elements[f]);
		x->at[i] += 4 * x->elements[f];
	}
	return ret;
}

/* The rows of the others, in a step of its own behind the one that is given up. */
static int apply_rest(struct hosts *h, uint64_t step, const struct joining *x,
		      const struct segment_head *const *heads)
{
	const uint64_t *counts = counts_of_step(h, step);
	const char *at = h->joined->rows[step % h->e->depth].data;
	int ret;

	for (size_t i = 0; i < h->list_count; i++) {
		const char *begin = at;

		for (uint32_t r = 0; r < h->e->replica_count; r++) {
			x->from[r * h->list_count + i] = at;
			at += h->lists[i].width * counts[r * h->list_count + i];
		}
		at = begin + segment_pad((uint64_t)(at - begin));
	}
	ret = join_lists(h, counts, x->from, heads, &h->joined->left);
	ret = ret ? ret : embeng_discard(h->owner, 0, -1);
	ret = ret ? ret : ids_await_owner(h->owner, ++h->joined->steps);
	if (ret)
		return ret;
	fill_batch(h, h->joined->update, h->joined->left.data, x->totals);
	return embeng_update(h->owner, h->joined->update, &x->g, -1);
}

static int give_sums(struct hosts *h, uint64_t step, struct joining *x,
		     const struct segment_head *const *heads, bool whole)
{
	const struct embeng_model *part = h->owner->model;
	const struct segment_head *first = *heads;

	for (uint32_t r = 0; first->flags & SEGMENT_DISCARD; r++)
		first = heads[r];
	gradients_name_rates(h, first, x->rates);
	x->g = EMBENG_INIT(embeng_gradients, .count = part->feature_count, .features = x->features,
			   .rates = x->rates, .rate_count = part->rate_count,
			   .multiplier = float_of(first->multiplier), .has_multiplier = 1);
	return whole ? embeng_apply_gradients(h->owner, &x->g, -1) : apply_rest(h, step, x, heads);
}

int joined_apply(struct hosts *h, uint64_t step, const struct segment_head *const *heads,
		 const struct reading *segments, uint32_t discards)
{
	const uint64_t *counts = counts_of_step(h, step);
	struct joining x;
	int ret;

	if (discards == h->e->replica_count)
		return embeng_discard(h->owner, 0, -1);
	if (discards && h->e->model->engine.pipelining)
		return fail(-ENOTSUP,
			    "%" PRIu32 " of %" PRIu32
			    " replicas give the step up; in a pipelined model of more than %" PRIu32
			    " replicas all do or none",
			    discards, h->e->replica_count, place_replicas_most);
	ret = new_joining(h, &x);
	ret = ret ? ret : place_sums(h, &x, counts, heads);
	for (uint32_t r = 0; !ret && r < h->e->replica_count; r++)
		if (!(heads[r]->flags & SEGMENT_DISCARD))
			ret = add_sums(h, &x, counts + r * h->list_count, heads[r], segments[r]);
	ret = ret ? ret : give_sums(h, step, &x, heads, !discards);
	free_joining(&x);
	return ret;
}
