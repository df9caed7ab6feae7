/* SPDX-License-Identifier: MIT */
/* Part of body.h: pooling, scales. */

INLINE const float *lookup_row(const struct kernel_bag_work *w, u64 k)
{
	u64 row = w->rows[k];

	return row == KERNEL_ROW_ZERO ? w->zero_row : w->table + row * w->stride;
}

INLINE void lookup_ahead(const struct kernel_bag_work *w, u64 k, u64 column, u32 floats)
{
	u64 row;

	if (w->rows_count - k <= w->prefetch)
		return;
	row = w->rows[k + w->prefetch];
	if (row != KERNEL_ROW_ZERO)
		prefetch_floats(w->table + row * w->stride + column, floats);
}

/* count vectors of one sample, the last of n floats, accumulated in registers. */
INLINE void lookup_block(const struct kernel_bag_work *w, u64 sample, u64 column, const u32 count,
			 const u64 n, const bool weighted)
{
	float *out = w->out + sample * w->out_stride + column;
	u64 end = w->bag[sample + 1];
	vec acc[8] = { { 0 } };

	for (u64 k = w->bag[sample]; k < end; k++) {
		const float *row = lookup_row(w, k) + column;

		if (w->prefetch)
			lookup_ahead(w, k, column, (count - 1) * VEC + (u32)n);
		UNROLL
		for (u32 i = 0; i < count; i++) {
			vec x = vec_get(row + i * VEC, i + 1 < count ? VEC : n);

			acc[i] = weighted ? vec_fma(vec_all(w->weights[k]), x, acc[i]) : acc[i] + x;
		}
	}
	UNROLL
	for (u32 i = 0; i < count; i++) {
		if (w->scales)
			acc[i] *= w->scales[sample];
		vec_put(out + i * VEC, acc[i], i + 1 < count ? VEC : n);
	}
}

/* Fewer vectors than a full block; one pass over the bag, however many they are. */
INLINE void lookup_rest(const struct kernel_bag_work *w, u64 sample, u64 column, const u64 count,
			const u64 n, const bool weighted)
{
	switch (count) {
	case 1: return lookup_block(w, sample, column, 1, n, weighted);
	case 2: return lookup_block(w, sample, column, 2, n, weighted);
	case 3: return lookup_block(w, sample, column, 3, n, weighted);
	case 4: return lookup_block(w, sample, column, 4, n, weighted);
	case 5: return lookup_block(w, sample, column, 5, n, weighted);
	case 6: return lookup_block(w, sample, column, 6, n, weighted);
	case 7: return lookup_block(w, sample, column, 7, n, weighted);
	case 8: return lookup_block(w, sample, column, 8, n, weighted);
	}
}

INLINE void lookup_column(const struct kernel_bag_work *w, u64 sample, u64 column)
{
	u64 end = w->bag[sample + 1];
	float acc = 0.0f;

	for (u64 k = w->bag[sample]; k < end; k++) {
		float x = lookup_row(w, k)[column];

		acc = w->weights ? one_fma(w->weights[k], x, acc) : acc + x;
	}
	if (w->scales)
		acc *= w->scales[sample];
	w->out[sample * w->out_stride + column] = acc;
}

INLINE void lookup_samples(const struct kernel_bag_work *w, u64 first, u64 last,
			   const bool weighted)
{
	for (u64 s = first; s < last; s++) {
		u64 c = 0, left;

		for (; w->dim - c >= 8 * VEC; c += 8 * VEC)
			lookup_block(w, s, c, 8, VEC, weighted);
		left = w->dim - c;
		if (VEC_PARTS && left % VEC) {
			lookup_rest(w, s, c, left / VEC + 1, left % VEC, weighted);
			continue;
		}
		lookup_rest(w, s, c, left / VEC, VEC, weighted);
		for (c += left / VEC * VEC; c < w->dim; c++)
			lookup_column(w, s, c);
	}
}

static void lookup(const struct kernel_bag_work *w, u64 first, u64 last)
{
	if (w->weights)
		lookup_samples(w, first, last, true);
	else
		lookup_samples(w, first, last, false);
}

/* Denominator of a sample, in f64 and in order: the order is part of the result. */
INLINE double denominator(const struct kernel_scale_work *w, u64 first, u64 end)
{
	double sum = 0.0;

	if (!w->weights) {
		sum = (double)(end - first);
	} else if (w->combiner == KERNEL_MEAN) {
		for (u64 k = first; k < end; k++)
			sum += w->weights[k];
	} else {
		for (u64 k = first; k < end; k++)
			sum += (double)w->weights[k] * w->weights[k];
	}
	return w->combiner == KERNEL_SQRTN ? root64(sum) : sum;
}

static void scales(const struct kernel_scale_work *w, u64 first, u64 last)
{
	for (u64 s = first; s < last; s++) {
		u64 begin = w->bag[s], end = w->bag[s + 1];
		float scale = 1.0f;

		if (w->combiner != KERNEL_SUM) {
			double d = denominator(w, begin, end);

			scale = d == 0.0 ? 0.0f : (float)(1.0 / d);
		}
		if (w->scales)
			w->scales[s] = scale;
		for (u64 k = begin; w->coef && k < end; k++)
			w->coef[k] = w->weights ? scale * w->weights[k] : scale;
	}
}
