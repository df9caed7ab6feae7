// SPDX-License-Identifier: MIT
/*
 * Reading messages segment by segment, and the memory in which they are made. Ids, activations and gradients
 * are packed alike, each in a file of its own.
 *
 * Messages belong to the group, memory to its slot or thread. No lock is needed.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "segment.h"

const struct segment_head *segment_next(struct reading *message, struct reading *segment)
{
	const struct segment_head *head = (const void *)message->at;

	if (message->left < sizeof(*head) || head->bytes < sizeof(*head) ||
	    head->bytes > message->left || head->bytes % 8)
		return NULL;
	segment->at = message->at + sizeof(*head);
	segment->left = head->bytes - sizeof(*head);
	message->at += head->bytes;
	message->left -= head->bytes;
	return head;
}

int segment_bad(const struct hosts *h, uint32_t host, const char *what)
{
	return fail(-EBADMSG,
		    "host %" PRIu32
		    " (%s) sent %s that this host cannot read; do both run the same "
		    "version?",
		    host, embeng_group_host(h->group, host), what);
}

char *put_padded(char **to, const void *from, uint64_t bytes)
{
	char *at = *to;

	if (bytes)
		memcpy(at, from, bytes);
	memset(at + bytes, 0, segment_pad(bytes) - bytes);
	*to = at + segment_pad(bytes);
	return at;
}

int memory_of_slot(struct hosts *h, struct region *region, uint64_t bytes)
{
	return h->joined ? region_grow_plain(h->e, region, bytes)
			 : region_grow(h->e, region, bytes);
}

int memory_need(struct hosts_memory *memory, uint64_t bytes)
{
	char *grown;

	if (bytes <= memory->bytes)
		return 0;
	bytes += bytes / 2;
	grown = malloc(bytes);
	if (!grown)
		return fail(-ENOMEM, "there is no memory for %" PRIu64 " bytes to other hosts",
			    bytes);
	free(memory->data);
	memory->data = grown;
	memory->bytes = bytes;
	return 0;
}

void memory_free(struct hosts *h, struct hosts_memory *memory)
{
	if (memory->shared)
		embeng_buffer_free(h->owner, memory->data);
	else
		free(memory->data);
	*memory = (struct hosts_memory){0};
}

int memory_need_shared(struct hosts *h, struct hosts_memory *memory, uint64_t bytes)
{
	char *grown;

	if (bytes <= memory->bytes)
		return 0;
	memory_free(h, memory);
	grown = h->joined ? NULL : embeng_buffer_alloc(h->owner, bytes + bytes / 2);
	if (!grown)
		return memory_need(memory, bytes);
	*memory = (struct hosts_memory){grown, bytes + bytes / 2, true};
	return 0;
}
