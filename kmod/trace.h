/* SPDX-License-Identifier: GPL-2.0-only */
/* Tracepoints of a command's life, as far as the driver sees it. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM embeng

#if !defined(EMBENG_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define EMBENG_TRACE_H

#include <linux/tracepoint.h>

struct embeng_cmd;
struct embeng_cqe;

/* Events about @count commands of a queue, from @index on. */
DECLARE_EVENT_CLASS(embeng_commands,
	TP_PROTO(u32 context, u32 queue, u32 index, u32 count),
	TP_ARGS(context, queue, index, count),
	TP_STRUCT__entry(
		__field(u32, context)
		__field(u32, queue)
		__field(u32, index)
		__field(u32, count)
	),
	TP_fast_assign(
		__entry->context = context;
		__entry->queue = queue;
		__entry->index = index;
		__entry->count = count;
	),
	TP_printk("context=%u queue=%u index=%u count=%u",
		  __entry->context, __entry->queue, __entry->index, __entry->count)
);

/* Commands were written to the ring. There is no such event for a mapped queue. */
DEFINE_EVENT(embeng_commands, embeng_submit,
	TP_PROTO(u32 context, u32 queue, u32 index, u32 count),
	TP_ARGS(context, queue, index, count)
);

/* The doorbell was rung for commands, after the fences that they wait for have signalled. */
DEFINE_EVENT(embeng_commands, embeng_submit_take,
	TP_PROTO(u32 context, u32 queue, u32 index, u32 count),
	TP_ARGS(context, queue, index, count)
);

/* One of the commands that embeng_submit counts. */
TRACE_EVENT(embeng_command,
	TP_PROTO(u32 context, u32 queue, u32 kind, u32 index, const struct embeng_cmd *cmd),
	TP_ARGS(context, queue, kind, index, cmd),
	TP_STRUCT__entry(
		__field(u32, context)
		__field(u32, queue)
		__field(u32, kind)
		__field(u32, index)
		__field(u16, opcode)
		__field(u64, cookie)
		__field(u64, step)
		__field(u64, after)
	),
	TP_fast_assign(
		__entry->context = context;
		__entry->queue = queue;
		__entry->kind = kind;
		__entry->index = index;
		__entry->opcode = cmd->opcode;
		__entry->cookie = cmd->cookie;
		__entry->step = cmd->step;
		__entry->after = cmd->after;
	),
	TP_printk("context=%u queue=%u kind=%u index=%u opcode=%u cookie=%#llx step=%llu after=%llu",
		  __entry->context, __entry->queue, __entry->kind, __entry->index,
		  __entry->opcode, __entry->cookie, __entry->step, __entry->after)
);

/* The driver saw a completion. The device wrote it at device_ns, by its own clock. */
TRACE_EVENT(embeng_complete,
	TP_PROTO(u32 context, u32 queue, const struct embeng_cqe *cqe),
	TP_ARGS(context, queue, cqe),
	TP_STRUCT__entry(
		__field(u32, context)
		__field(u32, queue)
		__field(u64, cookie)
		__field(u16, status)
		__field(u16, flags)
		__field(u32, index)
		__field(u64, step)
		__field(u64, device_ns)
	),
	TP_fast_assign(
		__entry->context = context;
		__entry->queue = queue;
		__entry->cookie = cqe->cookie;
		__entry->status = cqe->status;
		__entry->flags = cqe->flags;
		__entry->index = cqe->index;
		__entry->step = cqe->step;
		__entry->device_ns = cqe->timestamp;
	),
	TP_printk("context=%u queue=%u cookie=%#llx status=%u flags=%u index=%u step=%llu device_ns=%llu",
		  __entry->context, __entry->queue, __entry->cookie, __entry->status,
		  __entry->flags, __entry->index, __entry->step, __entry->device_ns)
);

TRACE_EVENT(embeng_event,
	TP_PROTO(u32 context, u32 queue, u32 cq_tail, u32 epoch),
	TP_ARGS(context, queue, cq_tail, epoch),
	TP_STRUCT__entry(
		__field(u32, context)
		__field(u32, queue)
		__field(u32, cq_tail)
		__field(u32, epoch)
	),
	TP_fast_assign(
		__entry->context = context;
		__entry->queue = queue;
		__entry->cq_tail = cq_tail;
		__entry->epoch = epoch;
	),
	TP_printk("context=%u queue=%u cq_tail=%u report=%u",
		  __entry->context, __entry->queue, __entry->cq_tail, __entry->epoch)
);

TRACE_EVENT(embeng_admin,
	TP_PROTO(u8 opcode, u32 context, u32 queue, u32 index, int result),
	TP_ARGS(opcode, context, queue, index, result),
	TP_STRUCT__entry(
		__field(u8, opcode)
		__field(u32, context)
		__field(u32, queue)
		__field(u32, index)
		__field(int, result)
	),
	TP_fast_assign(
		__entry->opcode = opcode;
		__entry->context = context;
		__entry->queue = queue;
		__entry->index = index;
		__entry->result = result;
	),
	TP_printk("opcode=%u context=%u queue=%u index=%u result=%d",
		  __entry->opcode, __entry->context, __entry->queue, __entry->index,
		  __entry->result)
);

TRACE_EVENT(embeng_reset,
	TP_PROTO(const char *rung, u64 sequence),
	TP_ARGS(rung, sequence),
	TP_STRUCT__entry(
		__string(rung, rung)
		__field(u64, sequence)
	),
	TP_fast_assign(
		__assign_str(rung);
		__entry->sequence = sequence;
	),
	TP_printk("rung=%s sequence=%llu", __get_str(rung), __entry->sequence)
);

#endif

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
