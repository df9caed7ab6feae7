// SPDX-License-Identifier: MIT
/*
 * Learns from baskets and reports the results: builds the data, trains, evaluates and answers
 * queries. `embeng train` and `embeng demo` share it.
 *
 * Data, split and tables live for one learn_run().
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../cli/device/device.h"
#include "../../cli/frame/exit.h"
#include "../../cli/frame/interrupt.h"
#include "../../cli/frame/scratch.h"
#include "../../cli/lookup/served.h"
#include "learn_steps.h"

int learn_read_failed(const struct output *out, const struct source *s, int rc)
{
	if (rc == -ENOMEM)
		return output_fail(out, CLI_DEVICE, rc, NULL, "out of memory");
	return output_fail(out, rc == -EBADMSG ? CLI_CORRUPT : exit_of_errno(rc), rc, NULL, "%s",
			   s->error);
}

static int refuse_no_data(const struct output *out, const struct settings *s)
{
	return output_fail(out, CLI_CHECK, ENODATA,
			   "Give it more data, or lower --min-count of embeng train",
			   "there is nothing to learn from: no basket has %" PRId64
			   " items that are each in %" PRId64 " baskets or more",
			   s->min_basket, s->min_count);
}

static int refuse_query(const struct output *out, const struct learn *learn,
			const struct dataset *data, const char *name)
{
	char near[ROW_NAMES_NEAR];

	return output_fail(out, CLI_USAGE, ENOENT,
			   row_names_near(data->items.text, data->items.count, name, near),
			   "'%s' is not among the %zu items that are in %" PRId64
			   " baskets or more",
			   name, data->items.count, learn->settings.min_count);
}

static int find_queries(const struct output *out, const struct learn *learn,
			const struct dataset *data, uint32_t *found, size_t *count)
{
	*count = 0;
	for (size_t q = 0; q < learn->query_count; q++) {
		const char *name = learn->queries[q];
		int64_t item = names_find(&data->items, name, strlen(name));

		if (item < 0)
			return refuse_query(out, learn, data, name);
		found[(*count)++] = (uint32_t)item;
	}
	for (size_t u = 0; !learn->query_count && learn->usual && learn->usual[u]; u++) {
		int64_t item = names_find(&data->items, learn->usual[u], strlen(learn->usual[u]));

		if (item >= 0 && *count < QUERIES_MAX)
			found[(*count)++] = (uint32_t)item;
	}
	return CLI_OK;
}

static int read_results(struct trainer *t, struct learned *l)
{
	struct vectors *v = &l->vectors;
	int rc;

	l->stats.size = sizeof(l->stats);
	l->counters.size = sizeof(l->counters);
	l->device.size = sizeof(l->device);
	rc = embeng_stats(t->e, TABLE_IN, 0, &l->stats);
	if (!rc)
		rc = embeng_counters(t->e, &l->counters);
	if (!rc)
		rc = embeng_info(t->e, &l->device);
	if (rc)
		return rc;
	v->dim = (size_t)l->settings->dim;
	v->in = trainer_rows(t, TABLE_IN);
	v->out = trainer_rows(t, TABLE_OUT);
	v->mean = calloc(v->dim, sizeof(*v->mean));
	return v->in && v->out && v->mean ? 0 : -ENOMEM;
}

/*
 * A training that ended: its numbers, and with serves a checkpoint to answer from. Returns as
 * learn_check().
 */
static int finish_training(const struct output *out, const struct learn *learn, struct trainer *t,
			   struct learned *l)
{
	int rc = embeng_flush(t->e, -1);

	/* The check reads rows, which is not to count among the copies of the training. */
	if (!rc)
		rc = read_results(t, l);
	if (!rc)
		rc = learn_check(out, learn, t, l);
	if (!rc && l->serves)
		rc = save_now(out, t, l, l->checkpoint);
	return rc;
}

static int train_on(const struct output *out, const struct learn *learn, struct trainer *t,
		    struct learned *l)
{
	int rc;

	l->epochs = trainer_epochs(t);
	l->examples = t->sampler.count;
	l->epoch_steps = trainer_steps(t);
	rc = learn->resume ? resume_apply(out, learn, t, l) : CLI_OK;
	if (rc)
		return rc;
	report_start(out, l);
	rc = learn_steps(out, learn, t, l);
	if (!rc && !l->stopped)
		rc = finish_training(out, learn, t, l);
	l->dense_ns = t->dense_ns;
	if (rc > 0)
		return rc;
	/* A training that a signal cancelled has not failed. */
	if (rc == -ECANCELED && interrupted()) {
		l->stopped = STOP_SIGNAL;
		return CLI_OK;
	}
	return rc ? output_library_failure(out, rc, NULL) : CLI_OK;
}

static int train_tables(const struct output *out, const struct learn *learn,
			const struct split *split, struct learned *l)
{
	struct trainer t;
	int rc = trainer_open(&t, l->data, split, l->settings), code;

	if (rc == -ENODATA)
		return refuse_no_data(out, l->settings);
	if (rc == -EXDEV)
		return output_fail(out, CLI_UNSUPPORTED, ENOTSUP, NULL,
				   "the verb trains in one process, and the device %s is one over "
				   "several hosts; a program can train there, as the example "
				   "train_hosts does",
				   device_choose(l->settings->device));
	if (rc)
		return output_library_failure(out, rc, rc == -ENODEV ? device_hint : NULL);
	report_data(out, l);
	code = train_on(out, learn, &t, l);
	trainer_close(&t);
	return code;
}

static void judge_vectors(const struct split *split, struct learned *l)
{
	struct scorer scorers[] = {scorer_vectors(&l->vectors), scorer_popularity(split)};
	double hits[2];

	l->vectors.split = split;
	evaluate(l->data, split, (uint64_t)l->settings->seed, scorers, 2, hits);
	l->hit_at_10 = hits[0];
	l->popularity_hit_at_10 = hits[1];
}

static uint64_t checkpoint_bytes(const char *dir)
{
	struct embeng_checkpoint_info info = EMBENG_INIT(embeng_checkpoint_info);
	struct embeng_checkpoint *checkpoint;

	if (embeng_checkpoint_open(dir, &checkpoint, NULL))
		return 0;
	embeng_checkpoint_info(checkpoint, &info);
	embeng_checkpoint_close(checkpoint);
	return info.bytes;
}

static int answer_queries(const struct output *out, const struct split *split, struct learned *l,
			  const uint32_t *queries, size_t count)
{
	uint64_t began;
	int rc;

	if (l->saves)
		l->checkpoint_bytes = checkpoint_bytes(l->checkpoint);
	if (l->stopped)
		return report_stopped(out, l);
	judge_vectors(split, l);
	if (l->serves) {
		began = clock_ns();
		rc = served_vectors(l->checkpoint, l->data->items.count, &l->served);
		if (rc)
			return output_library_failure(out, rc, NULL);
		l->serve_ns = clock_ns() - began;
	}
	l->seconds = (double)(clock_ns() - l->started_ns) / 1e9;
	return report_result(out, l, queries, count);
}

static int learn_from(const struct output *out, const struct learn *learn, struct learned *l)
{
	uint32_t queries[QUERIES_MAX];
	struct split split = {0};
	size_t count;
	int code, rc;

	code = find_queries(out, learn, l->data, queries, &count);
	if (code)
		return code;
	rc = split_baskets(&split, l->data, learn->settings.by_time ? SPLIT_TIME : SPLIT_SEED,
			   (uint64_t)learn->settings.seed);
	if (rc == -ENODATA)
		return output_fail(out, CLI_USAGE, rc, "Use --split seed",
				   "--split time needs a timestamp with every interaction");
	if (rc)
		return output_fail(out, CLI_DEVICE, rc, NULL, "out of memory");
	code = train_tables(out, learn, &split, l);
	if (!code)
		code = answer_queries(out, &split, l, queries, count);
	split_free(&split);
	return code;
}

/* With a folder to save in, where one is wanted; a temporary one goes in every case. */
static int learn_saving(const struct output *out, const struct learn *learn, struct learned *l)
{
	char *scratch = NULL;
	int code = CLI_OK, rc;

	if (!learn->save && !learn->serve)
		return learn_from(out, learn, l);
	interrupt_catch();
	if (learn->save) {
		l->checkpoint = learn->save;
		code = save_prepare(out, learn);
	} else {
		rc = scratch_make(&scratch);
		if (rc)
			code = output_fail(out, exit_of_errno(rc), rc,
					   "Name another place in $TMPDIR",
					   "there is no temporary folder: %s", strerror(-rc));
		l->checkpoint = scratch;
		l->temporary = true;
	}
	if (!code)
		code = learn_from(out, learn, l);
	scratch_remove(scratch);
	interrupt_release();
	return code;
}

static void vectors_free(struct vectors *v)
{
	free(v->in);
	free(v->out);
	free(v->mean);
}

int learn_run(const struct output *out, const struct learn *learn, struct collector *c,
	      const char *from, const char *note, uint64_t started_ns)
{
	struct dataset data = {0};
	struct learned l = {
		.source = from,
		.note = note,
		.data = &data,
		.settings = &learn->settings,
		.keep = learn->keep,
		.delta = learn->delta,
		.started_ns = started_ns,
		.serves = learn->serve,
	};
	int rc, code;

	rc = dataset_build_on(&data, learn->known.text, learn->known.count, c,
			      (size_t)learn->settings.min_count,
			      (size_t)learn->settings.min_basket);
	collector_free(c);
	if (rc)
		return output_fail(out, CLI_DEVICE, rc, NULL, "out of memory");
	l.data_hash = dataset_hash(&data);
	l.names = row_names_mark(data.items.text, data.items.count);
	l.new_items = data.items.count - learn->known.count;
	code = data.basket_count ? learn_saving(out, learn, &l)
				 : refuse_no_data(out, &learn->settings);
	vectors_free(&l.vectors);
	vectors_free(&l.served);
	dataset_free(&data);
	return code;
}
