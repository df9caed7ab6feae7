// SPDX-License-Identifier: MIT
/*
 * A model in a checkpoint's index: tables, features and optimizers. A member that is absent has the
 * value 0, false or the default. Tables of keys serve reading and writing alike.
 *
 * A model that is read belongs to the caller. No lock is needed.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/error.h"
#include "index.h"

static const char *const policies[] = {[EMBENG_POLICY_ERROR] = "error",
				       [EMBENG_POLICY_CLAMP] = "clamp",
				       [EMBENG_POLICY_DROP] = "drop",
				       [EMBENG_POLICY_ZERO] = "zero"};
struct key {
	const char *name;
	size_t at;  /* in struct embeng_optimizer */
	size_t has; /* in struct embeng_optimizer: the flag that a limit is set; 0 for other keys */
};

#define KEY(member) {#member, offsetof(struct embeng_optimizer, member), 0}
#define LIMIT(member) \
	{#member, offsetof(struct embeng_optimizer, member), \
	 offsetof(struct embeng_optimizer, has_##member)}

/* clang-format off */
static const struct key floats[] = {
	KEY(learning_rate), KEY(initial_accumulator_value), KEY(momentum), KEY(exponent),
	KEY(beta2), KEY(epsilon), KEY(learning_rate_power), KEY(l1_regularization_strength),
	KEY(l2_regularization_strength), KEY(beta), KEY(beta_1), KEY(beta_2),
	KEY(weight_decay_factor), KEY(beta1), KEY(rho), KEY(l1), KEY(l2), KEY(b1), KEY(b2), KEY(eps),
	KEY(max_var_update), KEY(max_accumulator), KEY(tau), KEY(max_delta),
	KEY(outlier_threshold), KEY(weight_exponent), KEY(max_lr_multiplier),
	KEY(probability_exponent), KEY(accumulator_decay), KEY(lr_power),
	KEY(min_servable_mdl_benefit), KEY(mdl_mix_in_margin), KEY(mdl_benefit_rampup_coeff),
	KEY(mdl_min_weight), KEY(benefit_revisit_scale), KEY(max_event_benefit),
	KEY(max_total_benefit), KEY(mdl_hard_limit), KEY(max_norm),
};
/* clang-format on */
static const struct key limits[] = {
	LIMIT(clip_weight_min),
	LIMIT(clip_weight_max),
	LIMIT(clip_min),
	LIMIT(clip_max),
};
static const struct key flags[] = {
	KEY(use_nesterov),
	KEY(multiply_linear_by_learning_rate),
	KEY(allow_zero_accumulator),
	KEY(bias_correction),
	KEY(low_dimensional_packing),
	KEY(use_non_lazy),
	KEY(update_accumulator_first),
	KEY(hard_limit_min_benefit),
	KEY(mdl_regularize),
	KEY(mean_gradient),
	KEY(epsilon_hat),
	KEY(weight_decay_in_gradient),
	KEY(scale_by_frequency),
};
static const struct key tristates[] = {
	KEY(lazy_adam),
	KEY(sum_inside_sqrt),
	KEY(use_gradient_accumulation),
};

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define MEMBER(o, key, type) ((type *)(void *)((char *)(o) + (key)->at))
#define CONST_MEMBER(o, key, type) ((const type *)(const void *)((const char *)(o) + (key)->at))
#define HAS(o, key) ((unsigned char *)(o) + (key)->has)

static int read_word(const struct json *o, const struct place *at, const char *key,
		     const char *const *words, size_t count, int *out)
{
	const char *text;
	int ret = json_text(o, at, key, &text);

	if (ret)
		return ret;
	for (size_t i = 0; i < count; i++) {
		if (words[i] && !strcmp(words[i], text)) {
			*out = (int)i;
			return 0;
		}
	}
	return fail(-ENOTSUP, "%s: %s %zu: \"%s\" is \"%.40s\", which this library does not know",
		    at->file, at->list, at->index, key, text);
}

static int read_kind(const struct json *o, const struct place *at, struct embeng_optimizer *out)
{
	const char *words[EMBENG_PARTIAL_ROWWISE_ADAM + 1] = {0};
	int kind, ret;

	for (int i = EMBENG_SGD; i <= EMBENG_PARTIAL_ROWWISE_ADAM; i++)
		words[i] = embeng_optimizer_text((enum embeng_optimizer_name)i);
	ret = read_word(o, at, "kind", words, COUNT(words), &kind);
	if (!ret)
		out->kind = (enum embeng_optimizer_name)kind;
	return ret;
}

static int read_settings(const struct json *o, const struct place *at, struct embeng_optimizer *out)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < COUNT(floats); i++)
		ret = json_real(o, at, floats[i].name, NULL, MEMBER(out, &floats[i], float));
	for (size_t i = 0; !ret && i < COUNT(limits); i++) {
		bool there = false;

		ret = json_real(o, at, limits[i].name, &there, MEMBER(out, &limits[i], float));
		*HAS(out, &limits[i]) = there;
	}
	for (size_t i = 0; !ret && i < COUNT(flags); i++) {
		bool on = false;

		ret = json_flag(o, at, flags[i].name, &on);
		*MEMBER(out, &flags[i], unsigned char) = on;
	}
	for (size_t i = 0; !ret && i < COUNT(tristates); i++) {
		bool on = false;

		if (!json_get(o, tristates[i].name))
			continue;
		ret = json_flag(o, at, tristates[i].name, &on);
		*MEMBER(out, &tristates[i], enum embeng_tristate) = on ? EMBENG_ON : EMBENG_OFF;
	}
	return ret;
}

/* {hyperparameter: name}. Texts are the file's; the list is the caller's to free, after an error too. */
static int read_dynamic(const struct json *o, const struct place *at, struct embeng_optimizer *out)
{
	const struct json *map = json_get(o, "dynamic");
	struct embeng_dynamic *list;
	int ret = 0;

	if (!map)
		return 0;
	ret = json_member(o, at, "dynamic", JSON_OBJECT, &map);
	if (ret)
		return ret;
	list = calloc(json_length(map) + 1, sizeof(*list));
	if (!list)
		return fail(-ENOMEM, "no memory for the dynamic hyperparameters of a table");
	out->dynamic = list;
	out->dynamic_count = json_length(map);
	for (size_t i = 0; !ret && i < out->dynamic_count; i++) {
		list[i].hyperparameter = json_name(map, i);
		ret = json_text(map, at, list[i].hyperparameter, &list[i].name);
	}
	return ret;
}

static int read_optimizer(const struct json *table, const struct place *at,
			  struct embeng_optimizer *out)
{
	const struct json *o = json_get(table, "optimizer");
	struct embeng_optimizer made = {.size = sizeof(made)};
	bool decay_by_rate = false;
	int ret;

	if (json_is(o, JSON_NULL))
		return 0;
	ret = json_member(table, at, "optimizer", JSON_OBJECT, &o);
	ret = ret ? ret : read_kind(o, at, &made);
	if (!ret && json_get(o, "rate_name"))
		ret = json_text(o, at, "rate_name", &made.rate_name);
	if (!ret && json_get(o, "step_counter"))
		ret = json_text(o, at, "step_counter", &made.step_counter);
	ret = ret ? ret : read_settings(o, at, &made);
	ret = ret ? ret : json_flag(o, at, "multiply_weight_decay_by_rate", &decay_by_rate);
	ret = ret ? ret : read_dynamic(o, at, &made);
	made.multiply_weight_decay_by_rate = decay_by_rate;
	*out = made;
	return ret;
}

/* The model's own check of a value, as a fault of the file. */
static int refuse_setting(const struct place *at, int code)
{
	struct embeng_error error = {.size = sizeof(error)};

	if (code == -ENOMEM)
		return code;
	embeng_last_error(&error);
	return json_bad(at, "%s", error.text);
}

/* The names are the optimizer's; the index has them for readers that know no optimizer. */
static int check_slots(const struct json *o, const struct place *at,
		       const struct embeng_model *model, size_t table)
{
	const struct json *slots;
	size_t count = model->tables[table].slot_count;
	int ret = json_member(o, at, "slots", JSON_ARRAY, &slots);

	if (!ret && json_length(slots) != count)
		ret = json_bad(at, "%zu slots, its optimizer has %zu", json_length(slots), count);
	for (size_t i = 0; !ret && i < count; i++) {
		const char *want = model_slot_name(model, (int)table, 1 + i);

		if (!json_says(json_at(slots, i), want))
			ret = json_bad(at, "slot %zu is not \"%s\"", i, want);
	}
	return ret;
}

/* Widths follow from the optimizer; others are of a version to come. Without any all are the dim. */
static int check_slot_widths(const struct json *o, const struct place *at,
			     const struct embeng_model *model, size_t table)
{
	const struct table *t = &model->tables[table];
	const struct json *widths;
	uint64_t width, want;
	int ret;

	if (!json_get(o, "slot_widths"))
		return model_whole_row_bytes(t) == model_row_bytes(t, 0) * (1 + t->slot_count)
			       ? 0
			       : json_bad(at, "\"slot_widths\" is missing, and slots of %s differ",
					  embeng_optimizer_text(t->optimizer.kind));
	ret = json_member(o, at, "slot_widths", JSON_ARRAY, &widths);
	if (!ret && json_length(widths) != t->slot_count)
		ret = json_bad(at, "%zu widths of %zu slots", json_length(widths), t->slot_count);
	for (size_t i = 0; !ret && i < t->slot_count; i++) {
		want = model_width(t, 1 + i);
		if (!json_is_number(json_at(widths, i), UINT32_MAX, &width) || !width)
			ret = json_bad(at, "\"slot_widths\" is not whole numbers from 1 to %u",
				       UINT32_MAX);
		else if (width != want)
			ret = fail(-ENOTSUP,
				   "%s: table %s: slot %s has %llu numbers for each row, and this "
				   "library knows only such slots of %llu; update it",
				   at->file, t->name, model_slot_name(model, (int)table, 1 + i),
				   (unsigned long long)width, (unsigned long long)want);
	}
	return ret;
}

static int read_table(const struct json *o, const struct place *at, struct embeng_model *model)
{
	struct embeng_table_config c = {.size = sizeof(c)};
	int combiner, policy, ret = json_text(o, at, "name", &c.name);
	uint64_t rows, dim;
	size_t table;

	ret = ret ? ret : json_number(o, at, "rows", 1, INT64_MAX, &rows);
	ret = ret ? ret : json_number(o, at, "dim", 1, UINT32_MAX, &dim);
	ret = ret ? ret
		  : read_word(o, at, "combiner", model_combiner_words, COUNT(model_combiner_words),
			      &combiner);
	ret = ret ? ret : read_word(o, at, "out_of_range", policies, COUNT(policies), &policy);
	ret = ret ? ret : index_read_quantization(o, at, &c.quantization);
	ret = ret ? ret : index_read_part(o, at, &c.part);
	ret = ret ? ret : read_optimizer(o, at, &c.optimizer);
	if (ret) {
		free((void *)c.optimizer.dynamic);
		return ret;
	}
	c.vocabulary_size = (int64_t)rows;
	c.dim = (int64_t)dim;
	c.combiner = (enum embeng_combiner_name)combiner;
	c.out_of_range = (enum embeng_policy)policy;
	ret = embeng_model_add_table(model, &c);
	free((void *)c.optimizer.dynamic);
	if (ret < 0)
		return refuse_setting(at, ret);
	table = (size_t)ret;
	ret = check_slots(o, at, model, table);
	return ret ? ret : check_slot_widths(o, at, model, table);
}

static int read_shape(const struct json *o, const struct place *at, struct embeng_feature_config *c)
{
	const struct json *shape;
	int ret = json_member(o, at, "output_shape", JSON_ARRAY, &shape);

	if (ret)
		return ret;
	c->output_rank = json_length(shape);
	if (c->output_rank > EMBENG_MAX_RANK)
		return json_bad(at, "\"output_shape\" has %zu lengths, at most %d are allowed",
				c->output_rank, EMBENG_MAX_RANK);
	for (size_t i = 0; i < c->output_rank; i++) {
		uint64_t length;

		if (!json_is_number(json_at(shape, i), INT64_MAX, &length))
			return json_bad(at, "\"output_shape\" is not whole numbers");
		c->output_shape[i] = (int64_t)length;
	}
	return 0;
}

static int read_feature(const struct json *o, const struct place *at, struct embeng_model *model)
{
	struct embeng_feature_config c = {.size = sizeof(c)};
	bool check_weights = false, unchecked_serving = false, zero_is_padding = false;
	uint64_t table, length;
	int ret = json_text(o, at, "name", &c.name);

	ret = ret ? ret : json_number(o, at, "table", 0, INT32_MAX, &table);
	ret = ret ? ret : json_number(o, at, "max_sequence_length", 0, UINT32_MAX, &length);
	ret = ret ? ret : read_shape(o, at, &c);
	ret = ret ? ret : json_flag(o, at, "check_weights", &check_weights);
	ret = ret ? ret : json_flag(o, at, "unchecked_serving", &unchecked_serving);
	ret = ret ? ret : json_flag(o, at, "v1_dense_zero_is_padding", &zero_is_padding);
	ret = ret ? ret : json_number(o, at, "max_samples", 0, INT64_MAX, &c.max_samples);
	ret = ret ? ret : json_number(o, at, "max_ids", 0, INT64_MAX, &c.max_ids);
	if (ret)
		return ret;
	c.table = (int)table;
	c.max_sequence_length = (int64_t)length;
	c.check_weights = check_weights;
	c.unchecked_serving = unchecked_serving;
	c.v1_dense_zero_is_padding = zero_is_padding;
	ret = embeng_model_add_feature(model, &c);
	return ret < 0 ? refuse_setting(at, ret) : 0;
}

static int read_list(const struct json *o, const struct place *at, const char *list,
		     struct embeng_model *model,
		     int (*read)(const struct json *o, const struct place *at,
				 struct embeng_model *model))
{
	const struct json *array;
	int ret = json_member(o, at, list, JSON_ARRAY, &array);

	for (size_t i = 0; !ret && i < json_length(array); i++) {
		const struct place place = {.file = at->file, .list = list, .index = i};
		const struct json *entry = json_at(array, i);

		ret = json_is(entry, JSON_OBJECT) ? read(entry, &place, model)
						  : json_bad(&place, "is not an object");
	}
	return ret;
}

int index_read_model(const struct json *o, const struct place *at, struct embeng_model **out)
{
	struct embeng_model *model = embeng_model_new();
	int ret = model ? index_read_engine(o, at, model) : -ENOMEM;

	ret = ret ? ret : read_list(o, at, "tables", model, read_table);
	ret = ret ? ret : read_list(o, at, "features", model, read_feature);
	if (ret)
		embeng_model_free(model);
	else
		*out = model;
	return ret;
}

static void write_flag(struct json_writer *w, const char *key, bool on)
{
	if (on)
		json_write_flag(w, key, true);
}

static void write_floats(struct json_writer *w, const struct embeng_optimizer *optimizer)
{
	for (size_t i = 0; i < COUNT(floats); i++) {
		float value = *CONST_MEMBER(optimizer, &floats[i], float);

		/* Only a setting that its optimizer ignores can be no number. */
		if (bits(value) && !isnan(value))
			json_write_float(w, floats[i].name, value);
	}
	for (size_t i = 0; i < COUNT(limits); i++) {
		if (((const unsigned char *)optimizer)[limits[i].has])
			json_write_float(w, limits[i].name,
					 *CONST_MEMBER(optimizer, &limits[i], float));
	}
}

static void write_optimizer(struct json_writer *w, const struct embeng_optimizer *optimizer)
{
	json_write_object(w, "optimizer");
	json_write_text(w, "kind", embeng_optimizer_text(optimizer->kind));
	if (optimizer->rate_name)
		json_write_text(w, "rate_name", optimizer->rate_name);
	if (optimizer->step_counter)
		json_write_text(w, "step_counter", optimizer->step_counter);
	if (optimizer->dynamic_count)
		json_write_object(w, "dynamic");
	for (size_t i = 0; i < optimizer->dynamic_count; i++)
		json_write_text(w, optimizer->dynamic[i].hyperparameter,
				optimizer->dynamic[i].name);
	if (optimizer->dynamic_count)
		json_write_close(w);
	write_floats(w, optimizer);
	for (size_t i = 0; i < COUNT(flags); i++)
		write_flag(w, flags[i].name, *CONST_MEMBER(optimizer, &flags[i], unsigned char));
	write_flag(w, "multiply_weight_decay_by_rate", optimizer->multiply_weight_decay_by_rate);
	for (size_t i = 0; i < COUNT(tristates); i++) {
		enum embeng_tristate t = *CONST_MEMBER(optimizer, &tristates[i],
						       enum embeng_tristate);

		if (t != EMBENG_DEFAULT)
			json_write_flag(w, tristates[i].name, t == EMBENG_ON);
	}
	json_write_close(w);
}

static void write_table(struct json_writer *w, const struct index *index, size_t table)
{
	const struct embeng_model *model = index->model;
	const struct table *t = &model->tables[table];

	json_write_object(w, NULL);
	json_write_text(w, "name", t->name);
	json_write_number(w, "rows", (uint64_t)t->rows);
	json_write_number(w, "dim", (uint64_t)t->dim);
	json_write_text(w, "combiner", model_combiner_words[t->combiner]);
	json_write_text(w, "out_of_range", policies[t->policy]);
	index_write_quantization(w, &t->quantization);
	index_write_part(w, &t->part);
	if (t->optimizer.kind)
		write_optimizer(w, &t->optimizer);
	else
		json_write_null(w, "optimizer");
	json_write_array(w, "slots");
	for (size_t i = 0; i < t->slot_count; i++)
		json_write_text(w, NULL, model_slot_name(model, (int)table, 1 + i));
	json_write_close(w);
	if (t->slot_count) {
		json_write_array(w, "slot_widths");
		for (size_t i = 0; i < t->slot_count; i++)
			json_write_number(w, NULL, model_width(t, 1 + i));
		json_write_close(w);
	}
	index_write_finite(w, index, table);
	json_write_close(w);
}

static void write_feature(struct json_writer *w, const struct feature *f)
{
	json_write_object(w, NULL);
	json_write_text(w, "name", f->name);
	json_write_number(w, "table", (uint64_t)f->table);
	json_write_number(w, "max_sequence_length", (uint64_t)f->max_sequence_length);
	json_write_array(w, "output_shape");
	for (size_t i = 0; i < f->output_rank; i++)
		json_write_number(w, NULL, (uint64_t)f->output_shape[i]);
	json_write_close(w);
	write_flag(w, "check_weights", f->check_weights);
	write_flag(w, "unchecked_serving", f->unchecked_serving);
	write_flag(w, "v1_dense_zero_is_padding", f->zero_is_padding);
	json_write_number(w, "max_samples", f->max_samples);
	json_write_number(w, "max_ids", f->max_ids);
	json_write_close(w);
}

void index_write_model(struct json_writer *w, const struct index *index)
{
	const struct embeng_model *model = index->model;

	index_write_engine(w, &model->engine);
	json_write_array(w, "tables");
	for (size_t i = 0; i < model->table_count; i++)
		write_table(w, index, i);
	json_write_close(w);
	json_write_array(w, "features");
	for (size_t i = 0; i < model->feature_count; i++)
		write_feature(w, &model->features[i]);
	json_write_close(w);
}
