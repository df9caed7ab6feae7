/* SPDX-License-Identifier: GPL-2.0-only */
/* Users of a device, and the shares of it that they have: user.c. */
#ifndef EMBENG_USER_H
#define EMBENG_USER_H

#include <linux/list.h>
#include <linux/ratelimit_types.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>

struct embeng_context;
struct embeng_device;

/**
 * enum embeng_share - the things of which a user has a share
 * @EMBENG_SHARE_CONTEXTS: contexts on the device
 * @EMBENG_SHARE_QUEUES: queues on the device
 * @EMBENG_SHARE_MEMORY: bytes of buffers, pinned pages and rings
 * @EMBENG_SHARES: the number of these things
 */
enum embeng_share {
	EMBENG_SHARE_CONTEXTS,
	EMBENG_SHARE_QUEUES,
	EMBENG_SHARE_MEMORY,
	EMBENG_SHARES,
};

/**
 * struct embeng_user - a user who has opened the device
 * @link: entry in &embeng_users.list
 * @uid: the user
 * @files: contexts that belong to the user, made or not
 * @used: shares in use
 * @told: limits log lines, uevents and dumps about hangs of the user's queues
 */
struct embeng_user {
	struct list_head link;
	kuid_t uid;
	u32 files;
	u64 used[EMBENG_SHARES];
	struct ratelimit_state told;
};

/**
 * struct embeng_users - all users of a device
 * @lock: guards all of it, and the memory of contexts
 * @list: &embeng_user
 * @used: shares in use by all of them
 */
struct embeng_users {
	spinlock_t lock; /* guards all of it, and the memory of contexts */
	struct list_head list;
	u64 used[EMBENG_SHARES];
};

void embeng_users_init(struct embeng_device *ed);
struct embeng_user *embeng_user_get(struct embeng_device *ed);
void embeng_user_put(struct embeng_device *ed, struct embeng_user *user);
int embeng_share_take(struct embeng_context *ctx, enum embeng_share share);
void embeng_share_give(struct embeng_context *ctx, enum embeng_share share);
u64 embeng_memory_limit(void);

#endif
