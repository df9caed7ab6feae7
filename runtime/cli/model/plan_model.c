// SPDX-License-Identifier: MIT
/*
 * Makes the model of a plan, from a file, from a checkpoint, or from the options --table and
 * --feature.
 *
 * The model belongs to the caller.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../conform/file.h"
#include "../conform/model.h"
#include "../conform/value.h"
#include "../frame/exit.h"
#include "../frame/numbers.h"
#include "plan.h"

#define TABLE_FORM "NAME:ROWSxDIM[:OPTIMIZER], such as users:10Mx64:adagrad"
#define FEATURE_FORM "NAME:TABLE[:LENGTH], such as clicks:items:50"

/* Parts of "a:b:c", not ended by a zero byte. Return: how many, 0 beyond three. */
struct part {
	const char *text;
	size_t length;
};

static size_t split_parts(const char *text, struct part parts[3])
{
	for (size_t n = 0; n < 3; n++) {
		parts[n] = (struct part){text, strcspn(text, ":")};
		text += parts[n].length;
		if (!*text++)
			return n + 1;
	}
	return 0;
}

/* "10Mx64" */
static int read_size_part(struct part part, int64_t *rows, int64_t *dim)
{
	const char *x = memchr(part.text, 'x', part.length);
	size_t before;

	if (!x)
		return -1;
	before = (size_t)(x - part.text);
	if (count_read(part.text, before, 1, INT64_MAX, rows))
		return -1;
	return count_read(x + 1, part.length - before - 1, 1, UINT32_MAX, dim);
}

/* A name that is too long is cut off, and then is none of an optimizer either. */
static int read_optimizer_part(struct part part, struct embeng_optimizer *optimizer)
{
	char name[64];

	*optimizer = (struct embeng_optimizer){.size = sizeof(*optimizer)};
	snprintf(name, sizeof(name), "%.*s", (int)part.length, part.text);
	if (!strcmp(name, "none"))
		return 0;
	return embeng_optimizer_by_name(name, 0.01f, optimizer); /* no rate changes a size */
}

static int refuse_form(const struct output *out, const char *option, const char *given,
		       const char *form)
{
	return output_fail(out, CLI_USAGE, EINVAL, "See: embeng plan --help",
			   "--%s takes %s, not '%s'", option, form, given);
}

static int refuse_optimizer(const struct output *out, const char *given)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);

	embeng_last_error(&error);
	return output_fail(out, CLI_USAGE, EINVAL, "See: embeng plan --help",
			   "--table %s: %s, and none for a table without", given, error.text);
}

static int add_table_option(const struct output *out, const char *text, struct embeng_model *model)
{
	struct embeng_table_config config = EMBENG_INIT(embeng_table_config);
	struct part parts[3] = {0};
	size_t count = split_parts(text, parts);
	char *name;
	int err;

	if (count < 2 || read_size_part(parts[1], &config.vocabulary_size, &config.dim))
		return refuse_form(out, "table", text, TABLE_FORM);
	if (read_optimizer_part(count == 3 ? parts[2] : (struct part){"sgd", 3}, &config.optimizer))
		return refuse_optimizer(out, text);
	name = strndup(parts[0].text, parts[0].length);
	if (!name)
		return output_fail(out, CLI_DEVICE, ENOMEM, NULL, "out of memory");
	config.name = name;
	err = embeng_model_add_table(model, &config);
	free(name);
	return err < 0 ? output_library_failure(out, err, NULL) : 0;
}

static int add_named(const struct output *out, struct embeng_model *model, const char *name,
		     int table, int64_t length)
{
	struct embeng_feature_config config = EMBENG_INIT(
		embeng_feature_config, .name = name, .table = table, .max_sequence_length = length);
	int err = embeng_model_add_feature(model, &config);

	return err < 0 ? output_library_failure(out, err, NULL) : 0;
}

static int refuse_table(const struct output *out, const char *feature, int err)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);

	embeng_last_error(&error);
	return output_fail(out, exit_of_errno(err), err, "Give it with --table", "feature %s: %s",
			   feature, error.text);
}

static int add_feature_option(const struct output *out, const char *text,
			      struct embeng_model *model)
{
	struct part parts[3] = {0};
	size_t count = split_parts(text, parts);
	int64_t length = 0;
	char *name, *table;
	int index, code;

	if (count < 2 ||
	    (count == 3 && count_read(parts[2].text, parts[2].length, 1, UINT32_MAX, &length)))
		return refuse_form(out, "feature", text, FEATURE_FORM);
	name = strndup(parts[0].text, parts[0].length);
	table = strndup(parts[1].text, parts[1].length);
	index = name && table ? embeng_model_table(model, table) : -ENOMEM;
	if (index == -ENOMEM)
		code = output_fail(out, CLI_DEVICE, ENOMEM, NULL, "out of memory");
	else if (index < 0)
		code = refuse_table(out, name, index);
	else
		code = add_named(out, model, name, index, length);
	free(name);
	free(table);
	return code;
}

static int copy_model(const struct embeng_model *from, struct embeng_model *to)
{
	struct embeng_feature_config feature = EMBENG_INIT(embeng_feature_config);
	struct embeng_table_config table = EMBENG_INIT(embeng_table_config);
	int err = 0;

	for (size_t t = 0; err >= 0 && t < embeng_model_table_count(from); t++) {
		err = embeng_model_get_table(from, t, &table);
		err = err ? err : embeng_model_add_table(to, &table);
	}
	for (size_t f = 0; err >= 0 && f < embeng_model_feature_count(from); f++) {
		err = embeng_model_get_feature(from, f, &feature);
		err = err ? err : embeng_model_add_feature(to, &feature);
	}
	return err < 0 ? err : 0;
}

static int fill_from_checkpoint(const struct plan_call *call, const struct output *out,
				struct embeng_model *model)
{
	struct embeng_checkpoint *checkpoint;
	int err = embeng_checkpoint_open(call->checkpoint, &checkpoint, NULL);

	if (err)
		return output_library_failure(out, err, NULL);
	err = copy_model(embeng_checkpoint_model(checkpoint), model);
	embeng_checkpoint_close(checkpoint);
	return err ? output_library_failure(out, err, NULL) : 0;
}

/* Tables that no feature was given for get one. */
static int add_missing(const struct output *out, struct embeng_model *model)
{
	size_t given = embeng_model_feature_count(model);
	int code = 0;

	for (size_t t = 0; !code && t < embeng_model_table_count(model); t++) {
		struct embeng_feature_config config = EMBENG_INIT(embeng_feature_config);
		bool used = false;

		for (size_t f = 0; f < given; f++) {
			embeng_model_get_feature(model, f, &config);
			used |= config.table == (int)t;
		}
		if (!used)
			code = add_named(out, model, embeng_model_table_name(model, t), (int)t, 0);
	}
	return code;
}

static int fill_from_call(const struct plan_call *call, const struct output *out,
			  struct embeng_model *model)
{
	int code = 0;

	for (size_t i = 0; !code && i < call->table_count; i++)
		code = add_table_option(out, call->tables[i], model);
	for (size_t i = 0; !code && i < call->feature_count; i++)
		code = add_feature_option(out, call->features[i], model);
	return code ? code : add_missing(out, model);
}

static int take_cores(struct run *run, struct plan_call *call)
{
	int64_t cores = integer_member(member(run->vector, "engine"), "cores", 0);

	if (cores < 0 || cores > EMBENG_MAX_CORES)
		return run_fail(run, -ERANGE, "cores is %lld; it must be 0 to %d", (long long)cores,
				EMBENG_MAX_CORES);
	call->options.cores = (uint32_t)cores;
	return 0;
}

static int fill_from_file(struct plan_call *call, const struct output *out,
			  struct embeng_model *model)
{
	char error[VECTOR_ERROR_TEXT];
	const struct json *vector = vector_read_model(call->path, error);
	struct run run = {.vector = vector};
	int err;

	if (!vector)
		return output_fail(out, CLI_USAGE, EBADMSG, "See: embeng plan --help", "%s: %s",
				   call->path, error);
	err = model_build(&run, member(vector, "engine"), true, model);
	if (!err && !call->options.cores)
		err = take_cores(&run, call);
	json_free(vector);
	return err ? output_fail(out, exit_of_errno(err), err, NULL, "%s: %s", call->path, run.text)
		   : 0;
}

static int fill_plan_model(struct plan_call *call, const struct output *out,
			   struct embeng_model *model)
{
	struct embeng_engine_config engine = EMBENG_INIT(embeng_engine_config);
	int code = call->path	      ? fill_from_file(call, out, model)
		   : call->checkpoint ? fill_from_checkpoint(call, out, model)
				      : fill_from_call(call, out, model);

	if (code || (!call->replicas && !call->hosts.hosts))
		return code;
	embeng_model_get_engine(model, &engine);
	if (call->replicas)
		engine.replicas = (uint32_t)call->replicas;
	else if (engine.replicas == 1) /* weak scaling: each host brings a batch */
		engine.replicas = call->hosts.hosts;
	return embeng_model_set_engine(model, &engine) ? output_library_failure(out, -EINVAL, NULL)
						       : 0;
}

int plan_model(struct plan_call *call, const struct output *out, struct embeng_model **model)
{
	const char *given = call->path ? call->path : call->checkpoint;
	int code;

	if (!given && !call->table_count)
		return output_fail(
			out, CLI_USAGE, EINVAL, "See: embeng plan --help",
			"there is no model: give a file, --checkpoint, or --table " TABLE_FORM);
	if (given && (call->table_count || call->feature_count || (call->path && call->checkpoint)))
		return output_fail(out, CLI_USAGE, EINVAL, "See: embeng plan --help",
				   "the model is in %s; other options cannot give one, too", given);
	*model = embeng_model_new();
	if (!*model)
		return output_fail(out, CLI_DEVICE, ENOMEM, NULL, "out of memory");
	code = fill_plan_model(call, out, *model);
	if (code)
		embeng_model_free(*model);
	return code;
}
