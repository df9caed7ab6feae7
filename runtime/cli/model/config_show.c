// SPDX-License-Identifier: MIT
/*
 * The command `embeng config show`: shows the tables, features and engine of a model file, and the
 * fields of a protobuf that this version does not know.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "../checkpoint/commands.h"
#include "../frame/terminal.h"
#include "config.h"
#include "model_json.h"

static const char doc[] =
	"Show the model in a file, and the other settings of the file.\v"
	"FILE is a TPUEmbeddingConfiguration protobuf or, if it begins with \"{\", a JSON model\n"
	"file. A field of the protobuf that embeng does not know is shown with its message,\n"
	"number and place.\n\n"
	"  embeng config show config.pb\n"
	"  embeng config show config.pb --json | jq .protobuf.unknown\n\n"
	"Exit status: 0 ok, 2 usage or the model is refused, 3 embeng does not have an\n"
	"optimizer of the model, 4 permission, 11 the file is no such protobuf.";

static const struct argp_option options[] = {
	{"from", 'f', "json|protobuf", 0, "Format of FILE; by default FILE's first byte decides",
	 0},
	{0},
};

struct arguments {
	const char *path;
	enum config_format from;
};

static error_t parse_show_option(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case 'f':
		a->from = config_format(arg);
		if (a->from != CONFIG_ANY)
			return 0;
		argp_error(state, "--from is json or protobuf, not '%s'", arg);
		return EINVAL;
	case ARGP_KEY_ARG:
		return argument_take(&a->path, arg, "FILE", state);
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "FILE is missing; give a protobuf or a model file");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void print_learning_rate(const struct embeng_optimizer *o)
{
	if (o->kind == EMBENG_OPTIMIZER_NO)
		puts("-");
	else if (o->rate_name)
		puts(o->rate_name);
	else
		printf("%g\n", (double)o->learning_rate);
}

static void print_tables(const struct embeng_model *model)
{
	size_t count = embeng_model_table_count(model);
	int columns = 5;

	for (size_t t = 0; t < count; t++) {
		int width = terminal_width(embeng_model_table_name(model, t));

		columns = width > columns ? width : columns;
	}
	terminal_print("TABLE", columns);
	printf("%14s  %6s  %-8s  %-18s  %s\n", "ROWS", "DIM", "COMBINER", "OPTIMIZER", "RATE");
	for (size_t t = 0; t < count; t++) {
		struct embeng_table_config table = EMBENG_INIT(embeng_table_config);

		embeng_model_get_table(model, t, &table);
		terminal_print(table.name, columns);
		printf("%14" PRId64 "  %6" PRId64 "  %-8s  %-18s  ", table.vocabulary_size,
		       table.dim, combiner_word(table.combiner), checkpoint_optimizer(&table));
		print_learning_rate(&table.optimizer);
	}
}

static void print_shape(const struct embeng_model *model, size_t feature)
{
	struct embeng_shape shape;

	embeng_model_output_shape(model, feature, &shape);
	for (size_t i = 0; i < shape.rank; i++)
		printf("%s%" PRId64, i ? " x " : "", shape.dims[i]);
	puts(shape.rank ? "" : "open");
}

static void print_features(const struct embeng_model *model)
{
	size_t count = embeng_model_feature_count(model);
	int columns = 7, table_columns = 5;

	for (size_t f = 0; f < count; f++) {
		int width = terminal_width(embeng_model_feature_name(model, f));

		columns = width > columns ? width : columns;
	}
	for (size_t t = 0; t < embeng_model_table_count(model); t++) {
		int width = terminal_width(embeng_model_table_name(model, t));

		table_columns = width > table_columns ? width : table_columns;
	}
	terminal_print("FEATURE", columns);
	terminal_print("TABLE", table_columns);
	puts("OUTPUT");
	for (size_t f = 0; f < count; f++) {
		struct embeng_feature_config feature = EMBENG_INIT(embeng_feature_config);

		embeng_model_get_feature(model, f, &feature);
		terminal_print(feature.name, columns);
		terminal_print(embeng_model_table_name(model, (size_t)feature.table),
			       table_columns);
		print_shape(model, f);
	}
}

static void print_unknown(const struct embeng_tpu *tpu)
{
	for (size_t i = 0; i < embeng_tpu_unknown_count(tpu); i++) {
		struct embeng_tpu_unknown field = EMBENG_INIT(embeng_tpu_unknown);

		embeng_tpu_get_unknown(tpu, i, &field);
		printf("%sfield %" PRIu32 " of %s is not known: %" PRIu64 " bytes at %" PRIu64 "\n",
		       i ? "" : "\n", field.number,
		       *field.message ? field.message : "the outermost message", field.length,
		       field.offset);
	}
}

static int print_config(const struct arguments *a, const struct config *config)
{
	struct embeng_engine_config engine = EMBENG_INIT(embeng_engine_config);
	const struct embeng_tpu_settings *s = &config->settings;

	embeng_model_get_engine(config->model, &engine);
	printf("%s: %s, %zu tables, %zu features\n", a->path,
	       config->format == CONFIG_JSON ? "a model file" : "a TPUEmbeddingConfiguration",
	       embeng_model_table_count(config->model), embeng_model_feature_count(config->model));
	printf("replicas %" PRIu32 ", pipelining %s, hosts %" PRId32 ", sharding %s\n",
	       engine.replicas, engine.pipelining ? "on" : "off", s->hosts,
	       config_sharding(config));
	if (config->format == CONFIG_PROTOBUF)
		printf("mode %s, features by %s\n", config_mode(config), config_form(config));
	if (s->profile_directory && *s->profile_directory) {
		printf("profile directory ");
		terminal_print(s->profile_directory, 0);
		putchar('\n');
	}
	putchar('\n');
	print_tables(config->model);
	putchar('\n');
	print_features(config->model);
	print_unknown(config->tpu);
	return CLI_OK;
}

static struct json_object *unknown_json(const struct embeng_tpu *tpu)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < embeng_tpu_unknown_count(tpu); i++) {
		struct embeng_tpu_unknown field = EMBENG_INIT(embeng_tpu_unknown);
		struct json_object *object = json_object_new_object();

		embeng_tpu_get_unknown(tpu, i, &field);
		json_add_text(object, "message", field.message);
		json_add_number(object, "number", field.number);
		json_add_number(object, "wire_type", field.wire_type);
		json_add_number(object, "offset", field.offset);
		json_add_number(object, "length", field.length);
		json_object_array_add(list, object);
	}
	return list;
}

static struct json_object *protobuf_json(const struct config *config)
{
	static const char *const hot_ids[] = {"unspecified", "enabled", "disabled",
					      "migration_only"};
	struct json_object *object = json_object_new_object(), *list = json_object_new_array();
	const struct embeng_tpu_settings *s = &config->settings;

	json_add_text(object, "mode", config_mode(config));
	json_add_text(object, "form", config_form(config));
	json_add_text(object, "profile_directory", s->profile_directory);
	json_object_object_add(object, "spmd", json_object_new_boolean(s->spmd));
	json_object_object_add(object, "spmd_manual", json_object_new_boolean(s->spmd_manual));
	json_add_number(object, "spmd_cores_per_replica", (uint64_t)s->spmd_cores_per_replica);
	for (size_t t = 0; t < s->hot_id_count; t++)
		json_object_array_add(list, json_object_new_string(hot_ids[s->hot_ids[t]]));
	json_object_object_add(object, "hot_ids", list);
	json_object_object_add(object, "unknown", unknown_json(config->tpu));
	return object;
}

static int emit_config(const struct output *out, const struct arguments *a,
		       const struct config *config)
{
	struct json_object *d = json_document(out);

	json_add_text(d, "file", a->path);
	json_add_text(d, "format", config->format == CONFIG_JSON ? "json" : "protobuf");
	model_json_add(d, config->model, config->settings.hosts, config_sharding(config));
	json_object_object_add(d, "protobuf",
			       config->format == CONFIG_PROTOBUF ? protobuf_json(config) : NULL);
	return json_emit(d);
}

int config_show(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options, .parser = parse_show_option, .args_doc = "FILE", .doc = doc};
	struct output out = {.verb = "config", .command = "show"};
	struct arguments a = {0};
	struct config config;
	int code = command_parse(&argp, argc, argv, &out, &a);

	if (!code)
		code = config_read(&out, a.path, a.from, &config);
	if (code)
		return code;
	code = out.json ? emit_config(&out, &a, &config) : print_config(&a, &config);
	config_free(&config);
	return code;
}
