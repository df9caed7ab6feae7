// SPDX-License-Identifier: GPL-2.0-only
/*
 * The context: what belongs to one open file of the device node. It holds the regions, the queues
 * and what the driver knows of training; the device has a counterpart once CONTEXT_CREATE was
 * called.
 *
 * It lives from open to its end after the last close (context_end.c), and longer for who holds a
 * reference. ctx->lock is held while regions and queues are made and ended, and so over admin
 * commands, which sleep; a program that is killed waits for neither.
 *
 * Everything that has the device let go of memory goes through embeng_context_end_command(): it
 * returns 0 when the device has confirmed it, was reset, or has lost the bus, never earlier. If a
 * program is killed before that, the memory stays with the context until this ends.
 * A context that a reset has lost stays until its file is closed; its calls fail with ESHUTDOWN.
 */
#include <linux/cleanup.h>
#include <linux/dma-mapping.h>

#include "context.h"

#define ENTRIES_DEFAULT 1024u

static int make_scratch_pages(struct embeng_context *ctx)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(ctx->scratch); i++) {
		ctx->scratch[i] = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		if (!ctx->scratch[i]) {
			embeng_context_free_scratch(ctx);
			return -ENOMEM;
		}
	}
	return 0;
}

/**
 * embeng_context_open() - make the context of a file that is being opened
 * @drm: device
 * @file: file that is being opened
 *
 * Return: 0 or -ENOMEM.
 */
int embeng_context_open(struct drm_device *drm, struct drm_file *file)
{
	struct embeng_device *ed = to_embeng(drm);
	struct embeng_context *ctx = kzalloc(sizeof(*ctx), GFP_KERNEL_ACCOUNT);

	if (!ctx)
		return -ENOMEM;
	ctx->user = embeng_user_get(ed);
	if (!ctx->user) {
		kfree(ctx);
		return -ENOMEM;
	}
	if (make_scratch_pages(ctx)) {
		embeng_user_put(ed, ctx->user);
		kfree(ctx);
		return -ENOMEM;
	}
	ctx->device = ed;
	ctx->memory_limit = embeng_memory_limit();
	kref_init(&ctx->ref);
	embeng_context_end_init(ctx);
	mutex_init(&ctx->lock);
	mutex_init(&ctx->map_lock);
	spin_lock_init(&ctx->ledger_lock);
	spin_lock_init(&ctx->health_lock);
	embeng_watch_init(ctx);
	init_waitqueue_head(&ctx->wait);
	xa_init_flags(&ctx->regions, XA_FLAGS_ALLOC);
	xa_init(&ctx->queues);
	xa_init(&ctx->foreign);
	file->driver_priv = ctx;
	guard(mutex)(&ed->contexts_lock);
	list_add_tail(&ctx->link, &ed->contexts);
	return 0;
}

/**
 * embeng_context_usable() - check that new work may begin in a context
 * @ctx: context; under its lock or reset_lock
 *
 * Return: 0, -ENODEV, -ESHUTDOWN after a loss, or -ENOENT when it was not made or has ended.
 */
int embeng_context_usable(const struct embeng_context *ctx)
{
	if (embeng_gone(ctx->device))
		return -ENODEV;
	if (READ_ONCE(ctx->lost))
		return -ESHUTDOWN;
	return ctx->made && !ctx->ended ? 0 : -ENOENT;
}

/**
 * embeng_context_event() - count an event and wake the sleepers of a context
 * @ctx: context; any context of execution
 */
void embeng_context_event(struct embeng_context *ctx)
{
	atomic64_inc(&ctx->events);
	wake_up_all(&ctx->wait);
}

/* True if the device reaches no memory: it is given up, or its bus has failed. */
static bool is_out_of_reach(const struct embeng_device *ed)
{
	return embeng_gone(ed) || READ_ONCE(ed->offline);
}

static const struct embeng_hang no_answer = { .cause = EMBENG_ACCEL_CAUSE_NO_ANSWER };
static const struct embeng_hang refused = { .cause = EMBENG_ACCEL_CAUSE_REFUSED };

static int run_command(struct embeng_context *ctx, struct embeng_admin_cmd *cmd, u64 *seen)
{
	CLASS(embeng_talk, ed)(ctx->device);
	if (!ed)
		return -EINTR;
	*seen = ed->resets.sequence;
	return ctx->lost ? -ESHUTDOWN : embeng_admin_run(ed, cmd);
}

static int run_or_reset(struct embeng_context *ctx, struct embeng_admin_cmd *cmd)
{
	struct embeng_device *ed = ctx->device;
	u64 seen;
	int ret = run_command(ctx, cmd, &seen);

	if (ret == -ETIMEDOUT || (ret == -ENODEV && !is_out_of_reach(ed))) {
		ret = embeng_reset_ask(ed, EMBENG_ACCEL_RESET_ENGINE, seen, &no_answer);
		if (!ret)
			ret = embeng_gone(ed) ? -ENODEV : -ESHUTDOWN;
	}
	return ret;
}

/**
 * embeng_context_run_command() - run an admin command that makes something for this context
 * @ctx: context, under its lock
 * @cmd: admin command
 *
 * A device that does not answer is reset, and the context is lost. So is a device that seemed to be
 * gone: it may have taken the command, and may be back in a moment. Return: 0 or a negative errno;
 * -EINTR when the caller was killed, and the device may yet run the command.
 */
int embeng_context_run_command(struct embeng_context *ctx, struct embeng_admin_cmd *cmd)
{
	int ret = run_or_reset(ctx, cmd);

	/* The driver knows of no such trouble, so that it is not the program's. */
	return ret == -ENOENT ? -EIO : ret;
}

/**
 * embeng_context_end_command() - make the device let go of memory
 * @ctx: context, under its lock
 * @cmd: admin command that completes once the device has let go
 *
 * Return: 0 when the device does not reach the memory any more: it completed the command, has no
 * such object, was reset, or has lost the bus. -EINTR when the caller was killed: the memory must
 * stay until the context ends.
 */
int embeng_context_end_command(struct embeng_context *ctx, struct embeng_admin_cmd *cmd)
{
	struct embeng_device *ed = ctx->device;
	u64 seen = READ_ONCE(ed->resets.sequence);
	int ret = run_or_reset(ctx, cmd);

	if (!ret || ret == -ENOENT || ret == -ESHUTDOWN || ret == -ENODEV)
		return 0;
	if (ret == -EINTR)
		return ret;
	/* The fault may be the context's, whose end costs nobody else anything. */
	if (cmd->opcode != EMBENG_ADMIN_CONTEXT_DESTROY)
		return embeng_reset_context(ctx, &refused);
	drm_err(&ed->drm, "the device refuses to let go (%d), it is reset\n", ret);
	return embeng_reset_ask(ed, EMBENG_ACCEL_RESET_ENGINE, seen, &refused);
}

static int make_region_table(struct embeng_context *ctx, u32 entries)
{
	struct device *dev = &ctx->device->pci->dev;

	ctx->generations = kvcalloc(entries, sizeof(*ctx->generations), EMBENG_GFP_WISH);
	if (!ctx->generations)
		return -ENOMEM;
	ctx->table = dma_alloc_coherent(dev, (size_t)entries * sizeof(*ctx->table),
					&ctx->table_dma, EMBENG_GFP_WISH);
	if (!ctx->table)
		return -ENOMEM;
	ctx->entries = entries;
	return 0;
}

/**
 * embeng_context_free_table() - free the region table
 * @ctx: context that the device does not know, or knows no more
 */
void embeng_context_free_table(struct embeng_context *ctx)
{
	struct device *dev = &ctx->device->pci->dev;

	if (ctx->table)
		dma_free_coherent(dev, (size_t)ctx->entries * sizeof(*ctx->table), ctx->table,
				  ctx->table_dma);
	ctx->table = NULL;
	kvfree(ctx->generations);
	ctx->generations = NULL;
}

static int announce_context(struct embeng_context *ctx)
{
	struct embeng_admin_cmd cmd = {
		.opcode = EMBENG_ADMIN_CONTEXT_CREATE,
		.context = ctx->number,
		.count = ctx->entries,
		.address = ctx->table_dma,
	};
	int ret;

	/* Set before the device knows of the context, so that a reset in between finds it. */
	WRITE_ONCE(ctx->on_device, true);
	ret = embeng_context_run_command(ctx, &cmd);
	if (ret && ret != -EINTR)
		WRITE_ONCE(ctx->on_device, false);
	return ret;
}

static void note_program(struct embeng_context *ctx)
{
	ctx->tgid = task_tgid_nr(current);
	get_task_comm(ctx->comm, current->group_leader);
}

/**
 * embeng_program_text() - the program that made a context, for people
 * @ctx: context that was made
 *
 * Return: name and process, such as "embeng[42]".
 */
struct embeng_program_text embeng_program_text(const struct embeng_context *ctx)
{
	struct embeng_program_text program;

	snprintf(program.text, sizeof(program.text), "%*pE[%d]",
		 (int)strnlen(ctx->comm, sizeof(ctx->comm)), ctx->comm, ctx->tgid);
	return program;
}

static int number_context(struct embeng_context *ctx)
{
	struct embeng_device *ed = ctx->device;
	int ret = xa_alloc(&ed->numbers, &ctx->number, ctx, XA_LIMIT(0, ed->caps.contexts - 1),
			   GFP_KERNEL_ACCOUNT);

	return ret == -EBUSY ? -ENOSPC : ret;
}

static int make_context(struct embeng_context *ctx, u32 entries)
{
	int ret = embeng_share_take(ctx, EMBENG_SHARE_CONTEXTS);

	if (ret)
		return ret;
	note_program(ctx);
	ret = number_context(ctx);
	if (ret) {
		embeng_share_give(ctx, EMBENG_SHARE_CONTEXTS);
		return ret;
	}
	ret = make_region_table(ctx, entries);
	if (!ret)
		ret = announce_context(ctx);
	/* The device may make it after the program was killed, so that it has to be ended. */
	ctx->made = !ret || ret == -EINTR;
	if (!ctx->made) {
		embeng_context_free_table(ctx);
		xa_erase(&ctx->device->numbers, ctx->number);
		embeng_share_give(ctx, EMBENG_SHARE_CONTEXTS);
	}
	return ret;
}

/**
 * embeng_context_create_ioctl() - DRM_IOCTL_EMBENG_CONTEXT_CREATE
 * @drm: device
 * @data: &struct embeng_accel_context_create
 * @file: open file that gets the context
 *
 * Return: 0 or a negative errno that embeng_accel.h documents.
 */
int embeng_context_create_ioctl(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct embeng_accel_context_create *arg = data;
	struct embeng_context *ctx = to_embeng_context(file);
	u32 most = ctx->device->caps.regions;
	int ret;

	CLASS(embeng_use, use)(ctx->device);
	if (!use.device)
		return -ENODEV;
	if (arg->flags || arg->regions > most)
		return -EINVAL;
	CLASS(embeng_lock, locked)(ctx);
	if (!locked)
		return -EINTR;
	ret = embeng_context_usable(ctx);
	if (ret != -ENOENT)
		return ret ?: -EBUSY;
	ret = embeng_context_limit(ctx, arg->memory_limit ?: embeng_memory_limit());
	if (!ret)
		ret = make_context(ctx, arg->regions ?: min(ENTRIES_DEFAULT, most));
	if (!ret)
		embeng_watchdog_start(ctx->device);
	return ret;
}
