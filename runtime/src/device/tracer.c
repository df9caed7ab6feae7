// SPDX-License-Identifier: MIT
/*
 * Records when the commands of a handle were submitted and when their completions were seen, in a
 * ring that keeps the newest. The record is off unless the environment variable EMBENG_TRACE names a
 * file. It goes there when the handle is closed or the program exits, in the form of the kernel's
 * trace file with the events of kmod/trace.h, so that one reader reads both. Several handles and
 * processes may add to a file: each is a context with a number of its own there.
 *
 * A record belongs to its handle. Its lock is taken last, below that of the handle, except that the
 * list of all records is locked before it.
 */
#define _GNU_SOURCE /* secure_getenv */
#include "tracer.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fork.h"

#define VARIABLE "EMBENG_TRACE"
#define FIRST_LINE "# embeng trace 1\n"
#define CONTEXT_LINE "# context "
#define KEPT 65536u /* events: 4 MiB, and more than 10000 steps of one replica */

/* A command, or a completion if @completion is set. */
struct traced_event {
	uint64_t time_ns, cookie, step;
	uint64_t other; /* the command's @after, or the device's time */
	uint32_t queue, index;
	uint16_t code; /* opcode or status */
	uint16_t flags;
	uint8_t kind;
	bool completion;
};

struct tracer {
	struct tracer *next; /* in the list of all */
	pthread_mutex_t lock;
	FILE *file;
	char device[96];
	uint32_t fork;
	bool written;	/* nothing is noted any more */
	uint64_t count; /* events so far, of which the last KEPT are kept */
	struct traced_event events[KEPT];
};

static struct tracer *tracers;
static pthread_mutex_t tracers_lock = PTHREAD_MUTEX_INITIALIZER;

/* -- the file ------------------------------------------------------------ */

static int open_trace_file(const char *path, FILE **out)
{
	int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
	struct stat status;
	FILE *file;

	if (fd < 0)
		return fail(-errno, VARIABLE ": %s: %s", path, strerror(errno));
	file = fstat(fd, &status) || !S_ISREG(status.st_mode) ? NULL : fdopen(fd, "a+");
	if (!file) {
		close(fd);
		return fail(-EINVAL, VARIABLE ": %s is not a regular file", path);
	}
	*out = file;
	return 0;
}

/* Counts the contexts of a file that is locked. Return: -EBADMSG if it is not a trace. */
static int count_contexts(FILE *file, uint64_t *count)
{
	char line[256];
	bool first = true;

	*count = 0;
	rewind(file);
	while (fgets(line, sizeof(line), file)) {
		if (first && strcmp(line, FIRST_LINE) != 0)
			return -EBADMSG;
		first = false;
		*count += !strncmp(line, CONTEXT_LINE, strlen(CONTEXT_LINE));
	}
	if (!ferror(file) && first) {
		fseek(file, 0, SEEK_END);
		fputs(FIRST_LINE, file);
	}
	return ferror(file) || fflush(file) ? -EIO : 0;
}

/* Makes a new file a trace, and refuses one that is something else. */
static int begin_file(FILE *file, const char *path)
{
	uint64_t contexts;
	int ret;

	flock(fileno(file), LOCK_EX);
	ret = count_contexts(file, &contexts);
	flock(fileno(file), LOCK_UN);
	if (ret == -EBADMSG)
		return fail(ret,
			    VARIABLE ": %s has something else than a trace in it; name a file that "
				     "is new or was written by " VARIABLE,
			    path);
	return ret ? fail(ret, VARIABLE ": %s cannot be read and written", path) : 0;
}

static void write_event(FILE *file, uint64_t context, const struct traced_event *e)
{
	fprintf(file,
		"embeng-%d [000] ..... %" PRIu64 ".%09u: embeng_%s: context=%" PRIu64 " queue=%u ",
		(int)getpid(), e->time_ns / 1000000000, (unsigned int)(e->time_ns % 1000000000),
		e->completion ? "complete" : "command", context, e->queue);
	if (e->completion)
		fprintf(file,
			"cookie=%#" PRIx64 " status=%u flags=%u index=%u step=%" PRIu64
			" device_ns=%" PRIu64 "\n",
			e->cookie, e->code, e->flags, e->index, e->step, e->other);
	else
		fprintf(file,
			"kind=%u index=%u opcode=%u cookie=%#" PRIx64 " step=%" PRIu64
			" after=%" PRIu64 "\n",
			e->kind, e->index, e->code, e->cookie, e->step, e->other);
}

/* Adds a record to its file; its lock is held. */
static int add_to_trace_file(struct tracer *t)
{
	uint64_t first = t->count > KEPT ? t->count - KEPT : 0, contexts;
	int ret;

	if (t->written)
		return 0;
	t->written = true;
	if (flock(fileno(t->file), LOCK_EX))
		return -errno;
	ret = count_contexts(t->file, &contexts);
	if (!ret) {
		fseek(t->file, 0, SEEK_END);
		fprintf(t->file, CONTEXT_LINE "%" PRIu64 ": process %d, device %s\n", contexts + 1,
			(int)getpid(), t->device);
		if (first)
			fprintf(t->file, "CPU:0 [LOST %" PRIu64 " EVENTS]\n", first);
		for (uint64_t i = first; i < t->count; i++)
			write_event(t->file, contexts + 1, &t->events[i % KEPT]);
		ret = ferror(t->file) || fflush(t->file) ? -EIO : 0;
	}
	flock(fileno(t->file), LOCK_UN);
	return ret;
}

/* -- the record ---------------------------------------------------------- */

int tracer_open(const char *device, struct tracer **out)
{
	const char *path = secure_getenv(VARIABLE);
	struct tracer *t;
	int ret;

	*out = NULL;
	if (!path || !*path)
		return 0;
	t = calloc(1, sizeof(*t));
	if (!t)
		return fail(-ENOMEM, VARIABLE ": no memory for a record");
	ret = open_trace_file(path, &t->file);
	if (!ret) {
		ret = begin_file(t->file, path);
		if (ret)
			fclose(t->file);
	}
	if (ret) {
		free(t);
		return ret;
	}
	pthread_mutex_init(&t->lock, NULL);
	snprintf(t->device, sizeof(t->device), "%s", device);
	t->fork = fork_generation();
	pthread_mutex_lock(&tracers_lock);
	t->next = tracers;
	tracers = t;
	pthread_mutex_unlock(&tracers_lock);
	*out = t;
	return 0;
}

int tracer_close(struct tracer *t)
{
	struct tracer **link = &tracers;
	int ret;

	if (!t)
		return 0;
	pthread_mutex_lock(&tracers_lock);
	while (*link != t)
		link = &(*link)->next;
	*link = t->next;
	pthread_mutex_unlock(&tracers_lock);
	ret = add_to_trace_file(t);
	if (fclose(t->file) && !ret)
		ret = -EIO;
	pthread_mutex_destroy(&t->lock);
	free(t);
	return ret;
}

/* The program exits. Its other threads may still be in the library, with handles that are open. */
__attribute__((destructor)) static void write_all_records(void)
{
	pthread_mutex_lock(&tracers_lock);
	for (struct tracer *t = tracers; t; t = t->next) {
		if (t->fork != fork_generation())
			continue;
		pthread_mutex_lock(&t->lock);
		add_to_trace_file(t);
		pthread_mutex_unlock(&t->lock);
	}
	pthread_mutex_unlock(&tracers_lock);
}

static void keep_event(struct tracer *t, const struct traced_event *event)
{
	pthread_mutex_lock(&t->lock);
	if (!t->written)
		t->events[t->count++ % KEPT] = *event;
	pthread_mutex_unlock(&t->lock);
}

void tracer_note_command(struct tracer *t, const struct tracer_queue *queue, uint32_t index,
			 const struct embeng_cmd *cmd, uint64_t at)
{
	const struct traced_event event = {
		.time_ns = at,
		.queue = queue->number,
		.kind = (uint8_t)queue->kind,
		.index = index,
		.code = cmd->opcode,
		.cookie = cmd->cookie,
		.step = cmd->step,
		.other = cmd->after,
	};

	keep_event(t, &event);
}

void tracer_note_completion(struct tracer *t, const struct tracer_queue *queue,
			    const struct embeng_cqe *cqe)
{
	const struct traced_event event = {
		.completion = true,
		.time_ns = now_ns(),
		.queue = queue->number,
		.kind = (uint8_t)queue->kind,
		.index = cqe->index,
		.code = cqe->status,
		.flags = cqe->flags,
		.cookie = cqe->cookie,
		.step = cqe->step,
		.other = cqe->timestamp,
	};

	keep_event(t, &event);
}
