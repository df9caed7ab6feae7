/* SPDX-License-Identifier: MIT */
/*
 * What each optimizer is made of, said once: making one, checking it, writing it for the
 * engine and naming its slots all read it here. The engine has the formulas.
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
 * @name: of its member in &struct embeng_optimizer
 * @at: where that is
 * @type: float, unsigned char or enum embeng_tristate
 * @range: what a number may be
 * @hyper: goes to the engine as a hyperparameter, in the order of these keys
 * @start: default of a number; switches are off, the third kind is left to the default
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
 * @name: as checkpoints have it
 * @start_at: the float of &struct embeng_optimizer that it starts with, 0: none
 * @start: what it starts with then
 */
struct optimizer_slot {
	const char *name;
	size_t start_at;
	float start;
};

/**
 * struct optimizer_info - one kind of optimizer
 * @name: NULL of EMBENG_OPTIMIZER_NO
 * @engine_kind: enum embeng_optimizer_kind
 * @idle: a gradient of 0 changes nothing
 * @slot_count: of @slots
 * @slots: in checkpoint order
 * @key_count: of @keys
 * @keys: without those that all kinds have
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

/* NULL when there is no such kind. */
const struct optimizer_info *optimizer_info(enum embeng_optimizer_name kind);

/* The names of a kind's slots as people list them, or @none; written to @text. */
#define SLOT_NAMES_TEXT 128
const char *slot_names(enum embeng_optimizer_name kind, const char *none,
		       char text[SLOT_NAMES_TEXT]);

/* The optimizer with what was left to the default set; what has no meaning gets one value. */
void optimizer_resolve(struct embeng_optimizer *optimizer);

/* A key's value as a number, switches as 0 or 1. The optimizer is resolved. */
float optimizer_value(const struct embeng_optimizer *optimizer, const struct optimizer_key *key);

/* What its kind starts a slot with. */
float optimizer_slot_start(const struct embeng_optimizer *optimizer, size_t slot);

/* Whether a dynamic rate may have this value in a step: the rules of a constant one. */
int optimizer_rate_check(const char *where, const struct embeng_optimizer *optimizer, float rate);

/* So of a rate that is a step. */
int optimizer_step_check(const char *where, float step);

/* @dim: of the table, which packing depends on. @where starts the sentence. */
int optimizer_check(const char *where, const struct embeng_optimizer *optimizer, int64_t dim);

#endif
