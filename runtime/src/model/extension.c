// SPDX-License-Identifier: MIT
/*
 * Tells whether a model begins with another one, so that it can take that one's place in an open
 * handle. Names and options that the engine does not see are compared here; what it does see is
 * compared as the records of the two blobs.
 *
 * Both models are only read; no lock is needed. The blobs belong to their caller.
 */
#include <string.h>

#include "embeng_engine.h"
#include "base/error.h"
#include "model.h"

#define WHAT "embeng_add_tables"

static int refuse_change(const char *what, const char *name)
{
	return fail(-EINVAL,
		    WHAT ": %s%s%s is not as it is in the open model; give the model that was "
			 "opened, with more tables and features behind its own",
		    what, *name ? " " : "", name);
}

static int check_names(const struct embeng_model *larger, const struct embeng_model *open)
{
	if (larger->table_count < open->table_count ||
	    larger->feature_count < open->feature_count || larger->rate_count < open->rate_count)
		return fail(-EINVAL,
			    WHAT ": %zu tables, %zu features and %zu rates; the open model has "
				 "%zu, %zu and %zu, which stay",
			    larger->table_count, larger->feature_count, larger->rate_count,
			    open->table_count, open->feature_count, open->rate_count);
	for (size_t t = 0; t < open->table_count; t++)
		if (strcmp(larger->tables[t].name, open->tables[t].name))
			return refuse_change("table", open->tables[t].name);
	for (size_t r = 0; r < open->rate_count; r++)
		if (strcmp(larger->rates[r], open->rates[r]))
			return refuse_change("rate", open->rates[r]);
	return 0;
}

static bool same_feature(const struct feature *a, const struct feature *b)
{
	return !strcmp(a->name, b->name) && a->output_rank == b->output_rank &&
	       !memcmp(a->output_shape, b->output_shape,
		       a->output_rank * sizeof(*a->output_shape)) &&
	       a->unchecked_serving == b->unchecked_serving &&
	       a->zero_is_padding == b->zero_is_padding;
}

static int check_options(const struct embeng_model *larger, const struct embeng_model *open)
{
	const struct embeng_engine_config *a = &larger->engine, *b = &open->engine;

	for (size_t f = 0; f < open->feature_count; f++)
		if (!same_feature(&larger->features[f], &open->features[f]))
			return refuse_change("feature", open->features[f].name);
	if (a->replicas != b->replicas || !a->pipelining != !b->pipelining ||
	    a->step_depth != b->step_depth || a->hosts != b->hosts || a->sharding != b->sharding ||
	    a->non_finite != b->non_finite || !a->fixed_shapes != !b->fixed_shapes)
		return refuse_change("an option of struct embeng_engine_config", "");
	return 0;
}

/* The @index-th record of a type in a blob that embeng_model_blob() made, or NULL. */
static const struct embeng_record *find_record(const void *blob, uint16_t type, size_t index)
{
	const struct embeng_blob_header *header = blob;
	const char *at = (const char *)(header + 1);

	for (uint32_t i = 0; i < header->record_count; i++) {
		const struct embeng_record *record = (const struct embeng_record *)at;

		if (record->type == type && !index--)
			return record;
		at += record->length;
	}
	return NULL;
}

static bool is_same_record(const void *larger, const void *open, uint16_t type, size_t index)
{
	const struct embeng_record *a = find_record(larger, type, index);
	const struct embeng_record *b = find_record(open, type, index);

	return a && b && a->length == b->length && !memcmp(a, b, b->length);
}

/* Quantizations and shards are in the order of tables, so that the first ones are those of open tables. */
static int compare_records(const void *larger, const void *opened, const struct embeng_model *open)
{
	size_t quantized = 0, sharded = 0;

	for (size_t t = 0; t < open->table_count; t++) {
		bool same = is_same_record(larger, opened, EMBENG_RECORD_TABLE, t);

		if (open->tables[t].quantization.num_buckets)
			same &= is_same_record(larger, opened, EMBENG_RECORD_QUANTIZATION,
					       quantized++);
		if (table_is_part(&open->tables[t]))
			same &= is_same_record(larger, opened, EMBENG_RECORD_SHARD, sharded++);
		if (!same)
			return refuse_change("table", open->tables[t].name);
	}
	for (size_t f = 0; f < open->feature_count; f++)
		if (!is_same_record(larger, opened, EMBENG_RECORD_FEATURE, f))
			return refuse_change("feature", open->features[f].name);
	return 0;
}

/* A record that an open table did not have stands where one of another table is expected. */
static int check_owned(const struct embeng_model *larger, const struct embeng_model *open)
{
	for (size_t t = 0; t < open->table_count; t++) {
		if (!larger->tables[t].quantization.num_buckets !=
		    !open->tables[t].quantization.num_buckets)
			return refuse_change("the quantization of table", open->tables[t].name);
		if (table_is_part(&larger->tables[t]) != table_is_part(&open->tables[t]))
			return refuse_change("the part that is table", open->tables[t].name);
	}
	return 0;
}

int model_check_extends(const struct embeng_model *larger, const void *blob,
			const struct embeng_model *open, const void *open_blob)
{
	int ret = check_names(larger, open);

	ret = ret ? ret : check_options(larger, open);
	ret = ret ? ret : check_owned(larger, open);
	return ret ? ret : compare_records(blob, open_blob, open);
}
