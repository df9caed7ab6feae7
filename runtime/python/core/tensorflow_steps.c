// SPDX-License-Identifier: MIT
/*
 * The kernels of TensorFlow's operators for steps: enqueue, dequeue, apply gradients, in the order that
 * session.h checks. They are a file of their own because theirs is another interface of the engine than
 * that of lookups and updates (tensorflow_kernels.c).
 *
 * They run on TensorFlow's threads, without Python. Ids and gradients are read where TensorFlow has them.
 * Activations are copied once, from the engine's memory into TensorFlow's outputs: TensorFlow may keep its
 * tensors for longer than the engine keeps a view. A kernel holds nothing between its runs and has no
 * locks; session.c has one. A run waits for other threads as long as its attribute says, and no longer.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session.h"
#include "tensorflow.h"

#define MS_NS 1000000ll

/* -- settings -------------------------------------------------------------------------- */

static int read_timeout(struct tf_kernel *kernel, struct tf_construction *made,
			struct tf_status *status)
{
	int64_t ms = 0;

	tf.get_attr_int(made, "timeout_ms", &ms, status);
	if (tf_failed(status))
		return -1;
	if (ms < 0 || __builtin_mul_overflow(ms, MS_NS, &kernel->step.timeout_ns))
		return tf_refuse(status, "timeout_ms is out of its range");
	return 0;
}

static int read_enqueue(struct tf_kernel *kernel, struct tf_construction *made,
			struct tf_status *status)
{
	struct tf_step *step = &kernel->step;
	int32_t count;

	if (read_timeout(kernel, made, status) || tf_read_forms(kernel, made, status) ||
	    tf_check_positions(kernel, status) || tf_refuse_padding(kernel, status))
		return -1;
	tf.get_attr_int(made, "mode", &step->mode, status);
	if (tf_failed(status))
		return -1;
	count = (int32_t)kernel->count;
	step->samples = tf_read_numbers(made, "samples", &count, status);
	step->replica_count = -1;
	if (step->samples)
		step->replicas = tf_read_numbers(made, "replicas", &step->replica_count, status);
	if (!step->replicas)
		return -1;
	if (step->replica_count < 1 || count % step->replica_count)
		return tf_refuse(status, "replicas have not as many features each");
	for (int32_t k = 0; k < step->replica_count; k++)
		if (step->replicas[k] < 0 || step->replicas[k] > UINT32_MAX)
			return tf_refuse(status, "there is no such replica");
	return 0;
}

/* The shapes say how many numbers an output has, so they are checked here once. */
static int check_shapes(const struct tf_step *step, int32_t dim_count, struct tf_status *status)
{
	int64_t used = 0;

	for (int32_t k = 0; k < step->shape_count; k++) {
		int64_t elements = sizeof(float);

		if (step->ranks[k] < 1 || step->ranks[k] > EMBENG_MAX_RANK + 1 ||
		    used + step->ranks[k] > dim_count)
			return tf_refuse(status, "a shape has too few or too many dimensions");
		for (int64_t i = 0; i < step->ranks[k]; i++, used++)
			if (step->dims[used] < 0 ||
			    __builtin_mul_overflow(elements, step->dims[used], &elements))
				return tf_refuse(status, "a shape is negative, or too large");
	}
	return used == dim_count ? 0 : tf_refuse(status, "shapes have not as many dimensions");
}

static int read_dequeue(struct tf_kernel *kernel, struct tf_construction *made,
			struct tf_status *status)
{
	struct tf_step *step = &kernel->step;
	int32_t dim_count = -1;
	int64_t outputs = 0;

	if (read_timeout(kernel, made, status) || tf_read_replica(kernel, made, status))
		return -1;
	tf.get_attr_int(made, "N", &outputs, status);
	if (tf_failed(status))
		return -1;
	step->shape_count = -1;
	step->ranks = tf_read_numbers(made, "ranks", &step->shape_count, status);
	if (step->ranks)
		step->dims = tf_read_numbers(made, "dims", &dim_count, status);
	if (!step->dims)
		return -1;
	if (outputs != step->shape_count)
		return tf_refuse(status, "there is not one shape for each output");
	return check_shapes(step, dim_count, status);
}

/* Features have neither forms nor inputs of ids here. */
static int read_apply(struct tf_kernel *kernel, struct tf_construction *made,
		      struct tf_status *status)
{
	if (read_timeout(kernel, made, status) || tf_read_replica(kernel, made, status) ||
	    tf_read_rates(kernel, made, status))
		return -1;
	return tf_read_indices(kernel, made, status);
}

void *tf_make_enqueue(struct tf_construction *made)
{
	return tf_kernel_make(made, read_enqueue);
}

void *tf_make_dequeue(struct tf_construction *made)
{
	return tf_kernel_make(made, read_dequeue);
}

void *tf_make_apply(struct tf_construction *made)
{
	return tf_kernel_make(made, read_apply);
}

/* -- runs ------------------------------------------------------------------------------ */

static struct session_call make_step_call(const struct tf_kernel *kernel,
					  struct embeng_error *error)
{
	return (struct session_call){
		.engine = kernel->handle, .timeout_ns = kernel->step.timeout_ns, .error = error};
}

static int enqueue_run(struct tf_run *run, struct session_feature *features,
		       struct session_batch *batches)
{
	const struct tf_kernel *kernel = run->kernel;
	size_t replicas = (size_t)kernel->step.replica_count, each = kernel->count / replicas;
	struct embeng_error error = EMBENG_INIT(embeng_error);
	struct session_call call = make_step_call(kernel, &error);

	for (size_t k = 0; k < kernel->count; k++)
		features[k] = (struct session_feature){.input = run->features[k],
						       .samples = kernel->step.samples[k],
						       .weighted = kernel->features[k].weighted,
						       .sequence = kernel->features[k].sequence};
	for (size_t k = 0; k < replicas; k++)
		batches[k] = (struct session_batch){.replica = (uint32_t)kernel->step.replicas[k],
						    .features = features + k * each,
						    .count = each};
	if (raw_session_enqueue(&call, batches, replicas, kernel->step.mode))
		return tf_report_step(run->status, &error);
	return 0;
}

void tf_compute_enqueue(void *made, struct tf_context *context)
{
	struct tf_run run = {.kernel = made, .context = context, .status = tf.new_status()};
	struct session_feature *features = calloc(run.kernel->count + 1, sizeof(*features));
	struct session_batch *batches = calloc((size_t)run.kernel->step.replica_count + 1,
					       sizeof(*batches));

	if (!features || !batches)
		tf_report_no_memory(run.status);
	else if (!tf_take_forms(&run, 1, 0, 0))
		enqueue_run(&run, features, batches);
	tf_run_end(&run);
	free(features);
	free(batches);
}

/* An output of each shape; it is made before the batch is dequeued, which then cannot fail for memory. */
static int place_views(struct tf_run *run)
{
	const struct tf_step *step = &run->kernel->step;
	const int64_t *shape = step->dims;

	for (int32_t k = 0; k < step->shape_count; k++) {
		size_t elements = 1;

		for (int64_t i = 0; i < step->ranks[k]; i++)
			elements *= (size_t)shape[i];
		tf_place_output(run, k, shape, (int)step->ranks[k], elements);
		if (tf_failed(run->status))
			return -1;
		shape += step->ranks[k];
	}
	return 0;
}

static int copy_activations_to(struct tf_run *run, size_t at, const struct embeng_view *view)
{
	int64_t elements = 1, wanted = tf.element_count(run->outputs[at]);
	char text[160];

	for (size_t k = 0; k < view->rank; k++)
		elements *= view->shape[k];
	if (elements != wanted) {
		snprintf(text, sizeof(text),
			 "InvalidError: output %zu has a shape of %" PRId64
			 " numbers, and the batch has %" PRId64 " activations",
			 at, wanted, elements);
		return tf_refuse(run->status, text);
	}
	if (elements)
		memcpy(tf.tensor_data(run->outputs[at]), view->data,
		       (size_t)elements * sizeof(float));
	return 0;
}

static void dequeue_run(struct tf_run *run)
{
	size_t count = (size_t)run->kernel->step.shape_count;
	struct embeng_error error = EMBENG_INIT(embeng_error);
	struct session_call call = make_step_call(run->kernel, &error);
	struct session_view view;
	int ret = 0;

	if (raw_session_dequeue(&call, run->kernel->replica, &view)) {
		tf_report_step(run->status, &error);
		return;
	}
	if (view.activations.count != count)
		ret = tf_refuse(run->status, "InvalidError: the operator has not an output for "
					     "each feature of its engine");
	for (size_t k = 0; !ret && k < count; k++)
		ret = copy_activations_to(run, k, &view.activations.features[k]);
	raw_session_end_view(&view);
}

void tf_compute_dequeue(void *made, struct tf_context *context)
{
	struct tf_run run = {.kernel = made, .context = context, .status = tf.new_status()};

	if (!tf_run_begin(&run, 0, run.kernel->step.shape_count) && !place_views(&run))
		dequeue_run(&run);
	tf_run_end(&run);
}

static int apply_run(struct tf_run *run, struct session_gradient *gradients,
		     struct embeng_rate *rates)
{
	const struct tf_kernel *kernel = run->kernel;
	struct embeng_error error = EMBENG_INIT(embeng_error);
	struct session_call call = make_step_call(kernel, &error);

	for (size_t k = 0; k < kernel->count; k++) {
		const struct tf_tensor *tensor = run->inputs[k];
		int rank = tf.num_dims(tensor);

		gradients[k] = (struct session_gradient){
			.feature = kernel->features[k].index,
			.data = tf.tensor_data(tensor),
			.elements = (size_t)tf.element_count(tensor),
			.columns = rank ? tf.dim(tensor, rank - 1) : -1,
		};
	}
	if (tf_take_rates(run, (int)kernel->count, rates))
		return -1;
	if (raw_session_apply(&call, kernel->replica, gradients, kernel->count, rates,
			      kernel->rates.count))
		return tf_report_step(run->status, &error);
	return 0;
}

void tf_compute_apply(void *made, struct tf_context *context)
{
	struct tf_run run = {.kernel = made, .context = context, .status = tf.new_status()};
	size_t count = run.kernel->count, rate_count = run.kernel->rates.count;
	struct session_gradient *gradients = calloc(count + 1, sizeof(*gradients));
	struct embeng_rate *rates = calloc(rate_count + 1, sizeof(*rates));

	if (!gradients || !rates)
		tf_report_no_memory(run.status);
	else if (tf.num_inputs(context) != (int)(count + rate_count) + 1)
		tf_refuse(run.status, "the operator's inputs are not those of its attributes");
	else if (!tf_run_begin(&run, (int)(count + rate_count), 0))
		apply_run(&run, gradients, rates);
	tf_run_end(&run);
	free(gradients);
	free(rates);
}
