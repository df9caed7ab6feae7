/* SPDX-License-Identifier: MIT */
/* `embeng config`: models as the protobuf of TPU embeddings, and as model files. */
#ifndef CLI_CONFIG_H
#define CLI_CONFIG_H

#include "../frame/command.h"
#include "embeng.h"
#include "embeng/tpu.h"

int config_show(int argc, char **argv);
int config_convert(int argc, char **argv);

enum config_format { CONFIG_ANY, CONFIG_JSON, CONFIG_PROTOBUF };

/* The format that a file's name says; CONFIG_ANY if it says none. */
enum config_format config_format(const char *name);

/**
 * struct config - a model that was read from a file
 * @format: format of the file
 * @model: the model, which belongs to @own or @tpu
 * @settings: settings that are not in the model; those of a model file are hosts and sharding
 * @own: model of a model file, or NULL
 * @tpu: handle of a protobuf, or NULL
 */
struct config {
	enum config_format format;
	const struct embeng_model *model;
	struct embeng_tpu_settings settings;
	struct embeng_model *own;
	struct embeng_tpu *tpu;
};

/*
 * Reads a file. With CONFIG_ANY it is JSON if its first byte is "{", which no protobuf begins with.
 * Return: 0, or an exit code after the failure was reported.
 */
int config_read(const struct output *out, const char *path, enum config_format format,
		struct config *config);
void config_free(struct config *config);

/* The word for the mode in the settings, such as "training". */
const char *config_mode(const struct config *config);
const char *config_form(const struct config *config);
const char *config_sharding(const struct config *config);

/* Index of a word in @words, a list that NULL ends; -1 if it is not in it. */
int config_choose(const char *word, const char *const *words);
extern const char *const config_modes[], *const config_forms[];

#endif
