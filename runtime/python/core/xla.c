// SPDX-License-Identifier: MIT
/*
 * Functions that programs of XLA call: lookups, gradients that wait, updates. They read and write the
 * buffers of XLA themselves, on its threads, without Python; errors are XLA's, with embeng's sentence.
 * embeng.jax registers them, as capsules of this module; xla_tensorflow.c registers them for TensorFlow.
 *
 * Attributes of each: engine (its handle), and of its features, in the order of the buffers, features
 * (indices), forms (enum below) and padding; programs of TensorFlow have tensorflow, too. The buffers of
 * a feature are its ids, its bounds and weights where forms says so, and its gradient where the function
 * takes one. The first argument and the last result are a token: they do nothing but order the calls.
 */
#include "core.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pending.h"
#include "raw.h"
#include "xla_abi.h"

/* Bits of an entry of forms, which embeng/jax/_layout.py knows, too. */
enum {
	FORM_BOUNDS = 3, /* 0: an array of ids, one a sample or [samples, ids]; else 1 + form */
	FORM_WEIGHTS = 4,
	FORM_PADDING = 8,
	FORM_POSITIONS = 16,
};

struct xla_call {
	const struct xla_frame *frame;
	int64_t engine;
	const int64_t *numbers, *forms, *padding; /* [count] */
	size_t count;
	struct raw_feature *features; /* [count] */
	int64_t argument;	      /* the next one */
	struct embeng_error error;
};

/* -- attributes -------------------------------------------------------------------------- */

static const void *find_attribute(const struct xla_frame *frame, const char *name, int type)
{
	const struct xla_attributes *a = &frame->attributes;
	size_t length = strlen(name);

	for (int64_t k = 0; k < a->count; k++)
		if (a->names[k]->length == length && !memcmp(a->names[k]->data, name, length))
			return a->types[k] == type ? a->items[k] : NULL;
	return NULL;
}

/* -- errors --------------------------------------------------------------------------- */

static int choose_code(int code)
{
	switch (-code) {
	case EINVAL:
	case EEXIST:
		return XLA_INVALID_ARGUMENT;
	case ERANGE:
		return XLA_OUT_OF_RANGE;
	case ENOENT:
		return XLA_NOT_FOUND;
	case ENODEV:
	case EPROTO:
	case EBUSY:
	case EDEADLK:
		return XLA_FAILED_PRECONDITION;
	case ETIME:
		return XLA_DEADLINE_EXCEEDED;
	case ENOMEM:
	case ENOSPC:
	case EDQUOT:
		return XLA_RESOURCE_EXHAUSTED;
	case ENOTSUP:
		return XLA_UNIMPLEMENTED;
	case EINTR:
		return XLA_CANCELLED;
	default:
		return XLA_UNKNOWN;
	}
}

/* TensorFlow's loops over data take XLA_OUT_OF_RANGE for the end of their data, in silence. */
static int choose_frame_code(const struct xla_frame *frame, int code)
{
	if (code == -ERANGE && find_attribute(frame, "tensorflow", XLA_ATTRIBUTE_SCALAR))
		return XLA_INVALID_ARGUMENT;
	return choose_code(code);
}

/* The errno stands before the sentence, so that embeng.jax can tell the class of the exception. */
static struct xla_error *make_xla_error(const struct xla_frame *frame,
					const struct embeng_error *error)
{
	char text[EMBENG_ERROR_TEXT + 64];
	struct xla_error_arguments arguments = {.size = sizeof(arguments), .message = text};

	snprintf(text, sizeof(text), "embeng error %d: %s", error->code, error->text);
	arguments.code = choose_frame_code(frame, error->code);
	return frame->functions->create_error(&arguments);
}

static int refuse_call(struct xla_call *call, const char *text)
{
	call->error.code = -EINVAL;
	snprintf(call->error.text, sizeof(call->error.text),
		 "%s; programs are made by embeng.jax of the same version", text);
	return -EINVAL;
}

/* -- frames --------------------------------------------------------------------------- */

/* XLA asks for the version with a frame that has nothing else. */
static bool answer_metadata(const struct xla_frame *frame)
{
	for (struct xla_extension *e = frame->extensions; e; e = e->next) {
		struct xla_metadata *metadata;

		if (e->type != XLA_EXTENSION_METADATA)
			continue;
		metadata = ((struct xla_metadata_extension *)e)->metadata;
		metadata->version.major = XLA_MAJOR;
		metadata->version.minor = XLA_MINOR;
		metadata->traits = 0;
		return true;
	}
	return false;
}

static const int64_t *find_numbers(struct xla_call *call, const char *name)
{
	const struct xla_array *array = find_attribute(call->frame, name, XLA_ATTRIBUTE_ARRAY);

	if (!array || array->type != XLA_S64)
		return NULL;
	if (!call->numbers)
		call->count = array->count;
	return array->count == call->count ? array->data : NULL;
}

static int begin_xla_call(struct xla_call *call, const struct xla_frame *frame)
{
	const struct xla_scalar *engine = find_attribute(frame, "engine", XLA_ATTRIBUTE_SCALAR);

	call->frame = frame;
	call->error.size = sizeof(call->error);
	call->numbers = find_numbers(call, "features");
	call->forms = find_numbers(call, "forms");
	call->padding = find_numbers(call, "padding");
	if (!engine || engine->type != XLA_S64 ||
	    (call->count && (!call->numbers || !call->forms || !call->padding)))
		return refuse_call(call, "the call has not the attributes of its features");
	memcpy(&call->engine, engine->value, sizeof(call->engine));
	call->features = calloc(call->count + 1, sizeof(*call->features));
	if (call->features)
		return 0;
	refuse_call(call, "no memory for the features of a call");
	return call->error.code = -ENOMEM;
}

static const struct xla_buffer *get_buffer(const struct xla_buffers *buffers, int64_t at)
{
	if (at < 0 || at >= buffers->count || buffers->types[at] != XLA_BUFFER)
		return NULL;
	return buffers->items[at];
}

static size_t count_items(const struct xla_buffer *buffer)
{
	size_t count = 1;

	for (int64_t k = 0; k < buffer->rank; k++)
		count *= (size_t)buffer->shape[k];
	return count;
}

static const struct xla_buffer *next_buffer(struct xla_call *call)
{
	return get_buffer(&call->frame->arguments, call->argument++);
}

static bool take_floats(struct xla_call *call, const float **data, size_t *count)
{
	const struct xla_buffer *buffer = next_buffer(call);

	if (!buffer || buffer->type != XLA_F32)
		return false;
	*data = buffer->data;
	*count = count_items(buffer);
	return true;
}

/* One number of f32. */
static int take_scalar(struct xla_call *call, float *number)
{
	const float *data;
	size_t count;

	if (!take_floats(call, &data, &count) || count != 1)
		return refuse_call(call, "a scalar of the call is not there");
	*number = *data;
	return 0;
}

/* -- features ------------------------------------------------------------------------- */

static bool read_integers(const struct xla_buffer *buffer, enum embeng_id_type *type)
{
	if (!buffer || (buffer->type != XLA_S32 && buffer->type != XLA_S64))
		return false;
	*type = buffer->type == XLA_S32 ? EMBENG_I32 : EMBENG_I64;
	return true;
}

static bool take_ids(struct xla_call *call, struct embeng_bags *bags, int64_t form)
{
	const struct xla_buffer *ids = next_buffer(call), *bounds;

	if (!read_integers(ids, &bags->type))
		return false;
	bags->ids = ids->data;
	bags->id_count = count_items(ids);
	if (form & FORM_BOUNDS) {
		bounds = next_buffer(call);
		if (!read_integers(bounds, &bags->bound_type))
			return false;
		bags->form = (enum embeng_bags_form)((form & FORM_BOUNDS) - 1);
		bags->bounds = bounds->data;
		bags->bound_count = count_items(bounds);
		return true;
	}
	if (ids->rank < 1 || ids->rank > 2)
		return false;
	bags->form = EMBENG_BAGS_EVEN;
	bags->length = ids->rank == 2 ? ids->shape[1] : 1;
	bags->bound_count = (size_t)ids->shape[0];
	return true;
}

static int take_feature(struct xla_call *call, size_t at, bool with_gradient)
{
	struct raw_feature *f = &call->features[at];
	int64_t form = call->forms[at];

	f->feature = (int)call->numbers[at];
	f->positions = (form & FORM_POSITIONS) != 0;
	f->bags.has_padding = (form & FORM_PADDING) != 0;
	f->bags.padding = call->padding[at];
	if (!take_ids(call, &f->bags, form))
		return refuse_call(call, "the ids of a feature are of no kind that it takes");
	if ((form & FORM_WEIGHTS) && !take_floats(call, &f->bags.weights, &f->bags.weight_count))
		return refuse_call(call, "the weights of a feature are not f32");
	if (with_gradient && !take_floats(call, &f->gradient, &f->gradient_elements))
		return refuse_call(call, "the gradient of a feature is not f32");
	return 0;
}

static int take_features(struct xla_call *call, bool with_gradient)
{
	for (size_t k = 0; k < call->count; k++)
		if (take_feature(call, k, with_gradient))
			return -1;
	return 0;
}

static float *get_result(struct xla_call *call, int64_t at, size_t *count)
{
	const struct xla_buffer *buffer = get_buffer(&call->frame->results, at);

	if (!buffer || buffer->type != XLA_F32)
		return NULL;
	*count = count_items(buffer);
	return buffer->data;
}

/* Writes the last result. */
static int give_token(struct xla_call *call, float token)
{
	size_t count = 0;
	float *result = get_result(call, call->frame->results.count - 1, &count);

	if (!result || count != 1)
		return refuse_call(call, "the token of the call is not there");
	*result = token;
	return 0;
}

/* -- functions ------------------------------------------------------------------------- */

typedef int (*xla_fn)(struct xla_call *call);

static struct xla_error *run_xla_call(const struct xla_frame *frame, xla_fn run)
{
	struct xla_call call = {0};
	struct xla_error *failed = NULL;

	if (answer_metadata(frame) || frame->stage != XLA_STAGE_EXECUTE)
		return NULL;
	if (begin_xla_call(&call, frame) || run(&call))
		failed = make_xla_error(frame, &call.error);
	free(call.features);
	return failed;
}

static int run_xla_lookup(struct xla_call *call)
{
	float token;

	if (take_scalar(call, &token) || take_features(call, false))
		return -1;
	for (size_t k = 0; k < call->count; k++) {
		struct embeng_output *output = &call->features[k].output;

		output->data = get_result(call, (int64_t)k, &output->elements);
		if (!output->data && output->elements)
			return refuse_call(call, "the activations of a feature are not f32");
		if (!output->elements)
			*output = (struct embeng_output){0};
	}
	if (raw_lookup(call->engine, call->features, call->count, &call->error))
		return -1;
	return give_token(call, token);
}

/* Arguments: the pushes before this one, the part, features with gradients. */
static int run_xla_push(struct xla_call *call)
{
	float before, part;

	if (take_scalar(call, &before) || take_scalar(call, &part) || take_features(call, true))
		return -1;
	if (!(part >= 0 && part < (float)(1 << 24)))
		return refuse_call(call, "the part of gradients that wait is below 0 or too large");
	if (pending_push(call->engine, (uint32_t)part, call->features, call->count, &call->error))
		return -1;
	return give_token(call, before + 1);
}

/* The names of rates are one text, a line for each; the values are one array. */
static int take_rates(struct xla_call *call, struct embeng_rate *rates, char *names, size_t room,
		      size_t *count)
{
	const struct xla_text *text = find_attribute(call->frame, "rates", XLA_ATTRIBUTE_STRING);
	const float *values;
	size_t given;

	if (!text || text->length >= room || !take_floats(call, &values, &given))
		return refuse_call(call, "the rates of the call are not there, or too many");
	memcpy(names, text->data, text->length);
	names[text->length] = '\0';
	*count = 0;
	for (char *name = names, *end; *name; name = end) {
		end = name + strcspn(name, "\n");
		if (*end)
			*end++ = '\0';
		if (*count == given)
			break;
		rates[*count] = (struct embeng_rate){.name = name, .value = values[*count]};
		*count += 1;
	}
	return *count == given ? 0 : refuse_call(call, "the rates have not as many names");
}

#define RATES_MOST 256
#define RATE_NAMES_ROOM 16384

struct xla_step {
	struct raw_step step;
	struct embeng_rate rates[RATES_MOST];
	char names[RATE_NAMES_ROOM];
};

static int take_step(struct xla_call *call, struct xla_step *to)
{
	const struct xla_buffer *rates;

	memset(&to->step, 0, sizeof(to->step));
	if (take_scalar(call, &to->step.multiplier))
		return -1;
	to->step.has_multiplier = true;
	rates = get_buffer(&call->frame->arguments, call->argument);
	if (rates && count_items(rates) > RATES_MOST)
		return refuse_call(call, "there are more than 256 rates");
	to->step.rates = to->rates;
	return take_rates(call, to->rates, to->names, sizeof(to->names), &to->step.rate_count);
}

/* Arguments: token, the pushes that there are, multiplier, rates. */
static int run_xla_apply(struct xla_call *call)
{
	struct xla_step step;
	float token, expected;

	if (take_scalar(call, &token) || take_scalar(call, &expected) || take_step(call, &step))
		return -1;
	if (!(expected >= 0 && expected == (float)(size_t)expected)) {
		refuse_call(call, "");
		call->error.code = -EPROTO;
		snprintf(call->error.text, sizeof(call->error.text),
			 "the gradient of the state is %g, which is no number of lookups: it was "
			 "scaled, averaged or clipped; leave the state out of that",
			 (double)expected);
		return -1;
	}
	if (pending_apply(call->engine, (size_t)expected, &step.step, &call->error))
		return -1;
	return give_token(call, token + (expected > 0));
}

/* Arguments: token, multiplier, rates, features with gradients. */
static int run_xla_update(struct xla_call *call)
{
	struct xla_step step;
	float token;

	if (take_scalar(call, &token) || take_step(call, &step) || take_features(call, true) ||
	    raw_update(call->engine, call->features, call->count, &step.step, &call->error))
		return -1;
	return give_token(call, token + 1);
}

/* Results: for each feature with weights their gradients. */
static int run_xla_weights(struct xla_call *call)
{
	int64_t result = 0;
	float token;

	if (take_scalar(call, &token) || take_features(call, true))
		return -1;
	for (size_t k = 0; k < call->count; k++) {
		size_t count = 0;

		if (!(call->forms[k] & FORM_WEIGHTS))
			continue;
		call->features[k].weight_gradient = get_result(call, result++, &count);
		if (count != call->features[k].bags.id_count)
			return refuse_call(call, "the gradients of weights have another shape");
	}
	if (raw_weight_gradients(call->engine, call->features, call->count, &call->error))
		return -1;
	return give_token(call, token);
}

static int run_xla_drop(struct xla_call *call)
{
	float token;
	int64_t count;

	if (take_scalar(call, &token))
		return -1;
	count = pending_drop(call->engine, &call->error);
	return count < 0 ? -1 : give_token(call, token);
}

static struct xla_error *look_up_xla(struct xla_frame *frame)
{
	return run_xla_call(frame, run_xla_lookup);
}

static struct xla_error *push_xla(struct xla_frame *frame)
{
	return run_xla_call(frame, run_xla_push);
}

static struct xla_error *apply_xla(struct xla_frame *frame)
{
	return run_xla_call(frame, run_xla_apply);
}

static struct xla_error *update_xla(struct xla_frame *frame)
{
	return run_xla_call(frame, run_xla_update);
}

static struct xla_error *differentiate_xla(struct xla_frame *frame)
{
	return run_xla_call(frame, run_xla_weights);
}

static struct xla_error *drop_xla(struct xla_frame *frame)
{
	return run_xla_call(frame, run_xla_drop);
}

const struct xla_target xla_target_list[XLA_TARGETS] = {
	{"embeng_lookup", look_up_xla},	       {"embeng_push", push_xla},
	{"embeng_apply", apply_xla},	       {"embeng_update", update_xla},
	{"embeng_weights", differentiate_xla}, {"embeng_drop", drop_xla},
};

PyObject *xla_targets(PyObject *module, PyObject *unused)
{
	PyObject *dict = PyDict_New();

	(void)module;
	(void)unused;
	for (size_t k = 0; dict && k < XLA_TARGETS; k++) {
		/* XLA takes capsules of this name. */
		PyObject *capsule = PyCapsule_New((void *)xla_target_list[k].function,
						  "xla._CUSTOM_CALL_TARGET", NULL);

		if (settings_set(dict, xla_target_list[k].name, capsule))
			Py_CLEAR(dict);
	}
	return dict;
}
