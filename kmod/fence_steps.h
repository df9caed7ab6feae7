/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ledger: the steps of training that a context has submitted. From them it follows whether a
 * command can end without its program doing anything more. The ledger is plain numbers and uses no
 * kernel objects; callers hold the lock.
 */
#ifndef EMBENG_FENCE_STEPS_H
#define EMBENG_FENCE_STEPS_H

#include <linux/types.h>

#include "../uapi/embeng_steps.h"

#define EMBENG_LEDGER_REPLICAS 64u

/* A step that is never reached, for a command of which only its own end is known to settle it. */
#define EMBENG_NEED_UNKNOWN U64_MAX

enum embeng_ledger_model {
	EMBENG_LEDGER_NONE = 0,	/* the driver has loaded no model */
	EMBENG_LEDGER_LOADING,
	EMBENG_LEDGER_LOADED,
};

/**
 * struct embeng_ledger - training of one context
 * @model: whether a model is loaded
 * @mapped: training uses mapped queues, whose commands the driver cannot count
 * @pipelined: updates wait for the next lookups
 * @replicas: number of replicas of the model
 * @applied: last step that is in the tables, as a completion of an UPDATE says
 * @submitted: for each replica, the last step up to which all LOOKUPs and all UPDATEs were
 *	submitted; a submitted LOOKUP counts as one that has read the tables
 */
struct embeng_ledger {
	enum embeng_ledger_model model;
	bool mapped;
	bool pipelined;
	u32 replicas;
	u64 applied;
	struct embeng_replica_steps submitted[EMBENG_LEDGER_REPLICAS];
};

/**
 * struct embeng_need - the submits that a command depends on
 * @applied: submits that bring the tables to this step
 * @looked: all replicas' LOOKUPs up to this step
 */
struct embeng_need {
	u64 applied;
	u64 looked;
};

/* The part of a ledger that embeng_ledger_add() may change, for restoring it. */
struct embeng_ledger_mark {
	enum embeng_ledger_model model;
	u64 last;
};

void embeng_ledger_load(struct embeng_ledger *ledger, const struct embeng_record_engine *model);
void embeng_ledger_add(struct embeng_ledger *ledger, u32 kind, u32 replica,
		       const struct embeng_cmd *cmd);
struct embeng_ledger_mark embeng_ledger_mark(struct embeng_ledger *ledger, u32 kind, u32 replica);
void embeng_ledger_return(struct embeng_ledger *ledger, u32 kind, u32 replica,
			  const struct embeng_ledger_mark *mark);
void embeng_ledger_done(struct embeng_ledger *ledger, u32 kind, u32 replica, u64 step, u16 status);
void embeng_ledger_need(struct embeng_ledger *ledger, u32 kind, u32 replica,
			const struct embeng_cmd *cmd, struct embeng_need *need);
bool embeng_ledger_met(const struct embeng_ledger *ledger, const struct embeng_need *need);
void embeng_ledger_loading(struct embeng_ledger *ledger);
int embeng_ledger_can_fence(const struct embeng_ledger *ledger, u32 kind,
			    const struct embeng_cmd *cmd);

static inline void embeng_need_merge(struct embeng_need *need, const struct embeng_need *more)
{
	if (more->applied > need->applied)
		need->applied = more->applied;
	if (more->looked > need->looked)
		need->looked = more->looked;
}

#endif
