/* SPDX-License-Identifier: MIT */
/* The choice of a lookup's form, the forms that are short to compile, and scales. */
#ifndef ENGINE_KERNELS_BODY_LOOKUP_FORMS_H
#define ENGINE_KERNELS_BODY_LOOKUP_FORMS_H

#include "body_lookup.h"
#include "scale.h"

/*
 * By a copy of the work: for all a compiler knows, what is written to @out changes the caller's,
 * and bags of one read it as often as rows. Others than streamed lookups take longer with the copy.
 */
INLINE bool lookup_streamed(const struct kernel_bag_work *w, u64 first, u64 last, const bool narrow)
{
	const struct kernel_bag_work copy = *w;

	return lookup_samples(&copy, first, last,
			      (struct lookup_form){ false, false, true, narrow });
}

/*
 * Packed rows of a dim that is known while compiling: nothing is read anew or multiplied for each
 * row, in whose place more rows are fetched. Streamed lookups take longer so.
 */
INLINE bool lookup_usual(const struct kernel_bag_work *w, u64 first, u64 last, const u32 dim,
			 const struct lookup_form form)
{
	struct kernel_bag_work copy = *w;

	copy.dim = dim;
	copy.stride = dim;
	copy.out_stride = dim;
	return lookup_samples(&copy, first, last, form);
}

/* Those of usual dims and those that stream are short, and stay in this file. */
#define LOOKUP_OWN(NAME, CALL) \
	static __attribute__((__noinline__)) bool NAME(const struct kernel_bag_work *w, u64 first, \
						       u64 last) \
	{ \
		return CALL; \
	}
#define LOOKUP_USUAL(DIM, WEIGHTED, NARROW) \
	LOOKUP_OWN(lookup_##DIM##_##WEIGHTED##_##NARROW, \
		   lookup_usual(w, first, last, DIM, \
				(struct lookup_form){ WEIGHTED, false, false, NARROW }))
#define LOOKUP_OF_DIM(DIM) \
	LOOKUP_USUAL(DIM, false, false) \
	LOOKUP_USUAL(DIM, false, true) \
	LOOKUP_USUAL(DIM, true, false) \
	LOOKUP_USUAL(DIM, true, true)

USUAL_DIMS(LOOKUP_OF_DIM)
LOOKUP_OWN(lookup_streamed_false, lookup_streamed(w, first, last, false))
LOOKUP_OWN(lookup_streamed_true, lookup_streamed(w, first, last, true))

/* By whether there are weights, and whether rows are narrow. */
#define LOOKUP_PICK(PREFIX) \
	(w->weights ? w->narrow ? PREFIX##_true_true : PREFIX##_true_false : \
	 w->narrow  ? PREFIX##_false_true : \
		      PREFIX##_false_false)
#define LOOKUP_CASE(DIM) \
	case DIM: \
		return LOOKUP_PICK(lookup_##DIM);

static lookup_fn *choose_lookup(const struct kernel_bag_work *w)
{
	const bool packed = w->stride == w->dim && w->out_stride == w->dim;

	if (w->quantization)
		return w->narrow ? KERNEL(lookup_quantized_narrow) : KERNEL(lookup_quantized);
	if (VEC_STREAMS && w->stream && !w->weights)
		return w->narrow ? lookup_streamed_true : lookup_streamed_false;
	switch (packed ? w->dim : 0) {
		USUAL_DIMS(LOOKUP_CASE)
	default:
		break;
	}
	if (w->weights)
		return w->narrow ? KERNEL(lookup_weighted_narrow) : KERNEL(lookup_weighted);
	return w->narrow ? KERNEL(lookup_any_narrow) : KERNEL(lookup_any);
}

bool KERNEL(lookup)(const struct kernel_bag_work *w, u64 first, u64 last)
{
	bool unfinite = choose_lookup(w)(w, first, last);

	if (VEC_STREAMS && w->stream)
		vec_stream_end();
	return unfinite;
}

/* The denominator of a bag, or its square, as scale_add() says. */
INLINE double sum_of_weights(const struct kernel_scale_work *w, u64 first, u64 end)
{
	double sum = w->weights ? 0.0 : (double)(end - first);

	for (u64 k = first; w->weights && k < end; k++)
		sum = scale_add(w->combiner, sum, w->weights[k]);
	return sum;
}

void KERNEL(scales)(const struct kernel_scale_work *w, u64 first, u64 last)
{
	for (u64 s = first; s < last; s++) {
		u64 begin = w->bag[s], end = w->bag[s + 1];
		double sum = w->combiner == KERNEL_SUM ? 1.0 : sum_of_weights(w, begin, end);
		float all = w->combiner == KERNEL_SUM ? 1.0f : scale_of(w->combiner, sum);

		if (scale_overflows(all)) {
			kernel_stretch_bag(w, s);
			continue;
		}
		if (w->scales)
			w->scales[s] = all;
		for (u64 k = begin; w->coef && k < end; k++)
			w->coef[k] = w->weights ? all * w->weights[k] : all;
	}
}

#endif
