// SPDX-License-Identifier: MIT
/*
 * Runs a PARTITION: maps its arrays, plans the sort, and calls the stages in order (collect, sort,
 * merge, bucketize, limit, split, place, emit). The stages are files of their own; this one
 * allocates what they share and reports the statistics.
 *
 * A struct pcsr_job lives for one command; its buffers belong to the context and outlive it. Called
 * without engine->lock by the running command.
 */
#include "../memory/record.h"
#include "partition.h"

#define FLAT_LEAST 256u
#define FLAT_MOST (48u << 10)

struct merging {
	struct pcsr_job *job;
	u64 *words, *payload;
	u32 *keys, *starts, *places;
};

static u16 report_no_job_memory(struct pcsr_job *job)
{
	if (command_is_cut(job->command))
		return abort_command(job->command);
	return fault_set(&job->command->fault, EMBENG_STATUS_NO_MEMORY, EMBENG_FIELD_DESC,
			 EMBENG_NO_INDEX, 0, job->ids, 0);
}

static u32 bits_below(u64 limit)
{
	return limit > 1 ? 64 - (u32)__builtin_clzll(limit - 1) : 0;
}

static u64 ids_before(const struct pcsr_feature *f, u64 sample)
{
	return f->offsets ? f->offsets[sample] : sample;
}

static int size_cores(struct pcsr_job *job)
{
	u64 first = 0;

	job->cores = pcsr_memory(job, PCSR_CORES, job->device_cores, sizeof(*job->cores));
	if (!job->cores)
		return -1;
	memset(job->cores, 0, job->device_cores * sizeof(*job->cores));
	for (u32 c = 0; c < job->device_cores; c++) {
		struct pcsr_core *core = &job->cores[c];

		core->first = first;
		for (u32 i = 0; i < job->given->feature_count; i++) {
			const struct pcsr_feature *f = &job->features[i];

			core->words += ids_before(f, (c + 1) * f->samples) -
				       ids_before(f, c * f->samples);
		}
		first += core->words;
		if (core->words > job->core_words)
			job->core_words = core->words;
	}
	return 0;
}

static bool gains_are_one(const struct pcsr_job *job)
{
	for (u32 i = 0; i < job->given->feature_count; i++)
		if (job->features[i].gains)
			return false;
	return true;
}

/*
 * Passes over all words of a core save one by partition, while the second cache holds them. A few
 * are sooner sorted by comparing.
 */
static void plan_sort(struct pcsr_job *job)
{
	u32 bits = job->part_bits + job->token_bits;

	job->flat = job->form != KERNEL_WORDS_PAIRED && bits &&
		    (job->form == KERNEL_WORDS_ONES || bits + job->row_bits <= 32) &&
		    job->part_bits <= PCSR_DIGIT_MAX && job->core_words >= FLAT_LEAST &&
		    job->core_words <= FLAT_MOST;
	job->passes = 1;
	job->digits[0] = (struct pcsr_digit){ job->token_bits, job->part_bits };
	if (job->flat)
		job->passes = pcsr_digits(job->digits, job->core_words, bits, job->part_bits);
}

static enum kernel_words form_of_words(const struct pcsr_job *job)
{
	if (job->row_bits >= 32)
		return KERNEL_WORDS_PAIRED;
	if (gains_are_one(job))
		return KERNEL_WORDS_ONES;
	return job->token_bits + job->row_bits <= 32 ? KERNEL_WORDS_PACKED : KERNEL_WORDS_PAIRED;
}

static void size_words(struct pcsr_job *job)
{
	const struct embeng_partition *g = job->given;

	job->part_bits = bits_below(g->cores);
	job->token_bits = bits_below(g->columns / g->cores);
	job->row_bits = bits_below(job->rows);
	job->form = form_of_words(job);
	job->item_shift = job->form == KERNEL_WORDS_ONES ? 0 : 32;
	plan_sort(job);
	/*
	 * Each task has memory of its own or, if there are fewer workers than tasks, each worker.
	 */
	job->workers = job->device_cores < job->engine->caps.cores ? job->device_cores :
								     job->engine->caps.cores;
}

static int make_job_room(struct pcsr_job *job, struct merging *m)
{
	const struct embeng_partition *g = job->given;
	bool counts_all = g->flavour == EMBENG_FLAVOUR_JAX && g->flags & EMBENG_PARTITION_DROPPING;
	u32 *items = pcsr_memory(job, PCSR_ITEMS, job->ids + PCSR_ALIGN, 3 * sizeof(u32));
	bool paired = job->form == KERNEL_WORDS_PAIRED;
	u64 totals = 2ull * job->device_cores * g->cores;

	m->job = job;
	m->keys = pcsr_memory(job, PCSR_KEYS, job->workers * job->core_words, sizeof(u32));
	m->starts = pcsr_memory(job, PCSR_STARTS, job->workers * (2ull * g->cores + 1),
				sizeof(u32));
	m->words = pcsr_memory(job, PCSR_WORDS,
			       job->workers * 2 * job->core_words + KERNEL_WORDS_AHEAD,
			       sizeof(u64));
	m->payload = paired ? pcsr_memory(job, PCSR_PAYLOAD, job->workers * job->core_words,
					  sizeof(u64)) :
			      NULL;
	m->places = pcsr_memory(job, PCSR_COUNTS, (u64)job->workers * PCSR_PASSES_MAX,
				sizeof(u32) << PCSR_DIGIT_MAX);
	job->totals = pcsr_memory(job, PCSR_TOTALS, totals, sizeof(u32));
	job->repeats = counts_all ? pcsr_memory(job, PCSR_REPEATS, job->ids, sizeof(u32)) : NULL;
	if (!items || !m->keys || !m->starts || !m->words || (paired && !m->payload) ||
	    !m->places || !job->totals || (counts_all && !job->repeats))
		return -1;
	job->tokens = items;
	job->samples = items + job->ids;
	job->gains = items + 2 * job->ids;
	return 0;
}

static void merge_core(void *arg, u64 number, u32 worker)
{
	struct merging *m = arg;
	struct pcsr_job *job = m->job;
	u64 slot = job->workers == job->device_cores ? number : worker;
	struct pcsr_words words = {
		.keys = m->keys + slot * job->core_words,
		.words = m->words + slot * 2 * job->core_words,
		.other = m->words + (slot * 2 + 1) * job->core_words,
		.payload = m->payload ? m->payload + slot * job->core_words : NULL,
		.starts = m->starts + slot * (2ull * job->given->cores + 1),
		.places = m->places + ((slot * PCSR_PASSES_MAX) << PCSR_DIGIT_MAX),
	};

	if (pcsr_collect(job, (u32)number, &words) || command_is_cut(job->command))
		return;
	if (job->flat)
		pcsr_sort_flat(job, &words, job->cores[number].words);
	for (u32 p = 0; !job->flat && p < job->given->cores && !command_is_cut(job->command); p++)
		pcsr_sort(job->command, &words, words.starts[p], words.starts[p + 1],
			  job->item_shift + (words.payload ? 0 : job->row_bits), job->token_bits);
	if (!command_is_cut(job->command))
		pcsr_merge(job, (u32)number, &words);
}

/* The first id at fault, by feature and place, whoever met it. */
static u16 first_fault(struct pcsr_job *job)
{
	struct fault *fault = &job->command->fault;

	for (u32 c = 0; c < job->device_cores; c++) {
		const struct fault *f = &job->cores[c].fault;

		if (f->status && (!fault->status || f->feature < fault->feature))
			*fault = *f;
	}
	return fault->status;
}

static u16 merge_all(struct pcsr_job *job)
{
	struct merging m;

	if (size_cores(job))
		return report_no_job_memory(job);
	size_words(job);
	if (make_job_room(job, &m))
		return report_no_job_memory(job);
	if (!workers_run(job->command, merge_core, &m, job->device_cores, job->ids * 64))
		return abort_command(job->command);
	return first_fault(job);
}

/* One run per partition, until buckets are needed. Return: whether they are, or -1. */
static int make_runs(struct pcsr_job *job)
{
	const struct embeng_partition *g = job->given;
	bool over = false;

	job->buckets = 1;
	job->runs = pcsr_memory(job, PCSR_RUNS, (u64)job->device_cores * g->cores,
				sizeof(*job->runs));
	if (!job->runs)
		return -1;
	for (u32 c = 0; c < job->device_cores; c++) {
		const u32 *ids = pcsr_totals(job, c, false), *columns = pcsr_totals(job, c, true);

		for (u32 p = 0; p < g->cores; p++) {
			*pcsr_runs(job, c, p) = (struct pcsr_run){ .ids = ids[p],
								   .columns = columns[p] };
			over |= (g->max_ids && ids[p] > g->max_ids) ||
				(g->max_unique_ids && columns[p] > g->max_unique_ids);
		}
	}
	return (over || g->splits) && g->flags & EMBENG_PARTITION_MINIBATCHING;
}

static u16 arrange_runs(struct pcsr_job *job)
{
	int minibatches = make_runs(job);
	u16 status;

	if (minibatches < 0 || (minibatches && pcsr_bucketize(job)))
		return report_no_job_memory(job);
	status = pcsr_limits(job);
	if (status)
		return status;
	pcsr_split(job);
	return pcsr_place(job);
}

/* Statistics of the totals, before they are used up as places. */
static void tell_partitions(const struct pcsr_job *job, u32 *most)
{
	u32 cores = job->given->cores;

	memset(most, 0, 2ull * cores * sizeof(*most));
	for (u32 c = 0; c < job->device_cores; c++) {
		const u32 *totals = pcsr_totals(job, c, false);

		for (u32 i = 0; i < 2 * cores; i++)
			most[i] = totals[i] > most[i] ? totals[i] : most[i];
	}
}

static void tell_cores(const struct pcsr_job *job, u64 *told)
{
	for (u32 c = 0; c < job->device_cores; c++) {
		const u32 *ids = pcsr_totals(job, c, false);

		told[c] = 0;
		for (u32 p = 0; p < job->given->cores; p++)
			told[c] += pcsr_aligned(ids[p]);
		told[job->device_cores + c] = job->cores[c].base;
		told[2 * job->device_cores + c] = job->cores[c].base + job->cores[c].length;
	}
}

static void tell_result(const struct pcsr_job *job, u8 *out)
{
	struct embeng_partition_result result = {
		.splits = job->splits,
		.row_pointers = (u64)job->device_cores * job->minibatches * job->row_stride,
		.buffer = job->buffer,
		.minibatches = job->minibatches,
		.row_stride = job->row_stride,
	};

	for (u32 c = 0; c < job->device_cores; c++) {
		result.dropped_ids += job->cores[c].dropped;
		result.items = job->cores[c].base + job->cores[c].length;
	}
	memcpy(out, &result, sizeof(result));
}

static u16 write_out(struct pcsr_job *job, struct view views[])
{
	u8 *result = views[4].data;
	u32 *most = (u32 *)(result + sizeof(struct embeng_partition_result));

	job->out_pointers = views[0].data;
	job->out_tokens = views[1].data;
	job->out_samples = views[2].data;
	job->out_gains = views[3].data;
	tell_partitions(job, most);
	tell_cores(job, (u64 *)(most + 2 * job->given->cores));
	if (!pcsr_emit(job))
		return abort_command(job->command);
	tell_result(job, result);
	job->command->result = job->ids;
	reg_count(job->engine, EMBENG_REG_COUNT_BYTES_WRITTEN, job->ids * 12);
	return 0;
}

static u16 get_partition_outputs(struct pcsr_job *job, struct view views[])
{
	const u32 writes = EMBENG_REGION_DEVICE_WRITE;
	const struct mem_part outputs[] = {
		{ &job->given->row_pointers, writes, 4, EMBENG_FIELD_ROW_POINTERS },
		{ &job->given->tokens, writes, 4, EMBENG_FIELD_TOKENS },
		{ &job->given->samples, writes, 4, EMBENG_FIELD_SAMPLE_IDS },
		{ &job->given->gains, writes, 4, EMBENG_FIELD_GAINS },
		{ &job->given->result, writes, 8, EMBENG_FIELD_RESULT },
	};
	u16 status = mem_get_all(job->command, outputs, 5, EMBENG_NO_INDEX, views);

	/* Rows of the buffers that no item takes stay as they are. */
	port_lock(job->engine->lock);
	for (u32 i = 0; !status && i < 5; i++) {
		if (views[i].data)
			record_before(job->command, outputs[i].mem, views[i].data);
	}
	port_unlock(job->engine->lock);
	return status;
}

u16 pcsr_run(struct command *command)
{
	const struct pcsr_call *call = command->state;
	struct context *context = command->context;
	struct pcsr_job job = { .engine = context->engine,
				.command = command,
				.given = &call->given,
				.device_cores = call->given.device_cores };
	struct view views[5] = { { 0 } };
	u16 status;

	if (!context->pcsr)
		context->pcsr = port_alloc(sizeof(*context->pcsr));
	job.memory = context->pcsr;
	if (!job.memory)
		return report_no_job_memory(&job);
	status = get_partition_outputs(&job, views);
	if (!status)
		status = pcsr_input(&job, call);
	if (!status)
		status = merge_all(&job);
	if (!status)
		status = arrange_runs(&job);
	if (!status)
		status = write_out(&job, views);
	pcsr_input_release(&job);
	region_put_all(context, views, 5);
	return status;
}
