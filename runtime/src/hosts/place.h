/* SPDX-License-Identifier: MIT */
/* The distribution of tables, or of columns of tables, over the hosts of a group. */
#ifndef EMBENG_HOSTS_PLACE_H
#define EMBENG_HOSTS_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "embeng.h"
#include "embeng/hosts.h"
#include "embeng/shard.h"

struct table;

#define PLACE_COLUMNS_LEAST 16 /* a part cut by columns has no fewer of them */

/*
 * A device has so many replicas. The rows of all tables are spread if a model has more (joined.h). Tests make it
 * smaller.
 */
extern uint32_t place_replicas_most;
/* Whether all tables of a model must be spread. */
bool place_must_spread(const struct embeng_model *model);

/* The exchange of a table, which all its parts have. */
enum place_kind {
	PLACE_TABLE,  /* one host has the whole table */
	PLACE_COLUMN, /* some hosts have some columns each */
	PLACE_ROWS,   /* every host has some rows: they come, and gradients or their sums go */
};

/**
 * struct place_part - the part of a table that one host has, with its slots
 * @kind: enum place_kind
 * @host: the owner
 * @table: index in the model
 * @first_column: first column that it has
 * @columns: how many; all of the table's unless it is cut by columns
 * @rows: its rows; all of the table's unless it is spread by rows
 * @gradients: it is spread by rows, and gradients of samples go in place of sums
 */
struct place_part {
	enum place_kind kind;
	uint32_t host;
	int table;
	uint32_t first_column, columns;
	struct embeng_shard_rows rows;
	bool gradients;
};

/**
 * struct place_wish - the exchange that tables are to have
 * @exchange: TABLE: all are whole; COLUMN: those are cut that can be; ROWS and ROWS_GRADIENTS: those are
 *	spread that can be;
 *	0: a table that is larger than a fair share is cut by columns if it can be, or else its rows are
 *	spread if they can be, and it takes all calls then
 * @sharding: distribution of rows; MOD if no exchange is asked for
 * @each: NULL, or [tables]: of each table, in place of @exchange
 * @plans: only to compute costs: a table that would be spread has one part, of PLACE_ROWS with all rows, on a host
 *	that has the least. The other tables are where they are without this
 */
struct place_wish {
	enum embeng_exchange_kind exchange;
	enum embeng_sharding sharding;
	const enum embeng_exchange_kind *each;
	bool plans;
};

/**
 * struct placement - the owner of each column, or row, of each table
 * @hosts: how many there are
 * @sharding: distribution of the rows of tables that are spread
 * @part_count: number of @parts
 * @parts: in the order of tables, then of columns or hosts. Parts of one table have different hosts; one
 *	that is spread has none on a host without rows
 * @first: [tables + 1]: the parts of table t are @parts from @first[t] to before @first[t + 1]
 * @bytes: [hosts]: bytes of the tables and slots that a host has; 0: it has no part
 */
struct placement {
	uint32_t hosts;
	enum embeng_sharding sharding;
	size_t part_count;
	struct place_part *parts;
	size_t *first;
	uint64_t *bytes;
};

/*
 * place_model() - choose the owners
 * @hosts: from 1
 * @wish: NULL: all zero
 *
 * The result depends on these alone, so that each host of a group computes the
 * same. Table names and seeds have no influence.
 *
 * Return: 0; -EINVAL, also if no table can have the exchange that is wished, or a table must be spread that
 * cannot be; -ERANGE if 64 bits do not count the bytes; -ENOMEM.
 */
int place_model(const struct embeng_model *model, uint32_t hosts, const struct place_wish *wish,
		struct placement *out);

/* How many hosts have rows of a table that is spread: all, or as many as it has rows. */
uint32_t place_row_parts(const struct table *t, uint32_t hosts);
/* Fills all of a part but its table: the rows of one host. Return: 0, or that of embeng_shard_rows(). */
int place_row_part(const struct table *t, const struct embeng_shard *shard,
		   enum embeng_exchange_kind kind, struct place_part *part);

/*
 * placement_spread() - spread the rows of some tables of a placement; the others stay where they are
 * @each: [tables]: ROWS or ROWS_GRADIENTS: spread, if that is exact; else as it is
 *
 * Return: 0, -ENOMEM.
 */
int placement_spread(struct placement *placement, const struct embeng_model *model,
		     const enum embeng_exchange_kind *each, enum embeng_sharding sharding);

/* Frees what place_model() filled, or what is all zero. */
void placement_free(struct placement *placement);

/* Bytes of a part, with its slots. 64 bits hold them if the part is from place_model(). */
uint64_t place_part_bytes(const struct embeng_model *model, const struct place_part *part);

/*
 * place_is_elementwise() - tell whether a table cut by columns keeps the bits of the whole table
 * @why_not: NULL, or out: the reason if it does not, to follow "table t is whole: "; else NULL
 */
bool place_is_elementwise(const struct embeng_model *model, int table, const char **why_not);

/* Bytes of a row's number among those of its host, where a table is spread by rows: a signed number, as ids are. */
uint32_t place_row_width(uint64_t rows, uint32_t hosts);

/*
 * Why the bits of a table are not kept if sums of gradients are sent, to be read after "not allowed: "; NULL:
 * they are.
 */
const char *place_refuse_sums(const struct embeng_model *model, size_t table);
/* The same if the gradients of samples are sent. */
const char *place_refuse_gradients(const struct embeng_model *model, size_t table);
/* For a model with more replicas than a device: why the table cannot have an exchange, or NULL. */
const char *place_refuse_replicas(const struct embeng_model *model, enum embeng_exchange_kind kind);
/* Whether rows of the table are spread if @kind is wished for. */
bool place_can_spread(const struct embeng_model *model, size_t table,
		      enum embeng_exchange_kind kind);

#endif
