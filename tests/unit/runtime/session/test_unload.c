// SPDX-License-Identifier: MIT
/*
 * A program that loads libembeng by dlopen(), as a framework's plugins are, may unload it and exit with
 * devices open and commands under way. It is apart from the other tests because it must not be linked
 * with the library.
 */
#include <check.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include "embeng.h"
#include "suite.h"

#define IDS (1u << 22)

static void *library;

static void *find(const char *name)
{
	void *function = dlsym(library, name);

	ck_assert_msg(function != NULL, "%s: %s", name, dlerror());
	return function;
}

#define CALL(name) ((__typeof__(&(name)))find(#name))

static struct embeng *open_device(void)
{
	struct embeng_table_config t = {
		.size = sizeof(t), .name = "t", .vocabulary_size = 1000, .dim = 64};
	struct embeng_feature_config f = {.size = sizeof(f), .name = "f"};
	struct embeng_model *m;
	struct embeng *e = NULL;

	library = dlopen(LIBEMBENG, RTLD_NOW | RTLD_LOCAL);
	ck_assert_msg(library != NULL, "%s", dlerror());
	m = CALL(embeng_model_new)();
	ck_assert_int_eq(CALL(embeng_model_add_table)(m, &t), 0);
	ck_assert_int_eq(CALL(embeng_model_add_feature)(m, &f), 0);
	ck_assert_int_eq(CALL(embeng_open)("soft:cores=2,memory=16M", m, &e, NULL), 0);
	CALL(embeng_model_free)(m);
	return e;
}

static void give_work(struct embeng *e)
{
	struct embeng_batch *b = CALL(embeng_batch_new)(e, EMBENG_INFERENCE, 0);
	const int64_t splits[] = {0, IDS};
	int32_t *ids = calloc(IDS, sizeof(*ids));

	ck_assert_ptr_nonnull(ids);
	ck_assert_int_eq(
		CALL(embeng_batch_ragged_splits)(b, 0, EMBENG_I32, ids, IDS, splits, 2, NULL, 0),
		0);
	ck_assert_int_eq(CALL(embeng_enqueue)(e, b, 0), 0);
	CALL(embeng_batch_free)(b);
	free(ids);
}

/* The device's threads still run code of the library. */
START_TEST(unload_while_it_works)
{
	give_work(open_device());
	ck_assert_int_eq(dlclose(library), 0);
	usleep(50000);
}
END_TEST

START_TEST(exit_while_it_works)
{
	give_work(open_device());
	exit(0);
}
END_TEST

START_TEST(load_it_again)
{
	struct embeng *e = open_device();

	CALL(embeng_close)(e);
	ck_assert_int_eq(dlclose(library), 0);
	e = open_device();
	CALL(embeng_close)(e);
	ck_assert_int_eq(dlclose(library), 0);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, unload_while_it_works);
	tcase_add_test(tcase, exit_while_it_works);
	tcase_add_test(tcase, load_it_again);
}

int main(void)
{
	return suite_main("unload", add);
}
