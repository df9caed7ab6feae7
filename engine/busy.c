// SPDX-License-Identifier: MIT
/* Who worked, for whom, how long. */
#include "internal.h"

void busy_with(struct queue *q, u64 passed_ns)
{
	busy_core(q->engine, 0, passed_ns);
	q->busy_ns += passed_ns;
	EMBENG_STORE_RELEASE(&queue_header(q)->busy_ns, q->busy_ns);
}
