// SPDX-License-Identifier: MIT
/*
 * The command `embeng config convert`: converts a protobuf to a JSON model file, or back, and
 * reports what the other format cannot hold.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../firmware/commands.h"
#include "../frame/document.h"
#include "../frame/numbers.h"
#include "config.h"
#include "model_json.h"

static const char doc[] =
	"Convert a TPUEmbeddingConfiguration protobuf to a JSON model file, or back.\v"
	"The command tells what the new format cannot hold: on standard error, or as \"lost\"\n"
	"with --json. A protobuf has no combiners, out-of-range policies, sequence lengths and\n"
	"names of rates. A model file has no mode, profile directory, SPMD sharding and flags\n"
	"of hot ids. The same model always gives the same bytes of a protobuf.\n\n"
	"  embeng config convert config.pb -o model.json\n"
	"  embeng config convert model.json -o config.pb --batch=1024\n"
	"  embeng config convert old.pb --to=protobuf --features=features -o new.pb\n\n"
	"Exit status: 0 ok, 2 usage or the model is refused, 3 one of the formats does not\n"
	"have an optimizer of the model, 4 permission, 11 the file is no such protobuf.";

enum { OPT_TO = 256, OPT_FEATURES, OPT_MODE, OPT_PROFILE };

static const struct argp_option options[] = {
	{"output", 'o', "FILE", 0, "Write to FILE, completely or not at all, instead of stdout", 0},
	{"from", 'f', "json|protobuf", 0, "Format of FILE; by default FILE's first byte decides",
	 0},
	{"to", OPT_TO, "json|protobuf", 0, "Format to write (the other one)", 0},
	{"features", OPT_FEATURES, "features|counts|both", 0,
	 "How a protobuf describes features (as in FILE, else features)", 0},
	{"mode", OPT_MODE, "training|inference|backward", 0, "Mode of a protobuf (FILE's)", 0},
	{"batch", 'b', "N", 0, "Samples in a batch, for features whose output shape is open", 0},
	{"profile-directory", OPT_PROFILE, "DIR", 0, "Profile directory of a protobuf (FILE's)", 0},
	{0},
};

struct arguments {
	const char *path, *output, *profile;
	enum config_format from, to;
	int form, mode; /* -1: as it is */
	int64_t batch;
};

static error_t refuse_arg(struct argp_state *state, const char *option, const char *allowed,
			  const char *given)
{
	argp_error(state, "--%s is %s, not '%s'", option, allowed, given);
	return EINVAL;
}

static error_t parse_config_format(struct argp_state *state, const char *option, char *arg,
				   enum config_format *format)
{
	*format = config_format(arg);
	return *format ? 0 : refuse_arg(state, option, "json or protobuf", arg);
}

static error_t parse_convert_option(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case 'o':
		a->output = arg;
		return 0;
	case 'f':
		return parse_config_format(state, "from", arg, &a->from);
	case OPT_TO:
		return parse_config_format(state, "to", arg, &a->to);
	case OPT_FEATURES:
		a->form = config_choose(arg, config_forms);
		return a->form >= 0
			       ? 0
			       : refuse_arg(state, "features", "features, counts or both", arg);
	case OPT_MODE:
		a->mode = config_choose(arg, config_modes);
		return a->mode > 0
			       ? 0
			       : refuse_arg(state, "mode", "training, inference or backward", arg);
	case 'b':
		return !count_read(arg, strlen(arg), 1, INT32_MAX, &a->batch)
			       ? 0
			       : refuse_arg(state, "batch", "a number from 1", arg);
	case OPT_PROFILE:
		a->profile = arg;
		return 0;
	case ARGP_KEY_ARG:
		return argument_take(&a->path, arg, "FILE", state);
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "FILE is missing; give a protobuf or a model file");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void note_loss(struct json_object *lost, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void note_loss(struct json_object *lost, const char *format, ...)
{
	char *text = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&text, format, args) >= 0)
		json_object_array_add(lost, json_object_new_string(text));
	va_end(args);
	free(text);
}

static void note_table_losses(const struct embeng_model *model, struct json_object *lost)
{
	for (size_t t = 0; t < embeng_model_table_count(model); t++) {
		struct embeng_table_config table = EMBENG_INIT(embeng_table_config);

		embeng_model_get_table(model, t, &table);
		if (table.combiner != EMBENG_MEAN)
			note_loss(lost, "table %s: the combiner %s", table.name,
				  combiner_word(table.combiner));
		if (table.out_of_range != EMBENG_POLICY_ERROR)
			note_loss(lost, "table %s: the policy out_of_range", table.name);
		if (table.part.rows)
			note_loss(lost, "table %s: the part of a larger table", table.name);
		if (table.optimizer.rate_name)
			note_loss(lost, "table %s: the rate's name %s", table.name,
				  table.optimizer.rate_name);
		if (table.optimizer.step_counter)
			note_loss(lost, "table %s: the step_counter's name %s", table.name,
				  table.optimizer.step_counter);
	}
}

static void note_feature_losses(const struct embeng_model *model, struct json_object *lost)
{
	for (size_t f = 0; f < embeng_model_feature_count(model); f++) {
		struct embeng_feature_config feature = EMBENG_INIT(embeng_feature_config);

		embeng_model_get_feature(model, f, &feature);
		if (feature.max_sequence_length)
			note_loss(lost, "feature %s: max_sequence_length", feature.name);
		if (feature.unchecked_serving)
			note_loss(lost, "feature %s: validate_weights_and_indices", feature.name);
	}
}

static void note_setting_losses(const struct config *config, struct json_object *lost)
{
	const struct embeng_tpu_settings *s = &config->settings;

	if (s->mode != EMBENG_TPU_TRAINING && s->mode != EMBENG_TPU_MODE_DEFAULT)
		note_loss(lost, "the mode %s", config_mode(config));
	if (s->profile_directory && *s->profile_directory)
		note_loss(lost, "the profile directory");
	if (s->spmd || s->spmd_manual || s->spmd_cores_per_replica)
		note_loss(lost, "the SPMD sharding");
	for (size_t t = 0; t < s->hot_id_count; t++) {
		if (s->hot_ids[t])
			note_loss(lost, "table %s: the flag of hot ids",
				  embeng_model_table_name(config->model, t));
	}
}

static struct json_object *list_losses(const struct config *config, enum config_format to)
{
	struct json_object *lost = json_object_new_array();

	if (to == CONFIG_JSON && config->format == CONFIG_PROTOBUF)
		note_setting_losses(config, lost);
	if (to == CONFIG_PROTOBUF && config->format == CONFIG_JSON) {
		note_table_losses(config->model, lost);
		note_feature_losses(config->model, lost);
	}
	for (size_t i = 0; i < embeng_tpu_unknown_count(config->tpu); i++) {
		struct embeng_tpu_unknown field = EMBENG_INIT(embeng_tpu_unknown);

		embeng_tpu_get_unknown(config->tpu, i, &field);
		note_loss(lost, "field %u of %s, which is unknown", field.number,
			  *field.message ? field.message : "the outermost message");
	}
	return lost;
}

static int make_json(const struct output *out, const struct config *config, void **bytes,
		     size_t *length)
{
	struct json_object *document = json_object_new_object();
	char *text;
	int err;

	model_json_add(document, config->model, config->settings.hosts, config_sharding(config));
	err = document_text(document, &text, length);
	json_object_put(document);
	if (err)
		return output_fail(out, exit_of_errno(err), err, NULL, "%s",
				   err == -ENOMEM
					   ? "out of memory"
					   : "a name is not UTF-8, which JSON is written in");
	*bytes = text;
	return CLI_OK;
}

static int make_protobuf(const struct output *out, const struct arguments *a,
			 const struct config *config, void **bytes, size_t *length)
{
	struct embeng_tpu_settings settings = config->settings;
	int err = 0;

	if (a->form >= 0)
		settings.form = (enum embeng_tpu_form)a->form;
	if (a->mode >= 0)
		settings.mode = (enum embeng_tpu_mode)a->mode;
	if (a->profile)
		settings.profile_directory = a->profile;
	if (a->batch)
		err = embeng_model_build(config->own, a->batch);
	if (!err)
		err = embeng_tpu_export(config->model, &settings, bytes, length);
	return err ? output_library_failure(out, err,
					    err == -EINVAL && !a->batch
						    ? "--batch=N fixes open output shapes"
						    : NULL)
		   : CLI_OK;
}

static void report_conversion(const struct output *out, const struct arguments *a, size_t length,
			      struct json_object *lost)
{
	struct json_object *document;

	if (out->json) {
		document = json_document(out);
		json_add_text(document, "file", a->path);
		json_add_text(document, "output", a->output);
		json_add_text(document, "to", a->to == CONFIG_JSON ? "json" : "protobuf");
		json_add_number(document, "bytes", length);
		json_object_object_add(document, "lost", json_object_get(lost));
		json_emit(document);
		return;
	}
	for (size_t i = 0; i < json_object_array_length(lost); i++)
		fprintf(stderr, "embeng config convert: this is not carried over: %s\n",
			json_object_get_string(json_object_array_get_idx(lost, i)));
}

/* Options that would have no effect are a mistake. */
static int check_convert_options(const struct output *out, const struct arguments *a,
				 const struct config *config)
{
	const char *hint = "See: embeng config convert --help";

	if (a->to == CONFIG_JSON && (a->form >= 0 || a->mode >= 0 || a->profile))
		return output_fail(out, CLI_USAGE, EINVAL, hint,
				   "--features, --mode and --profile-directory need a protobuf as "
				   "output; this output is a model file");
	if (a->batch && !config->own)
		return output_fail(
			out, CLI_USAGE, EINVAL, hint,
			"--batch is for model files; the shapes of a protobuf are fixed");
	if (a->to == CONFIG_PROTOBUF && !a->output && isatty(STDOUT_FILENO))
		return output_fail(out, CLI_USAGE, EINVAL, "Name a file: -o FILE",
				   "a protobuf is binary and not for a terminal");
	return CLI_OK;
}

static int run_convert(const struct output *out, struct arguments *a, const struct config *config)
{
	struct json_object *lost;
	void *bytes = NULL;
	size_t length = 0;
	int code;

	if (!a->to)
		a->to = config->format == CONFIG_JSON ? CONFIG_PROTOBUF : CONFIG_JSON;
	code = check_convert_options(out, a, config);
	if (code)
		return code;
	code = a->to == CONFIG_JSON ? make_json(out, config, &bytes, &length)
				    : make_protobuf(out, a, config, &bytes, &length);
	if (!code)
		code = fw_write(out, a->output ? a->output : "-", bytes, length);
	free(bytes);
	if (code)
		return code;
	lost = list_losses(config, a->to);
	report_conversion(out, a, length, lost);
	json_object_put(lost);
	return CLI_OK;
}

int config_convert(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options, .parser = parse_convert_option, .args_doc = "FILE", .doc = doc};
	struct output out = {.verb = "config", .command = "convert"};
	struct arguments a = {.form = -1, .mode = -1};
	struct config config;
	int code = command_parse(&argp, argc, argv, &out, &a);

	if (!code && out.json && !a.output)
		code = output_fail(&out, CLI_USAGE, EINVAL, "Name a file: -o FILE",
				   "with --json the result needs a file of its own");
	if (!code)
		code = config_read(&out, a.path, a.from, &config);
	if (code)
		return code;
	code = run_convert(&out, &a, &config);
	config_free(&config);
	return code;
}
