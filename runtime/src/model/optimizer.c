// SPDX-License-Identifier: MIT
/*
 * Optimizers: the functions that make one with its defaults, and the values of their settings by
 * key.
 *
 * Only arguments are touched; the table of kinds is constant (optimizer_kinds.c).
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "optimizer.h"

const char *embeng_optimizer_text(enum embeng_optimizer_name kind)
{
	const struct optimizer_info *info = optimizer_info(kind);

	return info ? info->name : NULL;
}

/* A kind with its defaults. */
static struct embeng_optimizer default_optimizer(enum embeng_optimizer_name kind,
						 float learning_rate)
{
	const struct optimizer_info *info = optimizer_info(kind);
	struct embeng_optimizer o = {
		.size = sizeof(o),
		.kind = kind,
		.learning_rate = learning_rate,
	};

	for (size_t i = 0; i < info->key_count; i++) {
		if (info->keys[i].type == KEY_NUMBER)
			*(float *)((char *)&o + info->keys[i].at) = info->keys[i].start;
	}
	return o;
}

#define MAKER(name, KIND) \
	struct embeng_optimizer embeng_##name(float rate) \
	{ \
		return default_optimizer(EMBENG_##KIND, rate); \
	}

MAKER(sgd, SGD)
MAKER(adagrad, ADAGRAD)
MAKER(adagrad_momentum, ADAGRAD_MOMENTUM)
MAKER(ftrl, FTRL)
MAKER(adam, ADAM)
MAKER(momentum, MOMENTUM)
MAKER(lion, LION)
MAKER(rms_prop, RMS_PROP)
MAKER(centered_rms_prop, CENTERED_RMS_PROP)
MAKER(adadelta, ADADELTA)
MAKER(proximal_adagrad, PROXIMAL_ADAGRAD)
MAKER(assign, ASSIGN)
MAKER(laprop, LAPROP)
MAKER(proximal_yogi, PROXIMAL_YOGI)
MAKER(bounded_adagrad, BOUNDED_ADAGRAD)
MAKER(online_yogi, ONLINE_YOGI)
MAKER(frequency_estimator, FREQUENCY_ESTIMATOR)
MAKER(frequency_aware_adagrad, FREQUENCY_AWARE_ADAGRAD)
MAKER(mdl_adagrad_light, MDL_ADAGRAD_LIGHT)
MAKER(rowwise_adagrad, ROWWISE_ADAGRAD)
MAKER(partial_rowwise_adam, PARTIAL_ROWWISE_ADAM)

struct embeng_optimizer embeng_adagrad_epsilon(float learning_rate)
{
	struct embeng_optimizer o = embeng_adagrad(learning_rate);

	o.initial_accumulator_value = 0.0f;
	o.epsilon = 1e-10f;
	return o;
}

struct embeng_optimizer embeng_adam_corrected(float learning_rate)
{
	struct embeng_optimizer o = embeng_adam(learning_rate);

	o.epsilon = 1e-8f;
	o.bias_correction = 1;
	return o;
}

struct embeng_optimizer embeng_adam_epsilon_hat(float learning_rate)
{
	struct embeng_optimizer o = embeng_adam_corrected(learning_rate);

	o.epsilon_hat = 1;
	return o;
}

struct embeng_optimizer embeng_adamw(float learning_rate)
{
	struct embeng_optimizer o = embeng_adam_corrected(learning_rate);

	o.weight_decay_factor = 0.01f;
	o.multiply_weight_decay_by_rate = 1;
	return o;
}

static void resolve_choice(enum embeng_tristate *choice)
{
	if (*choice == EMBENG_DEFAULT)
		*choice = EMBENG_ON;
}

void optimizer_resolve(struct embeng_optimizer *o)
{
	resolve_choice(&o->use_gradient_accumulation);
	if (o->kind != EMBENG_ADAM)
		return;
	resolve_choice(&o->lazy_adam);
	resolve_choice(&o->sum_inside_sqrt);
	if (number_is_dynamic(o, "bias_correction"))
		return;
	/* The corrected form has but one place for epsilon. */
	if (o->bias_correction)
		o->sum_inside_sqrt = EMBENG_OFF;
	else
		o->epsilon_hat = 0;
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
	const struct optimizer_slot *s = &optimizer_info(o->kind)->slots[slot];

	return s->start_at ? *(const float *)((const char *)o + s->start_at) : s->start;
}

/* "sgd, adagrad and adam" */
static void name_all(char *text, size_t room)
{
	const char *name, *next = embeng_optimizer_text(EMBENG_SGD);
	size_t length = 0;

	for (enum embeng_optimizer_name kind = EMBENG_SGD; (name = next); kind++) {
		next = embeng_optimizer_text(kind + 1);
		if (length < room)
			length += (size_t)snprintf(text + length, room - length, "%s%s",
						   kind == EMBENG_SGD ? ""
						   : next	      ? ", "
								      : " and ",
						   name);
	}
}

int embeng_optimizer_by_name(const char *name, float learning_rate,
			     struct embeng_optimizer *optimizer)
{
	char all[EMBENG_ERROR_TEXT];
	const char *known;

	if (!name || !optimizer)
		return fail(-EINVAL,
			    "embeng_optimizer_by_name: the name and where it goes must be given");
	for (enum embeng_optimizer_name kind = EMBENG_SGD; (known = embeng_optimizer_text(kind));
	     kind++) {
		if (strcmp(name, known))
			continue;
		*optimizer = default_optimizer(kind, learning_rate);
		return 0;
	}
	name_all(all, sizeof(all));
	return fail(-ENOENT, "there is no optimizer '%.60s'; there are %s", name, all);
}
