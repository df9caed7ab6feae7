// SPDX-License-Identifier: MIT
/*
 * Ids on their way from a batch to the owners of their tables. They are checked at the host that asks
 * (ids_check.c), so that an owner never refuses what another host's program did. The copy is checked, and not
 * the program's arrays, which may change meanwhile.
 *
 * Packing needs no lock: batch and slot are the caller's. Serving is the ids thread's.
 */
#include <string.h>

#include "batch/input.h"
#include "segment.h"

static uint64_t bytes_of_offsets(const struct input *in)
{
	return in->form == INPUT_CSR ? segment_pad(8 * ((uint64_t)in->samples + 1)) : 0;
}

static uint64_t bytes_of_input(const struct input *in)
{
	const uint64_t weights = in->weights ? segment_pad(4 * (uint64_t)in->id_count) : 0;

	return sizeof(struct segment_input) + bytes_of_offsets(in) +
	       segment_pad(width_of_ids(in) * in->id_count) + weights;
}

static int put_input(const struct embeng *e, const struct embeng_batch *b, size_t f, char **to)
{
	const struct input *in = &b->inputs[f];
	const struct segment_input head = {
		.samples = in->samples,
		.ids = in->id_count,
		.form = in->form,
		.width = (uint32_t)width_of_ids(in),
		.pooled = in->pooled,
		.weighted = in->weights != NULL,
	};
	struct input_copy copy;

	put_padded(to, &head, sizeof(head));
	copy.offsets = in->form == INPUT_CSR ? put_padded(to, in->offsets, 8 * (in->samples + 1))
					     : NULL;
	copy.ids = put_padded(to, in->ids, width_of_ids(in) * in->id_count);
	copy.weights = put_padded(to, in->weights, in->weights ? 4 * (uint64_t)in->id_count : 0);
	return ids_check(e, b, f, &copy);
}

/* The parts of a feature's table whose owners all get its ids, up to @last; none where rows are asked for. */
static const struct place_part *parts_of_feature(const struct hosts *h, size_t f,
						 const struct place_part **last)
{
	const int t = h->e->model->features[f].table;

	const struct place_part *first = &h->place.parts[h->place.first[t]];

	*last = first->kind == PLACE_ROWS ? first : &h->place.parts[h->place.first[t + 1]];
	return first;
}

static uint64_t measure_parcels(const struct hosts *h, const struct embeng_batch *b,
				const struct cargo *cargo)
{
	struct embeng_bytes *parcels = cargo->ids_for;
	uint64_t all = 0;

	for (uint32_t host = 0; host < h->hosts; host++) {
		parcels[host].bytes = sizeof(struct segment_head) + lists_bytes(h, cargo, host);
		all += parcels[host].bytes;
	}
	for (size_t f = 0; f < b->count; f++) {
		const uint64_t bytes = bytes_of_input(&b->inputs[f]);
		const struct place_part *last, *part = parts_of_feature(h, f, &last);

		for (; part < last; part++) {
			parcels[part->host].bytes += bytes;
			all += bytes;
		}
	}
	return all;
}

static void begin_parcels(const struct hosts *h, const struct slot *slot)
{
	struct cargo *cargo = slot->cargo;
	char *to = cargo->ids.data;

	for (uint32_t host = 0; host < h->hosts; host++) {
		const struct segment_head head = {
			.bytes = cargo->ids_for[host].bytes,
			.replica = slot->replica,
			.flags = slot->ids_only ? SEGMENT_IDS_ONLY : 0,
		};

		cargo->ids_for[host].data = cargo->at[host] = to;
		put_padded(&cargo->at[host], &head, sizeof(head));
		to += head.bytes;
	}
}

int ids_resolve(const struct embeng *e, struct slot *slot, const struct embeng_batch *b)
{
	for (size_t f = 0; f < b->count; f++)
		if (b->inputs[f].form == INPUT_PARTITIONED)
			return fail(
				-ENOTSUP,
				"feature %s: a handle over a group takes no partitioned inputs; "
				"give the ids",
				e->model->features[f].name);
	return batch_check(b, e->outputs, slot->resolved);
}

/* In the order of features, so that the first one that is wrong is told. */
int ids_pack(struct hosts *h, const struct slot *slot, const struct embeng_batch *b)
{
	struct cargo *cargo = slot->cargo;
	int ret = lists_make(h, slot, b);

	ret = ret ? ret : memory_need(&cargo->ids, measure_parcels(h, b, cargo));
	if (ret)
		return ret;
	begin_parcels(h, slot);
	for (size_t f = 0; !ret && f < b->count; f++) {
		const struct place_part *last, *part = parts_of_feature(h, f, &last);

		cargo->bags[f] = b->inputs[f].form != INPUT_DENSE;
		for (; !ret && part < last; part++)
			ret = put_input(h->e, b, f, &cargo->at[part->host]);
	}
	for (uint32_t host = 0; !ret && host < h->hosts; host++)
		cargo->at[host] = lists_put(h, cargo, host, cargo->at[host]);
	return ret;
}

/* Reads one feature. Return: false if the segment has another form. */
static bool read_input(struct reading *segment, const struct feature *f, struct input *in)
{
	const struct segment_input *head = read_next(segment, sizeof(*head));

	input_clear(in);
	if (!head || (head->form != INPUT_DENSE && head->form != INPUT_CSR) ||
	    (head->width != 4 && head->width != 8) || head->samples > UINT64_MAX / 16 ||
	    head->ids > UINT64_MAX / 16)
		return false;
	in->form = (enum input_form)head->form;
	in->pooled = head->pooled;
	in->type = head->width == 4 ? EMBENG_I32 : EMBENG_I64;
	in->samples = head->samples;
	in->id_count = head->ids;
	in->rank = 1;
	in->shape[0] = (int64_t)head->samples;
	if (in->form == INPUT_CSR && !in->pooled)
		in->shape[in->rank++] = f->max_sequence_length;
	if (in->form == INPUT_CSR)
		in->offsets = read_next(segment, 8 * (head->samples + 1));
	in->ids = read_next(segment, head->width * head->ids);
	in->weights = head->weighted ? read_next(segment, 4 * head->ids) : NULL;
	return in->ids && (in->form == INPUT_DENSE || in->offsets) &&
	       (!head->weighted || in->weights);
}

void ids_empty_input(struct input *in)
{
	static const int64_t none[1];

	input_clear(in);
	in->form = INPUT_DENSE;
	in->pooled = true;
	in->type = EMBENG_I64;
	in->ids = none;
	in->rank = 1;
	in->shape[0] = 0;
}

int ids_unpack(const struct hosts *h, struct reading *segment, uint32_t host,
	       struct embeng_batch *b, uint64_t *firsts)
{
	size_t count = 0;

	for (size_t f = 0; f < h->e->model->feature_count; f++) {
		if (h->features[f] < 0)
			continue;
		if (!read_input(segment, &h->e->model->features[f], &b->inputs[count++]))
			return segment_bad(h, host, "ids");
	}
	for (size_t f = h->served; f < b->count; f++)
		ids_empty_input(&b->inputs[f]);
	return lists_unpack(h, segment, host, b, count, firsts);
}

static bool has_owner_room(struct embeng *owner, void *arg)
{
	const uint64_t *step = arg;
	const struct embeng_steps steps = session_steps(owner);

	return owner->failed || embeng_steps_have_room(&steps, *step);
}

int ids_await_owner(struct embeng *owner, uint64_t step)
{
	int ret;

	pthread_mutex_lock(&owner->lock);
	ret = wait_until(owner, has_owner_room, &step, deadline_never());
	pthread_mutex_unlock(&owner->lock);
	return ret;
}

/* One host's segments. @served: replicas so far; hosts have blocks of them, so they come in their order. */
static int read_host_ids(struct hosts *h, uint64_t step, uint32_t host, struct reading message,
			 const struct ids_taker *taker, uint32_t *served)
{
	uint64_t *firsts = h->firsts[step % h->e->depth];
	int ret = 0;

	while (!ret && message.left) {
		struct reading segment;
		const struct segment_head *head = segment_next(&message, &segment);
		const uint32_t replica = *served;
		struct embeng_batch *b;

		if (!head || replica >= h->e->replica_count || head->replica != replica ||
		    hosts_home(h, replica) != host)
			return segment_bad(h, host, "ids");
		b = taker->batch ? taker->batch : h->batches[replica];
		h->ids_only[step % h->e->depth][replica] = head->flags & SEGMENT_IDS_ONLY;
		ret = ids_unpack(h, &segment, host, b, firsts + (size_t)replica * h->list_count);
		ret = ret ? ret : taker->take(h, step, replica, b);
		++*served;
	}
	return ret;
}

int ids_read(struct hosts *h, uint64_t step, const struct embeng_bytes *received,
	     const struct ids_taker *taker)
{
	uint32_t served = 0;
	int ret = 0;

	for (uint32_t host = 0; !ret && host < h->hosts; host++)
		ret = read_host_ids(h, step, host,
				    (struct reading){received[host].data, received[host].bytes},
				    taker, &served);
	if (!ret && served != h->e->replica_count)
		ret = fail(-EBADMSG, "ids of %u replicas came, the model has %u", served,
			   h->e->replica_count);
	return ret;
}

static int enqueue_owner(struct hosts *h, uint64_t step, uint32_t replica, struct embeng_batch *b)
{
	(void)step;
	(void)replica;
	return embeng_enqueue(h->owner, b, -1);
}

int ids_serve(struct hosts *h, uint64_t step, const struct embeng_bytes *received)
{
	const int ret = ids_await_owner(h->owner, step);

	return ret ? ret : ids_read(h, step, received, &(struct ids_taker){.take = enqueue_owner});
}
