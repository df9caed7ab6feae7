/* SPDX-License-Identifier: MIT */
/* Between the files that read a dump of the driver. */
#ifndef CLI_DECODE_DUMP_H
#define CLI_DECODE_DUMP_H

#include "command.h"
#include "line.h"

/**
 * struct dump_blame - the command that the driver calls at fault
 * @found: there is one
 * @context: its context
 * @queue: its queue
 * @index: its index
 * @kind: enum embeng_queue_kind of its queue
 * @cmd: the command
 * @about: "table 0 (items), slot 0, rows 3 to 7", from its descriptor; "" without one
 */
struct dump_blame {
	bool found;
	uint64_t context, queue, index;
	uint32_t kind;
	struct embeng_cmd cmd;
	char about[200];
};

/**
 * struct dump - a dump while it is read
 * @s: the sheet
 * @tables: the model of the present context
 * @context: its number
 * @queue: number of the present queue
 * @kind: enum embeng_queue_kind of it
 * @validated: the dump has its commands
 * @open: the present queue's indices were not checked yet
 * @indices: its indices
 * @queue_at: byte of its indices
 * @queue_line: their line
 * @commands: commands of it so far
 * @next_index: the index that its next command must have
 * @completions: completions of it so far
 * @timestamp: that of its last completion
 * @step: step of its last LOOKUP or UPDATE
 * @blame: the command at fault
 * @cause: the word of the cause
 * @still_ns: nanoseconds without progress
 * @registers: number of registers
 */
struct dump {
	struct sheet *s;
	struct tables tables;
	uint64_t context, queue;
	uint32_t kind;
	bool validated, open;
	struct queue_indices indices;
	uint64_t queue_at, queue_line;
	uint64_t commands, next_index, completions, timestamp, step;
	struct dump_blame blame;
	char cause[32];
	uint64_t still_ns;
	uint32_t registers;
};

/* Handlers of lines whose first word was taken. Return: whether the line was as it must be. */
bool dump_model(struct dump *d, struct line *line);
bool dump_table(struct dump *d, struct line *line);
bool dump_feature(struct dump *d, struct line *line);
bool dump_name(struct dump *d, struct line *line);
bool dump_descriptor(struct dump *d, struct line *line);
bool dump_queue(struct dump *d, struct line *line);
bool dump_indices(struct dump *d, struct line *line);
bool dump_report(struct dump *d, struct line *line);
bool dump_command(struct dump *d, struct line *line);
bool dump_completion(struct dump *d, struct line *line);

/* Checks the indices of the present queue, all of whose lines were read. */
void dump_end_queue(struct dump *d);

#endif
