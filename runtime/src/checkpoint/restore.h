/* SPDX-License-Identifier: MIT */
/* Parts of a restore: which array of a checkpoint goes into which of the engine. */
#ifndef EMBENG_RESTORE_H
#define EMBENG_RESTORE_H

#include "open.h"
#include "session/session.h"

/* One table's parameters or one of its slots, in the model and in the checkpoint. */
struct array_pair {
	int table, array;
	int from_table, from_array;
	uint64_t rows; /* those that both have, from row 0 on */
};

struct restore {
	struct embeng *e;
	struct embeng_checkpoint *c;
	const char *dir;
	struct embeng_restore_options options;
	struct array_pair *pairs;
	size_t pair_count;
	struct embeng_restore_report report;
	uint64_t after;
	bool staged;  /* else in place */
	bool loading; /* in place: what fails from here on leaves a mixture */
	uint64_t done, total;
};

/*
 * restore_pairs.c: lists what is restored, with its bytes as the total. The caller frees @pairs.
 *
 * Return: 0, -ENOENT (table, slot), -EINVAL (shape, names), -ENOMEM.
 */
int restore_pair_all(struct restore *r);

#endif
