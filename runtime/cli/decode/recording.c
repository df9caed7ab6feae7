// SPDX-License-Identifier: MIT
/*
 * Reads a recording: what a device was given, what it did, and which faults struck. Each entry is a
 * part. The bytes of operands are counted and not shown, since a descriptor of a command can be told
 * from them only by its command.
 *
 * The number of commands that were accepted and have not completed is kept, so that a recording that
 * ends in the middle of them is noticed.
 */
#include "../recording/recording.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../frame/document.h"
#include "command.h"
#include "readers.h"
#include "words.h"

struct sums {
	uint64_t entries, commands, completions, failed, faults, bytes;
	bool is_off; /* the last entry is the end of the device */
};

static const char *const fault_words[] = {
#define FAULT_WORDS(name, value, target, words) [value] = words,
	EMBENG_RECORDING_FAULT_TABLE(FAULT_WORDS)
#undef FAULT_WORDS
};

bool recording_file_is(const struct bytes *b)
{
	return recording_is(b->data, b->size);
}

static void tell_power_on(struct sheet *s, const struct recording_entry *e)
{
	const struct embeng_recording_power_on *on = e->fixed;
	char variant[sizeof(on->variant)];

	memcpy(variant, on->variant, sizeof(variant));
	variant[sizeof(variant) - 1] = '\0';
	for (char *c = variant; *c; c++)
		*c = *c < ' ' || *c == 127 ? '?' : *c;
	sheet_says(s,
		   "a device with %u cores, %u queues and %" PRIu64
		   " bytes for tables, and the kernel variant '%s'",
		   on->cores, on->queues, (uint64_t)on->table_memory, variant);
}

static void tell_booted(struct sheet *s, const struct recording_entry *e)
{
	const struct embeng_recording_booted *booted = e->fixed;

	sheet_says(s, "the device %s%s", booted->error ? "refused the image: " : "runs",
		   booted->error ? word_or_unknown(word_boot_error_sentence(booted->error)) : "");
	if (booted->error)
		sheet_odd(s, e->offset, "a boot failed");
}

static void tell_admin(struct sheet *s, const struct recording_entry *e)
{
	const struct embeng_recording_admin *a = e->fixed;

	sheet_says(s, "the driver's command %s for context %u, queue %u gave %s",
		   word_or_unknown(word_admin(a->command.opcode)), a->command.context,
		   a->command.queue, word_or_unknown(word_status(a->status)));
	if (a->status)
		sheet_odd(s, e->offset, "the driver's command failed");
}

static void tell_region(struct sheet *s, const struct recording_entry *e)
{
	const struct embeng_recording_region *r = e->fixed;

	sheet_says(s, "context %u has a region with the key %u:%u of %" PRIu64 " bytes", r->context,
		   r->index, r->generation, (uint64_t)r->length);
}

static void tell_memory(struct sheet *s, struct sums *sums, const struct recording_entry *e)
{
	const struct embeng_recording_memory *m = e->fixed;

	sums->bytes += m->where.length;
	sheet_says(s,
		   "an operand for queue %u of context %u: key %u:%u, offset %" PRIu64 ", %" PRIu64
		   " bytes",
		   m->queue, m->context, m->where.index, m->where.generation,
		   (uint64_t)m->where.offset, (uint64_t)m->where.length);
}

static void tell_command(struct sheet *s, struct sums *sums, const struct recording_entry *e)
{
	const struct embeng_recording_command *c = e->fixed;
	char text[COMMAND_TEXT];

	sums->commands++;
	sheet_says(s, "%s, command %u of queue %u, context %u, %s%s",
		   command_text(&c->command, NULL, text), c->index, c->queue, c->context,
		   c->status ? "was refused with " : "was accepted",
		   c->status ? word_or_unknown(word_status(c->status)) : "");
}

static void tell_fault(struct sheet *s, struct sums *sums, const struct recording_entry *e)
{
	const struct embeng_recording_fault *f = e->fixed;
	const char *words = f->fault < sizeof(fault_words) / sizeof(fault_words[0])
				    ? fault_words[f->fault]
				    : NULL;

	sums->faults++;
	sheet_says(s, "a fault struck: %s", word_or_unknown(words));
	sheet_odd(s, e->offset, "a fault struck: %s", word_or_unknown(words));
	sheet_number(s, e->offset, "target", f->target, NULL);
	sheet_number(s, e->offset, "value", f->value, NULL);
}

static void tell_done(struct sheet *s, struct sums *sums, const struct recording_entry *e)
{
	const struct embeng_recording_done *d = e->fixed;

	sums->completions++;
	sums->failed += d->status != 0;
	sheet_says(s, "command %u of queue %u completed with %s; it wrote %u part%s of memory",
		   d->index, d->queue, word_or_unknown(word_status(d->status)), d->outputs,
		   d->outputs == 1 ? "" : "s");
	if (!d->status)
		return;
	sheet_text(s, e->offset, "status", "%s", word_or_unknown(word_status_sentence(d->status)));
	sheet_text(s, e->offset, "field", "%s", word_or_unknown(word_field(d->field)));
	sheet_number(s, e->offset, "feature", d->feature, NULL);
	sheet_number(s, e->offset, "element", d->element, NULL);
	sheet_number(s, e->offset, "value", d->value, NULL);
	sheet_number(s, e->offset, "limit", d->limit, NULL);
}

static void tell_entry(struct sheet *s, struct sums *sums, const struct recording_entry *e)
{
	const struct embeng_recording_run *run = e->fixed;

	switch (e->type) {
	case EMBENG_RECORDING_POWER_ON:
		tell_power_on(s, e);
		break;
	case EMBENG_RECORDING_BOOT:
		sheet_says(s, "the device boots an image of %" PRIu64 " bytes", e->count);
		break;
	case EMBENG_RECORDING_BOOTED:
		tell_booted(s, e);
		break;
	case EMBENG_RECORDING_RESET:
		sheet_says(s, "the device is reset, and all contexts end");
		sheet_odd(s, e->offset, "there was a reset");
		break;
	case EMBENG_RECORDING_ADMIN:
		tell_admin(s, e);
		break;
	case EMBENG_RECORDING_REGION:
		tell_region(s, e);
		break;
	case EMBENG_RECORDING_MEMORY:
		tell_memory(s, sums, e);
		break;
	case EMBENG_RECORDING_COMMAND:
		tell_command(s, sums, e);
		break;
	case EMBENG_RECORDING_RUN:
		sheet_says(s, "the device works on command %u of queue %u, %s", run->index,
			   run->queue, word_or_unknown(word_opcode(run->opcode)));
		break;
	case EMBENG_RECORDING_FAULT:
		tell_fault(s, sums, e);
		break;
	case EMBENG_RECORDING_DONE:
		tell_done(s, sums, e);
		break;
	default:
		break;
	}
}

void recording_file_read(struct sheet *s, const struct bytes *b)
{
	struct recording r;
	struct recording_entry e;
	struct sums sums = {0};
	size_t size = b->size;
	unsigned char *copy = malloc(size + 1);

	if (!copy)
		document_no_memory();
	/* The bytes that were given may stand anywhere, and entries are read where they stand. */
	memcpy(copy, b->data, size);
	recording_begin(&r, copy, size);
	while (recording_next(&r, &e)) {
		sums.entries++;
		sums.is_off = e.type == EMBENG_RECORDING_POWER_OFF;
		sheet_part(s, e.offset, "entry %" PRIu32 ", %s", e.number, recording_word(e.type));
		sheet_text(s, e.offset, "time", "%" PRIu64 ".%06" PRIu64 " s",
			   e.time_ns / 1000000000, e.time_ns / 1000 % 1000000);
		tell_entry(s, &sums, &e);
	}
	if (r.problem[0] || !sums.is_off)
		sheet_part(s, r.at, "end");
	if (r.problem[0])
		sheet_odd(s, r.at, "%s", r.problem);
	else if (!sums.is_off)
		sheet_odd(s, r.at, "the device was still on when the recording ended");
	sheet_verdict(s,
		      "%" PRIu64 " entries: %" PRIu64 " commands with %" PRIu64
		      " bytes of operands, %" PRIu64 " completions of which %" PRIu64
		      " failed, and %" PRIu64 " faults. embeng replay runs them again.",
		      sums.entries, sums.commands, sums.bytes, sums.completions, sums.failed,
		      sums.faults);
	free(copy);
}
