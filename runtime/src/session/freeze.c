// SPDX-License-Identifier: MIT
/*
 * Freezes tables and has them train again. The engine leaves a frozen table alone; the library
 * knows it as well, so that it neither asks for the gradients of such a table nor reads them.
 *
 * The switch is thrown behind the gate, between two steps. e->frozen has one flag for each table;
 * it is read without a lock by who hands in gradients, and so it is atomic.
 */
#include "rows.h"

struct freeze_call {
	const char *what;
	uint64_t arg;
	bool frozen; /* before */
};

static int run_freeze(struct embeng *e, void *arg, uint64_t after)
{
	struct freeze_call *call = arg;
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_FREEZE, .after = after, .arg = call->arg};
	struct embeng_cqe answer;
	int ret;

	pthread_mutex_lock(&e->lock);
	ret = transfer(e, &cmd, call->what, &answer);
	pthread_mutex_unlock(&e->lock);
	if (!ret)
		call->frozen = answer.value;
	return ret;
}

static int check_freeze(const struct embeng *e, int table, enum embeng_freeze action,
			const char *what)
{
	if (table < 0 || (size_t)table >= e->model->table_count)
		return fail(-ENOENT, "%s: table %d, the model has %zu", what, table,
			    e->model->table_count);
	if (action == EMBENG_FREEZE_OFF && !table_has_optimizer(&e->model->tables[table]))
		return fail(-EINVAL,
			    "%s: table %s has no optimizer, so nothing can change it; add it to "
			    "the model with one",
			    what, e->model->tables[table].name);
	return 0;
}

static int send_freeze(struct embeng *e, int table, enum embeng_freeze action,
		       struct freeze_call *call)
{
	call->arg = (uint32_t)table | (uint64_t)action << EMBENG_FREEZE_ACTION_SHIFT;
	return rows_behind_gate(e, call->what, run_freeze, call);
}

int embeng_table_freeze(struct embeng *e, int table, int frozen)
{
	const enum embeng_freeze action = frozen ? EMBENG_FREEZE_ON : EMBENG_FREEZE_OFF;
	struct freeze_call call = {.what = "embeng_table_freeze"};
	int ret = session_check(e, call.what);

	if (ret)
		return ret;
	ret = check_freeze(e, table, action, call.what);
	if (e->calls)
		ret = e->calls->freeze(e, table, frozen, ret);
	else if (!ret)
		ret = send_freeze(e, table, action, &call);
	if (!ret)
		__atomic_store_n(&e->frozen[table], frozen != 0, __ATOMIC_RELAXED);
	return ret;
}

int embeng_table_frozen(struct embeng *e, int table)
{
	struct freeze_call call = {.what = "embeng_table_frozen"};
	int ret = session_check(e, call.what);

	ret = ret ? ret : check_freeze(e, table, EMBENG_FREEZE_ASK, call.what);
	/* No other process shares the tables of a group, so that this host knows. */
	if (!ret && e->calls)
		return !table_has_optimizer(&e->model->tables[table]) ||
		       __atomic_load_n(&e->frozen[table], __ATOMIC_RELAXED);
	ret = ret ? ret : send_freeze(e, table, EMBENG_FREEZE_ASK, &call);
	return ret ? ret : call.frozen;
}

bool session_leaves_alone(const struct embeng *e, size_t feature)
{
	int table = e->model->features[feature].table;

	return !table_has_optimizer(&e->model->tables[table]) ||
	       __atomic_load_n(&e->frozen[table], __ATOMIC_RELAXED);
}

const float *session_gradient(const struct embeng *e, const struct embeng_gradients *g,
			      size_t feature)
{
	/* Another process may have thawed a table that this one froze. */
	bool sure = !e->shared ||
		    !table_has_optimizer(&e->model->tables[e->model->features[feature].table]);

	return sure && session_leaves_alone(e, feature) ? NULL : g->features[feature];
}
