/* SPDX-License-Identifier: MIT */
/*
 * A well-behaved program that trains one table through the device node. The expected contents of
 * the table are computed here as well, with numbers that floats add exactly, so that any wrong bit
 * shows. Nothing here fails a test or ends a process: the functions return a sentence that says
 * what went wrong.
 */
#ifndef EMBENG_TESTS_TRAINER_H
#define EMBENG_TESTS_TRAINER_H

#include "../accel.h"

#define TRAINER_ROWS 64u
#define TRAINER_DIM 4u
#define TRAINER_SAMPLES 16u
#define TRAINER_MEMORY 65536u

/* Places in its buffer; the model blob comes first. */
#define TRAINER_DESC 32768u
#define TRAINER_IDS 36864u
#define TRAINER_OUT 40960u
#define TRAINER_GRADIENTS 45056u
#define TRAINER_TABLE 49152u

/**
 * struct trainer - a context with a model
 * @fd: device node, not owned
 * @flags: flags of its queues
 * @patience: ns that a completion may take
 * @first: index at which its rings begin, for every second seed so that indices soon begin anew
 * @transfer: TRANSFER queue
 * @input: INPUT queue
 * @gradient: GRADIENT queue
 * @bo: handle of the buffer that has all its data
 * @memory: address of that buffer
 * @key: memory key of that buffer
 * @hash: hash of the model
 * @blob_length: bytes of the model blob
 * @step: last step that was updated
 * @random: state of the generator of ids and gradients
 * @ids: ids of the step
 * @table: expected contents of the table
 * @retries: commands that were given again after NO_MEMORY
 * @forgiving: such commands are given again
 * @blind: activations are not checked, because others have written to them
 * @wrong: memory for the sentence that says what is wrong
 */
struct trainer {
	int fd;
	uint32_t flags;
	int64_t patience;
	uint32_t first;
	struct ring transfer, input, gradient;
	struct embeng_accel_bo_create bo;
	uint8_t *memory;
	struct embeng_mem key;
	uint64_t hash, blob_length, step, random;
	uint32_t ids[TRAINER_SAMPLES];
	float table[TRAINER_ROWS][TRAINER_DIM];
	uint32_t retries;
	bool forgiving, blind;
	char wrong[160];
};

/*
 * @flags are those of its queues; @seed is for ids and gradients. Return: NULL, or what is wrong.
 */
const char *trainer_open(struct trainer *t, int fd, uint32_t flags, int64_t patience,
			 uint64_t seed);

/* One step: LOOKUP, its activations compared, UPDATE. NULL, or what is wrong. */
const char *trainer_step(struct trainer *t);

/* Reads the whole table and compares. NULL, or what is wrong. */
const char *trainer_check(struct trainer *t);

/* After a reset of its queues by hostile hands: begins where the doorbells stand. */
void trainer_resume(struct trainer *t);

/* Mappings only: the file ends what is on the device. Fits a trainer that did not open. */
void trainer_unmap(struct trainer *t);

#endif
