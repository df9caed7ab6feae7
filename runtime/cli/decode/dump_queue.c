// SPDX-License-Identifier: MIT
/*
 * The lines of a dump that are about a queue: its indices, the device's report, and the commands and
 * completions next to its heads. kmod/reset_dump.c writes them.
 *
 * All that is read goes into the struct dump of the caller.
 */
#include "dump.h"

#include <inttypes.h>
#include <string.h>

#include "words.h"

void dump_end_queue(struct dump *d)
{
	uint64_t line = d->s->line;

	if (!d->open)
		return;
	d->open = false;
	snprintf(d->s->name, sizeof(d->s->name), "queue %" PRIu64, d->queue);
	d->s->line = d->queue_line;
	queue_check_indices(d->s, d->queue_at, &d->indices);
	d->s->line = line;
}

bool dump_queue(struct dump *d, struct line *line)
{
	uint64_t v[4], entries[2];
	char how[16];

	dump_end_queue(d);
	if (!line_number(line, &v[0]) || !line_pairs(line, "kind replica priority", &v[1]) ||
	    !line_take(line, how, sizeof(how)) || !line_word(line, "entries") ||
	    !line_number(line, &entries[0]) || !line_number(line, &entries[1]))
		return false;
	d->queue = v[0];
	d->kind = (uint32_t)v[1];
	d->validated = !strcmp(how, "validated");
	d->commands = d->completions = d->timestamp = d->step = 0;
	d->indices = (struct queue_indices){.sq_entries = (uint32_t)entries[0],
					    .cq_entries = (uint32_t)entries[1]};
	sheet_part(d->s, line->offset, "queue %" PRIu64, d->queue);
	sheet_says(d->s, "a %s queue of kind %s, replica %" PRIu64 ", priority %" PRIu64, how,
		   word_or_unknown(word_queue_kind(v[1])), v[2], v[3]);
	sheet_number(d->s, line->offset, "kind", v[1], word_queue_kind(v[1]));
	sheet_number(d->s, line->offset, "replica", v[2], NULL);
	sheet_number(d->s, line->offset, "priority", v[3], NULL);
	sheet_number(d->s, line->offset, "sq_entries", entries[0], NULL);
	sheet_number(d->s, line->offset, "cq_entries", entries[1], NULL);
	if (!word_queue_kind(v[1]) || v[1] == EMBENG_QUEUE_ADMIN)
		sheet_odd(d->s, line->offset, "the kind %" PRIu64 " is none that a program has",
			  v[1]);
	for (int i = 0; i < 2; i++) {
		if (!entries[i] || entries[i] & (entries[i] - 1))
			sheet_odd(d->s, line->offset, "%" PRIu64 " entries are no power of two",
				  entries[i]);
	}
	return true;
}

static void show_indices(struct dump *d, uint64_t offset, const char *names, const uint64_t *values)
{
	char name[32];

	for (; *names; values++) {
		size_t length = strcspn(names, " ");

		snprintf(name, sizeof(name), "%.*s", (int)length, names);
		sheet_number(d->s, offset, name, *values, NULL);
		names += length + (names[length] == ' ');
	}
}

/* A mapped queue has the two indices of its doorbell alone. */
bool dump_indices(struct dump *d, struct line *line)
{
	static const char validated[] = "sq_head done cq_head cq_tail sent heartbeat";
	static const char mapped[] = "cq_head";
	uint64_t v[7];

	if (!line_number(line, &v[0]) ||
	    !line_pairs(line, d->validated ? validated : mapped, &v[1]))
		return false;
	sheet_number(d->s, line->offset, "sq_tail", v[0], NULL);
	show_indices(d, line->offset, d->validated ? validated : mapped, &v[1]);
	if (!d->validated)
		return true;
	d->queue_at = line->offset;
	d->queue_line = line->number;
	d->indices.sq_tail = (uint32_t)v[0];
	d->indices.header.sq_head = (uint32_t)v[1];
	d->indices.header.done = (uint32_t)v[2];
	d->indices.cq_head = (uint32_t)v[3];
	d->indices.header.cq_tail = (uint32_t)v[4];
	d->indices.header.sent = (uint32_t)v[5];
	d->indices.doorbell = d->indices.health = d->open = true;
	return true;
}

bool dump_report(struct dump *d, struct line *line)
{
	static const char names[] = "state wait replica step tail cq_head";
	struct embeng_queue_report report = {0};
	uint64_t v[7];

	if (!line_number(line, &v[0]) || !line_pairs(line, names, &v[1]))
		return false;
	report.epoch = (uint32_t)v[0];
	report.state = (uint32_t)v[1];
	report.wait = (uint32_t)v[2];
	sheet_number(d->s, line->offset, "report", v[0], NULL);
	sheet_number(d->s, line->offset, "state", v[1], word_queue_state(v[1]));
	sheet_number(d->s, line->offset, "waits for", v[2], word_wait(v[2]));
	show_indices(d, line->offset, "report_replica report_step report_tail report_cq_head",
		     &v[3]);
	queue_check_report(d->s, line->offset, &report);
	return true;
}

static bool read_command(struct line *line, uint64_t *index, struct embeng_cmd *cmd)
{
	uint64_t v[7], mem[3];
	char key[40], *colon;
	struct line parts;

	if (!line_number(line, index) ||
	    !line_pairs(line, "opcode flags cookie step after", &v[0]) || !line_word(line, "key") ||
	    !line_take(line, key, sizeof(key)) || !line_pairs(line, "offset length arg", mem))
		return false;
	colon = strchr(key, ':');
	if (!colon)
		return false;
	*colon = ' ';
	parts = (struct line){.at = key, .length = strlen(key)};
	if (!line_number(&parts, &v[5]) || !line_number(&parts, &v[6]) || !line_is_over(&parts))
		return false;
	*cmd = (struct embeng_cmd){.opcode = (uint16_t)v[0],
				   .flags = (uint16_t)v[1],
				   .cookie = v[2],
				   .step = v[3],
				   .after = v[4],
				   .desc = {(uint32_t)v[5], (uint32_t)v[6], mem[0], mem[1]},
				   .arg = mem[2]};
	return true;
}

static void check_command_order(struct dump *d, uint64_t offset, uint64_t index,
				const struct embeng_cmd *cmd)
{
	bool trains = cmd->opcode == EMBENG_OP_UPDATE ||
		      (cmd->opcode == EMBENG_OP_LOOKUP && d->kind == EMBENG_QUEUE_INPUT);

	if (d->commands && (uint32_t)index != (uint32_t)d->next_index)
		sheet_odd(d->s, offset, "the index is %" PRIu64 " where %" PRIu64 " comes next",
			  index, d->next_index);
	if (trains && cmd->step <= d->step)
		sheet_odd(d->s, offset, "the step goes back, from %" PRIu64 " to %llu", d->step,
			  (unsigned long long)cmd->step);
	if (trains)
		d->step = cmd->step;
	d->next_index = (uint32_t)(index + 1);
	d->commands++;
}

static void show_state(struct dump *d, uint64_t offset, uint64_t index)
{
	const struct embeng_ring_header *h = &d->indices.header;
	const char *state = (int32_t)((uint32_t)index - h->done) < 0 ? "complete"
			    : (int32_t)((uint32_t)index - h->sq_head) < 0
				    ? "taken, not complete"
				    : "not taken by the device";

	sheet_text(d->s, offset, "was", "%s", state);
}

bool dump_command(struct dump *d, struct line *line)
{
	struct command_place at = {.offset = line->offset, .kind = d->kind, .tables = &d->tables};
	struct embeng_cmd cmd;
	uint64_t index;
	bool blamed;

	if (!read_command(line, &index, &cmd))
		return false;
	blamed = line_word(line, "at") && line_word(line, "fault");
	sheet_part(d->s, line->offset, "command %" PRIu64 " of queue %" PRIu64 "%s", index,
		   d->queue, blamed ? ", at fault" : "");
	command_show(d->s, &at, &cmd);
	show_state(d, line->offset, index);
	check_command_order(d, line->offset, index, &cmd);
	if (blamed)
		d->blame = (struct dump_blame){.found = true,
					       .context = d->context,
					       .queue = d->queue,
					       .index = index,
					       .kind = d->kind,
					       .cmd = cmd};
	return true;
}

bool dump_completion(struct dump *d, struct line *line)
{
	struct command_place at = {.offset = line->offset, .kind = d->kind, .tables = &d->tables};
	struct embeng_cqe cqe = {0};
	uint64_t index, v[8];

	if (!line_number(line, &index) ||
	    !line_pairs(line, "cookie status flags field feature element step timestamp", v))
		return false;
	cqe.cookie = v[0];
	cqe.status = (uint16_t)v[1];
	cqe.flags = (uint16_t)v[2];
	cqe.field = (uint32_t)v[3];
	cqe.feature = (uint32_t)v[4];
	cqe.element = v[5];
	cqe.step = v[6];
	cqe.timestamp = v[7];
	sheet_part(d->s, line->offset, "completion %" PRIu64 " of queue %" PRIu64, index, d->queue);
	completion_show(d->s, &at, &cqe);
	if (d->completions++ && cqe.timestamp < d->timestamp)
		sheet_odd(d->s, line->offset, "the time goes back, from %" PRIu64 " to %llu ns",
			  d->timestamp, (unsigned long long)cqe.timestamp);
	d->timestamp = cqe.timestamp;
	return true;
}
