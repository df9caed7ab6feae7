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

INLINE void lookup_ahead(const struct kernel_bag_work *w, u64 k, u64 column, u32 floats,
			 const bool narrow)
{
	const float *row;

	if (w->rows_count - k <= w->prefetch || lookup_is_zero(w, k + w->prefetch, narrow))
		return;
	row = lookup_row(w, k + w->prefetch, narrow) + column;
	if (w->near)
		prefetch_near(row, floats);
	else
		prefetch_floats(row, floats);
}

INLINE bool lookup_resumes(const struct kernel_bag_work *w, u64 sample)
{
	return w->resume && !sample;
}

/* count vectors of one sample, the last of n floats, accumulated in registers. */
INLINE void lookup_block(const struct kernel_bag_work *w, u64 sample, u64 column, const u32 count,
			 const u64 n, const struct lookup_form form)
{
	float *out = w->out + sample * w->out_stride + column;
	u64 end = w->bag[sample + 1];
	vec acc[8] = { { 0 } };

	if (lookup_resumes(w, sample)) {
		UNROLL
		for (u32 i = 0; i < count; i++)
			acc[i] = vec_get(out + i * VEC, i + 1 < count ? VEC : n);
	}
	for (u64 k = w->bag[sample]; k < end; k++) {
		const float *row = lookup_row(w, k, form.narrow) + column;

		if (w->prefetch)
			lookup_ahead(w, k, column, (count - 1) * VEC + (u32)n, form.narrow);
		UNROLL
		for (u32 i = 0; i < count; i++) {
			vec x = vec_get(row + i * VEC, i + 1 < count ? VEC : n);

			if (form.quantized && !lookup_is_zero(w, k, form.narrow))
				x = vec_quantize(x, w->quantization);
			acc[i] = form.weighted ? vec_fma(vec_all(w->weights[k]), x, acc[i]) : acc[i] + x;
		}
	}
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

/* Fewer vectors than a full block; one pass over the bag, however many they are. */
INLINE void lookup_rest(const struct kernel_bag_work *w, u64 sample, u64 column, const u64 count,
			const u64 n, const struct lookup_form form)
{
	switch (count) {
	case 1: return lookup_block(w, sample, column, 1, n, form);
	case 2: return lookup_block(w, sample, column, 2, n, form);
	case 3: return lookup_block(w, sample, column, 3, n, form);
	case 4: return lookup_block(w, sample, column, 4, n, form);
	case 5: return lookup_block(w, sample, column, 5, n, form);
	case 6: return lookup_block(w, sample, column, 6, n, form);
	case 7: return lookup_block(w, sample, column, 7, n, form);
	case 8: return lookup_block(w, sample, column, 8, n, form);
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

INLINE void lookup_samples(const struct kernel_bag_work *w, u64 first, u64 last,
			   const struct lookup_form form)
{
	for (u64 s = first; s < last; s++) {
		u64 c = 0, left;

		for (; w->dim - c >= 8 * VEC; c += 8 * VEC)
			lookup_block(w, s, c, 8, VEC, form);
		left = w->dim - c;
		if (VEC_PARTS && left % VEC == VEC / 2) {
			lookup_rest(w, s, c, left / VEC + 1, VEC / 2, form);
			continue;
		}
		if (VEC_PARTS && left % VEC) {
			lookup_rest(w, s, c, left / VEC + 1, left % VEC, form);
			continue;
		}
		lookup_rest(w, s, c, left / VEC, VEC, form);
		for (c += left / VEC * VEC; c < w->dim; c++)
			lookup_column(w, s, c, form.narrow);
	}
}

INLINE void lookup_rows(const struct kernel_bag_work *w, u64 first, u64 last, const bool narrow)
{
	if (w->quantization)
		lookup_samples(w, first, last,
			       (struct lookup_form){ w->weights, true, false, narrow });
	else if (w->weights)
		lookup_samples(w, first, last, (struct lookup_form){ true, false, false, narrow });
	else if (VEC_STREAMS && w->stream)
		lookup_samples(w, first, last, (struct lookup_form){ false, false, true, narrow });
	else
		lookup_samples(w, first, last, (struct lookup_form){ false, false, false, narrow });
}

static void lookup(const struct kernel_bag_work *w, u64 first, u64 last)
{
	if (w->narrow)
		lookup_rows(w, first, last, true);
	else
		lookup_rows(w, first, last, false);
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
