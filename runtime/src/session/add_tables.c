// SPDX-License-Identifier: MIT
/*
 * Adds tables and features to an open handle. The engine keeps the tables that it has, with their
 * rows, and is given the longer model between two steps.
 *
 * No other call on the handle may be under way, as with embeng_close(): what is constant as long as
 * a handle lives otherwise, its model above all, changes here. All that needs memory in the library
 * is done before the engine is asked, and lists that became longer for nothing do no harm, so a
 * failure leaves the handle as it was. Once the engine has the tables, their first rows are written;
 * where that fails, the next call does it. e->lock is held while slots are looked at.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/list.h"
#include "blob_error.h"
#include "rows.h"
#include "wait.h"

#define WHAT "embeng_add_tables"

struct addition {
	struct embeng_model *model; /* NULL once the handle has it */
	struct model_blob blob;
};

static int refuse_busy_slot(const struct slot *slot)
{
	if (slot->mode == EMBENG_INFERENCE)
		return fail(-EBUSY,
			    WHAT ": replica %u has a batch or view of an inference; dequeue it, "
				 "and release the view first",
			    slot->replica);
	return fail(-EBUSY,
		    WHAT ": step %" PRIu64 " of replica %u is under way; finish it by "
			 "embeng_apply_gradients() or embeng_discard() first",
		    slot->step, slot->replica);
}

static int require_free_slots(struct embeng *e)
{
	int ret = 0;

	pthread_mutex_lock(&e->lock);
	session_reap(e);
	for (uint32_t r = 0; r < e->replica_count; r++) {
		const struct replica *replica = &e->replicas[r];

		for (uint32_t i = 0; !ret && replica->started && i < e->slot_count; i++) {
			if (replica->training[i].state != SLOT_FREE)
				ret = refuse_busy_slot(&replica->training[i]);
			else if (replica->serving[i].state != SLOT_FREE)
				ret = refuse_busy_slot(&replica->serving[i]);
		}
	}
	pthread_mutex_unlock(&e->lock);
	return ret;
}

static int engine_error(const struct addition *a, const struct embeng_cqe *answer)
{
	if (answer->status == EMBENG_STATUS_MODEL_BUSY || answer->status == EMBENG_STATUS_STAGE)
		return error_set(-EBUSY, answer->status,
				 WHAT ": the engine is at work on a step or a restore of this "
				      "handle; add tables between two calls");
	if (answer->status == EMBENG_STATUS_RESERVED && answer->field == EMBENG_FIELD_FLAGS)
		return error_set(-ENOTSUP, answer->status,
				 WHAT
				 ": the device does not add tables to a loaded model; its "
				 "firmware may be an older one. Open it again with all tables");
	return blob_error(a->model, a->blob.bytes, a->blob.length, answer);
}

/* From here on nothing fails. */
static void adopt_model(struct embeng *e, struct addition *a)
{
	e->replaced[e->replaced_count++] = e->model;
	e->model = a->model;
	e->model_hash = blob_hash(&a->blob);
	a->model = NULL;
}

static int extend_engine(struct embeng *e, void *arg, uint64_t after)
{
	struct addition *a = arg;
	struct embeng_cqe answer;
	int ret = require_free_slots(e);

	(void)after;
	ret = ret ? ret : session_grow(e, a->model);
	ret = ret ? ret
		  : list_grow(&e->replaced, e->replaced_count, e->replaced_count + 1,
			      sizeof(struct embeng_model *));
	ret = ret ? ret : session_load_blob(e, &a->blob, &answer);
	if (!ret && answer.status)
		ret = engine_error(a, &answer);
	if (!ret)
		adopt_model(e, a);
	return ret;
}

static int check_addition(const struct embeng *e, struct addition *a)
{
	struct model_blob open = {0};
	int ret = embeng_model_blob(a->model, &a->blob.bytes, &a->blob.length);

	ret = ret ? ret : embeng_model_blob(e->model, &open.bytes, &open.length);
	ret = ret ? ret : model_check_extends(a->model, a->blob.bytes, e->model, open.bytes);
	free(open.bytes);
	return ret ? ret : session_check_limit(e, a->model);
}

static int give_tables(struct embeng *e, const struct embeng_model *model, struct addition *a)
{
	int ret;

	a->model = model_copy(model);
	if (!a->model)
		return fail(-ENOMEM, WHAT ": no memory for the model");
	a->blob.flags = EMBENG_CMD_EXTENDS;
	ret = check_addition(e, a);
	ret = ret ? ret : rows_behind_gate(e, WHAT, extend_engine, a);
	return ret ? ret : session_begin_tables(e);
}

int embeng_add_tables(struct embeng *e, const struct embeng_model *model)
{
	struct addition a = {0};
	int ret = session_check_alone(e, WHAT);

	if (ret)
		return ret;
	if (!model)
		return fail(-EINVAL, WHAT ": no model");
	if (e->shared)
		return fail(-ENOTSUP, WHAT ": the context is shared, and other handles know its "
					   "tables alone; open all again with all tables");
	ret = give_tables(e, model, &a);
	embeng_model_free(a.model);
	free(a.blob.bytes);
	return ret;
}
