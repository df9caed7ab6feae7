/* SPDX-License-Identifier: MIT */
/* Forecasts the memory that a model will hold beside its tables. */
#ifndef EMBENG_ENGINE_PLAN_H
#define EMBENG_ENGINE_PLAN_H

#include "../types.h"

/**
 * struct plan_input - the largest input of a feature
 * @samples: as given
 * @ids: as given
 * @length: positions kept of each sample, 0: its ids are combined
 * @weighted: with weights
 */
struct plan_input {
	u64 samples, ids, length;
	bool weighted;
};

/**
 * struct plan_engine - the assumptions of a plan
 * @blob: the model's
 * @length: its bytes
 * @inputs: [features]
 * @cores: the device's
 * @step_depth: the device's, for models that leave it open
 * @training: every step in flight holds such a batch
 * @inference: so does every replica's inference queue
 */
struct plan_engine {
	const void *blob;
	u64 length;
	const struct plan_input *inputs;
	u32 cores, step_depth;
	bool training, inference;
};

/**
 * plan_memory() - bytes of EMBENG_REG_MODEL_MEMORY once such batches went through
 * @features: [features] out: the part that is a feature's private copies
 * @bytes: out: the sum of all, U64_MAX when no number says it
 *
 * Exact when the first batches are as large as @inputs says, in CSR form, and are
 * cut in at most 64 calls of bounded work; never less for smaller ones. With pipelining a
 * part of it is taken only while a DRAIN has an update come early (lookup/stale.h).
 *
 * Return: 0, or a status: the blob is none, or there is no memory to read it.
 */
u16 plan_memory(const struct plan_engine *plan, u64 *features, u64 *bytes);

#endif
