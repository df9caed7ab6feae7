/* SPDX-License-Identifier: MIT */
/*
 * Allocates the memory that a model holds beside its tables, and counts it in a register that
 * programs can read. Buffers grow by a quarter more than is needed, so that batches that creep up
 * do not allocate each time.
 *
 * The memory belongs to the caller, who frees it; the model's count is given back as one when the
 * model is freed. The counts are atomic; no lock is needed.
 */
#include "../model/model.h"

void model_count(struct model *model, u64 bytes)
{
	if (!model)
		return;
	__atomic_fetch_add(&model->memory, bytes, __ATOMIC_RELAXED);
	reg_count(model->engine, EMBENG_REG_MODEL_MEMORY, bytes);
}

void *model_alloc(struct model *model, u64 bytes)
{
	void *p = port_alloc(bytes);

	if (p)
		model_count(model, bytes);
	return p;
}

u64 grow_to(u64 have, u64 bytes)
{
	if (have && bytes <= have)
		return have;
	/* Batches that creep up are no reason to allocate each time. */
	return bytes < U64_MAX / 2 ? bytes + bytes / 4 + 8 : bytes;
}

int grow(struct model *model, void **p, u64 *have, u64 bytes)
{
	u64 wanted = grow_to(*p ? *have : 0, bytes);
	void *larger;

	if (*p && wanted == *have)
		return 0;
	larger = port_alloc(wanted);
	if (!larger)
		return -1;
	model_count(model, wanted - (*p ? *have : 0));
	port_free(*p);
	*p = larger;
	*have = wanted;
	return 0;
}
