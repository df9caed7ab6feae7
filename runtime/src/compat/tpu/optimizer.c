// SPDX-License-Identifier: MIT
/*
 * Translates an optimizer to OptimizationParameters and back, by the table of kinds.c.
 *
 * A struct tpu_parameters has all messages in one piece and belongs to the caller. No lock is
 * needed.
 */
#include "kinds.h"

static void member_fill(const struct tpu_member *m, const struct embeng_optimizer *o, void *message)
{
	const void *from = (const char *)o + m->ours;
	void *to = (char *)message + m->theirs;

	switch (m->type) {
	case MEMBER_NUMBER:
		*(float *)to = *(const float *)from;
		break;
	case MEMBER_SWITCH:
		*(protobuf_c_boolean *)to = *(const unsigned char *)from != 0;
		break;
	case MEMBER_TRISTATE:
		*(protobuf_c_boolean *)to = *(const enum embeng_tristate *)from == EMBENG_ON;
		break;
	case MEMBER_NOT_TRISTATE:
		*(protobuf_c_boolean *)to = *(const enum embeng_tristate *)from == EMBENG_OFF;
		break;
	}
}

static void member_read(const struct tpu_member *m, const void *message, struct embeng_optimizer *o)
{
	const void *from = (const char *)message + m->theirs;
	void *to = (char *)o + m->ours;

	switch (m->type) {
	case MEMBER_NUMBER:
		*(float *)to = *(const float *)from;
		break;
	case MEMBER_SWITCH:
		*(unsigned char *)to = *(const protobuf_c_boolean *)from != 0;
		break;
	case MEMBER_TRISTATE:
		*(enum embeng_tristate *)to = *(const protobuf_c_boolean *)from ? EMBENG_ON
										: EMBENG_OFF;
		break;
	case MEMBER_NOT_TRISTATE:
		*(enum embeng_tristate *)to = *(const protobuf_c_boolean *)from ? EMBENG_OFF
										: EMBENG_ON;
		break;
	}
}

static Tpu__FloatValue *limit_fill(Tpu__FloatValue *to, bool has, float value)
{
	tpu__float_value__init(to);
	to->value = value;
	return has ? to : NULL;
}

Tpu__ClippingLimits *tpu_limits_fill(struct tpu_limits *to, bool has_min, float min, bool has_max,
				     float max)
{
	tpu__clipping_limits__init(&to->message);
	to->message.lower = limit_fill(&to->lower, has_min, min);
	to->message.upper = limit_fill(&to->upper, has_max, max);
	return has_min || has_max ? &to->message : NULL;
}

static void rate_fill(struct tpu_parameters *to, const struct embeng_optimizer *o, int32_t tag)
{
	tpu__learning_rate__init(&to->rate);
	tpu__dynamic_hyper_parameter__init(&to->tag);
	if (o->rate_name) {
		to->tag.tag = tag;
		to->rate.rate_case = TPU__LEARNING_RATE__RATE_DYNAMIC;
		to->rate.dynamic = &to->tag;
	} else {
		to->rate.rate_case = TPU__LEARNING_RATE__RATE_CONSTANT;
		to->rate.constant = o->learning_rate;
	}
	to->message.learning_rate = &to->rate;
}

/* Fills the settings that all kinds have. */
static void common_fill(Tpu__OptimizationParameters *to, const struct embeng_optimizer *o)
{
	to->gradient_accumulation_status = o->use_gradient_accumulation == EMBENG_OFF
						   ? TPU__STATUS__DISABLED
						   : TPU__STATUS__ENABLED;
	if (o->low_dimensional_packing)
		to->low_dimensional_packing_status = TPU__STATUS__ENABLED;
	to->weight_decay_factor = o->weight_decay_factor;
	/* Without a factor there is nothing to multiply, and others do not say it either. */
	to->multiply_weight_decay_factor_by_learning_rate = o->weight_decay_factor != 0.0f &&
							    o->multiply_weight_decay_by_rate;
}

static void step_counter_fill(struct tpu_parameters *to, const struct embeng_optimizer *o,
			      int32_t tag)
{
	if (o->kind != EMBENG_FREQUENCY_AWARE_ADAGRAD || !o->step_counter)
		return;
	tpu__dynamic_hyper_parameter__init(&to->step);
	to->step.tag = tag;
	to->kind.frequency_aware_adagrad.step_counter = &to->step;
}

/* A setting that the protobuf has no place for, or NULL. */
static const char *find_own_setting(const struct embeng_optimizer *o)
{
	if (o->dynamic_count)
		return "dynamic hyperparameters";
	if (o->kind == EMBENG_ADAGRAD && o->epsilon > 0.0f)
		return "epsilon above 0";
	if (o->weight_decay_in_gradient && o->weight_decay_factor > 0.0f)
		return "weight_decay_in_gradient";
	if (o->scale_by_frequency)
		return "scale_by_frequency";
	return o->max_norm > 0.0f ? "max_norm above 0" : NULL;
}

int tpu_parameters_fill(struct tpu_parameters *to, const struct embeng_optimizer *optimizer,
			struct tpu_tags tags, const char *where)
{
	const struct tpu_kind *kind = tpu_kind_of(optimizer->kind);
	struct embeng_optimizer o = *optimizer;

	if (!kind || (o.kind == EMBENG_ADAM && o.bias_correction))
		return fail(-ENOTSUP, "%s: the protobuf has no optimizer %s%s", where,
			    embeng_optimizer_text(o.kind),
			    kind ? " with bias_correction; give it the corrected rate instead, "
				   "step by step"
				 : "");
	if (find_own_setting(&o))
		return fail(-ENOTSUP, "%s: the protobuf has no optimizer %s with %s", where,
			    embeng_optimizer_text(o.kind), find_own_setting(&o));
	optimizer_resolve(&o);
	tpu__optimization_parameters__init(&to->message);
	common_fill(&to->message, &o);
	rate_fill(to, &o, tags.rate);
	to->message.clipping_limits = tpu_limits_fill(&to->weights, o.has_clip_weight_min,
						      o.clip_weight_min, o.has_clip_weight_max,
						      o.clip_weight_max);
	to->message.gradient_clipping_limits = tpu_limits_fill(
		&to->gradients, o.has_clip_min, o.clip_min, o.has_clip_max, o.clip_max);
	protobuf_c_message_init(kind->message, &to->kind);
	for (size_t i = 0; i < kind->count; i++)
		member_fill(&kind->members[i], &o, &to->kind);
	step_counter_fill(to, &o, tags.step);
	to->message.parameters_case = kind->theirs;
	to->message.adagrad = &to->kind.adagrad; /* any of them: all are pointers */
	return 0;
}

static void limit_read(const Tpu__FloatValue *from, unsigned char *has, float *value)
{
	*has = from != NULL;
	*value = from ? from->value : 0.0f;
}

static void clips_read(const Tpu__OptimizationParameters *from, struct embeng_optimizer *o)
{
	const Tpu__ClippingLimits *weights = from->clipping_limits;
	const Tpu__ClippingLimits *gradients = from->gradient_clipping_limits;

	if (weights) {
		limit_read(weights->lower, &o->has_clip_weight_min, &o->clip_weight_min);
		limit_read(weights->upper, &o->has_clip_weight_max, &o->clip_weight_max);
	}
	if (gradients) {
		limit_read(gradients->lower, &o->has_clip_min, &o->clip_min);
		limit_read(gradients->upper, &o->has_clip_max, &o->clip_max);
	}
}

static int rate_read(const struct tpu_place *place, const Tpu__LearningRate *from, bool optional,
		     float *rate, int32_t *tag)
{
	struct tpu_place here = {place, "learning_rate", -1};
	char text[TPU_PATH];

	*tag = TPU_NO_TAG;
	*rate = 0.0f;
	if (!from || !from->rate_case)
		return optional ? 0
				: fail(-EINVAL, "%s: it is missing; constant or dynamic is needed",
				       tpu_path(text, &here));
	if (from->rate_case == TPU__LEARNING_RATE__RATE_CONSTANT) {
		*rate = from->constant;
		return 0;
	}
	*tag = from->dynamic->tag;
	if (*tag < 0)
		return fail(-ERANGE, "%s.dynamic.tag: %d is below 0", tpu_path(text, &here), *tag);
	return 0;
}

/* Its kind, or a sentence that names what this library has not. */
static int kind_read(const struct tpu_place *place, const Tpu__OptimizationParameters *from,
		     const struct tpu_kind **kind)
{
	const ProtobufCFieldDescriptor *field;
	char text[TPU_PATH];

	*kind = tpu_kind_in(from->parameters_case);
	if (*kind)
		return 0;
	field = protobuf_c_message_descriptor_get_field(from->base.descriptor,
							from->parameters_case);
	if (!field)
		return fail(-EINVAL, "%s: it names no optimizer",
			    place ? tpu_path(text, place) : "OptimizationParameters");
	return fail(-ENOTSUP,
		    "%s%s%s: this libembeng has no such optimizer; see "
		    "embeng-optimizers(7)",
		    tpu_path(text, place), place ? "." : "", field->name);
}

/* Without one the engine counts steps itself. */
static int step_counter_read(const struct tpu_place *place, const Tpu__OptimizationParameters *from,
			     int32_t *tag)
{
	struct tpu_place here = {place, "frequency_aware_adagrad", -1};
	char text[TPU_PATH];

	if (from->parameters_case !=
		    TPU__OPTIMIZATION_PARAMETERS__PARAMETERS_FREQUENCY_AWARE_ADAGRAD ||
	    !from->frequency_aware_adagrad->step_counter)
		return 0;
	*tag = from->frequency_aware_adagrad->step_counter->tag;
	return *tag >= 0 ? 0
			 : fail(-ERANGE, "%s.step_counter.tag: %d is below 0",
				tpu_path(text, &here), *tag);
}

static void common_read(const Tpu__OptimizationParameters *from, struct embeng_optimizer *o)
{
	o->use_gradient_accumulation = from->gradient_accumulation_status == TPU__STATUS__DISABLED
					       ? EMBENG_OFF
					       : EMBENG_ON;
	o->low_dimensional_packing = from->low_dimensional_packing_status == TPU__STATUS__ENABLED;
	o->weight_decay_factor = from->weight_decay_factor;
	o->multiply_weight_decay_by_rate = from->multiply_weight_decay_factor_by_learning_rate;
	clips_read(from, o);
}

int tpu_parameters_read(const struct tpu_place *place, const Tpu__OptimizationParameters *from,
			bool optional, struct embeng_optimizer *optimizer, struct tpu_tags *tags)
{
	const struct tpu_kind *kind = NULL;
	struct embeng_optimizer o = {.size = sizeof(o)};
	float rate = 0.0f;
	int code;

	*tags = (struct tpu_tags){TPU_NO_TAG, TPU_NO_TAG};
	if (optional && (!from || !from->parameters_case)) {
		*optimizer = o;
		return 0;
	}
	code = kind_read(place, from, &kind);
	if (!code)
		code = step_counter_read(place, from, &tags->step);
	if (!code)
		code = rate_read(place, from->learning_rate, optional, &rate, &tags->rate);
	if (!code)
		code = embeng_optimizer_by_name(embeng_optimizer_text(kind->ours), rate, &o);
	if (code)
		return code;
	common_read(from, &o);
	for (size_t i = 0; i < kind->count; i++)
		member_read(&kind->members[i], from->adagrad, &o);
	*optimizer = o;
	return 0;
}
