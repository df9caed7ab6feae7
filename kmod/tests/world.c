// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stands in for the parts of the driver that the tested files call: a context that counts its
 * memory, and an admin queue that keeps the last command. Each test has a world of its own, from
 * test_world_init() until KUnit frees it; nothing runs beside it, so there is no lock.
 */
#include "world.h"

struct test_world *test_world_of(struct embeng_context *ctx)
{
	return container_of(ctx, struct test_world, ctx);
}

int embeng_context_usable(const struct embeng_context *ctx)
{
	return ctx->made ? 0 : -ENOENT;
}

int embeng_context_charge(struct embeng_context *ctx, u64 bytes)
{
	if (ctx->memory + bytes > ctx->memory_limit)
		return -EDQUOT;
	ctx->memory += bytes;
	return 0;
}

void embeng_context_uncharge(struct embeng_context *ctx, u64 bytes)
{
	ctx->memory -= bytes;
}

int embeng_context_end_command(struct embeng_context *ctx, struct embeng_admin_cmd *cmd)
{
	struct test_world *w = test_world_of(ctx);

	w->told = *cmd;
	w->tellings++;
	w->dead = w->table[cmd->index].generation;
	return 0;
}

bool embeng_queue_may_map(const struct embeng_device *ed)
{
	return ed->caps.features & EMBENG_CAP_MAPPED_QUEUES;
}

int test_world_init(struct kunit *test)
{
	struct test_world *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	int i;

	if (!w)
		return -ENOMEM;
	w->device.pci = &w->pci;
	w->device.caps.replicas = 4;
	w->device.caps.features = EMBENG_CAP_MAPPED_QUEUES;
	w->ctx.device = &w->device;
	w->ctx.made = true;
	w->ctx.number = 7;
	w->ctx.table = w->table;
	w->ctx.generations = w->generations;
	w->ctx.entries = WORLD_ENTRIES;
	w->ctx.memory_limit = SZ_1M;
	mutex_init(&w->ctx.lock);
	xa_init_flags(&w->ctx.regions, XA_FLAGS_ALLOC);
	xa_init(&w->ctx.foreign);
	kref_init(&w->bo.base.refcount);
	w->bo.base.size = ARRAY_SIZE(w->dma) * PAGE_SIZE;
	w->bo.dma = w->dma;
	for (i = 0; i < ARRAY_SIZE(w->dma); i++)
		w->dma[i] = 0x100000 + i * PAGE_SIZE;
	test->priv = w;
	return 0;
}

void test_world_exit(struct kunit *test)
{
	struct test_world *w = test->priv;

	xa_destroy(&w->ctx.regions);
	xa_destroy(&w->ctx.foreign);
	mutex_destroy(&w->ctx.lock);
}
