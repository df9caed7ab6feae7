// SPDX-License-Identifier: MIT
/*
 * Gradients on their way from a replica to the owners of tables, with the learning rates of the step, which
 * are compared: all hosts see all of them, and so find a difference alike.
 *
 * Packing is done in the call that hands gradients in, without a lock, since slot and gradients are the
 * caller's. Serving is the gradients thread's.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "joined.h"
#include "samples.h"

static uint64_t head_bytes(const struct hosts *h)
{
	return sizeof(struct segment_head) + segment_pad(4 * h->e->model->rate_count);
}

static uint64_t floats_for(const struct hosts *h, const struct slot *slot, size_t f,
			   const struct place_part *part)
{
	const struct embeng_model *m = h->e->model;

	return slot->elements[f] / (uint64_t)m->tables[m->features[f].table].dim * part->columns;
}

static uint64_t bytes_of_parcel(const struct hosts *h, const struct slot *slot, uint32_t host,
				const struct embeng_gradients *g)
{
	uint64_t bytes = head_bytes(h);

	for (size_t f = 0; g && f < g->count; f++) {
		const struct place_part *part = feature_part(h, f, host);

		if (!part)
			continue;
		bytes += sizeof(uint64_t);
		if (session_gradient(h->e, g, f))
			bytes += segment_pad(4 * floats_for(h, slot, f, part));
	}
	return bytes + (g ? list_sums_bytes(h, slot, host) : 0);
}

static char *put_head(const struct hosts *h, const struct slot *slot, uint64_t bytes,
		      uint32_t flags, char *to)
{
	const struct segment_head head = {
		.bytes = bytes,
		.replica = slot->replica,
		.flags = flags,
		.multiplier = slot->multiplier,
		.rates = (uint32_t)h->e->model->rate_count,
	};

	memcpy(to, &head, sizeof(head));
	memset(to + sizeof(head), 0, head_bytes(h) - sizeof(head));
	memcpy(to + sizeof(head), slot->rates, 4 * h->e->model->rate_count);
	return to + head_bytes(h);
}

/* The copy of a whole table's gradients is looked at for numbers that are not finite while it is made. */
static int put_gradient(const struct hosts *h, const struct slot *slot, size_t f,
			const struct place_part *part, const float *from, char **to)
{
	const uint64_t given = from != NULL;
	const uint64_t dim = (uint64_t)h->e->model->tables[part->table].dim;
	const uint64_t bytes = 4 * floats_for(h, slot, f, part);
	char *at = *to + sizeof(given);
	int ret = 0;

	memcpy(*to, &given, sizeof(given));
	*to = at + (from ? segment_pad(bytes) : 0);
	if (!from)
		return 0;
	memset(at + bytes, 0, segment_pad(bytes) - bytes);
	if (part->columns == dim)
		return gradients_copy(h->e, slot, f, (float *)(void *)at, from);
	if (!part->first_column)
		ret = gradients_check(h->e, slot, f, from);
	for (uint64_t i = 0; i < slot->elements[f] / dim; i++)
		memcpy(at + 4 * i * part->columns, from + i * dim + part->first_column,
		       4 * (size_t)part->columns);
	return ret;
}

static int check_given_sums(const struct hosts *h, const struct slot *slot)
{
	const struct embeng_model *m = h->e->model;
	int ret = 0;

	for (size_t f = 0; !ret && f < m->feature_count; f++)
		ret = slot->cargo->bags[f]
			      ? sums_refuse_bags(slot, m->features[f].name)
			      : sums_check_table(slot, &m->tables[m->features[f].table]);
	return ret;
}

int gradients_pack(struct hosts *h, struct slot *slot, const struct embeng_gradients *g)
{
	struct cargo *cargo = slot->cargo;
	uint64_t all = 0;
	char *to;
	int ret;

	slot->sums = g->sums;
	ret = g->sums ? check_given_sums(h, slot) : 0;
	ret = ret ? ret : list_rows_sum(h, slot, g);
	for (uint32_t host = 0; host < h->hosts; host++) {
		cargo->gradients_for[host].bytes = bytes_of_parcel(h, slot, host, g);
		all += cargo->gradients_for[host].bytes;
	}
	ret = ret ? ret : memory_need(&cargo->gradients, all);
	to = cargo->gradients.data;
	for (uint32_t host = 0; !ret && host < h->hosts; host++) {
		cargo->gradients_for[host].data = to;
		to = put_head(h, slot, cargo->gradients_for[host].bytes, g->sums ? SEGMENT_SUMS : 0,
			      to);
		for (size_t f = 0; !ret && f < g->count; f++) {
			const struct place_part *part = feature_part(h, f, host);

			if (part)
				ret = put_gradient(h, slot, f, part, session_gradient(h->e, g, f),
						   &to);
		}
		to = list_sums_put(h, slot, host, to);
	}
	if (!ret && cargo->occurrences && !g->sums)
		ret = samples_put(h, cargo);
	return ret;
}

int gradients_pack_discard(struct hosts *h, struct slot *slot)
{
	struct cargo *cargo = slot->cargo;
	const uint64_t bytes = head_bytes(h);
	int ret = memory_need(&cargo->gradients, bytes);

	if (ret)
		return ret;
	put_head(h, slot, bytes, SEGMENT_DISCARD, cargo->gradients.data);
	for (uint32_t host = 0; host < h->hosts; host++)
		cargo->gradients_for[host] = (struct embeng_bytes){cargo->gradients.data, bytes};
	return 0;
}

/* -- the owner's side -- */

/* Rates of a step, from the first replica that has any, and the host that they are from. */
struct step_rates {
	const struct segment_head *head;
	uint32_t host;
};

static bool same_rates(const struct hosts *h, const struct segment_head *a,
		       const struct segment_head *b)
{
	return a->multiplier == b->multiplier && !memcmp(a + 1, b + 1, 4 * h->e->model->rate_count);
}

static int agree_on_rates(const struct hosts *h, uint64_t step, struct step_rates *first,
			  const struct segment_head *head, uint32_t host)
{
	if (head->flags & SEGMENT_DISCARD)
		return 0;
	if (!first->head) {
		*first = (struct step_rates){head, host};
		return 0;
	}
	if (same_rates(h, first->head, head))
		return 0;
	return error_set(
		-EPROTO, EMBENG_STATUS_RATE,
		"step %" PRIu64 ", gradients: host %" PRIu32
		" (%s) gives learning rates or a multiplier other than those of host %" PRIu32
		" (%s); they must be equal to the bit",
		step, host, embeng_group_host(h->group, host), first->host,
		embeng_group_host(h->group, first->host));
}

/* A look at all heads before anything is applied. @segments: [replicas] what stands behind them. */
static int find_segments(struct hosts *h, uint64_t step, const struct embeng_bytes *received,
			 const struct segment_head **heads, struct reading *segments)
{
	struct step_rates first = {0};
	uint32_t found = 0;
	int ret = 0;

	for (uint32_t host = 0; !ret && host < h->hosts; host++) {
		struct reading message = {received[host].data, received[host].bytes}, segment;

		while (!ret && message.left) {
			const struct segment_head *head = segment_next(&message, &segment);

			if (!head || head->replica >= h->e->replica_count ||
			    hosts_home(h, head->replica) != host ||
			    head->rates != h->e->model->rate_count ||
			    !read_next(&segment, 4 * (uint64_t)head->rates))
				return segment_bad(h, host, "gradients");
			heads[head->replica] = head;
			segments[head->replica] = segment;
			found++;
			ret = agree_on_rates(h, step, &first, head, host);
		}
	}
	if (!ret && found != h->e->replica_count)
		ret = fail(-EBADMSG, "gradients of %u replicas came, the model has %u", found,
			   h->e->replica_count);
	return ret;
}

/* The floats that the owner handle's view of a replica has for each feature. */
static int count_owner_elements(struct hosts *h, uint32_t replica, size_t *elements)
{
	struct slot *slot;

	pthread_mutex_lock(&h->owner->lock);
	slot = session_view_or_fail(h->owner, replica);
	for (size_t f = 0; slot && f < h->owner->model->feature_count; f++)
		elements[f] = slot->elements[f];
	pthread_mutex_unlock(&h->owner->lock);
	return slot ? 0 : -EPROTO;
}

/* Lists for one replica's call. */
struct apply_lists {
	const float **features;
	size_t *elements;
	struct embeng_rate *rates;
};

static int apply_replica(struct hosts *h, const struct segment_head *head, struct reading segment,
			 const struct apply_lists *lists)
{
	const struct embeng_model *part = h->owner->model;
	struct embeng_gradients g = EMBENG_INIT(
		embeng_gradients, .replica = head->replica, .count = part->feature_count,
		.features = lists->features, .rates = lists->rates, .rate_count = part->rate_count,
		.multiplier = float_of(head->multiplier), .has_multiplier = 1,
		.sums = (head->flags & SEGMENT_SUMS) != 0);
	int ret;

	if (head->flags & SEGMENT_DISCARD)
		return embeng_discard(h->owner, head->replica, -1);
	gradients_name_rates(h, head, lists->rates);
	ret = count_owner_elements(h, head->replica, lists->elements);
	ret = ret ? ret : gradients_find(h, head, &segment, lists->features, lists->elements);
	return ret ? ret : embeng_apply_gradients(h->owner, &g, -1);
}

static int apply_all(struct hosts *h, const struct segment_head *const *heads,
		     const struct reading *segments)
{
	const struct embeng_model *part = h->owner->model;
	const struct apply_lists lists = {
		.features = calloc(part->feature_count + 1, sizeof(*lists.features)),
		.elements = calloc(part->feature_count + 1, sizeof(*lists.elements)),
		.rates = calloc(part->rate_count + 1, sizeof(*lists.rates)),
	};
	int ret = 0;

	if (!lists.features || !lists.elements || !lists.rates)
		ret = fail(-ENOMEM, "there is no memory to apply gradients");
	for (uint32_t r = 0; !ret && r < h->e->replica_count; r++)
		ret = apply_replica(h, heads[r], segments[r], &lists);
	free(lists.features);
	free(lists.elements);
	free(lists.rates);
	return ret;
}

int gradients_serve(struct hosts *h, uint64_t step, const struct embeng_bytes *received,
		    uint32_t *discards, bool *alike)
{
	const uint32_t replicas = h->e->replica_count;
	const struct segment_head **heads = calloc(replicas, sizeof(*heads));
	struct reading *segments = calloc(replicas, sizeof(*segments));
	int ret = 0;

	if (!heads || !segments)
		ret = fail(-ENOMEM, "there is no memory to apply gradients");
	ret = ret ? ret : find_segments(h, step, received, heads, segments);
	*alike = ret == -EPROTO;
	*discards = 0;
	for (uint32_t r = 0; !ret && r < replicas; r++)
		*discards += (heads[r]->flags & SEGMENT_DISCARD) != 0;
	if (!ret)
		ret = h->joined ? joined_apply(h, step, heads, segments, *discards)
				: apply_all(h, heads, segments);
	free(heads);
	free(segments);
	return ret;
}
