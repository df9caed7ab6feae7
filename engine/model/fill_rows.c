// SPDX-License-Identifier: MIT
/*
 * Filling rows of a table or of a slot, cut into tasks for the workers. Loading a model fills the
 * slots that do not begin at zero, and ROWS_FILL fills what a program asks for.
 *
 * Called without engine->lock by the running command. Only one command of a device runs at a time,
 * so nobody else touches the rows meanwhile.
 */
#include "../kernels/fill.h"
#include "model.h"

#define DRAW_COST 16u /* numbers that a kernel handles in the time that one takes to be drawn */

struct fill_work {
	struct kernel_fill fill;
	u64 rows, chunk;
};

static void fill_task(void *arg, u64 task, u32 worker)
{
	const struct fill_work *work = arg;
	u64 first = task * work->chunk, last = first + work->chunk;
	struct port_fpu fpu;

	(void)worker;
	port_fpu_begin(&fpu);
	kernel_fill_rows(&work->fill, first, last < work->rows ? last : work->rows);
	port_fpu_end(&fpu);
}

bool fill_range(struct model *model, const struct kernel_fill *fill, u64 rows)
{
	u32 cost = fill->kind == KERNEL_FILL_CONSTANT ? 1 : DRAW_COST;
	struct fill_work work = { *fill, rows, chunk_rows(fill->dim * cost) };

	return workers_run(model->command, fill_task, &work,
			   rows / work.chunk + (rows % work.chunk != 0), rows * fill->dim * 4);
}
