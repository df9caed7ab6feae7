// SPDX-License-Identifier: MIT
/*
 * Reads a copy of a device's registers: the first 4096 bytes of BAR 0, with the event log. Dumps name
 * the same registers in text and use what is here.
 *
 * All is read from the caller's copy.
 */
#include "registers.h"

#include <inttypes.h>
#include <string.h>

#include "../device/events.h"
#include "../device/registers.h"
#include "embeng_regs.h"
#include "readers.h"
#include "words.h"

static void check_register(struct sheet *s, uint64_t offset, const char *name, uint64_t value)
{
	if (!strcmp(name, "MAGIC") && value != EMBENG_DEVICE_MAGIC)
		sheet_odd(s, offset, "MAGIC is %#" PRIx64 " and not %#x: %s", value,
			  EMBENG_DEVICE_MAGIC,
			  value == UINT32_MAX ? "the device does not answer on the bus"
					      : "these are no registers of such a device");
	else if (!strcmp(name, "INTERFACE") && value >> 16 != EMBENG_INTERFACE_MAJOR)
		sheet_odd(s, offset, "the interface has the major version %" PRIu64 ", known is %u",
			  value >> 16, EMBENG_INTERFACE_MAJOR);
	else if (!strcmp(name, "STATUS") && value != EMBENG_DEVICE_OK)
		sheet_odd(s, offset,
			  "STATUS is %" PRIu64 ": the admin ring is broken or tables lost data",
			  value);
	else if (!strcmp(name, "BOOT_STATE") && value != EMBENG_BOOT_RUNNING)
		sheet_odd(s, offset, "BOOT_STATE is %" PRIu64 " (%s): no firmware runs", value,
			  word_or_unknown(word_boot_state(value)));
	else if (!strcmp(name, "BOOT_ERROR") && value)
		sheet_odd(s, offset, "BOOT_ERROR is %s: %s",
			  word_or_unknown(word_boot_error(value)),
			  word_or_unknown(word_boot_error_sentence(value)));
	else if (!strcmp(name, "COUNT_ECC_UNCORRECTABLE") && value)
		sheet_odd(s, offset, "%" PRIu64 " errors of the table memory lost data", value);
}

/* Adds the fields of a register as "STATE.FIELD"; of flags, those that are set. */
static void show_register_fields(struct sheet *s, uint64_t offset, const struct reg *reg,
				 uint64_t value)
{
	char name[96], text[REG_FIELD_TEXT];

	for (size_t i = 0; i < register_field_count; i++) {
		const struct reg_field *field = &register_fields[i];
		uint64_t part = register_field_read(field, value);

		if (field->offset != reg->offset || (field->kind == REG_FIELD_FLAG && !part))
			continue;
		snprintf(name, sizeof(name), "%s.%s", reg->name, field->name);
		sheet_text(s, offset, name, "%s", register_field_text(field, part, text));
	}
}

void register_show(struct sheet *s, uint64_t offset, const char *name, uint64_t value)
{
	const struct reg *reg = register_find(name, strlen(name));

	sheet_text(s, offset, name, "%#" PRIx64 "%s%s", value, reg ? "  " : "",
		   reg ? reg->words : "");
	if (reg)
		show_register_fields(s, offset, reg, value);
	else
		sheet_odd(s, offset, "the register %s is unknown", name);
	check_register(s, offset, name, value);
}

/* A page whose capture failed on the bus is all ones. */
bool page_is(const struct bytes *b)
{
	return b->size == EMBENG_REGISTERS_SIZE &&
	       (bytes_number(b->data, 4) == EMBENG_DEVICE_MAGIC ||
		bytes_number(b->data, 8) == UINT64_MAX);
}

static void decode_event(struct sheet *s, const struct bytes *b, uint64_t at, uint32_t number)
{
	struct embeng_event event;
	char words[EVENT_WORDS];

	memcpy(&event, b->data + at, sizeof(event));
	if (event.number != number) {
		sheet_odd(s, at, "event %u stands where event %u must be", event.number, number);
		return;
	}
	sheet_text(s, at, "event",
		   "%u at %llu ns: %s, context %d, queue %d, detail %u, value %llu (%s)",
		   event.number, (unsigned long long)event.time_ns,
		   word_or_unknown(event_name(&event)), (int)event.context,
		   event.queue == EMBENG_EVENT_NO_QUEUE ? -1 : event.queue, event.detail,
		   (unsigned long long)event.value, event_words(&event, words));
	if (!event_name(&event))
		sheet_odd(s, at + offsetof(struct embeng_event, kind),
			  "the kind %u of event %u is unknown", event.kind, number);
}

static void decode_log(struct sheet *s, const struct bytes *b)
{
	struct embeng_event_log log;
	uint32_t count;

	memcpy(&log, b->data + EMBENG_EVENT_LOG, offsetof(struct embeng_event_log, events));
	sheet_part(s, EMBENG_EVENT_LOG, "event log");
	if (log.magic != EMBENG_EVENT_MAGIC || log.record_bytes != sizeof(log.events[0]) ||
	    log.capacity != EMBENG_EVENTS) {
		sheet_odd(s, EMBENG_EVENT_LOG, "there is no event log of a known form");
		return;
	}
	count = log.next ? log.next - 1 : 0;
	count = count < EMBENG_EVENTS ? count : EMBENG_EVENTS;
	for (uint32_t n = log.next - count; n != log.next; n++)
		decode_event(s, b,
			     EMBENG_EVENT_LOG + offsetof(struct embeng_event_log, events) +
				     (n % EMBENG_EVENTS) * sizeof(log.events[0]),
			     n);
}

void page_read(struct sheet *s, const struct bytes *b)
{
	sheet_part(s, 0, "registers");
	for (size_t i = 0; i < register_count; i++) {
		if (registers[i].offset + registers[i].bytes > b->size) {
			sheet_odd(s, b->size, "the page ends in front of %s", registers[i].name);
			return;
		}
		register_show(s, registers[i].offset, registers[i].name,
			      bytes_number(b->data + registers[i].offset, registers[i].bytes));
	}
	if (b->size < EMBENG_REGISTERS_SIZE)
		sheet_odd(s, b->size, "the page has %zu bytes, not %u", b->size,
			  EMBENG_REGISTERS_SIZE);
	else
		decode_log(s, b);
}
