/* SPDX-License-Identifier: MIT */
/* The library's structure of a model. */
#ifndef EMBENG_MODEL_H
#define EMBENG_MODEL_H

#include <stdbool.h>
#include <stddef.h>

#include "optimizer.h"

struct table {
	char *name;
	int64_t rows, dim;
	enum embeng_combiner_name combiner;
	struct embeng_optimizer optimizer; /* defaults resolved; both names are owned, or NULL */
	int rate;			   /* index of its dynamic rate, -1: constant */
	int step_rate;			   /* index of the rate that is its step, or -1 */
	int dynamic[NUMBERS];		   /* index of the rate that gives each number, or -1 */
	struct embeng_initializer initializer; /* defaults resolved */
	enum embeng_policy policy;
	size_t slot_count;
	struct embeng_slot_start *slot_starts; /* those given; names are not owned */
	size_t slot_start_count;
	struct embeng_quantization quantization; /* all 0: no quantization */
	bool frozen;				 /* from the start */
	struct embeng_table_part part;		 /* defaults resolved; all 0: it is whole */
};

struct feature {
	char *name;
	int table;
	int64_t max_sequence_length;
	size_t output_rank; /* 0: not known yet */
	int64_t output_shape[EMBENG_MAX_RANK];
	bool check_weights, unchecked_serving, zero_is_padding;
	bool largest; /* its table's combiner is max */
	uint64_t max_samples, max_ids;
	struct embeng_shape built; /* shape from embeng_model_build(); rank 0: it was not called */
};

/* A dynamic rate that follows the step by itself; the schedule's arrays are owned. */
struct model_schedule {
	size_t rate;
	struct embeng_schedule schedule;
};

struct embeng_model {
	struct table *tables;
	size_t table_count;
	struct feature *features;
	size_t feature_count;
	char **rates; /* names of rates and of dynamic hyperparameters, owned */
	size_t rate_count;
	struct model_schedule *schedules;
	size_t schedule_count;
	struct embeng_engine_config engine; /* replicas is never 0 */
};

struct embeng_model *model_copy(const struct embeng_model *model);

/*
 * extension.c: whether a model has all of an open one first, with their blobs. Return: 0, or -EINVAL
 * with the sentence of embeng_add_tables().
 */
int model_check_extends(const struct embeng_model *larger, const void *blob,
			const struct embeng_model *open, const void *open_blob);

/* model_schedule.c */
int model_schedules_copy(struct embeng_model *copy, const struct embeng_model *model);
void model_schedules_free(struct embeng_model *model);

static inline bool model_checks_weights_of(const struct embeng_model *model,
					   const struct feature *f)
{
	return f->check_weights || model->engine.non_finite != EMBENG_NON_FINITE_ALLOW;
}

/* The size that a program gives which was built before tables could be parts. */
#define TABLE_CONFIG_BEFORE offsetof(struct embeng_table_config, part)

static inline bool table_is_part(const struct table *table)
{
	return table->part.rows;
}

/* table_part.c: checks the part of a configuration whose other members are checked already. */
int table_part_check(const char *where, const struct embeng_table_config *config);
/* The part with its defaults filled in, all 0 if it is the whole table. */
struct embeng_table_part table_part_resolve(const struct embeng_table_config *config);
/* The column of the whole table that the first number of a row in the parameters or a slot is. */
uint32_t table_first_column(const struct table *table, size_t slot);

static inline bool table_has_optimizer(const struct table *table)
{
	return table->optimizer.kind != EMBENG_OPTIMIZER_NO;
}

/* model_query.c: what messages call a rate: "learning rate", or "hyperparameter" if it is only that. */
const char *rate_word(const struct embeng_model *model, size_t rate);

/* model_query.c: whether a batch can train, which takes a feature whose table has an optimizer. */
bool model_trains(const struct embeng_model *model);

/* Finds a slot by name: 0 for parameters, 1 + k for slot k, or -ENOENT with a sentence. */
int model_slot(const struct embeng_model *model, int table, const char *slot);
const char *model_slot_name(const struct embeng_model *model, int table, size_t slot);

/* Numbers that a row has in the parameters or in a slot, by number as above, and their bytes. */
uint64_t model_width(const struct table *table, size_t slot);
uint64_t model_row_bytes(const struct table *table, size_t slot);
/* Bytes of a row with all of its slots. */
uint64_t model_whole_row_bytes(const struct table *table);

/* blob.c: the engine's number of a combiner, and the words of all. */
uint8_t model_combiner(enum embeng_combiner_name name);
uint8_t model_policy(enum embeng_policy policy);
extern const char *const model_combiner_words[EMBENG_MAX + 1];

#endif
