// SPDX-License-Identifier: MIT
/*
 * Notes of a restore: settings of optimizers that differ between checkpoint and model, and numbers
 * that are not finite or that the model's optimizer cannot go on from. They are sentences of the
 * report; a number that the model cannot have ends the restore.
 *
 * The notes are part of the struct restore. Numbers are looked at behind the gate, in the memory of
 * a chunk.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../../../engine/f32.h"
#include "base/bits.h"
#include "base/error.h"
#include "model/numbers.h"
#include "model/optimizer.h"
#include "restore.h"

#define MORE "and more"

/* A line of the report; where it has no room the last one says so. */
static void add_note(struct restore *r, const char *line)
{
	char *text = r->report.text;
	size_t length = strlen(text), room = sizeof(r->report.text) - length;

	if (strlen(line) + sizeof("\n" MORE) < room)
		snprintf(text + length, room, "%s%s", length ? "\n" : "", line);
	else if (room > sizeof("\n" MORE) &&
		 (length < strlen(MORE) || strcmp(text + length - strlen(MORE), MORE) != 0))
		snprintf(text + length, room, "\n" MORE);
}

/* -- settings ------------------------------------------------------------ */

static void note_setting(struct restore *r, int table, const char *key, const char *saved,
			 const char *own)
{
	char line[320];

	r->report.settings++;
	snprintf(line, sizeof(line), "table %s: %s is %s in the checkpoint, the model has %s",
		 r->e->model->tables[table].name, key, saved, own);
	add_note(r, line);
}

static const char *write_setting(enum key_type type, float value, char text[32])
{
	if (type == KEY_NUMBER)
		snprintf(text, 32, "%.9g", (double)value);
	else
		snprintf(text, 32, "%s", value != 0.0f ? "true" : "false");
	return text;
}

static void compare_values(struct restore *r, int table, const char *key, enum key_type type,
			   float saved, float own)
{
	char was[32], is[32];

	if (bits(saved) != bits(own))
		note_setting(r, table, key, write_setting(type, saved, was),
			     write_setting(type, own, is));
}

static void compare_limits(struct restore *r, int table, const char *key, bool has_saved,
			   float saved, bool has_own, float own)
{
	char was[32] = "none", is[32] = "none";

	if (has_saved == has_own && (!has_own || bits(saved) == bits(own)))
		return;
	if (has_saved)
		write_setting(KEY_NUMBER, saved, was);
	if (has_own)
		write_setting(KEY_NUMBER, own, is);
	note_setting(r, table, key, was, is);
}

/* A rate that changes has a name, and its value is not saved. */
static void compare_rates(struct restore *r, int table, const struct embeng_optimizer *saved,
			  const struct embeng_optimizer *own)
{
	const char *was = saved->rate_name, *is = own->rate_name;

	if (!was && !is)
		compare_values(r, table, "learning_rate", KEY_NUMBER, saved->learning_rate,
			       own->learning_rate);
	else if (!was || !is || strcmp(was, is) != 0)
		note_setting(r, table, "rate_name", was ? was : "none", is ? is : "none");
}

/* The name by which a step gives a hyperparameter, or NULL. */
static const char *dynamic_name(const struct embeng_optimizer *o, const char *key)
{
	for (size_t i = 0; i < o->dynamic_count; i++) {
		if (!strcmp(o->dynamic[i].hyperparameter, key))
			return o->dynamic[i].name;
	}
	return NULL;
}

static void compare_dynamic(struct restore *r, int table, const struct embeng_optimizer *saved,
			    const struct embeng_optimizer *own)
{
	const char *name;

	for (int n = 0; n < NUMBERS && (name = number_name(own->kind, n)); n++) {
		const char *was = dynamic_name(saved, name), *is = dynamic_name(own, name);
		char key[64];

		snprintf(key, sizeof(key), "dynamic %s", name);
		if (was != is && (!was || !is || strcmp(was, is) != 0))
			note_setting(r, table, key, was ? was : "none", is ? is : "none");
	}
}

#define COMPARE_LIMIT(member) \
	compare_limits(r, table, #member, a.has_##member, a.member, b.has_##member, b.member)

static void compare_optimizers(struct restore *r, int table, const struct embeng_optimizer *saved,
			       const struct embeng_optimizer *own)
{
	const struct optimizer_info *info = optimizer_info(own->kind);
	struct embeng_optimizer a = *saved, b = *own;

	optimizer_resolve(&a);
	optimizer_resolve(&b);
	compare_rates(r, table, &a, &b);
	compare_dynamic(r, table, &a, &b);
	for (size_t i = 0; i < info->key_count; i++) {
		const struct optimizer_key *key = &info->keys[i];

		compare_values(r, table, key->name, key->type, optimizer_value(&a, key),
			       optimizer_value(&b, key));
	}
	COMPARE_LIMIT(clip_weight_min);
	COMPARE_LIMIT(clip_weight_max);
	COMPARE_LIMIT(clip_min);
	COMPARE_LIMIT(clip_max);
	compare_values(r, table, "weight_decay_factor", KEY_NUMBER, a.weight_decay_factor,
		       b.weight_decay_factor);
	compare_values(r, table, "multiply_weight_decay_by_rate", KEY_SWITCH,
		       a.multiply_weight_decay_by_rate ? 1.0f : 0.0f,
		       b.multiply_weight_decay_by_rate ? 1.0f : 0.0f);
	compare_values(r, table, "use_gradient_accumulation", KEY_TRISTATE,
		       a.use_gradient_accumulation == EMBENG_ON ? 1.0f : 0.0f,
		       b.use_gradient_accumulation == EMBENG_ON ? 1.0f : 0.0f);
}

void restore_note_settings(struct restore *r)
{
	const struct embeng_model *from = embeng_checkpoint_model(r->c);

	for (size_t i = 0; i < r->pair_count; i++) {
		const struct array_pair *pair = &r->pairs[i];
		const struct embeng_optimizer *own = &r->e->model->tables[pair->table].optimizer;
		const struct embeng_optimizer *saved = &from->tables[pair->from_table].optimizer;

		if (!pair->array && own->kind && own->kind == saved->kind)
			compare_optimizers(r, pair->table, saved, own);
	}
}

/* -- numbers ------------------------------------------------------------- */

static int refuse_number(const struct restore *r, const struct array_pair *pair, uint64_t row,
			 uint64_t column, float value)
{
	char what[320];

	snprintf(what, sizeof(what), "embeng_restore: %.250s, the tables are as they were", r->dir);
	return numbers_error(r->e->model, what, pair->table, (size_t)pair->array, row, column,
			     value);
}

static uint64_t find_unfinite_float(const float *data, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		if (!f32_finite(bits(data[i])))
			return i;
	}
	return count;
}

static void note_not_finite(struct restore *r, const struct array_pair *pair, uint64_t row,
			    uint64_t column, float value)
{
	const struct embeng_model *m = r->e->model;
	char line[320];

	r->report.not_finite++;
	snprintf(line, sizeof(line),
		 "table %s, %s%s: row %" PRIu64 ", column %" PRIu64
		 " is %g; the model takes it, for its policy non_finite is allow",
		 m->tables[pair->table].name, pair->array ? "slot " : "",
		 model_slot_name(m, pair->table, (size_t)pair->array), row, column, (double)value);
	add_note(r, line);
}

static uint64_t number_of_row(const struct embeng_shard_rows *rows, uint64_t at)
{
	return (uint64_t)rows->first + at * (uint64_t)rows->stride;
}

int restore_check_numbers(struct restore *r, struct array_pair *pair,
			  const struct embeng_shard_rows *rows, const float *data)
{
	const struct embeng_model *m = r->e->model;
	uint64_t width = model_width(&m->tables[pair->table], (size_t)pair->array);
	uint64_t n = (uint64_t)rows->count * width;
	uint64_t at = numbers_first_bad(m, pair->table, (size_t)pair->array, data, n);

	if (at < n)
		return refuse_number(r, pair, number_of_row(rows, at / width), at % width,
				     data[at]);
	if (pair->noted || m->engine.non_finite != EMBENG_NON_FINITE_ALLOW)
		return 0;
	at = find_unfinite_float(data, n);
	pair->noted = pair->found = at < n;
	if (pair->noted)
		note_not_finite(r, pair, number_of_row(rows, at / width), at % width, data[at]);
	return 0;
}
