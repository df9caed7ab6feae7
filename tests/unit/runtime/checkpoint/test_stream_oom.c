// SPDX-License-Identifier: MIT
/*
 * Streams without memory: each allocation of a save, a restore, of opening, packing and unpacking fails
 * once. The call says so or does without, engine and folder have the old rows or the new ones, and the
 * call may be made again.
 */
#include <fcntl.h>

#include "checkpoint_help.h"
#include "failing_alloc.h"
#include "memory_stream.h"
#include "suite.h"

#define MOST 4096 /* allocations; there are some hundred */
#define ROOM (64u << 10)

static struct embeng *open_two(void)
{
	const struct help_table tables[] = {{"t", 6, 2, embeng_adagrad(0.1f)},
					    {"u", 3, 2, embeng_sgd(0.1f)}};

	return help_open("soft:cores=1,memory=1M", tables, 2);
}

/* Its memory is there before the first allocation fails. */
static struct memory_stream new_stream(void)
{
	struct memory_stream m = {.data = malloc(ROOM), .room = ROOM};

	ck_assert_ptr_nonnull(m.data);
	return m;
}

static void expect_no_memory(int ret, uint32_t nth)
{
	struct embeng_error error = {.size = sizeof(error)};

	embeng_last_error(&error);
	ck_assert_msg(ret == -ENOMEM && error.code == ret && strlen(error.text) > 8,
		      "allocation %u: %d, '%s'", nth, ret, error.text);
}

static void stream_of(struct embeng *e, uint32_t salt, struct memory_stream *m)
{
	struct embeng_writer w = memory_writer(m);

	help_fill(e, salt);
	m->bytes = 0;
	help_expect_ok(embeng_save_stream(e, &w, NULL));
	ck_assert_uint_lt(m->bytes, ROOM);
}

START_TEST(saving_without_memory)
{
	struct embeng *e = open_two();
	struct memory_stream m = new_stream();
	uint32_t nth, failures = 0;
	bool starved = true;

	help_fill(e, 1);
	for (nth = 1; starved && nth < MOST; nth++) {
		struct embeng_writer w = memory_writer(&m);
		struct embeng_reader r;
		int ret;

		m.bytes = 0;
		scarce_begin(nth);
		ret = embeng_save_stream(e, &w, NULL);
		starved = scarce_end();
		if (ret) {
			ck_assert(starved);
			expect_no_memory(ret, nth);
			failures++;
			continue;
		}
		r = memory_reader(&m);
		help_expect_ok(embeng_restore_stream(e, &r, NULL));
		help_expect_tables(e, 1);
	}
	ck_assert(!starved);
	ck_assert_uint_gt(failures, 10);
	embeng_close(e);
	memory_stream_free(&m);
}
END_TEST

START_TEST(restoring_without_memory)
{
	struct embeng *e = open_two();
	struct memory_stream m = new_stream();
	uint32_t nth, failures = 0;
	bool starved = true;

	stream_of(e, 1, &m);
	for (nth = 1; starved && nth < MOST; nth++) {
		struct embeng_reader r = memory_reader(&m);
		int ret;

		help_fill(e, 2);
		scarce_begin(nth);
		ret = embeng_restore_stream(e, &r, NULL);
		starved = scarce_end();
		if (ret) {
			ck_assert(starved);
			expect_no_memory(ret, nth);
			failures++;
		}
		help_expect_tables(e, ret ? 2 : 1);
	}
	ck_assert(!starved);
	ck_assert_uint_gt(failures, 30);
	embeng_close(e);
	memory_stream_free(&m);
}
END_TEST

/* Opens, packs and unpacks. Return: what the first that failed returned. */
static int use_stream(struct memory_stream *m, struct memory_stream *to, const char *folder)
{
	struct embeng_reader r = memory_reader(m);
	struct embeng_writer w = memory_writer(to);
	struct embeng_checkpoint *c = NULL;
	int ret = embeng_checkpoint_open_stream(&r, NULL, NULL, &c, NULL);

	to->bytes = 0;
	ret = ret ? ret : embeng_checkpoint_pack(c, &w, NULL, NULL);
	embeng_checkpoint_close(c);
	r = memory_reader(to);
	return ret ? ret : embeng_checkpoint_unpack(&r, folder, NULL, NULL);
}

START_TEST(packing_without_memory)
{
	struct embeng *e = open_two();
	struct memory_stream m = new_stream(), to = new_stream();
	char parent[HELP_PATH], folder[HELP_PATH + 8];
	uint32_t nth, failures = 0;
	bool starved = true;

	folder_new(parent);
	snprintf(folder, sizeof(folder), "%s/new", parent);
	stream_of(e, 1, &m);
	for (nth = 1; starved && nth < MOST; nth++) {
		struct embeng_checkpoint *c;
		int ret;

		scarce_begin(nth);
		ret = use_stream(&m, &to, folder);
		starved = scarce_end();
		if (ret) {
			ck_assert(starved);
			expect_no_memory(ret, nth);
			failures++;
		}
		if (access(folder, F_OK))
			continue;
		if (!ret) {
			c = help_checkpoint(folder);
			help_expect_checkpoint(c, 1);
			embeng_checkpoint_close(c);
		}
		folder_remove(folder);
	}
	ck_assert(!starved);
	ck_assert_uint_gt(failures, 100);
	embeng_close(e);
	memory_stream_free(&m);
	memory_stream_free(&to);
	folder_remove(parent);
}
END_TEST

static void add(TCase *tcase)
{
	help_never_sync();
	tcase_add_test(tcase, saving_without_memory);
	tcase_add_test(tcase, restoring_without_memory);
	tcase_add_test(tcase, packing_without_memory);
}

int main(void)
{
	return suite_main("stream oom", add);
}
