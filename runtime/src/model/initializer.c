// SPDX-License-Identifier: MIT
/*
 * Initial values of rows, of parameters and of slots: checks them, fills in defaults, and
 * translates them for the engine.
 *
 * Only arguments are touched; no lock is needed.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../engine/blob/blob.h"
#include "../../../engine/kernels/optimizers.h"
#include "../../../engine/kernels/ranges.h"
#include "base/bits.h"
#include "base/check.h"
#include "host/port.h"
#include "initializer.h"
#include "numbers.h"

/* The least number of a normal distribution that is cut off at two deviations. */
static double least_normal(const struct embeng_initializer *i)
{
	return (double)i->a - 2.0 * (double)i->b;
}

int initializer_check(const char *where, const struct embeng_initializer *i)
{
	int code;

	if ((unsigned int)i->kind > EMBENG_INIT_TRUNCATED_NORMAL)
		return fail(-EINVAL, "%s: initializer kind %d is unknown; 0 to %d are known", where,
			    (int)i->kind, EMBENG_INIT_TRUNCATED_NORMAL);
	if (i->kind == EMBENG_INIT_DEFAULT)
		return 0;
	code = number_check(isfinite(i->a), where, "initializer a", i->a, "finite");
	if (code || i->kind == EMBENG_INIT_CONSTANT)
		return code;
	code = number_check(isfinite(i->b), where, "initializer b", i->b, "finite");
	if (!code && i->kind == EMBENG_INIT_UNIFORM && i->a > i->b)
		code = fail(-ERANGE, "%s: the uniform initializer's a %g is above its b %g", where,
			    (double)i->a, (double)i->b);
	if (!code && i->kind == EMBENG_INIT_TRUNCATED_NORMAL)
		code = number_check(i->b >= 0.0f, where, "initializer's deviation b", i->b,
				    "0 or above");
	if (!code && i->kind == EMBENG_INIT_TRUNCATED_NORMAL &&
	    fabs((double)i->a) + 2.0 * i->b > FLT_MAX)
		code = fail(
			-ERANGE,
			"%s: the normal initializer's mean a %g and deviation b %g reach %g, two "
			"deviations from the mean; the largest float is %g",
			where, (double)i->a, (double)i->b, fabs((double)i->a) + 2.0 * i->b,
			(double)FLT_MAX);
	return code;
}

int slot_initializer_check(const char *where, enum embeng_optimizer_name kind, size_t slot,
			   const struct embeng_initializer *i)
{
	const char *name = optimizer_info(kind)->slots[slot].name;
	uint32_t range = numbers_slot_range(kind, slot);
	float least = i->kind == EMBENG_INIT_TRUNCATED_NORMAL ? (float)least_normal(i) : i->a;

	if (i->kind == EMBENG_INIT_DEFAULT || number_in_range(range, bits(least)))
		return 0;
	return fail(-ERANGE, "%s: slot %s of %s starts from %g on, and must be %s", where, name,
		    embeng_optimizer_text(kind), (double)least, numbers_allowed(range));
}

/*
 * In the engine's mode, whatever the caller's is. Volatile, since the compiler knows no mode
 * and might compute before it is set.
 */
static float default_deviation(const struct table *t)
{
	volatile double dim;
	volatile float deviation;
	struct port_fpu fpu;

	port_fpu_begin(&fpu);
	dim = (double)(table_is_part(t) ? t->part.dim : t->dim);
	deviation = (float)(1.0 / sqrt(dim));
	port_fpu_end(&fpu);
	return deviation;
}

struct embeng_initializer initializer_resolve(const struct table *t, size_t slot,
					      const struct embeng_initializer *given)
{
	struct embeng_initializer i = *given;

	if (i.kind != EMBENG_INIT_DEFAULT)
		return i;
	if (slot) {
		i.kind = EMBENG_INIT_CONSTANT;
		i.a = optimizer_slot_start(&t->optimizer, slot - 1);
		i.b = 0.0f;
	} else {
		i.kind = EMBENG_INIT_TRUNCATED_NORMAL;
		i.a = 0.0f;
		i.b = default_deviation(t);
	}
	return i;
}

/* Every bit of the result depends on every bit of @x (the finalizer of splitmix64). */
static uint64_t mix_bits(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* Rows depend on the table's name and slot, not on its place in the model, and on the given seed. */
static uint64_t seed_of(const struct table *t, size_t slot, uint64_t given)
{
	uint64_t name = fnv1a(FNV1A_START, t->name, strlen(t->name));

	return mix_bits(mix_bits(name + slot) + given);
}

void initializer_rows(const struct table *t, const struct embeng_initializer *given,
		      struct embeng_rows *rows)
{
	struct embeng_initializer i = initializer_resolve(t, rows->slot, given);

	switch (i.kind) {
	case EMBENG_INIT_CONSTANT:
		rows->fill = EMBENG_FILL_CONSTANT;
		i.b = 0;
		break;
	case EMBENG_INIT_UNIFORM:
		rows->fill = EMBENG_FILL_UNIFORM;
		break;
	case EMBENG_INIT_DEFAULT: /* resolved above */
	case EMBENG_INIT_TRUNCATED_NORMAL:
		rows->fill = EMBENG_FILL_TRUNCATED_NORMAL;
		break;
	}
	rows->a = bits(i.a);
	rows->b = bits(i.b);
	rows->seed = seed_of(t, rows->slot, i.seed);
}

struct embeng_initializer slot_start(const struct table *t, size_t slot)
{
	const char *name = optimizer_info(t->optimizer.kind)->slots[slot].name;
	struct embeng_initializer given = {EMBENG_INIT_DEFAULT, 0.0f, 0.0f, 0};

	for (size_t i = 0; i < t->slot_start_count; i++) {
		if (!strcmp(t->slot_starts[i].slot, name))
			given = t->slot_starts[i].initializer;
	}
	return initializer_resolve(t, slot + 1, &given);
}

/* The kind's own copy of a slot's name, or NULL. */
static const char *own_slot_name(enum embeng_optimizer_name kind, const char *name)
{
	const struct optimizer_info *info = optimizer_info(kind);

	for (size_t i = 0; i < info->slot_count; i++) {
		if (!strcmp(info->slots[i].name, name))
			return info->slots[i].name;
	}
	return NULL;
}

/* Finds a slot that the kind has. */
static size_t slot_index(enum embeng_optimizer_name kind, const char *name)
{
	size_t slot = 0;

	while (strcmp(optimizer_info(kind)->slots[slot].name, name))
		slot++;
	return slot;
}

static int start_check(const char *where, const struct embeng_table_config *c, size_t at)
{
	const struct embeng_slot_start *starts = c->slot_starts, *start = &starts[at];
	char names[SLOT_NAMES_TEXT];
	int code;

	if (!start->slot)
		return fail(-EINVAL, "%s: slot start %zu names no slot", where, at);
	if (!own_slot_name(c->optimizer.kind, start->slot))
		return fail(-ENOENT, "%s: there is no slot %s to start; it has %s", where,
			    start->slot, slot_names(c->optimizer.kind, "no slots", names));
	for (size_t i = 0; i < at; i++) {
		if (!strcmp(starts[i].slot, start->slot))
			return fail(-EEXIST, "%s: slot starts %zu and %zu are both of %s", where, i,
				    at, start->slot);
	}
	snprintf(names, sizeof(names), "%s, slot %s", where, start->slot);
	code = initializer_check(names, &start->initializer);
	return code ? code
		    : slot_initializer_check(where, c->optimizer.kind,
					     slot_index(c->optimizer.kind, start->slot),
					     &start->initializer);
}

int slot_starts_check(const char *where, const struct embeng_table_config *c)
{
	int code = 0;

	if (c->slot_start_count && !c->slot_starts)
		return fail(-EINVAL, "%s: slot_start_count is %zu, but slot_starts is NULL", where,
			    c->slot_start_count);
	for (size_t i = 0; !code && i < c->slot_start_count; i++)
		code = start_check(where, c, i);
	return code;
}

int slot_starts_copy(struct table *t, const struct embeng_table_config *c)
{
	if (!c->slot_start_count)
		return 0;
	t->slot_starts = calloc(c->slot_start_count, sizeof(*t->slot_starts));
	if (!t->slot_starts)
		return fail(-ENOMEM, "no memory for the slot starts of a table");
	t->slot_start_count = c->slot_start_count;
	for (size_t i = 0; i < c->slot_start_count; i++) {
		t->slot_starts[i] = c->slot_starts[i];
		t->slot_starts[i].slot = own_slot_name(c->optimizer.kind, c->slot_starts[i].slot);
	}
	return 0;
}
