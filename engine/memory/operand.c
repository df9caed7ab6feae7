// SPDX-License-Identifier: MIT
/*
 * Operands: the memory and the arrays that a command names. Every verb of the model layer has its
 * lengths checked and its keys resolved to views here.
 *
 * A view holds its region until region_put() or region_put_all(); the caller owes one for each view
 * that it was given. desc_get(), mem_get() and mem_get_all() take engine->lock, so nobody calls them
 * with it held. The others take no lock and look only at what they are given.
 */
#include "operand.h"

u16 check_length(const struct embeng_mem *mem, u64 count, u64 width, u32 field, u32 feature,
		 struct fault *fault)
{
	u64 bytes;

	if (__builtin_mul_overflow(count, width, &bytes))
		bytes = U64_MAX;
	if (mem->length == bytes && bytes != U64_MAX)
		return 0;
	return fault_set(fault, EMBENG_STATUS_LENGTH, field, feature, 0, mem->length, bytes);
}

u16 check_moves(const struct engine *engine, u64 *sum, u64 bytes, u32 feature, struct fault *fault)
{
	u64 limit = engine->caps.command_bytes;

	if (__builtin_add_overflow(*sum, bytes, sum))
		*sum = U64_MAX;
	if (!limit || *sum <= limit)
		return 0;
	return fault_set(fault, EMBENG_STATUS_COUNT, EMBENG_FIELD_COMMAND_BYTES, feature, 0, *sum,
			 limit);
}

u16 check_records(u32 count, u32 stride, u64 size, u64 header, const struct embeng_mem *desc,
		  struct fault *fault)
{
	u64 bytes = header + (u64)count * stride;

	if (stride < size || stride % 8)
		return fault_set(fault, EMBENG_STATUS_STRIDE, EMBENG_FIELD_FEATURE_STRIDE,
				 EMBENG_NO_INDEX, 0, stride, size);
	if (desc->length != bytes)
		return fault_set(fault, EMBENG_STATUS_LENGTH, EMBENG_FIELD_DESC, EMBENG_NO_INDEX, 0,
				 desc->length, bytes);
	return 0;
}

u16 desc_get(struct command *command, u64 least, u32 rights, struct view *view)
{
	const struct embeng_mem *desc = &command->cmd.desc;

	if (desc->length < least)
		return fault_set(&command->fault, EMBENG_STATUS_LENGTH, EMBENG_FIELD_DESC,
				 EMBENG_NO_INDEX, 0, desc->length, least);
	return region_get(command, desc, rights, 8, EMBENG_FIELD_DESC, EMBENG_NO_INDEX, view);
}

u16 mem_get(struct command *command, const struct embeng_mem *mem, u32 rights, u32 width, u32 field,
	    u32 feature, struct view *view)
{
	if (!mem_given(mem))
		return 0;
	return region_get(command, mem, rights, width, field, feature, view);
}

u16 mem_get_all(struct command *command, const struct mem_part *parts, u32 count, u32 feature,
		struct view *views)
{
	struct context *context = command->context;
	u16 status = 0;

	memset(views, 0, count * sizeof(*views));
	port_lock(context->engine->lock);
	for (u32 i = 0; !status && i < count; i++) {
		const struct mem_part *part = &parts[i];

		if (mem_given(part->mem))
			status = region_get_held(command, part->mem, part->rights, part->width,
						 part->field, feature, &views[i]);
	}
	port_unlock(context->engine->lock);
	return status;
}
