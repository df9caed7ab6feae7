// SPDX-License-Identifier: MIT
/*
 * One program for one process and for many hosts: it trains the replicas that it is given, and EMBENG_DEVICE
 * says on how many hosts the tables are. The numbers are the same, to the bit.
 *
 *	train_hosts
 *	EMBENG_DEVICE=mpi:soft mpirun -n 4 train_hosts
 *
 * With a folder that all hosts see it goes on from the checkpoint there, whatever number of hosts wrote it, and
 * leaves another one.
 *
 * usage: train_hosts [STEPS [FOLDER]]
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "embeng.h"
#include "embeng/checkpoint.h"

enum { USERS = 5000, ITEMS = 300, USER_DIM = 64, ITEM_DIM = 8 };
enum { REPLICAS = 4, SAMPLES = 32, BAG = 4, FEATURES = 2 };

/* One replica's input and gradients. */
struct replica {
	struct embeng_batch *batch;
	int64_t users[SAMPLES * BAG], items[SAMPLES], lengths[SAMPLES];
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

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static struct embeng *open_model(void)
{
	struct embeng_model *model = embeng_model_new();
	struct embeng *e;
	int users, items;

	users = embeng_model_add_table(
		model, &EMBENG_INIT(embeng_table_config, .name = "users", .vocabulary_size = USERS,
				    .dim = USER_DIM, .optimizer = embeng_adagrad(0.1f)));
	items = embeng_model_add_table(
		model, &EMBENG_INIT(embeng_table_config, .name = "items", .vocabulary_size = ITEMS,
				    .dim = ITEM_DIM, .optimizer = embeng_adam(0.01f)));
	check(embeng_model_add_feature(
		model, &EMBENG_INIT(embeng_feature_config, .name = "user", .table = users)));
	check(embeng_model_add_feature(
		model, &EMBENG_INIT(embeng_feature_config, .name = "item", .table = items)));
	check(embeng_model_set_engine(model,
				      &EMBENG_INIT(embeng_engine_config, .replicas = REPLICAS)));
	check(embeng_open(NULL, model, &e, NULL));
	embeng_model_free(model);
	return e;
}

/* The data depend on the replica and not on its host. */
static void fill_batch(struct replica *r, uint64_t step, uint32_t number)
{
	const int64_t shape[] = {SAMPLES};
	uint64_t state = step * REPLICAS + number + 1;
	size_t count = 0;

	for (int s = 0; s < SAMPLES; s++) {
		r->lengths[s] = (int64_t)(mix(++state * 77) % (BAG + 1));
		for (int64_t i = 0; i < r->lengths[s]; i++)
			r->users[count++] = (int64_t)(mix(++state * 77) % USERS);
		r->items[s] = (int64_t)(mix(++state * 77) % ITEMS);
	}
	check(embeng_batch_ragged(r->batch, 0, EMBENG_I64, r->users, count, r->lengths, SAMPLES,
				  NULL, 0));
	check(embeng_batch_dense(r->batch, 1, EMBENG_I64, r->items, SAMPLES, shape, 1));
}

/* Stands for the dense model: pulls every activation towards a number of its column. */
static void give_gradients(struct embeng *e, uint32_t number)
{
	static const int dims[FEATURES] = {USER_DIM, ITEM_DIM};
	struct embeng_activations act = EMBENG_INIT(embeng_activations);
	const float *gradients[FEATURES];

	check(embeng_dequeue(e, number, -1, &act));
	for (int f = 0; f < FEATURES; f++) {
		float *to = embeng_gradient_buffer(e, number, f);

		for (int i = 0; i < SAMPLES * dims[f]; i++)
			to[i] = act.features[f].data[i] - (float)(i % dims[f]) / (float)dims[f];
		gradients[f] = to;
	}
	check(embeng_apply_gradients(e,
				     &EMBENG_INIT(embeng_gradients, .replica = number,
						  .count = FEATURES, .features = gradients),
				     -1));
}

/* All hosts look all rows up, so that each of them knows the whole model's digest. */
static uint64_t digest_rows(struct embeng *e)
{
	static const int64_t rows[FEATURES] = {USERS, ITEMS}, dims[FEATURES] = {USER_DIM, ITEM_DIM};
	struct embeng_batch *batch = embeng_batch_new(e, EMBENG_INFERENCE, 0);
	struct embeng_output out[FEATURES];
	int64_t *ids = malloc(USERS * sizeof(*ids));
	uint64_t hash = 0;

	for (int64_t i = 0; ids && i < USERS; i++)
		ids[i] = i;
	for (int f = 0; f < FEATURES; f++) {
		const size_t floats = (size_t)(rows[f] * dims[f]);

		out[f] = (struct embeng_output){.data = malloc(floats * sizeof(float)),
						.elements = floats};
		if (!ids || !out[f].data)
			exit(1);
		check(embeng_batch_dense(batch, f, EMBENG_I64, ids, (size_t)rows[f], &rows[f], 1));
	}
	check(embeng_lookup(e, batch, out, FEATURES, -1));
	for (int f = 0; f < FEATURES; f++) {
		for (size_t i = 0; i < out[f].elements * sizeof(float); i++)
			hash = (hash ^ ((const unsigned char *)out[f].data)[i]) * 0x100000001b3u;
		free(out[f].data);
	}
	embeng_batch_free(batch);
	free(ids);
	return mix(hash);
}

/* Returns how many steps the checkpoint has, or 0 where there is none yet. */
static uint64_t go_on_from(struct embeng *e, const char *folder)
{
	uint64_t step = 0;
	int rc = folder ? embeng_restore(e, folder, NULL) : -ENOENT;

	if (rc == -ENOENT)
		return 0;
	check(rc);
	check(embeng_step(e, &step));
	return step;
}

int main(int argc, char **argv)
{
	const uint64_t steps = argc > 1 ? strtoull(argv[1], NULL, 10) : 50;
	const char *folder = argc > 2 ? argv[2] : NULL;
	struct embeng_device_info info = EMBENG_INIT(embeng_device_info);
	static struct replica replicas[REPLICAS];
	struct embeng *e = open_model();
	uint64_t digest, before = go_on_from(e, folder);

	check(embeng_info(e, &info));
	for (uint32_t i = 0; i < info.replica_count; i++)
		replicas[i].batch = embeng_batch_new(e, EMBENG_TRAIN, info.first_replica + i);
	for (uint64_t step = before + 1; step <= before + steps; step++) {
		for (uint32_t i = 0; i < info.replica_count; i++) {
			fill_batch(&replicas[i], step, info.first_replica + i);
			check(embeng_enqueue(e, replicas[i].batch, -1));
		}
		for (uint32_t i = 0; i < info.replica_count; i++)
			give_gradients(e, info.first_replica + i);
	}
	if (folder)
		check(embeng_save(e, folder, NULL));
	digest = digest_rows(e);
	if (!info.host)
		printf("rows %016llx after %llu steps on %u host%s\n", (unsigned long long)digest,
		       (unsigned long long)(before + steps), info.hosts,
		       info.hosts == 1 ? "" : "s");
	for (uint32_t i = 0; i < info.replica_count; i++)
		embeng_batch_free(replicas[i].batch);
	embeng_close(e);
	return 0;
}
