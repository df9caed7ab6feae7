// SPDX-License-Identifier: MIT
/*
 * Opens the device node and makes a context with queues. The library's sessions sleep, retry and
 * choose queues by themselves, which is what a check of these things must not do, and they have a
 * context for themselves, which is no use to one who asks another program's.
 *
 * All belongs to the struct board, whose file ends the context when it is closed.
 */
#include "board.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "embeng_barrier.h"

#define RING_ENTRIES 64u
#define LOOK_EVERY_NS 20000

int board_call(const struct board *b, unsigned long request, void *arg)
{
	int ret;

	do
		ret = ioctl(b->fd, request, arg);
	while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : 0;
}

int64_t board_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * BOARD_SECOND + now.tv_nsec;
}

static int query_board(const struct board *b, uint32_t what, void *data, uint32_t size)
{
	struct embeng_accel_query query = {
		.what = what, .size = size, .data = (uint64_t)(uintptr_t)data};

	return board_call(b, DRM_IOCTL_EMBENG_QUERY, &query);
}

bool board_open(const char *node, struct board *b, struct finding *f)
{
	struct embeng_accel_context_create context = {0};
	int err;

	*b = (struct board){.fd = open(node, O_RDWR | O_CLOEXEC)};
	if (b->fd < 0) {
		finding_fail(f, "%s cannot be opened: %s", node, strerror(errno));
		return false;
	}
	err = query_board(b, EMBENG_ACCEL_QUERY_DEVICE, &b->device, sizeof(b->device));
	err = err ? err : board_call(b, DRM_IOCTL_EMBENG_CONTEXT_CREATE, &context);
	if (!err)
		return true;
	finding_fail(f, "the device gives no context: %s", strerror(-err));
	close(b->fd);
	return false;
}

bool board_resets(const struct board *b, struct embeng_accel_resets *out, struct finding *f)
{
	int err = query_board(b, EMBENG_ACCEL_QUERY_RESETS, out, sizeof(*out));

	if (err)
		finding_fail(f, "the driver does not say what was reset: %s", strerror(-err));
	return !err;
}

bool board_context(const struct board *b, struct embeng_accel_context_state *out, struct finding *f)
{
	int err = query_board(b, EMBENG_ACCEL_QUERY_CONTEXT, out, sizeof(*out));

	if (err)
		finding_fail(f, "the driver does not describe the context: %s", strerror(-err));
	return !err;
}

bool board_caps(const struct board *b, struct embeng_caps *out, struct finding *f)
{
	int err = query_board(b, EMBENG_ACCEL_QUERY_CAPS, out, sizeof(*out));

	if (err)
		finding_fail(f, "the driver does not say what the device can do: %s",
			     strerror(-err));
	return !err;
}

static void *map_board(const struct board *b, uint64_t offset, uint64_t bytes, bool writable)
{
	void *at = mmap(NULL, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
			b->fd, (off_t)offset);

	return at == MAP_FAILED ? NULL : at;
}

bool board_queue_open(const struct board *b, uint32_t kind, bool mapped, struct board_queue *q,
		      struct finding *f)
{
	int err;

	*q = (struct board_queue){.made = {.kind = kind,
					   .flags = mapped ? EMBENG_ACCEL_QUEUE_MAPPED : 0,
					   .sq_entries = RING_ENTRIES,
					   .cq_entries = 2 * RING_ENTRIES}};
	err = board_call(b, DRM_IOCTL_EMBENG_QUEUE_CREATE, &q->made);
	if (err) {
		finding_fail(f, "the device refuses a queue: %s", strerror(-err));
		return false;
	}
	q->ring = map_board(b, q->made.ring, q->made.layout.size, mapped);
	if (mapped)
		q->doorbell = map_board(b, q->made.doorbell, sizeof(*q->doorbell), true);
	if (q->ring && (q->doorbell || !mapped))
		return true;
	finding_fail(f, "a queue cannot be mapped: %s", strerror(errno));
	board_queue_close(b, q);
	return false;
}

void board_queue_close(const struct board *b, struct board_queue *q)
{
	struct embeng_accel_queue_destroy destroy = {.queue = q->made.queue};

	board_call(b, DRM_IOCTL_EMBENG_QUEUE_DESTROY, &destroy);
	if (q->ring)
		munmap(q->ring, q->made.layout.size);
	if (q->doorbell)
		munmap(q->doorbell, sizeof(*q->doorbell));
	*q = (struct board_queue){0};
}

static const struct embeng_ring_header *find_ring_header(const struct board_queue *q)
{
	return (const struct embeng_ring_header *)(q->ring + q->made.layout.header);
}

static void push_command(struct board_queue *q, const struct embeng_cmd *cmd)
{
	const struct embeng_queue_layout *layout = &q->made.layout;
	uint32_t slot = q->sq_tail++ & (layout->sq_entries - 1);

	memcpy(q->ring + layout->sq + slot * sizeof(*cmd), cmd, sizeof(*cmd));
	embeng_doorbell_tail(&q->doorbell->sq_tail, q->sq_tail);
}

int board_submit(const struct board *b, struct board_queue *q, const struct embeng_cmd *cmd,
		 const struct board_syncs *syncs)
{
	struct embeng_accel_submit submit = {.queue = q->made.queue,
					     .count = 1,
					     .stride = sizeof(*cmd),
					     .commands = (uint64_t)(uintptr_t)cmd,
					     .cq_head = q->cq_head};
	int err;

	if (q->doorbell) {
		push_command(q, cmd);
		return 0;
	}
	if (syncs) {
		submit.in_syncs = (uint64_t)(uintptr_t)syncs->in;
		submit.in_count = syncs->in != NULL;
		submit.out_syncs = (uint64_t)(uintptr_t)syncs->out;
		submit.out_count = syncs->out != NULL;
	}
	err = board_call(b, DRM_IOCTL_EMBENG_SUBMIT, &submit);
	q->sq_tail += !err;
	return err;
}

void board_arm(struct board_queue *q, uint32_t index)
{
	EMBENG_STORE_RELEASE(&q->doorbell->arm, index);
	EMBENG_STORE_RELEASE(&q->doorbell->armed, q->doorbell->armed + 1);
}

bool board_ready(const struct board_queue *q)
{
	return embeng_observe_cq_tail(&find_ring_header(q)->cq_tail) != q->cq_head;
}

static int await_completion(const struct board_queue *q, int64_t timeout_ns)
{
	const struct timespec pause = {.tv_nsec = LOOK_EVERY_NS};
	int64_t end = board_now_ns() + timeout_ns;

	while (!board_ready(q)) {
		if (EMBENG_LOAD_ACQUIRE(&find_ring_header(q)->dead))
			return board_ready(q) ? 0 : -ESHUTDOWN;
		if (board_now_ns() > end)
			return -ETIME;
		nanosleep(&pause, NULL);
	}
	return 0;
}

int board_take(struct board_queue *q, int64_t timeout_ns, struct embeng_cqe *out)
{
	const struct embeng_queue_layout *layout = &q->made.layout;
	int err = await_completion(q, timeout_ns);
	uint32_t slot;

	if (err)
		return err;
	slot = q->cq_head++ & (layout->cq_entries - 1);
	memcpy(out, q->ring + layout->cq + slot * sizeof(*out), sizeof(*out));
	if (q->doorbell)
		embeng_doorbell_cq_head(&q->doorbell->cq_head, q->cq_head);
	return 0;
}

bool board_run(const struct board *b, struct board_queue *q, const struct embeng_cmd *cmd,
	       struct embeng_cqe *out, struct finding *f)
{
	int err = board_submit(b, q, cmd, NULL);

	err = err ? err : board_take(q, 10 * BOARD_SECOND, out);
	if (err)
		finding_fail(f, "a command was not completed: %s", strerror(-err));
	return !err;
}

const char *board_status_text(uint32_t status)
{
	static const char *const texts[] = {
#define STATUS_TEXT(name, value, cls, err, exit_code, text) [value] = (text),
		EMBENG_STATUS_TABLE(STATUS_TEXT)
#undef STATUS_TEXT
	};

	return status < sizeof(texts) / sizeof(texts[0]) && texts[status] ? texts[status]
									  : "unknown status";
}
