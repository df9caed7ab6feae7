// SPDX-License-Identifier: MIT
/*
 * Writes a model as a TPUEmbeddingConfiguration, and an optimizer as OptimizationParameters.
 *
 * The messages live for one call and point into the model; the bytes belong to the caller. No lock
 * is needed.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/divisor.h"
#include "model/shape.h"
#include "optimizer.h"
#include "settings.h"

typedef Tpu__Configuration__TableDescriptor table_message;
typedef Tpu__Configuration__FeatureDescriptor feature_message;

/* A configuration with all that it points to. */
struct exported {
	Tpu__Configuration message;
	Tpu__Configuration__SpmdSharding spmd;
	table_message *tables, **table_list;
	struct tpu_parameters *parameters; /* one for each table */
	feature_message *features, **feature_list;
	int32_t (*shapes)[EMBENG_MAX_RANK]; /* one for each feature */
	int64_t *positions;		    /* one for each feature: of its output shape */
};

static void exported_free(struct exported *x)
{
	free(x->tables);
	free(x->table_list);
	free(x->parameters);
	free(x->features);
	free(x->feature_list);
	free(x->shapes);
	free(x->positions);
}

/* Arrays are never of no elements, so that NULL means that there is no memory. */
static void *new_list(size_t count, size_t width)
{
	return calloc(count ? count : 1, width);
}

static int exported_make(struct exported *x, const struct embeng_model *model)
{
	x->tables = new_list(model->table_count, sizeof(*x->tables));
	x->table_list = new_list(model->table_count, sizeof(*x->table_list));
	x->parameters = new_list(model->table_count, sizeof(*x->parameters));
	x->features = new_list(model->feature_count, sizeof(*x->features));
	x->feature_list = new_list(model->feature_count, sizeof(*x->feature_list));
	x->shapes = new_list(model->feature_count, sizeof(*x->shapes));
	x->positions = new_list(model->feature_count, sizeof(*x->positions));
	if (!x->tables || !x->table_list || !x->parameters || !x->features || !x->feature_list ||
	    !x->shapes || !x->positions)
		return fail(-ENOMEM, "no memory to export a model");
	return 0;
}

static bool trains_tables(const struct embeng_model *model)
{
	for (size_t t = 0; t < model->table_count; t++) {
		if (model->tables[t].optimizer.kind != EMBENG_OPTIMIZER_NO)
			return true;
	}
	return false;
}

static int table_parameters(struct exported *x, size_t index, const struct table *t,
			    Tpu__Configuration__Mode mode)
{
	struct tpu_parameters *parameters = &x->parameters[index];
	char where[NAME_MAX_BYTES + 16];
	int code = 0;

	snprintf(where, sizeof(where), "table %s", t->name);
	if (t->optimizer.kind == EMBENG_OPTIMIZER_NO) {
		if (mode != TPU__CONFIGURATION__MODE__INFERENCE)
			return fail(-EINVAL,
				    "%s: it has no optimizer; without one only a "
				    "configuration of EMBENG_TPU_INFERENCE can be. For a "
				    "table that does not train give it one, such as sgd "
				    "with rate 0",
				    where);
		if (!t->quantization.num_buckets)
			return 0;
		tpu__optimization_parameters__init(&parameters->message);
	} else {
		code = tpu_parameters_fill(parameters, &t->optimizer,
					   (struct tpu_tags){t->rate, t->step_rate}, where);
	}
	if (code)
		return code;
	tpu_quantization_fill(parameters, &t->quantization);
	x->tables[index].optimization_parameters = &parameters->message;
	return 0;
}

static void table_hot_ids(struct exported *x, size_t index, enum embeng_tpu_hot_ids status)
{
	struct tpu_parameters *parameters = &x->parameters[index];

	if (status == EMBENG_TPU_HOT_IDS_UNSPECIFIED || !x->tables[index].optimization_parameters)
		return;
	tpu__hot_id_replication__init(&parameters->hot_ids);
	parameters->hot_ids.status = (Tpu__HotIdReplication__HotIdStatus)status;
	parameters->message.hot_id_replication_configuration = &parameters->hot_ids;
}

/* Names of the protobuf are text, a model's are any bytes. */
static int name_text_check(const char *what, const char *name)
{
	size_t good = utf8_good(name);

	return !name[good] ? 0
			   : fail(-EINVAL,
				  "%s %s: byte %zu of the name is not UTF-8, which the "
				  "protobuf wants",
				  what, name, good);
}

static int export_table(struct exported *x, const struct embeng_model *model, size_t index,
			const struct embeng_tpu_settings *settings)
{
	const struct table *t = &model->tables[index];
	table_message *to = &x->tables[index];
	int code;

	if (t->dim > INT32_MAX)
		return fail(-ERANGE, "table %s: dim %lld is more than the protobuf's 32 bits count",
			    t->name, (long long)t->dim);
	tpu__configuration__table_descriptor__init(to);
	to->name = t->name;
	to->vocabulary_size = t->rows < settings->hosts ? settings->hosts : t->rows;
	to->dimension = (int32_t)t->dim;
	x->table_list[index] = to;
	code = name_text_check("table", t->name);
	if (!code)
		code = table_parameters(x, index, t, x->message.mode);
	if (!code && settings->hot_id_count)
		table_hot_ids(x, index, settings->hot_ids[index]);
	return code;
}

static int export_feature(struct exported *x, const struct embeng_model *model, size_t index)
{
	const struct feature *f = &model->features[index];
	struct embeng_shape shape = shape_known(f);
	feature_message *to = &x->features[index];
	char text[SHAPE_TEXT];

	shape_text(text, shape.dims, shape.rank, true);
	x->positions[index] = shape.rank ? shape_product(shape.dims, shape.rank, false) : 0;
	if (x->positions[index] < 1)
		return fail(-EINVAL,
			    "feature %s: its output shape %s is open; fix it with "
			    "embeng_model_build() or embeng_model_build_shapes()",
			    f->name, text);
	for (size_t i = 0; i < shape.rank; i++) {
		if (shape.dims[i] > INT32_MAX)
			return fail(-ERANGE,
				    "feature %s: the output shape %s has a length of more "
				    "than 32 bits",
				    f->name, text);
		x->shapes[index][i] = (int32_t)shape.dims[i];
	}
	tpu__configuration__feature_descriptor__init(to);
	to->name = f->name;
	to->table_id = f->table;
	to->n_input_shape = shape.rank;
	to->input_shape = x->shapes[index];
	x->feature_list[index] = to;
	return name_text_check("feature", f->name);
}

/* How features were told before each had a descriptor. */
static int export_counts(struct exported *x, const struct embeng_model *model)
{
	int64_t batch = 0;

	for (size_t f = 0; f < model->feature_count; f++)
		batch = (int64_t)common_divisor((uint64_t)batch, (uint64_t)x->positions[f]);
	if (batch > INT32_MAX)
		return fail(-ERANGE, "batch_size_per_tensor_core: %lld is more than 32 bits count",
			    (long long)batch);
	x->message.batch_size_per_tensor_core = (int32_t)batch;
	for (size_t f = 0; f < model->feature_count; f++) {
		table_message *t = &x->tables[model->features[f].table];
		int64_t count = x->positions[f] / batch;

		if (count > INT32_MAX - t->num_features)
			return fail(-ERANGE, "table %s: num_features is more than 32 bits count",
				    t->name);
		t->num_features += (int32_t)count;
	}
	return 0;
}

static int export_engine(struct exported *x, const struct embeng_model *model,
			 const struct embeng_tpu_settings *settings)
{
	Tpu__Configuration *to = &x->message;

	tpu__configuration__init(to);
	to->mode = (Tpu__Configuration__Mode)settings->mode;
	if (settings->mode == EMBENG_TPU_MODE_DEFAULT)
		to->mode = model->table_count && !trains_tables(model)
				   ? TPU__CONFIGURATION__MODE__INFERENCE
				   : TPU__CONFIGURATION__MODE__TRAINING;
	to->num_hosts = settings->hosts;
	if (model->engine.replicas > INT32_MAX)
		return fail(-ERANGE, "replicas: %u are more than num_tensor_cores counts",
			    model->engine.replicas);
	to->num_tensor_cores = (int32_t)model->engine.replicas;
	to->sharding_strategy = (Tpu__Configuration__ShardingStrategy)settings->sharding;
	to->pipeline_execution_with_tensor_core = model->engine.pipelining != 0;
	if (settings->profile_directory)
		to->profile_data_directory = (char *)settings->profile_directory;
	if (settings->spmd || settings->spmd_manual || settings->spmd_cores_per_replica) {
		tpu__configuration__spmd_sharding__init(&x->spmd);
		x->spmd.enabled = settings->spmd != 0;
		x->spmd.manual_partitioning = settings->spmd_manual != 0;
		x->spmd.num_cores_per_replica = settings->spmd_cores_per_replica;
		to->spmd_sharding = &x->spmd;
	}
	return 0;
}

static int export_fill(struct exported *x, const struct embeng_model *model,
		       const struct embeng_tpu_settings *settings)
{
	int code = exported_make(x, model);

	if (!code)
		code = export_engine(x, model, settings);
	for (size_t t = 0; !code && t < model->table_count; t++)
		code = export_table(x, model, t, settings);
	for (size_t f = 0; !code && f < model->feature_count; f++)
		code = export_feature(x, model, f);
	if (!code && settings->form != EMBENG_TPU_FEATURES)
		code = export_counts(x, model);
	x->message.n_table_descriptor = model->table_count;
	x->message.table_descriptor = x->table_list;
	if (settings->form != EMBENG_TPU_COUNTS) {
		x->message.n_feature_descriptor = model->feature_count;
		x->message.feature_descriptor = x->feature_list;
	}
	return code;
}

int embeng_tpu_export(const struct embeng_model *model, const struct embeng_tpu_settings *settings,
		      void **bytes, size_t *length)
{
	struct embeng_tpu_settings s;
	struct exported x = {0};
	int code;

	if (!model || !bytes || !length)
		return fail(-EINVAL,
			    "embeng_tpu_export: the model, bytes and length must be given");
	code = tpu_settings_take(&s, settings, model->table_count);
	if (code)
		return code;
	if (!settings || !settings->hosts) {
		s.hosts = (int32_t)model->engine.hosts;
		s.sharding = (enum embeng_tpu_sharding)model->engine.sharding;
	}
	code = export_fill(&x, model, &s);
	if (!code)
		code = tpu_pack(&x.message.base, bytes, length);
	exported_free(&x);
	return code;
}

int embeng_tpu_export_optimizer(const struct embeng_optimizer *optimizer, int32_t tag, void **bytes,
				size_t *length)
{
	struct tpu_parameters parameters;
	int code;

	if (!optimizer || !bytes || !length)
		return fail(-EINVAL,
			    "embeng_tpu_export_optimizer: the optimizer, bytes and length must "
			    "be given");
	if (optimizer->kind == EMBENG_OPTIMIZER_NO)
		return fail(-EINVAL,
			    "embeng_tpu_export_optimizer: EMBENG_OPTIMIZER_NO has no settings "
			    "to export");
	/* Packing depends on the table's dim; 1 allows what any does. */
	code = optimizer_check("optimizer", optimizer, 1);
	if (!code && optimizer->rate_name && tag < 0)
		code = fail(-ERANGE,
			    "embeng_tpu_export_optimizer: tag %d of the rate %s is below 0", tag,
			    optimizer->rate_name);
	if (!code && optimizer->kind == EMBENG_FREQUENCY_AWARE_ADAGRAD && optimizer->step_counter)
		code = fail(-ENOTSUP,
			    "embeng_tpu_export_optimizer: step_counter %s has a tag of its own; "
			    "embeng_tpu_export() gives it one",
			    optimizer->step_counter);
	if (!code)
		code = tpu_parameters_fill(&parameters, optimizer,
					   (struct tpu_tags){tag, TPU_NO_TAG}, "optimizer");
	return code ? code : tpu_pack(&parameters.message.base, bytes, length);
}
