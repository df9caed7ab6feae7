/* SPDX-License-Identifier: MIT */
/*
 * The table of all optimizers, with their settings and slots. The code that makes an optimizer,
 * checks it, writes it for the engine or names its slots reads this table. The engine has the
 * formulas.
 */
#ifndef EMBENG_OPTIMIZER_H
#define EMBENG_OPTIMIZER_H

#include <stdbool.h>

#include "embeng.h"

enum key_type { KEY_NUMBER, KEY_SWITCH, KEY_TRISTATE };

enum key_range {
	RANGE_FINITE,
	RANGE_ABOVE_0,
	RANGE_FROM_0,
	RANGE_TO_0,
	RANGE_0_TO_1,
	RANGE_0_BELOW_1,
};

/**
 * struct optimizer_key - a setting of one kind of optimizer
 * @name: name of its member in &struct embeng_optimizer
 * @at: offset of that member
 * @type: float, unsigned char or enum embeng_tristate
 * @range: values that are allowed for a number
 * @hyper: the engine gets it as a hyperparameter, in the order of these keys
 * @start: default of a number; switches are off by default, and tristates are "default"
 */
struct optimizer_key {
	const char *name;
	size_t at;
	enum key_type type;
	enum key_range range;
	bool hyper;
	float start;
};

/**
 * struct optimizer_slot - a slot of one kind of optimizer
 * @name: name of the slot in checkpoints
 * @start_at: offset in &struct embeng_optimizer of the float that it starts with, 0: none
 * @start: value that it starts with if @start_at is 0
 */
struct optimizer_slot {
	const char *name;
	size_t start_at;
	float start;
};

/**
 * struct optimizer_info - one kind of optimizer
 * @name: name of the kind; NULL for EMBENG_OPTIMIZER_NO
 * @engine_kind: enum embeng_optimizer_kind
 * @idle: a gradient of 0 changes nothing
 * @slot_count: number of @slots
 * @slots: slots in the order of checkpoints
 * @key_count: number of @keys
 * @keys: settings, without those that all kinds have
 */
struct optimizer_info {
	const char *name;
	uint8_t engine_kind;
	bool idle;
	size_t slot_count;
	const struct optimizer_slot *slots;
	size_t key_count;
	const struct optimizer_key *keys;
};

/* The entry of a kind; NULL when there is no such kind. */
const struct optimizer_info *optimizer_info(enum embeng_optimizer_name kind);

/* Lists the names of a kind's slots in @text, or writes @none. */
#define SLOT_NAMES_TEXT 128
const char *slot_names(enum embeng_optimizer_name kind, const char *none,
		       char text[SLOT_NAMES_TEXT]);

/* Sets everything that was left to the default. Settings without a meaning get a fixed value. */
void optimizer_resolve(struct embeng_optimizer *optimizer);

/* The value of a key as a number; switches are 0 or 1. The optimizer must be resolved. */
float optimizer_value(const struct embeng_optimizer *optimizer, const struct optimizer_key *key);

/* The value that a slot starts with, by the optimizer's kind. */
float optimizer_slot_start(const struct embeng_optimizer *optimizer, size_t slot);

/*
 * dynamic.c: the numbers of an optimizer that a step can give. The first are those that every kind
 * has, then the hyperparameters in the engine's order.
 */
enum {
	NUMBER_DECAY,
	NUMBER_CLIP_MIN,
	NUMBER_CLIP_MAX,
	NUMBER_CLIP_WEIGHT_MIN,
	NUMBER_CLIP_WEIGHT_MAX,
	NUMBER_MAX_NORM,
	NUMBER_FIRST_KEY,
	NUMBERS = NUMBER_FIRST_KEY + 16, /* EMBENG_HYPERPARAMETERS_MAX of the engine */
};

/* The name of a number of a kind, by which the program knows it; NULL after the last. */
const char *number_name(enum embeng_optimizer_name kind, int number);

/* The key of a number that not all kinds have, or NULL. */
const struct optimizer_key *number_key(enum embeng_optimizer_name kind, int number);

/* The number that a kind has by this name, or -1. */
int number_find(enum embeng_optimizer_name kind, const char *name);

/* Whether the hyperparameter @name is dynamic. */
bool number_is_dynamic(const struct embeng_optimizer *optimizer, const char *name);

/* Checks the list of dynamic hyperparameters. */
int dynamic_check(const char *where, const struct embeng_optimizer *optimizer);

/* Checks the value that a step gives to a number by the range that the number has. */
int number_value_check(const char *where, const struct embeng_optimizer *optimizer, int number,
		       float value);

/* Sets a number to a checked value. */
void number_set(struct embeng_optimizer *optimizer, int number, float value);

/* Checks the rules between the values of an optimizer that has no dynamic number any more. */
int optimizer_values_check(const char *where, const struct embeng_optimizer *optimizer);

/* Checks the value of a dynamic rate in a step by the rules for a constant rate. */
int optimizer_rate_check(const char *where, const struct embeng_optimizer *optimizer, float rate);

/* Checks the value of a rate that carries the step. */
int optimizer_step_check(const char *where, float step);

/* Checks an optimizer. Packing depends on @dim of the table. @where starts the sentence. */
int optimizer_check(const char *where, const struct embeng_optimizer *optimizer, int64_t dim);

#endif
