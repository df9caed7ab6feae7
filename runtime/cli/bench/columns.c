// SPDX-License-Identifier: MIT
/*
 * The columns of an input, whether drawn (input.c) or read (input_read.c): their memory, the width
 * of their ids, one of the ids, and splits of bags that are equally long.
 *
 * The blocks belong to the struct bench_input until bench_input_free().
 */
#include <stdlib.h>

#include "input.h"

size_t bench_id_width(enum embeng_id_type type)
{
	return type == EMBENG_I32 ? sizeof(int32_t) : sizeof(int64_t);
}

int64_t bench_id(const struct bench_input *input, const struct bench_column *column, size_t k)
{
	return input->type == EMBENG_I32 ? ((const int32_t *)column->ids)[k]
					 : ((const int64_t *)column->ids)[k];
}

void *bench_input_block(struct bench_input *input, size_t count, size_t width)
{
	void **blocks = reallocarray(input->blocks, input->block_count + 1, sizeof(*blocks));
	void *block;

	if (!blocks)
		return NULL;
	input->blocks = blocks;
	block = calloc(count, width);
	if (block)
		blocks[input->block_count++] = block;
	return block;
}

void bench_input_free(struct bench_input *input)
{
	for (size_t i = 0; i < input->block_count; i++)
		free(input->blocks[i]);
	free(input->blocks);
	*input = (struct bench_input){0};
}

void bench_even_splits(const struct bench_workload *workload, int64_t *splits)
{
	size_t bags = bench_bags(workload);

	for (size_t s = 0; s <= bags; s++)
		splits[s] = (int64_t)(s * (bench_table_ids(workload) / bags));
}
