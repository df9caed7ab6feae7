// SPDX-License-Identifier: MIT
/* A handle is refused in a copy of the process, however that was made, and goes on working in the parent. */
#define _GNU_SOURCE /* _Fork */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fork.h"
#include "session_help.h"
#include "suite.h"

static int child(struct embeng *e, struct embeng_batch *b)
{
	const int64_t ids[2] = {0, 1}, shape[1] = {2};
	struct embeng_activations a = {.size = sizeof(a)};
	float rows[8];
	int bad = 0;

	bad |= embeng_dequeue(e, 0, 0, &a) != -ENOTSUP;
	bad |= embeng_rows_read(e, 0, NULL, NULL, 4, rows) != -ENOTSUP;
	bad |= embeng_flush(e, 0) != -ENOTSUP;
	bad |= embeng_fd(e) != -ENOTSUP;
	bad |= embeng_buffer_alloc(e, 1) != NULL;
	bad |= embeng_buffer_free(e, rows) != 0;
	bad |= embeng_batch_new(e, EMBENG_TRAIN, 0) != NULL;
	bad |= embeng_batch_dense(b, 0, EMBENG_I64, ids, 2, shape, 1) != -ENOTSUP;
	embeng_batch_free(b);
	embeng_close(e);
	return bad;
}

/* Each way to a copy of this process; the handlers of pthread_atfork() run in the first alone. */
static pid_t make_child(int way)
{
	switch (way) {
	case 0:
		return fork();
	case 1:
		return _Fork();
	default:
		return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	}
}

static void expect_good_end(pid_t pid)
{
	int status;

	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

START_TEST(child_is_refused)
{
	struct embeng *e = open_small(&(struct shape){0});
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, 0);
	float rows[8];
	pid_t pid = make_child(_i);

	if (!pid)
		_exit(child(e, b));
	expect_good_end(pid);
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, NULL, 4, rows), 0);
	embeng_batch_free(b);
	embeng_close(e);
}
END_TEST

static int train_own(void)
{
	struct embeng *e = open_small(&(struct shape){.optimizer = embeng_sgd(1)});
	struct embeng_activations a = {.size = sizeof(a)};
	float rows[8];
	int bad = enqueue_bags(e, EMBENG_TRAIN, 0, -1);

	bad |= embeng_dequeue(e, 0, -1, &a);
	bad |= apply_ones(e, 0);
	bad |= embeng_rows_read(e, 0, NULL, NULL, 4, rows);
	bad |= rows[2] != 9.5f || rows[6] != 29;
	embeng_close(e);
	return bad;
}

/* The parent's pool of threads is not the child's, which makes its own and ends it. */
START_TEST(child_opens_its_own)
{
	struct embeng *e = open_small(&(struct shape){0});
	float rows[8];
	pid_t pid = make_child(_i);

	if (!pid) {
		int bad = train_own();

		embeng_close(e);
		_exit(bad || train_own());
	}
	expect_good_end(pid);
	ck_assert_int_eq(train_own(), 0);
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, NULL, 4, rows), 0);
	embeng_close(e);
}
END_TEST

static void *ask_generation(void *arg)
{
	*(uint32_t *)arg = fork_generation();
	return NULL;
}

#define ASKING 8

/* All threads of a child are told the same, whoever asks first, and no count of before. */
static bool threads_agree(uint32_t above)
{
	pthread_t threads[ASKING];
	uint32_t told[ASKING];
	bool agree = true;

	for (int i = 0; i < ASKING; i++)
		pthread_create(&threads[i], NULL, ask_generation, &told[i]);
	for (int i = 0; i < ASKING; i++) {
		pthread_join(threads[i], NULL);
		agree &= told[i] == told[0];
	}
	return agree && told[0] > above && fork_generation() == told[0];
}

/* The count grows from child to child, also past one that never asked. */
START_TEST(count_goes_on)
{
	uint32_t own = fork_generation(), asked;
	pid_t pid = make_child(_i);

	if (!pid) {
		pid = make_child(_i);
		if (!pid)
			_exit(fork_generation() == own);
		expect_good_end(pid);
		if (!threads_agree(own))
			_exit(1);
		asked = fork_generation();
		pid = make_child(_i);
		if (!pid)
			_exit(!threads_agree(asked));
		expect_good_end(pid);
		_exit(0);
	}
	expect_good_end(pid);
	ck_assert_uint_eq(fork_generation(), own);
}
END_TEST

static void add(TCase *tc)
{
	tcase_add_loop_test(tc, child_is_refused, 0, 3);
	tcase_add_loop_test(tc, child_opens_its_own, 0, 3);
	tcase_add_loop_test(tc, count_goes_on, 0, 3);
}

int main(void)
{
	return suite_main("fork", add);
}
