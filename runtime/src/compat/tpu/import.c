// SPDX-License-Identifier: MIT
/*
 * Makes a model of a TPUEmbeddingConfiguration that was unpacked: tables, features, tags and
 * settings. Errors name the field of the protobuf.
 *
 * Results go into the struct importing of the caller, who frees them after an error too. No lock is
 * needed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "import.h"
#include "model/model.h"

typedef Tpu__Configuration__TableDescriptor table_message;
typedef Tpu__Configuration__FeatureDescriptor feature_message;

/* The sentence of the call that failed, behind the place it is about. */
static int fail_at(const char *list, size_t index, int code)
{
	struct embeng_error error = {.size = sizeof(error)};

	embeng_last_error(&error);
	return fail(code, "%s[%zu]: %s", list, index, error.text);
}

static int count_read(const char *name, int32_t count)
{
	return count >= 0 ? 0 : fail(-ERANGE, "%s: %d is below 0", name, count);
}

/* Where no training is, tables need no optimizer. */
static bool is_inference(const struct importing *im)
{
	return im->from->mode == TPU__CONFIGURATION__MODE__INFERENCE;
}

/* The name that stands for a tag; NULL: there is no tag. */
static const char *rate_name(char name[24], int32_t tag)
{
	if (tag == TPU_NO_TAG)
		return NULL;
	snprintf(name, 24, "rate_%d", tag);
	return name;
}

static int parameters_read(struct importing *im, size_t index, const table_message *from,
			   struct embeng_table_config *config)
{
	const struct tpu_place table = {NULL, "table_descriptor", (long)index};
	const struct tpu_place place = {&table, "optimization_parameters", -1};
	char text[TPU_PATH];
	struct tpu_tags tags;
	int code;

	if (!from->optimization_parameters && !is_inference(im))
		return fail(-EINVAL, "%s: it is missing; only with the mode INFERENCE it may be",
			    tpu_path(text, &place));
	code = tpu_parameters_read(&place, from->optimization_parameters, is_inference(im),
				   &config->optimizer, &tags);
	if (!code)
		code = tpu_quantization_read(&place, from->optimization_parameters,
					     &config->quantization);
	if (code)
		return code;
	im->tags[index] = tags;
	config->optimizer.rate_name = rate_name(im->names[0], tags.rate);
	config->optimizer.step_counter = rate_name(im->names[1], tags.step);
	return 0;
}

static void hot_ids_read(struct importing *im, size_t index, const table_message *from)
{
	const Tpu__OptimizationParameters *parameters = from->optimization_parameters;

	if (parameters && parameters->hot_id_replication_configuration)
		im->hot_ids[index] = (enum embeng_tpu_hot_ids)
					     parameters->hot_id_replication_configuration->status;
}

static int import_table(struct importing *im, size_t index)
{
	const table_message *from = im->from->table_descriptor[index];
	struct embeng_table_config config = {
		.size = sizeof(config),
		.name = *from->name ? from->name : NULL,
		.vocabulary_size = from->vocabulary_size,
		.dim = from->dimension,
	};
	int code = parameters_read(im, index, from, &config);

	if (code)
		return code;
	hot_ids_read(im, index, from);
	if (im->hooks.table) {
		code = im->hooks.table(im->hooks.arg, index, &config);
		if (code)
			return fail(code, "table_descriptor[%zu]: the table hook refuses it",
				    index);
	}
	code = embeng_model_add_table(im->model, &config);
	return code < 0 ? fail_at("table_descriptor", index, code) : 0;
}

static int import_feature(struct importing *im, size_t index, struct embeng_feature_config *config)
{
	int code;

	if (im->hooks.feature) {
		code = im->hooks.feature(im->hooks.arg, index, config);
		if (code)
			return fail(code, "feature_descriptor[%zu]: the feature hook refuses it",
				    index);
	}
	code = embeng_model_add_feature(im->model, config);
	return code < 0 ? fail_at("feature_descriptor", index, code) : 0;
}

static int import_described(struct importing *im, size_t index)
{
	const feature_message *from = im->from->feature_descriptor[index];
	struct embeng_feature_config config = {
		.size = sizeof(config),
		.name = *from->name ? from->name : NULL,
		.table = from->table_id,
		.output_rank = from->n_input_shape,
	};

	if (from->n_input_shape > EMBENG_MAX_RANK)
		return fail(-ERANGE,
			    "feature_descriptor[%zu].input_shape: %zu lengths are more than %d",
			    index, from->n_input_shape, EMBENG_MAX_RANK);
	for (size_t i = 0; i < from->n_input_shape; i++) {
		if (from->input_shape[i] < 1)
			return fail(-ERANGE,
				    "feature_descriptor[%zu].input_shape[%zu]: %d is below 1",
				    index, i, from->input_shape[i]);
		config.output_shape[i] = from->input_shape[i];
	}
	return import_feature(im, index, &config);
}

/* Counts alone: so many features of one batch each. */
static int import_counted(struct importing *im, size_t table)
{
	const table_message *from = im->from->table_descriptor[table];
	int code = 0;

	for (int32_t k = 0; !code && k < from->num_features; k++) {
		struct embeng_feature_config config = {
			.size = sizeof(config),
			.table = (int)table,
			.output_rank = 1,
			.output_shape = {im->from->batch_size_per_tensor_core},
		};

		code = import_feature(im, embeng_model_feature_count(im->model), &config);
	}
	return code;
}

/* Both ways of telling features must say the same; each table's positions show it. */
static int check_position_counts(const struct importing *im, size_t table)
{
	const table_message *from = im->from->table_descriptor[table];
	int64_t told = (int64_t)from->num_features * im->from->batch_size_per_tensor_core;
	int64_t described = 0;

	for (size_t f = 0; f < im->model->feature_count; f++) {
		const struct feature *feature = &im->model->features[f];
		int64_t positions = shape_product(feature->output_shape, feature->output_rank,
						  false);

		if (feature->table == (int)table &&
		    __builtin_add_overflow(described, positions, &described))
			described = INT64_MAX;
	}
	if (told == described)
		return 0;
	return fail(-EINVAL,
		    "table_descriptor[%zu].num_features: %d batches of %d are %lld positions, "
		    "the feature_descriptors of the table have %lld",
		    table, from->num_features, im->from->batch_size_per_tensor_core,
		    (long long)told, (long long)described);
}

/* Whether there are counts, which must be possible ones. */
static int counts_read(struct importing *im)
{
	int32_t batch = im->from->batch_size_per_tensor_core;
	uint64_t sum = 0;

	if (count_read("batch_size_per_tensor_core", batch))
		return -ERANGE;
	for (size_t t = 0; t < im->from->n_table_descriptor; t++) {
		int32_t count = im->from->table_descriptor[t]->num_features;

		if (count < 0)
			return fail(-ERANGE, "table_descriptor[%zu].num_features: %d is below 0", t,
				    count);
		sum += (uint64_t)count;
	}
	im->counted = sum || batch;
	if (sum && !batch)
		return fail(-EINVAL, "batch_size_per_tensor_core: it is 0, but tables have "
				     "num_features; give both or neither");
	if (!im->from->n_feature_descriptor && sum > TPU_MOST_ELEMENTS)
		return fail(-ERANGE, "table_descriptor: num_features are %llu, more than %u",
			    (unsigned long long)sum, TPU_MOST_ELEMENTS);
	return 0;
}

static int import_features(struct importing *im)
{
	const bool described = im->from->n_feature_descriptor;
	const size_t tables = im->from->n_table_descriptor;
	int code = counts_read(im);

	for (size_t f = 0; !code && f < im->from->n_feature_descriptor; f++)
		code = import_described(im, f);
	for (size_t t = 0; !code && im->counted && t < tables; t++)
		code = described ? check_position_counts(im, t) : import_counted(im, t);
	im->settings.form = !im->counted ? EMBENG_TPU_FEATURES
			    : described	 ? EMBENG_TPU_BOTH
					 : EMBENG_TPU_COUNTS;
	return code;
}

/* A tag that is there. No table has more than two. */
static int note_tag(const struct importing *im, size_t table, const char *field, int32_t tag,
		    bool *there, int32_t *most)
{
	const size_t all = 2 * im->from->n_table_descriptor;

	if (tag == TPU_NO_TAG)
		return 0;
	if ((size_t)tag >= all)
		return fail(-ERANGE,
			    "table_descriptor[%zu].optimization_parameters.%s.tag: %d is not "
			    "below %zu, the most tags that so many tables have",
			    table, field, tag, all);
	there[tag] = true;
	*most = tag > *most ? tag : *most;
	return 0;
}

/* Tags count from 0 without a gap: callers give a rate for each. */
static int check_tags(const struct importing *im)
{
	const size_t tables = im->from->n_table_descriptor;
	bool *there = calloc(2 * tables + 1, sizeof(*there));
	int32_t most = TPU_NO_TAG;
	int code = 0;

	if (!there)
		return fail(-ENOMEM, "no memory to check tags");
	for (size_t t = 0; !code && t < tables; t++) {
		code = note_tag(im, t, "learning_rate.dynamic", im->tags[t].rate, there, &most);
		if (!code)
			code = note_tag(im, t, "frequency_aware_adagrad.step_counter",
					im->tags[t].step, there, &most);
	}
	for (int32_t tag = 0; !code && tag < most; tag++) {
		if (!there[tag])
			code = fail(-EINVAL,
				    "tag: %d is there, %d is not; tags "
				    "count from 0 without a gap",
				    most, tag);
	}
	free(there);
	return code;
}

static int engine_read(struct importing *im)
{
	const Tpu__Configuration *from = im->from;
	struct embeng_engine_config engine = {
		.size = sizeof(engine),
		.replicas = (uint32_t)from->num_tensor_cores,
		.pipelining = from->pipeline_execution_with_tensor_core,
		.hosts = (uint32_t)im->settings.hosts,
		.sharding = (enum embeng_sharding)im->settings.sharding,
		.fixed_shapes = 1,
	};
	int code = count_read("num_tensor_cores", from->num_tensor_cores);

	return code ? code : embeng_model_set_engine(im->model, &engine);
}

static int settings_read(struct importing *im)
{
	const Tpu__Configuration *from = im->from;
	const Tpu__Configuration__SpmdSharding *spmd = from->spmd_sharding;
	int code = count_read("num_hosts", from->num_hosts);

	if (!code && spmd)
		code = count_read("spmd_sharding.num_cores_per_replica",
				  spmd->num_cores_per_replica);
	im->settings.mode = (enum embeng_tpu_mode)from->mode;
	im->settings.sharding = (enum embeng_tpu_sharding)from->sharding_strategy;
	im->settings.hosts = from->num_hosts ? from->num_hosts : 1;
	im->settings.profile_directory = from->profile_data_directory;
	if (spmd) {
		im->settings.spmd = spmd->enabled != 0;
		im->settings.spmd_manual = spmd->manual_partitioning != 0;
		im->settings.spmd_cores_per_replica = spmd->num_cores_per_replica;
	}
	return code;
}

int tpu_model_read(struct importing *im)
{
	int code = settings_read(im);

	if (!code)
		code = engine_read(im);
	for (size_t t = 0; !code && t < im->from->n_table_descriptor; t++)
		code = import_table(im, t);
	if (!code)
		code = check_tags(im);
	return code ? code : import_features(im);
}
