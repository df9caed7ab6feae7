/* SPDX-License-Identifier: MIT */
/* The hottest tables and rows of a context: what the device counts of its model, asked now and then. */
#ifndef CLI_TOP_HOT_H
#define CLI_TOP_HOT_H

#include "embeng_engine.h"

#include "sample.h"

#define HOT_TABLES 4096u /* most tables of a model that are asked for */
#define HOT_REASON 512

/**
 * struct hot_table - the counts of one table since its program last cleared them
 * @table: index of the table in the model
 * @ids, @unique_ids, @steps, @error: as in &struct embeng_stats; @error is @hot_error there
 * @ids_rate: ids a second since the look before; NaN if there was none
 * @rows: [@row_count] the hottest rows, the most frequent first
 */
struct hot_table {
	uint32_t table;
	uint64_t ids, unique_ids, steps, error;
	double ids_rate;
	size_t row_count;
	struct embeng_hot_row rows[EMBENG_STATS_HOT];
};

/**
 * struct hot_look - the answer of a context
 * @address, @client: which context it is
 * @sample_ns: time of the sample that the look belongs to
 * @time_ns: when the context was asked, CLOCK_MONOTONIC
 * @model_tables: number of tables of its model; 0: not known
 * @tables: [@count] the tables, the hottest first
 * @reason: why there are no tables, a sentence without a full stop; "" if there are
 */
struct hot_look {
	char address[24];
	uint64_t client;
	uint64_t sample_ns, time_ns;
	uint32_t model_tables;
	struct hot_table *tables;
	size_t count;
	char reason[HOT_REASON];
};

/* The last look into each context; zeroed: none. */
struct hot {
	struct hot_look **list;
	size_t count;
};

/**
 * hot_look() - ask a context for its hottest tables and rows, at most once for a sample
 * @tree: the files of this machine
 * @sample_ns: time of the sample that has @context
 * @out: the look, which @hot keeps until hot_forget() or hot_keep()
 *
 * Return: 0 or -ENOMEM. A context that cannot be asked has a look that says why.
 */
int hot_look(struct hot *hot, struct tree *tree, const struct sample_context *context,
	     uint64_t sample_ns, const struct hot_look **out);

/* Forgets the looks into contexts that are not in @sample. */
void hot_keep(struct hot *hot, const struct sample *sample);

void hot_forget(struct hot *hot);

/**
 * hot_read() - take the counts of a table out of the device's answer
 * @stats: a copy of the answer, which the other program may have overwritten
 * @table: the table that was asked for
 *
 * Return: false if it is no answer about this table.
 */
bool hot_read(const struct embeng_stats *stats, uint32_t table, struct hot_table *out);

/**
 * hot_compare() - find the rates of the tables, and put the hottest first
 * @now: tables in the order of their numbers
 * @before: the look before; its tables are sorted by their numbers. NULL: there was none
 *
 * Without rates the table with the most ids is first.
 */
void hot_compare(struct hot_look *now, struct hot_look *before);

/**
 * hot_ask() - ask a context of another program on a queue that is taken of it and given back
 * @look: gets the answer, with its tables in the order of their numbers, or the reason
 *
 * Return: 0 or -ENOMEM.
 */
int hot_ask(struct tree *tree, const struct sample_context *context, struct hot_look *look);

#endif
