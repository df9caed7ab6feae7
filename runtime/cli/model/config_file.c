// SPDX-License-Identifier: MIT
/*
 * Reads a model from a file, whether it is JSON or a protobuf. The commands of `embeng config`
 * share it.
 *
 * The model belongs to the struct config until config_free().
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../conform/file.h"
#include "../conform/model.h"
#include "../conform/value.h"
#include "../firmware/commands.h"
#include "config.h"

#define FILE_MOST (64u << 20)

const char *const config_modes[] = {"default", "inference", "training", "backward", NULL};
const char *const config_forms[] = {"features", "counts", "both", NULL};

int config_choose(const char *word, const char *const *words)
{
	for (int i = 0; words[i]; i++) {
		if (!strcmp(word, words[i]))
			return i;
	}
	return -1;
}

enum config_format config_format(const char *name)
{
	static const char *const names[] = {"json", "protobuf", NULL};

	return (enum config_format)(config_choose(name, names) + 1);
}

const char *config_mode(const struct config *config)
{
	return config_modes[config->settings.mode];
}

const char *config_form(const struct config *config)
{
	return config_forms[config->settings.form];
}

const char *config_sharding(const struct config *config)
{
	return config->settings.sharding == EMBENG_TPU_MOD ? "mod" : "div";
}

static int read_host_settings(struct run *run, const struct json *engine, struct config *config)
{
	int64_t hosts = integer_member(engine, "hosts", 1);

	if (hosts > INT32_MAX)
		return run_fail(run, -ERANGE, "%lld hosts are more than %d", (long long)hosts,
				INT32_MAX);
	config->settings.hosts = (int32_t)hosts;
	if (!strcmp(text_member(engine, "sharding", "div"), "mod"))
		config->settings.sharding = EMBENG_TPU_MOD;
	return 0;
}

static int read_json(const struct output *out, const char *path, const char *text, size_t length,
		     struct config *config)
{
	char error[VECTOR_ERROR_TEXT];
	const struct json *vector = vector_parse_model(text, length, error), *engine;
	struct run run = {.vector = vector};
	int err;

	if (!vector)
		return output_fail(out, CLI_USAGE, EBADMSG, "See: embeng config --help", "%s: %s",
				   path, error);
	engine = member(vector, "engine");
	config->own = embeng_model_new();
	err = config->own ? model_build(&run, engine, true, config->own)
			  : run_fail(&run, -ENOMEM, "out of memory");
	if (!err)
		err = read_host_settings(&run, engine, config);
	json_free(vector);
	config->model = config->own;
	return err ? output_fail(out, exit_of_errno(err), err, NULL, "%s: %s", path, run.text) : 0;
}

static int read_protobuf(const struct output *out, const char *path, const void *bytes,
			 size_t length, struct config *config)
{
	int err = embeng_tpu_import(bytes, length, NULL, &config->tpu);
	struct embeng_error error = EMBENG_INIT(embeng_error);

	if (err) {
		embeng_last_error(&error);
		return output_fail(out, exit_of_errno(err), err, NULL, "%s: %s", path, error.text);
	}
	config->model = embeng_tpu_model(config->tpu);
	return embeng_tpu_get_settings(config->tpu, &config->settings)
		       ? output_library_failure(out, -EINVAL, NULL)
		       : 0;
}

int config_read(const struct output *out, const char *path, enum config_format format,
		struct config *config)
{
	unsigned char *bytes;
	size_t length;
	int code = fw_read(out, path, FILE_MOST, &bytes, &length);

	*config = (struct config){.settings = {.size = sizeof(config->settings)}};
	if (code)
		return code;
	config->format = format != CONFIG_ANY ? format
			 : *bytes == '{'      ? CONFIG_JSON
					      : CONFIG_PROTOBUF;
	code = config->format == CONFIG_JSON ? read_json(out, path, (char *)bytes, length, config)
					     : read_protobuf(out, path, bytes, length, config);
	free(bytes);
	if (code)
		config_free(config);
	return code;
}

void config_free(struct config *config)
{
	embeng_model_free(config->own);
	embeng_tpu_free(config->tpu);
}
