// SPDX-License-Identifier: MIT
/*
 * Orders the items of each partition by bucket, which is needed only when a partition is too large
 * for one minibatch. Each core of the grid is a task of its own.
 *
 * The ordered items lie in the context's memory for partitioning and take the place of the ones
 * before. No lock is needed: one command runs at a time and a task touches only the items of its
 * core.
 */
#include "../hash/highway.h"
#include "partition.h"

struct bucketing {
	struct pcsr_job *job;
	u8 *buckets;  /* one for each item */
	u32 *ordered; /* [4][ids]: tokens, samples, gains, repeats */
	u64 division; /* columns of a bucket, by DIV */
};

static u8 bucket_of_column(const struct bucketing *b, u32 column)
{
	switch (b->job->given->bucket) {
	case EMBENG_BUCKET_MOD:
		return column % EMBENG_PARTITION_BUCKETS;
	case EMBENG_BUCKET_HASH:
		return highway_column(column) % EMBENG_PARTITION_BUCKETS;
	}
	column = (u32)(column / b->division);
	return column < EMBENG_PARTITION_BUCKETS ? column : EMBENG_PARTITION_BUCKETS - 1;
}

/* Items of a token stand together, so that its bucket is found once. */
static void find_buckets(struct bucketing *b, u32 partition, u64 first, u64 last,
			 struct pcsr_run *runs)
{
	const u32 *tokens = b->job->tokens;
	u64 left = PIECE_ROWS;

	for (u64 i = first; i < last; i++) {
		if (i == first || tokens[i] != tokens[i - 1]) {
			b->buckets[i] = bucket_of_column(b, tokens[i] * b->job->given->cores +
								    partition);
			runs[b->buckets[i]].columns++;
		} else {
			b->buckets[i] = b->buckets[i - 1];
		}
		runs[b->buckets[i]].ids++;
		if (piece_step(b->job->command, &left))
			return;
	}
}

static void order_items(struct bucketing *b, u64 first, u64 last, const struct pcsr_run *runs)
{
	const struct pcsr_job *job = b->job;
	u64 places[EMBENG_PARTITION_BUCKETS], at = first, ids = job->ids, left = PIECE_ROWS;

	for (u32 i = 0; i < EMBENG_PARTITION_BUCKETS; i++) {
		places[i] = at;
		at += runs[i].ids;
	}
	for (u64 i = first; i < last && !piece_step(job->command, &left); i++) {
		u64 to = places[b->buckets[i]]++;

		b->ordered[to] = job->tokens[i];
		b->ordered[ids + to] = job->samples[i];
		b->ordered[2 * ids + to] = job->gains[i];
		if (job->repeats)
			b->ordered[3 * ids + to] = job->repeats[i];
	}
}

static void bucketize_core(void *arg, u64 core, u32 worker)
{
	struct bucketing *b = arg;
	const u32 *ids = pcsr_totals(b->job, core, false);
	u64 first = b->job->cores[core].first;

	(void)worker;
	for (u32 p = 0; p < b->job->given->cores; p++) {
		struct pcsr_run *runs = pcsr_runs(b->job, core, p);

		memset(runs, 0, EMBENG_PARTITION_BUCKETS * sizeof(*runs));
		find_buckets(b, p, first, first + ids[p], runs);
		if (command_is_cut(b->job->command))
			return;
		order_items(b, first, first + ids[p], runs);
		first += ids[p];
	}
}

int pcsr_bucketize(struct pcsr_job *job)
{
	struct bucketing b = { .job = job };

	job->buckets = EMBENG_PARTITION_BUCKETS;
	job->runs = pcsr_memory(job, PCSR_RUNS,
				(u64)job->device_cores * job->given->cores * job->buckets,
				sizeof(*job->runs));
	b.buckets = pcsr_memory(job, PCSR_BUCKETS, job->ids, 1);
	b.ordered = pcsr_memory(job, PCSR_ORDERED, job->ids + PCSR_ALIGN, 4 * sizeof(u32));
	b.division = (job->given->columns + EMBENG_PARTITION_BUCKETS - 1) /
		     EMBENG_PARTITION_BUCKETS;
	if (!job->runs || !b.buckets || !b.ordered)
		return -1;
	if (!workers_run(job->command, bucketize_core, &b, job->device_cores, job->ids * 32))
		return -1;
	job->tokens = b.ordered;
	job->samples = b.ordered + job->ids;
	job->gains = b.ordered + 2 * job->ids;
	job->repeats = job->repeats ? b.ordered + 3 * job->ids : NULL;
	return 0;
}
