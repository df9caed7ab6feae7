// SPDX-License-Identifier: MIT
/*
 * Finds out which command an entry of a recording is about, and which feature and table an output of
 * it belongs to. The descriptor and the model blob are among the recorded operands, so they are
 * looked for in the entries before. They may be anybody's: every number in them is checked.
 *
 * Nothing is kept; it is asked once, when something differs.
 */
#include "where.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../../../engine/blob/blob.h"
#include "../decode/words.h"

size_t where_find(const struct recording_entry *entries, size_t at, uint32_t queue, uint32_t index)
{
	for (size_t i = at; i-- > 0;) {
		const struct embeng_recording_command *c = entries[i].fixed;

		if (entries[i].type == EMBENG_RECORDING_COMMAND && c->queue == queue &&
		    c->index == index)
			return i;
		if (entries[i].type == EMBENG_RECORDING_POWER_ON)
			break;
	}
	return at;
}

void where_command(const struct recording_entry *entries, size_t at, char *text, size_t size)
{
	const struct embeng_recording_command *c = entries[at].fixed;
	const char *opcode = word_or_unknown(word_opcode(c->command.opcode));
	char step[64] = "";

	if (c->command.step)
		snprintf(step, sizeof(step), " of step %llu", (unsigned long long)c->command.step);
	else if (c->command.after)
		snprintf(step, sizeof(step), " after step %llu",
			 (unsigned long long)c->command.after);
	else if (c->command.opcode == EMBENG_OP_STATS && c->command.arg & EMBENG_STATS_NOW)
		snprintf(step, sizeof(step), " at whatever step the model is");
	snprintf(text, size, "%s%s (context %u, queue %u, index %u)", opcode, step, c->context,
		 c->queue, c->index);
}

static void name_command(const struct recording_entry *entries, size_t at, uint32_t queue,
			 uint32_t index, char *text, size_t size)
{
	size_t command = where_find(entries, at, queue, index);

	if (command < at)
		where_command(entries, command, text, size);
	else
		snprintf(text, size, "the command %u of queue %u", index, queue);
}

void where_run(const struct recording_entry *entries, size_t at, char *text, size_t size)
{
	const struct embeng_recording_run *run = entries[at].fixed;

	name_command(entries, at, run->queue, run->index, text, size);
}

void where_done(const struct recording_entry *entries, size_t at, char *text, size_t size)
{
	const struct embeng_recording_done *done = entries[at].fixed;

	name_command(entries, at, done->queue, done->index, text, size);
}

static bool is_same_mem(const struct embeng_mem *a, const struct embeng_mem *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* The bytes of an operand of a command as they were recorded last before @at, or NULL. */
static const unsigned char *find_operand(const struct recording_entry *entries, size_t at,
					 uint32_t context, const struct embeng_mem *mem)
{
	for (size_t i = at; i-- > 0;) {
		const struct embeng_recording_memory *m = entries[i].fixed;

		if (entries[i].type == EMBENG_RECORDING_MEMORY && m->context == context &&
		    is_same_mem(&m->where, mem))
			return entries[i].bytes;
		if (entries[i].type == EMBENG_RECORDING_POWER_ON)
			break;
	}
	return NULL;
}

/* The blob of the model that the context had at @at. */
static bool find_model(const struct recording_entry *entries, size_t at, uint32_t context,
		       const unsigned char **blob, size_t *length)
{
	for (size_t i = at; i-- > 0;) {
		const struct embeng_recording_command *c = entries[i].fixed;

		if (entries[i].type != EMBENG_RECORDING_COMMAND || c->context != context ||
		    c->command.opcode != EMBENG_OP_MODEL_LOAD || c->status)
			continue;
		*blob = find_operand(entries, i, context, &c->command.desc);
		*length = c->command.desc.length;
		return *blob;
	}
	return false;
}

/* Goes to a record of a blob. Return: its bytes, of at least @least, or NULL. */
static const unsigned char *find_blob_record(const unsigned char *blob, size_t length,
					     uint16_t type, uint32_t index, size_t least)
{
	size_t at = sizeof(struct embeng_blob_header);
	struct embeng_record head;

	for (; at < length && length - at >= sizeof(head); at += head.length) {
		memcpy(&head, blob + at, sizeof(head));
		if (head.length < sizeof(head) || head.length > length - at)
			return NULL;
		if (head.type == type && !index--)
			return head.length >= least ? blob + at : NULL;
	}
	return NULL;
}

/* The name of a table or feature, or "". */
static void find_record_name(const unsigned char *blob, size_t length, uint32_t of, uint32_t index,
			     char name[64])
{
	const unsigned char *record;
	struct embeng_record_name n;

	name[0] = '\0';
	for (uint32_t i = 0;
	     (record = find_blob_record(blob, length, EMBENG_RECORD_NAME, i, sizeof(n.head) + 9));
	     i++) {
		memset(&n, 0, sizeof(n));
		memcpy(&n.head, record, sizeof(n.head));
		memcpy(&n, record, n.head.length < sizeof(n) ? n.head.length : sizeof(n) - 1);
		if (n.of != of || n.index != index)
			continue;
		memcpy(name, n.name, 64);
		name[63] = '\0';
		for (char *c = name; *c; c++)
			*c = *c < ' ' || *c == 127 ? '?' : *c;
		return;
	}
}

static void say_table(const unsigned char *blob, size_t length, uint32_t table, char *text,
		      size_t size)
{
	char name[64] = "";

	if (blob)
		find_record_name(blob, length, EMBENG_RECORD_TABLE, table, name);
	snprintf(text, size, name[0] ? "table %u '%s'" : "table %u", table, name);
}

/* The feature whose activations an output is, by the descriptor of the LOOKUP. */
static bool find_feature(const struct recording_entry *entries, size_t command,
			 const struct embeng_mem *mem, uint32_t *feature)
{
	const struct embeng_recording_command *c = entries[command].fixed;
	const unsigned char *desc = find_operand(entries, command, c->context, &c->command.desc);
	uint64_t length = c->command.desc.length, at;
	struct embeng_lookup_feature f;
	struct embeng_lookup head;

	if (!desc || length < sizeof(head))
		return false;
	memcpy(&head, desc, sizeof(head));
	for (uint32_t i = 0; i < head.feature_count; i++) {
		at = sizeof(head) + (uint64_t)i * head.feature_stride;
		if (at > length || length - at < sizeof(f))
			return false;
		memcpy(&f, desc + at, sizeof(f));
		*feature = f.feature;
		if (is_same_mem(&f.activations, mem))
			return true;
	}
	return false;
}

static bool find_table_of_rows(const struct recording_entry *entries, size_t command,
			       uint32_t *table)
{
	const struct embeng_recording_command *c = entries[command].fixed;
	const unsigned char *desc = find_operand(entries, command, c->context, &c->command.desc);

	if (!desc || c->command.desc.length < sizeof(struct embeng_rows))
		return false;
	memcpy(table, desc + offsetof(struct embeng_rows, table), sizeof(*table));
	return true;
}

static void say_feature(const unsigned char *blob, size_t length, uint32_t feature, char *text,
			size_t size)
{
	const unsigned char *record = blob ? find_blob_record(blob, length, EMBENG_RECORD_FEATURE,
							      feature,
							      sizeof(struct embeng_record_feature))
					   : NULL;
	struct embeng_record_feature f;
	char name[64] = "", table[96];

	if (!record) {
		snprintf(text, size, "the activations of feature %u", feature);
		return;
	}
	memcpy(&f, record, sizeof(f));
	find_record_name(blob, length, EMBENG_RECORD_FEATURE, feature, name);
	say_table(blob, length, f.table, table, sizeof(table));
	snprintf(text, size, "the activations of feature %u '%s' of %s", feature, name, table);
}

void where_output(const struct recording_entry *entries, size_t command, uint32_t number,
		  const struct embeng_mem *mem, char *text, size_t size)
{
	const struct embeng_recording_command *c = entries[command].fixed;
	const unsigned char *blob = NULL;
	char table[96];
	size_t length = 0;
	uint32_t index;

	if (entries[command].type == EMBENG_RECORDING_COMMAND)
		find_model(entries, command, c->context, &blob, &length);
	if (entries[command].type != EMBENG_RECORDING_COMMAND)
		snprintf(text, size, "output %u", number);
	else if (c->command.opcode == EMBENG_OP_LOOKUP &&
		 find_feature(entries, command, mem, &index))
		say_feature(blob, length, index, text, size);
	else if ((c->command.opcode == EMBENG_OP_ROWS_READ ||
		  c->command.opcode == EMBENG_OP_SNAPSHOT_READ) &&
		 find_table_of_rows(entries, command, &index)) {
		say_table(blob, length, index, table, sizeof(table));
		snprintf(text, size, "the rows of %s", table);
	} else if (c->command.opcode == EMBENG_OP_STATS) {
		say_table(blob, length, (uint32_t)c->command.arg, table, sizeof(table));
		snprintf(text, size, "the statistics of %s", table);
	} else {
		snprintf(text, size, "output %u, %llu bytes of region %u", number,
			 (unsigned long long)mem->length, mem->index);
	}
}
