// SPDX-License-Identifier: MIT
/*
 * The loop of training steps: progress, checkpoints in between, and the reasons to stop. A
 * checkpoint is written between two steps, never within one.
 */
#include <inttypes.h>

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

static int save_training(struct walk *w)
{
	progress_clear(&w->progress);
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
