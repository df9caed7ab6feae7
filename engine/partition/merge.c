// SPDX-License-Identifier: MIT
/*
 * Makes items of the sorted words of one core of the grid. Words of the same token and sample
 * become one item with the sum of their gains, and the items and distinct tokens of each partition
 * are counted.
 *
 * Several cores of the grid run at the same time and write only their own part of the job's arrays.
 * No lock is needed.
 */
#include "partition.h"

static struct kernel_merge merge_of(const struct pcsr_job *job, const struct pcsr_core *core,
				    const struct pcsr_words *words)
{
	return (struct kernel_merge){
		.sorted = words->words,
		.payload = words->payload,
		.form = job->form,
		.row_bits = job->row_bits,
		.token_mask = (u32)((1ull << job->token_bits) - 1),
		.tokens = job->tokens + core->first,
		.samples = job->samples + core->first,
		.gains = (float *)job->gains + core->first,
	};
}

/* Partitions from @p on, as much as a call may do. Return: the first one left. */
static u32 merge_some(struct pcsr_job *job, u32 number, const struct pcsr_words *words,
		      struct kernel_merge *m, u32 p, u64 *at)
{
	u32 *ids = pcsr_totals(job, number, false), *columns = pcsr_totals(job, number, true);
	u64 end = *at + chunk_rows(1);
	struct port_fpu fpu;

	port_fpu_begin(&fpu);
	for (; p < job->given->cores && *at < end; p++) {
		u64 last = words->starts[p + 1], to = last < end ? last : end;

		if (*at == words->starts[p]) {
			m->last = U64_MAX;
			ids[p] = (u32)m->count;
			columns[p] = (u32)m->columns;
		}
		job->engine->kernels->merge(m, *at, to);
		*at = to;
		if (to < last)
			break;
		ids[p] = (u32)m->count - ids[p];
		columns[p] = (u32)m->columns - columns[p];
	}
	port_fpu_end(&fpu);
	return p;
}

static void merge_by_partition(struct pcsr_job *job, u32 number, const struct pcsr_words *words,
			       struct kernel_merge *m)
{
	u64 at = 0;

	for (u32 p = 0; p < job->given->cores && !command_is_cut(job->command);) {
		p = merge_some(job, number, words, m, p, &at);
		if (p < job->given->cores)
			piece_over(job->command);
	}
}

/* Flat words say their partition: all are merged at once, and what each has is counted after. */
static void merge_flat(struct pcsr_job *job, u32 number, const struct pcsr_words *words,
		       struct kernel_merge *m)
{
	u32 *ids = pcsr_totals(job, number, false), *columns = pcsr_totals(job, number, true);
	const struct kernel_ops *kernels = job->engine->kernels;
	u64 count = job->cores[number].words;
	struct port_fpu fpu;

	m->last = U64_MAX;
	for (u64 at = 0, end; at < count; at = end) {
		end = count - at < chunk_rows(1) ? count : at + chunk_rows(1);
		port_fpu_begin(&fpu);
		kernels->merge(m, at, end);
		port_fpu_end(&fpu);
		if (piece_over(job->command))
			return;
	}
	port_fpu_begin(&fpu);
	kernels->tally(m, words->starts, job->given->cores, ids, columns);
	port_fpu_end(&fpu);
}

/* How many ids each item stands for. */
static void count_repeats(struct pcsr_job *job, const struct pcsr_core *core,
			  const struct pcsr_words *words)
{
	u32 *repeats = job->repeats + core->first;
	u64 at = 0, before = 0, left = PIECE_ROWS;

	for (u32 p = 0; p < job->given->cores; p++) {
		for (u64 k = words->starts[p]; k < words->starts[p + 1]; k++) {
			u64 item = words->words[k] >> job->item_shift;

			if (words->payload)
				item = item << 32 | words->payload[(u32)words->words[k]] >> 32;
			if (k == words->starts[p] || item != before)
				repeats[at++] = 0;
			repeats[at - 1]++;
			before = item;
			if (piece_step(job->command, &left))
				return;
		}
	}
}

void pcsr_merge(struct pcsr_job *job, u32 number, const struct pcsr_words *words)
{
	struct kernel_merge m = merge_of(job, &job->cores[number], words);

	if (job->flat)
		merge_flat(job, number, words, &m);
	else
		merge_by_partition(job, number, words, &m);
	job->cores[number].items = m.count;
	if (job->repeats && !command_is_cut(job->command))
		count_repeats(job, &job->cores[number], words);
}
