// SPDX-License-Identifier: MIT
/*
 * Processor time and bytes of a training step over hosts, which are threads of this process with a core each,
 * beside those of one process. The model has two replicas of half a batch, and Adagrad.
 *
 *   build/tests/bench/hosts WORKLOAD SCALE STEPS [EXCHANGE]   a line for one process, and for each way to
 *                                                             place tables, or the one that is named
 *
 * WORKLOAD is one of `embeng bench`, with its rows and samples multiplied by SCALE. Each thread feeds the
 * replicas of its host. They meet before the first step that is measured and behind the last one; nothing
 * else is shared.
 */
#include <pthread.h>
#include <string.h>

#include "../../runtime/cli/bench/workload.h"
#include "../unit/support/counted_transport.h"
#include "bench.h"

enum { REPLICAS = 2, HOSTS_MOST = 2, BATCHES = 4, WARM_UP = 4 };

static struct bench_workload workload;
static struct embeng_model *model;
static int steps;
static int64_t *ids[BATCHES]; /* [tables][ids of a table] */
static int64_t *lengths;
static float *gradients;
static pthread_barrier_t meeting;

struct bench_host {
	const char *device;
	struct embeng_transport transport;
	struct counted counted;
	uint32_t hosts;
	double cpu_ms;
	uint64_t sent;
};

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void make_tables(void)
{
	model = embeng_model_new();
	for (int t = 0; t < workload.tables; t++) {
		check(embeng_model_add_table(
			model,
			&EMBENG_INIT(embeng_table_config, .vocabulary_size = workload.rows[t],
				     .dim = workload.dim, .combiner = EMBENG_SUM,
				     .optimizer = embeng_adagrad(0.01f))));
		check(embeng_model_add_feature(model,
					       &EMBENG_INIT(embeng_feature_config, .table = t)));
	}
	check(embeng_model_set_engine(model,
				      &EMBENG_INIT(embeng_engine_config, .replicas = REPLICAS)));
}

static void make_batches(void)
{
	const size_t count = bench_table_ids(&workload), bags = bench_bags(&workload);

	lengths = calloc(bags, sizeof(*lengths));
	gradients = calloc(bench_elements(&workload), sizeof(*gradients));
	check(lengths && gradients ? 0 : -1);
	bench_draw_floats(1, 1, gradients, bench_elements(&workload));
	for (size_t i = 0; i < bags; i++)
		lengths[i] = (int64_t)(count / bags);
	for (int b = 0; b < BATCHES; b++) {
		ids[b] = calloc((size_t)workload.tables * count, sizeof(**ids));
		check(ids[b] ? 0 : -1);
		for (int t = 0; t < workload.tables; t++)
			bench_draw(&workload, t, b, 1, ids[b] + (size_t)t * count, count);
	}
}

static void enqueue_replica(struct embeng *e, struct embeng_batch *batch, int step,
			    uint32_t replica)
{
	const size_t count = bench_table_ids(&workload), bags = bench_bags(&workload) / REPLICAS;
	const size_t half = count / REPLICAS;

	embeng_batch_reset(batch, EMBENG_TRAIN);
	for (int t = 0; t < workload.tables; t++)
		check(embeng_batch_ragged(batch, t, EMBENG_I64,
					  ids[step % BATCHES] + (size_t)t * count + replica * half,
					  half, lengths, bags, NULL, 0));
	check(embeng_enqueue(e, batch, -1));
}

static void give_gradients(struct embeng *e, uint32_t replica)
{
	const float *features[BENCH_TABLES];

	for (int t = 0; t < workload.tables; t++)
		features[t] = gradients;
	check(embeng_apply_gradients(e,
				     &EMBENG_INIT(embeng_gradients, .replica = replica,
						  .count = (size_t)workload.tables,
						  .features = features),
				     -1));
}

static void train(struct embeng *e, struct bench_host *h)
{
	struct embeng_device_info info = EMBENG_INIT(embeng_device_info);
	struct embeng_activations activations = EMBENG_INIT(embeng_activations);
	struct embeng_batch *batches[REPLICAS];

	check(embeng_info(e, &info));
	for (uint32_t r = 0; r < info.replica_count; r++)
		batches[r] = embeng_batch_new(e, EMBENG_TRAIN, info.first_replica + r);
	for (int step = 0; step < WARM_UP + steps; step++) {
		if (step == WARM_UP) {
			check(embeng_flush(e, -1));
			pthread_barrier_wait(&meeting);
			h->cpu_ms = cpu_ms();
			h->sent = h->counted.sent;
		}
		for (uint32_t r = 0; r < info.replica_count; r++)
			enqueue_replica(e, batches[r], step, info.first_replica + r);
		for (uint32_t r = 0; r < info.replica_count; r++)
			check(embeng_dequeue(e, info.first_replica + r, -1, &activations));
		for (uint32_t r = 0; r < info.replica_count; r++)
			give_gradients(e, info.first_replica + r);
	}
	check(embeng_flush(e, -1));
	pthread_barrier_wait(&meeting);
	h->cpu_ms = (cpu_ms() - h->cpu_ms) / steps;
	h->sent = (h->counted.sent - h->sent) / (uint64_t)steps;
	for (uint32_t r = 0; r < info.replica_count; r++)
		embeng_batch_free(batches[r]);
}

static void *run_host(void *arg)
{
	struct bench_host *h = arg;
	struct embeng_group *group = NULL;
	struct embeng *e;

	if (h->hosts) {
		check(embeng_group_open(&h->transport, NULL, &group, NULL));
		check(embeng_open_group(h->device, model, group, &e, NULL));
	} else {
		check(embeng_open(h->device, model, &e, NULL));
	}
	train(e, h);
	embeng_close(e);
	embeng_group_close(group);
	return NULL;
}

/* @hosts: 0: no group. Return: milliseconds of processor time, of all hosts together. */
static double measure(const char *what, const char *device, uint32_t hosts, double baseline)
{
	struct embeng_transport transports[HOSTS_MOST];
	struct bench_host all[HOSTS_MOST] = {0};
	const uint32_t threads = hosts ? hosts : 1;
	pthread_t ids_of[HOSTS_MOST];
	uint64_t most = 0;

	if (hosts)
		check(embeng_group_threads(hosts, transports));
	pthread_barrier_init(&meeting, NULL, threads);
	for (uint32_t i = 0; i < threads; i++) {
		all[i].device = device;
		all[i].hosts = hosts;
		if (hosts) {
			all[i].transport = transports[i];
			count_transport(&all[i].transport, &all[i].counted);
		}
		if (pthread_create(&ids_of[i], NULL, run_host, &all[i]))
			exit(1);
	}
	for (uint32_t i = 0; i < threads; i++) {
		pthread_join(ids_of[i], NULL);
		most = all[i].sent > most ? all[i].sent : most;
	}
	pthread_barrier_destroy(&meeting);
	printf("%-4s %-28s %8.2f ms of a processor a step, %5.2f times, %8.2f MB from a host\n",
	       workload.name, what, all[0].cpu_ms, baseline ? all[0].cpu_ms / baseline : 1.0,
	       (double)most / 1e6);
	fflush(stdout);
	return all[0].cpu_ms;
}

int main(int argc, char **argv)
{
	static const char *const exchanges[] = {"table", "columns", "rows", "rows+grads"};
	double baseline;
	int index;

	if (argc < 4 || argc > 5 || (index = bench_workload_find(argv[1])) < 0 ||
	    atof(argv[2]) <= 0 || (steps = atoi(argv[3])) < 1) {
		fprintf(stderr, "usage: hosts WORKLOAD SCALE STEPS [EXCHANGE]\n");
		return 2;
	}
	workload = bench_workload_scaled(&bench_workloads[index], atof(argv[2]));
	make_tables();
	make_batches();
	baseline = measure("one process", "soft:cores=1", 0, 0);
	measure("a group of one host", "soft:cores=1", 1, baseline);
	for (size_t i = 0; i < sizeof(exchanges) / sizeof(*exchanges); i++) {
		char device[64], what[64];

		if (argc > 4 && strcmp(argv[4], exchanges[i]) != 0)
			continue;
		snprintf(device, sizeof(device), "soft:cores=1,exchange=%s", exchanges[i]);
		snprintf(what, sizeof(what), "2 hosts, exchange=%s", exchanges[i]);
		measure(what, device, 2, baseline);
	}
	embeng_model_free(model);
	return 0;
}
