// SPDX-License-Identifier: MIT
/*
 * The lists of a sample, and the rule by which descriptors become contexts. It reads no file, so
 * that tests and fuzzing give it texts.
 *
 * A sample owns its lists until sample_free().
 */
#include "sample.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embeng_engine.h"

void sample_free(struct sample *sample)
{
	free(sample->devices);
	free(sample->contexts);
	free(sample->queues);
	*sample = (struct sample){0};
}

/* Makes room for one more entry. */
static void *grow_samples(void **list, size_t *count, size_t size)
{
	char *larger = realloc(*list, (*count + 1) * size);

	if (!larger)
		return NULL;
	*list = larger;
	memset(larger + *count * size, 0, size);
	return larger + (*count)++ * size;
}

struct sample_device *sample_add_device(struct sample *sample)
{
	return grow_samples((void **)&sample->devices, &sample->device_count,
			    sizeof(*sample->devices));
}

struct sample_context *sample_add_context(struct sample *sample)
{
	return grow_samples((void **)&sample->contexts, &sample->context_count,
			    sizeof(*sample->contexts));
}

struct sample_queue *sample_add_queue(struct sample *sample)
{
	return grow_samples((void **)&sample->queues, &sample->queue_count,
			    sizeof(*sample->queues));
}

static struct sample_context *find_client(const struct sample *sample, const struct fdinfo *info)
{
	for (size_t i = 0; info->has_client && i < sample->context_count; i++) {
		struct sample_context *context = &sample->contexts[i];

		if (context->info.has_client && context->info.client == info->client &&
		    !strcmp(context->info.address, info->address))
			return context;
	}
	return NULL;
}

/* Descriptors of one process come one after the other. */
int sample_take_descriptor(struct sample *sample, const struct fdinfo *info, uint32_t pid,
			   uint32_t fd, const char *program)
{
	struct sample_context *context = find_client(sample, info);

	if (!context) {
		context = sample_add_context(sample);
		if (!context)
			return -ENOMEM;
		context->info = *info;
		context->pid = UINT32_MAX;
	}
	context->descriptors++;
	if (context->pid == pid)
		return 0;
	context->processes++;
	if (pid > context->pid)
		return 0;
	context->pid = pid;
	context->fd = fd;
	snprintf(context->program, sizeof(context->program), "%s", program);
	return 0;
}

/* "context 3 program train[812] regions ...": a program may have any of these words in its name. */
static bool read_context_line(const char *line, uint32_t *number, uint32_t *pid)
{
	const char *open = strrchr(line, '[');

	return sscanf(line, "context %10" SCNu32, number) == 1 && open &&
	       sscanf(open, "[%10" SCNu32 "] regions ", pid) == 1;
}

static bool read_queue_line(const char *line, struct sample_queue *queue)
{
	char path[16];
	int count = sscanf(
		line,
		" queue %10u kind %10u %15s sq_tail %10u sq_head %10u cq_head %*u "
		"cq_tail %10u report %*u state %10u wait %10u replica %10u step %20" SCNu64,
		&queue->number, &queue->kind, path, &queue->tail, &queue->head, &queue->done,
		&queue->state, &queue->wait, &queue->replica, &queue->step);

	queue->mapped = count == 10 && !strcmp(path, "mapped");
	return count == 10;
}

int sample_take_queues(struct sample *sample, const char *address, const char *text)
{
	struct sample_queue queue = {0}, *added;
	bool in_context = false;

	while (*text) {
		size_t length = strcspn(text, "\n");
		char line[512];

		snprintf(line, sizeof(line), "%.*s", length < sizeof(line) ? (int)length : 0, text);
		text += length + (text[length] == '\n');
		if (!strncmp(line, "context ", 8)) {
			in_context = read_context_line(line, &queue.context, &queue.pid);
			continue;
		}
		if (!in_context || !read_queue_line(line, &queue))
			continue;
		added = sample_add_queue(sample);
		if (!added)
			return -ENOMEM;
		*added = queue;
		snprintf(added->address, sizeof(added->address), "%s", address);
	}
	return 0;
}

const char *sample_queue_kind(const struct sample_queue *queue)
{
	static const char *const kinds[] = {
		[EMBENG_QUEUE_INPUT] = "input",
		[EMBENG_QUEUE_INFERENCE] = "inference",
		[EMBENG_QUEUE_GRADIENT] = "gradient",
		[EMBENG_QUEUE_TRANSFER] = "transfer",
	};
	const char *kind = queue->kind < sizeof(kinds) / sizeof(kinds[0]) ? kinds[queue->kind]
									  : NULL;

	return kind ? kind : "unknown";
}

const char *sample_queue_wait(const struct sample_queue *queue)
{
	static const char *const waits[] = {
		[EMBENG_WAIT_NOTHING] = "nothing", [EMBENG_WAIT_LOOKUP] = "lookup",
		[EMBENG_WAIT_UPDATE] = "update",   [EMBENG_WAIT_QUEUE] = "queue",
		[EMBENG_WAIT_SPACE] = "space",
	};

	if (queue->state == EMBENG_QUEUE_RUNNING)
		return "nothing";
	if (queue->state == EMBENG_QUEUE_ERROR)
		return "reset";
	return queue->wait < sizeof(waits) / sizeof(waits[0]) ? waits[queue->wait] : "unknown";
}
