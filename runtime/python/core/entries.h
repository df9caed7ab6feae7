/* SPDX-License-Identifier: MIT */
/*
 * Inputs of features as lists of entries (sample, id, gain), as SparseCores have them, and such lists as
 * bags of the engine. embeng/tf/_csr.py does the same with numpy, and has the same bits and sentences.
 *
 * Functions need no Python. Memory is the caller's, and is not kept. Those that return an int return 0, or
 * a negative errno with @error filled.
 */
#ifndef EMBENG_PYTHON_ENTRIES_H
#define EMBENG_PYTHON_ENTRIES_H

#include "raw.h"

/* An entry while a list is made. The order of places is that of ids, and of samples where ids are equal. */
struct entry {
	uint64_t place; /* the id in the upper half, the sample in the lower one */
	float gain;
};

#define ENTRY_ID_BIT 32

static inline int32_t entry_id(const struct entry *entry)
{
	return (int32_t)(entry->place >> ENTRY_ID_BIT);
}

static inline int32_t entry_sample(const struct entry *entry)
{
	return (int32_t)(uint32_t)entry->place;
}

/* One feature of a table. */
struct entry_feature {
	const struct raw_feature *input; /* positions, a sparse tensor, or bags by splits */
	const char *name, *table;
	int64_t rows;			    /* the rows of the table, at most 2^31 */
	int64_t samples;		    /* the input is to have as many */
	int64_t first;			    /* the number of its first sample in the list */
	enum embeng_combiner_name combiner; /* mean, sum or sqrtn */
	bool weighted;
};

/*
 * entries_list() - list the ids of a feature, in the order of its input
 * @to: has room for an entry of each id
 *
 * The gain of an id is its weight, divided by what the combiner asks for.
 */
int entries_list(const struct entry_feature *feature, struct entry *to, struct embeng_error *error);

/*
 * entries_join() - sort entries by their places, and make those of one place one entry
 * @spare: has room for as many entries
 * @count: in: how many there are; out: how many are left
 *
 * Gains of one place are summed in f64, in the order in which they were given, and rounded once. Return:
 * where the result is, @entries or @spare.
 */
struct entry *entries_join(struct entry *entries, struct entry *spare, size_t *count);

/* A list of a table, in any order. */
struct entry_list {
	const char *table;
	const int32_t *samples, *ids;
	const float *gains;
	size_t count;
	int64_t sample_count;
};

/* The memory of bags. */
struct entry_bags {
	int64_t *splits;
	int32_t *ids;
	float *gains;
};

/*
 * entries_bag() - make a bag of each sample of a list, whose ids are in the order of the list
 * @to: is given to entry_bags_put(), also after an error
 * @bags: the input for the engine, which points into @to
 */
int entries_bag(const struct entry_list *list, struct entry_bags *to, struct embeng_bags *bags,
		struct embeng_error *error);
void entry_bags_put(struct entry_bags *bags);

#endif
