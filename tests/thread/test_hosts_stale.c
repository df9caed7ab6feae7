// SPDX-License-Identifier: MIT
/*
 * With pipelining a lookup does not see the update before it, unless rows were written in between. Over hosts
 * that holds for the tables of every host, also if the rows that were written are on another one.
 */
#include "compare_help.h"
#include "suite.h"

static const char *const devices[] = {RUN_DEVICE, RUN_ROWS, RUN_GRADS ",sharding=div"};
#define DEVICES 3
#define STEPS 6

/* Hosts but the first name no row, and one process writes what host 0 does. */
static void write_one_row(struct run_host *h, int table)
{
	const int64_t width = run_dims[table], row = 3;
	float *data = calloc((size_t)width, sizeof(*data));

	run_note(h, embeng_rows_write(h->e, table, NULL, &row, h->rank ? 0 : 1, data));
	free(data);
}

static void fill_some_rows(struct run_host *h, int table, size_t count)
{
	const struct embeng_initializer start = {.kind = EMBENG_INIT_CONSTANT, .a = 0.5f};

	run_note(h, embeng_rows_fill(h->e, table, NULL, 2, h->rank ? 0 : count, &start));
}

/* The table that is written changes with the steps, so that each host is without its rows in some. */
static void change_rows(struct run_host *h, uint32_t step)
{
	const int table = (int)(step % RUN_TABLES);

	if (step == STEPS / 2)
		fill_some_rows(h, table, 0); /* No row is written: nothing changes. */
	else if (step % 2)
		write_one_row(h, table);
	else
		fill_some_rows(h, table, 2);
}

static void train_and_change(struct run_host *h)
{
	for (uint32_t step = 1; !h->code && step <= STEPS; step++) {
		struct run part = *h->run;

		part.steps = step;
		run_note(h, run_train(&part, h->e, step));
		for (uint32_t r = 0; r < part.replicas; r++)
			if (part.seen[step - 1][r])
				h->run->seen[step - 1][r] = part.seen[step - 1][r];
		if (step < STEPS)
			change_rows(h, step);
	}
	run_end(h);
}

static struct run make_run(const char *device)
{
	return (struct run){.device = device,
			    .optimizer = embeng_adagrad(0.1f),
			    .pipelining = 1,
			    .replicas = 4,
			    .steps = STEPS};
}

START_TEST(lookups_behind_writes_see_all_updates)
{
	struct run alone = make_run(RUN_DEVICE), group = make_run(devices[_i / RUN_HOST_COUNTS]);
	struct embeng_model *model = run_model(&alone);
	struct run_host one = {.run = &alone}, hosts[RUN_HOSTS_MOST];
	const uint32_t count = run_host_count(_i);

	run_make_rows(&alone);
	ck_assert_int_eq(embeng_open(RUN_DEVICE, model, &one.e, NULL), 0);
	train_and_change(&one);
	ck_assert_msg(!one.code, "%s", one.text);
	embeng_close(one.e);
	embeng_model_free(model);
	run_hosts(&group, count, train_and_change, NULL, 0, RUN_DEADLINE, hosts);
	for (uint32_t i = 0; i < count; i++)
		ck_assert_msg(!hosts[i].code, "host %u of %u: %d, %s", i, count, hosts[i].code,
			      hosts[i].text);
	ck_assert_uint_eq(run_differences(&alone, &group), 0);
	run_free_rows(&alone);
	run_free_rows(&group);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, lookups_behind_writes_see_all_updates, 0,
			    DEVICES * RUN_HOST_COUNTS);
}

int main(void)
{
	return suite_main("hosts_stale", add_tests);
}
