// SPDX-License-Identifier: MIT
/*
 * Collects the dynamic learning rates and hyperparameters of a step, which are both called rates here.
 * The program gives them, or they follow a schedule of the model. Each is checked against the
 * optimizers that use it, then all that one optimizer uses together.
 *
 * Called without e->lock, which is taken for the step's number. The rates go into the slot of the
 * step.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "model/schedule.h"
#include "session.h"

static int find_rate(const struct embeng_model *m, const char *name, size_t *out)
{
	for (size_t r = 0; name && r < m->rate_count; r++) {
		if (!strcmp(m->rates[r], name)) {
			*out = r;
			return 0;
		}
	}
	return fail(-ENOENT, "the model has no learning rate named %s, and no hyperparameter",
		    name ? name : "(null)");
}

/* Checks a value against the hyperparameters of a table that it is for. */
static int check_dynamic(const struct embeng_model *m, int rate, const struct table *t, float value)
{
	char where[256];
	int ret = 0;

	snprintf(where, sizeof(where), "%s %.100s of table %.100s", rate_word(m, (size_t)rate),
		 m->rates[rate], t->name);
	for (int n = 0; !ret && n < NUMBERS; n++) {
		if (t->dynamic[n] == rate)
			ret = number_value_check(where, &t->optimizer, n, value);
	}
	return ret;
}

/* Checks a rate against the tables that use it. */
static int check_rate(const struct embeng_model *m, int rate, float value)
{
	char where[256];
	int ret = 0;

	for (size_t t = 0; !ret && t < m->table_count; t++) {
		snprintf(where, sizeof(where), "learning rate %.100s of table %.100s",
			 m->rates[rate], m->tables[t].name);
		if (m->tables[t].rate == rate)
			ret = optimizer_rate_check(where, &m->tables[t].optimizer, value);
		if (!ret && m->tables[t].step_rate == rate)
			ret = optimizer_step_check(where, value);
		if (!ret && m->tables[t].optimizer.dynamic_count)
			ret = check_dynamic(m, rate, &m->tables[t], value);
	}
	return ret;
}

/* A name that is given once and a value that its tables allow, or a sentence. */
static int take_rate(const struct embeng_model *m, const struct embeng_gradients *g, size_t i,
		     uint32_t *rates)
{
	size_t r;
	int ret = find_rate(m, g->rates[i].name, &r);

	if (ret)
		return ret;
	for (size_t j = 0; j < i; j++)
		if (!strcmp(g->rates[j].name, g->rates[i].name))
			return fail(-EINVAL, "%s %s is given twice", rate_word(m, r), m->rates[r]);
	rates[r] = bits(g->rates[i].value);
	return check_rate(m, (int)r, g->rates[i].value);
}

static bool is_given(const struct embeng_gradients *g, const char *name)
{
	for (size_t i = 0; i < g->rate_count; i++) {
		if (!strcmp(g->rates[i].name, name))
			return true;
	}
	return false;
}

/*
 * Computes a rate that the program left out. In a shared context another process may have restored
 * a step count that is not known here.
 */
static int follow_schedule(struct embeng *e, struct slot *slot, size_t r)
{
	const struct embeng_schedule *schedule = embeng_model_schedule(e->model, r);
	char where[256];
	uint64_t step;
	float value;
	bool shared;
	int ret;

	pthread_mutex_lock(&e->lock);
	step = step_count(e, slot->step) - 1;
	shared = e->shared;
	pthread_mutex_unlock(&e->lock);
	if (!schedule)
		return fail(-EINVAL,
			    "%s %s is missing: give it a value in embeng_gradients.rates at each "
			    "step, or a schedule in the model",
			    rate_word(e->model, r), e->model->rates[r]);
	if (shared)
		return fail(-EINVAL,
			    "%s %s is missing: in a shared context its schedule is not "
			    "followed; give the value of embeng_schedule_rate()",
			    rate_word(e->model, r), e->model->rates[r]);
	snprintf(where, sizeof(where), "%s %.200s", rate_word(e->model, r), e->model->rates[r]);
	ret = schedule_rate(where, schedule, step, &value);
	if (ret)
		return ret;
	slot->rates[r] = bits(value);
	return check_rate(e->model, (int)r, value);
}

/* Checks the rules between values of a table that come with the step. */
static int check_together(const struct table *t, const uint32_t *rates)
{
	struct embeng_optimizer now = t->optimizer;
	char where[256];

	now.dynamic = NULL;
	now.dynamic_count = 0;
	if (t->rate >= 0)
		now.learning_rate = float_of(rates[t->rate]);
	for (int n = 0; n < NUMBERS; n++) {
		if (t->dynamic[n] >= 0)
			number_set(&now, n, float_of(rates[t->dynamic[n]]));
	}
	snprintf(where, sizeof(where), "table %.100s with the values of this step", t->name);
	return optimizer_values_check(where, &now);
}

int rates_take(struct embeng *e, struct slot *slot, const struct embeng_gradients *g)
{
	int ret = 0;

	if (g->rate_count && !g->rates)
		return fail(-EINVAL, "rate_count is %zu, rates is NULL", g->rate_count);
	for (size_t i = 0; !ret && i < g->rate_count; i++)
		ret = take_rate(e->model, g, i, slot->rates);
	for (size_t r = 0; !ret && r < e->model->rate_count; r++) {
		if (!is_given(g, e->model->rates[r]))
			ret = follow_schedule(e, slot, r);
	}
	for (size_t t = 0; !ret && t < e->model->table_count; t++) {
		if (e->model->tables[t].optimizer.dynamic_count)
			ret = check_together(&e->model->tables[t], slot->rates);
	}
	return ret;
}

void rates_defer(const struct embeng *e, struct slot *slot, const struct embeng_gradients *g)
{
	for (size_t r = 0; r < e->model->rate_count; r++) {
		if (!is_given(g, e->model->rates[r]))
			slot->rates[r] = RATE_OF_SCHEDULE;
	}
}

float rates_find(struct embeng *e, uint64_t step, size_t rate, uint32_t given)
{
	const struct embeng_schedule *schedule = embeng_model_schedule(e->model, rate);
	uint64_t count;
	float value;

	if (given != RATE_OF_SCHEDULE || !schedule)
		return float_of(given);
	pthread_mutex_lock(&e->lock);
	count = step_count_behind(e, step);
	pthread_mutex_unlock(&e->lock);
	return schedule_rate(e->model->rates[rate], schedule, count - 1, &value) ? float_of(given)
										 : value;
}
