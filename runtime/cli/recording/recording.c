// SPDX-License-Identifier: MIT
/*
 * Reads the entries of a recording one after another. It is a file of its own because `embeng replay`
 * runs them and `embeng decode` describes them.
 *
 * The caller owns the bytes of the file; entries point into them. No lock is needed.
 */
#include "recording.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../../../engine/hash/crc32c.h"

static const char *const words[] = {
#define WORDS(name, value, words) [value] = words,
	EMBENG_RECORDING_TABLE(WORDS)
#undef WORDS
};

/* Bytes of the structure of each type. */
static const uint32_t sizes[] = {
	[EMBENG_RECORDING_POWER_ON] = sizeof(struct embeng_recording_power_on),
	[EMBENG_RECORDING_POWER_OFF] = 0,
	[EMBENG_RECORDING_BOOT] = sizeof(struct embeng_recording_boot),
	[EMBENG_RECORDING_BOOTED] = sizeof(struct embeng_recording_booted),
	[EMBENG_RECORDING_RESET] = 0,
	[EMBENG_RECORDING_ADMIN] = sizeof(struct embeng_recording_admin),
	[EMBENG_RECORDING_REGION] = sizeof(struct embeng_recording_region),
	[EMBENG_RECORDING_MEMORY] = sizeof(struct embeng_recording_memory),
	[EMBENG_RECORDING_COMMAND] = sizeof(struct embeng_recording_command),
	[EMBENG_RECORDING_RUN] = sizeof(struct embeng_recording_run),
	[EMBENG_RECORDING_FAULT] = sizeof(struct embeng_recording_fault),
	[EMBENG_RECORDING_DONE] = sizeof(struct embeng_recording_done),
};

const char *recording_word(uint16_t type)
{
	return type < sizeof(words) / sizeof(words[0]) ? words[type] : NULL;
}

bool recording_is(const unsigned char *data, size_t size)
{
	struct embeng_recording_entry head;

	if (size < sizeof(head))
		return false;
	memcpy(&head, data, sizeof(head));
	return head.magic == EMBENG_RECORDING_MAGIC && head.type == EMBENG_RECORDING_POWER_ON;
}

void recording_begin(struct recording *r, const unsigned char *data, size_t size)
{
	*r = (struct recording){.data = data, .size = size};
}

__attribute__((format(printf, 2, 3))) static bool end_reading(struct recording *r,
							      const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(r->problem, sizeof(r->problem), format, args);
	va_end(args);
	return false;
}

static bool end_at_cut(struct recording *r)
{
	r->is_cut = true;
	return end_reading(r, "the file ends inside of entry %" PRIu32 ", at byte %zu", r->number,
			   r->size);
}

static bool is_sum_right(const struct embeng_recording_entry *head, const unsigned char *body)
{
	struct embeng_recording_entry zeroed = *head;

	zeroed.crc = 0;
	return crc32c(crc32c(0, &zeroed, sizeof(zeroed)), body, head->length - sizeof(*head)) ==
	       head->crc;
}

/* Return: the bytes that must follow the structure of an entry. */
static uint64_t bytes_behind(uint16_t type, const void *fixed)
{
	switch (type) {
	case EMBENG_RECORDING_BOOT:
		return ((const struct embeng_recording_boot *)fixed)->length;
	case EMBENG_RECORDING_MEMORY:
		return ((const struct embeng_recording_memory *)fixed)->where.length;
	case EMBENG_RECORDING_DONE:
		return (uint64_t)((const struct embeng_recording_done *)fixed)->outputs *
		       sizeof(struct embeng_recording_output);
	default:
		return 0;
	}
}

static bool check_power_on(struct recording *r, const struct recording_entry *entry)
{
	const struct embeng_recording_power_on *on = entry->fixed;

	if (entry->type != EMBENG_RECORDING_POWER_ON)
		return r->number || end_reading(r, "the first entry is not that of power on");
	if (on->version != EMBENG_RECORDING_VERSION)
		return end_reading(
			r, "the recording has version %" PRIu32 ", and version %u is known here",
			on->version, EMBENG_RECORDING_VERSION);
	return true;
}

/* The length of an entry is what its type asks for. */
static bool take_body(struct recording *r, const struct embeng_recording_entry *head,
		      struct recording_entry *entry)
{
	const unsigned char *body = r->data + r->at + sizeof(*head);
	uint64_t length = head->length - sizeof(*head), fixed;

	if (!recording_word(head->type))
		return end_reading(r, "entry %" PRIu32 " has the type %u, which is unknown here",
				   r->number, head->type);
	fixed = sizes[head->type];
	if (length < fixed)
		return end_reading(r, "entry %" PRIu32 " is too short", r->number);
	*entry = (struct recording_entry){
		.offset = r->at,
		.time_ns = head->time_ns,
		.number = r->number,
		.type = head->type,
		.fixed = fixed ? body : NULL,
		.bytes = body + fixed,
		.count = bytes_behind(head->type, body),
	};
	if (entry->count > length - fixed || length - fixed - entry->count >= 8)
		return end_reading(r, "entry %" PRIu32 " has not the length that it should have",
				   r->number);
	return check_power_on(r, entry);
}

bool recording_next(struct recording *r, struct recording_entry *entry)
{
	struct embeng_recording_entry head;
	size_t left = r->size - r->at;

	if (r->problem[0] || !left)
		return false;
	if (left < sizeof(head))
		return end_at_cut(r);
	memcpy(&head, r->data + r->at, sizeof(head));
	if (head.magic != EMBENG_RECORDING_MAGIC || head.length % 8 || head.length < sizeof(head))
		return end_reading(r, "there is no entry at byte %zu", r->at);
	if (head.length > left)
		return end_at_cut(r);
	if (!is_sum_right(&head, r->data + r->at + sizeof(head)))
		return end_reading(r, "the checksum of entry %" PRIu32 " at byte %zu is wrong",
				   r->number, r->at);
	/* Each time that the device is powered on, counting begins anew. */
	if (head.type == EMBENG_RECORDING_POWER_ON)
		r->number = 0;
	if (head.number != r->number)
		return end_reading(r,
				   "entry %" PRIu32 " at byte %zu has the number %" PRIu32
				   ": entries are missing",
				   r->number, r->at, head.number);
	if (!take_body(r, &head, entry))
		return false;
	r->at += head.length;
	r->number++;
	return true;
}
