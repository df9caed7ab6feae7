// SPDX-License-Identifier: MIT
/*
 * Replicas that train on threads of their own reach the same values as replicas that train in
 * turn.
 */
#include <pthread.h>

#include "session_help.h"

#define REPLICAS 3
#define STEPS 20

struct worker {
	struct embeng *e;
	uint32_t replica;
	int failed;
};

static void *train(void *arg)
{
	struct worker *w = arg;

	for (uint64_t step = 1; step <= STEPS; step++) {
		struct embeng_activations a = {.size = sizeof(a)};
		float ones[] = {1, 1, 1, 1, 1, 1};
		const float *features[] = {ones};
		struct embeng_gradients g = {
			.size = sizeof(g), .replica = w->replica, .count = 1, .features = features};

		w->failed |= enqueue_bags(w->e, EMBENG_TRAIN, w->replica, -1);
		w->failed |= embeng_dequeue(w->e, w->replica, -1, &a);
		w->failed |= a.step != step;
		w->failed |= a.features[0].data[4] != 30.0f - (float)(step - 1) * REPLICAS;
		w->failed |= embeng_apply_gradients(w->e, &g, -1);
	}
	return NULL;
}

START_TEST(replicas_train)
{
	const float lost = STEPS * REPLICAS;
	struct embeng *e = open_small(&(struct shape){
		.optimizer = embeng_sgd(1), .replicas = REPLICAS, .combiner = EMBENG_SUM});
	struct worker workers[REPLICAS];
	pthread_t threads[REPLICAS];
	float rows[8];

	for (uint32_t r = 0; r < REPLICAS; r++) {
		workers[r] = (struct worker){.e = e, .replica = r};
		ck_assert_int_eq(pthread_create(&threads[r], NULL, train, &workers[r]), 0);
	}
	for (uint32_t r = 0; r < REPLICAS; r++) {
		pthread_join(threads[r], NULL);
		ck_assert_int_eq(workers[r].failed, 0);
	}
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, NULL, 4, rows), 0);
	expect_floats(
		rows,
		(float[]){0, 1, 10 - lost, 11 - lost, 20 - lost, 21 - lost, 30 - lost, 31 - lost},
		8);
	embeng_close(e);
}
END_TEST

RUN_SUITE("replicas", replicas_train)
