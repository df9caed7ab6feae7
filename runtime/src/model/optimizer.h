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

/* Checks the value of a dynamic rate in a step by the rules for a constant rate. */
int optimizer_rate_check(const char *where, const struct embeng_optimizer *optimizer, float rate);

/* Checks the value of a rate that carries the step. */
int optimizer_step_check(const char *where, float step);

/* Checks an optimizer. Packing depends on @dim of the table. @where starts the sentence. */
int optimizer_check(const char *where, const struct embeng_optimizer *optimizer, int64_t dim);

#endif
