// SPDX-License-Identifier: MIT
/*
 * The step spread of a vector: the rows that a batch reads, as if they were spread over hosts, gathered
 * from the tables of the one handle there is; the activations made of them, and the sums of gradients.
 *
 * All arrays live for one step.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "input.h"
#include "value.h"
#include "embeng/shard.h"
#include "embeng/spread.h"

/* A step under way: what the calls are given, in the model's order of tables and features. */
struct spread {
	struct run *r;
	const struct json *body;
	struct arrays *kept;
	struct embeng_spread batch;
	struct embeng_spread_table *tables;
	struct embeng_spread_feature *features;
	int64_t **lists; /* [tables] rows of the whole tables, as the lists have them */
	void **made;	 /* freed at the end */
	size_t made_count, made_room;
};

/* Zeroed memory that lasts as long as the step; NULL with a sentence. */
static void *make_memory(struct spread *s, size_t count, size_t size)
{
	void *p = s->made_count < s->made_room ? calloc(count + 1, size) : NULL;

	if (p)
		s->made[s->made_count++] = p;
	else
		run_fail(s->r, -ENOMEM, "out of memory");
	return p;
}

static int64_t *offsets_of(struct spread *s, const struct arrays *a)
{
	int64_t *offsets;

	if (a->form == INPUT_SPLITS)
		return a->places;
	offsets = make_memory(s, a->place_count + 1, sizeof(*offsets));
	for (size_t i = 0; offsets && i < a->place_count; i++)
		offsets[i + 1] = offsets[i] + a->places[i];
	return offsets;
}

static int read_spread_feature(struct spread *s, size_t feature)
{
	struct embeng_feature_config config = EMBENG_INIT(embeng_feature_config);
	struct embeng_spread_feature *f = &s->features[feature];
	const struct json *input;
	int err;

	f->name = embeng_model_feature_name(s->r->model, feature);
	embeng_model_get_feature(s->r->model, feature, &config);
	input = member(member(s->body, "features"), f->name);
	if (!input || member(input, "sparse"))
		return run_fail(s->r, -EINVAL,
				"feature '%s': a spread takes a dense or a ragged input", f->name);
	err = input_read(s->r, f->name, input, &s->kept);
	if (err)
		return err;
	if (s->kept->form != INPUT_DENSE) {
		f->offsets = offsets_of(s, s->kept);
		if (!f->offsets)
			return -ENOMEM;
	}
	f->table = (size_t)config.table;
	f->max_sequence_length = config.max_sequence_length;
	f->type = EMBENG_I64;
	f->ids = s->kept->ids;
	f->id_count = s->kept->id_count;
	f->samples = s->kept->id_count;
	if (s->kept->form != INPUT_DENSE)
		f->samples = s->kept->place_count - (s->kept->form == INPUT_SPLITS);
	f->weights = s->kept->weights;
	f->places = make_memory(s, f->id_count, sizeof(*f->places));
	return f->places ? 0 : -ENOMEM;
}

static int read_spread_table(struct spread *s, size_t table)
{
	struct embeng_table_config config = EMBENG_INIT(embeng_table_config);
	struct embeng_spread_table *t = &s->tables[table];

	embeng_model_get_table(s->r->model, table, &config);
	t->name = embeng_model_table_name(s->r->model, table);
	t->rows = config.vocabulary_size;
	t->dim = config.dim;
	t->combiner = config.combiner;
	t->out_of_range = config.out_of_range;
	for (size_t f = 0; f < s->batch.feature_count; f++)
		t->room += s->features[f].table == table ? s->features[f].id_count : 0;
	t->list = make_memory(s, t->room, sizeof(*t->list));
	t->counts = make_memory(s, s->batch.hosts, sizeof(*t->counts));
	s->lists[table] = make_memory(s, t->room, sizeof(*s->lists[table]));
	t->sums = make_memory(s, t->room * (size_t)t->dim, sizeof(*t->sums));
	return t->list && t->counts && s->lists[table] && t->sums ? 0 : -ENOMEM;
}

static int read_spread_options(struct spread *s)
{
	const char *sharding = text_member(s->body, "sharding", "div");
	uint64_t hosts;
	int err = read_count(s->r, s->body, "hosts", 1, 1, &hosts);

	if (err)
		return err;
	if (strcmp(sharding, "div") != 0 && strcmp(sharding, "mod") != 0)
		return run_fail(s->r, -EINVAL, "there is no sharding '%s'; give div or mod",
				sharding);
	s->batch = (struct embeng_spread){
		.size = sizeof(s->batch),
		.tables = s->tables,
		.table_count = embeng_model_table_count(s->r->model),
		.features = s->features,
		.feature_count = embeng_model_feature_count(s->r->model),
		.hosts = (uint32_t)hosts,
		.sharding = *sharding == 'm' ? EMBENG_SHARDING_MOD : EMBENG_SHARDING_DIV,
	};
	return 0;
}

static int read_spread(struct spread *s)
{
	int err = read_spread_options(s);

	for (size_t i = 0; !err && i < s->batch.feature_count; i++)
		err = read_spread_feature(s, i);
	for (size_t i = 0; !err && i < s->batch.table_count; i++)
		err = read_spread_table(s, i);
	return err;
}

/* The rows of the whole tables that the lists name by their hosts. */
static int find_listed_rows(struct spread *s)
{
	struct embeng_shard shard = {
		.size = sizeof(shard), .hosts = s->batch.hosts, .sharding = s->batch.sharding};

	for (size_t i = 0; i < s->batch.table_count; i++) {
		const struct embeng_spread_table *t = &s->tables[i];
		struct embeng_shard_rows part;
		size_t at = 0;

		for (shard.host = 0; shard.host < shard.hosts; shard.host++) {
			int err = embeng_shard_rows(&shard, t->rows, &part);

			if (err)
				return run_library(s->r, err);
			for (size_t k = 0; k < t->counts[shard.host]; k++, at++)
				s->lists[i][at] = part.first + t->list[at] * part.stride;
		}
	}
	return 0;
}

static int compare_lists(struct spread *s, const struct json *expect)
{
	for (size_t i = 0; i < json_length(expect); i++) {
		int table = embeng_model_table(s->r->model, json_name(expect, i));
		const struct json *hosts = json_at(expect, i);
		size_t at = 0;

		if (table < 0)
			return run_fail(s->r, -ENOENT, "there is no table '%s'",
					json_name(expect, i));
		if (list_length(hosts) != s->batch.hosts)
			return run_fail(s->r, -EINVAL, "table '%s': rows need a list for each host",
					json_name(expect, i));
		for (uint32_t h = 0; h < s->batch.hosts; h++) {
			const struct json *rows = json_at(hosts, h);
			size_t count = s->tables[table].counts[h];

			if (list_length(rows) != count)
				return run_mismatch(s->r, "table", json_name(expect, i),
						    "host %u has %zu rows, expected %zu", h, count,
						    list_length(rows));
			for (size_t k = 0; k < count; k++, at++) {
				if (json_int64(json_at(rows, k)) != s->lists[table][at])
					return run_mismatch(
						s->r, "table", json_name(expect, i),
						"row %zu of host %u is %lld, expected %lld", k, h,
						(long long)s->lists[table][at],
						(long long)json_int64(json_at(rows, k)));
			}
		}
	}
	return 0;
}

/* A table's rows come through its first feature; all others have no samples. */
static int add_gathered(struct spread *s, struct embeng_batch *b, bool *seen)
{
	for (size_t i = 0; i < s->batch.feature_count; i++) {
		size_t table = s->features[i].table;
		size_t count = seen[table] ? 0 : s->tables[table].count;
		const int64_t shape[] = {(int64_t)count};
		int err = embeng_batch_dense(b, (int)i, EMBENG_I64, s->lists[table], count, shape,
					     1);

		err = err ? err : embeng_batch_gather(b, (int)i);
		if (err)
			return run_library(s->r, err);
		seen[table] = true;
	}
	return 0;
}

static int keep_gathered(struct spread *s, const struct embeng_activations *a, bool *seen)
{
	for (size_t i = 0; i < s->batch.feature_count; i++) {
		struct embeng_spread_table *t = &s->tables[s->features[i].table];
		size_t numbers = t->count * (size_t)t->dim;
		float *data;

		if (seen[s->features[i].table])
			continue;
		seen[s->features[i].table] = true;
		data = make_memory(s, numbers, sizeof(*data));
		if (!data)
			return -ENOMEM;
		if (numbers)
			memcpy(data, a->features[i].data, numbers * sizeof(*data));
		t->data = data;
	}
	return 0;
}

static int gather_rows(struct spread *s)
{
	struct embeng_activations a = EMBENG_INIT(embeng_activations);
	bool *seen = make_memory(s, 2 * s->batch.table_count, sizeof(*seen));
	struct embeng_batch *b;
	int err = seen ? batch_begin(s->r, EMBENG_INFERENCE, 0, &b) : -ENOMEM;

	if (err)
		return err;
	err = add_gathered(s, b, seen);
	if (!err) {
		err = embeng_enqueue(s->r->e, b, 0);
		err = err ? err : embeng_dequeue(s->r->e, 0, 0, &a);
		if (err)
			run_library(s->r, err);
	}
	embeng_batch_free(b);
	if (err)
		return err;
	err = keep_gathered(s, &a, seen + s->batch.table_count);
	embeng_release(s->r->e, &a);
	return err;
}

/* Return: dimensions of a feature's activations, dim the last of them. */
static size_t shape_of_feature(const struct spread *s, size_t feature, int64_t shape[3])
{
	const struct embeng_spread_feature *f = &s->features[feature];
	size_t rank = 0;

	shape[rank++] = (int64_t)f->samples;
	if (f->max_sequence_length && f->offsets)
		shape[rank++] = f->max_sequence_length;
	shape[rank++] = s->tables[f->table].dim;
	return rank;
}

static int pool_rows(struct spread *s, const struct json *expect)
{
	int err = 0;

	for (size_t i = 0; i < s->batch.feature_count; i++) {
		int64_t shape[3];
		size_t rank = shape_of_feature(s, i, shape), numbers = 1;

		for (size_t d = 0; d < rank; d++)
			numbers *= (size_t)shape[d];
		s->features[i].activations = make_memory(s, numbers, sizeof(float));
		if (!s->features[i].activations)
			return -ENOMEM;
	}
	err = embeng_spread_pool(s->r->e, &s->batch);
	if (err)
		return run_library(s->r, err);
	for (size_t i = 0; !err && i < json_length(expect); i++) {
		int feature = embeng_model_feature(s->r->model, json_name(expect, i));
		int64_t shape[3];

		if (feature < 0)
			return run_fail(s->r, -ENOENT, "there is no feature '%s'",
					json_name(expect, i));
		err = compare_output(s->r, json_name(expect, i), s->features[feature].activations,
				     shape, shape_of_feature(s, (size_t)feature, shape), s->body,
				     json_at(expect, i));
	}
	return err;
}

static int read_spread_gradients(struct spread *s, const struct json *given)
{
	for (size_t i = 0; i < s->batch.feature_count; i++) {
		const struct json *gradient = member(given, s->features[i].name);
		int64_t shape[3];
		size_t rank = shape_of_feature(s, i, shape);
		float *numbers;

		if (!gradient)
			continue;
		if (!json_is(gradient, JSON_ARRAY) || !nested_has_shape(gradient, shape, rank))
			return run_fail(s->r, -EINVAL,
					"feature '%s': the gradient must have the shape of the "
					"activations",
					s->features[i].name);
		numbers = make_memory(s, nested_count(gradient), sizeof(*numbers));
		if (!numbers)
			return -ENOMEM;
		nested_flatten(gradient, numbers);
		s->features[i].gradients = numbers;
	}
	return 0;
}

static int compare_sums(struct spread *s, const char *name, const struct json *expected)
{
	int table = embeng_model_table(s->r->model, name);
	struct comparison c = comparison_start(s->body);
	int64_t shape[2];
	float *numbers;

	if (table < 0)
		return run_fail(s->r, -ENOENT, "there is no table '%s'", name);
	shape[0] = (int64_t)s->tables[table].count;
	shape[1] = s->tables[table].dim;
	if (!nested_has_shape(expected, shape, 2))
		return run_mismatch(s->r, "table", name,
				    "the list has %zu rows, not those of the "
				    "expected sums",
				    s->tables[table].count);
	numbers = make_memory(s, nested_count(expected), sizeof(*numbers));
	if (!numbers)
		return -ENOMEM;
	nested_flatten(expected, numbers);
	compare_floats(&c, s->tables[table].sums, numbers, nested_count(expected));
	return comparison_end(&c, s->r, "table", name, shape, 2);
}

static int sum_gradients(struct spread *s, const struct json *expect)
{
	int err = read_spread_gradients(s, member(s->body, "gradients"));

	if (err)
		return err;
	err = embeng_spread_sum(s->r->e, &s->batch);
	if (err)
		return run_library(s->r, err);
	for (size_t i = 0; !err && i < json_length(expect); i++)
		err = compare_sums(s, json_name(expect, i), json_at(expect, i));
	return err;
}

static int run_spread_step(struct spread *s)
{
	const struct json *expect = member(s->body, "expect");
	int err = read_spread(s);

	if (err)
		return err;
	err = embeng_spread_unique(s->r->e, &s->batch);
	if (err)
		return run_library(s->r, err);
	err = find_listed_rows(s);
	err = err ? err : compare_lists(s, member(expect, "rows"));
	err = err ? err : gather_rows(s);
	err = err ? err : pool_rows(s, member(expect, "activations"));
	return err ? err : sum_gradients(s, member(expect, "sums"));
}

int step_spread(struct run *r, const struct json *body)
{
	size_t tables = embeng_model_table_count(r->model);
	size_t features = embeng_model_feature_count(r->model);
	struct spread s = {.r = r, .body = body, .made_room = 16 + 8 * (tables + features)};
	int err;

	s.made = calloc(s.made_room, sizeof(*s.made));
	s.tables = calloc(tables + 1, sizeof(*s.tables));
	s.features = calloc(features + 1, sizeof(*s.features));
	s.lists = calloc(tables + 1, sizeof(*s.lists));
	if (s.made && s.tables && s.features && s.lists)
		err = run_spread_step(&s);
	else
		err = run_fail(r, -ENOMEM, "out of memory");
	for (size_t i = 0; i < s.made_count; i++)
		free(s.made[i]);
	free(s.made);
	free(s.tables);
	free(s.features);
	free(s.lists);
	inputs_free(s.kept);
	return err;
}
