// SPDX-License-Identifier: MIT
/* Steps, frozen tables and statistics of a handle over all hosts are those of one process. */
#include "hosts_help.h"
#include "suite.h"

#define DEADLINE (20 * 1000 * GROUP_MS)

static const uint32_t host_counts[] = {1, 2, 3, 4, 8};
#define HOST_COUNTS 5

/* Tables are whole or cut by columns, or their rows are spread. */
static const char *const devices[] = {RUN_DEVICE, RUN_ROWS, RUN_GRADS ",sharding=div"};
#define DEVICES 3
static const char *device = RUN_DEVICE;

static struct run make_run(void)
{
	return (struct run){
		.device = device, .optimizer = embeng_adam(0.01f), .replicas = 4, .steps = 6};
}

/* The results of one process. */
static struct run alone;
static struct embeng_table_stats expected[RUN_TABLES];
static uint64_t expected_step;

static int train_to(struct run_host *h, uint32_t from, uint32_t to)
{
	struct run part = *h->run;
	int ret;

	part.steps = to;
	ret = run_train(&part, h->e, from);
	for (uint32_t step = from; step <= to; step++)
		for (uint32_t r = 0; r < part.replicas; r++)
			if (part.seen[step - 1][r])
				h->run->seen[step - 1][r] = part.seen[step - 1][r];
	return ret;
}

/* Trains, freezes a whole table and one that is cut, sets the step, and thaws one of them. */
static void change_state(struct run_host *h)
{
	uint64_t step = 99;

	run_note(h, train_to(h, 1, 2));
	run_note(h, embeng_step(h->e, &step));
	ck_assert_msg(h->code || step == 2, "%u", (unsigned int)step);
	run_note(h, embeng_table_freeze(h->e, 1, 1));
	run_note(h, embeng_table_freeze(h->e, 2, 1));
	ck_assert_int_eq(embeng_table_frozen(h->e, 1), 1);
	ck_assert_int_eq(embeng_table_frozen(h->e, 0), 0);
	run_note(h, train_to(h, 3, 4));
	run_note(h, embeng_set_step(h->e, 40));
	run_note(h, embeng_table_freeze(h->e, 1, 0));
	ck_assert_int_eq(embeng_table_frozen(h->e, 1), 0);
	run_note(h, train_to(h, 5, 6));
}

static void read_table(struct run_host *h, int t)
{
	for (size_t s = 0; s <= embeng_model_slot_count(embeng_get_model(h->e), (size_t)t); s++) {
		const size_t floats = run_slot_floats(h->e, t, s);
		float *got = malloc(sizeof(*got) * floats);

		run_note(h, embeng_rows_read(h->e, t,
					     s ? embeng_model_slot_name(embeng_get_model(h->e),
									(size_t)t, s - 1)
					       : NULL,
					     NULL, (size_t)run_rows[t], got));
		if (!h->code)
			ck_assert_mem_eq(got, alone.rows[t][s], floats * sizeof(*got));
		free(got);
	}
}

static void compare_stats(const struct embeng_table_stats *got, int t)
{
	const struct embeng_table_stats *want = &expected[t];

	ck_assert_uint_gt(got->ids, 0);
	ck_assert_uint_eq(got->ids, want->ids);
	ck_assert_uint_eq(got->unique_ids, want->unique_ids);
	ck_assert_uint_eq(got->steps, want->steps);
	ck_assert_uint_eq(got->updated_rows, want->updated_rows);
	ck_assert_uint_eq(got->untouched_rows, want->untouched_rows);
	ck_assert_uint_eq(got->nonfinite_rows, want->nonfinite_rows);
	ck_assert_uint_eq(got->hot_count, want->hot_count);
	for (size_t i = 0; i < got->hot_count; i++) {
		ck_assert_int_eq(got->hot[i].row, want->hot[i].row);
		ck_assert_uint_eq(got->hot[i].count, want->hot[i].count);
	}
}

static void check_state(struct run_host *h)
{
	uint64_t step = 0;

	change_state(h);
	run_note(h, embeng_step(h->e, &step));
	ck_assert_msg(h->code || step == expected_step, "%u", (unsigned int)step);
	for (int t = 0; !h->code && t < RUN_TABLES; t++)
		read_table(h, t);
	for (int t = 0; !h->code && t < RUN_TABLES; t++) {
		struct embeng_table_stats stats = EMBENG_INIT(embeng_table_stats);

		run_note(h, embeng_stats(h->e, t, 1, &stats));
		if (!h->code)
			compare_stats(&stats, t);
		run_note(h, embeng_stats(h->e, t, 0, &stats));
		ck_assert_uint_eq(stats.ids, 0);
		ck_assert_uint_eq(stats.size, sizeof(stats));
	}
}

static void run_one_process(void)
{
	struct run_host one = {.run = &alone};
	struct embeng_model *model;

	alone = make_run();
	run_make_rows(&alone);
	model = run_model(&alone);
	ck_assert_int_eq(embeng_open("soft:cores=1", model, &one.e, NULL), 0);
	change_state(&one);
	ck_assert_int_eq(one.code, 0);
	ck_assert_int_eq(embeng_step(one.e, &expected_step), 0);
	ck_assert_uint_eq(expected_step, 42);
	run_keep_rows(&alone, one.e);
	for (int t = 0; t < RUN_TABLES; t++) {
		expected[t].size = sizeof(expected[t]);
		ck_assert_int_eq(embeng_stats(one.e, t, 0, &expected[t]), 0);
	}
	embeng_close(one.e);
	embeng_model_free(model);
}

static void run_on_all(void (*body)(struct run_host *h), uint32_t count)
{
	struct run_host hosts[RUN_HOSTS_MOST];
	struct run run = make_run();

	run_hosts(&run, count, body, NULL, 0, DEADLINE, hosts);
	for (uint32_t i = 0; i < count; i++)
		ck_assert_msg(!hosts[i].code, "host %u of %u: %d, %s", i, count, hosts[i].code,
			      hosts[i].text);
	run_free_rows(&run);
}

START_TEST(state_of_one_process)
{
	device = devices[_i / HOST_COUNTS];
	run_one_process();
	run_on_all(check_state, host_counts[_i % HOST_COUNTS]);
	run_free_rows(&alone);
}
END_TEST

/* -- all that is counted of tables that are spread -- */

#define LOOKS 2
static struct embeng_table_stats counted[LOOKS][RUN_TABLES];
static enum embeng_policy policy;

static struct run make_counted_run(void)
{
	struct run run = make_run();

	run.policy = policy;
	run.buckets = 0;
	run.non_finite = EMBENG_NON_FINITE_ALLOW;
	return run;
}

/* A number of each third row of a table of sequences and of another one. */
static void write_each_third(struct run_host *h, float value)
{
	for (int t = 2; t <= 3; t++) {
		const size_t dim = (size_t)run_dims[t];
		float data[500 * 4] = {0};

		for (size_t i = 0; i < (size_t)run_rows[t]; i += 3)
			data[i * dim + i % dim] = value;
		run_note(h, embeng_rows_write(h->e, t, NULL, NULL,
					      h->rank ? 0 : (size_t)run_rows[t], data));
	}
}

/* Infinite numbers are looked up, by inference, and then taken back. */
static void look_up_infinite(struct run_host *h, const struct embeng_device_info *info)
{
	static _Thread_local struct run_bags bags[RUN_FEATURES];
	static _Thread_local float room[RUN_FEATURES][RUN_SAMPLES * 96];
	struct embeng_output out[RUN_FEATURES];

	write_each_third(h, INFINITY);
	for (uint32_t i = 0; i < info->replica_count; i++) {
		const uint32_t r = info->first_replica + i;
		struct embeng_batch *b = embeng_batch_new(h->e, EMBENG_INFERENCE, r);

		for (int f = 0; f < RUN_FEATURES; f++) {
			run_input(h->run, b, 60, r, f, &bags[f]);
			out[f] = (struct embeng_output){
				.data = room[f], .elements = sizeof(room[f]) / sizeof(float)};
		}
		run_note(h, embeng_lookup(h->e, b, out, RUN_FEATURES, -1));
		embeng_batch_free(b);
	}
	write_each_third(h, 0.5f);
}

static void compare_counts(const struct embeng_table_stats *got, int look, int t)
{
	const struct embeng_table_stats *want = &counted[look][t];

	ck_assert_uint_gt(got->ids, 0);
	ck_assert_msg(got->ids == want->ids, "look %d, table %d: %u ids, not %u", look, t,
		      (unsigned int)got->ids, (unsigned int)want->ids);
	ck_assert_uint_eq(got->unique_ids, want->unique_ids);
	ck_assert_uint_eq(got->dropped_ids, want->dropped_ids);
	ck_assert_uint_eq(got->clamped_ids, want->clamped_ids);
	ck_assert_uint_eq(got->zeroed_ids, want->zeroed_ids);
	ck_assert_uint_eq(got->steps, want->steps);
	ck_assert_uint_eq(got->updated_rows, want->updated_rows);
	ck_assert_uint_eq(got->untouched_rows, want->untouched_rows);
	ck_assert_uint_eq(got->nonfinite_activations, want->nonfinite_activations);
	ck_assert_uint_eq(got->nonfinite_rows, want->nonfinite_rows);
	ck_assert_uint_eq(got->nonfinite_gradient_rows, want->nonfinite_gradient_rows);
	ck_assert_uint_eq(got->hot_error, want->hot_error);
	ck_assert_uint_eq(got->hot_count, want->hot_count);
	for (size_t i = 0; i < got->hot_count; i++) {
		ck_assert_int_eq(got->hot[i].row, want->hot[i].row);
		ck_assert_uint_eq(got->hot[i].count, want->hot[i].count);
	}
}

static void look_at_counts(struct run_host *h, int look, bool keep)
{
	for (int t = 0; !h->code && t < RUN_TABLES; t++) {
		struct embeng_table_stats stats = EMBENG_INIT(embeng_table_stats);

		run_note(h, embeng_stats(h->e, t, look == 0, &stats));
		if (keep)
			counted[look][t] = stats;
		else if (!h->code)
			compare_counts(&stats, look, t);
	}
}

/* Counts are looked at and cleared while a step has its lookup alone, and then another one is discarded. */
static void count_everything(struct run_host *h, bool keep)
{
	struct embeng_device_info info = EMBENG_INIT(embeng_device_info);
	struct embeng_batch *b[RUN_REPLICAS_MOST];

	ck_assert_int_eq(embeng_info(h->e, &info), 0);
	look_up_infinite(h, &info);
	run_note(h, train_to(h, 1, 2));
	for (uint32_t i = 0; i < info.replica_count; i++) {
		b[i] = embeng_batch_new(h->e, EMBENG_TRAIN, info.first_replica + i);
		run_note(h, run_enqueue(h->run, h->e, b[i], 3, info.first_replica + i));
	}
	look_at_counts(h, 0, keep);
	for (uint32_t i = 0; i < info.replica_count; i++)
		run_note(h, run_apply(h->run, h->e, 3, info.first_replica + i));
	for (uint32_t i = 0; i < info.replica_count; i++)
		run_note(h, run_enqueue(h->run, h->e, b[i], 4, info.first_replica + i));
	for (uint32_t i = 0; i < info.replica_count; i++) {
		const uint32_t r = info.first_replica + i;
		struct embeng_activations act = EMBENG_INIT(embeng_activations);

		if (r == 1) {
			run_note(h, embeng_dequeue(h->e, r, -1, &act));
			run_note(h, embeng_discard(h->e, r, -1));
		} else {
			run_note(h, run_apply(h->run, h->e, 4, r));
		}
		embeng_batch_free(b[i]);
	}
	look_at_counts(h, 1, keep);
}

static void compare_everything(struct run_host *h)
{
	count_everything(h, false);
}

START_TEST(counts_of_one_process)
{
	static const uint32_t groups[] = {2, 4};
	struct run one_run, run;
	struct run_host one = {.run = &one_run}, hosts[RUN_HOSTS_MOST];
	struct embeng_model *model;

	device = devices[1 + _i % 2];
	policy = (enum embeng_policy)(EMBENG_POLICY_ERROR + _i / 4);
	one_run = run = make_counted_run();
	model = run_model(&one_run);
	ck_assert_int_eq(embeng_open("soft:cores=1", model, &one.e, NULL), 0);
	count_everything(&one, true);
	ck_assert_msg(!one.code, "%s", one.text);
	embeng_close(one.e);
	embeng_model_free(model);
	ck_assert_uint_gt(counted[0][2].nonfinite_activations, 0);
	ck_assert_uint_gt(counted[0][3].nonfinite_activations, 0);
	ck_assert(!policy ||
		  counted[1][1].dropped_ids + counted[1][1].clamped_ids + counted[1][1].zeroed_ids >
			  0);
	run_hosts(&run, groups[_i / 2 % 2], compare_everything, NULL, 0, DEADLINE, hosts);
	for (uint32_t i = 0; i < groups[_i / 2 % 2]; i++)
		ck_assert_msg(!hosts[i].code, "host %u: %d, %s", i, hosts[i].code, hosts[i].text);
	run_free_rows(&run);
}
END_TEST

/* -- what is refused -- */

static void expect_refusal(int ret, int code, const char *text)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);

	embeng_last_error(&error);
	ck_assert_msg(ret == code, "%d, %s", ret, error.text);
	ck_assert_msg(strstr(error.text, text) != NULL, "%s", error.text);
}

/* Hosts that differ change nothing, and go on. */
static void refuse_state(struct run_host *h)
{
	struct embeng_table_stats stats = EMBENG_INIT(embeng_table_stats);
	uint64_t step = 5;

	expect_refusal(embeng_set_step(h->e, 7 + h->rank), -EINVAL, "set step: host 1 (");
	expect_refusal(embeng_set_step(h->e, h->rank ? UINT64_MAX : 7), -ERANGE, "host 1 (");
	expect_refusal(embeng_table_freeze(h->e, 0, (int)h->rank), -EINVAL,
		       "another table or switch");
	expect_refusal(embeng_table_freeze(h->e, h->rank ? 0 : 5, 1), -ENOENT,
		       "table 5, the model has 5");
	ck_assert_int_eq(embeng_table_frozen(h->e, 0), 0);
	expect_refusal(embeng_table_frozen(h->e, -1), -ENOENT, "table -1, the model has 5");
	expect_refusal(embeng_stats(h->e, 0, 0, h->rank ? NULL : &stats), -EINVAL, "stats must be");
	expect_refusal(embeng_stats(h->e, (int)h->rank, 0, &stats), -EINVAL, "stats: host 1 (");
	ck_assert_int_eq(embeng_step(h->e, &step), 0);
	ck_assert_uint_eq(step, 0);
}

START_TEST(differences_are_refused)
{
	device = devices[_i];
	run_on_all(refuse_state, 2);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, state_of_one_process, 0, DEVICES * HOST_COUNTS);
	tcase_add_loop_test(tcase, counts_of_one_process, 0, 16);
	tcase_add_loop_test(tcase, differences_are_refused, 0, DEVICES);
}

int main(void)
{
	return suite_main("hosts_state", add_tests);
}
