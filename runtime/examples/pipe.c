// SPDX-License-Identifier: MIT
/*
 * Save a table of three rows into memory, as a pickle or an object store would hold it, and through a
 * pipe to another handle, which restores it while it is written.
 *
 *   row 2: 2.00 2.50
 *   through a pipe, row 2: 2.00 2.50
 */
#define _GNU_SOURCE /* pipe2 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "embeng.h"

struct memory {
	char *data;
	size_t bytes, at;
};

static int64_t write_memory(void *arg, const void *data, size_t bytes)
{
	struct memory *m = arg;
	char *larger = realloc(m->data, m->bytes + bytes);

	if (!larger)
		return -ENOMEM;
	m->data = larger;
	memcpy(m->data + m->bytes, data, bytes);
	m->bytes += bytes;
	return (int64_t)bytes;
}

static int64_t read_memory(void *arg, void *data, size_t bytes)
{
	struct memory *m = arg;

	if (bytes > m->bytes - m->at)
		bytes = m->bytes - m->at;
	memcpy(data, m->data + m->at, bytes);
	m->at += bytes;
	return (int64_t)bytes;
}

static int64_t write_pipe(void *arg, const void *data, size_t bytes)
{
	ssize_t n = write(*(int *)arg, data, bytes);

	return n < 0 ? -errno : n;
}

static int64_t read_pipe(void *arg, void *data, size_t bytes)
{
	ssize_t n = read(*(int *)arg, data, bytes);

	return n < 0 ? -errno : n;
}

/* A handle whose table starts with zeros. */
static struct embeng *open_words(void)
{
	struct embeng_model *model = embeng_model_new();
	struct embeng *e = NULL;
	int words = embeng_model_add_table(
		model, &(struct embeng_table_config){.size = sizeof(struct embeng_table_config),
						     .name = "words",
						     .vocabulary_size = 3,
						     .dim = 2,
						     .optimizer = embeng_adagrad(0.1f)});

	embeng_model_add_feature(
		model, &(struct embeng_feature_config){.size = sizeof(struct embeng_feature_config),
						       .name = "seen",
						       .table = words});
	if (embeng_open(NULL, model, &e, NULL))
		e = NULL;
	embeng_model_free(model);
	return e;
}

static int show_row(struct embeng *e, const char *what)
{
	const int64_t two = 2;
	float row[2];
	int ret = embeng_rows_read(e, 0, NULL, &two, 1, row);

	if (!ret)
		printf("%srow 2: %.2f %.2f\n", what, (double)row[0], (double)row[1]);
	return ret;
}

static int through_memory(struct embeng *from, struct embeng *to)
{
	struct memory m = {0};
	int ret = embeng_save_stream(from,
				     &(struct embeng_writer){.size = sizeof(struct embeng_writer),
							     .write = write_memory,
							     .arg = &m},
				     NULL);

	if (!ret)
		ret = embeng_restore_stream(
			to,
			&(struct embeng_reader){.size = sizeof(struct embeng_reader),
						.read = read_memory,
						.arg = &m},
			NULL);
	free(m.data);
	return ret ? ret : show_row(to, "");
}

struct sender {
	struct embeng *e;
	int fd, ret;
};

static void *send_checkpoint(void *arg)
{
	struct sender *s = arg;
	const struct embeng_writer to = {.size = sizeof(to), .write = write_pipe, .arg = &s->fd};

	s->ret = embeng_save_stream(s->e, &to, NULL);
	close(s->fd);
	return NULL;
}

static int through_pipe(struct embeng *from, struct embeng *to)
{
	int ends[2], ret = pipe2(ends, O_CLOEXEC) ? -errno : 0;
	const struct embeng_reader reader = {
		.size = sizeof(reader), .read = read_pipe, .arg = &ends[0]};
	struct sender sender = {.e = from};
	pthread_t thread;

	if (ret)
		return ret;
	sender.fd = ends[1];
	ret = -pthread_create(&thread, NULL, send_checkpoint, &sender);
	if (!ret) {
		ret = embeng_restore_stream(to, &reader, NULL);
		pthread_join(thread, NULL);
	} else {
		close(ends[1]);
	}
	close(ends[0]);
	ret = ret ? ret : sender.ret;
	return ret ? ret : show_row(to, "through a pipe, ");
}

int main(void)
{
	const float rows[] = {0, 0.5f, 1, 1.5f, 2, 2.5f};
	struct embeng *a = open_words(), *b = open_words(), *c = open_words();
	struct embeng_error err = {.size = sizeof(err)};
	int ret = a && b && c ? embeng_rows_write(a, 0, NULL, NULL, 3, rows) : -ENODEV;

	ret = ret ? ret : through_memory(a, b);
	ret = ret ? ret : through_pipe(b, c);
	if (ret) {
		embeng_last_error(&err);
		fprintf(stderr, "%s\n", err.text);
	}
	embeng_close(a);
	embeng_close(b);
	embeng_close(c);
	return ret != 0;
}
