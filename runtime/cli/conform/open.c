// SPDX-License-Identifier: MIT
/*
 * Opens the device for a vector, and writes the rows that its tables start from.
 *
 * The engine and the model belong to the run until run_close().
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hosts.h"
#include "model.h"
#include "value.h"

/* Rows are written in pieces of about this many floats. */
#define PIECE 65536

static int write_matrix(struct run *r, struct embeng *e, int table, const char *slot,
			const struct json *matrix, int64_t rows, size_t dim)
{
	size_t piece = dim < PIECE ? PIECE / dim : 1;
	int64_t *ids = malloc(piece * sizeof(*ids));
	float *data = malloc(piece * dim * sizeof(*data));
	int err = ids && data ? 0 : run_fail(r, -ENOMEM, "out of memory");

	for (int64_t first = 0; !err && first < rows; first += (int64_t)piece) {
		size_t count = rows - first < (int64_t)piece ? (size_t)(rows - first) : piece;

		for (size_t i = 0; i < count; i++)
			ids[i] = first + (int64_t)i;
		matrix_rows(matrix, ids, first, count, dim, data);
		err = embeng_rows_write(e, table, slot, ids, count, data);
		if (err)
			run_library(r, err);
	}
	free(ids);
	free(data);
	return err;
}

static int fill_slot(struct run *r, struct embeng *e, int table, const char *slot,
		     const struct json *spec, const struct json *matrix)
{
	int64_t shape[] = {integer_member(spec, "vocabulary_size", 0),
			   embeng_model_slot_width(embeng_get_model(e), table, slot)};

	if (shape[1] < 0)
		return run_library(r, (int)shape[1]);

	if (json_is(matrix, JSON_ARRAY) && !nested_has_shape(matrix, shape, 2))
		return run_fail(r, -EINVAL, "table '%s': %s must have %lld x %lld numbers",
				text_member(spec, "name", ""), slot, (long long)shape[0],
				(long long)shape[1]);
	return write_matrix(r, e, table, slot, matrix, shape[0], (size_t)shape[1]);
}

static int fill_table_slots(struct run *r, struct embeng *e, int table, const struct json *spec,
			    bool optimizer)
{
	const struct json *initial = member(spec, "initial"), *slots = member(spec, "slots");
	int err = 0;

	if (initial)
		err = fill_slot(r, e, table, "parameters", spec, initial);
	if (err || !slots || !optimizer)
		return err;
	for (size_t i = 0; i < json_length(slots); i++) {
		const char *slot = json_name(slots, i);
		const struct json *matrix = json_at(slots, i);
		err = fill_slot(r, e, table, slot, spec, matrix);
		if (err)
			return err;
	}
	return 0;
}

int run_fill_tables(struct run *r, struct embeng *e, const struct json *tables, int first,
		    bool optimizer)
{
	int err = 0;

	for (size_t i = 0; !err && i < list_length(tables); i++)
		err = fill_table_slots(r, e, first + (int)i, json_at(tables, i), optimizer);
	return err;
}

/* The device's name with the cores that the vector, else the call, asks for. */
static int device_name(struct run *r, const struct json *engine, char *name, size_t size)
{
	const struct run_options *options = r->options;
	bool chosen = member(engine, "cores") || options->cores;
	int64_t cores = integer_member(engine, "cores", options->cores);
	const char *own = options->device + vector_hosts_prefix(options->device);
	int length;

	if (chosen && !options->fixed_cores)
		length = snprintf(name, size, "%s%ccores=%lld", options->device,
				  strchr(own, ':') ? ',' : ':', (long long)cores);
	else
		length = snprintf(name, size, "%s", options->device);
	return (size_t)length < size ? 0 : run_fail(r, -EINVAL, "the device's name is too long");
}

static int open_vector_device(struct run *r, const struct json *engine, struct embeng_model *model,
			      struct embeng **e)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);
	char name[256];
	int err = device_name(r, engine, name, sizeof(name));

	if (err)
		return err;
	err = embeng_open(name, model, e, &error);
	return err ? run_fail(r, err, "%s", error.text) : 0;
}

/* The replicas that this process feeds. */
static void note_replicas(struct run *r)
{
	struct embeng_device_info info = EMBENG_INIT(embeng_device_info);

	if (embeng_info(r->e, &info))
		return;
	r->first_replica = info.first_replica;
	r->replica_count = info.replica_count;
}

int run_open(struct run *r, const struct json *engine, bool optimizer)
{
	struct embeng_model *model = embeng_model_new();
	struct output_shape *shapes = NULL;
	struct embeng *e = NULL;
	int err;

	if (!model)
		return run_fail(r, -ENOMEM, "out of memory");
	err = model_build(r, engine, optimizer, model);
	if (!err)
		err = open_vector_device(r, engine, model, &e);
	if (!err)
		err = run_fill_tables(r, e, member(r->vector, "tables"), 0, optimizer);
	if (!err) {
		shapes = calloc(embeng_model_feature_count(model) + 1, sizeof(*shapes));
		if (!shapes)
			err = run_fail(r, -ENOMEM, "out of memory");
	}
	if (err) {
		embeng_close(e);
		embeng_model_free(model);
		return err;
	}
	run_close(r);
	r->model = model;
	r->e = e;
	r->shapes = shapes;
	r->opened = engine;
	r->trains = optimizer;
	note_replicas(r);
	return 0;
}

void run_close(struct run *r)
{
	embeng_close(r->e);
	embeng_model_free(r->model);
	free(r->shapes);
	free(r->added);
	r->e = NULL;
	r->model = NULL;
	r->shapes = NULL;
	r->added = NULL;
	r->added_count = 0;
}
