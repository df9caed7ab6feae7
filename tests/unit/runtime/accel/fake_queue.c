// SPDX-License-Identifier: MIT
/* Queues of the fake driver: the soft device's, and what the kernel does for validated ones. */
#include <time.h>

#include "uapi/embeng_barrier.h"
#include "fake_file.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int other_way(struct fake_file *f, uint32_t kind, bool mapped)
{
	for (uint32_t i = 0; i < FAKE_QUEUES; i++) {
		const struct fake_queue *q = &f->queues[i];

		if (q->used &&
		    (q->kind == EMBENG_QUEUE_INPUT || q->kind == EMBENG_QUEUE_GRADIENT) &&
		    q->mapped != mapped)
			return kind == EMBENG_QUEUE_INPUT || kind == EMBENG_QUEUE_GRADIENT;
	}
	return 0;
}

static int queue_create(struct fake_file *f, struct embeng_accel_queue_create *c)
{
	const struct queue_config config = {.kind = c->kind,
					    .replica = c->replica,
					    .sq_entries = c->sq_entries,
					    .cq_entries = c->cq_entries};
	bool mapped = c->flags == EMBENG_ACCEL_QUEUE_MAPPED;
	struct device_queue made;
	struct fake_queue *q;

	if (other_way(f, c->kind, mapped))
		return -EINVAL;
	ck_assert_int_eq(f->soft->ops->queue_create(f->soft, &config, &made), 0);
	ck_assert_uint_lt(made.number, FAKE_QUEUES);
	q = &f->queues[made.number];
	*q = (struct fake_queue){.queue = made, .kind = c->kind, .used = true, .mapped = mapped};
	c->queue = made.number;
	c->layout = made.layout;
	c->ring = (uintptr_t)made.ring;
	c->doorbell = mapped ? (uintptr_t)made.doorbell : 0;
	return 0;
}

static struct fake_queue *queue_of(struct fake_file *f, uint32_t number)
{
	ck_assert(number < FAKE_QUEUES && f->queues[number].used);
	return &f->queues[number];
}

static int queue_destroy(struct fake_file *f, const struct embeng_accel_queue_destroy *d)
{
	queue_of(f, d->queue)->used = false;
	return 0;
}

static void push(struct fake_file *f, struct fake_queue *q, const struct embeng_cmd *cmd)
{
	uint32_t at = q->sq_tail & (q->queue.layout.sq_entries - 1);

	ck_assert(!q->mapped);
	memcpy(q->queue.ring + q->queue.layout.sq + 64ull * at, cmd, sizeof(*cmd));
	embeng_doorbell_tail(&q->queue.doorbell->sq_tail, ++q->sq_tail);
	f->soft->ops->kick(f->soft);
}

static struct embeng_ring_header *header(const struct fake_queue *q)
{
	return (struct embeng_ring_header *)(q->queue.ring + q->queue.layout.header);
}

static void complete(struct fake_queue *q, uint64_t cookie, uint16_t flags, uint16_t status)
{
	const struct embeng_queue_layout *layout = &q->queue.layout;
	struct embeng_cqe cqe = {.cookie = cookie, .flags = flags, .status = status};
	uint32_t tail = header(q)->cq_tail;

	memcpy(q->queue.ring + layout->cq + 64ull * (tail & (layout->cq_entries - 1)), &cqe,
	       sizeof(cqe));
	embeng_publish_cq_tail(&header(q)->cq_tail, tail + 1);
}

/* In the device's place, which has seen nothing of it. */
static void take(struct fake_queue *q, const struct embeng_cmd *cmd)
{
	ck_assert(!q->mapped && q->held_count < FAKE_HELD);
	q->held[q->held_count++] = cmd->cookie;
	embeng_publish_sq_head(&header(q)->sq_head, header(q)->sq_head + 1);
	complete(q, cmd->cookie, EMBENG_CQE_ACCEPTED, EMBENG_STATUS_OK);
}

static bool is_taken(const struct fake_queue *q)
{
	return (fake.takes >> q->kind & 1) != 0;
}

static int submit(struct fake_file *f, const struct embeng_accel_submit *s)
{
	struct fake_queue *q = queue_of(f, s->queue);
	const struct embeng_cmd *cmd = (const struct embeng_cmd *)(uintptr_t)s->commands;

	ck_assert(s->count == 1 && s->stride == 64);
	fake.submits++;
	if (is_taken(q)) {
		take(q, cmd);
		return 0;
	}
	ck_assert(!s->in_count && !s->out_count);
	embeng_doorbell_cq_head(&q->queue.doorbell->cq_head, s->cq_head);
	push(f, q, cmd);
	return 0;
}

static int model_load(struct fake_file *f, const struct embeng_accel_model_load *l)
{
	struct region *region = &f->blobs[f->blob_count];
	struct embeng_cmd cmd = {
		.opcode = EMBENG_OP_MODEL_LOAD, .flags = (uint16_t)l->flags, .cookie = l->cookie};
	struct fake_queue *q = queue_of(f, l->queue);

	if (is_taken(q)) {
		take(q, &cmd);
		return 0;
	}
	ck_assert_int_eq(f->soft->ops->region_alloc(f->soft, l->length, region), 0);
	memcpy(region->data, (const void *)(uintptr_t)l->blob, l->length);
	cmd.desc = region->key;
	f->blob_count++;
	push(f, q, &cmd);
	return 0;
}

static int dispatch(struct fake_file *f, unsigned long request, void *arg)
{
	switch (request) {
	case DRM_IOCTL_EMBENG_QUEUE_CREATE:
		return queue_create(f, arg);
	case DRM_IOCTL_EMBENG_QUEUE_DESTROY:
		return queue_destroy(f, arg);
	case DRM_IOCTL_EMBENG_SUBMIT:
		return submit(f, arg);
	case DRM_IOCTL_EMBENG_MODEL_LOAD:
		return model_load(f, arg);
	}
	return -ENOTTY;
}

int fake_queues(struct fake_file *f, unsigned long request, void *arg)
{
	int ret;

	pthread_mutex_lock(&lock);
	ret = dispatch(f, request, arg);
	pthread_mutex_unlock(&lock);
	return ret;
}

static uint32_t end_held(struct fake_queue *q, int status)
{
	uint32_t held = q->held_count;

	if (status < 0)
		return held;
	for (uint32_t i = 0; i < held; i++)
		complete(q, q->held[i], EMBENG_CQE_DONE, (uint16_t)status);
	q->held_count = 0;
	return held;
}

/* Queues of one kind, of all files: what they hold ends, unless @status is negative. */
static uint32_t over_kind(enum embeng_queue_kind kind, int status)
{
	struct fake_file *f;
	uint32_t held = 0;

	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; (f = fake_file(i)); i++) {
		for (uint32_t n = 0; n < FAKE_QUEUES; n++) {
			struct fake_queue *q = &f->queues[n];

			if (q->used && q->kind == (uint32_t)kind)
				held += end_held(q, status);
		}
	}
	pthread_mutex_unlock(&lock);
	return held;
}

uint32_t fake_held(enum embeng_queue_kind kind)
{
	return over_kind(kind, -1);
}

void fake_finish(enum embeng_queue_kind kind, uint16_t status)
{
	over_kind(kind, status);
}

static int64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

/* Runs the device where the kernel would let the caller sleep. */
int fake_wait(struct fake_file *f, struct embeng_accel_wait *w)
{
	const struct device_ops *ops = f->soft->ops;

	ck_assert(w->queue == EMBENG_ACCEL_ANY_QUEUE && !w->cq_head && !w->count);
	__atomic_add_fetch(&fake.waits, 1, __ATOMIC_RELAXED);
	for (;;) {
		uint32_t now = ops->event_read(f->soft);

		if (now != (uint32_t)w->events) {
			w->events = now;
			ops->fd_clear(f->soft);
			return 0;
		}
		if (clock_ns() >= w->deadline_ns)
			return -ETIME;
		ops->kick(f->soft);
		if (!ops->run(f->soft, true))
			ops->event_wait(f->soft, now, 200000);
	}
}
