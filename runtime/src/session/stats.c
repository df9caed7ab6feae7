// SPDX-License-Identifier: MIT
/*
 * Statistics of a table, which the engine keeps, and counters of the session and of the device.
 *
 * Statistics are read behind the gate, with e->rows held. Counters take e->lock for a moment or are
 * atomic.
 */
#include <string.h>

#include "rows.h"

struct stats_call {
	uint64_t arg;
	struct embeng_stats stats;
};

static int read_stats(struct embeng *e, void *arg, uint64_t after)
{
	struct stats_call *call = arg;
	struct embeng_cmd cmd = {
		.opcode = EMBENG_OP_STATS,
		.after = after,
		.desc = region_part(&e->staging, 0, sizeof(call->stats)),
		.arg = call->arg,
	};
	int ret;

	pthread_mutex_lock(&e->lock);
	ret = transfer(e, &cmd, "embeng_stats", NULL);
	pthread_mutex_unlock(&e->lock);
	if (!ret)
		memcpy(&call->stats, e->staging.data, sizeof(call->stats));
	return ret;
}

static void give_stats(const struct embeng_stats *from, struct embeng_table_stats *to)
{
	to->ids = from->ids;
	to->unique_ids = from->unique_ids;
	to->dropped_ids = from->dropped_ids;
	to->clamped_ids = from->clamped_ids;
	to->zeroed_ids = from->zeroed_ids;
	to->steps = from->steps;
	to->updated_rows = from->updated_rows;
	to->untouched_rows = from->untouched_rows;
	to->nonfinite_activations = from->nonfinite_activations;
	to->nonfinite_rows = from->nonfinite_rows;
	to->nonfinite_gradient_rows = from->nonfinite_gradient_rows;
	to->hot_error = from->hot_error;
	to->hot_count = from->hot_count < EMBENG_HOT_ROWS ? from->hot_count : EMBENG_HOT_ROWS;
	for (size_t i = 0; i < to->hot_count; i++) {
		to->hot[i].row = (int64_t)from->hot[i].row;
		to->hot[i].count = from->hot[i].count;
	}
	to->core_count = from->core_count < EMBENG_MAX_CORES ? from->core_count : EMBENG_MAX_CORES;
	for (size_t i = 0; i < to->core_count; i++)
		to->core_ids[i] = from->core_ids[i];
}

static int check_stats(const struct embeng *e, int table, const struct embeng_table_stats *stats)
{
	if (table < 0 || (size_t)table >= e->model->table_count)
		return fail(-ENOENT, "embeng_stats: table %d, the model has %zu", table,
			    e->model->table_count);
	if (!stats || stats->size < sizeof(*stats))
		return fail(-EINVAL, "embeng_stats: stats must be given, with their size");
	return 0;
}

int embeng_stats(struct embeng *e, int table, int clear, struct embeng_table_stats *stats)
{
	struct stats_call call = {0};
	int ret = session_check(e, "embeng_stats");

	if (ret)
		return ret;
	ret = check_stats(e, table, stats);
	if (e->calls)
		return e->calls->stats(e, table, clear, stats, ret);
	if (ret)
		return ret;
	call.arg = (uint32_t)table | (clear ? EMBENG_STATS_CLEAR : 0);
	ret = rows_behind_gate(e, "embeng_stats", read_stats, &call);
	if (!ret)
		give_stats(&call.stats, stats);
	return ret;
}

int embeng_counters(struct embeng *e, struct embeng_counter_values *values)
{
	int ret = session_check(e, "embeng_counters");
	const struct device_ops *ops;

	if (ret)
		return ret;
	if (!values || values->size < sizeof(*values))
		return fail(-EINVAL, "embeng_counters: values must be given, with their size");
	ops = e->device->ops;
	pthread_mutex_lock(&e->lock);
	values->lookups = e->counters.lookups;
	values->updates = e->counters.updates;
	pthread_mutex_unlock(&e->lock);
	values->bytes_copied = __atomic_load_n(&e->counters.bytes_copied, __ATOMIC_RELAXED);
	values->time_copy_ns = __atomic_load_n(&e->counters.time_copy_ns, __ATOMIC_RELAXED);
	values->time_check_ns = ops->read_register(e->device, EMBENG_REG_TIME_CHECK);
	values->time_lookup_ns = ops->read_register(e->device, EMBENG_REG_TIME_LOOKUP);
	values->time_partition_ns = ops->read_register(e->device, EMBENG_REG_TIME_PARTITION);
	values->time_update_ns = ops->read_register(e->device, EMBENG_REG_TIME_UPDATE);
	values->time_ring_ns = ops->read_register(e->device, EMBENG_REG_TIME_RING);
	return 0;
}
