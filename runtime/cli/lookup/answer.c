// SPDX-License-Identifier: MIT
/*
 * Answers one question from a checkpoint: rows of a table, or a feature's bag. It is apart from
 * lookup.c, which reads the question and prints the answer.
 *
 * The answer owns its numbers until answer_free().
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "lookup.h"

static int set_refusal(struct answer *a, int err, const char *refusal)
{
	a->refusal = refusal;
	return err;
}

/* A model whose one feature is single rows of the table. */
static int rows_model(const struct embeng_model *saved, int table, struct embeng_model **out)
{
	struct embeng_table_config t = EMBENG_INIT(embeng_table_config);
	struct embeng_feature_config f = EMBENG_INIT(embeng_feature_config);
	int err = embeng_model_get_table(saved, (size_t)table, &t);

	if (err)
		return err;
	*out = embeng_model_new();
	if (!*out)
		return -ENOMEM;
	f.name = t.name;
	err = embeng_model_add_table(*out, &t);
	if (err >= 0)
		err = embeng_model_add_feature(*out, &f);
	return err < 0 ? err : 0;
}

static int find_named_row(const struct question *q, size_t k, struct answer *a)
{
	q->ids[k] = row_names_find(&a->names, q->names[k]);
	if (q->ids[k] >= 0)
		return 0;
	snprintf(a->text, sizeof(a->text), "no row has the name '%.60s'", q->names[k]);
	a->near = row_names_near(a->names.text, a->names.count, q->names[k], a->near_text);
	return set_refusal(a, -ENOENT, a->text);
}

/* The ids that are names. Without any, names that cannot be read are not missed. */
static int find_named_rows(const struct question *q, const struct embeng_checkpoint *c,
			   struct answer *a)
{
	char why[ROW_NAMES_ERROR];
	int rc = row_names_load(q->dir, c, &a->names, why);

	for (size_t k = 0; k < q->id_count; k++) {
		if (!q->names[k])
			continue;
		if (rc == -ENOENT)
			snprintf(a->text, sizeof(a->text),
				 "'%.60s' is no id; an id is a whole number of 64 bits, and this "
				 "checkpoint does not name its rows",
				 q->names[k]);
		else if (rc)
			snprintf(a->text, sizeof(a->text), "%s", why);
		if (rc)
			return set_refusal(a, rc, a->text);
		if (find_named_row(q, k, a))
			return -ENOENT;
	}
	return 0;
}

/* The features to serve; NULL: those that were saved, of which one is asked. */
static int choose_features(const struct question *q, struct embeng_model **features,
			   struct answer *a)
{
	struct embeng_checkpoint *c;
	const struct embeng_model *saved;
	int err = embeng_checkpoint_open(q->dir, &c, NULL), table;

	if (err)
		return err;
	saved = embeng_checkpoint_model(c);
	table = q->feature ? -ENOENT : embeng_model_table(saved, q->name);
	if (table >= 0)
		err = rows_model(saved, table, features);
	else if (embeng_model_feature(saved, q->name) < 0)
		err = set_refusal(a, -ENOENT,
				  q->feature ? "no feature has this name"
					     : "neither a table nor a feature has this name");
	if (!err)
		err = find_named_rows(q, c, a);
	embeng_checkpoint_close(c);
	return err;
}

static int open_serving(const struct question *q, struct answer *a)
{
	struct embeng_model *features = NULL;
	int err = choose_features(q, &features, a);

	if (!err)
		err = embeng_serving_open(q->dir, features, q->verify ? EMBENG_SERVING_VERIFY : 0,
					  &a->serving, NULL);
	if (!err && !features)
		a->feature = q->name;
	if (!err && features && q->weights)
		err = set_refusal(a, -EINVAL, "rows of a table take no weights; name a feature");
	embeng_model_free(features);
	return err;
}

static int look_up_input(const struct embeng_serving_input *asked, struct answer *a)
{
	struct embeng_serving_input in = *asked;
	int err = embeng_serving_shape(a->serving, &in, a->shape, &a->rank);

	if (err)
		return err;
	in.out_elements = 1;
	for (size_t i = 0; i < a->rank; i++)
		in.out_elements *= (size_t)a->shape[i];
	in.out = a->activations = malloc((in.out_elements + 1) * sizeof(*in.out));
	return in.out ? embeng_serving_lookup(a->serving, &in, 1)
		      : set_refusal(a, -ENOMEM, "out of memory");
}

/* The library would speak of samples of a feature, of which nobody asked. */
static int check_row_ids(const struct question *q, const struct embeng_model *model,
			 struct answer *a)
{
	struct embeng_table_config t = EMBENG_INIT(embeng_table_config);
	int err = embeng_model_get_table(model, 0, &t);

	for (size_t k = 0; !err && k < q->id_count; k++) {
		if (q->ids[k] >= 0 && q->ids[k] < t.vocabulary_size)
			continue;
		snprintf(a->text, sizeof(a->text),
			 "the table has no row %" PRId64 ", only rows 0 to %" PRId64, q->ids[k],
			 t.vocabulary_size - 1);
		err = set_refusal(a, -ERANGE, a->text);
	}
	return err;
}

/* All ids in the bag of one sample: a sparse input, as most that are served. */
static int64_t *bag_places(size_t count)
{
	int64_t *places = calloc(2 * count + 1, sizeof(*places));

	for (size_t k = 0; places && k < count; k++)
		places[2 * k + 1] = (int64_t)k;
	return places;
}

int question_answer(struct question *q, struct answer *a)
{
	const struct embeng_model *model;
	struct embeng_feature_config f = EMBENG_INIT(embeng_feature_config);
	int64_t *places = bag_places(q->id_count), bag[] = {1, (int64_t)q->id_count};
	struct embeng_serving_input in = EMBENG_INIT(
		embeng_serving_input, .form = EMBENG_SPARSE, .type = EMBENG_I64, .ids = q->ids,
		.id_count = q->id_count, .indices = places, .shape = bag, .rank = 2,
		.weights = q->weights, .weight_count = q->weight_count);
	int err = places ? open_serving(q, a) : set_refusal(a, -ENOMEM, "out of memory");

	if (!err) {
		model = embeng_serving_model(a->serving);
		in.feature = a->feature ? embeng_model_feature(model, a->feature) : 0;
		if (!a->feature) {
			in.form = EMBENG_DENSE;
			in.shape = &bag[1];
			in.rank = 1;
			err = check_row_ids(q, model, a);
		}
		embeng_model_get_feature(model, (size_t)in.feature, &f);
		a->table = embeng_model_table_name(model, (size_t)f.table);
		err = err ? err : look_up_input(&in, a);
	}
	free(places);
	return err;
}

void answer_free(struct answer *a)
{
	embeng_serving_close(a->serving);
	row_names_free(&a->names);
	free(a->activations);
}
