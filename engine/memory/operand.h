/* SPDX-License-Identifier: MIT */
/* The memory and the arrays that a command names: their lengths are checked, their keys resolved. */
#ifndef EMBENG_ENGINE_OPERAND_H
#define EMBENG_ENGINE_OPERAND_H

#include "../device/device.h"

/* A command's memory that must be as long as what it is to hold. */
u16 check_length(const struct embeng_mem *mem, u64 count, u64 width, u32 field, u32 feature,
		 struct fault *fault);

/*
 * Adds @bytes that a feature makes a command move to *sum, which is not to exceed what one command may
 * (embeng_caps.command_bytes).
 */
u16 check_moves(const struct engine *engine, u64 *sum, u64 bytes, u32 feature, struct fault *fault);

/* Records of @size behind a header, @stride apart, that fill the descriptor. */
u16 check_records(u32 count, u32 stride, u64 size, u64 header, const struct embeng_mem *desc,
		  struct fault *fault);

/* The command's descriptor, of at least @least bytes; region_put() it. */
u16 desc_get(struct command *command, u64 least, u32 rights, struct view *view);

/* Maps memory that a command names, if it is given; region_put() it. */
u16 mem_get(struct command *command, const struct embeng_mem *mem, u32 rights, u32 width, u32 field,
	    u32 feature, struct view *view);

/* Several of them, one view each: region_put_all() of those, also when it failed. */
struct mem_part {
	const struct embeng_mem *mem;
	u32 rights, width, field;
};
u16 mem_get_all(struct command *command, const struct mem_part *parts, u32 count, u32 feature,
		struct view *views);

#endif
