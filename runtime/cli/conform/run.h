/* SPDX-License-Identifier: MIT */
/* Running one checked vector against a device. */
#ifndef CLI_VECTOR_RUN_H
#define CLI_VECTOR_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <json-c/json.h>

#include "../../json/json_read.h"
#include "embeng.h"

#define RUN_TEXT (EMBENG_ERROR_TEXT + 256)

/**
 * struct run_options - of the whole call
 * @device: as given, without the cores of a vector
 * @cores: for vectors that leave it open; 0: the device's
 * @fixed_cores: the device's cores cannot be chosen: neither do vectors
 * @keep_going: go on after a failed step
 */
struct run_options {
	const char *device;
	int64_t cores;
	bool fixed_cores;
	bool keep_going;
};

/* Shape of a feature's activations, dim and all; rank 0 before the first dequeue. */
struct output_shape {
	size_t rank;
	int64_t shape[EMBENG_MAX_RANK + 1];
};

size_t shape_elements(const struct output_shape *shape);

/**
 * struct run - a vector under way
 * @scratch: folder for checkpoints, made when it is first needed, or NULL
 * @text: what the last call that failed said
 * @failure: of the last step that came out wrong: feature, element, numbers
 */
struct run {
	const struct run_options *options;
	const struct json *vector;
	struct embeng_model *model;
	struct embeng *e;
	struct output_shape *shapes;
	char *scratch;
	char text[RUN_TEXT];
	struct json_object *failure;
};

/* What a step returns when nothing failed and the numbers are wrong. */
#define STEP_MISMATCH 1

/* Both return @err: the runner's own sentence, and the library's. */
int run_fail(struct run *r, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int run_library(struct run *r, int err);

/* A mismatch that is no number: returns STEP_MISMATCH. @where: "feature" or "table". */
int run_mismatch(struct run *r, const char *where, const char *name, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* A new failure that says @r->text, in place of the one before. It belongs to @r. */
struct json_object *run_new_failure(struct run *r);

/**
 * run_open() - the vector's model on the device, rows at their start
 * @engine: engine options, or NULL
 * @optimizer: with the vector's optimizers, or for inference alone
 *
 * Return: 0 with the new handle in @r in place of the old, or a negative errno
 * with @r as it was.
 */
int run_open(struct run *r, const struct json *engine, bool optimizer);
void run_close(struct run *r);

struct arrays;

/*
 * batch.c: a new batch; and the inputs of several features, by name, into one, which
 * keeps pointers to what is added to @kept, for inputs_free() after its use.
 */
int batch_begin(struct run *r, enum embeng_mode mode, uint32_t replica, struct embeng_batch **b);
int inputs_add(struct run *r, struct embeng_batch *b, const struct json *features,
	       struct arrays **kept);

/* 0, a negative errno, or STEP_MISMATCH. */
int step_run(struct run *r, const char *verb, const struct json *body);
int step_apply_gradients(struct run *r, const struct json *body);
int step_lookup(struct run *r, const struct json *body);
int step_partition(struct run *r, const struct json *body);
int step_stacking(struct run *r, const struct json *body);
int step_expect_config(struct run *r, const struct json *body);
int step_save(struct run *r, const struct json *body);
int step_restore(struct run *r, const struct json *body);
int step_reopen(struct run *r, const struct json *body);

/* Replica of a step's body. 0 or -ERANGE. */
int step_replica(struct run *r, const struct json *body, uint32_t *replica);

/* A number of a step's body from @least on. 0 or -ERANGE. */
int read_count(struct run *r, const struct json *body, const char *key, int64_t otherwise,
	       int64_t least, uint64_t *out);

/* Its flavour, tf or jax. 0 or -EINVAL. */
int read_partition_flavour(struct run *r, const struct json *body,
			   enum embeng_partition_flavour *flavour);

/**
 * vector_lacks() - the capabilities that a vector needs and this build has not
 *
 * Return: a list of names, owned by the caller, empty when it can run.
 */
struct json_object *vector_lacks(const struct json *vector);

/**
 * vector_run() - run all steps
 *
 * Return: the failures, a list owned by the caller, empty when it passed. Each
 * has "step" (from 1, 0: the model), "verb", "message", and where numbers
 * differ "feature" or "table", "at", "got", "expected", "largest_error".
 */
struct json_object *vector_run(const struct json *vector, const struct run_options *options);

#endif
