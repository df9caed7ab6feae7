// SPDX-License-Identifier: MIT
/*
 * The steps of a vector, one function for each verb. Nothing waits in one process, where every deadline is 0.
 * Longer steps have files of their own (lookup.c, partition.c and others).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "hosts.h"
#include "input.h"
#include "model.h"
#include "value.h"

/* Rows are read in pieces of about this many floats. */
#define PIECE 65536

static int enqueue_made(struct run *r, struct embeng_batch *b, const struct json *body)
{
	int err = embeng_enqueue(r->e, b, r->wait_ns);

	(void)body;
	return err ? run_library(r, err) : 0;
}

/* The part of a host in a call that another host makes with a batch. */
static int join_batch(struct run *r, const struct json *body, enum embeng_mode mode,
		      int (*use)(struct run *r, struct embeng_batch *b, const struct json *body))
{
	if (mode == EMBENG_INFERENCE)
		return vector_hosts_look(r);
	return use == gradients_made ? vector_hosts_tell(r, body) : STEP_ELSEWHERE;
}

/* Makes the batch of the step's features, and has @use() take it. */
static int with_batch(struct run *r, const struct json *body, enum embeng_mode mode,
		      int (*use)(struct run *r, struct embeng_batch *b, const struct json *body))
{
	struct arrays *kept = NULL;
	struct embeng_batch *b;
	uint32_t replica = 0;
	int err = step_replica(r, body, &replica);

	if (err)
		return err;
	if (vector_hosts_elsewhere(r, replica))
		return join_batch(r, body, mode, use);
	err = batch_begin(r, mode, replica, &b);
	if (err)
		return err;
	err = inputs_add(r, b, member(body, "features"), &kept);
	if (!err)
		err = use(r, b, body);
	else if (r->options->hosts)
		join_batch(r, body, mode, use); /* the others are in the call */
	embeng_batch_free(b);
	inputs_free(kept);
	return err;
}

static int step_enqueue(struct run *r, const struct json *body)
{
	return with_batch(r, body,
			  bool_member(body, "training", true) ? EMBENG_TRAIN : EMBENG_INFERENCE,
			  enqueue_made);
}

static int step_update(struct run *r, const struct json *body)
{
	return with_batch(r, body, EMBENG_TRAIN, update_made);
}

static int step_expect_gradients(struct run *r, const struct json *body)
{
	return with_batch(r, body, EMBENG_TRAIN, gradients_made);
}

static int step_discard(struct run *r, const struct json *body)
{
	uint32_t replica = 0;
	int err = step_replica(r, body, &replica);

	if (err)
		return err;
	if (vector_hosts_elsewhere(r, replica))
		return STEP_ELSEWHERE;
	err = embeng_discard(r->e, replica, r->wait_ns);
	return err ? run_library(r, err) : 0;
}

static void remember_shapes(struct run *r, const struct embeng_activations *a)
{
	for (size_t i = 0; i < a->count; i++) {
		r->shapes[i].rank = a->features[i].rank;
		memcpy(r->shapes[i].shape, a->features[i].shape, sizeof(r->shapes[i].shape));
	}
}

static int compare_views(struct run *r, const struct json *body, const struct json *expect,
			 const struct embeng_activations *a)
{
	for (size_t i = 0; i < json_length(expect); i++) {
		const char *name = json_name(expect, i);
		const struct json *expected = json_at(expect, i);
		int feature = embeng_model_feature(r->model, name);
		const struct embeng_view *view = &a->features[feature];
		int result = compare_output(r, name, view->data, view->shape, view->rank, body,
					    expected);

		if (result)
			return result;
	}
	return 0;
}

/* A misspelt name must not cost the batch. */
static int check_feature_names(struct run *r, const struct json *expect)
{
	for (size_t i = 0; i < json_length(expect); i++) {
		if (embeng_model_feature(r->model, json_name(expect, i)) < 0)
			return run_fail(r, -ENOENT, "there is no feature '%s'",
					json_name(expect, i));
	}
	return 0;
}

static int step_dequeue(struct run *r, const struct json *body)
{
	struct embeng_activations activations = EMBENG_INIT(embeng_activations);
	const struct json *expect = member(body, "expect");
	int result, err;
	uint32_t replica = 0;

	err = step_replica(r, body, &replica);
	if (!err)
		err = check_feature_names(r, expect);
	if (err)
		return err;
	if (vector_hosts_elsewhere(r, replica))
		return STEP_ELSEWHERE;
	err = embeng_dequeue(r->e, replica, r->wait_ns, &activations);
	if (err)
		return run_library(r, err);
	remember_shapes(r, &activations);
	result = compare_views(r, body, expect, &activations);
	if (activations.mode == EMBENG_INFERENCE) {
		err = embeng_release(r->e, &activations);
		if (err && !result)
			return run_library(r, err);
	}
	return result;
}

/* The rows that an expect_table step reads. */
struct reading {
	int table;
	const char *name, *slot;
	int64_t *ids; /* NULL: all */
	size_t count, dim;
	const struct json *values;
};

static int compare_piece(struct run *r, const struct reading *what, size_t first, size_t count,
			 float *got, float *expected, struct comparison *comparison)
{
	int64_t *all = malloc((count + 1) * sizeof(*all));
	const int64_t *ids = what->ids ? what->ids + first : all;
	int err;

	if (!all)
		return run_fail(r, -ENOMEM, "out of memory");
	for (size_t i = 0; i < count; i++)
		all[i] = (int64_t)(first + i);
	err = embeng_rows_read(r->e, what->table, what->slot, ids, count, got);
	if (err) {
		run_library(r, err);
	} else {
		matrix_rows(what->values, ids, (int64_t)first, count, what->dim, expected);
		compare_floats(comparison, got, expected, count * what->dim);
	}
	free(all);
	return err;
}

static int compare_rows(struct run *r, const struct reading *what, const struct json *body)
{
	int64_t shape[] = {(int64_t)what->count, (int64_t)what->dim};
	struct comparison comparison = comparison_start(body);
	size_t piece = what->dim < PIECE ? PIECE / what->dim : 1;
	float *got = malloc(piece * what->dim * sizeof(*got));
	float *expected = malloc(piece * what->dim * sizeof(*expected));
	int err = got && expected ? 0 : run_fail(r, -ENOMEM, "out of memory");

	/* An empty list of rows is read too: table and slot are still checked. */
	for (size_t first = 0; !err && (first < what->count || !first); first += piece) {
		size_t left = what->count - first;

		err = compare_piece(r, what, first, left < piece ? left : piece, got, expected,
				    &comparison);
	}
	free(got);
	free(expected);
	return err ? err : comparison_end(&comparison, r, "table", what->name, shape, 2);
}

static int find_model_table(struct run *r, const char *name)
{
	int table = embeng_model_table(r->model, name);

	return table < 0 ? run_fail(r, -ENOENT, "there is no table '%s'", name) : table;
}

static int step_expect_table(struct run *r, const struct json *body)
{
	struct embeng_table_config table = EMBENG_INIT(embeng_table_config);
	const struct json *rows = member(body, "rows");
	struct reading what = {
		.name = text_member(body, "table", ""),
		.slot = text_member(body, "slot", "parameters"),
		.values = member(body, "values"),
	};
	int64_t shape[2];
	int result;

	what.table = find_model_table(r, what.name);
	if (what.table < 0)
		return what.table;
	embeng_model_get_table(r->model, (size_t)what.table, &table);
	what.dim = (size_t)table.dim;
	if (embeng_model_slot_width(r->model, what.table, what.slot) > 0)
		what.dim = (size_t)embeng_model_slot_width(r->model, what.table, what.slot);
	what.count = rows ? list_length(rows) : (size_t)table.vocabulary_size;
	shape[0] = (int64_t)what.count;
	shape[1] = (int64_t)what.dim;
	if (json_is(what.values, JSON_ARRAY) && !nested_has_shape(what.values, shape, 2))
		return run_mismatch(r, "table", what.name,
				    "table '%s': values must have %zu x %zu numbers", what.name,
				    what.count, what.dim);
	if (rows) {
		what.ids = list_integers(rows);
		if (!what.ids)
			return run_fail(r, -ENOMEM, "out of memory");
	}
	result = compare_rows(r, &what, body);
	free(what.ids);
	return result;
}

static int check_count(struct run *r, const struct json *body, const char *table, const char *key,
		       uint64_t got)
{
	const struct json *expected = member(body, key);

	if (!expected || (uint64_t)json_int64(expected) == got)
		return 0;
	run_mismatch(r, "table", table, "table '%s': %s is %llu, expected %lld", table, key,
		     (unsigned long long)got, (long long)json_int64(expected));
	json_object_object_add(r->failure, "at", json_object_new_string(key));
	json_object_object_add(r->failure, "got", json_object_new_uint64(got));
	json_object_object_add(r->failure, "expected", json_object_new_int64(json_int64(expected)));
	return STEP_MISMATCH;
}

static int step_expect_stats(struct run *r, const struct json *body)
{
	struct embeng_table_stats stats = EMBENG_INIT(embeng_table_stats);
	const char *name = text_member(body, "table", "");
	int table = find_model_table(r, name), result;

	if (table < 0)
		return table;
	result = embeng_stats(r->e, table, 1, &stats);
	if (result)
		return run_library(r, result);
	result = check_count(r, body, name, "ids", stats.ids);
	if (!result)
		result = check_count(r, body, name, "unique_ids", stats.unique_ids);
	if (!result)
		result = check_count(r, body, name, "dropped_ids", stats.dropped_ids);
	if (!result)
		result = check_count(r, body, name, "clamped_ids", stats.clamped_ids);
	if (!result)
		result = check_count(r, body, name, "zeroed_ids", stats.zeroed_ids);
	if (!result)
		result = check_count(r, body, name, "nonfinite_gradient_rows",
				     stats.nonfinite_gradient_rows);
	return result;
}

static int step_freeze(struct run *r, const struct json *body)
{
	bool frozen = bool_member(body, "frozen", true);
	int table = find_model_table(r, text_member(body, "table", "")), err;

	if (table < 0)
		return table;
	err = embeng_table_freeze(r->e, table, frozen);
	if (err)
		return run_library(r, err);
	if (embeng_table_frozen(r->e, table) != frozen)
		return run_fail(r, -EIO, "table %d: it is not as it was set", table);
	return 0;
}

static int step_fill(struct run *r, const struct json *body)
{
	struct embeng_table_config config = EMBENG_INIT(embeng_table_config);
	const int64_t first = integer_member(body, "first", 0);
	int table = find_model_table(r, text_member(body, "table", "")), err;
	struct embeng_initializer initializer;
	int64_t count;

	if (table < 0)
		return table;
	err = initializer_read(r, member(body, "initializer"), &initializer);
	if (err)
		return err;
	embeng_model_get_table(r->model, (size_t)table, &config);
	count = first >= 0 && first <= config.vocabulary_size ? config.vocabulary_size - first : 0;
	count = integer_member(body, "count", count);
	if (count < 0)
		return run_fail(r, -ERANGE, "table %d: %lld rows cannot be filled", table,
				(long long)count);
	err = embeng_rows_fill(r->e, table, text_member(body, "slot", NULL), first, (size_t)count,
			       &initializer);
	return err ? run_library(r, err) : 0;
}

static const struct {
	const char *verb;
	int (*run)(struct run *r, const struct json *body);
} steps[] = {
	{"enqueue", step_enqueue},
	{"dequeue", step_dequeue},
	{"apply_gradients", step_apply_gradients},
	{"update", step_update},
	{"discard", step_discard},
	{"expect_gradients", step_expect_gradients},
	{"expect_table", step_expect_table},
	{"lookup", step_lookup},
	{"expect_stats", step_expect_stats},
	{"freeze", step_freeze},
	{"fill", step_fill},
	{"partition", step_partition},
	{"spread", step_spread},
	{"stacking", step_stacking},
	{"expect_config", step_expect_config},
	{"save", step_save},
	{"restore", step_restore},
	{"reopen", step_reopen},
	{"add_tables", step_add_tables},
};

int step_run(struct run *r, const char *verb, const struct json *body)
{
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		if (!strcmp(steps[i].verb, verb))
			return steps[i].run(r, body);
	}
	return run_fail(r, -ENOTSUP, "this build has no step '%s'", verb);
}
