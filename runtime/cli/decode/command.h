/* SPDX-License-Identifier: MIT */
/* Commands, completions and the indices of a queue, wherever a file has them. */
#ifndef CLI_DECODE_COMMAND_H
#define CLI_DECODE_COMMAND_H

#include "embeng_engine.h"

#include "sheet.h"

#define TABLES_KNOWN 1024u /* as many as a dump names */
#define TABLE_TEXT 112

/**
 * struct tables - the tables and features of a model, as far as a file names them
 * @table_count: number of tables; 0: they are not known
 * @feature_count: number of features
 * @tables: names, "" for a table without one
 * @features: name and table of each feature
 */
struct tables {
	uint32_t table_count, feature_count;
	char tables[TABLES_KNOWN][64];
	struct {
		char name[64];
		uint32_t table;
	} features[TABLES_KNOWN];
};

/* Writes "table 2 (clicks)", or "table 2" where its name is not known. @tables may be NULL. */
const char *table_text(const struct tables *tables, uint64_t table, char text[TABLE_TEXT]);

#define KIND_UNKNOWN 0xffffffffu

/**
 * struct command_place - where a command or completion stands
 * @offset: byte of the file
 * @binary: its fields stand there as in memory; otherwise all of them are at @offset
 * @kind: enum embeng_queue_kind of its queue, or KIND_UNKNOWN
 * @tables: the model of its context, or NULL
 */
struct command_place {
	uint64_t offset;
	bool binary;
	uint32_t kind;
	const struct tables *tables;
};

#define COMMAND_TEXT 384

/* Finds the table that the command itself names. Return: false where it names none. */
bool command_table(const struct embeng_cmd *cmd, uint32_t *table);

/* Says in words what the command asks for: "STATS of table 2 (clicks), after step 7". */
const char *command_text(const struct embeng_cmd *cmd, const struct tables *tables,
			 char text[COMMAND_TEXT]);

/* Fill the present part with the fields of a command or a completion, and note what is odd. */
void command_show(struct sheet *s, const struct command_place *at, const struct embeng_cmd *cmd);
void completion_show(struct sheet *s, const struct command_place *at, const struct embeng_cqe *cqe);

/**
 * struct queue_indices - the indices of a queue
 * @sq_tail: as the doorbell has it, if @doorbell
 * @cq_head: as the doorbell has it, if @doorbell
 * @doorbell: the two above are known
 * @health: @header.sent, done and the like are valid
 * @sq_entries: entries of the submission ring, 0: not known
 * @cq_entries: entries of the completion ring, 0: not known
 * @header: the device's own part
 */
struct queue_indices {
	uint32_t sq_tail, cq_head;
	bool doorbell, health;
	uint32_t sq_entries, cq_entries;
	struct embeng_ring_header header;
};

/* Notes which indices cannot be: a head past its tail, a ring with more than its entries. */
void queue_check_indices(struct sheet *s, uint64_t offset, const struct queue_indices *q);
void queue_check_report(struct sheet *s, uint64_t offset, const struct embeng_queue_report *report);

#endif
