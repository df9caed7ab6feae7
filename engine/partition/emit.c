// SPDX-License-Identifier: MIT
/*
 * Decides where the partitions of each core lie in the device's buffer, checks that they fit, and
 * writes them there with their padding and row pointers.
 *
 * pcsr_place() runs alone; pcsr_emit() has one task for each core of the grid, which writes only
 * its own part of the outputs. The outputs are the program's memory and stay mapped until the
 * command ends. No lock is needed.
 */
#include "partition.h"

/* A block of padding: of tokens and samples, of gains for TF, for JAX (2^31, NaN). */
#define PADDING(bits) { bits, bits, bits, bits, bits, bits, bits, bits }
static const u32 pad_ids[PCSR_ALIGN] = PADDING(PCSR_PAD_ID);
static const u32 pad_gains_tf[PCSR_ALIGN] = PADDING(0x4f000000u);
static const u32 pad_gains_jax[PCSR_ALIGN] = PADDING(0x7fc00000u);

/* So few items are sooner copied here than by a call. */
#define FEW 64u

/* Partitions of one piece; of each there are few items, or the copy has pieces of its own. */
#define EMIT_PIECE (PIECE_ROWS / 64)

static u32 first_bucket_behind(const struct pcsr_job *job, u32 bucket)
{
	do
		bucket++;
	while (bucket < job->buckets && !(job->starts >> bucket & 1));
	return bucket;
}

static u64 count_kept(const struct pcsr_run *runs, u32 first, u32 last)
{
	u64 count = 0;

	for (u32 b = first; b < last; b++)
		count += runs[b].kept;
	return count;
}

/* Each partition of each minibatch begins aligned. */
static u64 length_of_core(const struct pcsr_job *job, u32 core)
{
	u64 length = 0;

	for (u32 first = 0, last; first < job->buckets; first = last) {
		last = first_bucket_behind(job, first);
		for (u32 p = 0; p < job->given->cores; p++)
			length += pcsr_aligned(count_kept(pcsr_runs(job, core, p), first, last));
	}
	return length;
}

static u16 refuse_buffer(struct pcsr_job *job, u32 field, u64 value, u64 limit)
{
	return fault_set(&job->command->fault, EMBENG_STATUS_BUFFER, field, EMBENG_NO_INDEX, 0,
			 value, limit);
}

/* JAX: items that the limits ask for; without limits, what the largest core needs for each. */
static u64 asked_for(const struct pcsr_job *job)
{
	const struct embeng_partition *g = job->given;
	u64 each = pcsr_aligned(g->max_ids) * g->cores, needed = 0;

	if (g->flags & EMBENG_PARTITION_MINIBATCHING)
		each *= EMBENG_PARTITION_BUCKETS;
	for (u32 c = 0; !g->max_ids && c < job->device_cores; c++) {
		needed = length_of_core(job, c);
		each = needed > each ? needed : each;
	}
	return each * job->device_cores;
}

/* JAX: the buffer is as asked for, or smaller; and without minibatching each core has a part. */
static u16 size_jax(struct pcsr_job *job)
{
	const struct embeng_partition *g = job->given;
	u64 each = (u64)PCSR_ALIGN * job->device_cores, asked = asked_for(job);

	job->buffer = g->buffer ? (g->buffer + each - 1) / each * each : asked;
	if (g->max_ids && job->buffer > asked)
		return refuse_buffer(job, EMBENG_FIELD_MAX_IDS, job->buffer, asked);
	if (!(g->flags & EMBENG_PARTITION_MINIBATCHING)) {
		job->segment = job->buffer / job->device_cores;
		if (job->buffer > PCSR_ITEMS_MAX)
			return refuse_buffer(job, EMBENG_FIELD_MAX_IDS, job->buffer,
					     PCSR_ITEMS_MAX);
	} else if (job->buffer > PCSR_ITEMS_MAX) {
		job->buffer = PCSR_ITEMS_MAX;
	}
	return 0;
}

static void place_cores(struct pcsr_job *job)
{
	u64 at = 0;

	for (u32 c = 0; c < job->device_cores; c++) {
		struct pcsr_core *core = &job->cores[c];

		core->length = length_of_core(job, c);
		core->base = job->segment ? c * job->segment : at;
		core->limit = job->segment ? core->base + job->segment : job->buffer;
		at = core->base + core->length;
	}
}

static u64 end_of(const struct pcsr_core *core)
{
	u64 end = core->base + core->length;

	return end < core->limit ? end : core->limit;
}

static u16 check_buffer_room(struct pcsr_job *job)
{
	const struct embeng_partition *g = job->given;
	u64 entries = (u64)job->device_cores * job->minibatches * job->row_stride;

	for (u32 c = 0; c < job->device_cores; c++) {
		struct pcsr_core *core = &job->cores[c];
		u64 end = core->base + core->length;

		if (end > core->limit && !(g->flags & EMBENG_PARTITION_DROPPING))
			return refuse_buffer(job, EMBENG_FIELD_BUFFER, end, core->limit);
		if (core->base > core->limit)
			core->base = core->limit;
		core->length = end_of(core) - core->base;
		if (end_of(core) > g->tokens.length / 4)
			return refuse_buffer(job, EMBENG_FIELD_TOKENS, end_of(core),
					     g->tokens.length / 4);
	}
	if (entries > g->row_pointers.length / 4)
		return refuse_buffer(job, EMBENG_FIELD_ROW_POINTERS, entries,
				     g->row_pointers.length / 4);
	return 0;
}

u16 pcsr_place(struct pcsr_job *job)
{
	bool jax = job->given->flavour == EMBENG_FLAVOUR_JAX;
	u16 status = 0;

	job->row_stride = (u32)pcsr_aligned(job->given->cores);
	job->segment = 0;
	job->buffer = job->given->buffer ? job->given->buffer : PCSR_ITEMS_MAX;
	if (jax)
		status = size_jax(job);
	if (status)
		return status;
	place_cores(job);
	status = check_buffer_room(job);
	if (!job->given->buffer && !jax)
		job->buffer = job->cores[job->device_cores - 1].base +
			      job->cores[job->device_cores - 1].length;
	return status;
}

/* Under way through a core's items. */
struct writer {
	const struct pcsr_job *job;
	struct pcsr_core *core;
	u64 at;	    /* in the buffer */
	u64 padded; /* up to here it has padding from @at on */
	const u32 *pad_gains;
};

typedef u32 block __attribute__((vector_size(PCSR_ALIGN * sizeof(u32)), aligned(4), may_alias));

/* From so many elements before the middle on: those of a block that are there. */
static const u32 there[2 * PCSR_ALIGN] = {
	U32_MAX, U32_MAX, U32_MAX, U32_MAX, U32_MAX, U32_MAX, U32_MAX, U32_MAX,
};

/* @mask by its address: a block by value is called differently with AVX than without. */
INLINE void copy_padded_block(u32 *to, const u32 *from, const u32 *padding, const u32 *mask)
{
	block kept = *(const block *)mask;

	*(block *)to = (*(const block *)from & kept) | (*(const block *)padding & ~kept);
}

/* Padding behind them, without a branch for each; as much of the items may be read. */
static void copy_few(struct writer *w, u64 from, u64 count)
{
	const struct pcsr_job *job = w->job;
	const u32 *tokens = job->tokens + from, *samples = job->samples + from;
	const u32 *gains = job->gains + from, *pad_gains = w->pad_gains;
	u32 *to_tokens = job->out_tokens + w->at, *to_samples = job->out_samples + w->at;
	u32 *to_gains = job->out_gains + w->at;

	for (u64 i = 0; i < count; i += PCSR_ALIGN) {
		u64 left = count - i < PCSR_ALIGN ? count - i : PCSR_ALIGN;
		const u32 *mask = there + PCSR_ALIGN - left;

		copy_padded_block(to_tokens + i, tokens + i, pad_ids, mask);
		copy_padded_block(to_samples + i, samples + i, pad_ids, mask);
		copy_padded_block(to_gains + i, gains + i, pad_gains, mask);
	}
	w->padded = w->at + pcsr_aligned(count);
	w->at += count;
}

static void copy_items(struct writer *w, u64 from, u64 count)
{
	const struct pcsr_job *job = w->job;
	u64 room = w->core->limit - w->at;

	if (!(w->at % PCSR_ALIGN) && count <= FEW && pcsr_aligned(count) <= room) {
		copy_few(w, from, count);
		return;
	}
	if (count > room) {
		w->core->dropped += count - room;
		count = room;
	}
	if (piece_copy(job->command, job->out_tokens + w->at, job->tokens + from, count * 4) ||
	    piece_copy(job->command, job->out_samples + w->at, job->samples + from, count * 4) ||
	    piece_copy(job->command, job->out_gains + w->at, job->gains + from, count * 4))
		return;
	w->at += count;
}

static void pad_items(struct writer *w)
{
	if (w->at < w->padded)
		w->at = w->padded;
	for (; w->at % PCSR_ALIGN && w->at < w->core->limit; w->at++) {
		w->job->out_tokens[w->at] = PCSR_PAD_ID;
		w->job->out_samples[w->at] = PCSR_PAD_ID;
		w->job->out_gains[w->at] = *w->pad_gains;
	}
}

/* Buckets [first, last) of all partitions. @from: where each partition goes on. */
static void write_minibatch(struct writer *w, u32 number, u32 first, u32 last, u32 *from,
			    s32 *pointers)
{
	const struct pcsr_job *job = w->job;
	u64 origin = job->segment ? w->core->base : 0;

	for (u32 p = 0; p < job->given->cores; p++) {
		const struct pcsr_run *runs = pcsr_runs(job, number, p);

		for (u32 b = first; b < last && !command_is_cut(job->command); b++) {
			copy_items(w, w->core->first + from[p], runs[b].kept);
			from[p] += runs[b].ids;
		}
		pointers[p] = (s32)(w->at - origin);
		pad_items(w);
		if (!(p % EMIT_PIECE) && piece_over(job->command))
			return;
	}
	for (u32 p = job->given->cores; p < job->row_stride; p++)
		pointers[p] = (s32)(w->at - origin);
}

/* The totals are no longer needed as counts: they become places. */
static u32 *places_of(const struct pcsr_job *job, u32 core)
{
	u32 *places = pcsr_totals(job, core, false), sum = 0;

	for (u32 p = 0; p < job->given->cores; p++) {
		u32 count = places[p];

		places[p] = sum;
		sum += count;
	}
	return places;
}

static void emit_core(void *arg, u64 number, u32 worker)
{
	struct pcsr_job *job = arg;
	bool jax = job->given->flavour == EMBENG_FLAVOUR_JAX;
	struct writer w = {
		.job = job,
		.core = &job->cores[number],
		.at = job->cores[number].base,
		.pad_gains = jax ? pad_gains_jax : pad_gains_tf,
	};
	s32 *pointers = job->out_pointers + number * job->minibatches * job->row_stride;
	u32 *from = places_of(job, number);

	(void)worker;
	for (u32 first = 0, last; first < job->buckets && !command_is_cut(job->command);
	     first = last) {
		last = first_bucket_behind(job, first);
		write_minibatch(&w, number, first, last, from, pointers);
		pointers += job->row_stride;
	}
}

bool pcsr_emit(struct pcsr_job *job)
{
	return workers_run(job->command, emit_core, job, job->device_cores, job->ids * 24);
}
