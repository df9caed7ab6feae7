// SPDX-License-Identifier: GPL-2.0-only
/*
 * The rung between a queue and the device: one context is ended on the device, and lost, and all
 * others go on. It is taken when the device refuses what the driver asks of it for that context,
 * which is no fault of the device: it may lack memory that the program's own group has used up.
 *
 * It is a file of its own because it touches one context where reset.c touches all. ctx->lock is
 * held throughout, so that nothing of the context is made or ended meanwhile. The context is told
 * under reset_lock held for writing, as in each reset, once the device has let go of all it had.
 */
#include <linux/cleanup.h>
#include <linux/ratelimit.h>

#include "context.h"
#include "trace.h"

/* Return: false if a reset of the device has lost the context. */
static bool lose_alone(struct embeng_context *ctx, const struct embeng_hang *hang)
{
	struct embeng_device *ed = ctx->device;

	guard(rwsem_write)(&ed->reset_lock);
	if (ctx->lost || embeng_gone(ed))
		return false;
	ed->resets.contexts++;
	trace_embeng_reset("context", ed->resets.contexts);
	embeng_reset_lose(ed, ctx, EMBENG_ACCEL_RESET_CONTEXT, hang);
	return true;
}

/**
 * embeng_reset_context() - end a context on the device, and no other
 * @ctx: context, under its lock
 * @hang: why it is ended
 *
 * A device that does not even do that is reset.
 *
 * Return: 0 when the context is lost, and the device has let go of its memory; -EINTR when the
 * caller was killed.
 */
int embeng_reset_context(struct embeng_context *ctx, const struct embeng_hang *hang)
{
	struct embeng_admin_cmd cmd = {
		.opcode = EMBENG_ADMIN_CONTEXT_DESTROY,
		.context = ctx->number,
	};
	int ret = embeng_context_end_command(ctx, &cmd);

	if (ret || !lose_alone(ctx, hang))
		return ret;
	embeng_context_event(ctx);
	if (!__ratelimit(&ctx->user->told))
		return 0;
	drm_warn(&ctx->device->drm, "context %u of %s is ended: %s\n",
		 ctx->number, embeng_program_text(ctx).text, embeng_cause_word(hang->cause));
	embeng_reset_tell(ctx->device, EMBENG_ACCEL_RESET_CONTEXT, hang);
	return 0;
}
