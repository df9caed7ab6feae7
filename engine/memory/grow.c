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

static void beat_for(void *engine)
{
	piece_beat(engine);
}

void *alloc_large(struct engine *engine, u64 bytes)
{
	const struct port_pace pace = { beat_for, engine };

	return port_alloc_large(bytes, engine ? &pace : NULL);
}

void *alloc_table(struct engine *engine, u64 bytes)
{
	const struct port_pace pace = { beat_for, engine };

	return port_alloc_table(bytes, &pace);
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

int grow_uncounted(struct engine *engine, void **p, u64 *have, u64 bytes)
{
	u64 wanted = grow_to(*p ? *have : 0, bytes);
	void *larger;

	if (*p && wanted == *have)
		return 0;
	larger = alloc_large(engine, wanted);
	if (!larger)
		return -1;
	port_free(*p);
	*p = larger;
	*have = wanted;
	return 0;
}

int grow(struct model *model, void **p, u64 *have, u64 bytes)
{
	u64 before = *p ? *have : 0;

	if (grow_uncounted(model ? model->engine : NULL, p, have, bytes))
		return -1;
	model_count(model, *have - before);
	return 0;
}
