// SPDX-License-Identifier: MIT
/*
 * The working memory of PARTITION commands: one set of buffers for each context. They grow as
 * needed and are kept, so that a command whose input is no larger than an earlier one allocates
 * nothing.
 *
 * The memory lives until its context ends. The running command uses it without a lock, since only
 * one command of a device runs at a time.
 */
#include "partition.h"

void *pcsr_memory(struct pcsr_job *job, enum pcsr_buffer which, u64 count, u64 size)
{
	struct buffer *b = &job->memory->buffers[which];
	u64 bytes;

	if (__builtin_mul_overflow(count, size, &bytes) ||
	    grow_uncounted(job->engine, &b->data, &b->bytes, bytes))
		return NULL;
	return b->data;
}

void context_pcsr_free(struct context *context)
{
	struct pcsr *memory = context->pcsr;

	if (!memory)
		return;
	for (u32 i = 0; i < PCSR_BUFFERS; i++)
		port_free(memory->buffers[i].data);
	port_free(memory);
	context->pcsr = NULL;
}
