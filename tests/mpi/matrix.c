// SPDX-License-Identifier: MIT
/*
 * Trains every combination of optimizer, combiner, weights, pipelining and exchange over hosts, and compares
 * rows, slots and activations with one process, to the bit. Each host compares what it has.
 *
 * usage: matrix TRANSPORT [EVERY]
 *
 * TRANSPORT is openmpi, mpich, mpi, or threads:N for N threads of this process. Each EVERYth combination is
 * run, from 1. Prints a line of each rank: "rank R of N: C combinations, M numbers are those of one process", or
 * what differs. The numbers of all ranks add up to those of one rank.
 */
#include <stdio.h>
#include <unistd.h>

#include "hosts_help.h"

#define OPTIMIZERS 5
#define COMBINERS 4
#define EXCHANGES 4
#define DEADLINE_NS (60 * 1000 * GROUP_MS)

static const char *const exchanges[EXCHANGES] = {RUN_DEVICE ",exchange=table",
						 RUN_DEVICE ",exchange=columns", RUN_ROWS,
						 RUN_ROWS ",sharding=div"};

/* The combinations of a matrix, and one host's way through it. */
struct walk {
	struct embeng_transport transport;
	struct run_host host;
	pthread_t thread;
	int every, made;
	size_t compared, differ;
};

static struct embeng_optimizer make_optimizer(int i)
{
	const struct embeng_optimizer all[OPTIMIZERS] = {
		embeng_sgd(0.1f), embeng_adagrad(0.1f), embeng_adam_corrected(0.01f),
		embeng_ftrl(0.05f), embeng_rowwise_adagrad(0.1f)};

	return all[i];
}

/* Returns false for what no model has: the combiner max takes no weights, and no update of spread rows. */
static bool make_combination(int i, struct run *run, char *words, size_t size)
{
	static const char *const optimizers[] = {"sgd", "adagrad", "adam", "ftrl",
						 "rowwise_adagrad"};
	static const char *const combiners[] = {"sum", "mean", "sqrtn", "max"};
	const int optimizer = i % OPTIMIZERS, exchange = i / OPTIMIZERS % EXCHANGES;
	const int combiner = i / OPTIMIZERS / EXCHANGES % COMBINERS;
	const int forms = i / OPTIMIZERS / EXCHANGES / COMBINERS;

	*run = (struct run){.device = exchanges[exchange],
			    .optimizer = make_optimizer(optimizer),
			    .combiner = (enum embeng_combiner_name)combiner,
			    .weights = forms & 1,
			    .pipelining = forms >> 1,
			    .ahead = (uint32_t)forms >> 1,
			    .replicas = 4,
			    .steps = 4};
	snprintf(words, size, "%s, %s, %s, %s weights, %s pipelining", optimizers[optimizer],
		 exchanges[exchange], combiners[combiner], forms & 1 ? "with" : "without",
		 forms >> 1 ? "with" : "without");
	return run->combiner != EMBENG_MAX || !run->weights;
}

/* Compares what this host has. All else is as run_make_rows() left it, and no digest is 0. */
static void compare_run(struct walk *w, const struct run *alone, const struct run *group)
{
	static const float unset = 12345.0f;

	for (int t = 0; t < RUN_TABLES; t++)
		for (size_t s = 0; s < RUN_SLOTS_MOST; s++)
			for (size_t i = 0; i < (size_t)(run_rows[t] * run_dims[t]); i++) {
				const float *a = &alone->rows[t][s][i], *b = &group->rows[t][s][i];

				if (!memcmp(b, &unset, sizeof(unset)))
					continue;
				w->compared++;
				w->differ += memcmp(a, b, sizeof(*a)) != 0;
			}
	for (uint32_t step = 0; step < alone->steps; step++)
		for (uint32_t r = 0; r < alone->replicas; r++) {
			if (!group->seen[step][r])
				continue;
			w->compared++;
			w->differ += alone->seen[step][r] != group->seen[step][r];
		}
}

static int train_over_hosts(struct run_host *h, struct run *run)
{
	struct embeng_model *model = run_model(run);
	int ret = run_note(h, embeng_open_group(run->device, model, h->group, &h->e, NULL));

	if (!ret) {
		ret = run_note(h, run_train(run, h->e, 1));
		ret = ret ? ret : run_note(h, embeng_flush(h->e, -1));
		if (!ret && h->e->hosts)
			ret = run_note(h, hosts_enter(h->e));
		if (!ret)
			run_keep_rows(run, h->e);
		if (!ret && h->e->hosts)
			hosts_leave(h->e);
		embeng_close(h->e);
	}
	embeng_model_free(model);
	return ret;
}

static void compare_combination(struct walk *w, const struct run *kind)
{
	struct run alone = *kind, group = *kind;

	run_alone(&alone);
	run_make_rows(&group);
	if (!train_over_hosts(&w->host, &group))
		compare_run(w, &alone, &group);
	run_free_rows(&alone);
	run_free_rows(&group);
}

static void walk_matrix(struct walk *w)
{
	struct run kind;
	char words[200];
	size_t before;

	for (int i = 0; i < OPTIMIZERS * COMBINERS * EXCHANGES * 4 && !w->host.code; i++) {
		if (!make_combination(i, &kind, words, sizeof(words)) || i % w->every)
			continue;
		before = w->differ;
		compare_combination(w, &kind);
		w->made++;
		if (w->host.code)
			printf("rank %u: %s: %d, %s\n", w->host.rank, words, w->host.code,
			       w->host.text);
		if (w->differ > before)
			printf("rank %u: %s: %zu numbers differ\n", w->host.rank, words,
			       w->differ - before);
	}
}

static void *walk_host(void *arg)
{
	const struct embeng_group_options options = EMBENG_INIT(embeng_group_options,
								.deadline_ns = DEADLINE_NS);
	struct walk *w = arg;
	char line[800];
	int length;

	w->host.rank = w->transport.rank;
	if (!run_note(&w->host, embeng_group_open(&w->transport, &options, &w->host.group, NULL))) {
		walk_matrix(w);
		embeng_group_close(w->host.group);
	}
	if (w->host.code || w->differ)
		length = snprintf(line, sizeof(line), "rank %u failed: %s\n", w->host.rank,
				  w->host.text);
	else
		length = snprintf(line, sizeof(line),
				  "rank %u of %u: %d combinations, %zu numbers are those of one "
				  "process\n",
				  w->host.rank, w->transport.ranks, w->made, w->compared);
	fflush(stdout);
	if (write(1, line, (size_t)length) != length)
		_exit(4);
	return NULL;
}

/* Hosts that are threads of this process. */
static bool walk_threads(uint32_t ranks, int every)
{
	struct embeng_transport transports[RUN_HOSTS_MOST];
	static struct walk walks[RUN_HOSTS_MOST];
	bool failed = false;

	if (!ranks || ranks > RUN_HOSTS_MOST || embeng_group_threads(ranks, transports))
		return true;
	for (uint32_t i = 0; i < ranks; i++) {
		walks[i] = (struct walk){.transport = transports[i], .every = every};
		ck_assert_int_eq(pthread_create(&walks[i].thread, NULL, walk_host, &walks[i]), 0);
	}
	for (uint32_t i = 0; i < ranks; i++) {
		pthread_join(walks[i].thread, NULL);
		failed |= walks[i].host.code || walks[i].differ;
	}
	return failed;
}

int main(int argc, char **argv)
{
	static struct walk walk;
	struct embeng_error error = EMBENG_INIT(embeng_error);

	if (argc < 2)
		return 2;
	walk.every = argc > 2 ? atoi(argv[2]) : 1;
	if (walk.every < 1)
		return 2;
	if (!strncmp(argv[1], "threads:", 8))
		return walk_threads((uint32_t)strtoul(argv[1] + 8, NULL, 10), walk.every) ? 3 : 0;
	if (embeng_group_transport(argv[1], &walk.transport, &error)) {
		printf("%s\n", error.text);
		return 3;
	}
	walk_host(&walk);
	return walk.host.code || walk.differ ? 3 : 0;
}
