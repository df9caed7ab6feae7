// SPDX-License-Identifier: MIT
/*
 * The loop of training steps: progress, checkpoints in between, and the reasons to stop. A
 * checkpoint is written between two steps, never within one, and never of tables that have numbers
 * which are not finite: it would replace a good one.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "../../cli/frame/exit.h"
#include "../../cli/frame/interrupt.h"
#include "../../cli/frame/progress.h"
#include "learn_steps.h"

/**
 * struct walk - the loop
 * @taken: steps of this run
 * @saved: how many of these a checkpoint holds
 */
struct walk {
	const struct output *out;
	const struct learn *learn;
	struct trainer *t;
	struct learned *l;
	struct progress progress;
	int64_t taken, saved;
};

static enum stop find_stop_reason(const struct walk *w)
{
	if (interrupted())
		return STOP_SIGNAL;
	if (w->learn->max_steps && w->taken == w->learn->max_steps)
		return STOP_STEPS;
	return STOP_NOT;
}

/* Many short epochs are told of in ten lines. */
static void say_epoch(struct walk *w)
{
	int64_t epoch = w->t->at.epoch, epochs = w->l->epochs;

	if (w->out->json || (epoch != epochs && epochs > 20 && epoch % (epochs / 10) != 1))
		return;
	progress_clear(&w->progress);
	printf("epoch %" PRId64 ": loss %.4f\n", epoch, w->t->at.loss);
	fflush(stdout);
}

static bool save_is_due(const struct walk *w)
{
	const struct learn *learn = w->learn;

	if (!learn->save || learn->serve)
		return false;
	if (learn->save_every)
		return w->taken - w->saved == learn->save_every;
	return !w->t->at.step;
}

#define REST_TEXT 600

/* Says what is left of a training that diverged, and what to do. */
static void word_rest(const struct learn *learn, const struct learned *l, char text[REST_TEXT])
{
	const char *dir = learn->serve ? NULL : learn->save;
	char step[40] = "";

	if (l->saved_at.step)
		snprintf(step, sizeof(step), ", step %zu", l->saved_at.step);
	if (dir && l->saves)
		snprintf(text, REST_TEXT,
			 "%.400s holds the training as it was after epoch %" PRId64 "%s", dir,
			 l->saved_at.epoch + (l->saved_at.step > 0), step);
	else if (dir && l->resumed)
		snprintf(text, REST_TEXT, "%.400s is as it was", learn->resume);
	else
		snprintf(text, REST_TEXT, "Nothing is saved");
	snprintf(
		text + strlen(text), REST_TEXT - strlen(text),
		". Train again with a lower --learning-rate than %.9g, or with another --optimizer",
		l->settings->learning_rate);
}

/* Reports a training that cannot go on. Return: the exit code. */
static int report_divergence(const struct output *out, const struct learn *learn,
			     const struct trainer *t, const struct learned *l, bool by_loss)
{
	int64_t epoch = t->at.epoch;
	size_t step = t->at.step;
	char rest[REST_TEXT];

	/* The step that failed, or the last one that was taken. */
	if (by_loss)
		step++;
	if (step)
		epoch++;
	else
		step = trainer_steps(t);
	word_rest(learn, l, rest);
	return output_fail(out, CLI_CHECK, ERANGE, rest,
			   "the training diverged: %s is not finite in epoch %" PRId64
			   " of %" PRId64 ", step %zu of %zu",
			   by_loss ? "the loss" : "a row", epoch, l->epochs, step,
			   trainer_steps(t));
}

int learn_check(const struct output *out, const struct learn *learn, struct trainer *t,
		const struct learned *l)
{
	int rc = trainer_check(t);

	return rc == -EDOM ? report_divergence(out, learn, t, l, false) : rc;
}

static int save_training(struct walk *w)
{
	int rc;

	progress_clear(&w->progress);
	rc = learn_check(w->out, w->learn, w->t, w->l);
	if (rc)
		return rc;
	w->saved = w->taken;
	return save_now(w->out, w->t, w->l, w->learn->save);
}

static int take_step(struct walk *w)
{
	const struct place *at = &w->t->at;
	int rc;

	progress_line(&w->progress, "epoch %" PRId64 " of %" PRId64 ", step %zu of %zu",
		      at->epoch + 1, w->l->epochs, at->step + 1, trainer_steps(w->t));
	rc = trainer_step(w->t);
	if (rc == -EDOM) {
		progress_clear(&w->progress);
		return report_divergence(w->out, w->learn, w->t, w->l, true);
	}
	if (rc)
		return rc;
	w->taken++;
	if (!at->step)
		say_epoch(w);
	return save_is_due(w) ? save_training(w) : 0;
}

int learn_steps(const struct output *out, const struct learn *learn, struct trainer *t,
		struct learned *l)
{
	struct walk w = {
		.out = out,
		.learn = learn,
		.t = t,
		.l = l,
		.progress = progress_start(!out->json),
	};
	int rc = 0;

	while (!rc && t->at.epoch < l->epochs && !(l->stopped = find_stop_reason(&w)))
		rc = take_step(&w);
	if (!rc && learn->save && !learn->serve && w.saved != w.taken)
		rc = save_training(&w);
	progress_clear(&w.progress);
	l->place = t->at;
	l->steps = w.taken;
	l->loss = t->at.loss;
	return rc;
}
