/* SPDX-License-Identifier: MIT */
/*
 * Lookups and updates of plain memory, for code that runs without an interpreter. Engines are given
 * by their numbers (handles.h), features by their indices in the engine.
 *
 * Functions return 0, or a negative errno with @error filled. Any thread may call them at any time,
 * also while the engine is closed. Updates of one engine run one after another.
 */
#ifndef EMBENG_PYTHON_RAW_H
#define EMBENG_PYTHON_RAW_H

#include "handles.h"

/*
 * One feature of a call. Those that are not given have no samples.
 *
 * The input is @bags; with @indices it is a matrix of coordinates, of which @bags has type, ids and
 * weights; with @positions each of the ids of @bags is a sample of one id, also of a sequence feature.
 */
struct raw_feature {
	int feature;
	bool positions;
	struct embeng_bags bags;
	const int64_t *indices; /* [ids][rank], or NULL */
	const int64_t *shape;	/* [rank] */
	size_t rank;
	struct embeng_output output; /* raw_lookup(): where activations go */
	const float *gradient;	     /* in the activations' shape; NULL: zeros */
	size_t gradient_elements;    /* floats behind @gradient, checked */
	float *weight_gradient;	     /* raw_weight_gradients(): [ids], NULL: not wanted */
};

/* The arguments of an update beside its gradients; zeros are the defaults. */
struct raw_step {
	uint32_t replica;
	const struct embeng_rate *rates;
	size_t rate_count;
	bool has_multiplier;
	float multiplier;
};

/* Looks features up into the memory of @output of each. */
int raw_lookup(int64_t engine, const struct raw_feature *features, size_t count,
	       struct embeng_error *error);
/* Gives the rows of the features their gradients: a step of the optimizers. */
int raw_update(int64_t engine, const struct raw_feature *features, size_t count,
	       const struct raw_step *step, struct embeng_error *error);
/* Computes the gradients of the weights of ids: embeng_weight_gradients(). */
int raw_weight_gradients(int64_t engine, const struct raw_feature *features, size_t count,
			 struct embeng_error *error);
/* The norm of the gradients of the tables' rows: embeng_gradient_norm(). */
int raw_gradient_norm(int64_t engine, const struct raw_feature *features, size_t count,
		      double *norm, struct embeng_error *error);
/* Columns of a feature's rows, and rows of a sample: 0, or those of a sequence feature. */
int raw_measure(int64_t engine, int feature, int64_t *dim, int64_t *sequence_length,
		struct embeng_error *error);

/* Gives a batch the input of a feature. Return: as embeng_batch_bags(), with the library's last error. */
int raw_feature_give(struct embeng_batch *batch, const struct raw_feature *feature);

/* Frees the calls that an engine keeps, before it is shut. */
void raw_calls_free(struct open_engine *open);

#endif
