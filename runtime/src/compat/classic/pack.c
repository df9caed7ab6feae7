// SPDX-License-Identifier: MIT
/*
 * Steps of the v1 interface: activations are packed per sample and table, and gradients come packed
 * the same way. The functions that tell about a specification are here too.
 *
 * The specification is only read. The gradients of a step are unpacked into the memory that the
 * update reads, which belongs to the session; e->lock is taken only to look at the step.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/divisor.h"
#include "base/error.h"
#include "classic.h"
#include "model/shape.h"
#include "session/session.h"

const struct embeng_model *embeng_classic_model(const struct embeng_classic *c)
{
	return c ? c->model : NULL;
}

const char *embeng_classic_weight_key(const struct embeng_classic *c, size_t feature)
{
	return c && feature < c->feature_count ? c->features[feature].weight_key : NULL;
}

int embeng_classic_settings(const struct embeng_classic *c, struct embeng_tpu_settings *settings)
{
	static const enum embeng_tpu_mode modes[] = {
		[EMBENG_CLASSIC_TRAINING] = EMBENG_TPU_TRAINING,
		[EMBENG_CLASSIC_INFERENCE] = EMBENG_TPU_INFERENCE,
		[EMBENG_CLASSIC_BACKWARD_PASS_ONLY] = EMBENG_TPU_BACKWARD_PASS_ONLY,
	};

	if (!c || !settings || settings->size < sizeof(*settings))
		return fail(-EINVAL, "embeng_classic_settings: the specification, and settings "
				     "with their size, must be given");
	*settings = (struct embeng_tpu_settings){
		.size = settings->size,
		.mode = modes[c->mode],
		.form = EMBENG_TPU_COUNTS,
		.profile_directory = c->profile_directory,
	};
	return 0;
}

static int count_positions(const struct embeng_model *model, size_t feature, int64_t *count)
{
	struct embeng_shape shape;
	int ret = embeng_model_output_shape(model, feature, &shape);

	if (ret)
		return ret;
	*count = shape.rank ? shape_product(shape.dims, shape.rank, false) : 0;
	if (*count > 0)
		return 0;
	return fail(-EINVAL,
		    "feature %s: its output shape is not fully defined; embeng_model_build() "
		    "defines it",
		    embeng_model_feature_name(model, feature));
}

static int count_features(const struct embeng_model *model, int64_t batch, int64_t *num_features)
{
	for (size_t f = 0; f < embeng_model_feature_count(model); f++) {
		struct embeng_feature_config config = {.size = sizeof(config)};
		int64_t count = 0;
		int ret = count_positions(model, f, &count);

		ret = ret ? ret : embeng_model_get_feature(model, f, &config);
		if (!ret && count / batch > INT64_MAX - num_features[config.table])
			ret = fail(-ERANGE, "table %s: num_features is more than 64 bits count",
				   embeng_model_table_name(model, (size_t)config.table));
		if (ret)
			return ret;
		num_features[config.table] += count / batch;
	}
	return 0;
}

int embeng_classic_counts(const struct embeng_model *model, int64_t *batch_size,
			  int64_t *num_features)
{
	size_t tables = embeng_model_table_count(model);
	int64_t batch = 0, count = 0;
	int64_t *counts;
	int ret = 0;

	if (!model || !batch_size || !num_features)
		return fail(-EINVAL, "embeng_classic_counts: all arguments must be given");
	for (size_t f = 0; !ret && f < embeng_model_feature_count(model); f++) {
		ret = count_positions(model, f, &count);
		batch = ret ? batch : (int64_t)common_divisor((uint64_t)batch, (uint64_t)count);
	}
	if (ret)
		return ret;
	counts = calloc(tables + 1, sizeof(*counts));
	if (!counts)
		return fail(-ENOMEM, "no memory for the counts of features");
	ret = count_features(model, batch, counts);
	if (!ret) {
		*batch_size = batch;
		memcpy(num_features, counts, tables * sizeof(*counts));
	}
	free(counts);
	return ret;
}

int embeng_classic_packing(const struct embeng_classic *c, size_t table,
			   struct embeng_classic_packing *packing)
{
	if (!c || !packing)
		return fail(-EINVAL, "embeng_classic_packing: all arguments must be given");
	if (table >= c->table_count)
		return fail(-ENOENT, "there is no table %zu; the specification has %zu", table,
			    c->table_count);
	packing->batch_size = c->batch_size;
	packing->num_features = c->num_features[table];
	packing->dim = c->tables[table].dim;
	return 0;
}

int embeng_classic_place(const struct embeng_classic *c, size_t feature, int64_t *first,
			 int64_t *count)
{
	if (!c || !first || !count)
		return fail(-EINVAL, "embeng_classic_place: all arguments must be given");
	if (feature >= c->feature_count)
		return fail(-ENOENT, "there is no feature %zu; the specification has %zu", feature,
			    c->feature_count);
	*first = c->features[feature].first;
	*count = c->features[feature].count;
	return 0;
}

/* Between a feature's own [batch, places, dim] and its places of the packed samples. */
static void move_places(const struct embeng_classic *c, const struct classic_feature *f,
			float *packed, float *own, bool pack)
{
	size_t dim = (size_t)c->tables[f->index].dim, run = (size_t)f->count * dim;
	size_t sample = (size_t)c->num_features[f->index] * dim;

	for (size_t s = 0; s < (size_t)c->batch_size; s++) {
		float *there = packed + s * sample + (size_t)f->first * dim;

		if (pack)
			memcpy(there, own + s * run, run * sizeof(*own));
		else
			memcpy(own + s * run, there, run * sizeof(*own));
	}
}

static int check_activations(const struct embeng_classic *c, const struct embeng_activations *a)
{
	if (a->count != c->feature_count)
		return fail(-EINVAL,
			    "embeng_classic_pack: activations of %zu features, the "
			    "specification has %zu",
			    a->count, c->feature_count);
	for (size_t f = 0; f < a->count; f++) {
		const struct embeng_view *v = &a->features[f];
		int64_t dim = c->tables[c->features[f].index].dim;

		if (v->shape[0] != c->batch_size || v->shape[v->rank - 1] != dim)
			return fail(-EINVAL,
				    "embeng_classic_pack: feature %s: activations of %" PRId64
				    " samples and dim %" PRId64 ", the specification has %" PRId64
				    " and %" PRId64,
				    c->features[f].name, v->shape[0], v->shape[v->rank - 1],
				    c->batch_size, dim);
	}
	return 0;
}

static int check_pack(const struct embeng_classic *c, const struct embeng_activations *a,
		      size_t table, const float *data, size_t elements)
{
	struct embeng_classic_packing p;
	uint64_t wanted;
	int ret;

	if (!c || !a || !data)
		return fail(-EINVAL, "embeng_classic_pack: all arguments must be given");
	if (c->mode == EMBENG_CLASSIC_BACKWARD_PASS_ONLY)
		return fail(-EPROTO, "embeng_classic_pack: the mode is that of the backward pass "
				     "alone, which has no activations");
	ret = embeng_classic_packing(c, table, &p);
	if (ret)
		return ret;
	if (__builtin_mul_overflow((uint64_t)p.batch_size, (uint64_t)p.num_features, &wanted) ||
	    __builtin_mul_overflow(wanted, (uint64_t)p.dim, &wanted) || elements < wanted)
		return fail(-EINVAL,
			    "embeng_classic_pack: room for %zu floats, table %s has [%" PRId64
			    ", %" PRId64 ", %" PRId64 "]",
			    elements, c->tables[table].name, p.batch_size, p.num_features, p.dim);
	return check_activations(c, a);
}

int embeng_classic_pack(const struct embeng_classic *c, const struct embeng_activations *a,
			size_t table, float *data, size_t elements)
{
	int ret = check_pack(c, a, table, data, elements);

	for (size_t f = 0; !ret && f < c->feature_count; f++) {
		/* Only read, since it packs. */
		if (c->features[f].index == table)
			move_places(c, &c->features[f], data,
				    (float *)(uintptr_t)a->features[f].data, true);
	}
	return ret;
}

/* -- gradients ----------------------------------------------------------- */

static int check_packed_gradients(const struct embeng_classic *c, const struct embeng *e,
				  const struct embeng_classic_gradients *g)
{
	if (!c || !e || !g || g->size < sizeof(*g))
		return fail(-EINVAL, "embeng_classic_apply: the specification, the engine, and "
				     "gradients with their size, must be given");
	if (c->mode == EMBENG_CLASSIC_INFERENCE)
		return fail(-EPROTO, "embeng_classic_apply: only in the mode of training are "
				     "gradients sent; the mode is inference");
	if (g->table_count != c->table_count || !g->tables)
		return fail(-EINVAL,
			    "embeng_classic_apply: gradients of %zu tables, the "
			    "specification has %zu",
			    g->tables ? g->table_count : 0, c->table_count);
	return 0;
}

static bool is_dequeued(struct embeng *e, uint32_t replica)
{
	bool found;

	pthread_mutex_lock(&e->lock);
	found = session_view(e, replica) != NULL;
	pthread_mutex_unlock(&e->lock);
	return found;
}

/*
 * In the mode of the backward pass alone the program never dequeues, so it is done here: once, also
 * if the gradients were refused before.
 */
static int skip_activations(const struct embeng_classic *c, struct embeng *e, uint32_t replica,
			    int64_t timeout_ns)
{
	struct embeng_activations a = {.size = sizeof(a)};
	int ret = session_check_replica(e, replica, "embeng_classic_apply");

	if (ret || c->mode != EMBENG_CLASSIC_BACKWARD_PASS_ONLY || is_dequeued(e, replica))
		return ret;
	return embeng_dequeue(e, replica, timeout_ns, &a);
}

/* In the memory that the update reads, so that nothing is copied twice. */
static int unpack_gradients(const struct embeng_classic *c, struct embeng *e,
			    const struct embeng_classic_gradients *g, const float **features)
{
	for (size_t f = 0; f < c->feature_count; f++) {
		const float *packed = g->tables[c->features[f].index];
		float *own;

		if (!packed)
			continue;
		own = embeng_gradient_buffer(e, g->replica, (int)f);
		if (!own)
			return -EPROTO;
		/* Only read, since it unpacks. */
		move_places(c, &c->features[f], (float *)(uintptr_t)packed, own, false);
		features[f] = own;
	}
	return 0;
}

static int apply_unpacked(const struct embeng_classic *c, struct embeng *e,
			  const struct embeng_classic_gradients *g, const float **features,
			  int64_t timeout_ns)
{
	const struct embeng_gradients step = {
		.size = sizeof(step),
		.replica = g->replica,
		.count = c->feature_count,
		.features = features,
		.rates = g->rates,
		.rate_count = g->rate_count,
		.multiplier = g->multiplier,
		.has_multiplier = g->has_multiplier,
	};
	int ret = skip_activations(c, e, g->replica, timeout_ns);

	ret = ret ? ret : unpack_gradients(c, e, g, features);
	return ret ? ret : embeng_apply_gradients(e, &step, timeout_ns);
}

int embeng_classic_apply(const struct embeng_classic *c, struct embeng *e,
			 const struct embeng_classic_gradients *g, int64_t timeout_ns)
{
	const float **features;
	int ret = check_packed_gradients(c, e, g);

	if (!ret && embeng_model_hash(embeng_get_model(e)) != embeng_model_hash(c->model))
		ret = fail(-EINVAL, "embeng_classic_apply: the engine has another model than the "
				    "specification");
	if (ret)
		return ret;
	features = calloc(c->feature_count + 1, sizeof(*features));
	if (!features)
		return fail(-ENOMEM, "no memory for the gradients of a step");
	ret = apply_unpacked(c, e, g, features, timeout_ns);
	free(features);
	return ret;
}
