// SPDX-License-Identifier: MIT
/*
 * Inference over all hosts: one collective call in which each host asks for its batch and answers the others'.
 * embeng_lookup() copies the answer to the program; embeng_enqueue() leaves it in a slot until it is dequeued.
 *
 * hosts_enter() lets one call in at a time, which then has @asking and @answer of struct hosts. The slot is
 * the call's, so no lock is held while ids and activations are copied.
 */
#include <string.h>

#include "device/layout.h"
#include "list_stats.h"
#include "segment.h"
#include "steps.h"

static int check_asked(struct hosts *h, struct slot *slot, const struct embeng_batch *b)
{
	struct embeng *e = h->e;
	int ret;

	pthread_mutex_lock(&e->lock);
	ret = ids_resolve(e, slot, b);
	ret = ret ? ret
		  : layout_outputs(e->model, slot->resolved, slot->at, slot->elements,
				   &slot->bytes);
	if (!ret && slot->outputs) {
		ret = outputs_place(e, slot, b);
		/* Nothing is written in place: it is put together here. */
		unpin_all(&slot->gradient_pins);
		memset(slot->placed, 0, e->model->feature_count * sizeof(*slot->placed));
	}
	pthread_mutex_unlock(&e->lock);
	return ret;
}

static int ask_hosts(struct hosts *h, struct slot *slot, const struct embeng_batch *b)
{
	int ret = check_asked(h, slot, b);

	ret = ret ? ret : ids_pack(h, slot, b);
	ret = ret ? ret : region_grow(h->e, &slot->activations, slot->bytes);
	if (!ret && !slot->outputs)
		ret = slot_note_lengths(h->e, slot, b);
	return hosts_control(h->e, "lookup", ret, ret ? NULL : slot->cargo->ids_for,
			     h->received[CHANNEL_CONTROL]);
}

/* Floats that the owner handle's feature @f has for its input. */
static uint64_t floats_of_input(const struct hosts *h, const struct embeng_batch *b, size_t f)
{
	const struct feature *feature = &h->owner->model->features[f];
	const struct input *in = &b->inputs[f];
	const bool sequence = in->form == INPUT_CSR && !in->pooled;

	return in->samples * (uint64_t)h->owner->model->tables[feature->table].dim *
	       (sequence ? (uint64_t)feature->max_sequence_length : 1);
}

/* Bytes of the answer to what a host asks, whose ids are in @b. */
static uint64_t bytes_for_asker(const struct hosts *h, const struct embeng_batch *b)
{
	uint64_t bytes = sizeof(struct segment_head);

	for (size_t f = 0; f < b->count; f++)
		bytes += segment_pad(4 * floats_of_input(h, b, f));
	return bytes;
}

static int unpack_asked(struct hosts *h, uint32_t host)
{
	const struct embeng_bytes *came = &h->received[CHANNEL_CONTROL][host];
	struct reading message = {came->data, came->bytes}, segment;

	if (!segment_next(&message, &segment))
		return segment_bad(h, host, "ids");
	return ids_unpack(h, &segment, host, h->asked, NULL);
}

static int answer_host(struct hosts *h, char *to)
{
	const size_t count = h->asked->count;
	struct segment_head head = {.bytes = bytes_for_asker(h, h->asked)};

	memcpy(to, &head, sizeof(head));
	to += sizeof(head);
	for (size_t f = 0; f < count; f++) {
		const uint64_t floats = floats_of_input(h, h->asked, f);

		h->outputs[f] = (struct embeng_output){.data = (float *)(void *)to,
						       .elements = floats};
		to += segment_pad(4 * floats);
	}
	return embeng_lookup(h->owner, h->asked, h->outputs, count, -1);
}

/* Looks up for each host, in the order of hosts. */
static int answer_hosts(struct hosts *h)
{
	struct embeng_bytes *send = h->send[CHANNEL_CONTROL];
	uint64_t all = 0;
	int ret = 0;

	for (uint32_t host = 0; !ret && host < h->hosts; host++) {
		ret = unpack_asked(h, host);
		send[host].bytes = ret ? 0 : bytes_for_asker(h, h->asked);
		all += send[host].bytes;
	}
	ret = ret ? ret : memory_need(&h->answer, all);
	for (uint64_t host = 0, at = 0; !ret && host < h->hosts; host++) {
		send[host].data = h->answer.data + at;
		at += send[host].bytes;
		ret = unpack_asked(h, (uint32_t)host);
		ret = ret ? ret : answer_host(h, (char *)(uintptr_t)send[host].data);
	}
	return hosts_control(h->e, "lookup answers", ret, send, h->received[CHANNEL_CONTROL]);
}

static int place_answer(struct hosts *h, const struct slot *slot, uint32_t host)
{
	const struct embeng_bytes *came = &h->received[CHANNEL_CONTROL][host];
	struct reading message = {came->data, came->bytes}, segment;

	if (!segment_next(&message, &segment))
		return segment_bad(h, host, "activations");
	return answers_take_segment(h, slot, host, &segment);
}

int infer_slot(struct hosts *h, struct slot *slot, const struct embeng_batch *b)
{
	int ret = hosts_enter(h->e);

	if (ret)
		return ret;
	slot->cargo = &h->asking_cargo;
	ret = ask_hosts(h, slot, b);
	ret = ret ? ret : answer_hosts(h);
	for (uint32_t host = 0; !ret && host < h->hosts; host++)
		ret = place_answer(h, slot, host);
	if (!ret && h->list_count)
		ret = list_rows_pool(h, slot);
	if (!ret)
		list_stats_count(h, slot->cargo, false);
	if (!ret && slot->outputs)
		outputs_copy(h->e, slot, b);
	hosts_leave(h->e);
	return ret;
}

int hosts_lookup(struct embeng *e, struct embeng_batch *b, const struct embeng_output *outputs,
		 int64_t timeout_ns)
{
	struct hosts *h = e->hosts;
	struct slot slot = {0};
	int ret = slot_init(e, &slot);

	(void)timeout_ns; /* the deadline of the group counts */
	slot.mode = EMBENG_INFERENCE;
	slot.replica = b->replica;
	slot.outputs = outputs;
	ret = ret ? ret : infer_slot(h, &slot, b);
	slot_free(&slot);
	pthread_mutex_lock(&e->lock);
	e->counters.lookups += !ret;
	pthread_mutex_unlock(&e->lock);
	return ret;
}
