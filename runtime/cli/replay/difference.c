// SPDX-License-Identifier: MIT
/*
 * Compares completions: the status of a command, what it says about a fault, and all memory that the
 * command wrote, by its checksum. It is apart from play.c, which decides what runs and when.
 *
 * The difference that is found goes into the caller's result. Nothing is kept, and no lock is needed.
 */
#include "difference.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../decode/words.h"
#include "where.h"

bool difference_note(struct play_result *result, const struct recording_entry *entry,
		     const char *what, const char *recorded, const char *here, ...)
{
	struct difference *d = &result->difference;
	va_list args;

	result->differs = true;
	d->entry = entry->number;
	d->offset = entry->offset;
	snprintf(d->what, sizeof(d->what), "%s", what);
	snprintf(d->recorded, sizeof(d->recorded), "%s", recorded);
	va_start(args, here);
	vsnprintf(d->here, sizeof(d->here), here, args);
	va_end(args);
	return false;
}

static bool differ_in_word(struct play_result *result, const struct recording_entry *entry,
			   const char *what, const char *recorded, const char *here)
{
	return difference_note(result, entry, what, word_or_unknown(recorded), "%s",
			       word_or_unknown(here));
}

static bool differ_in_number(struct play_result *result, const struct recording_entry *entry,
			     const char *what, uint64_t recorded, uint64_t here)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64, recorded);
	return difference_note(result, entry, what, text, "%" PRIu64, here);
}

static bool compare_status(struct play_result *result, const struct recording_entry *entry,
			   const struct embeng_recording_done *here)
{
	const struct embeng_recording_done *recorded = entry->fixed;

	if (recorded->status != here->status)
		return differ_in_word(result, entry, "the status", word_status(recorded->status),
				      word_status(here->status));
	if (recorded->field != here->field)
		return differ_in_word(result, entry, "the field at fault",
				      word_field(recorded->field), word_field(here->field));
	if (recorded->feature != here->feature)
		return differ_in_number(result, entry, "the feature or table at fault",
					recorded->feature, here->feature);
	if (recorded->element != here->element)
		return differ_in_number(result, entry, "the element at fault", recorded->element,
					here->element);
	if (recorded->value != here->value)
		return differ_in_number(result, entry,
					recorded->status ? "the value at fault" : "the value",
					recorded->value, here->value);
	if (recorded->limit != here->limit)
		return differ_in_number(result, entry, "the limit", recorded->limit, here->limit);
	if (recorded->outputs != here->outputs)
		return differ_in_number(result, entry, "the number of outputs", recorded->outputs,
					here->outputs);
	return true;
}

/* STATS counts what each core did. */
static bool tells_of_cores(const struct recording_entry *command)
{
	const struct embeng_recording_command *c = command->fixed;

	return c->command.opcode == EMBENG_OP_STATS;
}

static bool is_written_the_same(const struct embeng_recording_output *recorded,
				const struct embeng_recording_output *here)
{
	return !memcmp(&recorded->where, &here->where, sizeof(recorded->where)) &&
	       recorded->crc == here->crc;
}

/* @command: the COMMAND among the entries, or @at. */
static bool compare_outputs(struct play_result *result, const struct recording_entry *entries,
			    size_t at, size_t command, const struct outcome *here)
{
	const struct embeng_recording_output *outputs = (const void *)entries[at].bytes;
	char what[PLAY_WORDS], text[16];

	for (uint32_t i = 0; i < here->done.outputs; i++) {
		result->outputs++;
		result->output_bytes += outputs[i].where.length;
		if (is_written_the_same(&outputs[i], &here->outputs[i]))
			continue;
		where_output(entries, command, i, &outputs[i].where, what, sizeof(what));
		snprintf(text, sizeof(text), "CRC %08x", outputs[i].crc);
		return difference_note(result, &entries[at], what, text, "CRC %08x",
				       here->outputs[i].crc);
	}
	return true;
}

bool completion_compare(struct play_result *result, const struct recording_entry *entries,
			size_t at, const struct outcome *here, bool other_cores)
{
	const struct embeng_recording_done *recorded = entries[at].fixed;
	size_t command = where_find(entries, at, recorded->queue, recorded->index);
	bool same = compare_status(result, &entries[at], &here->done);

	result->completions++;
	if (same && other_cores && command < at && tells_of_cores(&entries[command])) {
		result->skipped += recorded->outputs;
		return true;
	}
	same = same && compare_outputs(result, entries, at, command, here);
	if (!same)
		where_done(entries, at, result->difference.command, PLAY_WORDS);
	return same;
}
