// SPDX-License-Identifier: MIT
/*
 * Says in words why a device refused a model: from the byte of the blob that the device names, it
 * finds the record, the table or feature that it is of, and the setting. The settings of each kind
 * of record are in tables here, in the order of embeng_engine.h; their names are those of embeng.h.
 *
 * Model, blob and completion are only read; no lock is needed.
 */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/error.h"
#include "blob_error.h"
#include "device/status_text.h"

enum setting_form {
	FORM_COUNT, /* a whole number below or above a bound */
	FORM_MASK,  /* bits, or one of the choices whose bits the limit has */
	FORM_FLOAT,
	FORM_ZERO, /* nothing but 0 */
};

/* A member of a record; @width bytes at @at, @count of them one behind the other. */
struct setting {
	size_t at, width, count;
	enum setting_form form;
	const char *name, *remedy;
};

#define OF(record, member, form, name, remedy) \
	{offsetof(struct embeng_record_##record, member), \
	 sizeof(((struct embeng_record_##record *)0)->member), \
	 1, \
	 form, \
	 name, \
	 remedy}
#define ARRAY_OF(record, member, name, remedy) \
	{offsetof(struct embeng_record_##record, member), \
	 4, \
	 sizeof(((struct embeng_record_##record *)0)->member) / 4, \
	 FORM_FLOAT, \
	 name, \
	 remedy}

#define CORRECT "correct it"
#define OTHER_DEVICE "use another, or a device that has it (embeng info shows what it has)"
#define DEVICE_LIMIT "embeng info shows the limits of the device"

static const struct setting engine_settings[] = {
	OF(engine, replicas, FORM_COUNT, "replicas", DEVICE_LIMIT),
	OF(engine, flags, FORM_MASK, "pipelining or non_finite", OTHER_DEVICE),
	OF(engine, table_count, FORM_COUNT, "number of tables", DEVICE_LIMIT),
	OF(engine, feature_count, FORM_COUNT, "number of features", DEVICE_LIMIT),
	OF(engine, rate_count, FORM_COUNT, "number of dynamic rates", DEVICE_LIMIT),
	OF(engine, step_depth, FORM_COUNT, "step_depth", DEVICE_LIMIT),
	{0},
};

static const struct setting table_settings[] = {
	OF(table, rows, FORM_COUNT, "vocabulary_size", CORRECT),
	OF(table, dim, FORM_COUNT, "dim",
	   "split its columns over several tables, or use a device that has more (embeng info "
	   "shows the limit)"),
	OF(table, flags, FORM_MASK, "options of its optimizer", CORRECT),
	OF(table, combiner, FORM_MASK, "combiner", OTHER_DEVICE),
	OF(table, out_of_range, FORM_COUNT, "out_of_range", CORRECT),
	OF(table, optimizer, FORM_MASK, "optimizer", OTHER_DEVICE),
	OF(table, slot_count, FORM_COUNT, "number of slots", CORRECT),
	OF(table, rate, FORM_FLOAT, "learning_rate", CORRECT),
	OF(table, weight_decay, FORM_FLOAT, "weight_decay_factor", CORRECT),
	OF(table, clip_gradient_min, FORM_FLOAT, "clip_min", CORRECT),
	OF(table, clip_gradient_max, FORM_FLOAT, "clip_max", CORRECT),
	OF(table, clip_weight_min, FORM_FLOAT, "clip_weight_min", CORRECT),
	OF(table, clip_weight_max, FORM_FLOAT, "clip_weight_max", CORRECT),
	ARRAY_OF(table, slot_start, "initial value of slot", CORRECT),
	ARRAY_OF(table, hyperparameter, "hyperparameter", CORRECT),
	OF(table, step_rate, FORM_COUNT, "step_counter", CORRECT),
	OF(table, max_norm, FORM_FLOAT, "max_norm", CORRECT),
	{0},
};

static const struct setting feature_settings[] = {
	OF(feature, table, FORM_COUNT, "table", CORRECT),
	OF(feature, flags, FORM_MASK, "check_weights", OTHER_DEVICE),
	OF(feature, max_sequence_length, FORM_COUNT, "max_sequence_length", DEVICE_LIMIT),
	OF(feature, reserved, FORM_ZERO, "a reserved field", CORRECT),
	OF(feature, max_samples, FORM_COUNT, "max_samples", DEVICE_LIMIT),
	OF(feature, max_ids, FORM_COUNT, "max_ids", DEVICE_LIMIT),
	{0},
};

static const struct setting quantization_settings[] = {
	OF(quantization, table, FORM_COUNT, "quantization: table", CORRECT),
	OF(quantization, num_buckets, FORM_COUNT, "quantization: num_buckets", CORRECT),
	OF(quantization, lower, FORM_FLOAT, "quantization: lower", CORRECT),
	OF(quantization, upper, FORM_FLOAT, "quantization: upper", CORRECT),
	{0},
};

static const struct setting shard_settings[] = {
	OF(shard, table, FORM_COUNT, "part: table", CORRECT),
	OF(shard, first_column, FORM_COUNT, "part: first_column", CORRECT),
	OF(shard, whole_rows, FORM_COUNT, "part: rows", CORRECT),
	OF(shard, first_row, FORM_COUNT, "part: first_row", CORRECT),
	OF(shard, row_step, FORM_COUNT, "part: row_step", CORRECT),
	OF(shard, whole_dim, FORM_COUNT, "part: dim", CORRECT),
	OF(shard, reserved, FORM_ZERO, "part: a reserved field", CORRECT),
	{0},
};

static const struct setting no_settings[] = {{0}};

/* The record that has a byte of the blob, and its number among those of its type. */
struct place {
	struct embeng_record head;
	const unsigned char *record;
	size_t index, offset;
};

static bool find_place(const void *blob, size_t length, uint64_t byte, struct place *out)
{
	size_t counts[EMBENG_RECORD_SHARD + 1] = {0};
	const unsigned char *bytes = blob;
	struct embeng_record head;

	for (size_t at = sizeof(struct embeng_blob_header); at + sizeof(head) <= length;
	     at += head.length) {
		memcpy(&head, bytes + at, sizeof(head));
		if (head.length < sizeof(head) || head.length > length - at)
			return false;
		if (byte >= at && byte - at < head.length) {
			*out = (struct place){
				.head = head, .record = bytes + at, .offset = byte - at};
			if (head.type <= EMBENG_RECORD_SHARD)
				out->index = counts[head.type];
			return true;
		}
		if (head.type <= EMBENG_RECORD_SHARD)
			counts[head.type]++;
	}
	return false;
}

static const struct setting *settings_of(uint16_t type)
{
	switch (type) {
	case EMBENG_RECORD_ENGINE:
		return engine_settings;
	case EMBENG_RECORD_TABLE:
		return table_settings;
	case EMBENG_RECORD_FEATURE:
		return feature_settings;
	case EMBENG_RECORD_QUANTIZATION:
		return quantization_settings;
	case EMBENG_RECORD_SHARD:
		return shard_settings;
	}
	return no_settings;
}

static const struct setting *find_setting(const struct place *p, size_t *index)
{
	for (const struct setting *s = settings_of(p->head.type); s->name; s++) {
		if (p->offset < s->at || p->offset >= s->at + s->width * s->count)
			continue;
		*index = (p->offset - s->at) / s->width;
		return s;
	}
	return NULL;
}

#define WHO_TEXT 96
#define SETTING_TEXT 96

/* Whether the record names the table that it belongs to. */
static bool has_owner(uint16_t type)
{
	return type == EMBENG_RECORD_QUANTIZATION || type == EMBENG_RECORD_SHARD;
}

/* The table or feature that the record is of. */
static void say_who(const struct embeng_model *m, const struct place *p, char who[WHO_TEXT])
{
	size_t table = p->index;
	uint32_t of;

	snprintf(who, WHO_TEXT, "the model");
	if (has_owner(p->head.type)) {
		memcpy(&of, p->record + sizeof(p->head), sizeof(of));
		table = of;
	}
	if (p->head.type == EMBENG_RECORD_FEATURE && p->index < m->feature_count)
		snprintf(who, WHO_TEXT, "feature %s", m->features[p->index].name);
	else if ((p->head.type == EMBENG_RECORD_TABLE || has_owner(p->head.type)) &&
		 table < m->table_count)
		snprintf(who, WHO_TEXT, "table %s", m->tables[table].name);
	else if (p->head.type == EMBENG_RECORD_RATE && p->index < m->rate_count)
		snprintf(who, WHO_TEXT, "%s %s", rate_word(m, p->index), m->rates[p->index]);
}

/* The name of the @n-th hyperparameter of a kind, in the engine's order. */
static const char *hyperparameter_name(const struct optimizer_info *info, size_t n)
{
	for (size_t i = 0; i < info->key_count; i++)
		if (info->keys[i].hyper && !n--)
			return info->keys[i].name;
	return "a hyperparameter that it does not have";
}

static void say_setting(const struct embeng_model *m, const struct place *p,
			const struct setting *s, size_t index, char name[SETTING_TEXT])
{
	const struct optimizer_info *info;

	snprintf(name, SETTING_TEXT, "%s", s->name);
	if (p->head.type == EMBENG_RECORD_TABLE && p->index < m->table_count &&
	    s->at == offsetof(struct embeng_record_table, combiner))
		snprintf(name, SETTING_TEXT, "combiner %s",
			 model_combiner_words[m->tables[p->index].combiner]);
	if (s->count == 1 || p->index >= m->table_count)
		return;
	info = optimizer_info(m->tables[p->index].optimizer.kind);
	if (s->at == offsetof(struct embeng_record_table, hyperparameter))
		snprintf(name, SETTING_TEXT, "%s", hyperparameter_name(info, index));
	else
		snprintf(name, SETTING_TEXT, "%s %s", s->name,
			 index < info->slot_count ? info->slots[index].name : "that it lacks");
}

static int refuse_float(const char *where, const struct setting *s, const struct embeng_cqe *c)
{
	float value = float_of((uint32_t)c->value), limit = float_of((uint32_t)c->limit);

	if (isnan(value) || (isinf(value) && fabsf(limit) == FLT_MAX))
		return error_set(status_errno(c->status), c->status, "%s is %g, and must be %s; %s",
				 where, (double)value, fabsf(limit) > 0 ? "finite" : "a number",
				 s->remedy);
	return error_set(status_errno(c->status), c->status, "%s is %g, and must be %s %g; %s",
			 where, (double)value, value > limit ? "at most" : "at least",
			 (double)limit, s->remedy);
}

/* The flag of a table whose number is dynamic. */
static uint32_t dynamic_flag(const struct setting *s, size_t index)
{
	switch (s->at) {
	case offsetof(struct embeng_record_table, rate):
		return EMBENG_TABLE_RATE_DYNAMIC;
	case offsetof(struct embeng_record_table, weight_decay):
		return EMBENG_TABLE_WEIGHT_DECAY_DYNAMIC;
	case offsetof(struct embeng_record_table, clip_gradient_min):
		return EMBENG_TABLE_CLIP_GRADIENT_MIN_DYNAMIC;
	case offsetof(struct embeng_record_table, clip_gradient_max):
		return EMBENG_TABLE_CLIP_GRADIENT_MAX_DYNAMIC;
	case offsetof(struct embeng_record_table, clip_weight_min):
		return EMBENG_TABLE_CLIP_WEIGHT_MIN_DYNAMIC;
	case offsetof(struct embeng_record_table, clip_weight_max):
		return EMBENG_TABLE_CLIP_WEIGHT_MAX_DYNAMIC;
	case offsetof(struct embeng_record_table, max_norm):
		return EMBENG_TABLE_MAX_NORM_DYNAMIC;
	case offsetof(struct embeng_record_table, hyperparameter):
		return EMBENG_TABLE_HYPERPARAMETER_DYNAMIC(index);
	}
	return 0;
}

/* The index of a rate stands where a constant would. */
static enum setting_form form_of(const struct place *p, const struct setting *s, size_t index)
{
	uint32_t flags;

	if (p->head.type != EMBENG_RECORD_TABLE)
		return s->form;
	memcpy(&flags, p->record + offsetof(struct embeng_record_table, flags), sizeof(flags));
	return flags & dynamic_flag(s, index) ? FORM_COUNT : s->form;
}

/* A value that the device does not take. */
static int refuse_blob_setting(const char *where, const struct setting *s, enum setting_form form,
			       const struct embeng_cqe *c)
{
	uint64_t value = c->value, limit = c->limit;

	switch (form) {
	case FORM_FLOAT:
		return refuse_float(where, s, c);
	case FORM_COUNT:
		return error_set(status_errno(c->status), c->status,
				 "%s is %" PRIu64 ", and must be %s %" PRIu64 "; %s", where, value,
				 value > limit ? "at most" : "at least", limit, s->remedy);
	case FORM_MASK:
		return error_set(status_errno(c->status), c->status,
				 "%s: the device does not take the value 0x%" PRIx64
				 ", only those of the mask 0x%" PRIx64 "; %s",
				 where, value, limit, s->remedy);
	case FORM_ZERO:
		break;
	}
	return error_set(status_errno(c->status), c->status, "%s is %" PRIu64 ", and must be 0; %s",
			 where, value, s->remedy);
}

static double count_bytes_of_table(const struct table *t)
{
	return (double)t->rows * (double)model_whole_row_bytes(t);
}

/* Tables do not fit: the largest one is what to begin with. NULL if there is none. */
static const struct table *find_largest_table(const struct embeng_model *m)
{
	const struct table *most = NULL;

	for (size_t t = 0; t < m->table_count; t++) {
		if (!most || count_bytes_of_table(&m->tables[t]) > count_bytes_of_table(most))
			most = &m->tables[t];
	}
	return most;
}

static int refuse_size(const struct embeng_model *m, const struct embeng_cqe *c)
{
	const struct table *most = find_largest_table(m);

	if (!most)
		return command_error("model", c);
	return error_set(status_errno(c->status), c->status,
			 "model: %" PRIu64 " bytes are needed for its tables, there are %" PRIu64
			 "; the largest is table %s: vocabulary_size %" PRId64 ", dim %" PRId64
			 ", %zu slots, %.0f bytes. Make it smaller, or use a device with more "
			 "table memory (embeng plan tells what a model needs)",
			 (uint64_t)c->value, (uint64_t)c->limit, most->name, most->rows, most->dim,
			 most->slot_count, count_bytes_of_table(most));
}

int tables_limit_check(const struct embeng_model *m, uint64_t room, uint64_t most, const char *by)
{
	const struct table *largest = find_largest_table(m);
	double bytes = 0;

	for (size_t t = 0; t < m->table_count; t++)
		bytes += count_bytes_of_table(&m->tables[t]);
	/* The device itself refuses tables that it has no room for. The kernel needs page tables. */
	if (bytes > (double)room || bytes + bytes / 256 <= (double)most)
		return 0;
	return fail(
		-ENOMEM,
		"model: %.0f bytes are needed for its tables, and this process may have %" PRIu64
		" more (%s), whatever memory= promises; the largest is table %s: "
		"vocabulary_size %" PRId64 ", dim %" PRId64 ", %zu slots, %.0f bytes. Make it "
		"smaller, or raise the limit",
		bytes, most, by, largest->name, largest->rows, largest->dim, largest->slot_count,
		count_bytes_of_table(largest));
}

/* The host ran out before a limit that it tells of. */
static int refuse_memory(const struct embeng_model *m, const struct embeng_cqe *c)
{
	const struct table *most = find_largest_table(m);

	if (!most)
		return command_error("model", c);
	return error_set(
		status_errno(c->status), c->status,
		"model: the host has no memory for its tables; the largest is table %s: "
		"vocabulary_size %" PRId64 ", dim %" PRId64 ", %zu slots, %.0f bytes. Make "
		"it smaller, free memory, or raise the limit of the process (control "
		"groups, ulimit -v and -d)",
		most->name, most->rows, most->dim, most->slot_count, count_bytes_of_table(most));
}

int blob_error(const struct embeng_model *m, const void *blob, size_t length,
	       const struct embeng_cqe *c)
{
	char who[WHO_TEXT], name[SETTING_TEXT], where[WHO_TEXT + SETTING_TEXT + 8];
	const struct setting *s;
	struct place place;
	size_t index = 0;

	if (c->status == EMBENG_STATUS_NO_SPACE)
		return refuse_size(m, c);
	if (c->status == EMBENG_STATUS_NO_MEMORY)
		return refuse_memory(m, c);
	if (c->field != EMBENG_FIELD_BLOB || !find_place(blob, length, c->element, &place))
		return command_error("model", c);
	say_who(m, &place, who);
	s = find_setting(&place, &index);
	if (c->status == EMBENG_STATUS_BLOB_RECORD)
		snprintf(where, sizeof(where), "%s: %s", who,
			 place.head.type == EMBENG_RECORD_QUANTIZATION ? "quantization"
			 : place.head.type == EMBENG_RECORD_SHARD      ? "part"
								       : "record");
	if (c->status != EMBENG_STATUS_BLOB_VALUE || !s)
		return command_error(c->status == EMBENG_STATUS_BLOB_RECORD ? where : who, c);
	say_setting(m, &place, s, index, name);
	snprintf(where, sizeof(where), "%s: %s", who, name);
	return refuse_blob_setting(where, s, form_of(&place, s, index), c);
}
