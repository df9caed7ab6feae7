// SPDX-License-Identifier: MIT
/* Builds, trains, evaluates, reports. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "exit.h"
#include "learn.h"
#include "progress.h"

int learn_read_failed(const struct output *out, const struct source *s, int rc)
{
	if (rc == -ENOMEM)
		return output_fail(out, CLI_DEVICE, rc, NULL, "out of memory");
	return output_fail(out, rc == -EBADMSG ? CLI_CORRUPT : exit_of_errno(rc), rc, NULL, "%s",
			   s->error);
}

static int no_data(const struct output *out, const struct settings *s)
{
	return output_fail(out, CLI_CHECK, ENODATA,
			   "Give it more data, or lower --min-count of embeng train",
			   "there is nothing to learn from: no basket has %" PRId64
			   " items that are each in %" PRId64 " baskets or more",
			   s->min_basket, s->min_count);
}

static int find_queries(const struct output *out, const struct learn *learn,
			const struct dataset *data, uint32_t *found, size_t *count)
{
	*count = 0;
	for (size_t q = 0; q < learn->query_count; q++) {
		const char *name = learn->queries[q];
		int64_t item = names_find(&data->items, name, strlen(name));

		if (item < 0)
			return output_fail(out, CLI_USAGE, ENOENT, NULL,
					   "'%s' is not among the %zu items that are in %" PRId64
					   " baskets or more", name, data->items.count,
					   learn->settings.min_count);
		found[(*count)++] = (uint32_t)item;
	}
	for (size_t u = 0; !learn->query_count && learn->usual && learn->usual[u]; u++) {
		int64_t item = names_find(&data->items, learn->usual[u], strlen(learn->usual[u]));

		if (item >= 0 && *count < QUERIES_MAX)
			found[(*count)++] = (uint32_t)item;
	}
	return CLI_OK;
}

static int train_epochs(const struct output *out, struct trainer *t, struct learned *l)
{
	struct progress progress = progress_start(!out->json);
	int rc = 0;

	for (int64_t epoch = 1; epoch <= l->epochs && !rc; epoch++) {
		progress_line(&progress, "epoch %" PRId64 " of %" PRId64 ", %zu steps", epoch,
			      l->epochs, trainer_steps(t));
		rc = trainer_epoch(t, &l->loss);
		if (rc || out->json)
			continue;
		progress_clear(&progress);
		/* Many short epochs are told of in ten lines. */
		if (epoch == l->epochs || l->epochs <= 20 || epoch % (l->epochs / 10) == 1)
			printf("epoch %" PRId64 ": loss %.4f\n", epoch, l->loss);
	}
	return rc;
}

static int read_back(struct trainer *t, struct learned *l)
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

static int train(const struct output *out, const struct split *split, struct learned *l)
{
	struct trainer t;
	int rc = trainer_open(&t, l->data, split, l->settings);

	if (rc == -ENODATA)
		return no_data(out, l->settings);
	if (rc)
		return output_library_failure(out, rc, NULL);
	l->epochs = trainer_epochs(&t);
	l->examples = t.sampler.count;
	rc = train_epochs(out, &t, l);
	if (!rc)
		rc = embeng_flush(t.e, -1);
	if (!rc)
		rc = read_back(&t, l);
	l->dense_ns = t.dense_ns;
	if (rc)
		output_library_failure(out, rc, NULL);
	trainer_close(&t);
	return rc ? exit_of_errno(rc) : CLI_OK;
}

static void judge(const struct split *split, struct learned *l)
{
	struct scorer scorers[] = {scorer_vectors(&l->vectors), scorer_popularity(split)};
	double hits[2];

	l->vectors.split = split;
	evaluate(l->data, split, l->settings->seed, scorers, 2, hits);
	l->hit_at_10 = hits[0];
	l->popularity_hit_at_10 = hits[1];
	l->seconds = (double)(clock_ns() - l->started_ns) / 1e9;
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
	rc = split_baskets(&split, l->data, learn->settings.split, learn->settings.seed);
	if (rc == -ENODATA)
		return output_fail(out, CLI_USAGE, rc, "Use --split seed",
				   "--split time needs a timestamp with every interaction");
	if (rc)
		return output_fail(out, CLI_DEVICE, rc, NULL, "out of memory");
	report_data(out, l);
	code = train(out, &split, l);
	if (!code) {
		judge(&split, l);
		code = report_result(out, l, queries, count);
	}
	split_free(&split);
	return code;
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
		.started_ns = started_ns,
	};
	int rc, code;

	rc = dataset_build(&data, c, (size_t)learn->settings.min_count,
			   (size_t)learn->settings.min_basket);
	collector_free(c);
	if (rc)
		return output_fail(out, CLI_DEVICE, rc, NULL, "out of memory");
	code = data.basket_count ? learn_from(out, learn, &l) : no_data(out, &learn->settings);
	free(l.vectors.in);
	free(l.vectors.out);
	free(l.vectors.mean);
	dataset_free(&data);
	return code;
}
