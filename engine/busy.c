// SPDX-License-Identifier: MIT
/* Who worked, for whom, how long. */
#include "internal.h"

u64 busy_core(struct engine *e, u32 core, u64 began_ns)
{
	u64 passed = port_now_ns() - began_ns;

	reg_count(e, EMBENG_CORE_BUSY(core), passed);
	return passed;
}

u64 busy_with(struct queue *q, u64 began_ns)
{
	u64 passed = busy_core(q->engine, 0, began_ns);

	q->busy_ns += passed;
	EMBENG_STORE_RELEASE(&queue_header(q)->busy_ns, q->busy_ns);
	return passed;
}
