// SPDX-License-Identifier: GPL-2.0-only
/*
 * The shares that users have of a device: contexts, queues and memory. A user is a kuid, whatever
 * the number of its processes and files. Each may have half of what is there, and together they
 * leave an eighth of the contexts and queues, and a quarter of the machine's memory, to processes
 * with CAP_SYS_ADMIN, so that an administrator always gets in.
 *
 * A context belongs to the user who opened its file, and so does all that it has; a descriptor that
 * is handed on changes nothing. Memory is counted from the making of a buffer to the end of the
 * last reference to it, so that a buffer keeps the context's structure. Everything is counted under
 * shares.lock, a spinlock that is held for one pass over the users at most.
 */
#include <linux/capability.h>
#include <linux/cleanup.h>
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/ratelimit.h>
#include <linux/slab.h>

#include "context.h"

/* So many hangs of a user's queues are told to the machine in so long. */
#define TOLD_INTERVAL (10 * HZ)
#define TOLD_BURST 10

static uint contexts_per_user;
module_param(contexts_per_user, uint, 0600);
MODULE_PARM_DESC(contexts_per_user, "most contexts of one user on a device (default: half of what administrators leave)");

static uint queues_per_user;
module_param(queues_per_user, uint, 0600);
MODULE_PARM_DESC(queues_per_user, "most queues of one user on a device (default: half of what administrators leave)");

static ulong memory_limit_mib;
module_param(memory_limit_mib, ulong, 0600);
MODULE_PARM_DESC(memory_limit_mib, "memory limit in MiB of a context that asks for none (default: half of the machine's memory)");

static ulong memory_per_user_mib;
module_param(memory_per_user_mib, ulong, 0600);
MODULE_PARM_DESC(memory_per_user_mib, "most memory in MiB of all contexts of one user on a device (default: half of the machine's memory)");

static u64 count_machine_bytes(void)
{
	return (u64)totalram_pages() << PAGE_SHIFT;
}

/**
 * embeng_memory_limit() - the memory limit of a context whose program asks for none
 */
u64 embeng_memory_limit(void)
{
	u64 mib = READ_ONCE(memory_limit_mib);

	return mib ? mib << 20 : count_machine_bytes() / 2;
}

/* Processes without CAP_SYS_ADMIN may have so much together. */
static u64 count_common(const struct embeng_device *ed, enum embeng_share share)
{
	switch (share) {
	case EMBENG_SHARE_CONTEXTS:
		return ed->caps.contexts - ed->caps.contexts / 8;
	case EMBENG_SHARE_QUEUES:
		return ed->caps.queues - 1 - (ed->caps.queues - 1) / 8;
	default:
		return count_machine_bytes() / 4 * 3;
	}
}

static u64 count_own(const struct embeng_device *ed, enum embeng_share share)
{
	u64 wanted;

	switch (share) {
	case EMBENG_SHARE_CONTEXTS:
		wanted = READ_ONCE(contexts_per_user);
		break;
	case EMBENG_SHARE_QUEUES:
		wanted = READ_ONCE(queues_per_user);
		break;
	default:
		wanted = (u64)READ_ONCE(memory_per_user_mib) << 20;
		return wanted ?: count_machine_bytes() / 2;
	}
	return wanted ?: DIV_ROUND_UP_ULL(count_common(ed, share), 2);
}

static bool is_administrator(void)
{
	return ns_capable_noaudit(&init_user_ns, CAP_SYS_ADMIN);
}

/* Under shares.lock. */
static int check_share(const struct embeng_device *ed, const struct embeng_user *user,
		       enum embeng_share share, u64 amount)
{
	if (user->used[share] + amount > count_own(ed, share))
		return -EDQUOT;
	if (ed->shares.used[share] + amount <= count_common(ed, share))
		return 0;
	return share == EMBENG_SHARE_MEMORY ? -EDQUOT : -ENOSPC;
}

/* Under shares.lock. */
static void count_share(struct embeng_context *ctx, enum embeng_share share, s64 amount)
{
	ctx->user->used[share] += amount;
	ctx->device->shares.used[share] += amount;
}

/**
 * embeng_share_take() - count a context or a queue
 * @ctx: context that is or has it
 * @share: EMBENG_SHARE_CONTEXTS or _QUEUES
 *
 * Return: 0; -EDQUOT if the user has as many as one may have; -ENOSPC if the rest is left for
 * administrators.
 */
int embeng_share_take(struct embeng_context *ctx, enum embeng_share share)
{
	bool all = is_administrator();
	int ret = 0;

	scoped_guard(spinlock, &ctx->device->shares.lock) {
		if (!all)
			ret = check_share(ctx->device, ctx->user, share, 1);
		if (!ret)
			count_share(ctx, share, 1);
	}
	return ret;
}

/**
 * embeng_share_give() - take a context or a queue off the count again
 * @ctx: context
 * @share: as embeng_share_take() was given it
 */
void embeng_share_give(struct embeng_context *ctx, enum embeng_share share)
{
	scoped_guard(spinlock, &ctx->device->shares.lock)
		count_share(ctx, share, -1);
}

/**
 * embeng_context_charge() - count memory against the limits of a context and of its user
 * @ctx: context
 * @bytes: bytes to add
 *
 * Return: 0, -EOVERFLOW or -EDQUOT.
 */
int embeng_context_charge(struct embeng_context *ctx, u64 bytes)
{
	bool all = is_administrator();
	u64 sum;
	int ret = 0;

	scoped_guard(spinlock, &ctx->device->shares.lock) {
		if (check_add_overflow(ctx->memory, bytes, &sum))
			return -EOVERFLOW;
		if (sum > ctx->memory_limit)
			return -EDQUOT;
		if (!all)
			ret = check_share(ctx->device, ctx->user, EMBENG_SHARE_MEMORY, bytes);
		if (ret)
			return ret;
		WRITE_ONCE(ctx->memory, sum);
		count_share(ctx, EMBENG_SHARE_MEMORY, bytes);
	}
	return 0;
}

/**
 * embeng_context_uncharge() - take memory off the count again
 * @ctx: context
 * @bytes: bytes to subtract
 */
void embeng_context_uncharge(struct embeng_context *ctx, u64 bytes)
{
	scoped_guard(spinlock, &ctx->device->shares.lock) {
		WRITE_ONCE(ctx->memory, ctx->memory - bytes);
		count_share(ctx, EMBENG_SHARE_MEMORY, -(s64)bytes);
	}
}

/**
 * embeng_context_limit() - set the memory limit of a context
 * @ctx: context
 * @limit: bytes
 *
 * Return: 0, or -EDQUOT if it has more already.
 */
int embeng_context_limit(struct embeng_context *ctx, u64 limit)
{
	scoped_guard(spinlock, &ctx->device->shares.lock) {
		if (ctx->memory > limit)
			return -EDQUOT;
		WRITE_ONCE(ctx->memory_limit, limit);
	}
	return 0;
}

/* Under shares.lock. */
static struct embeng_user *find_share_user(struct embeng_device *ed, kuid_t uid)
{
	struct embeng_user *user;

	list_for_each_entry(user, &ed->shares.list, link) {
		if (uid_eq(user->uid, uid))
			return user;
	}
	return NULL;
}

/**
 * embeng_user_get() - find the caller among the users, or add it
 * @ed: device
 *
 * Return: the user, to be given to embeng_user_put(), or NULL.
 */
struct embeng_user *embeng_user_get(struct embeng_device *ed)
{
	struct embeng_user *fresh = kzalloc(sizeof(*fresh), GFP_KERNEL_ACCOUNT), *user;

	if (!fresh)
		return NULL;
	fresh->uid = current_uid();
	ratelimit_state_init(&fresh->told, TOLD_INTERVAL, TOLD_BURST);
	ratelimit_set_flags(&fresh->told, RATELIMIT_MSG_ON_RELEASE);
	scoped_guard(spinlock, &ed->shares.lock) {
		user = find_share_user(ed, fresh->uid);
		if (!user) {
			user = fresh;
			list_add(&user->link, &ed->shares.list);
		}
		user->files++;
	}
	if (user != fresh)
		kfree(fresh);
	return user;
}

/**
 * embeng_user_put() - drop what embeng_user_get() returned
 * @ed: device
 * @user: user; all shares of the context were given back
 */
void embeng_user_put(struct embeng_device *ed, struct embeng_user *user)
{
	scoped_guard(spinlock, &ed->shares.lock) {
		if (--user->files)
			return;
		list_del(&user->link);
	}
	kfree(user);
}

/**
 * embeng_users_init() - set up the users of a new device
 * @ed: device
 */
void embeng_users_init(struct embeng_device *ed)
{
	spin_lock_init(&ed->shares.lock);
	INIT_LIST_HEAD(&ed->shares.list);
}
