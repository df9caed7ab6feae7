// SPDX-License-Identifier: MIT
/*
 * Another thread flips ids, offsets and the library's own descriptors while the
 * engine reads them: lookups and partitions succeed or fail, nothing else happens.
 */
#include <pthread.h>
#include <stdlib.h>

#include "runtime/src/session/session.h"
#include "session_help.h"
#include "embeng/preprocess.h"

#define IDS 256
#define ROUNDS 300

struct target {
	uint64_t *words;
	size_t count;
	uint64_t seed;
};

static int stop;

static void *flip(void *arg)
{
	struct target *t = arg;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		uint64_t old;

		t->seed = t->seed * 6364136223846793005u + 1442695040888963407u;
		old = __atomic_load_n(&t->words[(t->seed >> 40) % t->count], __ATOMIC_RELAXED);
		__atomic_store_n(&t->words[(t->seed >> 40) % t->count],
				 t->seed & 1 ? t->seed : old & 3, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void lookups(struct embeng *e, const int64_t *ids, const int64_t *splits)
{
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_INFERENCE, 0);

	for (int i = 0; i < ROUNDS; i++) {
		struct embeng_activations a = {.size = sizeof(a)};

		embeng_batch_reset(b, EMBENG_INFERENCE);
		if (embeng_batch_ragged_splits(b, 0, EMBENG_I64, ids, IDS, splits, IDS + 1, NULL,
					       0))
			continue;
		if (embeng_enqueue(e, b, -1))
			continue;
		ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
		ck_assert_int_eq(embeng_release(e, &a), 0);
	}
	embeng_batch_free(b);
}

static void partitions(struct embeng *e, const int64_t *ids, const int64_t *splits)
{
	struct embeng_partition_options o = {.size = sizeof(o),
					     .flavour = EMBENG_PARTITION_JAX,
					     .sparse_cores = 4,
					     .cores_per_device = 4,
					     .max_ids_per_partition = 40,
					     .minibatching = 1,
					     .allow_id_dropping = 1};
	static int32_t pointers[64 * 32], tokens[IDS * 16], samples[IDS * 16];
	static float gains[IDS * 16];
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_INFERENCE, 0);

	for (int i = 0; i < ROUNDS; i++) {
		struct embeng_partitioned out = {.size = sizeof(out),
						 .row_pointers = pointers,
						 .row_pointer_capacity = 64 * 32,
						 .token_ids = tokens,
						 .sample_ids = samples,
						 .gains = gains,
						 .capacity = IDS * 16};

		o.minibatching = i & 1;
		embeng_batch_reset(b, EMBENG_INFERENCE);
		if (!embeng_batch_ragged_splits(b, 0, EMBENG_I64, ids, IDS, splits, IDS + 1, NULL,
						0))
			embeng_partition(e, b, &o, &out);
	}
	embeng_batch_free(b);
}

static void attack(struct embeng *e, uint64_t *words, size_t count, const int64_t *ids,
		   const int64_t *splits,
		   void (*call)(struct embeng *e, const int64_t *ids, const int64_t *splits))
{
	struct target target = {.words = words, .count = count, .seed = 12345};
	pthread_t thread;

	__atomic_store_n(&stop, 0, __ATOMIC_RELAXED);
	ck_assert_int_eq(pthread_create(&thread, NULL, flip, &target), 0);
	call(e, ids, splits);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}

START_TEST(flipped_memory)
{
	const float want[] = {20, 21, 10, 11};
	struct embeng *e = open_small(&(struct shape){.combiner = EMBENG_SUM});
	int64_t *ids = embeng_buffer_alloc(e, IDS * 8);
	int64_t *splits = embeng_buffer_alloc(e, (IDS + 1) * 8);
	struct embeng_activations a = {.size = sizeof(a)};
	struct slot *slot = &e->replicas[0].serving[0];
	struct embeng_batch *b;

	for (int i = 0; i <= IDS; i++)
		splits[i] = i;
	attack(e, (uint64_t *)ids, IDS, ids, splits, lookups);
	memset(ids, 0, IDS * 8);
	attack(e, (uint64_t *)splits, IDS + 1, ids, splits, lookups);
	for (int i = 0; i <= IDS; i++)
		splits[i] = i;
	lookups(e, ids, splits);
	ck_assert_ptr_nonnull(slot->input.data);
	attack(e, (uint64_t *)slot->input.data, 20, ids, splits, lookups);
	for (int i = 0; i < IDS; i++)
		ids[i] = i ? 1 : 2;
	b = embeng_batch_new(e, EMBENG_INFERENCE, 0);
	ck_assert_int_eq(
		embeng_batch_ragged_splits(b, 0, EMBENG_I64, ids, IDS, splits, IDS + 1, NULL, 0),
		0);
	ck_assert_int_eq(embeng_enqueue(e, b, -1), 0);
	embeng_batch_free(b);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
	expect_floats(a.features[0].data, want, 4);
	embeng_close(e);
}
END_TEST

/* A batch of partitioned CSR, whose descriptor and arrays are the library's copies. */
static void stacked(struct embeng *e, const int64_t *ids, const int64_t *splits)
{
	const struct embeng_stacking_options o = {
		.size = sizeof(o), .sparse_cores = 4, .cores_per_device = 2};
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_INFERENCE, 0);
	struct embeng_preprocessed *p = NULL;
	struct embeng_stacking *s = NULL;

	ck_assert_int_eq(embeng_stacking_make(embeng_get_model(e), &o, &s), 0);
	ck_assert_int_eq(
		embeng_batch_ragged_splits(b, 0, EMBENG_I64, ids, IDS, splits, IDS + 1, NULL, 0),
		0);
	ck_assert_int_eq(embeng_preprocess(e, b, s, NULL, &p), 0);
	ck_assert_int_eq(embeng_batch_partitioned(b, s, p), 0);
	for (int i = 0; i < 4 * ROUNDS; i++) {
		struct embeng_activations a = {.size = sizeof(a)};

		if (embeng_enqueue(e, b, -1))
			continue;
		ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
		ck_assert_int_eq(embeng_release(e, &a), 0);
	}
	embeng_preprocessed_free(p);
	embeng_stacking_free(s);
	embeng_batch_free(b);
}

START_TEST(flipped_stacks)
{
	struct embeng *e = open_small(&(struct shape){.combiner = EMBENG_SUM, .samples = IDS});
	int64_t *ids = embeng_buffer_alloc(e, IDS * 8);
	int64_t *splits = embeng_buffer_alloc(e, (IDS + 1) * 8);
	struct slot *slot = &e->replicas[0].serving[0];

	for (int i = 0; i <= IDS; i++)
		splits[i] = i;
	for (int i = 0; i < IDS; i++)
		ids[i] = i % 4;
	stacked(e, ids, splits);
	ck_assert_ptr_nonnull(slot->input.data);
	/* All of it, then the descriptor alone, then what it names first. */
	attack(e, (uint64_t *)slot->input.data, 600, ids, splits, stacked);
	attack(e, (uint64_t *)slot->input.data, 46, ids, splits, stacked);
	attack(e, (uint64_t *)slot->input.data + 46, 16, ids, splits, stacked);
	stacked(e, ids, splits);
	embeng_close(e);
}
END_TEST

START_TEST(flipped_partitions)
{
	struct embeng *e = open_small(&(struct shape){.combiner = EMBENG_MEAN});
	int64_t *ids = embeng_buffer_alloc(e, IDS * 8);
	int64_t *splits = embeng_buffer_alloc(e, (IDS + 1) * 8);

	for (int i = 0; i <= IDS; i++)
		splits[i] = i;
	attack(e, (uint64_t *)ids, IDS, ids, splits, partitions);
	memset(ids, 0, IDS * 8);
	attack(e, (uint64_t *)splits, IDS + 1, ids, splits, partitions);
	for (int i = 0; i <= IDS; i++)
		splits[i] = i;
	partitions(e, ids, splits);
	ck_assert_ptr_nonnull(e->partition.data);
	attack(e, (uint64_t *)e->partition.data, 40, ids, splits, partitions);
	partitions(e, ids, splits);
	embeng_close(e);
}
END_TEST

RUN_SUITE("hostile", flipped_memory, flipped_partitions, flipped_stacks)
