// SPDX-License-Identifier: MIT
/*
 * Opens an engine with the tables of a workload, and places the input of its steps in a buffer that
 * the engine reads directly. A workload that does not fit the machine is refused before anything is
 * allocated.
 *
 * Everything belongs to the struct bench_engine until bench_engine_close().
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../frame/exit.h"
#include "../frame/transfer.h"
#include "engine.h"
#include "measure.h"

/* Rows start like the peer's. */
#define ROW_LIMIT 0.05f
#define DEVICE_NAME 128
#define PLACE 64u /* bytes that inputs begin at a multiple of */

static int add_bench_table(struct embeng_model *model, const struct bench_setup *setup, int table)
{
	const struct bench_workload *w = setup->workload;
	struct embeng_table_config config = EMBENG_INIT(
		embeng_table_config, .vocabulary_size = w->rows[table], .dim = w->dim,
		.combiner = setup->combiner,
		.initializer = {EMBENG_INIT_UNIFORM, -ROW_LIMIT, ROW_LIMIT, setup->call->seed});
	struct embeng_feature_config feature = EMBENG_INIT(embeng_feature_config, .table = table,
							   .max_samples = bench_bags(w),
							   .max_ids = bench_table_ids(w));
	int ret;

	if (setup->optimizer)
		config.optimizer = setup->optimizer->make(setup->optimizer->learning_rate);
	ret = embeng_model_add_table(model, &config);
	if (ret >= 0)
		ret = embeng_model_add_feature(model, &feature);
	return ret < 0 ? ret : 0;
}

/* One step at a time is measured, so one at a time has its memory. Rings take what there is. */
static int make_bench_model(const struct bench_setup *setup, struct embeng_model **out)
{
	struct embeng_engine_config engine = EMBENG_INIT(embeng_engine_config,
							 .replicas = setup->replicas);
	struct embeng_model *model = embeng_model_new();
	int err = model ? 0 : -ENOMEM;

	engine.step_depth = setup->one_step ? BENCH_STEP_DEPTH : 0;
	for (int t = 0; !err && t < setup->workload->tables; t++)
		err = add_bench_table(model, setup, t);
	err = err ? err : embeng_model_set_engine(model, &engine);
	if (err)
		embeng_model_free(model);
	else
		*out = model;
	return err;
}

static uint64_t input_bytes(const struct bench_setup *setup)
{
	const struct bench_workload *w = setup->workload;
	uint64_t ids = bench_step_ids(w) * (uint64_t)setup->input->batches;
	uint64_t splits = bench_bags(w) + 1;

	return ids * (bench_id_width(setup->input->type) + sizeof(float)) +
	       splits * sizeof(int64_t) * (uint64_t)setup->input->batches * (uint64_t)w->tables +
	       bench_elements(w) * sizeof(float);
}

static int too_large(const struct bench_setup *setup, uint64_t needed, uint64_t available,
		     const struct output *out)
{
	char wanted[BYTES_TEXT], there[BYTES_TEXT];

	return output_fail(out, CLI_BUSY, ENOSPC,
			   "--scale 0.1 makes the workload a tenth as large; its "
			   "figures then cannot be compared",
			   "%s%s%s needs %s of memory, %s are available", setup->workload->name,
			   setup->optimizer ? " with " : "",
			   setup->optimizer ? setup->optimizer->name : "",
			   bytes_text(needed, wanted), bytes_text(available, there));
}

/* Before anything is allocated: what does not fit would end with some program being killed. */
static int check_memory(struct bench_engine *b, const struct bench_setup *setup,
			const struct embeng_model *model, uint64_t *table_bytes,
			const struct output *out)
{
	struct embeng_plan_options options = EMBENG_INIT(
		embeng_plan_options, .batch_size = (int64_t)bench_bags(setup->workload),
		.id_type = (int)setup->input->type, .buffers = 1, .splits = 1,
		.inference = !setup->optimizer,
		.weights = setup->input->columns[0][0].weights != NULL, .cores = setup->call->cores,
		.step_depth = setup->call->step_depth);
	uint64_t available = machine_memory_available();
	struct embeng_plan *plan;
	int err = embeng_model_plan(model, &options, &plan);

	if (err)
		return output_library_failure(out, err, NULL);
	b->planned_bytes = plan->total_bytes;
	*table_bytes = plan->table_bytes;
	embeng_plan_free(plan);
	if (b->planned_bytes + input_bytes(setup) > available)
		return too_large(setup, b->planned_bytes + input_bytes(setup), available, out);
	return 0;
}

/* Threads of the engine take their processors themselves; this one stays on the first. */
static int open_bench_device(struct bench_engine *b, const struct bench_setup *setup,
			     const struct embeng_model *model, uint64_t table_bytes)
{
	const struct bench_call *call = setup->call;
	int pins = call->threads < call->cpu_count ? call->threads : call->cpu_count;
	char soft[DEVICE_NAME];
	int err;

	/* A save keeps the rows that change meanwhile, and a word for each row. */
	if (setup->saves)
		table_bytes = 3 * table_bytes + (64u << 20);
	snprintf(soft, sizeof(soft), "soft:cores=%d,memory=%lluK", call->threads,
		 (unsigned long long)(table_bytes >> 10) + 1);
	machine_pin(call->cpus, pins);
	err = embeng_open(call->device ? call->device : soft, model, &b->e, NULL);
	machine_pin(call->cpus, 1);
	b->device.size = sizeof(b->device);
	return err ? err : embeng_info(b->e, &b->device);
}

/* Places arrays in one buffer, or counts them if that is NULL. Shared arrays are there once. */
struct placing {
	char *buffer;
	size_t used;
	const void *last[3];
	void *placed[3];
};

static void *place_array(struct placing *p, int kind, const void *from, size_t bytes)
{
	if (from && from != p->last[kind]) {
		p->last[kind] = from;
		p->placed[kind] = NULL;
		if (p->buffer)
			p->placed[kind] = memcpy(p->buffer + p->used, from, bytes);
		p->used += (bytes + PLACE - 1) / PLACE * PLACE;
	}
	return from ? p->placed[kind] : NULL;
}

static void place_all(struct placing *p, struct bench_engine *b, const struct bench_setup *setup)
{
	size_t ids = bench_table_ids(b->workload), bags = bench_bags(b->workload);
	const struct bench_input *from = setup->input;

	for (int k = 0; k < from->batches * b->workload->tables; k++) {
		int which = k / b->workload->tables, table = k % b->workload->tables;
		const struct bench_column *source = &from->columns[which][table];
		struct bench_column *c = &b->input.columns[which][table];

		c->ids = place_array(p, 0, source->ids, ids * bench_id_width(from->type));
		c->splits = place_array(p, 1, source->splits, (bags + 1) * sizeof(int64_t));
		c->weights = place_array(p, 2, setup->unweighted ? NULL : source->weights,
					 ids * sizeof(float));
	}
	if (setup->optimizer)
		b->input.gradient = place_array(p, 0, from->gradient,
						bench_elements(b->workload) * sizeof(float));
}

/* A small buffer for each feature would stand on small pages. */
static int place_input(struct bench_engine *b, const struct bench_setup *setup)
{
	struct placing counted = {0}, p = {0};

	b->input = (struct bench_input){.type = setup->input->type,
					.batches = setup->input->batches};
	place_all(&counted, b, setup);
	p.buffer = embeng_buffer_alloc(b->e, counted.used);
	if (!p.buffer)
		return -ENOMEM;
	place_all(&p, b, setup);
	return 0;
}

/* How many rows' bytes the slots of one row move; one number moves a line. */
static double count_slot_rows(const struct embeng_model *model)
{
	int64_t line = PLACE / sizeof(float), dim = embeng_model_slot_width(model, 0, NULL);
	double rows = 0;

	for (size_t k = 0; k < embeng_model_slot_count(model, 0); k++) {
		int64_t width = embeng_model_slot_width(model, 0,
							embeng_model_slot_name(model, 0, k));

		rows += width == dim ? 1.0 : (double)(width > line ? width : line) / (double)dim;
	}
	return rows;
}

static int open_and_place(struct bench_engine *b, const struct bench_setup *setup,
			  const struct embeng_model *model, uint64_t table_bytes)
{
	int err = open_bench_device(b, setup, model, table_bytes);

	b->slots = embeng_model_slot_count(model, 0);
	b->slot_rows = count_slot_rows(model);
	err = err ? err : place_input(b, setup);
	if (err)
		return err;
	b->batch = embeng_batch_new(b->e, setup->optimizer ? EMBENG_TRAIN : EMBENG_INFERENCE, 0);
	return b->batch ? 0 : -ENOMEM;
}

int bench_engine_open(struct bench_engine *b, const struct bench_setup *setup,
		      const struct output *out)
{
	struct embeng_model *model;
	uint64_t table_bytes = 0;
	int err, code;

	*b = (struct bench_engine){.workload = setup->workload};
	err = make_bench_model(setup, &model);
	if (err)
		return output_library_failure(out, err, NULL);
	code = check_memory(b, setup, model, &table_bytes, out);
	if (!code) {
		err = open_and_place(b, setup, model, table_bytes);
		code = err ? output_library_failure(out, err, "`embeng list` shows the devices")
			   : 0;
	}
	embeng_model_free(model);
	if (code)
		bench_engine_close(b);
	return code;
}

int bench_job_open(const struct bench_job *job, const struct bench_setup *setup, enum bench_op op,
		   struct bench_engine *b, struct bench_result **result)
{
	struct bench_result *r = bench_result_add(job->results);
	int code;

	if (!r)
		return output_fail(job->out, CLI_DEVICE, ENOMEM, NULL, "out of memory");
	code = bench_engine_open(b, setup, job->out);
	if (code)
		return code;
	bench_engine_describe(b, setup, op, r);
	r->unique_per_step = job->unique;
	r->limits = *job->limits;
	*result = r;
	return 0;
}

void bench_engine_close(struct bench_engine *b)
{
	embeng_batch_free(b->batch);
	embeng_close(b->e);
	b->batch = NULL;
	b->e = NULL;
}

int bench_engine_add(struct bench_engine *b, int which, int table)
{
	const struct bench_column *c = &b->input.columns[which][table];
	size_t ids = bench_table_ids(b->workload), bags = bench_bags(b->workload);
	int64_t shape[] = {(int64_t)bags};

	if (!b->workload->pooled && !c->weights)
		return embeng_batch_dense(b->batch, table, b->input.type, c->ids, ids, shape, 1);
	return embeng_batch_ragged_splits(b->batch, table, b->input.type, c->ids, ids, c->splits,
					  bags + 1, c->weights, c->weights ? ids : 0);
}
