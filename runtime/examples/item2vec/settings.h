/* SPDX-License-Identifier: MIT */
/* Settings of a training. The command line and checkpoints use the same text form. */
#ifndef ITEM2VEC_SETTINGS_H
#define ITEM2VEC_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "embeng.h"

/**
 * struct settings - settings of a training
 * @device: name of the device as given; it changes no result
 * @epochs: number of epochs; 0: chosen by the size of the data
 * @by_time: the newest item of each basket is held out, else any item
 * @given: bit k is set if the user gave setting_at(k)
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

/* Sets a learning rate that suits the optimizer, if none was given. */
void settings_complete(struct settings *s);

/* Reads the whole number of option --@name. Return: 0, or -EINVAL with a sentence in @error. */
int whole_read(const char *name, const char *text, int64_t least, int64_t most, int64_t *value,
	       char error[SETTING_ERROR]);

/* Name of the k-th setting, in the order of enum learn_key; NULL beyond the last. */
const char *setting_at(size_t k);

/**
 * setting_write() - write the k-th setting as text
 * @text: text that setting_read() reads back to the same bits; empty if the data decides
 */
void setting_write(const struct settings *s, size_t k, char text[SETTING_TEXT]);

/* Reads a setting from its text, by name. Return: 0, or -EINVAL with a sentence in @error. */
int setting_read(struct settings *s, const char *name, const char *text, char error[SETTING_ERROR]);

/**
 * settings_continue() - merge the settings for resuming a training
 * @s: settings of the user; those that were not given are copied from @saved
 *
 * Return: 0, or -EINVAL with a sentence in @error when a setting was given that
 * would make it another training. The number of epochs may differ.
 */
int settings_continue(struct settings *s, const struct settings *saved, char error[SETTING_ERROR]);

/* Whether the user gave the setting of this name. */
bool setting_given(const struct settings *s, const char *name);

/* Name of a setting that is needed to resume a training and was not read, or NULL. */
const char *settings_missing(const struct settings *s);

#endif
