// SPDX-License-Identifier: MIT
/*
 * The kernels of TensorFlow's operators: lookups, updates, and gradients of weights by the number of an
 * engine; tensorflow_steps.c has those of steps. They are a file of their own because they run on
 * TensorFlow's threads, without Python: ids and gradients are read where TensorFlow has them, activations
 * are written into its outputs.
 *
 * A run finds the engine by its number (raw.h), and all else that it holds is its own: one kernel may run
 * on several threads at once. There are no locks here.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "raw.h"
#include "tensorflow.h"

/* -- a run's inputs -------------------------------------------------------------------- */

int tf_run_begin(struct tf_run *run, int inputs, int outputs)
{
	int count = tf.num_inputs(run->context);

	if (count < inputs)
		return tf_refuse(run->status, "the operator's inputs are not those of its forms");
	run->inputs = calloc((size_t)inputs + 1, sizeof(*run->inputs));
	run->outputs = calloc((size_t)outputs + 1, sizeof(*run->outputs));
	run->features = calloc(run->kernel->count + 1, sizeof(*run->features));
	if (!run->inputs || !run->outputs || !run->features)
		return tf_report_no_memory(run->status);
	run->output_count = outputs;
	for (int k = 0; k < inputs; k++) {
		tf.get_input(run->context, k, &run->inputs[k], run->status);
		if (tf_failed(run->status))
			return -1;
		run->input_count++;
	}
	return 0;
}

void tf_run_end(struct tf_run *run)
{
	for (int k = 0; k < run->input_count; k++)
		tf.delete_tensor(run->inputs[k]);
	for (int k = 0; k < run->output_count; k++)
		if (run->outputs[k])
			tf.delete_tensor(run->outputs[k]);
	if (tf_failed(run->status))
		tf.fail_context(run->context, run->status);
	free(run->inputs);
	free(run->outputs);
	free(run->features);
	tf.delete_status(run->status);
}

static int fail_input(const struct tf_run *run, size_t at, const char *what)
{
	char text[160];

	snprintf(text, sizeof(text), "feature %d of engine %lld: %s",
		 run->kernel->features[at].index, (long long)run->kernel->handle, what);
	return tf_refuse(run->status, text);
}

static enum embeng_id_type read_type(const struct tf_tensor *tensor)
{
	return tf.tensor_type(tensor) == TF_TYPE_INT32 ? EMBENG_I32 : EMBENG_I64;
}

static int take_bounds(struct tf_run *run, size_t at, struct embeng_bags *bags)
{
	const struct tf_feature *feature = &run->kernel->features[at];
	const struct tf_tensor *bounds = run->inputs[feature->bounds_at];

	if (tf.num_dims(bounds) != 1 || tf.num_dims(run->inputs[at]) != 1)
		return fail_input(run, at, "ids and their splits or lengths have one dimension");
	bags->form = feature->form == FORM_SPLITS ? EMBENG_BAGS_SPLITS : EMBENG_BAGS_LENGTHS;
	bags->bound_type = read_type(bounds);
	bags->bounds = tf.tensor_data(bounds);
	bags->bound_count = (size_t)tf.element_count(bounds);
	return 0;
}

static int take_matrix(struct tf_run *run, size_t at, struct embeng_bags *bags)
{
	const struct tf_tensor *ids = run->inputs[at];

	if (tf.num_dims(ids) != 2)
		return fail_input(run, at, "the ids are no matrix of [samples, ids]");
	bags->form = EMBENG_BAGS_EVEN;
	bags->bound_count = (size_t)tf.dim(ids, 0);
	bags->length = tf.dim(ids, 1);
	return 0;
}

static int take_coordinates(struct tf_run *run, size_t at, struct raw_feature *to)
{
	const struct tf_feature *feature = &run->kernel->features[at];
	const struct tf_tensor *indices = run->inputs[feature->bounds_at];
	const struct tf_tensor *shape = run->inputs[feature->bounds_at + 1];
	int64_t rank = tf.element_count(shape);

	if (tf.tensor_type(indices) != TF_TYPE_INT64 || tf.tensor_type(shape) != TF_TYPE_INT64)
		return fail_input(run, at, "indices and shape of a sparse tensor are int64");
	if (rank < 2 || rank > EMBENG_MAX_RANK)
		return fail_input(run, at,
				  "the shape of a sparse tensor has too few or too many numbers");
	if (tf.num_dims(indices) != 2 || tf.dim(indices, 1) != rank ||
	    /* tensorflow_entries.c refuses another number of them, by the feature's name. */
	    (tf.dim(indices, 0) != tf.element_count(run->inputs[at]) &&
	     !run->kernel->lists.names.count))
		return fail_input(run, at, "the indices are not [values, rank]");
	to->indices = tf.tensor_data(indices);
	to->shape = tf.tensor_data(shape);
	to->rank = (size_t)rank;
	for (size_t k = 0; k < to->rank; k++)
		if (to->shape[k] < 0)
			return fail_input(run, at, "the shape has a negative number");
	return 0;
}

static int take_form(struct tf_run *run, size_t at)
{
	const struct tf_feature *feature = &run->kernel->features[at];
	struct raw_feature *to = &run->features[at];
	struct embeng_bags *bags = &to->bags;

	to->feature = feature->index;
	bags->type = read_type(run->inputs[at]);
	bags->ids = tf.tensor_data(run->inputs[at]);
	bags->id_count = (size_t)tf.element_count(run->inputs[at]);
	bags->has_padding = feature->padded;
	bags->padding = feature->padding;
	if (feature->weighted) {
		bags->weights = tf.tensor_data(run->inputs[feature->weights_at]);
		bags->weight_count = (size_t)tf.element_count(run->inputs[feature->weights_at]);
		/* session_forms.c and entries.c refuse those of their operators, by the feature's name. */
		if (bags->weight_count != bags->id_count && !run->kernel->step.samples)
			return fail_input(run, at, "there are not as many weights as ids");
	}
	if (feature->form == FORM_EVEN)
		return take_matrix(run, at, bags);
	if (feature->form == FORM_SPARSE)
		return take_coordinates(run, at, to);
	to->positions = feature->form == FORM_DENSE;
	return to->positions ? 0 : take_bounds(run, at, bags);
}

int tf_take_forms(struct tf_run *run, size_t more, size_t given, size_t outputs)
{
	int inputs = run->kernel->gradients_at + (int)given;

	if (tf.num_inputs(run->context) != run->kernel->gradients_at + (int)more)
		return tf_refuse(run->status, "the operator's inputs are not those of its forms");
	if (tf_run_begin(run, inputs, (int)outputs))
		return -1;
	for (size_t k = 0; k < run->kernel->count; k++)
		if (take_form(run, k))
			return -1;
	return 0;
}

/* All inputs are taken, and there is an output for each feature. */
static int take_all_forms(struct tf_run *run, size_t more)
{
	return tf_take_forms(run, more, more, run->kernel->count);
}

void *tf_place_numbers(struct tf_run *run, int at, int type, const int64_t *shape, int rank,
		       size_t elements)
{
	run->outputs[at] = tf.allocate_output(run->context, at, type, shape, rank,
					      elements * sizeof(float), run->status);
	if (tf_failed(run->status))
		return NULL;
	return tf.tensor_data(run->outputs[at]);
}

float *tf_place_output(struct tf_run *run, int at, const int64_t *shape, int rank, size_t elements)
{
	return tf_place_numbers(run, at, TF_TYPE_FLOAT, shape, rank, elements);
}

/* -- lookups ----------------------------------------------------------------------------- */

/* The shape of a feature's activations. Return: its rank, or -1 if it is too large. */
static int shape_activations(const struct tf_run *run, size_t at, int64_t *shape)
{
	const struct tf_feature *feature = &run->kernel->features[at];
	const struct raw_feature *from = &run->features[at];
	const struct embeng_bags *bags = &from->bags;
	int rank = 0, dims = tf.num_dims(run->inputs[at]);

	if (feature->form == FORM_DENSE) {
		if (dims > EMBENG_MAX_RANK)
			return -1;
		for (; rank < dims; rank++)
			shape[rank] = tf.dim(run->inputs[at], rank);
	} else if (feature->form == FORM_SPARSE) {
		for (; rank < (int)from->rank - 1; rank++)
			shape[rank] = from->shape[rank];
	} else {
		shape[rank++] = (int64_t)bags->bound_count;
		if (feature->form == FORM_SPLITS && shape[0] > 0)
			shape[0]--;
	}
	if (feature->sequence_length && feature->form != FORM_DENSE && rank == 1)
		shape[rank++] = feature->sequence_length;
	shape[rank++] = feature->dim;
	return rank;
}

static int place_activations(struct tf_run *run, size_t at)
{
	int64_t shape[EMBENG_MAX_RANK + 2], elements = 1, bytes;
	int rank = shape_activations(run, at, shape);
	bool large = rank < 0;
	float *data;

	for (int k = 0; k < rank; k++)
		large |= __builtin_mul_overflow(elements, shape[k], &elements);
	if (large || __builtin_mul_overflow(elements, (int64_t)sizeof(float), &bytes))
		return fail_input(run, at, "its activations are too many");
	data = tf_place_output(run, (int)at, shape, rank, (size_t)elements);
	if (tf_failed(run->status))
		return -1;
	run->features[at].output.data = elements ? data : NULL;
	run->features[at].output.elements = (size_t)elements;
	return 0;
}

void tf_compute_lookup(void *made, struct tf_context *context)
{
	struct tf_run run = {.kernel = made, .context = context, .status = tf.new_status()};
	struct embeng_error error = EMBENG_INIT(embeng_error);
	int ret = take_all_forms(&run, 0);

	for (size_t k = 0; !ret && k < run.kernel->count; k++)
		ret = place_activations(&run, k);
	if (!ret && raw_lookup(run.kernel->handle, run.features, run.kernel->count, &error))
		tf_report(run.status, &error);
	tf_run_end(&run);
}

/* -- gradients ---------------------------------------------------------------------------- */

void tf_take_gradients(struct tf_run *run)
{
	for (size_t k = 0; k < run->kernel->count; k++) {
		const struct tf_tensor *gradient = run->inputs[run->kernel->gradients_at + (int)k];

		run->features[k].gradient = tf.tensor_data(gradient);
		run->features[k].gradient_elements = (size_t)tf.element_count(gradient);
	}
}

static int read_scalar(const struct tf_run *run, const struct tf_tensor *tensor, float *number)
{
	if (tf.element_count(tensor) != 1)
		return tf_refuse(run->status, "a rate or the multiplier is not one number");
	memcpy(number, tf.tensor_data(tensor), sizeof(*number));
	return 0;
}

int tf_take_rates(struct tf_run *run, int at, struct embeng_rate *rates)
{
	for (size_t k = 0; k < run->kernel->rates.count; k++) {
		rates[k].name = run->kernel->rates.items[k];
		if (read_scalar(run, run->inputs[at + (int)k], &rates[k].value))
			return -1;
	}
	return 0;
}

/* The rates and then the multiplier are behind the gradients. */
static int take_update(struct tf_run *run, struct embeng_rate *rates, struct raw_step *step)
{
	int at = run->kernel->gradients_at + (int)run->kernel->count;

	if (tf_take_rates(run, at, rates))
		return -1;
	at += (int)run->kernel->rates.count;
	step->replica = run->kernel->replica;
	step->rates = rates;
	step->rate_count = run->kernel->rates.count;
	if (read_scalar(run, run->inputs[at], &step->multiplier))
		return -1;
	step->has_multiplier = step->multiplier != 1;
	return 0;
}

void tf_compute_update(void *made, struct tf_context *context)
{
	struct tf_run run = {.kernel = made, .context = context, .status = tf.new_status()};
	struct embeng_error error = EMBENG_INIT(embeng_error);
	size_t count = run.kernel->count, rate_count = run.kernel->rates.count;
	struct embeng_rate *rates = calloc(rate_count + 1, sizeof(*rates));
	struct raw_step step = {0};
	int ret = rates ? 0 : tf_report_no_memory(run.status);

	ret = ret ? ret : take_all_forms(&run, count + rate_count + 1);
	if (!ret) {
		tf_take_gradients(&run);
		ret = take_update(&run, rates, &step);
	}
	if (!ret && raw_update(run.kernel->handle, run.features, count, &step, &error))
		tf_report(run.status, &error);
	tf_run_end(&run);
	free(rates);
}

static int place_weight_gradients(struct tf_run *run, size_t at)
{
	const struct tf_feature *feature = &run->kernel->features[at];
	const struct tf_tensor *weights = run->inputs[feature->weights_at];
	int64_t shape[EMBENG_MAX_RANK], count = tf.element_count(weights);
	int rank = tf.num_dims(weights);
	float *data;

	if (rank > EMBENG_MAX_RANK)
		return fail_input(run, at, "its weights have too many dimensions");
	for (int k = 0; k < rank; k++)
		shape[k] = tf.dim(weights, k);
	data = tf_place_output(run, feature->weight_number, shape, rank, (size_t)count);
	if (tf_failed(run->status))
		return -1;
	run->features[at].weight_gradient = count ? data : NULL;
	return 0;
}

void tf_compute_weight_gradients(void *made, struct tf_context *context)
{
	struct tf_run run = {.kernel = made, .context = context, .status = tf.new_status()};
	struct embeng_error error = EMBENG_INIT(embeng_error);
	int ret = take_all_forms(&run, run.kernel->count);

	if (!ret)
		tf_take_gradients(&run);
	for (size_t k = 0; !ret && k < run.kernel->count; k++)
		if (run.kernel->features[k].weighted)
			ret = place_weight_gradients(&run, k);
	if (!ret &&
	    raw_weight_gradients(run.kernel->handle, run.features, run.kernel->count, &error))
		tf_report(run.status, &error);
	tf_run_end(&run);
}

/* The norm is one number of f64. */
static double *place_norm(struct tf_run *run)
{
	run->outputs[0] = tf.allocate_output(run->context, 0, TF_TYPE_DOUBLE, NULL, 0,
					     sizeof(double), run->status);
	return tf_failed(run->status) ? NULL : tf.tensor_data(run->outputs[0]);
}

void tf_compute_gradient_norm(void *made, struct tf_context *context)
{
	struct tf_run run = {.kernel = made, .context = context, .status = tf.new_status()};
	struct embeng_error error = EMBENG_INIT(embeng_error);
	double *norm = NULL;

	if (!take_all_forms(&run, run.kernel->count)) {
		tf_take_gradients(&run);
		norm = place_norm(&run);
	}
	if (norm &&
	    raw_gradient_norm(run.kernel->handle, run.features, run.kernel->count, norm, &error))
		tf_report(run.status, &error);
	tf_run_end(&run);
}

void *tf_make_reader(struct tf_construction *made)
{
	return tf_kernel_make(made, tf_read_features);
}

void *tf_make_updater(struct tf_construction *made)
{
	return tf_kernel_make(made, tf_read_update);
}
