// SPDX-License-Identifier: MIT
/*
 * Makes the input of some steps from a seed: ids of each feature, and weights, splits and gradients
 * that all features share. Files of input are read in input_read.c.
 *
 * The blocks belong to the struct bench_input until bench_input_free().
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../frame/exit.h"
#include "input.h"

/* Streams of numbers that are no ids. */
enum { STREAM_GRADIENT = 1, STREAM_WEIGHTS };

static void narrow_ids(const int64_t *from, int32_t *to, size_t count)
{
	for (size_t k = 0; k < count; k++)
		to[k] = (int32_t)from[k];
}

static int draw_ids(struct bench_input *input, const struct bench_workload *w,
		    const struct bench_source *source)
{
	size_t count = bench_table_ids(w);
	int64_t *drawn = calloc(count, sizeof(*drawn));

	for (int k = 0; drawn && k < input->batches * w->tables; k++) {
		int batch = k / w->tables, table = k % w->tables;
		void *ids = bench_input_block(input, count, bench_id_width(input->type));

		if (!ids)
			break;
		bench_draw(w, table, batch, source->seed, drawn, count);
		if (input->type == EMBENG_I32)
			narrow_ids(drawn, ids, count);
		else
			memcpy(ids, drawn, count * sizeof(*drawn));
		input->columns[batch][table].ids = ids;
	}
	free(drawn);
	return input->columns[input->batches - 1][w->tables - 1].ids ? 0 : -ENOMEM;
}

/* The same for all features of all steps. */
static int make_weights(struct bench_input *input, const struct bench_workload *w, uint64_t seed)
{
	size_t count = bench_table_ids(w);
	float *weights = bench_input_block(input, count, sizeof(float));

	if (!weights)
		return -ENOMEM;
	bench_draw_floats(seed, STREAM_WEIGHTS, weights, count);
	for (size_t k = 0; k < count; k++)
		weights[k] += 0.5f;
	for (int k = 0; k < input->batches * w->tables; k++)
		input->columns[k / w->tables][k % w->tables].weights = weights;
	return 0;
}

/* Bags are equally long, so all features of all steps share their splits. */
static int draw_rest(struct bench_input *input, const struct bench_workload *w, uint64_t seed)
{
	int64_t *splits = bench_input_block(input, bench_bags(w) + 1, sizeof(*splits));
	size_t elements = bench_elements(w);

	input->gradient = bench_input_block(input, elements, sizeof(float));
	if (!splits || !input->gradient)
		return -ENOMEM;
	bench_even_splits(w, splits);
	bench_draw_floats(seed, STREAM_GRADIENT, input->gradient, elements);
	for (size_t k = 0; k < elements; k++)
		input->gradient[k] = (input->gradient[k] - 0.5f) * 1e-2f;
	for (int k = 0; k < input->batches * w->tables; k++)
		input->columns[k / w->tables][k % w->tables].splits = splits;
	return 0;
}

static int refuse_for_memory(struct bench_input *input, const struct bench_workload *w,
			     const struct output *out)
{
	bench_input_free(input);
	return output_fail(out, CLI_DEVICE, ENOMEM, "Make the workload smaller with --scale",
			   "there is no memory for the ids of %s", w->name);
}

int bench_input_make(struct bench_input *input, const struct bench_workload *workload,
		     const struct bench_source *source, const struct output *out)
{
	int code = 0, err = 0;

	*input = (struct bench_input){.type = source->type, .batches = source->batches};
	if (source->folder)
		code = bench_input_read(input, workload, source, out);
	else
		err = draw_ids(input, workload, source);
	if (code)
		return code;
	if (!err && !source->folder)
		err = draw_rest(input, workload, source->seed);
	if (!err && source->weights && !input->columns[0][0].weights)
		err = make_weights(input, workload, source->seed);
	return err ? refuse_for_memory(input, workload, out) : 0;
}

static uint64_t count_unique(const struct bench_input *input, const struct bench_column *column,
			     uint64_t *seen, size_t words, size_t count)
{
	uint64_t unique = 0;

	memset(seen, 0, words * sizeof(*seen));
	for (size_t k = 0; k < count; k++)
		seen[(uint64_t)bench_id(input, column, k) / 64] |=
			1ull << (uint64_t)bench_id(input, column, k) % 64;
	for (size_t i = 0; i < words; i++)
		unique += (uint64_t)__builtin_popcountll(seen[i]);
	return unique;
}

double bench_unique(const struct bench_input *input, const struct bench_workload *workload)
{
	uint64_t unique = 0;

	for (int t = 0; t < workload->tables; t++) {
		size_t words = (size_t)workload->rows[t] / 64 + 1;
		uint64_t *seen = malloc(words * sizeof(*seen));

		if (!seen)
			return -1;
		for (int b = 0; b < input->batches; b++)
			unique += count_unique(input, &input->columns[b][t], seen, words,
					       bench_table_ids(workload));
		free(seen);
	}
	return (double)unique / input->batches;
}
