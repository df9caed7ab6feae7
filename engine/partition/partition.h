/* SPDX-License-Identifier: MIT */
/*
 * PARTITION: samples of one device as partitioned CSR (uapi/embeng_engine.h says what that
 * is). Not to be mixed up with row_sort.h, which sorts the occurrences of a table by row.
 *
 * Stages, each a task per core of the device: ids become words (items.c), the words are
 * sorted (sort.c) and equal ones merged (merge.c); beyond the limits items are put in
 * order of their buckets (bucket.c), minibatches chosen (split.c), what does not
 * fit is left out (limit.c); then all is laid out (emit.c). A core's share is
 * worked on by one task, so that nothing depends on how many there are.
 */
#ifndef EMBENG_ENGINE_PARTITION_H
#define EMBENG_ENGINE_PARTITION_H

#include "../lookup/batch.h"
#include "../lookup/grid.h"

#define PCSR_PAD_ID 0x7fffffffu

/* Private copy of a descriptor. */
struct pcsr_call {
	struct embeng_partition given;
	struct embeng_partition_feature features[];
};

/* Memory that a context keeps from one PARTITION to the next. */
enum pcsr_buffer {
	PCSR_FEATURES,
	PCSR_OFFSETS, /* u64, those of all features */
	PCSR_GAINS,   /* f32 per sample or id, where a combiner scales them */
	PCSR_CORES,   /* struct pcsr_core */
	PCSR_KEYS,    /* [workers][most ids of a core] u32 */
	PCSR_WORDS,   /* [workers][2][most ids of a core] u64, and as much as kernels read ahead */
	PCSR_PAYLOAD, /* [workers][most ids of a core] u64 */
	PCSR_STARTS,  /* [workers][2 x cores + 1] u32 */
	PCSR_COUNTS,  /* [workers] places of the passes */
	PCSR_ITEMS,   /* [3][ids] u32: tokens, samples, gains; room to read ahead behind them */
	PCSR_ORDERED, /* [3][ids] u32: the items in the order of their buckets */
	PCSR_REPEATS, /* [ids] u32: ids that an item stands for */
	PCSR_BUCKETS, /* [ids] u8 */
	PCSR_RUNS,    /* [device_cores][cores][buckets] struct pcsr_run */
	PCSR_TOTALS,  /* [device_cores][2][cores] u32: ids, columns */
	PCSR_BUFFERS,
};

struct pcsr {
	struct buffer buffers[PCSR_BUFFERS];
};

/**
 * struct pcsr_feature - a feature, its memory resolved
 * @given: its record in the private copy
 * @offsets: [sample_count + 1], checked; NULL for DENSE
 * @gains: f32 bits
 * @each: @gains are per id, else per sample; NULL @gains: 1
 * @samples: on each core
 * @row: that of its first sample within a core
 */
struct pcsr_feature {
	const struct embeng_partition_feature *given;
	struct view ids_view, weights_view;
	const u64 *offsets;
	u32 *gains;
	bool each;
	u64 samples;
	u32 row;
};

/* A digit of a key, by which a pass sorts. */
struct pcsr_digit {
	u32 shift, bits;
};

#define PCSR_DIGIT_MAX 11u
#define PCSR_PASSES_MAX 7u

/* Items of one bucket in one partition of one core. */
struct pcsr_run {
	u32 ids, columns;
	u32 kept, kept_columns; /* after dropping */
};

/**
 * struct pcsr_core - the items of one core of the device
 * @first: its first item in the arrays of all
 * @words: ids
 * @items: after merging
 * @base: first item in the device's buffer
 * @limit: where its part of the buffer ends
 * @length: items from @base on, padding between them too
 * @dropped: ids left out
 * @fault: a fault of an input
 */
struct pcsr_core {
	u64 first, words, items;
	u64 base, limit, length;
	u64 dropped;
	struct fault fault;
};

/**
 * struct pcsr_job - one PARTITION under way
 * @core_words: most ids of a core
 * @rows: samples of a core, all features
 * @form: the words' form
 * @item_shift: where in a word token and row begin
 * @flat: its partition does, too, and all ids of a core are sorted at once
 * @digits: by which; else the partition alone. [passes]
 * @buckets: 1, or EMBENG_PARTITION_BUCKETS once minibatches are needed
 * @splits: the flavour's mask; bit b of @starts: a minibatch begins with bucket b
 * @segment: items of a core's part of the buffer, 0: they are packed
 */
struct pcsr_job {
	struct engine *engine;
	struct command *command;
	struct pcsr *memory;
	const struct embeng_partition *given;
	struct pcsr_feature *features;
	struct pcsr_core *cores;
	u32 device_cores, workers;
	u32 part_bits, token_bits, row_bits;
	u32 passes;
	struct pcsr_digit digits[PCSR_PASSES_MAX];
	u64 ids, core_words, rows;
	u32 *tokens, *samples, *gains;
	u32 *repeats;
	struct pcsr_run *runs;
	u32 *totals;
	enum kernel_words form;
	bool flat;
	u32 item_shift;
	u32 buckets, minibatches, row_stride;
	u64 starts, splits, segment, buffer;
	s32 *out_pointers;
	u32 *out_tokens, *out_samples, *out_gains;
};

static inline struct pcsr_run *pcsr_runs(const struct pcsr_job *job, u32 core, u32 partition)
{
	return job->runs + ((u64)core * job->given->cores + partition) * job->buckets;
}

/* Ids and columns of each partition of a core: [cores] each. */
static inline u32 *pcsr_totals(const struct pcsr_job *job, u32 core, bool columns)
{
	return job->totals + (2ull * core + columns) * job->given->cores;
}

/* Phases of PARTITION. accept.c: 0 or a status; command->state is a struct pcsr_call then. */
u16 pcsr_accept(struct command *command);
void pcsr_release(struct command *command);

/* run.c */
u16 pcsr_run(struct command *command);

/* memory.c: NULL without memory. A context's is freed with it. */
void *pcsr_memory(struct pcsr_job *job, enum pcsr_buffer which, u64 count, u64 size);

/* input.c: features of the job, offsets copied and checked. Return: 0 or a status. */
u16 pcsr_input(struct pcsr_job *job, const struct pcsr_call *call);
void pcsr_input_release(struct pcsr_job *job);

/* The memory of a task. */
struct pcsr_words {
	u32 *keys;	    /* partition << token_bits | token */
	u64 *words, *other; /* by partition */
	u64 *payload;	    /* only with paired words */
	u32 *starts;	    /* [cores + 1] where each partition begins, then places */
	u32 *places;	    /* a set for each digit, PCSR_DIGIT_MAX bits each */
};

/*
 * items.c: a core's ids as words, by partition or, flat, by the first digit. 0, or a
 * status with the core's fault.
 */
u16 pcsr_collect(struct pcsr_job *job, u32 core, const struct pcsr_words *words);

/*
 * sort.c: how to sort so many words by @bits of a key, the last digit of at least @top;
 * the number of digits.
 */
u32 pcsr_digits(struct pcsr_digit *digits, u64 count, u32 bits, u32 top);

/* Counts, of so many bits, become places. */
void pcsr_sum_up(u32 *places, u32 bits);

/* [first, last) of the words by token; stable. */
void pcsr_sort(struct command *command, const struct pcsr_words *words, u64 first, u64 last,
	       u32 low, u32 bits);

/* All words of a core from the second digit on, whose places are known; words may change sides. */
void pcsr_sort_flat(const struct pcsr_job *job, struct pcsr_words *words, u64 count);

/* merge.c: a core's words, sorted, to items, and the totals of its partitions. */
void pcsr_merge(struct pcsr_job *job, u32 number, const struct pcsr_words *words);

/* bucket.c: items of all cores in order of their buckets. 0, or -1 without memory. */
int pcsr_bucketize(struct pcsr_job *job);

/* limit.c: what a run keeps; a status when it may not drop what is too much. */
u16 pcsr_limits(struct pcsr_job *job);

/* split.c: minibatches by what the runs hold. */
void pcsr_split(struct pcsr_job *job);

/* emit.c: where all goes, then puts it there. */
u16 pcsr_place(struct pcsr_job *job);
bool pcsr_emit(struct pcsr_job *job); /* false where the command is to stop */

#endif
