// SPDX-License-Identifier: MIT
/* A handle is refused in a child of fork(), and goes on working in the parent. */
#include <sys/wait.h>
#include <unistd.h>

#include "session_help.h"

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

START_TEST(child_is_refused)
{
	struct embeng *e = open_small(&(struct shape){0});
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, 0);
	float rows[8];
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(child(e, b));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, NULL, 4, rows), 0);
	embeng_batch_free(b);
	embeng_close(e);
}
END_TEST

RUN_SUITE("fork", child_is_refused)
