// SPDX-License-Identifier: MIT
/* One context fed by two processes, and memory that two processes share. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit/support/suite.h"
#include "embeng.h"

#define ROWS 64
#define DIM 4
#define SAMPLES 8
#define STEPS 6
#define ELEMENTS (SAMPLES * DIM)

/* Descriptors and numbers that one process tells the other. */
struct note {
	int fds[2];
	size_t offsets[2];
};

static struct embeng_model *make_model(uint32_t replicas)
{
	struct embeng_table_config t = {
		.size = sizeof(t),
		.name = "t",
		.vocabulary_size = ROWS,
		.dim = DIM,
		.optimizer = embeng_adagrad(0.1f),
		.initializer = {.kind = EMBENG_INIT_UNIFORM, .a = -1, .b = 1, .seed = 7}};
	struct embeng_feature_config f = {.size = sizeof(f), .name = "f"};
	struct embeng_engine_config c = {.size = sizeof(c), .replicas = replicas};
	struct embeng_model *m = embeng_model_new();

	if (!m || embeng_model_add_table(m, &t) < 0 || embeng_model_add_feature(m, &f) < 0 ||
	    embeng_model_set_engine(m, &c))
		abort();
	return m;
}

static struct embeng *open_on(const char *name, uint32_t replicas)
{
	struct embeng_model *m = make_model(replicas);
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng *e = NULL;

	ck_assert_msg(!embeng_open(name, m, &e, &error), "%s", error.text);
	embeng_model_free(m);
	return e;
}

/* The replica's lookup of a step; its activations, or NULL. */
static const float *look_up(struct embeng *e, uint32_t replica, int step)
{
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, replica);
	struct embeng_activations a = {.size = sizeof(a)};
	const int64_t shape[] = {SAMPLES};
	int64_t ids[SAMPLES];
	int ret;

	for (int i = 0; i < SAMPLES; i++)
		ids[i] = (5 * step + 3 * (int)replica + i * i) % ROWS;
	ret = embeng_batch_dense(b, 0, EMBENG_I64, ids, SAMPLES, shape, 1);
	ret = ret ? ret : embeng_enqueue(e, b, -1);
	embeng_batch_free(b);
	ret = ret ? ret : embeng_dequeue(e, replica, -1, &a);
	return ret ? NULL : a.features[0].data;
}

static void derive(const float *activations, float *gradients)
{
	for (int i = 0; i < ELEMENTS; i++)
		gradients[i] = 2 * activations[i] + 0.125f;
}

static int hand_in(struct embeng *e, uint32_t replica, const float *gradients)
{
	const size_t elements[] = {ELEMENTS};
	struct embeng_gradients g = {.size = sizeof(g),
				     .replica = replica,
				     .count = 1,
				     .features = &gradients,
				     .elements = elements};

	return embeng_apply_gradients(e, &g, -1);
}

static int train_part(struct embeng *e, uint32_t replica, int step)
{
	const float *activations = look_up(e, replica, step);
	float gradients[ELEMENTS];

	if (!activations)
		return -1;
	derive(activations, gradients);
	return hand_in(e, replica, gradients);
}

/* One process, @replicas of them, on the soft device. */
static void train_alone(uint32_t replicas, float rows[ROWS * DIM])
{
	struct embeng *e = open_on("soft:cores=1", replicas);

	for (int step = 1; step <= STEPS; step++)
		for (uint32_t r = 0; r < replicas; r++)
			ck_assert_int_eq(train_part(e, r, step), 0);
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, NULL, ROWS, rows), 0);
	embeng_close(e);
}

static void tell(int socket, const struct note *note, size_t count)
{
	struct iovec data = {(void *)note, sizeof(*note)};
	char control[CMSG_SPACE(2 * sizeof(int))] __attribute__((aligned(8))) = {0};
	struct msghdr message = {.msg_iov = &data,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = CMSG_SPACE(count * sizeof(int))};
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(head), note->fds, count * sizeof(int));
	ck_assert_int_eq(sendmsg(socket, &message, 0), sizeof(*note));
}

/* False at the end. */
static bool hear(int socket, struct note *note)
{
	struct iovec data = {note, sizeof(*note)};
	char control[CMSG_SPACE(2 * sizeof(int))] __attribute__((aligned(8)));
	struct msghdr message = {.msg_iov = &data,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof(control)};

	if (recvmsg(socket, &message, 0) != sizeof(*note))
		return false;
	memcpy(note->fds, CMSG_DATA(CMSG_FIRSTHDR(&message)),
	       CMSG_FIRSTHDR(&message)->cmsg_len - CMSG_LEN(0));
	return true;
}

/* Runs @body in another process; returns this one's end of a socket to it. */
static int start(int (*body)(int socket), pid_t *child)
{
	int ends[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	*child = fork();
	ck_assert_int_ge(*child, 0);
	if (!*child) {
		close(ends[0]);
		_exit(body(ends[1]));
	}
	close(ends[1]);
	return ends[0];
}

static void expect_end(pid_t child)
{
	int status;

	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_msg(WIFEXITED(status) && !WEXITSTATUS(status), "the other process: %#x", status);
}

static int feed_second(int socket)
{
	struct embeng_model *m = make_model(2);
	struct embeng *e;
	struct note note;

	if (!hear(socket, &note) || embeng_attach(note.fds[0], m, &e, NULL))
		return 1;
	for (int step = 1; step <= STEPS; step++)
		if (train_part(e, 1, step))
			return 2;
	if (embeng_flush(e, -1))
		return 3;
	embeng_close(e);
	embeng_model_free(m);
	return 0;
}

START_TEST(test_two_processes_feed_one_context)
{
	float want[ROWS * DIM], rows[ROWS * DIM];
	struct note note = {0};
	struct embeng *e;
	pid_t child;
	int socket = start(feed_second, &child);

	train_alone(2, want);
	e = open_on(NULL, 2);
	note.fds[0] = embeng_export(e);
	ck_assert_int_ge(note.fds[0], 0);
	tell(socket, &note, 1);
	close(note.fds[0]);
	for (int step = 1; step <= STEPS; step++)
		ck_assert_int_eq(train_part(e, 0, step), 0);
	ck_assert_int_eq(embeng_flush(e, -1), 0);
	expect_end(child);
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, NULL, ROWS, rows), 0);
	ck_assert_mem_eq(rows, want, sizeof(rows));
	embeng_close(e);
	close(socket);
}
END_TEST

/* Activations through a mapping of the dma-buf, gradients through a buffer of another context. */
static int derive_elsewhere(struct embeng *e, const struct note *note)
{
	size_t length = note->offsets[0] + ELEMENTS * sizeof(float), bytes;
	char *from = mmap(NULL, length, PROT_READ, MAP_SHARED, note->fds[0], 0);
	char *to = embeng_buffer_import(e, note->fds[1], &bytes);

	close(note->fds[0]);
	close(note->fds[1]);
	if (from == MAP_FAILED || !to || bytes < note->offsets[1] + ELEMENTS * sizeof(float))
		return 1;
	derive((const float *)(from + note->offsets[0]), (float *)(to + note->offsets[1]));
	munmap(from, length);
	return embeng_buffer_free(e, to);
}

static int derive_for_the_other(int socket)
{
	struct embeng_model *m = make_model(1);
	struct embeng *e;
	struct note note;

	if (embeng_open(NULL, m, &e, NULL))
		return 1;
	while (hear(socket, &note)) {
		if (derive_elsewhere(e, &note))
			return 2;
		if (write(socket, "", 1) != 1)
			return 3;
	}
	embeng_close(e);
	embeng_model_free(m);
	return 0;
}

static void train_shared_step(struct embeng *e, int step, int socket)
{
	const float *activations = look_up(e, 0, step);
	float *gradients = embeng_gradient_buffer(e, 0, 0);
	struct note note;
	char done;

	ck_assert(activations && gradients);
	note.fds[0] = embeng_memory_export(e, activations, &note.offsets[0]);
	note.fds[1] = embeng_memory_export(e, gradients, &note.offsets[1]);
	ck_assert(note.fds[0] >= 0 && note.fds[1] >= 0);
	tell(socket, &note, 2);
	close(note.fds[0]);
	close(note.fds[1]);
	ck_assert_int_eq(read(socket, &done, 1), 1);
	ck_assert_int_eq(hand_in(e, 0, gradients), 0);
}

START_TEST(test_gradients_come_from_another_process)
{
	struct embeng_counter_values before = {.size = sizeof(before)}, after = before;
	float want[ROWS * DIM], rows[ROWS * DIM];
	struct embeng *e;
	pid_t child;
	int socket = start(derive_for_the_other, &child);

	train_alone(1, want);
	e = open_on(NULL, 1);
	for (int step = 1; step <= STEPS; step++)
		train_shared_step(e, step, socket);
	close(socket);
	expect_end(child);
	ck_assert_int_eq(embeng_counters(e, &before), 0);
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, NULL, ROWS, rows), 0);
	ck_assert_int_eq(embeng_counters(e, &after), 0);
	ck_assert_mem_eq(rows, want, sizeof(rows));
	/* Ids and rows were copied, gradients never. */
	ck_assert_uint_lt(before.bytes_copied, STEPS * ELEMENTS * sizeof(float));
	embeng_close(e);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, test_two_processes_feed_one_context);
	tcase_add_test(tcase, test_gradients_come_from_another_process);
}

int main(void)
{
	return suite_main("share", add);
}
