// SPDX-License-Identifier: MIT
/* Memory is exported while other replicas' grows, and imported by several threads at once. */
#include <pthread.h>
#include <unistd.h>

#include "../unit/runtime/accel/accel_help.h"
#include "suite.h"

#define REPLICAS 3u
#define LARGEST 4096
#define ROUNDS 5
#define IMPORTS 200

static pthread_barrier_t begin;

struct worker {
	struct embeng *e;
	uint32_t replica;
	int failed, dmabuf;
	pthread_t thread;
};

/* Refused, so that how many samples there are stays open. */
static int look_up(struct embeng *e, uint32_t replica, int64_t samples)
{
	static const int64_t ids[LARGEST] = {-1};
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_INFERENCE, replica);
	int ret = embeng_batch_dense(b, 0, EMBENG_I64, ids, (size_t)samples, &samples, 1);

	ret = ret ? ret : embeng_enqueue(e, b, -1);
	embeng_batch_free(b);
	return ret;
}

static void *grow(void *arg)
{
	struct worker *w = arg;

	pthread_barrier_wait(&begin);
	for (int64_t samples = 1; samples <= LARGEST; samples *= 2)
		w->failed |= look_up(w->e, w->replica, samples) != -ERANGE;
	return NULL;
}

START_TEST(test_exports_beside_growing_memory)
{
	struct worker workers[REPLICAS];
	struct embeng *e;
	char *buffer;
	size_t offset;

	fake_install();
	e = open_on(FAKE_NODE, REPLICAS);
	buffer = embeng_buffer_alloc(e, 4096);
	pthread_barrier_init(&begin, NULL, REPLICAS + 1);
	for (uint32_t r = 0; r < REPLICAS; r++) {
		workers[r] = (struct worker){.e = e, .replica = r};
		ck_assert_int_eq(pthread_create(&workers[r].thread, NULL, grow, &workers[r]), 0);
	}
	pthread_barrier_wait(&begin);
	for (int i = 0; i < 1000; i++) {
		int fd = embeng_memory_export(e, buffer, &offset);

		ck_assert_int_ge(fd, 0);
		close(fd);
		/* In nobody's memory: all of it is looked through. */
		ck_assert_int_eq(embeng_memory_export(e, &offset, &offset), -EINVAL);
	}
	for (uint32_t r = 0; r < REPLICAS; r++) {
		pthread_join(workers[r].thread, NULL);
		ck_assert_int_eq(workers[r].failed, 0);
	}
	pthread_barrier_destroy(&begin);
	embeng_close(e);
	nothing_left();
}
END_TEST

static void *import(void *arg)
{
	struct worker *w = arg;

	for (int i = 0; i < IMPORTS; i++) {
		void *imported = embeng_buffer_import(w->e, w->dmabuf, NULL);

		w->failed |= !imported || embeng_buffer_free(w->e, imported);
	}
	return NULL;
}

START_TEST(test_imports_of_one_buffer)
{
	struct worker workers[REPLICAS];
	struct embeng *e;
	int fd;

	fake_install();
	e = open_on(FAKE_NODE, 1);
	fd = fake_foreign_dmabuf();
	for (uint32_t i = 0; i < REPLICAS; i++) {
		workers[i] = (struct worker){.e = e, .dmabuf = fd};
		ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, import, &workers[i]), 0);
	}
	for (uint32_t i = 0; i < REPLICAS; i++) {
		pthread_join(workers[i].thread, NULL);
		ck_assert_int_eq(workers[i].failed, 0);
	}
	close(fd);
	embeng_close(e);
	nothing_left();
}
END_TEST

static void add(TCase *tc)
{
	/* Not every run meets the moment. */
	tcase_add_loop_test(tc, test_exports_beside_growing_memory, 0, ROUNDS);
	tcase_add_test(tc, test_imports_of_one_buffer);
}

int main(void)
{
	return suite_main("accel_threads", add);
}
