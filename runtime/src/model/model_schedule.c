// SPDX-License-Identifier: MIT
/*
 * Schedules of a model's dynamic learning rates: which rate follows which schedule.
 *
 * The model owns copies of the schedules and of their arrays until they are replaced or it is
 * freed. No lock is taken: a program changes a model by one thread at a time.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "model.h"
#include "schedule.h"

static struct model_schedule *find_schedule(const struct embeng_model *model, size_t rate)
{
	for (size_t i = 0; i < model->schedule_count; i++) {
		if (model->schedules[i].rate == rate)
			return &model->schedules[i];
	}
	return NULL;
}

static void arrays_free(struct embeng_schedule *schedule)
{
	free((void *)schedule->boundaries);
	free((void *)schedule->values);
}

static void *copy_of(const void *from, size_t bytes)
{
	void *copy = malloc(bytes);

	return copy ? memcpy(copy, from, bytes) : NULL;
}

/* A checked schedule with arrays of its own. */
static int own_arrays(struct embeng_schedule *schedule)
{
	size_t count = schedule->boundary_count;

	if (schedule->kind != EMBENG_SCHEDULE_PIECEWISE) {
		schedule->boundaries = NULL;
		schedule->values = NULL;
		return 0;
	}
	schedule->boundaries = copy_of(schedule->boundaries, count * sizeof(*schedule->boundaries));
	schedule->values = copy_of(schedule->values, (count + 1) * sizeof(*schedule->values));
	if (schedule->boundaries && schedule->values)
		return 0;
	arrays_free(schedule);
	return fail(-ENOMEM, "no memory for a schedule of %zu boundaries", count);
}

static void drop_schedule(struct embeng_model *model, struct model_schedule *at)
{
	arrays_free(&at->schedule);
	*at = model->schedules[--model->schedule_count];
}

static int put_schedule(struct embeng_model *model, size_t rate, struct embeng_schedule schedule)
{
	struct model_schedule *at = find_schedule(model, rate), *grown;
	int code = own_arrays(&schedule);

	if (code)
		return code;
	if (at) {
		arrays_free(&at->schedule);
		at->schedule = schedule;
		return 0;
	}
	grown = reallocarray(model->schedules, model->schedule_count + 1, sizeof(*grown));
	if (!grown) {
		arrays_free(&schedule);
		return fail(-ENOMEM, "no memory for a schedule");
	}
	model->schedules = grown;
	grown[model->schedule_count++] = (struct model_schedule){rate, schedule};
	return 0;
}

int embeng_model_set_schedule(struct embeng_model *model, const char *rate,
			      const struct embeng_schedule *schedule)
{
	struct embeng_schedule s;
	size_t r = 0;
	int code;

	if (!model || !rate)
		return fail(-EINVAL,
			    "embeng_model_set_schedule: the model and the name of a rate must "
			    "be given");
	while (r < model->rate_count && strcmp(model->rates[r], rate))
		r++;
	if (r == model->rate_count)
		return fail(-ENOENT,
			    "the model has no learning rate or dynamic hyperparameter named %s; a "
			    "table's optimizer names it, by rate_name or in dynamic",
			    rate);
	if (!schedule) {
		if (find_schedule(model, r))
			drop_schedule(model, find_schedule(model, r));
		return 0;
	}
	code = config_take(&s, schedule, sizeof(s), "embeng_schedule");
	if (!code)
		code = schedule_check(rate, &s);
	return code ? code : put_schedule(model, r, s);
}

const struct embeng_schedule *embeng_model_schedule(const struct embeng_model *model, size_t rate)
{
	const struct model_schedule *found = model ? find_schedule(model, rate) : NULL;

	return found ? &found->schedule : NULL;
}

int model_schedules_copy(struct embeng_model *copy, const struct embeng_model *model)
{
	int code = 0;

	for (size_t i = 0; !code && i < model->schedule_count; i++)
		code = put_schedule(copy, model->schedules[i].rate, model->schedules[i].schedule);
	return code;
}

void model_schedules_free(struct embeng_model *model)
{
	for (size_t i = 0; i < model->schedule_count; i++)
		arrays_free(&model->schedules[i].schedule);
	free(model->schedules);
}
