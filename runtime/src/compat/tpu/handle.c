// SPDX-License-Identifier: MIT
/*
 * Imports a TPUEmbeddingConfiguration: keeps the model, the settings beside it, and the fields of
 * the bytes that this library does not know.
 *
 * A struct embeng_tpu owns all of that until embeng_tpu_free(), and is not changed after it was
 * made.
 */
#include <stdlib.h>

#include "base/check.h"
#include "import.h"

struct embeng_tpu {
	Tpu__Configuration *message; /* holds the texts of @settings */
	struct embeng_model *model;
	struct embeng_tpu_settings settings;
	enum embeng_tpu_hot_ids *hot_ids;
	struct tpu_unknowns unknowns;
};

void embeng_tpu_free(struct embeng_tpu *tpu)
{
	if (!tpu)
		return;
	tpu_unpacked_free((ProtobufCMessage *)tpu->message);
	embeng_model_free(tpu->model);
	free(tpu->hot_ids);
	free(tpu->unknowns.fields);
	free(tpu);
}

static int model_make(struct embeng_tpu *tpu, struct embeng_tpu_hooks hooks)
{
	const size_t tables = tpu->message->n_table_descriptor;
	struct importing im = {.from = tpu->message, .hooks = hooks};
	int code;

	tpu->model = embeng_model_new();
	tpu->hot_ids = calloc(tables + 1, sizeof(*tpu->hot_ids));
	im.tags = calloc(tables + 1, sizeof(*im.tags));
	im.model = tpu->model;
	im.hot_ids = tpu->hot_ids;
	im.settings.size = sizeof(im.settings);
	code = im.model && im.hot_ids && im.tags ? tpu_model_read(&im)
						 : fail(-ENOMEM, "no memory to import a model");
	tpu->settings = im.settings;
	tpu->settings.hot_ids = tpu->hot_ids;
	tpu->settings.hot_id_count = tables;
	free(im.tags);
	return code;
}

int embeng_tpu_import(const void *bytes, size_t length, const struct embeng_tpu_hooks *hooks,
		      struct embeng_tpu **out)
{
	struct embeng_tpu_hooks h = {.size = sizeof(h)};
	struct embeng_tpu *tpu;
	int code;

	if ((!bytes && length) || !out)
		return fail(-EINVAL, "embeng_tpu_import: bytes and out must be given");
	code = hooks ? config_take(&h, hooks, sizeof(h), "embeng_tpu_hooks") : 0;
	if (code)
		return code;
	tpu = calloc(1, sizeof(*tpu));
	if (!tpu)
		return fail(-ENOMEM, "no memory to import a model");
	code = tpu_unpack(&tpu__configuration__descriptor, "TPUEmbeddingConfiguration", bytes,
			  length, &tpu->unknowns, (ProtobufCMessage **)&tpu->message);
	if (!code)
		code = model_make(tpu, h);
	if (code)
		embeng_tpu_free(tpu);
	else
		*out = tpu;
	return code;
}

int embeng_tpu_import_optimizer(const void *bytes, size_t length,
				struct embeng_optimizer *optimizer, int32_t *tag)
{
	Tpu__OptimizationParameters *message = NULL;
	struct embeng_quantization levels = {0};
	struct embeng_optimizer read;
	struct tpu_tags tags;
	int code;

	if ((!bytes && length) || !optimizer || !tag)
		return fail(-EINVAL,
			    "embeng_tpu_import_optimizer: bytes, optimizer and tag must be given");
	code = tpu_unpack(&tpu__optimization_parameters__descriptor, "OptimizationParameters",
			  bytes, length, NULL, (ProtobufCMessage **)&message);
	if (!code)
		code = tpu_parameters_read(NULL, message, false, &read, &tags);
	if (!code)
		code = tpu_quantization_read(NULL, message, &levels);
	if (!code && levels.num_buckets)
		code = fail(-ENOTSUP, "simulated_quantization.enabled: it is a table's, not its "
				      "optimizer's; embeng_tpu_import() takes it");
	if (!code && tags.step != TPU_NO_TAG)
		code = fail(-ENOTSUP,
			    "frequency_aware_adagrad.step_counter: it has a tag of its own; "
			    "embeng_tpu_import() takes it");
	tpu_unpacked_free((ProtobufCMessage *)message);
	/* Its rate is known step by step, when it is dynamic; its table's dim is not. */
	if (!code && tags.rate != TPU_NO_TAG)
		read.rate_name = "dynamic";
	if (!code)
		code = optimizer_check("OptimizationParameters", &read, 1);
	if (code)
		return code;
	read.rate_name = NULL;
	*optimizer = read;
	*tag = tags.rate;
	return 0;
}

const struct embeng_model *embeng_tpu_model(const struct embeng_tpu *tpu)
{
	return tpu ? tpu->model : NULL;
}

int embeng_tpu_get_settings(const struct embeng_tpu *tpu, struct embeng_tpu_settings *settings)
{
	if (!tpu || !settings || settings->size < sizeof(*settings))
		return fail(-EINVAL,
			    "embeng_tpu_get_settings: tpu, and settings with its size, must be "
			    "given");
	*settings = tpu->settings;
	return 0;
}

struct embeng_tpu_unknown tpu_tell_unknown(const struct tpu_unknown *from)
{
	return (struct embeng_tpu_unknown){
		.size = sizeof(struct embeng_tpu_unknown),
		.message = from->message,
		.number = from->number,
		.wire_type = from->wire_type,
		.offset = from->offset,
		.length = from->length,
	};
}

size_t embeng_tpu_unknown_count(const struct embeng_tpu *tpu)
{
	return tpu ? tpu->unknowns.count : 0;
}

int embeng_tpu_get_unknown(const struct embeng_tpu *tpu, size_t index,
			   struct embeng_tpu_unknown *unknown)
{
	const struct tpu_unknown *from;

	if (!tpu || !unknown || unknown->size < sizeof(*unknown))
		return fail(
			-EINVAL,
			"embeng_tpu_get_unknown: tpu, and unknown with its size, must be given");
	if (index >= tpu->unknowns.count)
		return fail(-ENOENT, "there is no unknown field %zu; there are %zu", index,
			    tpu->unknowns.count);
	from = &tpu->unknowns.fields[index];
	*unknown = tpu_tell_unknown(from);
	return 0;
}
