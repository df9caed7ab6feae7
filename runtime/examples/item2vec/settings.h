/* SPDX-License-Identifier: MIT */
/* How to learn: options that have one text form, on the command line and in a checkpoint. */
#ifndef ITEM2VEC_SETTINGS_H
#define ITEM2VEC_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "embeng.h"

/**
 * struct settings - how to learn
 * @device: as given; changes no result
 * @epochs: 0: chosen by the size of the data
 * @by_time: the newest item of a basket is held out, else any one
 * @given: bit k: setting_at(k) was given by the user
 */
struct settings {
	const char *device;
	int64_t dim, epochs, negatives, batch;
	double learning_rate;
	enum embeng_optimizer_name optimizer;
	int64_t seed;
	bool by_time;
	int64_t min_count, min_basket;
	uint32_t given;
};

extern const struct settings settings_default;

#define SETTING_TEXT 64
#define SETTING_ERROR 160

/* The learning rate that was not given: what suits the optimizer. */
void settings_complete(struct settings *s);

/* A whole number given to --@name. 0, or -EINVAL with a sentence in @error. */
int whole_read(const char *name, const char *text, int64_t least, int64_t most, int64_t *value,
	       char error[SETTING_ERROR]);

/* Name of the k-th setting, in the order of enum learn_key; NULL beyond the last. */
const char *setting_at(size_t k);

/**
 * setting_write() - the k-th setting in its text form
 * @text: read back by setting_read() to the same bits; empty: left to the data
 */
void setting_write(const struct settings *s, size_t k, char text[SETTING_TEXT]);

/* Reads the text form of a setting by name. 0, or -EINVAL with a sentence in @error. */
int setting_read(struct settings *s, const char *name, const char *text,
		 char error[SETTING_ERROR]);

/**
 * settings_continue() - the settings to go on with
 * @s: the user's; what was not given becomes as @saved
 *
 * Return: 0, or -EINVAL with a sentence in @error: a setting was given that
 * would make another training. Epochs may differ.
 */
int settings_continue(struct settings *s, const struct settings *saved,
		      char error[SETTING_ERROR]);

/* Name of a setting that a training cannot go on without, and that was not read; or NULL. */
const char *settings_missing(const struct settings *s);

#endif
