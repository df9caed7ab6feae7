// SPDX-License-Identifier: MIT
/*
 * Reads a dump of the driver (devcoredump), which kmod/reset_dump.c writes when something hung:
 * docs/abi/sysfs-driver-embeng describes it. It is text, a line for each thing. A line that is none of
 * those is odd and is skipped, so that a cut file says all that it still has.
 *
 * The struct dump is large and is allocated for the time of the reading.
 */
#include "dump.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../frame/document.h"
#include "readers.h"
#include "registers.h"
#include "words.h"

#define HEAD "embeng devcoredump "
#define VERSION 1u

bool dump_is(const struct bytes *b)
{
	return b->size >= strlen(HEAD) && !memcmp(b->data, HEAD, strlen(HEAD));
}

static bool read_head(struct dump *d, struct line *line)
{
	uint64_t version;

	if (!line_word(line, "devcoredump") || !line_number(line, &version))
		return false;
	sheet_part(d->s, line->offset, "dump");
	sheet_number(d->s, line->offset, "version", version, NULL);
	if (version != VERSION)
		sheet_odd(d->s, line->offset, "the version is %" PRIu64 ", known is %u", version,
			  VERSION);
	return true;
}

static bool read_dump_device(struct dump *d, struct line *line)
{
	char address[32];

	if (!line_take(line, address, sizeof(address)))
		return false;
	sheet_text(d->s, line->offset, "device", "%s", address);
	return true;
}

static bool read_cause(struct dump *d, struct line *line)
{
	const char *sentence;

	if (!line_take(line, d->cause, sizeof(d->cause)))
		return false;
	sentence = word_cause(d->cause);
	sheet_text(d->s, line->offset, "cause", "%s%s%s", d->cause, sentence ? ": " : "",
		   sentence ? sentence : "");
	return true;
}

static bool read_still(struct dump *d, struct line *line)
{
	if (!line_number(line, &d->still_ns))
		return false;
	sheet_number(d->s, line->offset, "still_ns", d->still_ns, "nanoseconds without progress");
	return true;
}

static bool read_dump_time(struct dump *d, struct line *line)
{
	uint64_t time;

	if (!line_number(line, &time))
		return false;
	sheet_number(d->s, line->offset, "time_ns", time, "of CLOCK_MONOTONIC");
	return true;
}

static bool read_firmware(struct dump *d, struct line *line)
{
	uint64_t v;

	if (!line_number(line, &v))
		return false;
	sheet_text(d->s, line->offset, "firmware", "%u.%u.%u build %u", (unsigned int)(v >> 48),
		   (unsigned int)(v >> 32 & 0xffff), (unsigned int)(v >> 16 & 0xffff),
		   (unsigned int)(v & 0xffff));
	return true;
}

static bool read_resets(struct dump *d, struct line *line)
{
	uint64_t sequence, v[3];

	if (!line_number(line, &sequence) || !line_pairs(line, "queues engines functions", v))
		return false;
	sheet_text(d->s, line->offset, "resets before",
		   "%" PRIu64 " that lost contexts; %" PRIu64 " of queues, %" PRIu64
		   " of the engine, %" PRIu64 " of the function",
		   sequence, v[0], v[1], v[2]);
	return true;
}

static bool read_dump_register(struct dump *d, struct line *line)
{
	uint64_t value;
	char name[32];

	if (!line_take(line, name, sizeof(name)) || !line_number(line, &value))
		return false;
	if (!d->registers++)
		sheet_part(d->s, line->offset, "registers");
	register_show(d->s, line->offset, name, value);
	return true;
}

/* The name of a program is its own word and may have blanks. */
static bool read_context(struct dump *d, struct line *line)
{
	static const char regions[] = " regions ";
	struct line rest;
	uint64_t v[2];
	size_t i;

	dump_end_queue(d);
	if (!line_number(line, &d->context) || !line_word(line, "program"))
		return false;
	for (i = 0; i + strlen(regions) < line->length; i++) {
		if (!memcmp(line->at + i, regions, strlen(regions)))
			break;
	}
	if (i + strlen(regions) >= line->length)
		return false;
	memset(&d->tables, 0, sizeof(d->tables));
	sheet_part(d->s, line->offset, "context %" PRIu64, d->context);
	sheet_text(d->s, line->offset, "program", "%.*s", (int)(i < 80 ? i : 80), line->at);
	rest = *line;
	rest.at += i;
	rest.length -= i;
	if (!line_pairs(&rest, "regions events", v))
		return false;
	sheet_number(d->s, line->offset, "regions", v[0], NULL);
	sheet_number(d->s, line->offset, "events", v[1], NULL);
	return true;
}

static const struct {
	const char *word;
	bool (*read)(struct dump *d, struct line *line);
} line_kinds[] = {
	{"embeng", read_head},
	{"device", read_dump_device},
	{"cause", read_cause},
	{"still_ns", read_still},
	{"time_ns", read_dump_time},
	{"firmware", read_firmware},
	{"resets", read_resets},
	{"register", read_dump_register},
	{"context", read_context},
	{"model", dump_model},
	{"table", dump_table},
	{"feature", dump_feature},
	{"name", dump_name},
	{"queue", dump_queue},
	{"sq_tail", dump_indices},
	{"report", dump_report},
	{"command", dump_command},
	{"descriptor", dump_descriptor},
	{"completion", dump_completion},
};

static void read_dump_line(struct dump *d, struct line *line)
{
	for (size_t i = 0; i < sizeof(line_kinds) / sizeof(line_kinds[0]); i++) {
		if (!line_word(line, line_kinds[i].word))
			continue;
		if (!line_kinds[i].read(d, line))
			sheet_odd(d->s, line->offset,
				  "the line '%s' is not as the driver writes it",
				  line_kinds[i].word);
		return;
	}
	if (!line_is_over(line))
		sheet_odd(d->s, line->offset, "the line is none that the driver writes");
}

/* Commands whose tables stand in their descriptor are named with those. */
static void write_blamed(const struct dump *d, char text[COMMAND_TEXT])
{
	const struct embeng_cmd *cmd = &d->blame.cmd;
	char step[48] = "";

	if (!*d->blame.about) {
		command_text(cmd, &d->tables, text);
		return;
	}
	if (cmd->step || cmd->after)
		snprintf(step, sizeof(step), ", %s %llu", cmd->step ? "step" : "after step",
			 (unsigned long long)(cmd->step ? cmd->step : cmd->after));
	snprintf(text, COMMAND_TEXT, "%s of %s%s", word_or_unknown(word_opcode(cmd->opcode)),
		 d->blame.about, step);
}

static void write_dump_verdict(const struct dump *d)
{
	const struct dump_blame *b = &d->blame;
	const char *sentence = word_cause(d->cause);
	char text[COMMAND_TEXT], cause[160];

	snprintf(cause, sizeof(cause), "Cause %s%s%s, after %.3f s without progress.",
		 *d->cause ? d->cause : "unknown", sentence ? ": " : "", sentence ? sentence : "",
		 (double)d->still_ns / 1e9);
	if (!b->found) {
		sheet_verdict(d->s, "No command of a validated queue is called at fault. %s",
			      cause);
		return;
	}
	write_blamed(d, text);
	sheet_verdict(d->s,
		      "Command %" PRIu64 " of queue %" PRIu64 " (%s) of context %" PRIu64
		      " is at fault: %s. %s",
		      b->index, b->queue, word_or_unknown(word_queue_kind(b->kind)), b->context,
		      text, cause);
}

void dump_read(struct sheet *s, const struct bytes *b)
{
	struct dump *d = calloc(1, sizeof(*d));
	struct line line = {0};
	size_t end = 0;

	if (!d)
		document_no_memory();
	d->s = s;
	while (line_next((const char *)b->data, b->size, &line, &end)) {
		s->line = line.number;
		read_dump_line(d, &line);
		if (!line.whole)
			sheet_odd(s, line.offset, "the file ends inside of this line");
		if (d->blame.found && d->blame.context == d->context)
			write_dump_verdict(d);
	}
	dump_end_queue(d);
	if (!d->blame.found)
		write_dump_verdict(d);
	if (!d->registers)
		sheet_odd(s, line.offset, "the dump has no registers: it was cut");
	free(d);
}
