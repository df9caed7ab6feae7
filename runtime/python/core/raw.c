// SPDX-License-Identifier: MIT
/*
 * Lookups and updates of plain memory by the number of an engine, without Python: what handlers of XLA
 * and kernels of TensorFlow share. Memory is the caller's, and is read and written during the call only.
 *
 * A call's batches and arrays are kept in the engine's list for the next call. open->lock guards the
 * list. A call waits in slices of 100 ms, and ends when the engine was closed meanwhile.
 */
#include "raw.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define SLICE_NS 100000000ll

struct raw_call {
	struct raw_call *next;
	struct embeng_batch *batches[2]; /* by enum embeng_mode */
	uint32_t replicas[2];
	size_t count; /* features of the model */
	struct embeng_output *outputs;
	const float **gradients;
	size_t *elements;
	float **weights;
	size_t *weight_counts;
	bool *given;
};

struct raw_use {
	struct open_engine *open;
	struct raw_call *call;
	struct embeng_batch *batch;
	const struct raw_feature *features;
	size_t count;
	struct embeng_gradients gradients;
	struct embeng_gradient_norms norms;
	struct embeng_error *error;
};

static int refuse_use(struct raw_use *use, int code, const char *text)
{
	use->error->code = code;
	use->error->status = 0;
	snprintf(use->error->text, sizeof(use->error->text), "%s", text);
	return code;
}

/* Takes the library's sentence. */
static int report_use(struct raw_use *use, int code)
{
	if (code)
		embeng_last_error(use->error);
	return code;
}

/* -- calls that are kept -------------------------------------------------------------- */

static void free_raw_call(struct raw_call *call)
{
	embeng_batch_free(call->batches[0]);
	embeng_batch_free(call->batches[1]);
	free(call->outputs);
	free(call->gradients);
	free(call->elements);
	free(call->weights);
	free(call->weight_counts);
	free(call->given);
	free(call);
}

void raw_calls_free(struct open_engine *open)
{
	struct raw_call *call;

	while ((call = open->calls)) {
		open->calls = call->next;
		free_raw_call(call);
	}
}

static struct raw_call *make_raw_call(size_t count)
{
	struct raw_call *call = calloc(1, sizeof(*call));

	if (!call)
		return NULL;
	call->count = count;
	call->outputs = calloc(count + 1, sizeof(*call->outputs));
	call->gradients = calloc(count + 1, sizeof(*call->gradients));
	call->elements = calloc(count + 1, sizeof(*call->elements));
	call->weights = calloc(count + 1, sizeof(*call->weights));
	call->weight_counts = calloc(count + 1, sizeof(*call->weight_counts));
	call->given = calloc(count + 1, sizeof(*call->given));
	if (call->outputs && call->gradients && call->elements && call->weights &&
	    call->weight_counts && call->given)
		return call;
	free_raw_call(call);
	return NULL;
}

/* Calls of before embeng_add_tables() have too few features. */
static struct raw_call *get_raw_call(struct open_engine *open)
{
	size_t count = embeng_model_feature_count(embeng_get_model(open->handle));
	struct raw_call *call;

	pthread_mutex_lock(&open->lock);
	call = open->calls;
	if (call)
		open->calls = call->next;
	pthread_mutex_unlock(&open->lock);
	if (call && call->count != count) {
		free_raw_call(call);
		call = NULL;
	}
	return call ? call : make_raw_call(count);
}

static void put_raw_call(struct open_engine *open, struct raw_call *call)
{
	pthread_mutex_lock(&open->lock);
	call->next = open->calls;
	open->calls = call;
	pthread_mutex_unlock(&open->lock);
}

static int begin_batch(struct raw_use *use, enum embeng_mode mode, uint32_t replica)
{
	struct raw_call *call = use->call;

	if (call->batches[mode] && call->replicas[mode] != replica) {
		embeng_batch_free(call->batches[mode]);
		call->batches[mode] = NULL;
	}
	if (call->batches[mode])
		embeng_batch_reset(call->batches[mode], mode);
	else
		call->batches[mode] = embeng_batch_new(use->open->handle, mode, replica);
	call->replicas[mode] = replica;
	use->batch = call->batches[mode];
	return use->batch ? 0 : report_use(use, -EINVAL);
}

/* -- inputs --------------------------------------------------------------------------- */

int raw_feature_give(struct embeng_batch *batch, const struct raw_feature *f)
{
	struct embeng_bags bags = f->bags;
	int64_t samples = (int64_t)bags.id_count;

	bags.size = sizeof(bags);
	if (f->indices)
		return embeng_batch_sparse(batch, f->feature, bags.type, f->indices, bags.ids,
					   bags.id_count, f->shape, f->rank, bags.weights,
					   bags.weight_count);
	if (f->positions)
		return embeng_batch_dense(batch, f->feature, bags.type, bags.ids, bags.id_count,
					  &samples, 1);
	return embeng_batch_bags(batch, f->feature, &bags);
}

static int take_raw_feature(struct raw_use *use, const struct raw_feature *f)
{
	struct raw_call *call = use->call;
	size_t at = (size_t)f->feature;
	char text[96];

	if (f->feature < 0 || at >= call->count || call->given[at]) {
		snprintf(text, sizeof(text), "feature %d %s; the engine has %zu", f->feature,
			 f->feature >= 0 && at < call->count ? "is given twice" : "is not there",
			 call->count);
		return refuse_use(use, -EINVAL, text);
	}
	call->given[at] = true;
	call->outputs[at] = f->output;
	call->gradients[at] = f->gradient;
	call->elements[at] = f->gradient_elements;
	call->weights[at] = f->weight_gradient;
	call->weight_counts[at] = f->weight_gradient ? f->bags.id_count : 0;
	return report_use(use, raw_feature_give(use->batch, f));
}

static int fill_raw_batch(struct raw_use *use)
{
	const struct embeng_bags empty = {
		.size = sizeof(empty), .form = EMBENG_BAGS_EVEN, .length = 1, .type = EMBENG_I64};
	struct raw_call *call = use->call;
	int ret = 0;

	for (size_t k = 0; k < call->count; k++) {
		call->given[k] = false;
		call->outputs[k] = (struct embeng_output){0};
		call->gradients[k] = NULL;
		call->elements[k] = 0;
		call->weights[k] = NULL;
		call->weight_counts[k] = 0;
	}
	for (size_t k = 0; !ret && k < use->count; k++)
		ret = take_raw_feature(use, &use->features[k]);
	for (size_t k = 0; !ret && k < call->count; k++)
		if (!call->given[k])
			ret = report_use(use, embeng_batch_bags(use->batch, (int)k, &empty));
	return ret;
}

/* -- calls of the library ---------------------------------------------------------------- */

typedef int (*raw_fn)(struct raw_use *use, int64_t timeout_ns);

static bool has_been_closed(struct open_engine *open)
{
	bool closed;

	pthread_mutex_lock(&open->lock);
	closed = open->closed;
	pthread_mutex_unlock(&open->lock);
	return closed;
}

static int wait_raw(struct raw_use *use, raw_fn call)
{
	for (;;) {
		int ret = call(use, SLICE_NS);

		if ((ret == -ETIME || ret == -EINTR) && has_been_closed(use->open))
			return refuse_use(use, -ENODEV, "the engine was closed during the call");
		if (ret != -ETIME)
			return report_use(use, ret);
	}
}

static int run_raw(int64_t engine, struct raw_use *use, enum embeng_mode mode, uint32_t replica,
		   raw_fn call)
{
	int ret;

	use->error->code = 0;
	use->open = open_engine_find(engine, use->error);
	if (!use->open)
		return use->error->code;
	use->call = get_raw_call(use->open);
	if (use->call) {
		ret = begin_batch(use, mode, replica);
		ret = ret ? ret : fill_raw_batch(use);
		ret = ret ? ret : wait_raw(use, call);
		put_raw_call(use->open, use->call);
	} else {
		ret = refuse_use(use, -ENOMEM, "no memory for the arrays of a call");
	}
	open_engine_done(use->open);
	return ret;
}

static int call_lookup(struct raw_use *use, int64_t timeout_ns)
{
	return embeng_lookup(use->open->handle, use->batch, use->call->outputs, use->call->count,
			     timeout_ns);
}

int raw_lookup(int64_t engine, const struct raw_feature *features, size_t count,
	       struct embeng_error *error)
{
	struct raw_use use = {.features = features, .count = count, .error = error};

	return run_raw(engine, &use, EMBENG_INFERENCE, 0, call_lookup);
}

static void point_at_gradients(struct raw_use *use)
{
	use->gradients.size = sizeof(use->gradients);
	use->gradients.count = use->call->count;
	use->gradients.features = use->call->gradients;
	use->gradients.elements = use->call->elements;
}

static int call_update(struct raw_use *use, int64_t timeout_ns)
{
	point_at_gradients(use);
	return open_update(use->open, use->batch, &use->gradients, timeout_ns);
}

int raw_update(int64_t engine, const struct raw_feature *features, size_t count,
	       const struct raw_step *step, struct embeng_error *error)
{
	struct raw_use use = {.features = features, .count = count, .error = error};

	use.gradients.replica = step->replica;
	use.gradients.rates = step->rates;
	use.gradients.rate_count = step->rate_count;
	use.gradients.has_multiplier = step->has_multiplier;
	use.gradients.multiplier = step->multiplier;
	return run_raw(engine, &use, EMBENG_TRAIN, step->replica, call_update);
}

static int call_weight_gradients(struct raw_use *use, int64_t timeout_ns)
{
	(void)timeout_ns;
	point_at_gradients(use);
	return embeng_weight_gradients(use->open->handle, use->batch, &use->gradients,
				       use->call->weights, use->call->weight_counts,
				       use->call->count);
}

int raw_weight_gradients(int64_t engine, const struct raw_feature *features, size_t count,
			 struct embeng_error *error)
{
	struct raw_use use = {.features = features, .count = count, .error = error};

	return run_raw(engine, &use, EMBENG_INFERENCE, 0, call_weight_gradients);
}

static int call_gradient_norm(struct raw_use *use, int64_t timeout_ns)
{
	const struct embeng_gradients *gradients = &use->gradients;

	(void)timeout_ns;
	point_at_gradients(use);
	use->norms.size = sizeof(use->norms);
	return embeng_gradient_norm(use->open->handle, &use->batch, &gradients, 1, &use->norms);
}

int raw_gradient_norm(int64_t engine, const struct raw_feature *features, size_t count,
		      double *norm, struct embeng_error *error)
{
	struct raw_use use = {.features = features, .count = count, .error = error};
	int ret = run_raw(engine, &use, EMBENG_INFERENCE, 0, call_gradient_norm);

	*norm = use.norms.norm;
	return ret;
}

int raw_measure(int64_t engine, int feature, int64_t *dim, int64_t *sequence_length,
		struct embeng_error *error)
{
	struct embeng_feature_config config = EMBENG_INIT(embeng_feature_config);
	struct embeng_table_config table = EMBENG_INIT(embeng_table_config);
	struct raw_use use = {.error = error};
	const struct embeng_model *model;
	int ret = 0;

	use.open = open_engine_find(engine, error);
	if (!use.open)
		return error->code;
	model = embeng_get_model(use.open->handle);
	if (feature < 0 || (size_t)feature >= embeng_model_feature_count(model)) {
		ret = refuse_use(&use, -EINVAL, "there is no feature of this index");
	} else {
		embeng_model_get_feature(model, (size_t)feature, &config);
		embeng_model_get_table(model, (size_t)config.table, &table);
		*dim = table.dim;
		*sequence_length = config.max_sequence_length;
	}
	open_engine_done(use.open);
	return ret;
}
