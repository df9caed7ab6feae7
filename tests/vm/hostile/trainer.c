// SPDX-License-Identifier: MIT
/*
 * Trains a small model through the device node and checks its rows, to show that a device still
 * computes correctly.
 */
#include "trainer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "../../unit/support/direct_model.h"

#define TRY(call) \
	do { \
		const char *wrong = call; \
		if (wrong) \
			return wrong; \
	} while (0)

__attribute__((format(printf, 2, 3))) static const char *say(struct trainer *t, const char *format,
							     ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(t->wrong, sizeof(t->wrong), format, list);
	va_end(list);
	return t->wrong;
}

static const char *call(struct trainer *t, const char *what, unsigned long request, void *arg)
{
	int ret = accel_call(t->fd, request, arg);

	return ret ? say(t, "%s: %s", what, strerror(-ret)) : NULL;
}

static const char *map(struct trainer *t, uint64_t offset, uint64_t size, int protection, void *out)
{
	void *at = mmap(NULL, size, protection, MAP_SHARED, t->fd, (off_t)offset);

	if (at == MAP_FAILED)
		return say(t, "mmap at %#llx: %s", (unsigned long long)offset, strerror(errno));
	memcpy(out, &at, sizeof(at));
	return NULL;
}

static const char *make_queue(struct trainer *t, struct ring *ring, uint32_t kind)
{
	bool mapped = t->flags & EMBENG_ACCEL_QUEUE_MAPPED;

	ring->made = accel_queue(kind, t->flags);
	ring->made.first = t->first;
	ring->sq_tail = t->first;
	ring->cq_head = t->first;
	TRY(call(t, "QUEUE_CREATE", DRM_IOCTL_EMBENG_QUEUE_CREATE, &ring->made));
	TRY(map(t, ring->made.ring, ring->made.layout.size,
		mapped ? PROT_READ | PROT_WRITE : PROT_READ, &ring->memory));
	return mapped ? map(t, ring->made.doorbell, sizeof(*ring->doorbell), PROT_READ | PROT_WRITE,
			    &ring->doorbell)
		      : NULL;
}

static const char *make_memory(struct trainer *t)
{
	struct embeng_accel_bind bind = {.rights = EMBENG_REGION_DEVICE_READ |
						   EMBENG_REGION_DEVICE_WRITE};

	t->bo.size = TRAINER_MEMORY;
	TRY(call(t, "BO_CREATE", DRM_IOCTL_EMBENG_BO_CREATE, &t->bo));
	TRY(map(t, t->bo.offset, TRAINER_MEMORY, PROT_READ | PROT_WRITE, &t->memory));
	bind.handle = t->bo.handle;
	TRY(call(t, "BIND", DRM_IOCTL_EMBENG_BIND, &bind));
	t->key = (struct embeng_mem){.index = bind.index, .generation = bind.generation};
	return NULL;
}

static struct embeng_mem at(const struct trainer *t, uint64_t offset, uint64_t length)
{
	return (struct embeng_mem){.index = t->key.index,
				   .generation = t->key.generation,
				   .offset = offset,
				   .length = length};
}

static const char *give(struct trainer *t, struct ring *ring, struct embeng_cmd cmd)
{
	struct embeng_accel_submit arg = {.queue = ring->made.queue,
					  .count = 1,
					  .stride = sizeof(cmd),
					  .commands = (uintptr_t)&cmd,
					  .cq_head = ring->cq_head};

	if (!ring->doorbell)
		return call(t, "SUBMIT", DRM_IOCTL_EMBENG_SUBMIT, &arg);
	accel_push(ring, cmd);
	return NULL;
}

static const char *wait(struct trainer *t, struct ring *ring)
{
	struct embeng_accel_wait arg = {.queue = ring->made.queue,
					.cq_head = ring->cq_head,
					.count = 1,
					.deadline_ns = accel_now() + t->patience};

	if (ring->doorbell) {
		EMBENG_STORE_RELEASE(&ring->doorbell->arm, ring->cq_head);
		EMBENG_STORE_RELEASE(&ring->doorbell->armed, ring->doorbell->armed + 1);
	}
	TRY(call(t, "WAIT", DRM_IOCTL_EMBENG_WAIT, &arg));
	return arg.cq_tail == ring->cq_head
		       ? say(t, "queue %u stands in state %u", arg.queue, arg.state)
		       : NULL;
}

static const char *take(struct trainer *t, struct ring *ring, struct embeng_cqe *cqe)
{
	const struct embeng_queue_layout *layout = &ring->made.layout;
	uint32_t slot;

	TRY(wait(t, ring));
	slot = ring->cq_head++ & (layout->cq_entries - 1);
	memcpy(cqe, ring->memory + layout->cq + slot * sizeof(*cqe), sizeof(*cqe));
	if (ring->doorbell)
		embeng_doorbell_cq_head(&ring->doorbell->cq_head, ring->cq_head);
	return NULL;
}

/* Gives a command until there is memory for it; takes all its completions. */
static const char *run(struct trainer *t, struct ring *ring, struct embeng_cmd cmd)
{
	struct embeng_cqe cqe;

	cmd.cookie = ++t->random;
	do {
		TRY(give(t, ring, cmd));
		do {
			TRY(take(t, ring, &cqe));
			if (cqe.cookie != cmd.cookie)
				return say(t, "cookie %#llx, not %#llx",
					   (unsigned long long)cqe.cookie,
					   (unsigned long long)cmd.cookie);
		} while (!(cqe.flags & EMBENG_CQE_DONE) && !cqe.status);
	} while (t->forgiving && cqe.status == EMBENG_STATUS_NO_MEMORY && ++t->retries);
	return cqe.status ? say(t, "opcode %u: status %u, field %u, value %llu", cmd.opcode,
				cqe.status, cqe.field, (unsigned long long)cqe.value)
			  : NULL;
}

static const char *load(struct trainer *t)
{
	struct small_model model = small_model(TRAINER_ROWS, TRAINER_DIM);
	static __thread struct direct_blob blob;

	small_blob(&model, &blob);
	t->hash = blob.header.hash;
	t->blob_length = blob.length;
	memcpy(t->memory, blob.data, blob.length);
	return run(
		t, &t->transfer,
		(struct embeng_cmd){.opcode = EMBENG_OP_MODEL_LOAD, .desc = at(t, 0, blob.length)});
}

/* splitmix64 */
static uint64_t next(struct trainer *t)
{
	uint64_t z = t->random += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* Quarters, small enough that sums of them are exact. */
static float quarter(struct trainer *t)
{
	return (float)((int)(next(t) % 17) - 8) * 0.25f;
}

static const char *rows(struct trainer *t, uint16_t opcode)
{
	const struct embeng_rows desc = {.count = TRAINER_ROWS,
					 .data = at(t, TRAINER_TABLE, sizeof(t->table))};

	memcpy(t->memory + TRAINER_DESC, &desc, sizeof(desc));
	return run(t, &t->transfer,
		   (struct embeng_cmd){.opcode = opcode,
				       .after = t->step,
				       .desc = at(t, TRAINER_DESC, sizeof(desc))});
}

static const char *fill(struct trainer *t)
{
	for (uint32_t i = 0; i < TRAINER_ROWS * TRAINER_DIM; i++)
		t->table[i / TRAINER_DIM][i % TRAINER_DIM] = quarter(t);
	memcpy(t->memory + TRAINER_TABLE, t->table, sizeof(t->table));
	return rows(t, EMBENG_OP_ROWS_WRITE);
}

const char *trainer_open(struct trainer *t, int fd, uint32_t flags, int64_t patience, uint64_t seed)
{
	struct embeng_accel_context_create context = {0};

	*t = (struct trainer){.fd = fd,
			      .flags = flags,
			      .patience = patience,
			      .random = seed,
			      .first = seed % 2 ? -(uint32_t)(seed % 64) : 0};
	TRY(call(t, "CONTEXT_CREATE", DRM_IOCTL_EMBENG_CONTEXT_CREATE, &context));
	TRY(make_memory(t));
	TRY(make_queue(t, &t->transfer, EMBENG_QUEUE_TRANSFER));
	TRY(make_queue(t, &t->input, EMBENG_QUEUE_INPUT));
	TRY(make_queue(t, &t->gradient, EMBENG_QUEUE_GRADIENT));
	TRY(load(t));
	return fill(t);
}

static const char *lookup(struct trainer *t)
{
	const uint64_t floats = TRAINER_SAMPLES * TRAINER_DIM * sizeof(float);
	const struct {
		struct embeng_lookup head;
		struct embeng_lookup_feature feature;
	} desc = {
		{.feature_count = 1, .feature_stride = sizeof(desc.feature), .model_hash = t->hash},
		{.form = EMBENG_FORM_DENSE,
		 .id_width = 4,
		 .sample_count = TRAINER_SAMPLES,
		 .id_count = TRAINER_SAMPLES,
		 .ids = at(t, TRAINER_IDS, sizeof(t->ids)),
		 .activations = at(t, TRAINER_OUT, floats)},
	};

	for (uint32_t i = 0; i < TRAINER_SAMPLES; i++)
		t->ids[i] = next(t) % TRAINER_ROWS;
	memcpy(t->memory + TRAINER_IDS, t->ids, sizeof(t->ids));
	memset(t->memory + TRAINER_OUT, 0xff, floats);
	memcpy(t->memory + TRAINER_DESC, &desc, sizeof(desc));
	return run(t, &t->input,
		   (struct embeng_cmd){.opcode = EMBENG_OP_LOOKUP,
				       .step = t->step + 1,
				       .desc = at(t, TRAINER_DESC, sizeof(desc))});
}

static const char *compare(struct trainer *t)
{
	for (uint32_t i = 0; i < TRAINER_SAMPLES; i++) {
		const uint8_t *got = t->memory + TRAINER_OUT + i * sizeof(t->table[0]);

		if (memcmp(got, t->table[t->ids[i]], sizeof(t->table[0])))
			return say(t, "step %llu: wrong activations of row %u",
				   (unsigned long long)t->step + 1, t->ids[i]);
	}
	return NULL;
}

static const char *update(struct trainer *t)
{
	const uint64_t floats = TRAINER_SAMPLES * TRAINER_DIM * sizeof(float);
	const struct {
		struct embeng_update head;
		struct embeng_update_feature feature;
	} desc = {
		{.feature_count = 1, .feature_stride = sizeof(desc.feature), .model_hash = t->hash},
		{.gradients = at(t, TRAINER_GRADIENTS, floats)},
	};
	float gradients[TRAINER_SAMPLES][TRAINER_DIM];

	for (uint32_t i = 0; i < TRAINER_SAMPLES * TRAINER_DIM; i++) {
		uint32_t sample = i / TRAINER_DIM, column = i % TRAINER_DIM;

		gradients[sample][column] = quarter(t);
		t->table[t->ids[sample]][column] -= gradients[sample][column];
	}
	memcpy(t->memory + TRAINER_GRADIENTS, gradients, sizeof(gradients));
	memcpy(t->memory + TRAINER_DESC, &desc, sizeof(desc));
	return run(t, &t->gradient,
		   (struct embeng_cmd){.opcode = EMBENG_OP_UPDATE,
				       .step = ++t->step,
				       .desc = at(t, TRAINER_DESC, sizeof(desc))});
}

const char *trainer_step(struct trainer *t)
{
	TRY(lookup(t));
	if (!t->blind)
		TRY(compare(t));
	return update(t);
}

const char *trainer_check(struct trainer *t)
{
	TRY(rows(t, EMBENG_OP_ROWS_READ));
	return memcmp(t->memory + TRAINER_TABLE, t->table, sizeof(t->table))
		       ? say(t, "wrong rows after step %llu", (unsigned long long)t->step)
		       : NULL;
}

static void resume(struct ring *ring)
{
	ring->sq_tail = ring->doorbell->sq_tail;
	ring->cq_head = ring->doorbell->cq_head;
}

void trainer_resume(struct trainer *t)
{
	if (!(t->flags & EMBENG_ACCEL_QUEUE_MAPPED))
		return;
	resume(&t->transfer);
	resume(&t->input);
	resume(&t->gradient);
}

static void unmap_ring(struct ring *ring)
{
	if (ring->memory)
		munmap(ring->memory, ring->made.layout.size);
	if (ring->doorbell)
		munmap(ring->doorbell, sizeof(*ring->doorbell));
}

void trainer_unmap(struct trainer *t)
{
	unmap_ring(&t->transfer);
	unmap_ring(&t->input);
	unmap_ring(&t->gradient);
	if (t->memory)
		munmap(t->memory, TRAINER_MEMORY);
}
