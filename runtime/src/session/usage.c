// SPDX-License-Identifier: MIT
/*
 * Tells how much memory a handle holds: its tables, the engine's working memory, and its buffers.
 *
 * The numbers are read one by one without a lock, so they may be from different moments.
 */
#include "session.h"

int embeng_usage(struct embeng *e, struct embeng_usage *usage)
{
	int ret = session_check(e, "embeng_usage");
	const struct device_ops *ops;

	if (ret)
		return ret;
	if (!usage || usage->size < sizeof(*usage))
		return fail(-EINVAL, "embeng_usage: usage must be given, with its size");
	ops = e->device->ops;
	usage->table_bytes = ops->read_register(e->device, EMBENG_REG_TABLE_MEMORY_USED);
	usage->engine_bytes = ops->read_register(e->device, EMBENG_REG_MODEL_MEMORY);
	usage->buffer_bytes = __atomic_load_n(&e->device->region_bytes, __ATOMIC_RELAXED);
	return 0;
}
