// SPDX-License-Identifier: MIT
/*
 * One model, whose tables lie on several hosts: each table is whole on one host, which gets the ids
 * and weights of all samples, gives pooled vectors back, and gets their gradients. The numbers are
 * those of one process, to the bit: replicas are part of the model, and hosts only house them.
 *
 * usage: hosts [TRANSPORT [OPTIMIZER [COMBINER [weights|reversed]]]]
 *
 * TRANSPORT is mpi, under "mpirun -n 4", or threads:N for N threads of this process. Without one, 1 to
 * 4 threads train, and must end with the same numbers. "reversed" swaps the replicas, whose sums
 * are then added in another order, so that the last bits differ.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embeng.h"
#include "embeng/group.h"

enum { TABLES = 6, REPLICAS = 4, SAMPLES = 16, BAG = 5, STEPS = 12, DIM_MOST = 24, HOSTS_MOST = 4 };

static const int64_t rows_of[TABLES] = {40, 1000, 7, 300, 64, 2000};
static const int64_t dim_of[TABLES] = {8, 4, 24, 16, 1, 12};

struct settings {
	const char *optimizer, *combiner;
	int weights, reversed;
};

/* The input of one replica for one table. It has room for the largest bags, to keep this short. */
struct bags {
	int64_t lengths[SAMPLES], ids[SAMPLES * BAG], count;
	float weights[SAMPLES * BAG];
};

/* Activations of one replica for one table, or their gradients. */
struct pooled {
	float x[SAMPLES * DIM_MOST];
};

struct host {
	struct settings set;
	struct embeng_transport transport;
	struct embeng_group *group;
	struct embeng *engine;
	uint32_t rank, hosts;
	struct embeng_batch *batches[REPLICAS];
	struct bags asked[REPLICAS][TABLES];
	struct pooled answer[REPLICAS][TABLES], gradients[REPLICAS][TABLES];
	uint64_t seen,
		state; /* digests of this host's activations and tables, together those of all */
	int ret;
};

static void check(int rc)
{
	struct embeng_error err = EMBENG_INIT(embeng_error);

	if (rc >= 0)
		return;
	embeng_last_error(&err);
	fprintf(stderr, "%s\n", err.text);
	exit(1);
}

static uint32_t host_of_table(const struct host *h, int table)
{
	return (uint32_t)table % h->hosts;
}

static uint32_t host_of_replica(const struct host *h, uint32_t replica)
{
	return replica * h->hosts / REPLICAS;
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static uint64_t digest(const void *data, size_t bytes, uint64_t salt)
{
	uint64_t hash = mix(salt + 1);

	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ ((const unsigned char *)data)[i]) * 0x100000001b3u;
	return mix(hash);
}

static enum embeng_combiner_name combiner_named(const char *name)
{
	return !strcmp(name, "sum")	? EMBENG_SUM
	       : !strcmp(name, "sqrtn") ? EMBENG_SQRTN
					: EMBENG_MEAN;
}

static struct embeng_optimizer optimizer_named(const char *name)
{
	return !strcmp(name, "adam")   ? embeng_adam(0.01f)
	       : !strcmp(name, "ftrl") ? embeng_ftrl(0.05f)
	       : !strcmp(name, "sgd")  ? embeng_sgd(0.1f)
				       : embeng_adagrad(0.1f);
}

/* The tables of this host, each with the seed that it has on any host. */
static void open_engine(struct host *h)
{
	struct embeng_model *model = embeng_model_new();
	char name[16];

	for (int t = 0; t < TABLES; t++) {
		const struct embeng_initializer start = {.kind = EMBENG_INIT_UNIFORM,
							 .a = -0.5f,
							 .b = 0.5f,
							 .seed = 100 + (uint64_t)t};
		int table;

		if (host_of_table(h, t) != h->rank)
			continue;
		snprintf(name, sizeof(name), "t%d", t);
		table = embeng_model_add_table(
			model, &EMBENG_INIT(embeng_table_config, .name = name,
					    .vocabulary_size = rows_of[t], .dim = dim_of[t],
					    .combiner = combiner_named(h->set.combiner),
					    .optimizer = optimizer_named(h->set.optimizer),
					    .initializer = start));
		check(table);
		check(embeng_model_add_feature(
			model, &EMBENG_INIT(embeng_feature_config, .name = name, .table = table)));
	}
	check(embeng_model_set_engine(model,
				      &EMBENG_INIT(embeng_engine_config, .replicas = REPLICAS)));
	check(embeng_open(NULL, model, &h->engine, NULL));
	embeng_model_free(model);
	for (uint32_t r = 0; r < REPLICAS; r++)
		h->batches[r] = embeng_batch_new(h->engine, EMBENG_TRAIN,
						 h->set.reversed ? REPLICAS - 1 - r : r);
}

/* The data depend on step, replica and table, and on no host. Low ids are frequent. */
static void make_bags(const struct host *h, uint64_t step, uint32_t replica, int table,
		      struct bags *b)
{
	uint64_t state = step * 1000 + replica * 100 + (uint64_t)table;

	memset(b, 0, sizeof(*b));
	for (int s = 0; s < SAMPLES; s++) {
		b->lengths[s] = (int64_t)(mix(++state) % (BAG + 1));
		for (int64_t i = 0; i < b->lengths[s]; i++) {
			const uint64_t most = mix(++state) % (uint64_t)rows_of[table] + 1;

			b->ids[b->count] = (int64_t)(mix(++state) % most);
			b->weights[b->count++] = h->set.weights ? (float)(mix(++state) % 1000) / 500
								: 1.0f;
		}
	}
}

/* The items of an exchange: one for each replica and table. */
struct parcel {
	void *items;  /* [REPLICAS][TABLES] */
	size_t bytes; /* size of an item */
};

static void *item_of(const struct parcel *p, uint32_t replica, int table)
{
	return (char *)p->items + ((size_t)replica * TABLES + (size_t)table) * p->bytes;
}

/* To owners of tables, or back to homes of replicas; the order is that of replicas, then tables. */
static int exchange_items(struct host *h, const char *phase, uint64_t step, int to_owners,
			  const struct parcel *p, int status)
{
	const size_t most = (size_t)REPLICAS * TABLES * p->bytes;
	struct embeng_bytes send[HOSTS_MOST], came[HOSTS_MOST];
	struct embeng_error why = EMBENG_INIT(embeng_error);
	size_t at[HOSTS_MOST] = {0};
	char *room = malloc(most * h->hosts);
	int ret;

	if (!room)
		exit(1);
	for (uint32_t r = 0; r < REPLICAS; r++) {
		for (int t = 0; t < TABLES; t++) {
			const uint32_t home = host_of_replica(h, r), owner = host_of_table(h, t);
			const uint32_t to = to_owners ? owner : home;

			if ((to_owners ? home : owner) != h->rank)
				continue;
			memcpy(room + to * most + at[to], item_of(p, r, t), p->bytes);
			at[to] += p->bytes;
		}
	}
	for (uint32_t to = 0; to < h->hosts; to++)
		send[to] = (struct embeng_bytes){room + to * most, at[to]};
	embeng_last_error(&why);
	ret = embeng_group_exchange(
		h->group,
		&EMBENG_INIT(embeng_exchange, .phase = phase, .step = step, .replicas = REPLICAS,
			     .send = send, .status = status, .text = status ? why.text : NULL),
		came, NULL);
	free(room);
	memset(at, 0, sizeof(at));
	for (uint32_t r = 0; r < REPLICAS && !ret; r++) {
		for (int t = 0; t < TABLES; t++) {
			const uint32_t home = host_of_replica(h, r), owner = host_of_table(h, t);
			const uint32_t from = to_owners ? home : owner;

			if ((to_owners ? owner : home) != h->rank)
				continue;
			memcpy(item_of(p, r, t), (const char *)came[from].data + at[from],
			       p->bytes);
			at[from] += p->bytes;
		}
	}
	return ret;
}

/* The owner's part: a failure here is told to all hosts by the next exchange. */
static int look_up(struct host *h)
{
	int ret = 0;

	for (uint32_t r = 0; r < REPLICAS && !ret; r++) {
		int feature = 0;

		for (int t = 0; t < TABLES && !ret; t++) {
			const struct bags *b = &h->asked[r][t];

			if (host_of_table(h, t) == h->rank)
				ret = embeng_batch_ragged(h->batches[r], feature++, EMBENG_I64,
							  b->ids, (size_t)b->count, b->lengths,
							  SAMPLES,
							  h->set.weights ? b->weights : NULL,
							  h->set.weights ? (size_t)b->count : 0);
		}
		ret = ret ? ret : embeng_enqueue(h->engine, h->batches[r], -1);
	}
	for (uint32_t r = 0; r < REPLICAS && !ret; r++) {
		struct embeng_activations out = EMBENG_INIT(embeng_activations);
		int feature = 0;

		ret = embeng_dequeue(h->engine, h->set.reversed ? REPLICAS - 1 - r : r, -1, &out);
		for (int t = 0; t < TABLES && !ret; t++) {
			if (host_of_table(h, t) == h->rank)
				memcpy(h->answer[r][t].x, out.features[feature++].data,
				       sizeof(float) * SAMPLES * (size_t)dim_of[t]);
		}
	}
	return ret;
}

static int update(struct host *h)
{
	int ret = 0;

	for (uint32_t r = 0; r < REPLICAS && !ret; r++) {
		const float *features[TABLES];
		size_t count = 0;

		for (int t = 0; t < TABLES; t++) {
			if (host_of_table(h, t) == h->rank)
				features[count++] = h->gradients[r][t].x;
		}
		ret = embeng_apply_gradients(
			h->engine,
			&EMBENG_INIT(embeng_gradients,
				     .replica = h->set.reversed ? REPLICAS - 1 - r : r,
				     .count = count, .features = features),
			-1);
	}
	return ret;
}

/* Stands for the dense model: pulls each activation towards a number of its own. */
static void make_gradients(struct host *h, uint64_t step)
{
	for (uint32_t r = 0; r < REPLICAS; r++) {
		for (int t = 0; t < TABLES && host_of_replica(h, r) == h->rank; t++) {
			const size_t count = SAMPLES * (size_t)dim_of[t];
			const float *x = h->answer[r][t].x;

			h->seen += digest(x, count * sizeof(*x),
					  step * 1000 + r * 100 + (uint64_t)t);
			for (size_t i = 0; i < count; i++)
				h->gradients[r][t].x[i] = 0.3f *
							  (x[i] -
							   (float)(mix(i + r + step) % 97) / 97);
		}
	}
}

static int train_step(struct host *h, uint64_t step)
{
	const struct parcel ids = {h->asked, sizeof(struct bags)};
	const struct parcel answer = {h->answer, sizeof(struct pooled)};
	const struct parcel gradients = {h->gradients, sizeof(struct pooled)};
	int ret;

	for (uint32_t r = 0; r < REPLICAS; r++) {
		for (int t = 0; t < TABLES && host_of_replica(h, r) == h->rank; t++)
			make_bags(h, step, r, t, &h->asked[r][t]);
	}
	ret = exchange_items(h, "ids", step, 1, &ids, 0);
	ret = ret ? ret : exchange_items(h, "activations", step, 0, &answer, look_up(h));
	if (ret)
		return ret;
	make_gradients(h, step);
	ret = exchange_items(h, "gradients", step, 1, &gradients, 0);
	return ret ? ret : update(h);
}

/* Digests of the tables and their slots, and of the activations, are added over all hosts. */
static int add_digests(struct host *h)
{
	struct embeng_bytes send[HOSTS_MOST], came[HOSTS_MOST];
	uint64_t own[2] = {0, h->seen}, theirs[2];
	int table = 0, ret;

	for (int t = 0; t < TABLES; t++) {
		float *rows = malloc((size_t)(rows_of[t] * dim_of[t]) * sizeof(*rows));
		int64_t *ids = malloc((size_t)rows_of[t] * sizeof(*ids));
		const char *const slots[] = {NULL,
					     !strcmp(h->set.optimizer, "adagrad") ? "accumulators"
					     : !strcmp(h->set.optimizer, "adam")  ? "velocities"
					     : !strcmp(h->set.optimizer, "ftrl")  ? "linears"
										  : NULL};

		for (int64_t i = 0; i < rows_of[t]; i++)
			ids[i] = i;
		for (int s = 0; s < 2 && host_of_table(h, t) == h->rank; s++) {
			check(embeng_rows_read(h->engine, table, slots[s], ids, (size_t)rows_of[t],
					       rows));
			own[0] += digest(rows, (size_t)(rows_of[t] * dim_of[t]) * sizeof(*rows),
					 (uint64_t)(t * 2 + s));
		}
		table += host_of_table(h, t) == h->rank;
		free(rows);
		free(ids);
	}
	for (uint32_t to = 0; to < h->hosts; to++)
		send[to] = (struct embeng_bytes){own, sizeof(own)};
	ret = embeng_group_exchange(h->group,
				    &EMBENG_INIT(embeng_exchange, .phase = "digests", .send = send),
				    came, NULL);
	h->state = h->seen = 0;
	for (uint32_t from = 0; from < h->hosts && !ret; from++) {
		memcpy(theirs, came[from].data, sizeof(theirs));
		h->state += theirs[0];
		h->seen += theirs[1];
	}
	return ret;
}

static void *run_host(void *arg)
{
	struct host *h = arg;

	h->rank = h->transport.rank;
	h->hosts = h->transport.ranks;
	check(embeng_group_open(&h->transport, NULL, &h->group, NULL));
	open_engine(h);
	for (uint64_t step = 1; step <= STEPS; step++)
		check(train_step(h, step));
	check(embeng_flush(h->engine, -1));
	check(add_digests(h));
	for (uint32_t r = 0; r < REPLICAS; r++)
		embeng_batch_free(h->batches[r]);
	embeng_close(h->engine);
	embeng_group_close(h->group);
	return NULL;
}

/* Trains on @count threads, or on this process alone as one host of MPI. Fills @result. */
static void train(const struct settings *set, const char *mpi, uint32_t count, struct host *result)
{
	struct embeng_transport transports[HOSTS_MOST];
	struct host *hosts = calloc(count, sizeof(*hosts));
	pthread_t threads[HOSTS_MOST];

	if (!hosts)
		exit(1);
	if (mpi)
		check(embeng_group_transport(mpi, transports, NULL));
	else
		check(embeng_group_threads(count, transports));
	if (transports[0].ranks > HOSTS_MOST) {
		fprintf(stderr, "%d replicas are at home on %d hosts at most\n", REPLICAS,
			HOSTS_MOST);
		exit(1);
	}
	for (uint32_t i = 0; i < count; i++) {
		hosts[i].set = *set;
		hosts[i].transport = transports[i];
		if (pthread_create(&threads[i], NULL, run_host, &hosts[i]))
			exit(1);
	}
	for (uint32_t i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	*result = hosts[0];
	free(hosts);
}

int main(int argc, char **argv)
{
	const struct settings set = {
		.optimizer = argc > 2 ? argv[2] : "adagrad",
		.combiner = argc > 3 ? argv[3] : "mean",
		.weights = argc > 4 && !strcmp(argv[4], "weights"),
		.reversed = argc > 4 && !strcmp(argv[4], "reversed"),
	};
	static struct host one, other;
	uint32_t threads = 1;
	int differ = 0;

	if (argc > 1) {
		const int own = sscanf(argv[1], "threads:%u", &threads) == 1;

		if (threads < 1 || threads > HOSTS_MOST)
			return 2;
		train(&set, own ? NULL : argv[1], threads, &one);
		if (!one.rank)
			printf("tables %016llx activations %016llx on %u hosts\n",
			       (unsigned long long)one.state, (unsigned long long)one.seen,
			       one.hosts);
		return 0;
	}
	train(&set, NULL, 1, &one);
	for (uint32_t count = 2; count <= HOSTS_MOST; count++) {
		train(&set, NULL, count, &other);
		differ += other.state != one.state || other.seen != one.seen;
	}
	printf("tables %016llx activations %016llx, %d of 3 numbers of hosts differ\n",
	       (unsigned long long)one.state, (unsigned long long)one.seen, differ);
	return differ != 0;
}
