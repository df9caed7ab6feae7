// SPDX-License-Identifier: MIT
/*
 * The rules of the Keras layer for optimizers: which classes it takes, their settings and defaults,
 * and the names of their slots. There is one row of a table for each class.
 *
 * The tables are constant and only arguments are touched; any thread may call.
 */
#include <stddef.h>
#include <string.h>

#include "base/check.h"
#include "optimizer.h"
#include "embeng/keras.h"

#define KERAS(member) offsetof(struct embeng_keras_optimizer, member)
#define OURS(member) offsetof(struct embeng_optimizer, member)

enum setting_kind { NUMBER, SWITCH };

/*
 * struct setting - a setting of a class
 * @name: as Keras has it
 * @at: in &struct embeng_keras_optimizer
 * @kind: float or unsigned char
 * @start: default
 * @to: the float of &struct embeng_optimizer that takes it; 0: none, only the default will do
 */
struct setting {
	const char *name;
	size_t at;
	enum setting_kind kind;
	float start;
	size_t to;
};

#define SETTINGS_MAX 7
#define TAKEN(member, start) {#member, KERAS(member), NUMBER, start, OURS(member)}
#define REFUSED(member, kind, start) {#member, KERAS(member), kind, start, 0}

/*
 * struct layer_class - an optimizer that the layer knows
 * @name: the name of the class
 * @text: the short name that stands for it, in embeng_optimizer_by_name() too
 * @kind: enum embeng_optimizer_name
 * @rate: the default of both
 * @settings: up to the one without a name
 */
/* clang-format off */
static const struct layer_class {
	const char *name, *text;
	enum embeng_optimizer_name kind;
	float rate;
	struct setting settings[SETTINGS_MAX];
} classes[] = {
	{"SGD", "sgd", EMBENG_SGD, 0.01f, {
		REFUSED(decay, NUMBER, 0.0f),
		REFUSED(momentum, NUMBER, 0.0f),
		REFUSED(nesterov, SWITCH, 0.0f),
	}},
	{"Adagrad", "adagrad", EMBENG_ADAGRAD, 0.001f, {
		TAKEN(initial_accumulator_value, 0.1f),
		REFUSED(epsilon, NUMBER, 1e-7f),
	}},
	{"Adam", "adam", EMBENG_ADAM, 0.001f, {
		TAKEN(beta_1, 0.9f),
		TAKEN(beta_2, 0.999f),
		TAKEN(epsilon, 1e-7f),
		REFUSED(decay, NUMBER, 0.0f),
		REFUSED(amsgrad, SWITCH, 0.0f),
	}},
	{"Ftrl", "ftrl", EMBENG_FTRL, 0.001f, {
		TAKEN(learning_rate_power, -0.5f),
		TAKEN(l1_regularization_strength, 0.0f),
		TAKEN(l2_regularization_strength, 0.0f),
		TAKEN(beta, 0.0f),
		TAKEN(initial_accumulator_value, 0.1f),
		REFUSED(l2_shrinkage_regularization_strength, NUMBER, 0.0f),
	}},
};
/* clang-format on */

#define CLASSES (sizeof(classes) / sizeof(classes[0]))

static const struct {
	enum embeng_optimizer_name kind;
	const char *slot, *name;
} slots[] = {
	{EMBENG_ADAGRAD, "accumulators", "accumulator"},
	{EMBENG_ADAM, "momenta", "m"},
	{EMBENG_ADAM, "velocities", "v"},
	{EMBENG_FTRL, "accumulators", "accumulator"},
	{EMBENG_FTRL, "linears", "linear"},
};

int embeng_keras_by_name(const char *name, struct embeng_optimizer *optimizer)
{
	if (!name || !optimizer)
		return fail(-EINVAL,
			    "embeng_keras_by_name: the name and where it goes must be given");
	for (size_t i = 0; i < CLASSES; i++) {
		if (!strcmp(classes[i].text, name))
			return embeng_optimizer_by_name(name, classes[i].rate, optimizer);
	}
	return fail(-ENOENT,
		    "Unknown optimizer name '%.60s'. Please use one of 'sgd', 'adagrad', "
		    "'adam', or 'ftrl'",
		    name);
}

int embeng_keras_accept(const struct embeng_optimizer *optimizer)
{
	const char *name;

	if (!optimizer)
		return fail(-EINVAL, "embeng_keras_accept: an optimizer must be given");
	for (size_t i = 0; i < CLASSES; i++) {
		if (optimizer->kind == classes[i].kind &&
		    !(optimizer->kind == EMBENG_ADAM && optimizer->bias_correction) &&
		    !(optimizer->kind == EMBENG_ADAGRAD && optimizer->epsilon > 0.0f))
			return 0;
	}
	name = embeng_optimizer_text(optimizer->kind);
	return fail(-EINVAL,
		    "Unknown optimizer type %s%s. The layer takes sgd, adagrad without epsilon, "
		    "ftrl, and adam without bias_correction",
		    name ? name : "(none)",
		    optimizer->kind == EMBENG_ADAM	? " with bias_correction"
		    : optimizer->kind == EMBENG_ADAGRAD ? " with epsilon"
							: "");
}

static const struct layer_class *class_find(const char *name)
{
	for (size_t i = 0; i < CLASSES; i++) {
		if (!strcmp(classes[i].name, name))
			return &classes[i];
	}
	fail(-ENOENT,
	     "Keras optimizer %.60s is unsupported for TPU Embedding; there are SGD, Adagrad, "
	     "Adam and Ftrl",
	     name);
	return NULL;
}

int embeng_keras_defaults(const char *class_name, struct embeng_keras_optimizer *keras)
{
	const struct layer_class *class;

	if (!class_name || !keras)
		return fail(-EINVAL,
			    "embeng_keras_defaults: the class and where its settings go must "
			    "be given");
	class = class_find(class_name);
	if (!class)
		return -ENOENT;
	*keras = (struct embeng_keras_optimizer){
		.size = sizeof(*keras), .class_name = class_name, .learning_rate = class->rate};
	for (const struct setting *s = class->settings; s->name; s++) {
		if (s->kind == NUMBER)
			*(float *)((char *)keras + s->at) = s->start;
	}
	return 0;
}

static int refuse_parameter(const char *name)
{
	return fail(-EINVAL,
		    "Optimizer parameter %s is unsupported for TPU embeddings. Please "
		    "construct a new optimizer for embedding, with %s as it is by default",
		    name, name);
}

static float setting_value(const struct embeng_keras_optimizer *keras, const struct setting *s)
{
	const void *at = (const char *)keras + s->at;

	return s->kind == NUMBER ? *(const float *)at : *(const unsigned char *)at != 0;
}

static int settings_check(const struct embeng_keras_optimizer *keras,
			  const struct layer_class *class)
{
	if (keras->has_clipnorm)
		return refuse_parameter("clipnorm");
	if (keras->has_clipvalue)
		return refuse_parameter("clipvalue");
	for (const struct setting *s = class->settings; s->name; s++) {
		if (!s->to && setting_value(keras, s) != s->start)
			return refuse_parameter(s->name);
	}
	return 0;
}

static int class_translate(const struct embeng_keras_optimizer *keras,
			   const struct layer_class *class, struct embeng_optimizer *optimizer)
{
	struct embeng_optimizer o;
	int code = settings_check(keras, class);

	if (!code)
		code = embeng_optimizer_by_name(class->text, keras->learning_rate, &o);
	if (code)
		return code;
	o.rate_name = keras->rate_name;
	for (const struct setting *s = class->settings; s->name; s++) {
		if (s->to)
			*(float *)((char *)&o + s->to) = setting_value(keras, s);
	}
	code = optimizer_check(class->name, &o, 1);
	if (!code)
		*optimizer = o;
	return code;
}

int embeng_keras_translate(const struct embeng_keras_optimizer *keras,
			   struct embeng_optimizer *optimizer)
{
	struct embeng_keras_optimizer k;
	const struct layer_class *class;
	int code;

	if (!optimizer)
		return fail(-EINVAL, "embeng_keras_translate: optimizer must be given");
	code = config_take(&k, keras, sizeof(k), "embeng_keras_optimizer");
	if (code)
		return code;
	if (k.new_style)
		return fail(-EINVAL,
			    "New Keras optimizer cannot work with TPUEmbedding, please set "
			    "your optimizer as a tf.keras.optimizers.legacy.Optimizer");
	if (!k.class_name)
		return fail(-EINVAL, "embeng_keras_translate: class_name is missing");
	class = class_find(k.class_name);
	return class ? class_translate(&k, class, optimizer) : -ENOENT;
}

const char *embeng_keras_slot(enum embeng_optimizer_name kind, const char *slot)
{
	for (size_t i = 0; slot && i < sizeof(slots) / sizeof(slots[0]); i++) {
		if (slots[i].kind == kind && !strcmp(slots[i].slot, slot))
			return slots[i].name;
	}
	return NULL;
}
