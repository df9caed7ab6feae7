// SPDX-License-Identifier: MIT
/*
 * The numbers of an optimizer that a step can give in place of the model: which there are, by name,
 * and how one is set. Models, steps and restores go by it.
 *
 * Only arguments are touched; no lock is needed.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "embeng_engine.h"
#include "optimizer.h"

_Static_assert(NUMBERS - NUMBER_FIRST_KEY == EMBENG_HYPERPARAMETERS_MAX, "both count the same");

static const char *const names[NUMBER_FIRST_KEY] = {
	[NUMBER_DECAY] = "weight_decay_factor",
	[NUMBER_CLIP_MIN] = "clip_min",
	[NUMBER_CLIP_MAX] = "clip_max",
	[NUMBER_CLIP_WEIGHT_MIN] = "clip_weight_min",
	[NUMBER_CLIP_WEIGHT_MAX] = "clip_weight_max",
	[NUMBER_MAX_NORM] = "max_norm",
};

const struct optimizer_key *number_key(enum embeng_optimizer_name kind, int number)
{
	const struct optimizer_info *info = optimizer_info(kind);
	int n = NUMBER_FIRST_KEY;

	for (size_t i = 0; i < info->key_count; i++) {
		if (info->keys[i].hyper && n++ == number)
			return &info->keys[i];
	}
	return NULL;
}

const char *number_name(enum embeng_optimizer_name kind, int number)
{
	const struct optimizer_key *key;

	if (number < NUMBER_FIRST_KEY)
		return names[number];
	key = number_key(kind, number);
	return key ? key->name : NULL;
}

int number_find(enum embeng_optimizer_name kind, const char *name)
{
	const char *known;

	for (int n = 0; n < NUMBERS && (known = number_name(kind, n)); n++) {
		if (!strcmp(known, name))
			return n;
	}
	return -1;
}

bool number_is_dynamic(const struct embeng_optimizer *o, const char *name)
{
	for (size_t i = 0; i < o->dynamic_count; i++) {
		if (!strcmp(o->dynamic[i].hyperparameter, name))
			return true;
	}
	return false;
}

/* "weight_decay_factor, ... and epsilon" */
static void list_numbers(enum embeng_optimizer_name kind, char *text, size_t room)
{
	const char *name, *next = number_name(kind, 0);
	size_t length = 0;

	for (int n = 0; (name = next); n++) {
		next = n + 1 < NUMBERS ? number_name(kind, n + 1) : NULL;
		if (length < room)
			length += (size_t)snprintf(text + length, room - length, "%s%s",
						   n == 0 ? ""
						   : next ? ", "
							  : " and ",
						   name);
	}
}

static int refuse_hyperparameter(const char *where, const struct embeng_optimizer *o,
				 const char *name)
{
	char all[EMBENG_ERROR_TEXT];

	if (!strcmp(name, "learning_rate") || !strcmp(name, "step_counter"))
		return fail(-EINVAL, "%s: dynamic: %s is made dynamic by %s", where, name,
			    !strcmp(name, "learning_rate") ? "rate_name"
							   : "the member step_counter");
	list_numbers(o->kind, all, sizeof(all));
	return fail(
		-ENOENT,
		"%s: dynamic: no update of %s computes with a hyperparameter '%.60s'; there are %s",
		where, optimizer_info(o->kind)->name, name, all);
}

int dynamic_check(const char *where, const struct embeng_optimizer *o)
{
	int code = 0;

	if (o->dynamic_count && !o->dynamic)
		return fail(-EINVAL, "%s: dynamic_count is %zu, dynamic is NULL", where,
			    o->dynamic_count);
	for (size_t i = 0; !code && i < o->dynamic_count; i++) {
		const struct embeng_dynamic *d = &o->dynamic[i];

		if (!d->hyperparameter || !d->name)
			return fail(-EINVAL,
				    "%s: dynamic %zu: the hyperparameter and the name by which a "
				    "step gives it must be given",
				    where, i);
		for (size_t j = 0; j < i; j++) {
			if (!strcmp(o->dynamic[j].hyperparameter, d->hyperparameter))
				return fail(-EINVAL, "%s: dynamic: %s is there twice", where,
					    d->hyperparameter);
		}
		if (number_find(o->kind, d->hyperparameter) < 0)
			return refuse_hyperparameter(where, o, d->hyperparameter);
		code = name_check("hyperparameter", d->name);
	}
	return code;
}

static void take_limit(unsigned char *has, float *limit, float value)
{
	*has = 1;
	*limit = value;
}

void number_set(struct embeng_optimizer *o, int number, float value)
{
	const struct optimizer_key *key;
	void *member;

	switch (number) {
	case NUMBER_DECAY:
		o->weight_decay_factor = value;
		return;
	case NUMBER_CLIP_MIN:
		take_limit(&o->has_clip_min, &o->clip_min, value);
		return;
	case NUMBER_CLIP_MAX:
		take_limit(&o->has_clip_max, &o->clip_max, value);
		return;
	case NUMBER_CLIP_WEIGHT_MIN:
		take_limit(&o->has_clip_weight_min, &o->clip_weight_min, value);
		return;
	case NUMBER_CLIP_WEIGHT_MAX:
		take_limit(&o->has_clip_weight_max, &o->clip_weight_max, value);
		return;
	case NUMBER_MAX_NORM:
		o->max_norm = value;
		return;
	}
	key = number_key(o->kind, number);
	member = (char *)o + key->at;
	if (key->type == KEY_NUMBER)
		*(float *)member = value;
	else if (key->type == KEY_SWITCH)
		*(unsigned char *)member = value != 0.0f;
	else
		*(enum embeng_tristate *)member = value != 0.0f ? EMBENG_ON : EMBENG_OFF;
}
