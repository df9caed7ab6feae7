/* SPDX-License-Identifier: MIT */
/* The distribution of tables, or of columns of tables, over the hosts of a group. */
#ifndef EMBENG_HOSTS_PLACE_H
#define EMBENG_HOSTS_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "embeng.h"

#define PLACE_COLUMNS_LEAST 16 /* a part that is not a whole table has no fewer columns */

/**
 * struct place_part - columns of a table that one host has, with their slots
 * @host: the owner
 * @table: index in the model
 * @first_column: first column that it has
 * @columns: how many; all of the table's if the table is whole
 */
struct place_part {
	uint32_t host;
	int table;
	uint32_t first_column, columns;
};

/**
 * struct placement - the owner of each column of each table
 * @hosts: how many there are
 * @part_count: number of @parts
 * @parts: in the order of tables, then of columns. Parts of one table have different hosts
 * @first: [tables + 1]: the parts of table t are @parts from @first[t] to before @first[t + 1]
 * @bytes: [hosts]: bytes of the tables and slots that a host has; 0: it has no part
 */
struct placement {
	uint32_t hosts;
	size_t part_count;
	struct place_part *parts;
	size_t *first;
	uint64_t *bytes;
};

/*
 * place_model() - choose the owners
 * @hosts: from 1
 *
 * The result depends on the model and on @hosts alone, so that each host of a group computes the
 * same. Table names and seeds have no influence.
 *
 * Return: 0; -EINVAL; -ERANGE if 64 bits do not count the bytes; -ENOMEM.
 */
int place_model(const struct embeng_model *model, uint32_t hosts, struct placement *out);

/* Frees what place_model() filled, or what is all zero. */
void placement_free(struct placement *placement);

/* Bytes of a part, with its slots. 64 bits hold them if the part is from place_model(). */
uint64_t place_part_bytes(const struct embeng_model *model, const struct place_part *part);

/*
 * place_is_elementwise() - tell whether a table cut by columns keeps the bits of the whole table
 * @why_not: NULL, or out: the reason if it does not, to follow "table t is whole: "; else NULL
 */
bool place_is_elementwise(const struct embeng_model *model, int table, const char **why_not);

#endif
