// SPDX-License-Identifier: MIT
/* Rows of tables that lie on several hosts: each host reads, writes and fills rows of its own choice. */
#include "hosts_help.h"
#include "suite.h"

#define DEADLINE (20 * 1000 * GROUP_MS)

static const uint32_t host_counts[] = {1, 2, 3, 4, 8};
#define HOST_COUNTS 5

/* Tables are whole or cut by columns, or their rows are spread. */
static const char *const devices[] = {RUN_DEVICE, RUN_ROWS, RUN_GRADS ",sharding=div"};
#define DEVICES 3
static const char *device;
static int parts;

static struct run make_run(void)
{
	return (struct run){.device = device,
			    .optimizer = embeng_adagrad(0.1f),
			    .replicas = 4,
			    .steps = 3,
			    .parts = parts};
}

/* The number of hosts of a loop over all of them and all devices, which is chosen. */
static uint32_t choose_run(int i)
{
	device = devices[i / HOST_COUNTS];
	return host_counts[i % HOST_COUNTS];
}

static const char *slot_of(const struct embeng *e, int t, size_t s)
{
	return s ? embeng_model_slot_name(embeng_get_model(e), (size_t)t, s - 1) : NULL;
}

/* The rows of one process, which are compared with. */
static struct run alone;

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

/* -- reading -- */

/* As many rows as a host chooses, also none, in no order and some of them twice. */
static void read_own_rows(struct run_host *h, int t, size_t s)
{
	const size_t width = run_slot_floats(h->e, t, s) / (size_t)run_rows[t];
	const size_t count = h->rank == 1 ? 0 : 5 + 3 * h->rank;
	int64_t ids[64];
	float *got = malloc(sizeof(*got) * 64 * width);

	for (size_t i = 0; i < count; i++)
		ids[i] = (int64_t)(run_mix(i / 2 + 10 * h->rank) % (uint64_t)run_rows[t]);
	if (!run_note(h, embeng_rows_read(h->e, t, slot_of(h->e, t, s), ids, count, got)))
		for (size_t i = 0; i < count; i++)
			ck_assert_mem_eq(got + i * width, alone.rows[t][s] + (size_t)ids[i] * width,
					 width * sizeof(*got));
	free(got);
}

/* All rows on some hosts, the first few on the others. */
static void read_from_first(struct run_host *h, int t, size_t s)
{
	const size_t floats = run_slot_floats(h->e, t, s), width = floats / (size_t)run_rows[t];
	const size_t count = h->rank % 2 ? 3 : (size_t)run_rows[t];
	float *got = malloc(sizeof(*got) * floats);

	if (!run_note(h, embeng_rows_read(h->e, t, slot_of(h->e, t, s), NULL, count, got)))
		ck_assert_mem_eq(got, alone.rows[t][s], count * width * sizeof(*got));
	free(got);
}

static void read_rows(struct run_host *h)
{
	if (run_note(h, run_train(h->run, h->e, 1)))
		return;
	for (int t = 0; !h->code && t < RUN_TABLES; t++)
		for (size_t s = 0;
		     !h->code && s <= embeng_model_slot_count(embeng_get_model(h->e), (size_t)t);
		     s++) {
			read_own_rows(h, t, s);
			read_from_first(h, t, s);
		}
}

/* Steps that were handed in are seen without a flush. */
START_TEST(rows_are_those_of_one_process)
{
	const uint32_t count = choose_run(_i);

	alone = make_run();
	run_alone(&alone);
	run_on_all(read_rows, count);
	run_free_rows(&alone);
}
END_TEST

/* Tables that are parts themselves are cut and spread once more. */
START_TEST(parts_are_those_of_one_process)
{
	const uint32_t count = choose_run(_i);

	parts = 1;
	alone = make_run();
	run_alone(&alone);
	run_on_all(read_rows, count);
	run_free_rows(&alone);
	parts = 0;
}
END_TEST

/* -- between steps that are under way -- */

/* The second step is looked up, and its gradients are missing; only the first is seen, and the steps go on. */
static void read_between(struct run_host *h)
{
	struct embeng_device_info info = EMBENG_INIT(embeng_device_info);
	struct embeng_batch *b[RUN_REPLICAS_MOST];

	ck_assert_int_eq(embeng_info(h->e, &info), 0);
	for (uint32_t i = 0; i < info.replica_count; i++)
		b[i] = embeng_batch_new(h->e, EMBENG_TRAIN, info.first_replica + i);
	for (uint64_t step = 1; step <= 2; step++)
		for (uint32_t i = 0; i < info.replica_count; i++)
			run_note(h, run_enqueue(h->run, h->e, b[i], step, info.first_replica + i));
	for (uint32_t i = 0; i < info.replica_count; i++)
		run_note(h, run_apply(h->run, h->e, 1, info.first_replica + i));
	if (h->e->hosts)
		for (int t = 0; !h->code && t < RUN_TABLES; t++)
			read_from_first(h, t, 0);
	else
		run_keep_rows(&alone, h->e);
	for (uint32_t i = 0; i < info.replica_count; i++)
		run_note(h, run_apply(h->run, h->e, 2, info.first_replica + i));
	for (uint32_t i = 0; i < info.replica_count; i++)
		embeng_batch_free(b[i]);
}

START_TEST(rows_between_steps)
{
	struct run_host hosts[RUN_HOSTS_MOST];
	const uint32_t count = choose_run(_i);

	alone = make_run();
	alone.pipelining = 1;
	run_make_rows(&alone);
	for (uint32_t n = 1; n <= count; n += count > 1 ? count - 1 : 1) {
		struct run run = make_run();

		run.pipelining = 1;
		run_hosts(&run, n, read_between, NULL, 0, DEADLINE, hosts);
		for (uint32_t i = 0; i < n; i++)
			ck_assert_msg(!hosts[i].code, "host %u of %u: %d, %s", i, n, hosts[i].code,
				      hosts[i].text);
		run_free_rows(&run);
	}
	run_free_rows(&alone);
}
END_TEST

/* -- writing -- */

/* All hosts write row 5, and each one row more; @host is what a number tells. */
static float written(int t, size_t s, uint32_t host, int64_t id, size_t column)
{
	return (float)(1 + t * 1000 + (int)s * 100 + (int)host * 10) +
	       (float)(id * 97 + (int64_t)column) / 65536;
}

static void write_own_rows(struct run_host *h, uint32_t hosts, int t, size_t s)
{
	const size_t width = run_slot_floats(h->e, t, s) / (size_t)run_rows[t];
	const int64_t ids[] = {5, 6, (int64_t)(h->rank + 7) % run_rows[t], 6};
	const size_t count = h->rank == 2 ? 0 : 4;
	float *data = malloc(sizeof(*data) * 4 * width), *got = malloc(sizeof(*got) * width);
	const uint32_t last = hosts == 3 ? 1 : hosts - 1;
	const int64_t row = 5;

	for (size_t i = 0; i < count; i++)
		for (size_t c = 0; c < width; c++)
			data[i * width + c] = written(t, s, h->rank, ids[i], c) +
					      (i == 1 ? 0.5f : 0.0f);
	run_note(h, embeng_rows_write(h->e, t, slot_of(h->e, t, s), ids, count, data));
	run_note(h, embeng_rows_read(h->e, t, slot_of(h->e, t, s), &row, 1, got));
	for (size_t c = 0; !h->code && c < width; c++)
		ck_assert_float_eq(got[c], written(t, s, last, 5, c));
	run_note(h, embeng_rows_read(h->e, t, slot_of(h->e, t, s), &ids[1], 1, got));
	for (size_t c = 0; !h->code && run_rows[t] > 7 && c < width; c++)
		ck_assert_float_eq(got[c], written(t, s, last, 6, c));
	free(data);
	free(got);
}

static void write_rows(struct run_host *h)
{
	struct embeng_device_info info = EMBENG_INIT(embeng_device_info);

	ck_assert_int_eq(embeng_info(h->e, &info), 0);
	for (int t = 0; !h->code && t < RUN_TABLES; t++)
		for (size_t s = 0; s <= 1; s++)
			write_own_rows(h, info.hosts, t, s);
}

START_TEST(highest_host_writes_last)
{
	const uint32_t count = choose_run(_i);

	run_on_all(write_rows, count);
}
END_TEST

/* Every host writes its part of a table that needs several rounds, and reads it all. */
#define LARGE_ROWS 150000
#define LARGE_DIM 64

static float large_number(int64_t row, size_t column)
{
	return (float)((row * LARGE_DIM + (int64_t)column) % 99991) / 7;
}

static void move_large(struct embeng *e, uint32_t rank, uint32_t hosts)
{
	const int64_t first = LARGE_ROWS * (int64_t)rank / hosts;
	const size_t count = (size_t)(LARGE_ROWS * (int64_t)(rank + 1) / hosts - first);
	float *data = malloc(sizeof(*data) * LARGE_ROWS * LARGE_DIM);
	int64_t *ids = malloc(sizeof(*ids) * count);

	for (size_t i = 0; i < count; i++) {
		ids[i] = first + (int64_t)i;
		for (size_t c = 0; c < LARGE_DIM; c++)
			data[i * LARGE_DIM + c] = large_number(ids[i], c);
	}
	ck_assert_int_eq(embeng_rows_write(e, 0, NULL, ids, count, data), 0);
	memset(data, 0, sizeof(*data) * LARGE_ROWS * LARGE_DIM);
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, NULL, LARGE_ROWS, data), 0);
	for (int64_t i = 0; i < LARGE_ROWS; i += 13)
		for (size_t c = 0; c < LARGE_DIM; c++)
			ck_assert_float_eq(data[i * LARGE_DIM + (int64_t)c], large_number(i, c));
	ck_assert_uint_lt(e->hosts->answer.bytes, 40u << 20);
	free(data);
	free(ids);
}

static void *run_large(void *arg)
{
	struct run_host *h = arg;
	struct embeng_model *model = embeng_model_new();

	ck_assert_int_eq(
		embeng_model_add_table(model,
				       &EMBENG_INIT(embeng_table_config, .name = "large",
						    .vocabulary_size = LARGE_ROWS, .dim = LARGE_DIM,
						    .optimizer = embeng_sgd(0.1f))),
		0);
	ck_assert_int_eq(
		embeng_model_add_feature(model, &EMBENG_INIT(embeng_feature_config, .name = "f")),
		0);
	ck_assert_int_eq(embeng_group_open(&h->transport, NULL, &h->group, NULL), 0);
	ck_assert_int_eq(embeng_open_group(device, model, h->group, &h->e, NULL), 0);
	ck_assert_ptr_nonnull(hosts_part(h->e->hosts, 0, h->rank));
	move_large(h->e, h->rank, 2);
	embeng_close(h->e);
	embeng_group_close(h->group);
	embeng_model_free(model);
	return NULL;
}

START_TEST(large_requests_go_in_rounds)
{
	struct embeng_transport transports[2];
	struct run_host hosts[2] = {0};
	pthread_t threads[2];

	device = devices[_i];
	ck_assert_int_eq(threads_make(2, NULL, 0, transports), 0);
	for (uint32_t i = 0; i < 2; i++) {
		hosts[i].transport = transports[i];
		hosts[i].rank = i;
		ck_assert_int_eq(pthread_create(&threads[i], NULL, run_large, &hosts[i]), 0);
	}
	for (uint32_t i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}
END_TEST

/* -- filling -- */

static void fill_rows(struct run_host *h)
{
	const struct embeng_initializer start = {
		.kind = EMBENG_INIT_UNIFORM, .a = -1, .b = 1, .seed = 77};
	const struct embeng_initializer slot = {.kind = EMBENG_INIT_CONSTANT, .a = 0.25f};

	for (int t = 0; !h->code && t < RUN_TABLES; t++) {
		run_note(h, embeng_rows_fill(h->e, t, NULL, 2, (size_t)run_rows[t] - 3, &start));
		run_note(h, embeng_rows_fill(h->e, t, "accumulators", 0, 4, &slot));
	}
	for (int t = 0; !h->code && t < RUN_TABLES; t++)
		for (size_t s = 0; s <= 1; s++)
			read_from_first(h, t, s);
}

/* The rows of a table part are columns of the global rows. */
START_TEST(fills_are_those_of_one_process)
{
	const uint32_t count = choose_run(_i);
	struct embeng_model *model;
	struct run_host one = {0};

	alone = make_run();
	run_make_rows(&alone);
	model = run_model(&alone);
	ck_assert_int_eq(embeng_open("soft:cores=1", model, &one.e, NULL), 0);
	for (int t = 0; t < RUN_TABLES; t++) {
		const struct embeng_initializer start = {
			.kind = EMBENG_INIT_UNIFORM, .a = -1, .b = 1, .seed = 77};
		const struct embeng_initializer slot = {.kind = EMBENG_INIT_CONSTANT, .a = 0.25f};

		ck_assert_int_eq(
			embeng_rows_fill(one.e, t, NULL, 2, (size_t)run_rows[t] - 3, &start), 0);
		ck_assert_int_eq(embeng_rows_fill(one.e, t, "accumulators", 0, 4, &slot), 0);
	}
	run_keep_rows(&alone, one.e);
	embeng_close(one.e);
	embeng_model_free(model);
	run_on_all(fill_rows, count);
	run_free_rows(&alone);
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

/* One host gives an id that is not there, or a number; no host writes then. The group goes on. */
static void refuse_rows(struct run_host *h)
{
	const int64_t good[] = {1, 2}, bad[] = {1, 300};
	float ones[2 * 96], got[2 * 96], before[2 * 96];

	for (size_t i = 0; i < 2 * 96; i++)
		ones[i] = 1;
	ck_assert_int_eq(embeng_rows_read(h->e, 1, NULL, good, 2, before), 0);
	expect_refusal(embeng_rows_write(h->e, 1, NULL, h->rank ? bad : good, 2, ones), -ERANGE,
		       "host 1");
	expect_refusal(embeng_rows_read(h->e, 1, NULL, h->rank ? bad : good, 2, got), -ERANGE,
		       "row 300 is outside table t1");
	if (!h->rank)
		ones[100] = NAN;
	expect_refusal(embeng_rows_write(h->e, 1, NULL, good, 2, ones), -ERANGE, "host 0");
	expect_refusal(embeng_rows_read(h->e, h->rank ? 9 : 1, NULL, good, 2, got), -ENOENT,
		       "table 9, the model has 5");
	expect_refusal(embeng_rows_read(h->e, (int)h->rank, NULL, good, 2, got), -EINVAL,
		       "names table t1, parameters, and host 0");
	expect_refusal(embeng_rows_read(h->e, 1, NULL, good, 2, h->rank ? NULL : got), -EINVAL,
		       "no data given for 2 rows");
	expect_refusal(embeng_rows_fill(
			       h->e, 1, NULL, h->rank ? 299 : 0, 2,
			       &(struct embeng_initializer){.kind = EMBENG_INIT_CONSTANT, .a = 3}),
		       -ERANGE, "rows 299 to 300");
	ck_assert_int_eq(embeng_rows_read(h->e, 1, NULL, good, 2, got), 0);
	ck_assert_mem_eq(got, before, sizeof(got));
}

START_TEST(refusals_are_all_hosts)
{
	device = devices[_i];
	run_on_all(refuse_rows, 2);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, rows_are_those_of_one_process, 0, DEVICES * HOST_COUNTS);
	tcase_add_loop_test(tcase, parts_are_those_of_one_process, 0, DEVICES * HOST_COUNTS);
	tcase_add_loop_test(tcase, rows_between_steps, 1, DEVICES * HOST_COUNTS);
	tcase_add_loop_test(tcase, highest_host_writes_last, 0, DEVICES * HOST_COUNTS);
	tcase_add_loop_test(tcase, large_requests_go_in_rounds, 0, DEVICES);
	tcase_add_loop_test(tcase, fills_are_those_of_one_process, 0, DEVICES * HOST_COUNTS);
	tcase_add_loop_test(tcase, refusals_are_all_hosts, 0, DEVICES);
}

int main(void)
{
	return suite_main("hosts_rows", add_tests);
}
