// SPDX-License-Identifier: MIT
/*
 * Activations on their way back from the owners of tables to the hosts that asked for them. The columns of a
 * table that is cut come from several hosts, and are put together here.
 *
 * Both directions are the answers thread's, which alone writes the activations of a slot until they are
 * there.
 */
#include <string.h>

#include "joined.h"

static uint64_t floats_of_view(const struct embeng_view *view)
{
	uint64_t n = 1;

	for (size_t i = 0; i < view->rank; i++)
		n *= (uint64_t)view->shape[i];
	return n;
}

/* Dequeues all replicas' batches of the step. @views: [replicas] */
static int dequeue_owner(struct hosts *h, uint64_t step, struct embeng_activations *views)
{
	int ret = h->joined ? joined_look_up(h, step) : 0;

	for (uint32_t r = 0; !ret && !h->joined && r < h->e->replica_count; r++) {
		views[r] = (struct embeng_activations){.size = sizeof(views[r])};
		ret = embeng_dequeue(h->owner, r, HOSTS_LOOKUP_TIMEOUT, &views[r]);
	}
	return ret;
}

/* The floats of a view that go back; rows that were asked for again stay. @firsts: [lists] */
static uint64_t floats_to_send(const struct hosts *h, const struct embeng_activations *view,
			       const uint64_t *firsts, size_t f, size_t *list)
{
	const uint64_t all = floats_of_view(&view->features[f]);

	while (*list < h->list_count && h->lists[*list].served < (int)f)
		++*list;
	if (*list == h->list_count || h->lists[*list].served != (int)f || !h->lists[*list].repeats)
		return all;
	return firsts[*list] * (uint64_t)h->e->model->tables[h->lists[*list].table].dim;
}

static uint64_t bytes_of_answer(const struct hosts *h, const struct embeng_activations *view,
				const uint64_t *firsts)
{
	uint64_t bytes = sizeof(struct segment_head);

	for (size_t f = 0, list = 0; f < h->served; f++)
		bytes += segment_pad(4 * floats_to_send(h, view, firsts, f, &list));
	return bytes;
}

static char *put_answer(const struct hosts *h, const struct embeng_activations *view,
			const uint64_t *firsts, char *to)
{
	struct segment_head head = {.bytes = bytes_of_answer(h, view, firsts),
				    .replica = view->replica};

	memcpy(to, &head, sizeof(head));
	to += sizeof(head);
	for (size_t f = 0, list = 0; f < h->served; f++)
		put_padded(&to, view->features[f].data,
			   4 * floats_to_send(h, view, firsts, f, &list));
	return to;
}

int answers_pack(struct hosts *h, uint64_t step, struct hosts_memory *memory,
		 struct embeng_bytes *send)
{
	const bool *ids_only = h->ids_only[step % h->e->depth];
	const uint64_t *firsts = h->firsts[step % h->e->depth];
	struct embeng_activations *views = h->views;
	uint64_t all = 0;
	char *to;
	int ret = dequeue_owner(h, step, views);

	for (uint32_t r = 0; !ret && r < h->e->replica_count; r++)
		all += ids_only[r] ? 0 : bytes_of_answer(h, &views[r], firsts + r * h->list_count);
	ret = ret ? ret : memory_need(memory, all);
	if (ret)
		return ret;
	to = memory->data;
	for (uint32_t host = 0; host < h->hosts; host++)
		send[host] = (struct embeng_bytes){0};
	for (uint32_t r = 0; r < h->e->replica_count; r++) {
		const uint32_t host = hosts_home(h, r);
		char *from = to;

		if (ids_only[r])
			continue;
		to = put_answer(h, &views[r], firsts + r * h->list_count, to);
		if (!send[host].bytes)
			send[host].data = from;
		send[host].bytes += (uint64_t)(to - from);
	}
	return 0;
}

/* One feature's floats from a host to their place among the activations. Return: 0, -EBADMSG. */
static int place_floats(const struct hosts *h, const struct place_part *part,
			struct reading *segment, float *to, uint64_t elements)
{
	const uint64_t dim = (uint64_t)h->e->model->tables[part->table].dim;
	const uint64_t rows = elements / dim;
	const char *from = read_next(segment, 4 * rows * part->columns);

	if (!from)
		return segment_bad(h, part->host, "activations");
	if (part->columns == dim) {
		if (elements)
			memcpy(to, from, 4 * elements);
		return 0;
	}
	for (uint64_t i = 0; i < rows; i++)
		memcpy(to + i * dim + part->first_column, from + 4 * i * part->columns,
		       4 * (size_t)part->columns);
	return 0;
}

int answers_take_segment(struct hosts *h, const struct slot *slot, uint32_t host,
			 struct reading *segment)
{
	int ret = 0;

	for (size_t f = 0; !ret && f < h->e->model->feature_count; f++) {
		const struct place_part *part = feature_part(h, f, host);

		if (part)
			ret = place_floats(h, part, segment,
					   (float *)(void *)(slot->activations.data + slot->at[f]),
					   slot->elements[f]);
	}
	return ret ? ret : list_rows_take(h, slot->cargo, host, segment);
}

static int take_answers_of(struct hosts *h, uint64_t step, uint32_t host, struct reading message)
{
	const uint32_t first = h->e->first_replica;
	const struct segment_head *head;
	struct reading segment;
	struct slot *slot;
	int ret = 0;

	while (!ret && message.left) {
		head = segment_next(&message, &segment);
		if (!head || head->replica - first >= h->e->local_replicas)
			return segment_bad(h, host, "activations");
		pthread_mutex_lock(&h->e->lock);
		slot = steps_slot(h, head->replica - first, step);
		pthread_mutex_unlock(&h->e->lock);
		ret = slot ? answers_take_segment(h, slot, host, &segment)
			   : segment_bad(h, host, "activations");
	}
	return ret;
}

/* All rows have come. */
static int pool_replicas(struct hosts *h, uint64_t step)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && h->list_count && i < h->e->local_replicas; i++) {
		const struct slot *slot;

		pthread_mutex_lock(&h->e->lock);
		slot = steps_slot(h, i, step);
		pthread_mutex_unlock(&h->e->lock);
		if (!slot->ids_only)
			ret = list_rows_pool(h, slot);
	}
	return ret;
}

int answers_take(struct hosts *h, uint64_t step, const struct embeng_bytes *received)
{
	int ret = 0;

	for (uint32_t host = 0; !ret && host < h->hosts; host++)
		ret = take_answers_of(h, step, host,
				      (struct reading){received[host].data, received[host].bytes});
	return ret ? ret : pool_replicas(h, step);
}
