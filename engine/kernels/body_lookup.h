/* SPDX-License-Identifier: MIT */
/* Part of body.h: pooling, scales. */

/* What is known while compiling. */
struct lookup_form {
	bool weighted, quantized, stream, narrow;
};

INLINE bool lookup_is_zero(const struct kernel_bag_work *w, u64 k, const bool narrow)
{
	return !narrow && w->rows[k] == KERNEL_ROW_ZERO;
}

INLINE const float *lookup_row(const struct kernel_bag_work *w, u64 k, const bool narrow)
{
	u64 row = narrow ? w->narrow[k] : w->rows[k];

	return lookup_is_zero(w, k, narrow) ? w->zero_row : w->table + row * w->stride;
}

INLINE void lookup_fetch_floats(const struct kernel_bag_work *w, u64 k, u64 column, u32 floats,
				const bool narrow, const u32 fetch)
{
	if (lookup_is_zero(w, k, narrow))
		return;
	if (fetch == KERNEL_FETCH_FIRST)
		prefetch_near(lookup_row(w, k, narrow) + column, floats);
	else
		prefetch_floats(lookup_row(w, k, narrow) + column, floats);
}

/* What the turn of occurrence k fetches: of a row that is touched its first line is there since. */
INLINE void lookup_ahead(const struct kernel_bag_work *w, u64 k, u64 column, u32 floats,
			 const bool narrow, const u32 fetch)
{
	const u32 touched = fetch == KERNEL_FETCH_TOUCH && floats > LINE_FLOATS ? LINE_FLOATS : 0;

	if (touched)
		lookup_fetch_floats(w, k + 2 * (u64)w->prefetch, column, touched, narrow, fetch);
	lookup_fetch_floats(w, k + w->prefetch, column + touched, floats - touched, narrow, fetch);
}

/* Occurrences below this one have one to fetch ahead: to ask each of them costs 4 to 14 %. */
INLINE u64 lookup_ahead_end(const struct kernel_bag_work *w, u64 ahead, u64 end)
{
	u64 last = w->rows_count > ahead ? w->rows_count - ahead : 0;

	if (!ahead)
		return 0;
	return last < end ? last : end;
}

INLINE bool lookup_resumes(const struct kernel_bag_work *w, u64 sample)
{
	return w->resume && !sample;
}

/* The row of occurrence k: count vectors, the last of n floats. */
INLINE void lookup_add(const struct kernel_bag_work *w, u64 k, const float *row, const u32 count,
		       const u64 n, const struct lookup_form form, vec *acc)
{
	UNROLL
	for (u32 i = 0; i < count; i++) {
		vec x = vec_get(row + i * VEC, i + 1 < count ? VEC : n);

		if (form.quantized && !lookup_is_zero(w, k, form.narrow))
			x = vec_quantize(x, w->quantization);
		acc[i] = form.weighted ? vec_fma(vec_all(w->weights[k]), x, acc[i]) : acc[i] + x;
	}
}

INLINE void lookup_turn(const struct kernel_bag_work *w, u64 k, u64 column, const u32 count,
			const u64 n, const struct lookup_form form, vec *acc, const u32 fetch)
{
	lookup_ahead(w, k, column, (count - 1) * VEC + (u32)n, form.narrow, fetch);
	lookup_add(w, k, lookup_row(w, k, form.narrow) + column, count, n, form, acc);
}

/*
 * Occurrences from k up to @end, each of which has one to fetch ahead; rows of one vector by twos,
 * so that a bag's end is foretold more often. Return: the next.
 */
INLINE u64 lookup_add_ahead(const struct kernel_bag_work *w, u64 k, u64 end, u64 column,
			    const u32 count, const u64 n, const struct lookup_form form, vec *acc,
			    const u32 fetch)
{
	for (; count == 1 && k + 2 <= end; k += 2) {
		lookup_turn(w, k, column, count, n, form, acc, fetch);
		lookup_turn(w, k + 1, column, count, n, form, acc, fetch);
	}
	for (; k < end; k++)
		lookup_turn(w, k, column, count, n, form, acc, fetch);
	return k;
}

/* Occurrences from @k on, a multiple of LOOKUP_BURST, and where that is 0 those before, too. */
INLINE void lookup_burst(const struct kernel_bag_work *w, u64 k, u64 column, u32 floats,
			 const bool narrow)
{
	u64 last = k + w->prefetch + LOOKUP_BURST;

	last = last < w->rows_count ? last : w->rows_count;
	for (u64 i = k ? k + w->prefetch : 0; i < last; i++) {
		if (!lookup_is_zero(w, i, narrow))
			prefetch_floats(lookup_row(w, i, narrow) + column, floats);
	}
}

INLINE void lookup_bag_bursts(const struct kernel_bag_work *w, u64 k, u64 end, u64 column,
			      const u32 count, const u64 n, const struct lookup_form form, vec *acc)
{
	while (k < end) {
		u64 next = (k | (LOOKUP_BURST - 1)) + 1;

		if (!(k % LOOKUP_BURST))
			lookup_burst(w, k, column, (count - 1) * VEC + (u32)n, form.narrow);
		for (next = next < end ? next : end; k < next; k++)
			lookup_add(w, k, lookup_row(w, k, form.narrow) + column, count, n, form,
				   acc);
	}
}

/* A bag's occurrences. A loop for each way to fetch: to ask in one cost 6 % at dim 64. */
INLINE void lookup_bag(const struct kernel_bag_work *w, u64 k, u64 end, u64 column,
		       const u32 count, const u64 n, const struct lookup_form form, vec *acc)
{
	u64 ahead = w->prefetch, ahead_end = lookup_ahead_end(w, ahead, end);

	if (w->fetch == KERNEL_FETCH_BURST && ahead)
		return lookup_bag_bursts(w, k, end, column, count, n, form, acc);
	if (w->fetch == KERNEL_FETCH_TOUCH)
		k = lookup_add_ahead(w, k, lookup_ahead_end(w, 2 * ahead, end), column, count, n,
				     form, acc, KERNEL_FETCH_TOUCH);
	if (w->fetch == KERNEL_FETCH_FIRST)
		k = lookup_add_ahead(w, k, ahead_end, column, count, n, form, acc,
				     KERNEL_FETCH_FIRST);
	else
		k = lookup_add_ahead(w, k, ahead_end, column, count, n, form, acc,
				     KERNEL_FETCH_SECOND);
	for (; k < end; k++)
		lookup_add(w, k, lookup_row(w, k, form.narrow) + column, count, n, form, acc);
}

/* count vectors of one sample, accumulated in registers. */
INLINE void lookup_block(const struct kernel_bag_work *w, u64 sample, u64 column, const u32 count,
			 const u64 n, const struct lookup_form form)
{
	float *out = w->out + sample * w->out_stride + column;
	vec acc[8] = { { 0 } };

	if (lookup_resumes(w, sample)) {
		UNROLL
		for (u32 i = 0; i < count; i++)
			acc[i] = vec_get(out + i * VEC, i + 1 < count ? VEC : n);
	}
	lookup_bag(w, w->bag[sample], w->bag[sample + 1], column, count, n, form, acc);
	UNROLL
	for (u32 i = 0; i < count; i++) {
		if (w->scales)
			acc[i] *= w->scales[sample];
		if (form.stream)
			vec_stream(out + i * VEC, acc[i]);
		else
			vec_put(out + i * VEC, acc[i], i + 1 < count ? VEC : n);
	}
}

INLINE void lookup_blocks(const struct kernel_bag_work *w, u64 first, u64 last, u64 column,
			  const u32 count, const u64 n, const struct lookup_form form)
{
	for (u64 s = first; s < last; s++)
		lookup_block(w, s, column, count, n, form);
}

/*
 * One pass over each bag, however many vectors they are up to a full block. That is asked once
 * for all samples: asked for each, a lookup takes 1 to 8 % longer.
 */
INLINE void lookup_rest(const struct kernel_bag_work *w, u64 first, u64 last, u64 column,
			const u64 count, const u64 n, const struct lookup_form form)
{
	switch (count) {
	case 1: return lookup_blocks(w, first, last, column, 1, n, form);
	case 2: return lookup_blocks(w, first, last, column, 2, n, form);
	case 3: return lookup_blocks(w, first, last, column, 3, n, form);
	case 4: return lookup_blocks(w, first, last, column, 4, n, form);
	case 5: return lookup_blocks(w, first, last, column, 5, n, form);
	case 6: return lookup_blocks(w, first, last, column, 6, n, form);
	case 7: return lookup_blocks(w, first, last, column, 7, n, form);
	case 8: return lookup_blocks(w, first, last, column, 8, n, form);
	}
}

INLINE void lookup_column(const struct kernel_bag_work *w, u64 sample, u64 column,
			  const bool narrow)
{
	float *out = w->out + sample * w->out_stride + column;
	u64 end = w->bag[sample + 1];
	float acc = lookup_resumes(w, sample) ? *out : 0.0f;

	for (u64 k = w->bag[sample]; k < end; k++) {
		float x = lookup_row(w, k, narrow)[column];

		if (w->quantization && !lookup_is_zero(w, k, narrow))
			x = one_quantize(x, w->quantization);
		acc = w->weights ? one_fma(w->weights[k], x, acc) : acc + x;
	}
	if (w->scales)
		acc *= w->scales[sample];
	*out = acc;
}

/* What is left of rows from a column on, a full block at most. */
INLINE void lookup_columns(const struct kernel_bag_work *w, u64 first, u64 last, u64 column,
			   const struct lookup_form form)
{
	u64 left = w->dim - column, whole = left / VEC;
	const bool parts = VEC_PARTS && !form.stream; /* whole lines are streamed */

	if (parts && left % VEC == VEC / 2)
		return lookup_rest(w, first, last, column, whole + 1, VEC / 2, form);
	if (parts && left % VEC)
		return lookup_rest(w, first, last, column, whole + 1, left % VEC, form);
	lookup_rest(w, first, last, column, whole, VEC, form);
	for (u64 s = first; s < last; s++) {
		for (u64 c = column + whole * VEC; c < w->dim; c++)
			lookup_column(w, s, c, form.narrow);
	}
}

/* Where a bag's rows are read more than once, that is done while they are near. */
INLINE void lookup_samples(const struct kernel_bag_work *w, u64 first, u64 last,
			   const struct lookup_form form)
{
	u64 blocks = w->dim ? (w->dim - 1) / (8 * VEC) : 0;
	bool once = !blocks && (VEC_PARTS || !(w->dim % VEC));

	for (u64 s = first, next; s < last; s = next) {
		next = once ? last : s + 1;
		for (u64 b = 0; b < blocks; b++)
			lookup_block(w, s, b * 8 * VEC, 8, VEC, form);
		lookup_columns(w, s, next, blocks * 8 * VEC, form);
	}
}

/*
 * By a copy of the work: for all a compiler knows, what is written to @out changes the caller's,
 * and bags of one read it as often as rows. What is not streamed takes longer by a copy alone.
 */
INLINE void lookup_streamed(const struct kernel_bag_work *w, u64 first, u64 last,
			    const bool narrow)
{
	const struct kernel_bag_work copy = *w;

	lookup_samples(&copy, first, last, (struct lookup_form){ false, false, true, narrow });
}

/*
 * Packed rows of a dim that is known while compiling: nothing is read anew or multiplied for each
 * row, in whose place more rows are fetched. What is streamed takes longer so.
 */
INLINE void lookup_usual(const struct kernel_bag_work *w, u64 first, u64 last, const u32 dim,
			 const struct lookup_form form)
{
	struct kernel_bag_work copy = *w;

	copy.dim = dim;
	copy.stride = dim;
	copy.out_stride = dim;
	lookup_samples(&copy, first, last, form);
}

/* A function of each form, not one of all: over that compilers take several times as long. */
#define LOOKUP_FORM(NAME, CALL) \
	static __attribute__((__noinline__)) void NAME(const struct kernel_bag_work *w, u64 first, \
						       u64 last) \
	{ \
		CALL; \
	}
#define LOOKUP_USUAL(DIM, WEIGHTED, NARROW) \
	LOOKUP_FORM(lookup_##DIM##_##WEIGHTED##_##NARROW, \
		    lookup_usual(w, first, last, DIM, \
				 (struct lookup_form){ WEIGHTED, false, false, NARROW }))
#define LOOKUP_OF_DIM(DIM) \
	LOOKUP_USUAL(DIM, false, false) \
	LOOKUP_USUAL(DIM, false, true) \
	LOOKUP_USUAL(DIM, true, false) \
	LOOKUP_USUAL(DIM, true, true)
#define LOOKUP_ANY(WEIGHTED, NARROW) \
	LOOKUP_FORM(lookup_any_##WEIGHTED##_##NARROW, \
		    lookup_samples(w, first, last, \
				   (struct lookup_form){ WEIGHTED, false, false, NARROW }))
#define LOOKUP_QUANTIZED(NARROW) \
	LOOKUP_FORM(lookup_quantized_##NARROW, \
		    lookup_samples(w, first, last, \
				   (struct lookup_form){ w->weights, true, false, NARROW }))

USUAL_DIMS(LOOKUP_OF_DIM)
LOOKUP_ANY(false, false)
LOOKUP_ANY(false, true)
LOOKUP_ANY(true, false)
LOOKUP_ANY(true, true)
LOOKUP_QUANTIZED(false)
LOOKUP_QUANTIZED(true)
LOOKUP_FORM(lookup_streamed_false, lookup_streamed(w, first, last, false))
LOOKUP_FORM(lookup_streamed_true, lookup_streamed(w, first, last, true))

typedef void (*lookup_fn)(const struct kernel_bag_work *w, u64 first, u64 last);

/* By whether there are weights, and whether rows are narrow. */
#define LOOKUP_PICK(PREFIX) \
	(w->weights ? w->narrow ? PREFIX##_true_true : PREFIX##_true_false : \
	 w->narrow  ? PREFIX##_false_true : PREFIX##_false_false)
#define LOOKUP_CASE(DIM) \
	case DIM: \
		return LOOKUP_PICK(lookup_##DIM);

static lookup_fn lookup_function(const struct kernel_bag_work *w)
{
	const bool packed = w->stride == w->dim && w->out_stride == w->dim;

	if (w->quantization)
		return w->narrow ? lookup_quantized_true : lookup_quantized_false;
	if (VEC_STREAMS && w->stream && !w->weights)
		return w->narrow ? lookup_streamed_true : lookup_streamed_false;
	switch (packed ? w->dim : 0) {
	USUAL_DIMS(LOOKUP_CASE)
	default:
		return LOOKUP_PICK(lookup_any);
	}
}

static void lookup(const struct kernel_bag_work *w, u64 first, u64 last)
{
	lookup_function(w)(w, first, last);
	if (VEC_STREAMS && w->stream)
		vec_stream_end();
}

INLINE float scale(const struct kernel_scale_work *w, u64 first, u64 end)
{
	double sum = w->weights ? 0.0 : (double)(end - first);

	if (w->combiner == KERNEL_SUM)
		return 1.0f;
	for (u64 k = first; w->weights && k < end; k++)
		sum = scale_add(w->combiner, sum, w->weights[k]);
	return scale_of(w->combiner, sum);
}

static void scales(const struct kernel_scale_work *w, u64 first, u64 last)
{
	for (u64 s = first; s < last; s++) {
		u64 begin = w->bag[s], end = w->bag[s + 1];
		float all = scale(w, begin, end);

		if (w->scales)
			w->scales[s] = all;
		for (u64 k = begin; w->coef && k < end; k++)
			w->coef[k] = w->weights ? all * w->weights[k] : all;
	}
}
