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
#include "embeng/partition.h"

#define RUN_TEXT (EMBENG_ERROR_TEXT + 256)

struct vector_hosts;

/**
 * struct run_options - options of the whole call
 * @device: name of the device as given, without the cores that a vector asks for
 * @cores: cores for vectors that ask for no number; 0: the device's default
 * @fixed_cores: the device's cores cannot be chosen, so the cores of vectors are ignored
 * @keep_going: go on after a failed step
 * @hosts: the hosts that run the vectors together, or NULL: this process does alone
 */
struct run_options {
	const char *device;
	int64_t cores;
	bool fixed_cores;
	bool keep_going;
	const struct vector_hosts *hosts;
};

/* Shape of a feature's activations, with dim; rank 0 before the first dequeue. */
struct output_shape {
	size_t rank;
	int64_t shape[EMBENG_MAX_RANK + 1];
};

size_t shape_elements(const struct output_shape *shape);

/**
 * struct run - a vector that is being run
 * @opened: engine options that the device was opened with, or NULL
 * @trains: it was opened with the vector's optimizers
 * @added: steps that added tables since then, in their order
 * @scratch: folder for checkpoints, made when it is first needed, or NULL
 * @first_replica: first one that this host feeds; @replica_count: how many
 * @wait_ns: time that the calls of this step may take
 * @text: sentence of the last call that failed
 * @failure: feature, element and numbers of the last step with a wrong result
 */
struct run {
	const struct run_options *options;
	const struct json *vector;
	struct embeng_model *model;
	struct embeng *e;
	struct output_shape *shapes;
	const struct json *opened;
	bool trains;
	const struct json **added;
	size_t added_count;
	char *scratch;
	uint32_t first_replica, replica_count;
	int64_t wait_ns;
	char text[RUN_TEXT];
	struct json_object *failure;
};

/* Returned by a step when no call failed but a number is wrong. */
#define STEP_MISMATCH 1
/* A step returns this if another host has to make it. */
#define STEP_ELSEWHERE 2

/* Both return @err. The first takes a sentence of the runner's own, the second the library's. */
int run_fail(struct run *r, int err, const char *format, ...) __attribute__((format(printf, 3, 4)));
int run_library(struct run *r, int err);

/* Notes a mismatch that is no number. Returns STEP_MISMATCH. @where is "feature" or "table". */
int run_mismatch(struct run *r, const char *where, const char *name, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* A new failure that says @r->text, in place of the one before. It belongs to @r. */
struct json_object *run_new_failure(struct run *r);

/**
 * run_open() - open the device with the vector's model, with rows at their initial values
 * @engine: engine options, or NULL
 * @optimizer: use the vector's optimizers; else the model is for inference alone
 *
 * Return: 0 with the new handle in @r instead of the old one, or a negative errno
 * with @r as it was.
 */
int run_open(struct run *r, const struct json *engine, bool optimizer);
void run_close(struct run *r);
/* Writes the rows and slots of a list of tables, the first of which is table @first of the engine. */
int run_fill_tables(struct run *r, struct embeng *e, const struct json *tables, int first,
		    bool optimizer);

struct arrays;

/*
 * batch.c: make a batch, and put the inputs of several features, given by name, into it. The batch
 * points into the inputs, which are added to @kept; call inputs_free() after its use.
 */
int batch_begin(struct run *r, enum embeng_mode mode, uint32_t replica, struct embeng_batch **b);
int inputs_add(struct run *r, struct embeng_batch *b, const struct json *features,
	       struct arrays **kept);

/* Runs a step. Return: 0, a negative errno, or STEP_MISMATCH. */
int step_run(struct run *r, const char *verb, const struct json *body);
/* Gradients and rates of a step, for @b or, where it is NULL, for the dequeued batch. */
int update_made(struct run *r, struct embeng_batch *b, const struct json *body);
/* Looks at what the library tells of a step's gradients for @b. */
int gradients_made(struct run *r, struct embeng_batch *b, const struct json *body);
int step_apply_gradients(struct run *r, const struct json *body);
int step_lookup(struct run *r, const struct json *body);
int step_partition(struct run *r, const struct json *body);
int step_spread(struct run *r, const struct json *body);
int step_stacking(struct run *r, const struct json *body);
int step_expect_config(struct run *r, const struct json *body);
int step_save(struct run *r, const struct json *body);
int step_restore(struct run *r, const struct json *body);
int step_reopen(struct run *r, const struct json *body);
int step_add_tables(struct run *r, const struct json *body);

/* Reads the replica of a step. Return: 0 or -ERANGE. */
int step_replica(struct run *r, const struct json *body, uint32_t *replica);

/* Reads a number of a step, which is at least @least. Return: 0 or -ERANGE. */
int read_count(struct run *r, const struct json *body, const char *key, int64_t otherwise,
	       int64_t least, uint64_t *out);

/* Reads the flavour of a step, tf or jax. Return: 0 or -EINVAL. */
int read_partition_flavour(struct run *r, const struct json *body,
			   enum embeng_partition_flavour *flavour);

/**
 * vector_lacks() - list the capabilities that a vector needs and this build lacks
 *
 * Return: a list of names, owned by the caller, empty when it can run.
 */
struct json_object *vector_lacks(const struct json *vector);

/**
 * struct vector_outcome - how a vector ended
 * @failures: a list owned by the caller, empty when it passed. Each has "step" (from 1, 0: the model),
 *	"verb", "message", and where numbers differ "feature" or "table", "at", "got", "expected",
 *	"largest_error"
 * @refused_step: the first step with a call that a group of hosts refuses; below 0: none
 * @refused: the sentence of that call
 */
struct vector_outcome {
	struct json_object *failures;
	int64_t refused_step;
	char refused[RUN_TEXT + 16];
};

/* Runs all steps. Over hosts also those after one that failed, since another host may wait for them. */
void vector_run(const struct json *vector, const struct run_options *options,
		struct vector_outcome *outcome);

#endif
