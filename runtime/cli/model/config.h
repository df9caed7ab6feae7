/* SPDX-License-Identifier: MIT */
/* `embeng config`: models as the protobuf of TPU embeddings, and as model files. */
#ifndef CLI_CONFIG_H
#define CLI_CONFIG_H

#include "../frame/command.h"
#include "embeng.h"

int config_show(int argc, char **argv);
int config_convert(int argc, char **argv);

enum config_format { CONFIG_ANY, CONFIG_JSON, CONFIG_PROTOBUF };

/* The format of a name, CONFIG_ANY of none. */
enum config_format config_format(const char *name);

/**
 * struct config - a model that was read
 * @format: of the file
 * @model: points into one of the next two
 * @settings: beside the model; of a model file its hosts and sharding
 * @own: of a model file
 * @tpu: of a protobuf
 */
struct config {
	enum config_format format;
	const struct embeng_model *model;
	struct embeng_tpu_settings settings;
	struct embeng_model *own;
	struct embeng_tpu *tpu;
};

/*
 * Reads a file; CONFIG_ANY is JSON when its first byte is "{", which no protobuf begins with.
 * Return: 0, or an exit code: the failure is reported.
 */
int config_read(const struct output *out, const char *path, enum config_format format,
		struct config *config);
void config_free(struct config *config);

/* "training", ... of the settings */
const char *config_mode(const struct config *config);
const char *config_form(const struct config *config);
const char *config_sharding(const struct config *config);

/* Index of a word among @words, which NULL ends; -1: it is none. */
int config_choose(const char *word, const char *const *words);
extern const char *const config_modes[], *const config_forms[];

#endif
