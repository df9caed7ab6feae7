// SPDX-License-Identifier: MIT
/*
 * Inference over all hosts: one collective call in which each host asks for its batch and answers the others'.
 * embeng_lookup() copies the answer to the program; embeng_enqueue() leaves it in a slot until it is dequeued.
 *
 * hosts_enter_lookup() lets one call in at a time, which then has @asking_cargo, @looking and @answer of struct
 * hosts. The slot is the call's, so no lock is held while ids and activations are copied.
 *
 * The wait for other hosts may end before they come: at the call's deadline, or when the program wants it. The
 * exchange cannot be taken back then, since other hosts count on it. A call with the same ids goes on with it;
 * any other collective call ends it first.
 */
#include <string.h>

#include "base/ask.h"
#include "device/layout.h"
#include "group/group.h"
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

/* Ids of a batch, for all hosts, and memory for its activations. */
static int pack_asked(struct hosts *h, struct slot *slot, const struct embeng_batch *b)
{
	int ret = check_asked(h, slot, b);

	ret = ret ? ret : ids_pack(h, slot, b);
	ret = ret ? ret : memory_of_slot(h, &slot->activations, slot->bytes);
	if (!ret && !slot->outputs)
		ret = slot_note_lengths(h->e, slot, b);
	return ret;
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

/* Looks up for each host, in the order of hosts, and begins to send what was found. */
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
	ret = hosts_control_begin(h->e, "lookup answers", ret, send);
	if (!ret)
		h->looking = LOOKING_ANSWERS;
	return ret;
}

static int place_answer(struct hosts *h, const struct slot *slot, uint32_t host)
{
	const struct embeng_bytes *came = &h->received[CHANNEL_CONTROL][host];
	struct reading message = {came->data, came->bytes}, segment;

	if (!segment_next(&message, &segment))
		return segment_bad(h, host, "activations");
	return answers_take_segment(h, slot, host, &segment);
}

/* -- a lookup whose wait ended before all hosts made it -- */

static uint64_t bytes_of_ids(const struct hosts *h)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < h->hosts; i++)
		bytes += h->asking_cargo.ids_for[i].bytes;
	return bytes;
}

/* Keeps the ids: the call that goes on with the lookup has the same. Without memory for them no call can. */
static void note_looked_for(struct hosts *h)
{
	char *to;

	h->looked_bytes = UINT64_MAX;
	if (h->looking_status || memory_need(&h->looked_for, bytes_of_ids(h)))
		return;
	h->looked_bytes = bytes_of_ids(h);
	to = h->looked_for.data;
	for (uint32_t i = 0; i < h->hosts; i++) {
		const struct embeng_bytes *ids = &h->asking_cargo.ids_for[i];

		if (ids->bytes)
			memcpy(to, ids->data, ids->bytes);
		to += ids->bytes;
	}
}

/* Whether the packed batch asks for the same as the lookup that is under way. */
static bool is_under_way(const struct hosts *h, int status)
{
	const char *at = h->looked_for.data;

	if (h->looking_status || status)
		return h->looking_status == status;
	if (h->looked_bytes != bytes_of_ids(h))
		return false;
	for (uint32_t i = 0; i < h->hosts; i++) {
		const struct embeng_bytes *ids = &h->asking_cargo.ids_for[i];

		if (ids->bytes && memcmp(at, ids->data, ids->bytes))
			return false;
		at += ids->bytes;
	}
	return true;
}

/* Both exchanges, from the one that is under way to the last. Return: -ETIME, -EINTR: it goes on. */
static int finish_looking(struct hosts *h, struct deadline deadline)
{
	while (h->looking) {
		const int stage = h->looking;
		int ret = hosts_control_wait(h->e, deadline);

		if (ret)
			return ret;
		h->looking = LOOKING_NOT;
		ret = hosts_control_end(h->e, h->received[CHANNEL_CONTROL]);
		if (!ret && stage == LOOKING_IDS)
			ret = answer_hosts(h);
		if (ret)
			return ret;
	}
	return 0;
}

/*
 * Ends a lookup that was left under way, and drops its activations. Nobody waits for its refusal any more, so that
 * only a failure of the group is returned.
 */
static int settle_looking(struct hosts *h, struct deadline deadline)
{
	int ret = finish_looking(h, deadline);

	return h->looking || group_cause(h->group) ? ret : 0;
}

static int begin_looking(struct hosts *h, int status)
{
	int ret = hosts_control_begin(h->e, "lookup", status,
				      status ? NULL : h->asking_cargo.ids_for);

	if (!ret) {
		h->looking = LOOKING_IDS;
		h->settle = settle_looking;
		h->looking_status = status;
	}
	return ret;
}

/* Sends the batch, unless it is on its way since an earlier call, and waits for the answers. */
static int look_on_hosts(struct hosts *h, int status, struct deadline deadline)
{
	int ret = 0;

	if (h->looking && !is_under_way(h, status))
		ret = settle_looking(h, deadline);
	if (ret)
		return ret;
	if (!h->looking)
		ret = begin_looking(h, status);
	ret = ret ? ret : finish_looking(h, deadline);
	if (h->looking)
		note_looked_for(h);
	return ret;
}

int infer_slot(struct hosts *h, struct slot *slot, const struct embeng_batch *b,
	       struct deadline deadline)
{
	const bool before = ask_allow(true);
	int ret;

	deadline.program = true;
	ret = hosts_enter_lookup(h->e, deadline);
	ask_allow(before);
	if (ret)
		return ret;
	slot->cargo = &h->asking_cargo;
	ask_allow(true);
	ret = look_on_hosts(h, pack_asked(h, slot, b), deadline);
	ask_allow(before);
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

	slot.mode = EMBENG_INFERENCE;
	slot.replica = b->replica;
	slot.outputs = outputs;
	ret = ret ? ret : infer_slot(h, &slot, b, deadline_in(timeout_ns));
	slot_free(&slot);
	pthread_mutex_lock(&e->lock);
	e->counters.lookups += !ret;
	pthread_mutex_unlock(&e->lock);
	return ret;
}
