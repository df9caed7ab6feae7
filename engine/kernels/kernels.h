/* SPDX-License-Identifier: MIT */
/*
 * The only entries to the floating-point code of the engine. Floats travel through
 * memory, never by value, so that control code can be built without FP registers. The
 * caller sets the FP environment (round to nearest, denormals kept, nothing trapped) and
 * has checked every index: kernels trust their arguments.
 */
#ifndef ENGINE_KERNELS_KERNELS_H
#define ENGINE_KERNELS_KERNELS_H

#include "../f32.h"
#include "fetch_plan.h"

#define KERNEL_RUN 256u /* occurrences summed as one run (decisions: numbers) */
#define KERNEL_MAX_SLOTS 7u
#define KERNEL_MAX_HYPER 16u
#define KERNEL_MAX_PREPARED 2u
#define KERNEL_ROW_ZERO (~(u64)0) /* in rows[]: read zero_row instead of the table */

enum kernel_combiner { KERNEL_SUM = 0, KERNEL_MEAN = 1, KERNEL_SQRTN = 2, KERNEL_MAX = 3 };

/**
 * struct kernel_quantization - simulated quantization of rows that are read
 * @lower: the lowest level
 * @upper: the highest level
 * @step: between levels, (upper - lower) / (levels - 1)
 * @factor: 1; or a power of two by which all of these are multiplied, since @upper - @lower or
 *	@step would leave f32: elements are, too, and back at the end
 *
 * An element x becomes lower + step * floor((c - lower) / step + 0.5), c being x clipped
 * to [lower, upper]; NaN passes.
 */
struct kernel_quantization {
	float lower;
	float upper;
	float step;
	float factor;
};

/**
 * struct kernel_bag_work - pooled or sequence samples to look up
 * @table: row 0; row r begins at table + r * stride
 * @stride: floats between rows
 * @dim: floats of a row
 * @prefetch: how many occurrences ahead rows are prefetched; 0 = not at all
 * @fetch: where they go, enum kernel_fetch
 * @rows: checked row of each occurrence, or KERNEL_ROW_ZERO
 * @narrow: instead of @rows where it is not NULL; without KERNEL_ROW_ZERO
 * @rows_count: elements of either; prefetching goes on past a call's last sample up to here
 * @zero_row: dim zeros, read for KERNEL_ROW_ZERO; NULL when there is none
 * @quantization: for rows, not for @zero_row; NULL = none
 * @weights: per occurrence; NULL = all 1
 * @scales: per sample; NULL = all 1
 * @bag: occurrences of sample s are [bag[s], bag[s + 1])
 * @out: row of sample s is written at out + s * out_stride
 * @out_stride: floats
 * @resume: the sum of sample 0 goes on from what is at @out, unscaled, instead of +0:
 *	a bag may come in parts. With lookup_max() the bag's largest numbers so far are at @out
 * @holders: out, of lookup_max() alone: row of sample s is written at holders + s * dim; NULL = not
 *	wanted
 * @stream: write past the caches. @out is aligned to 64 bytes then, and dim and strides
 *	are multiples of 16
 */
struct kernel_bag_work {
	const float *table;
	u64 stride;
	u32 dim;
	u32 prefetch;
	u32 fetch;
	const u64 *rows;
	const u32 *narrow;
	u64 rows_count;
	const float *zero_row;
	const struct kernel_quantization *quantization;
	const float *weights;
	const float *scales;
	const u64 *bag;
	float *out;
	u64 out_stride;
	u32 *holders;
	bool resume;
	bool stream;
};

/**
 * struct kernel_scale_work - scales and gradient coefficients of samples
 * @combiner: enum kernel_combiner
 * @weights: per occurrence; NULL = all 1
 * @bag: occurrences of sample s are [bag[s], bag[s + 1])
 * @scales: out, per sample; NULL = not wanted
 * @coef: out, per occurrence, (float)(scale * weight); NULL = not wanted
 * @stretched: out, may be @weights: those of a bag whose scale would not fit f32, multiplied so
 *	that it does. All others are left as they are. NULL = not wanted
 */
struct kernel_scale_work {
	u32 combiner;
	const float *weights;
	const u64 *bag;
	float *scales;
	float *coef;
	float *stretched;
};

/**
 * struct kernel_long_bag - the scale and the coefficients of one bag, computed in parts
 * @work: says which results are wanted; its combiner is not KERNEL_SUM
 * @sample: number of the bag
 * @sum: result of scale_add() over the occurrences so far
 * @largest: the largest of their weights, without sign
 * @inverse: 1 / D, or what f32 has of it where it fits that
 * @stretch: the number by which weights are multiplied, 0: they stay
 *
 * Begins with zeros. kernel_long_bag_add() takes all occurrences in order, part by part; then comes
 * kernel_long_bag_end(), then kernel_long_bag_apply() of all of them.
 */
struct kernel_long_bag {
	const struct kernel_scale_work *work;
	u64 sample;
	double sum;
	float largest;
	double inverse;
	double stretch;
};

/* Occurrences [@first, @end) of the bag. */
void kernel_long_bag_add(struct kernel_long_bag *bag, u64 first, u64 end);
/* Sets the scale, if it is wanted. */
void kernel_long_bag_end(struct kernel_long_bag *bag);
/* Sets coefficients and stretched weights of [@first, @end), if they are wanted. */
void kernel_long_bag_apply(const struct kernel_long_bag *bag, u64 first, u64 end);

/**
 * struct kernel_segment - occurrences of one feature in one replica
 * @first: number of the segment's first occurrence
 * @end: one past its last; the next segment begins there or later
 * @gradients: row of occurrence k is gradients + grad_row[k - first] * stride.
 *	A null gradient is a row of dim zeros with stride 0
 * @stride: floats
 * @grad_row: per occurrence of the segment; NULL = k - first itself
 * @coef: per occurrence of the segment; NULL = all 1
 * @holders: NULL, or the occurrence of the segment, k - first, that alone takes each number of a row
 *	of @gradients; of the row of occurrence k they are at holders + grad_row[k - first] * dim.
 *	@coef is NULL then. KERNEL_HELD is set where a segment has these
 * @replica: segments are in (replica, feature) order
 * @sums: each occurrence is the sum of a run, and a run of its own; @coef and @holders are NULL then.
 *	KERNEL_SUMS is set where a segment has these
 * @far: the gradients are too large for a cache and worth prefetching
 */
struct kernel_segment {
	u64 first;
	u64 end;
	const float *gradients;
	u64 stride;
	const u32 *grad_row;
	const float *coef;
	const u32 *holders;
	u32 replica;
	bool sums;
	bool far;
};

/**
 * struct kernel_group - one touched row
 * @row: row of the table
 * @first: where its occurrence numbers begin in the sorted array
 * @count: how many they are, at least 1, ascending
 */
struct kernel_group {
	u64 row;
	u32 first;
	u32 count;
};

#define KERNEL_GRADIENT_SCALE (1u << 0) /* multiply sums by gradient_multiplier */
#define KERNEL_GRADIENT_CLIP (1u << 1)
#define KERNEL_DECAY (1u << 2)
#define KERNEL_DECAY_TIMES_LR (1u << 3)
#define KERNEL_WEIGHT_CLIP (1u << 4)
#define KERNEL_EACH_OCCURRENCE (1u << 5) /* gradient accumulation off */
#define KERNEL_DECAY_GRADIENT (1u << 6)
#define KERNEL_BY_FREQUENCY (1u << 7)
#define KERNEL_MAX_NORM (1u << 8)
#define KERNEL_HELD (1u << 9)  /* an occurrence takes the numbers of a gradient that it holds */
#define KERNEL_SUMS (1u << 10) /* the gradients of some segments are sums */

/**
 * struct kernel_update - how to update rows of one table in one step
 * @optimizer: enum kernel_optimizer_kind
 * @flags: KERNEL_*; a field below counts only with its flag
 * @dim: floats of a row
 * @prefetch: how many groups ahead row, slots and gradient are prefetched; 0 = none
 * @fetch: KERNEL_FETCH_AGAIN, of what fetch_update() says: each of them update_times(), the last
 *	time UPDATE_STEP groups ahead whatever @prefetch is; else once
 * @stride: floats between rows, of the table and of every slot as wide as it
 * @table: row 0
 * @slots: row 0 of each slot; the rows of a slot of one number lie side by side
 * @segment_count: elements of @segments, at least 1
 * @segments: where gradients are, in occurrence order
 * @lr: learning rate of this step
 * @gradient_multiplier: applied to the sum of a row, before clipping
 * @gradient_min: lower limit of a gradient sum; NaN passes
 * @gradient_max: upper limit
 * @decay: w = w - d * w before the optimizer, d = decay or (float)(decay * lr); with
 *	KERNEL_DECAY_GRADIENT g = g + decay * w after the clip, w being as it was before all.
 *	KERNEL_BY_FREQUENCY divides a sum by its occurrences first
 * @weight_min: lower limit of a weight after the optimizer; NaN passes
 * @weight_max: upper limit
 * @max_norm: at the end a row is shortened to this length, if it is longer
 * @hyper: as the optimizer's description names them
 * @step: the optimizer's step, from 1
 * @prepared: kernel_prepare() sets it, as the optimizer's description says
 * @power: kernel_prepare() sets it, too
 * @mends: kernel_prepare() sets it, too: whether elements that are not finite are computed again by
 *	kernel_mend()
 */
struct kernel_update {
	u32 optimizer;
	u32 flags;
	u32 dim;
	u32 prefetch;
	u32 fetch;
	u64 stride;
	float *table;
	float *slots[KERNEL_MAX_SLOTS];
	u64 segment_count;
	const struct kernel_segment *segments;
	float lr;
	float gradient_multiplier;
	float gradient_min;
	float gradient_max;
	float decay;
	float weight_min;
	float weight_max;
	float max_norm;
	float hyper[KERNEL_MAX_HYPER];
	u64 step;
	float prepared[KERNEL_MAX_PREPARED];
	double power;
	bool mends;
};

#define KERNEL_WORDS_AHEAD 8u

/**
 * enum kernel_words - how the sorted words of a partitioned CSR hold token, row and gain
 * @KERNEL_WORDS_PAIRED: token << 32 | index of a payload, which is row << 32 | gain
 * @KERNEL_WORDS_PACKED: (token << row_bits | row) << 32 | gain
 * @KERNEL_WORDS_ONES: token << row_bits | row; each gain is 1
 */
enum kernel_words { KERNEL_WORDS_PAIRED, KERNEL_WORDS_PACKED, KERNEL_WORDS_ONES };

/**
 * struct kernel_merge - ids of one core in a partitioned CSR, equal ones to be made one
 * @form: the words' form
 * @sorted: words, by token within a partition
 * @payload: one for each index; only paired words have it
 * @row_bits: see @sorted, below 32
 * @token_mask: the bits of a token; what stands above them is its partition's
 * @tokens: out, [count]
 * @samples: out, [count] row of each
 * @gains: out, [count], those of equal ids added in order
 * @count: written so far
 * @columns: distinct tokens, of all partitions
 * @last: the word that was read last, ~0 where a partition begins
 */
struct kernel_merge {
	enum kernel_words form;
	const u64 *sorted;
	const u64 *payload;
	u32 row_bits;
	u32 token_mask;
	u32 *tokens;
	u32 *samples;
	float *gains;
	u64 count;
	u64 columns;
	u64 last;
};

/**
 * struct kernel_ops - one variant of the kernels; all variants give the same bits
 * @name: "portable", "avx2", "avx512"
 * @lookup: samples [first, last): acc = fma(weight, row, acc) in occurrence order from
 *	+0, rows quantized where asked for, then one multiplication by the scale. An
 *	empty bag gives zeros. Returns whether any number of @out is not finite
 * @lookup_max: samples [first, last): the largest number of each column of a bag's rows, quantized
 *	where asked for, and the first occurrence that holds it. NaN is larger than all others. To
 *	what is written to @out +0 is added, so that a zero has no sign. An empty bag gives zeros, and
 *	nobody holds them. Neither weights nor scales nor @stream count. Returns as lookup()
 * @scales: samples [first, last): D = sum of weights (mean) or square root of the sum of
 *	squares (sqrtn), in f64 in occurrence order; scale = (float)(1 / D), 0 when D is 0,
 *	1 for sum. Weights so small that 1 / D is too large for f32 are stretched first
 * @update_rows: sums the gradient of each of n rows, which differ, and updates it, in any
 *	order of rows; with KERNEL_EACH_OCCURRENCE applies its occurrences one after another, in
 *	theirs. @ahead groups after the n may be read too, for prefetching. @occ is the sorted
 *	array that the groups index. @scratch: kernel_scratch_bytes(dim), 64-byte aligned.
 *	Returns whether any number of the rows and of their slots was written that is not finite
 * @row_gradient: sum of the n occurrences of one row into @sum
 * @run_gradient: sum of one run alone (n as kernel_run_length() gives it) into @sum.
 *	Lets a hot row be cut into bounded calls: runs of a replica are then added left to
 *	right with @add_row, then the replicas' totals, which is what @row_gradient does
 * @add_row: dst += src
 * @update_row: everything after the sum for one row; @slots as in kernel_update. Returns what
 *	update_rows() does
 * @merge: words [first, last), behind those before; of one partition, unless words of different
 *	ones differ
 * @tally: items and distinct tokens that the words of each partition are, which begins at
 *	@starts[p]; not of paired words. KERNEL_WORDS_AHEAD words behind the last are read
 * @take_ids: copies @count signed ids of @width bytes, 4 or 8, out of memory that others may
 *	write; what is kept of each is what was looked at. Returns whether any is not below
 *	@limit, which is at most 2^32. @stream: the copy goes past the caches
 * @all_finite: whether @count floats are neither infinite nor NaN
 */
struct kernel_ops {
	const char *name;
	bool (*lookup)(const struct kernel_bag_work *w, u64 first, u64 last);
	bool (*lookup_max)(const struct kernel_bag_work *w, u64 first, u64 last);
	void (*scales)(const struct kernel_scale_work *w, u64 first, u64 last);
	bool (*update_rows)(const struct kernel_update *u, const struct kernel_group *groups, u64 n,
			    u64 ahead, const u32 *occ, void *scratch);
	void (*row_gradient)(const struct kernel_update *u, float *sum, const u32 *occ, u64 n,
			     void *scratch);
	void (*run_gradient)(const struct kernel_update *u, float *sum, const u32 *occ, u64 n,
			     void *scratch);
	void (*add_row)(float *dst, const float *src, u32 dim);
	bool (*update_row)(const struct kernel_update *u, u64 row, const float *sum);
	void (*merge)(struct kernel_merge *m, u64 first, u64 last);
	void (*tally)(const struct kernel_merge *m, const u32 *starts, u32 partitions, u32 *items,
		      u32 *columns);
	bool (*take_ids)(u32 *to, const void *from, u64 count, u32 width, u64 limit, bool stream);
	bool (*all_finite)(const float *from, u64 count);
};

/* The first float of several that is not finite, or @count. Called inside an FP section. */
u64 kernel_finite_until(const struct kernel_ops *kernels, const float *from, u64 count);

/**
 * kernel_select() - find a variant
 * @force: its name, or NULL for the best that this processor runs
 *
 * Return: the variant, or NULL when the name is unknown or not runnable here.
 */
const struct kernel_ops *kernel_select(const char *force);

/**
 * kernel_prepare() - compute the values that all elements of an update share
 * @u: with optimizer, lr, decay, hyper and step; prepared, power and mends are set. The rest may
 *	change afterwards
 */
void kernel_prepare(struct kernel_update *u);

#define KERNEL_MAX_SHARED 2u

/**
 * struct kernel_shared - the numbers that all elements of a row share in an update
 * @r: as the optimizer's description names them
 * @slot: the slot of one number, before the update
 * @mean: the mean of the gradients as the optimizer takes them, or of their squares
 */
struct kernel_shared {
	float r[KERNEL_MAX_SHARED];
	float slot;
	double mean;
};

/**
 * struct kernel_mend - elements that an update computed and has not stored
 * @row: row and wide slots before it
 * @to: row and wide slots after it, in the same order; mended
 * @gradients: summed, before multiplier and clip
 * @count: elements of each
 * @shared: the numbers that they share, if the optimizer has a slot of one number
 */
struct kernel_mend {
	const float *row[1 + KERNEL_MAX_SLOTS];
	float *to[1 + KERNEL_MAX_SLOTS];
	const float *gradients;
	u64 count;
	const struct kernel_shared *shared;
};

/**
 * kernel_mend() - compute elements again in f64 whose update is not finite in f32
 * @u: the update
 * @m: its elements
 *
 * An element stays as it is if it is finite, if what it was computed from is not, or if row or slot
 * do not fit f32 in f64 either.
 */
void kernel_mend(const struct kernel_update *u, const struct kernel_mend *m);

/**
 * kernel_divide() - divide the sum of a row's gradients by how many they are
 * @sum: [@dim]
 * @count: at least 1
 */
void kernel_divide(float *sum, u32 dim, u64 count);

/**
 * kernel_quantization_set() - simulated quantization from what a model says
 * @q: set
 * @num_buckets: levels, from 2
 * @lower: f32 bits
 * @upper: f32 bits
 */
void kernel_quantization_set(struct kernel_quantization *q, u32 num_buckets, u32 lower, u32 upper);

/**
 * kernel_step() - a step that a program gave as a float
 * @bits: the float's
 *
 * Return: the step without its fraction, 1 for what is below that or no number.
 */
u64 kernel_step(u32 bits);

/**
 * kernel_scratch_bytes() - the scratch memory of update_rows, row_gradient and run_gradient
 * @dim: floats of a row
 *
 * Return: bytes of scratch memory, to be aligned to 64.
 */
u64 kernel_scratch_bytes(u32 dim);

/**
 * kernel_run_length() - where the first run of a row's occurrences ends
 * @segments: in occurrence order
 * @segment_count: how many
 * @occ: remaining occurrences of one row
 * @n: how many, at least 1
 * @replica: out, the run's replica
 *
 * Return: occurrences in the run: at most KERNEL_RUN, all of one replica.
 */
u64 kernel_run_length(const struct kernel_segment *segments, u64 segment_count, const u32 *occ,
		      u64 n, u32 *replica);

#endif
