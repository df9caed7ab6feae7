// SPDX-License-Identifier: MIT
/* Kinds of optimizers: their defaults, keys and slots. */
#include <stddef.h>
#include <string.h>

#include "embeng_engine.h"
#include "error.h"
#include "optimizer.h"

#define AT(member) offsetof(struct embeng_optimizer, member)
#define HYPER(member, type, range) {#member, AT(member), type, range, true}
#define OTHER(member, type, range) {#member, AT(member), type, range, false}
#define COUNTED(array) sizeof(array) / sizeof((array)[0]), array

static const struct optimizer_slot adagrad_slots[] = {
	{"accumulators", AT(initial_accumulator_value)},
};
static const struct optimizer_key adagrad_keys[] = {
	OTHER(initial_accumulator_value, KEY_NUMBER, RANGE_ABOVE_0),
};

static const struct optimizer_slot adagrad_momentum_slots[] = {
	{"accumulators", 0},
	{"momenta", 0},
};
static const struct optimizer_key adagrad_momentum_keys[] = {
	HYPER(momentum, KEY_NUMBER, RANGE_FINITE),
	HYPER(use_nesterov, KEY_SWITCH, RANGE_FINITE),
	HYPER(exponent, KEY_NUMBER, RANGE_ABOVE_0),
	HYPER(beta2, KEY_NUMBER, RANGE_0_TO_1),
	HYPER(epsilon, KEY_NUMBER, RANGE_ABOVE_0),
};

static const struct optimizer_slot ftrl_slots[] = {
	{"accumulators", AT(initial_accumulator_value)},
	{"linears", 0},
};
static const struct optimizer_key ftrl_keys[] = {
	HYPER(learning_rate_power, KEY_NUMBER, RANGE_TO_0),
	HYPER(l1_regularization_strength, KEY_NUMBER, RANGE_FROM_0),
	HYPER(l2_regularization_strength, KEY_NUMBER, RANGE_FROM_0),
	HYPER(beta, KEY_NUMBER, RANGE_FROM_0),
	HYPER(multiply_linear_by_learning_rate, KEY_SWITCH, RANGE_FINITE),
	OTHER(initial_accumulator_value, KEY_NUMBER, RANGE_ABOVE_0),
	OTHER(allow_zero_accumulator, KEY_SWITCH, RANGE_FINITE),
};

static const struct optimizer_slot adam_slots[] = {
	{"momenta", 0},
	{"velocities", 0},
};
static const struct optimizer_key adam_keys[] = {
	HYPER(beta_1, KEY_NUMBER, RANGE_0_BELOW_1),
	HYPER(beta_2, KEY_NUMBER, RANGE_0_BELOW_1),
	HYPER(epsilon, KEY_NUMBER, RANGE_ABOVE_0),
	HYPER(sum_inside_sqrt, KEY_TRISTATE, RANGE_FINITE),
	HYPER(bias_correction, KEY_SWITCH, RANGE_FINITE),
	OTHER(lazy_adam, KEY_TRISTATE, RANGE_FINITE),
};

static const struct optimizer_info infos[] = {
	[EMBENG_OPTIMIZER_NO] = {NULL, EMBENG_OPTIMIZER_NONE, false, 0, NULL, 0, NULL},
	[EMBENG_SGD] = {"sgd", EMBENG_OPTIMIZER_SGD, true, 0, NULL, 0, NULL},
	[EMBENG_ADAGRAD] = {"adagrad", EMBENG_OPTIMIZER_ADAGRAD, true, COUNTED(adagrad_slots),
			    COUNTED(adagrad_keys)},
	[EMBENG_ADAGRAD_MOMENTUM] = {"adagrad_momentum", EMBENG_OPTIMIZER_ADAGRAD_MOMENTUM, false,
				     COUNTED(adagrad_momentum_slots),
				     COUNTED(adagrad_momentum_keys)},
	[EMBENG_FTRL] = {"ftrl", EMBENG_OPTIMIZER_FTRL, false, COUNTED(ftrl_slots),
			 COUNTED(ftrl_keys)},
	[EMBENG_ADAM] = {"adam", EMBENG_OPTIMIZER_ADAM, false, COUNTED(adam_slots),
			 COUNTED(adam_keys)},
};

const struct optimizer_info *optimizer_info(enum embeng_optimizer_name kind)
{
	return (size_t)kind < sizeof(infos) / sizeof(infos[0]) ? &infos[kind] : NULL;
}

const char *embeng_optimizer_text(enum embeng_optimizer_name kind)
{
	const struct optimizer_info *info = optimizer_info(kind);

	return info ? info->name : NULL;
}

static struct embeng_optimizer start(enum embeng_optimizer_name kind, float learning_rate)
{
	return (struct embeng_optimizer){
		.size = sizeof(struct embeng_optimizer),
		.kind = kind,
		.learning_rate = learning_rate,
	};
}

struct embeng_optimizer embeng_sgd(float learning_rate)
{
	return start(EMBENG_SGD, learning_rate);
}

struct embeng_optimizer embeng_adagrad(float learning_rate)
{
	struct embeng_optimizer o = start(EMBENG_ADAGRAD, learning_rate);

	o.initial_accumulator_value = 0.1f;
	return o;
}

struct embeng_optimizer embeng_adagrad_momentum(float learning_rate)
{
	struct embeng_optimizer o = start(EMBENG_ADAGRAD_MOMENTUM, learning_rate);

	o.exponent = 2.0f;
	o.beta2 = 1.0f;
	o.epsilon = 1e-10f;
	return o;
}

struct embeng_optimizer embeng_ftrl(float learning_rate)
{
	struct embeng_optimizer o = start(EMBENG_FTRL, learning_rate);

	o.learning_rate_power = -0.5f;
	o.initial_accumulator_value = 0.1f;
	return o;
}

struct embeng_optimizer embeng_adam(float learning_rate)
{
	struct embeng_optimizer o = start(EMBENG_ADAM, learning_rate);

	o.beta_1 = 0.9f;
	o.beta_2 = 0.999f;
	o.epsilon = 1e-7f;
	return o;
}

struct embeng_optimizer embeng_adam_corrected(float learning_rate)
{
	struct embeng_optimizer o = embeng_adam(learning_rate);

	o.epsilon = 1e-8f;
	o.bias_correction = 1;
	return o;
}

static void resolve(enum embeng_tristate *choice)
{
	if (*choice == EMBENG_DEFAULT)
		*choice = EMBENG_ON;
}

void optimizer_resolve(struct embeng_optimizer *o)
{
	resolve(&o->use_gradient_accumulation);
	if (o->kind != EMBENG_ADAM)
		return;
	resolve(&o->lazy_adam);
	resolve(&o->sum_inside_sqrt);
	/* The corrected form has but one place for epsilon. */
	if (o->bias_correction)
		o->sum_inside_sqrt = EMBENG_OFF;
}

float optimizer_value(const struct embeng_optimizer *o, const struct optimizer_key *key)
{
	const void *member = (const char *)o + key->at;

	switch (key->type) {
	case KEY_SWITCH:
		return *(const unsigned char *)member ? 1.0f : 0.0f;
	case KEY_TRISTATE:
		return *(const enum embeng_tristate *)member == EMBENG_ON ? 1.0f : 0.0f;
	case KEY_NUMBER:
		break;
	}
	return *(const float *)member;
}

float optimizer_slot_start(const struct embeng_optimizer *o, size_t slot)
{
	size_t at = optimizer_info(o->kind)->slots[slot].start_at;

	return at ? *(const float *)((const char *)o + at) : 0.0f;
}

int embeng_optimizer_by_name(const char *name, float learning_rate,
			     struct embeng_optimizer *optimizer)
{
	static struct embeng_optimizer (*const makers[])(float learning_rate) = {
		[EMBENG_SGD] = embeng_sgd,
		[EMBENG_ADAGRAD] = embeng_adagrad,
		[EMBENG_ADAGRAD_MOMENTUM] = embeng_adagrad_momentum,
		[EMBENG_FTRL] = embeng_ftrl,
		[EMBENG_ADAM] = embeng_adam,
	};
	const char *known;

	if (!name || !optimizer)
		return fail(-EINVAL,
			    "embeng_optimizer_by_name: the name and where it goes must be given");
	for (enum embeng_optimizer_name kind = EMBENG_SGD;
	     (known = embeng_optimizer_text(kind)); kind++) {
		if (strcmp(name, known))
			continue;
		*optimizer = makers[kind](learning_rate);
		return 0;
	}
	return fail(-ENOENT,
		    "there is no optimizer %s; there are sgd, adagrad, adagrad_momentum, ftrl and "
		    "adam", name);
}
