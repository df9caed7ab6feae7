// SPDX-License-Identifier: MIT
/*
 * Says in words what a command asks for and what a completion answers, and which indices of a queue
 * cannot be. Dumps and captured rings share it. Whether the engine would take a command is asked of
 * the engine's own check, which needs nothing but the kind of the queue.
 *
 * Everything here is a copy that the caller made. One thread fills a sheet.
 */
#include "command.h"

#include <inttypes.h>

#include "../../../engine/queue/internal.h"
#include "words.h"

const char *table_text(const struct tables *tables, uint64_t table, char text[TABLE_TEXT])
{
	if (tables && table < tables->table_count && table < TABLES_KNOWN && *tables->tables[table])
		snprintf(text, TABLE_TEXT, "table %" PRIu64 " (%s)", table, tables->tables[table]);
	else
		snprintf(text, TABLE_TEXT, "table %" PRIu64, table);
	return text;
}

bool command_table(const struct embeng_cmd *cmd, uint32_t *table)
{
	switch (cmd->opcode) {
	case EMBENG_OP_STATS:
	case EMBENG_OP_FREEZE:
		*table = (uint32_t)cmd->arg;
		return true;
	case EMBENG_OP_STAGE:
		*table = (uint32_t)cmd->arg;
		return cmd->arg >> EMBENG_STAGE_ACTION_SHIFT == EMBENG_STAGE_BEGIN;
	case EMBENG_OP_STATE_READ:
	case EMBENG_OP_STATE_WRITE:
		*table = (uint32_t)(cmd->arg - 1);
		return cmd->arg && cmd->arg <= UINT32_MAX;
	}
	return false;
}

/* Writes the meaning of the argument, for the opcodes that have one. */
static void write_argument(const struct embeng_cmd *cmd, char *text, size_t size)
{
	uint64_t arg = cmd->arg;

	*text = '\0';
	switch (cmd->opcode) {
	case EMBENG_OP_NOP:
		snprintf(text, size, ", a delay of %" PRIu64 " us, status %s",
			 arg >> EMBENG_NOP_DELAY_SHIFT,
			 word_or_unknown(word_status((uint16_t)arg)));
		break;
	case EMBENG_OP_STATS:
		snprintf(text, size, "%s",
			 arg & EMBENG_STATS_CLEAR ? ", then clear its counts"
			 : arg & EMBENG_STATS_NOW ? ", at whatever step the model is"
						  : "");
		break;
	case EMBENG_OP_STAGE:
		snprintf(text, size, ", slot %u, %s",
			 (unsigned int)(arg >> EMBENG_STAGE_SLOT_SHIFT & 0xffff),
			 word_or_unknown(word_stage(arg >> EMBENG_STAGE_ACTION_SHIFT)));
		break;
	case EMBENG_OP_FREEZE:
		snprintf(text, size, ", %s",
			 word_or_unknown(word_freeze(arg >> EMBENG_FREEZE_ACTION_SHIFT)));
		break;
	case EMBENG_OP_SNAPSHOT_READ:
	case EMBENG_OP_SNAPSHOT_END:
		snprintf(text, size, ", snapshot %u", (unsigned int)arg);
		break;
	}
}

const char *command_text(const struct embeng_cmd *cmd, const struct tables *tables,
			 char text[COMMAND_TEXT])
{
	char table[TABLE_TEXT] = "", argument[80], step[64] = "";
	uint32_t number;

	if (command_table(cmd, &number))
		table_text(tables, number, table);
	write_argument(cmd, argument, sizeof(argument));
	if (cmd->step)
		snprintf(step, sizeof(step), ", step %llu", (unsigned long long)cmd->step);
	else if (cmd->after)
		snprintf(step, sizeof(step), ", after step %llu", (unsigned long long)cmd->after);
	snprintf(text, COMMAND_TEXT, "%s%s%s%s%s%s%s", word_or_unknown(word_opcode(cmd->opcode)),
		 *table ? " of " : "", table, argument, step,
		 cmd->flags & EMBENG_CMD_DISCARD && cmd->opcode == EMBENG_OP_UPDATE
			 ? ", its gradients are discarded"
			 : "",
		 cmd->flags & EMBENG_CMD_IDS_ONLY && cmd->opcode == EMBENG_OP_LOOKUP ? ", ids only"
										     : "");
	return text;
}

static uint64_t field_offset(const struct command_place *at, size_t member)
{
	return at->offset + (at->binary ? member : 0);
}

#define CMD_AT(member) field_offset(at, offsetof(struct embeng_cmd, member))
#define CQE_AT(member) field_offset(at, offsetof(struct embeng_cqe, member))

/* Bytes of the member of a command that the engine calls at fault. */
static uint64_t fault_offset(const struct command_place *at, uint32_t field)
{
	switch (field) {
	case EMBENG_FIELD_FLAGS:
		return CMD_AT(flags);
	case EMBENG_FIELD_RESERVED:
		return CMD_AT(reserved0);
	case EMBENG_FIELD_STEP:
		return CMD_AT(step);
	case EMBENG_FIELD_AFTER:
		return CMD_AT(after);
	case EMBENG_FIELD_DESC:
		return CMD_AT(desc);
	case EMBENG_FIELD_ARG:
		return CMD_AT(arg);
	}
	return CMD_AT(opcode);
}

/* The engine's own check of a command. */
static void check_command(struct sheet *s, const struct command_place *at,
			  const struct embeng_cmd *cmd)
{
	const struct queue queue = {.kind = at->kind};
	struct fault fault = {0};
	uint32_t table;
	char text[TABLE_TEXT];

	if (!word_opcode(cmd->opcode))
		sheet_odd(s, CMD_AT(opcode), "the opcode %u is unknown", cmd->opcode);
	else if (at->kind >= EMBENG_QUEUE_INPUT && at->kind <= EMBENG_QUEUE_TRANSFER &&
		 command_check(&queue, cmd, &fault))
		sheet_odd(s, fault_offset(at, fault.field),
			  "the engine refuses the command with %s, field '%s', value %#llx: %s",
			  word_or_unknown(word_status(fault.status)),
			  word_or_unknown(word_field(fault.field)), (unsigned long long)fault.value,
			  word_or_unknown(word_status_sentence(fault.status)));
	if (at->tables && at->tables->table_count && command_table(cmd, &table) &&
	    table >= at->tables->table_count)
		sheet_odd(s, CMD_AT(arg), "the model has no %s: it has %u tables",
			  table_text(NULL, table, text), at->tables->table_count);
	if (!cmd->desc.generation && (cmd->desc.index || cmd->desc.offset || cmd->desc.length))
		sheet_odd(s, CMD_AT(desc.generation),
			  "a memory key has generation 0, which no key has");
	if (cmd->desc.offset + cmd->desc.length < cmd->desc.offset)
		sheet_odd(s, CMD_AT(desc.length), "offset and length of the memory exceed 64 bits");
}

void command_show(struct sheet *s, const struct command_place *at, const struct embeng_cmd *cmd)
{
	char text[COMMAND_TEXT];

	sheet_says(s, "%s", command_text(cmd, at->tables, text));
	sheet_number(s, CMD_AT(opcode), "opcode", cmd->opcode, word_opcode(cmd->opcode));
	sheet_text(s, CMD_AT(flags), "flags", "%#x", cmd->flags);
	if (cmd->reserved0)
		sheet_number(s, CMD_AT(reserved0), "reserved0", cmd->reserved0, NULL);
	sheet_text(s, CMD_AT(cookie), "cookie", "%#llx", (unsigned long long)cmd->cookie);
	sheet_number(s, CMD_AT(step), "step", cmd->step, NULL);
	sheet_number(s, CMD_AT(after), "after", cmd->after, NULL);
	sheet_text(s, CMD_AT(desc), "desc", "key %u:%u, offset %llu, length %llu", cmd->desc.index,
		   cmd->desc.generation, (unsigned long long)cmd->desc.offset,
		   (unsigned long long)cmd->desc.length);
	sheet_text(s, CMD_AT(arg), "arg", "%#llx", (unsigned long long)cmd->arg);
	check_command(s, at, cmd);
}

/* Commands on one feature name that, all others name a table. Nobody knows which opcode it was. */
static void show_place(struct sheet *s, const struct command_place *at,
		       const struct embeng_cqe *cqe)
{
	char text[TABLE_TEXT];

	if (cqe->feature == EMBENG_NO_INDEX)
		sheet_text(s, CQE_AT(feature), "feature", "none");
	else if (at->kind == EMBENG_QUEUE_TRANSFER)
		sheet_text(s, CQE_AT(feature), "feature", "%s",
			   table_text(at->tables, cqe->feature, text));
	else
		sheet_number(s, CQE_AT(feature), "feature", cqe->feature, NULL);
}

static void check_completion(struct sheet *s, const struct command_place *at,
			     const struct embeng_cqe *cqe)
{
	const struct tables *t = at->tables;
	uint32_t count = !t				     ? 0
			 : at->kind == EMBENG_QUEUE_TRANSFER ? t->table_count
							     : t->feature_count;

	if (!word_status(cqe->status))
		sheet_odd(s, CQE_AT(status), "the status %u is unknown", cqe->status);
	if (cqe->flags != EMBENG_CQE_ACCEPTED && cqe->flags != EMBENG_CQE_DONE)
		sheet_odd(s, CQE_AT(flags), "the flags %#x are not one of ACCEPTED and DONE",
			  cqe->flags);
	if (!word_field(cqe->field))
		sheet_odd(s, CQE_AT(field), "the field %u is unknown", cqe->field);
	if (count && count < TABLES_KNOWN && cqe->feature != EMBENG_NO_INDEX &&
	    cqe->feature >= count && cqe->field < EMBENG_FIELD_CORES)
		sheet_odd(s, CQE_AT(feature), "the %s %u is none of the model's, which has %u",
			  at->kind == EMBENG_QUEUE_TRANSFER ? "table" : "feature", cqe->feature,
			  count);
}

void completion_show(struct sheet *s, const struct command_place *at, const struct embeng_cqe *cqe)
{
	const char *sentence = word_status_sentence(cqe->status);

	sheet_says(s, "%s%s%s%s%s", cqe->flags == EMBENG_CQE_ACCEPTED ? "ACCEPTED" : "DONE",
		   cqe->status ? " with " : "",
		   cqe->status ? word_or_unknown(word_status(cqe->status)) : "",
		   cqe->status && sentence ? ": " : "", cqe->status && sentence ? sentence : "");
	sheet_text(s, CQE_AT(cookie), "cookie", "%#llx", (unsigned long long)cqe->cookie);
	sheet_number(s, CQE_AT(status), "status", cqe->status, word_status(cqe->status));
	sheet_number(s, CQE_AT(flags), "flags", cqe->flags,
		     cqe->flags == EMBENG_CQE_ACCEPTED ? "ACCEPTED"
		     : cqe->flags == EMBENG_CQE_DONE   ? "DONE"
						       : NULL);
	sheet_number(s, CQE_AT(field), "field", cqe->field, word_field(cqe->field));
	show_place(s, at, cqe);
	if (at->binary)
		sheet_number(s, CQE_AT(index), "index", cqe->index, NULL);
	sheet_number(s, CQE_AT(element), "element", cqe->element, NULL);
	if (at->binary) {
		sheet_number(s, CQE_AT(value), "value", cqe->value, NULL);
		sheet_number(s, CQE_AT(limit), "limit", cqe->limit, NULL);
	}
	sheet_number(s, CQE_AT(timestamp), "timestamp", cqe->timestamp, "ns");
	sheet_number(s, CQE_AT(step), "step", cqe->step, NULL);
	check_completion(s, at, cqe);
}

/* Free-running: a head may be behind its tail by up to the entries of the ring, and not past it. */
static void check_index_pair(struct sheet *s, uint64_t offset, const char *head_name, uint32_t head,
			     const char *tail_name, uint32_t tail, uint32_t entries)
{
	if ((int32_t)(tail - head) < 0)
		sheet_odd(s, offset, "%s %u is past %s %u", head_name, head, tail_name, tail);
	else if (entries && tail - head > entries)
		sheet_odd(s, offset, "%s %u is %u past %s %u, and the ring has %u entries",
			  tail_name, tail, tail - head, head_name, head, entries);
}

void queue_check_indices(struct sheet *s, uint64_t offset, const struct queue_indices *q)
{
	const struct embeng_ring_header *h = &q->header;

	if (q->doorbell) {
		check_index_pair(s, offset, "sq_head", h->sq_head, "sq_tail", q->sq_tail,
				 q->sq_entries);
		check_index_pair(s, offset, "cq_head", q->cq_head, "cq_tail", h->cq_tail,
				 q->cq_entries);
	}
	if (!q->health)
		return;
	check_index_pair(s, offset, "done", h->done, "sq_head", h->sq_head, 0);
	if (h->sent != h->cq_tail)
		sheet_odd(s, offset, "sent is %u and cq_tail is %u: %d completions were lost",
			  h->sent, h->cq_tail, (int)(h->sent - h->cq_tail));
}

void queue_check_report(struct sheet *s, uint64_t offset, const struct embeng_queue_report *report)
{
	if (report->epoch & 1)
		sheet_odd(s, offset, "the report %u was being written", report->epoch);
	if (!word_queue_state(report->state))
		sheet_odd(s, offset, "the state %u of the queue is unknown", report->state);
	else if (report->state == EMBENG_QUEUE_ERROR)
		sheet_odd(s, offset, "the queue stopped in state ERROR: a ring index was wrong");
	if (!word_wait(report->wait))
		sheet_odd(s, offset, "the queue waits for something unknown: %u", report->wait);
}
