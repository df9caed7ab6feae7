// SPDX-License-Identifier: MIT
/*
 * The three stages of a step: ids, answers, gradients. Each has a thread, which runs stage_move() whenever
 * stage_can_move(). A stage never waits for a call that the program of this host has still to make; other
 * hosts are waited for in exchanges.
 *
 * e->lock is held at the calls, and not during exchanges and calls of the owner handle.
 */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "joined.h"
#include "list_stats.h"
#include "steps.h"

static const struct embeng_bytes *bytes_of_slot(const struct slot *slot, uint32_t stage)
{
	return stage == CHANNEL_IDS ? slot->cargo->ids_for : slot->cargo->gradients_for;
}

/*
 * Finds the slots of a step. e->lock must be held since the stage was seen to be able to move: when the group
 * fails, a call that waits for the step gives its slot up. Ids and gradients of a slot stay where they are
 * until the handle is freed.
 */
static void find_slots(struct hosts *h, uint64_t step, uint32_t stage)
{
	for (uint32_t i = 0; i < h->e->local_replicas; i++)
		h->slots[stage][i] = steps_slot(h, i, step);
}

/* Puts the segments of several replicas one behind another; one alone goes as it is. */
static int join_segments(struct hosts *h, uint32_t stage)
{
	struct hosts_memory *memory = &h->memory[stage];
	struct embeng_bytes *send = h->send[stage];
	const uint32_t count = h->e->local_replicas;
	struct slot **slots = h->slots[stage];
	uint64_t all = 0;
	char *to;
	int ret;

	for (uint32_t host = 0; host < h->hosts; host++) {
		send[host] = count == 1 ? bytes_of_slot(slots[0], stage)[host]
					: (struct embeng_bytes){0};
		for (uint32_t i = 0; count > 1 && i < count; i++)
			all += bytes_of_slot(slots[i], stage)[host].bytes;
	}
	ret = memory_need(memory, all);
	to = memory->data;
	for (uint32_t host = 0; !ret && count > 1 && host < h->hosts; host++) {
		send[host].data = to;
		for (uint32_t i = 0; i < count; i++) {
			const struct embeng_bytes *from = &bytes_of_slot(slots[i], stage)[host];

			memcpy(to, from->data, from->bytes);
			to += from->bytes;
			send[host].bytes += from->bytes;
		}
	}
	return ret;
}

/* Ends the handle on all hosts, for what this one cannot do. */
static void blame_step(struct hosts *h, const char *phase, uint64_t step, int code)
{
	struct embeng_error error = {.size = sizeof(error)};

	embeng_last_error(&error);
	hosts_blame(h, error_set(code, error.status,
				 "step %" PRIu64 ", %s: host %" PRIu32 " (%s) says: %.350s", step,
				 phase, h->rank, embeng_group_host(h->group, h->rank), error.text));
}

/* Nobody sent anything: the handle is closed on all hosts. */
static bool is_empty(const struct hosts *h, uint32_t stage)
{
	uint64_t bytes = 0;

	for (uint32_t host = 0; host < h->hosts; host++)
		bytes += h->received[stage][host].bytes;
	return !bytes;
}

/* Bytes of a host for itself stay where they are, in memory that lives until the stage has the next step. */
static int exchange_stage(struct hosts *h, const char *phase, uint64_t step, uint32_t stage,
			  int status, const char *text)
{
	struct embeng_exchange x = hosts_step_exchange(h, phase, step, stage);
	const struct embeng_bytes own = h->send[stage][h->rank];
	int ret;

	x.status = status;
	x.text = text;
	x.send = h->send[stage];
	if (hosts_serves_only(h) && stage != CHANNEL_ANSWERS)
		x.timeout_ns = HOSTS_NO_LIMIT;
	h->send[stage][h->rank].bytes = 0;
	ret = hosts_exchange(h, &x, h->received[stage]);
	h->received[stage][h->rank] = own;
	return ret;
}

/* The last exchange of a stage, which hosts without replicas may be waiting in. */
static int end_stage(struct hosts *h, const char *phase, uint64_t step, uint32_t stage)
{
	int ret;

	pthread_mutex_unlock(&h->e->lock);
	memset(h->send[stage], 0, h->hosts * sizeof(*h->send[stage]));
	ret = exchange_stage(h, phase, step, stage, 0, NULL);
	pthread_mutex_lock(&h->e->lock);
	h->ended[stage] = !ret;
	return ret;
}

static int serve_ids(struct hosts *h, uint64_t step)
{
	return h->joined ? joined_keep(h, step, h->received[CHANNEL_IDS])
			 : ids_serve(h, step, h->received[CHANNEL_IDS]);
}

/* A refusal is no failure: the same step is tried again with the next batches. */
static int move_ids(struct hosts *h, uint64_t step)
{
	const bool refuses = h->refused && h->refused->step == step;
	char text[EMBENG_ERROR_TEXT];
	int status = refuses ? h->refusal : 0, ret, served;
	bool ended;

	memcpy(text, h->refusal_text, sizeof(text));
	if (!refuses)
		find_slots(h, step, CHANNEL_IDS);
	pthread_mutex_unlock(&h->e->lock);
	ret = refuses ? 0 : join_segments(h, CHANNEL_IDS);
	if (ret) {
		struct embeng_error error = {.size = sizeof(error)};

		embeng_last_error(&error);
		memcpy(text, error.text, sizeof(text));
		status = ret;
	}
	ret = exchange_stage(h, "ids", step, CHANNEL_IDS, status, text);
	ended = !ret && is_empty(h, CHANNEL_IDS);
	served = ret || ended ? 0 : serve_ids(h, step);
	if (served)
		blame_step(h, "ids", step, served);
	pthread_mutex_lock(&h->e->lock);
	if (ret && !h->failed)
		steps_withdraw(h, step, ret);
	h->ended[CHANNEL_IDS] = ended;
	if (ret || ended || h->failed)
		return h->failed;
	h->looked = step;
	for (uint32_t i = 0; i < h->e->local_replicas; i++)
		steps_slot(h, i, step)->cargo->outcome = 1;
	return 0;
}

static void signal_event(const struct hosts *h)
{
	const uint64_t one = 1;

	if (h->event >= 0 && write(h->event, &one, sizeof(one)) < 0)
		return; /* it is readable already */
}

static int take_answers(struct hosts *h, uint64_t step)
{
	int ret = answers_take(h, step, h->received[CHANNEL_ANSWERS]);

	if (ret)
		blame_step(h, "activations", step, ret);
	return ret;
}

static int move_answers(struct hosts *h, uint64_t step)
{
	int ret;

	pthread_mutex_unlock(&h->e->lock);
	ret = answers_pack(h, step, &h->memory[CHANNEL_ANSWERS], h->send[CHANNEL_ANSWERS]);
	if (ret)
		blame_step(h, "activations", step, ret);
	ret = ret ? ret : exchange_stage(h, "activations", step, CHANNEL_ANSWERS, 0, NULL);
	ret = ret ? ret : take_answers(h, step);
	pthread_mutex_lock(&h->e->lock);
	if (ret)
		return ret;
	h->answered = step;
	for (uint32_t i = 0; i < h->e->local_replicas; i++)
		steps_slot(h, i, step)->cargo->answered = true;
	signal_event(h);
	return 0;
}

static void end_group_step(struct hosts *h, uint64_t step, uint32_t discards)
{
	struct embeng *e = h->e;

	h->updated = step;
	e->skipped += discards == e->replica_count;
	for (uint32_t i = 0; i < e->local_replicas; i++) {
		struct slot *slot = steps_slot(h, i, step);

		slot->state = SLOT_FREE;
		e->replicas[slot->replica].applied = step;
	}
	signal_event(h);
}

/* All hosts find that rates differ, and say the same of it. */
static int serve_gradients(struct hosts *h, uint64_t step, uint32_t *discards)
{
	bool alike = false;
	int ret = gradients_serve(h, step, h->received[CHANNEL_GRADIENTS], discards, &alike);

	if (ret && alike)
		hosts_blame(h, ret);
	else if (ret)
		blame_step(h, "gradients", step, ret);
	return ret;
}

static int move_gradients(struct hosts *h, uint64_t step)
{
	uint32_t discards = 0;
	bool ended;
	int ret;

	find_slots(h, step, CHANNEL_GRADIENTS);
	pthread_mutex_unlock(&h->e->lock);
	ret = join_segments(h, CHANNEL_GRADIENTS);
	if (ret)
		blame_step(h, "gradients", step, ret);
	ret = ret ? ret : exchange_stage(h, "gradients", step, CHANNEL_GRADIENTS, 0, NULL);
	ended = !ret && is_empty(h, CHANNEL_GRADIENTS);
	ret = ret || ended ? ret : serve_gradients(h, step, &discards);
	for (uint32_t i = 0; !ret && !ended && i < h->e->local_replicas; i++)
		list_stats_count(h, h->slots[CHANNEL_GRADIENTS][i]->cargo, true);
	pthread_mutex_lock(&h->e->lock);
	h->ended[CHANNEL_GRADIENTS] = ended;
	if (!ret && !ended)
		end_group_step(h, step, discards);
	return ret;
}

int stage_move(struct hosts *h, uint32_t stage)
{
	switch (stage) {
	case CHANNEL_IDS:
		return h->ending ? end_stage(h, "ids", h->looked + 1, stage)
				 : move_ids(h, h->looked + 1);
	case CHANNEL_ANSWERS:
		return move_answers(h, h->answered + 1);
	default:
		return h->ending ? end_stage(h, "gradients", h->updated + 1, stage)
				 : move_gradients(h, h->updated + 1);
	}
}
