/* SPDX-License-Identifier: MIT */
/*
 * Finds gradients that are not finite, and does with them what the model's policy says: refuses the
 * step, drops the updates of the rows that they reach, or takes them; the last two count the rows.
 * All gradients are looked at in one pass before the first row is touched. The pass reads
 * memory that the update reads next, and nothing else. A table without such a gradient is then updated as
 * ever.
 *
 * Called without engine->lock by the running command. The cores share the pass, and the parts of a
 * step tell by a flag of their own that they have such a gradient; counts are atomic.
 */
#include "finite.h"
#include "../f32.h"
#include "../kernels/segments.h"
#include "../step/step.h"

static bool is_refused(const struct model *model)
{
	return !(model->blob.engine.flags &
		 (EMBENG_ENGINE_GRADIENTS_DROP | EMBENG_ENGINE_GRADIENTS_ALLOW));
}

/* One task at a time of those that a part of the step is cut into. */
struct look {
	const struct model *model;
	const struct view *view;
	u32 found; /* atomic */
};

static void look_task(void *arg, u64 task, u32 worker)
{
	struct look *look = arg;
	u64 count = look->view->length / sizeof(float), first = task * PIECE_ROWS;
	u64 n = piece_end(first, count) - first;
	struct port_fpu fpu;
	bool finite;

	(void)worker;
	port_fpu_begin(&fpu);
	finite = look->model->engine->kernels->all_finite((const float *)look->view->data + first,
							  n);
	port_fpu_end(&fpu);
	if (!finite)
		__atomic_store_n(&look->found, 1, __ATOMIC_RELAXED);
}

static bool has_non_finite(struct model *model, const struct view *view)
{
	struct look look = { .model = model, .view = view };
	u64 count = view->length / sizeof(float);

	workers_run(model->command, look_task, &look,
		    count / PIECE_ROWS + (count % PIECE_ROWS != 0), view->length);
	return __atomic_load_n(&look.found, __ATOMIC_RELAXED);
}

/* A program that changed the gradient meanwhile gets the element that is there now. */
static u16 refuse_gradient(const struct model *model, const struct view *view, u32 replica,
			   u32 feature)
{
	struct command *command = model->command;
	u64 count = view->length / sizeof(float), at = 0, end;
	struct port_fpu fpu;

	for (; at < count; at = end) {
		end = piece_end(at, count);
		port_fpu_begin(&fpu);
		at += kernel_finite_until(model->engine->kernels, (const float *)view->data + at,
					  end - at);
		port_fpu_end(&fpu);
		if (at < end)
			break;
		if (piece_over(command))
			return abort_command(command);
	}
	if (at == count)
		at = 0;
	return fault_set(&command->fault, EMBENG_STATUS_GRADIENT, EMBENG_FIELD_GRADIENTS, feature,
			 at, ((const u32 *)view->data)[at], replica);
}

u16 finite_require(struct model *model, const struct view *view, u32 feature)
{
	if (has_non_finite(model, view))
		return refuse_gradient(model, view, 0, feature);
	return command_is_cut(model->command) ? abort_command(model->command) : 0;
}

u16 finite_check(struct command *command, u64 number)
{
	struct model *model = command->context->model;
	u32 features = model->blob.engine.feature_count;
	bool refused = is_refused(model);
	u16 status = 0;

	for (u32 t = 0; t < model->blob.engine.table_count; t++)
		model->tables[t].suspect = false;
	for (u64 i = 0; !status && i < (u64)features * model_replicas(model); i++) {
		u32 replica = (u32)(i / features), feature = (u32)(i % features);
		const struct update *update = model_part(model, number, replica)->gradients;
		const struct view *view = &model->gradients[i];

		if (!view->data ||
		    (refused && update->features[feature].flags & EMBENG_UPDATE_CHECKED) ||
		    !has_non_finite(model, view))
			continue;
		if (refused)
			status = refuse_gradient(model, view, replica, feature);
		else
			model->tables[model->blob.features[feature].table].suspect = true;
	}
	return command_is_cut(command) ? abort_command(command) : status;
}

/* Whether what an occurrence takes of a gradient is finite. */
static bool held_is_finite(const struct apply *apply, const struct kernel_segment *s, u64 at)
{
	const u64 row = s->grad_row ? s->grad_row[at] : at;
	const u32 *gradient = (const u32 *)s->gradients + row * s->stride;
	const u32 *holders = s->holders + row * apply->update.dim;

	for (u32 c = 0; c < apply->update.dim; c++) {
		if (holders[c] == at && !f32_finite(gradient[c]))
			return false;
	}
	return true;
}

static bool gradient_is_finite(const struct apply *apply, const struct kernel_segment *s, u64 at)
{
	const u64 row = s->grad_row ? s->grad_row[at] : at;

	return apply->model->engine->kernels->all_finite(s->gradients + row * s->stride,
							 apply->update.dim);
}

/* Whether each gradient of occurrences [first, last) of a row is finite. */
static bool group_is_finite(const struct apply *apply, const struct kernel_group *group, u64 first,
			    u64 last)
{
	const struct kernel_update *u = &apply->update;
	const u32 *occ = apply->lane->partition.order + group->first;

	for (u64 i = first; i < last; i++) {
		const struct kernel_segment *s = kernel_find_segment(u->segments, u->segment_count,
								     occ[i]);
		u64 at = occ[i] - s->first;

		if (s->holders ? !held_is_finite(apply, s, at) : !gradient_is_finite(apply, s, at))
			return false;
	}
	return true;
}

/* Counts a row that was reached. Return: whether its update is dropped. */
static bool count_reached(struct apply *apply)
{
	struct table *table = apply->table;

	__atomic_fetch_add(&table->stats.nonfinite_gradient_rows, 1, __ATOMIC_RELAXED);
	return apply->model->blob.engine.flags & EMBENG_ENGINE_GRADIENTS_DROP;
}

bool finite_drops(struct apply *apply, const struct kernel_group *group)
{
	bool finite = true;

	for (u64 at = 0, end; finite && at < group->count; at = end) {
		struct port_fpu fpu;

		end = group->count - at < apply->most ? group->count : at + apply->most;
		port_fpu_begin(&fpu);
		finite = group_is_finite(apply, group, at, end);
		port_fpu_end(&fpu);
		if (end < group->count && piece_over(apply->model->command))
			return true;
	}
	return !finite && count_reached(apply);
}

bool finite_rows(struct apply *apply, u64 first, u64 last, u8 *scratch)
{
	const struct partition *p = &apply->lane->partition;
	bool nonfinite = false;
	struct port_fpu fpu;

	port_fpu_begin(&fpu);
	for (u64 i = first; i < last; i++) {
		if (group_is_finite(apply, &p->groups[i], 0, p->groups[i].count) ||
		    !count_reached(apply))
			nonfinite |= apply->model->engine->kernels->update_rows(
				&apply->update, &p->groups[i], 1, 0, p->order, scratch);
	}
	port_fpu_end(&fpu);
	return nonfinite;
}
