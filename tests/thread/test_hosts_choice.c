// SPDX-License-Identifier: MIT
/*
 * A handle over hosts chooses the exchange of each table as a plan of hosts does, or as its device's name
 * asks, and whatever it chooses the bits are those of one process.
 */
#include "compare_help.h"
#include "embeng/hosts.h"
#include "hosts/choose.h"
#include "suite.h"
#include "test_model.h"

#define DEADLINE (20 * 1000 * GROUP_MS)
#define HOSTS_MOST 8

/* -- plan and handle ----------------------------------------------------- */

/* A table, and the limits of its feature; with @samples 0 the model tells nothing. */
struct shape {
	int64_t rows, dim;
	uint64_t samples, ids;
	int rowwise, length;
};

#define SHAPES 5

static const struct shape models[][SHAPES] = {
	{{4000, 64, 512, 512 * 20, 0, 0},
	 {3000, 32, 512, 512, 0, 0},
	 {200, 128, 2048, 2048, 0, 0},
	 {50, 16, 4096, 4096, 1, 0},
	 {900, 48, 256, 256 * 5, 0, 5}},
	{{100, 64, 8192, 8192, 0, 0},
	 {100, 64, 8, 8 * 200, 0, 0},
	 {64000, 16, 512, 512 * 50, 1, 0},
	 {7, 256, 4096, 4096, 0, 0},
	 {20000, 8, 64, 64, 0, 3}},
	{{20000, 256, 16, 16 * 90, 0, 0},
	 {30, 256, 2048, 2048 * 3, 1, 0},
	 {30, 64, 0, 0, 0, 0},
	 {30, 64, 4096, 0, 0, 0},
	 {5000, 24, 1, 1, 0, 0}},
	{{60000, 16, 2048, 2048 * 20, 0, 0}},
};
static const uint32_t host_counts[] = {2, 3, 4, 8};

/* A model has fewer tables where the next one has no rows. */
static int count_tables(const struct shape *shapes)
{
	int count = 0;

	while (count < SHAPES && shapes[count].rows)
		count++;
	return count;
}

static struct embeng_model *make_model(const struct shape *shapes, uint32_t replicas)
{
	struct embeng_model *m = embeng_model_new();

	for (int t = 0; t < count_tables(shapes); t++) {
		struct embeng_table_config c = table_config(NULL);
		struct embeng_feature_config f = feature_config(NULL);

		c.vocabulary_size = shapes[t].rows;
		c.dim = shapes[t].dim;
		c.optimizer = shapes[t].rowwise ? embeng_rowwise_adagrad(0.1f)
						: embeng_adagrad(0.1f);
		ck_assert_int_eq(embeng_model_add_table(m, &c), t);
		f.table = t;
		f.max_samples = shapes[t].samples;
		f.max_ids = shapes[t].ids;
		f.max_sequence_length = shapes[t].length;
		ck_assert_int_eq(embeng_model_add_feature(m, &f), t);
	}
	ck_assert_int_eq(embeng_model_set_engine(
				 m, &EMBENG_INIT(embeng_engine_config, .replicas = replicas)),
			 0);
	return m;
}

struct member {
	const struct embeng_model *model;
	const struct embeng_hosts_plan *plan;
	const struct shape *shapes;
	struct embeng_transport transport;
	struct embeng *e;
	unsigned int kinds; /* a bit for each that the handle has */
	int lines;
};

static void check_parts(const struct hosts *h, const struct embeng_hosts_plan *plan, size_t t)
{
	const struct embeng_hosts_table *table = &plan->tables[t];

	ck_assert_uint_eq(h->place.first[t + 1] - h->place.first[t], table->part_count);
	for (size_t i = 0; i < table->part_count; i++) {
		const struct place_part *part = &h->place.parts[h->place.first[t] + i];
		const struct embeng_hosts_part *want = &plan->parts[table->first_part + i];

		ck_assert_uint_eq(part->host, want->host);
		ck_assert_uint_eq(part->first_column, want->first_column);
		ck_assert_uint_eq(part->columns, want->columns);
	}
}

static void compare_with_plan(struct member *m, struct embeng *e)
{
	for (int t = 0; t < count_tables(m->shapes); t++) {
		const struct embeng_hosts_table *table = &m->plan->tables[t];
		const int kind = embeng_table_exchange(e, t);

		m->kinds |= 1u << kind;
		if (!m->shapes[t].ids && !m->shapes[t].length) {
			ck_assert_int_lt(kind, EMBENG_EXCHANGE_ROWS);
			continue;
		}
		ck_assert_int_eq(kind, table->costs[table->chosen].kind);
		if (!table->chosen)
			check_parts(e->hosts, m->plan, (size_t)t);
	}
}

/* The lines that a log gets, each with what the handle tells. */
static void count_line(void *arg, enum embeng_log_level level, const char *text)
{
	static const char *const names[] = {"none", "table", "columns", "rows", "rows+grads"};
	struct member *m = arg;
	char want[64];

	snprintf(want, sizeof(want), "table table_%d: exchange=%s, on ", m->lines,
		 names[embeng_table_exchange(m->e, m->lines)]);
	ck_assert_int_eq(level, EMBENG_LOG_INFO);
	ck_assert_msg(strstr(text, want) == text, "%s", text);
	/* Bytes do not decide about a table that is too large for its host. */
	ck_assert_msg(strstr(text, m->plan->tables[m->lines].too_large
					   ? "it is larger than a host's share"
				   : m->shapes[m->lines].ids || m->shapes[m->lines].length
					   ? " bytes a step on a link, with the next best "
					   : "the model does not tell how large its batches are"),
		      "%s", text);
	m->lines++;
}

static void *run_member(void *arg)
{
	struct member *m = arg;
	struct embeng_group *group = NULL;

	ck_assert_int_eq(
		embeng_group_open(&m->transport,
				  &EMBENG_INIT(embeng_group_options, .deadline_ns = DEADLINE),
				  &group, NULL),
		0);
	ck_assert_int_eq(embeng_open_group(RUN_DEVICE, m->model, group, &m->e, NULL), 0);
	compare_with_plan(m, m->e);
	embeng_log(m->e, count_line, m, EMBENG_LOG_INFO);
	choose_say(m->e->hosts);
	ck_assert_int_eq(m->lines, count_tables(m->shapes));
	embeng_close(m->e);
	embeng_group_close(group);
	return NULL;
}

/* Return: the kinds of exchanges that tables have. */
static unsigned int compare_choices(const struct shape *shapes, uint32_t hosts)
{
	struct embeng_transport transports[HOSTS_MOST];
	struct member members[HOSTS_MOST];
	pthread_t threads[HOSTS_MOST];
	struct embeng_model *m = make_model(shapes, hosts);
	struct embeng_hosts_plan *plan;

	ck_assert_int_eq(embeng_model_plan_hosts(
				 m, &EMBENG_INIT(embeng_hosts_options, .hosts = hosts), &plan),
			 0);
	ck_assert_int_eq(embeng_group_threads(hosts, transports), 0);
	for (uint32_t h = 0; h < hosts; h++) {
		members[h] = (struct member){
			.model = m, .plan = plan, .shapes = shapes, .transport = transports[h]};
		ck_assert_int_eq(pthread_create(&threads[h], NULL, run_member, &members[h]), 0);
	}
	for (uint32_t h = 0; h < hosts; h++)
		pthread_join(threads[h], NULL);
	embeng_hosts_plan_free(plan);
	embeng_model_free(m);
	return members[0].kinds;
}

START_TEST(a_handle_chooses_what_a_plan_does)
{
	unsigned int kinds = 0;

	for (size_t i = 0; i < COUNT(host_counts); i++)
		kinds |= compare_choices(models[_i], host_counts[i]);
	/* The comparison is worth something: one model has several kinds, and the last one gradients. */
	ck_assert_uint_ne(kinds & (1u << EMBENG_EXCHANGE_TABLE | 1u << EMBENG_EXCHANGE_COLUMN), 0);
	ck_assert_uint_ne(kinds & 1u << (_i == (int)COUNT(models) - 1
						 ? EMBENG_EXCHANGE_ROWS_GRADIENTS
						 : EMBENG_EXCHANGE_ROWS),
			  0);
}
END_TEST

/* -- bits ---------------------------------------------------------------- */

/* Exchanges that the tables of a run should have, or 0: any. */
struct wanted {
	const char *device;
	int limits;
	int kinds[RUN_TABLES];
};

#define DEVICE(options) RUN_DEVICE "," options

static const struct wanted wishes[] = {
	{NULL, 1, {0}},
	{DEVICE("exchange:t1=rows,exchange:t3=rows"),
	 0,
	 {EMBENG_EXCHANGE_TABLE, EMBENG_EXCHANGE_ROWS, EMBENG_EXCHANGE_TABLE, EMBENG_EXCHANGE_ROWS,
	  EMBENG_EXCHANGE_TABLE}},
	{DEVICE("exchange=rows,exchange:t1=columns,sharding=div,exchange:t0=table"),
	 0,
	 {EMBENG_EXCHANGE_TABLE, EMBENG_EXCHANGE_COLUMN, EMBENG_EXCHANGE_ROWS, EMBENG_EXCHANGE_ROWS,
	  EMBENG_EXCHANGE_ROWS}},
	{DEVICE("exchange:t2=rows,exchange:t3=rows+grads"),
	 1,
	 {0, 0, EMBENG_EXCHANGE_ROWS, EMBENG_EXCHANGE_ROWS_GRADIENTS, 0}},
};

static _Thread_local const struct wanted *wish;
static const struct wanted *shared_wish;

static void train_all(struct run_host *h)
{
	wish = shared_wish;
	for (int t = 0; t < RUN_TABLES; t++) {
		const int kind = embeng_table_exchange(h->e, t);

		ck_assert_int_gt(kind, EMBENG_EXCHANGE_NONE);
		if (wish->kinds[t])
			ck_assert_int_eq(kind, wish->kinds[t]);
	}
	run_train_all(h);
}

START_TEST(bits_whatever_is_chosen)
{
	struct run kind = {.optimizer = embeng_adagrad(0.1f),
			   .combiner = EMBENG_SQRTN,
			   .weights = 1,
			   .replicas = 4,
			   .steps = 5};

	shared_wish = &wishes[_i];
	kind.device = wishes[_i].device;
	kind.limits = wishes[_i].limits;
	for (size_t i = 0; i < COUNT(host_counts); i++)
		ck_assert_uint_eq(run_compare(&kind, host_counts[i], false, train_all), 0);
	ck_assert_uint_gt(run_compare(&kind, 2, true, train_all), 0);
}
END_TEST

/* -- refusals and lines -------------------------------------------------- */

/* Host 0 has @first, the other one @second. */
static void open_two(const char *first, const char *second, struct run run, int code,
		     const char *words);

static const char *first_device;

static void *open_host(void *arg)
{
	struct run_host *h = arg;
	struct embeng_model *model = run_model(h->run);

	ck_assert_int_eq(embeng_group_open(&h->transport, &h->options, &h->group, NULL), 0);
	run_note(h, embeng_open_group(h->rank ? h->run->device : first_device, model, h->group,
				      &h->e, NULL));
	if (!h->code)
		embeng_close(h->e);
	embeng_group_close(h->group);
	embeng_model_free(model);
	return NULL;
}

static void open_two(const char *first, const char *second, struct run run, int code,
		     const char *words)
{
	struct embeng_transport transports[2];
	struct run_host hosts[2];
	pthread_t threads[2];

	first_device = first;
	run.device = second;
	ck_assert_int_eq(embeng_group_threads(2, transports), 0);
	for (uint32_t i = 0; i < 2; i++) {
		hosts[i] = (struct run_host){.run = &run,
					     .transport = transports[i],
					     .options = EMBENG_INIT(embeng_group_options),
					     .rank = i};
		ck_assert_int_eq(pthread_create(&threads[i], NULL, open_host, &hosts[i]), 0);
	}
	for (uint32_t i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	for (uint32_t i = 0; i < 2; i++) {
		ck_assert_int_eq(hosts[i].code, code);
		ck_assert_msg(strstr(hosts[i].text, words) != NULL, "%s", hosts[i].text);
	}
}

START_TEST(wishes_that_are_refused)
{
	const struct run run = {.optimizer = embeng_rowwise_adagrad(0.1f),
				.combiner = EMBENG_MAX,
				.replicas = 2,
				.mixed = 1};
	static const struct {
		const char *first, *second;
		int code;
		const char *words;
	} cases[] = {
		{DEVICE("exchange:t9=rows"), DEVICE("exchange:t9=rows"), -ENOENT,
		 "exchange:t9=rows names a table that the model does not have"},
		{DEVICE("exchange:t0=rows"), DEVICE("exchange:t0=rows"), -EINVAL,
		 "table t0: the option exchange:t0=rows of the device is not allowed: its "
		 "optimizer takes each gradient by itself"},
		{DEVICE("exchange:t1=columns"), DEVICE("exchange:t1=columns"), -EINVAL,
		 "exchange:t1=columns of the device is not allowed: its optimizer has a slot"},
		{DEVICE("exchange:t1=rows+grads"), DEVICE("exchange:t1=rows+grads"), -EINVAL,
		 "exchange:t1=rows+grads of the device is not allowed: the combiner max"},
		{DEVICE("exchange:t1=rows"), DEVICE("exchange:t1=rows+grads"), -EINVAL,
		 "table t1: the option exchange:t1=rows+grads"},
		{DEVICE("exchange:t1=rows"), RUN_DEVICE, -EPROTO,
		 "host 1 (thread1) names its device with another exchange="},
		{DEVICE("exchange:t1=rows"), DEVICE("exchange:t3=rows"), -EPROTO,
		 "host 1 (thread1) names its device with another exchange="},
		{DEVICE("exchange:t1=rows"), DEVICE("exchange:t1=rows"), 0, ""},
	};

	for (size_t i = 0; i < COUNT(cases); i++)
		open_two(cases[i].first, cases[i].second, run, cases[i].code, cases[i].words);
}
END_TEST

START_TEST(narrow_tables_have_no_columns)
{
	const struct run run = {.optimizer = embeng_sgd(0.1f), .replicas = 2};

	open_two(DEVICE("exchange:t2=columns"), DEVICE("exchange:t2=columns"), run, -EINVAL,
		 "it has fewer than 32 columns");
}
END_TEST

START_TEST(one_host_exchanges_nothing)
{
	const struct run run = {.optimizer = embeng_sgd(0.1f), .replicas = 1};
	struct embeng_model *model = run_model(&run);
	struct embeng *e;

	ck_assert_int_eq(embeng_open(RUN_DEVICE, model, &e, NULL), 0);
	ck_assert_int_eq(embeng_table_exchange(e, 0), EMBENG_EXCHANGE_NONE);
	ck_assert_int_eq(embeng_table_exchange(e, -1), -ENOENT);
	ck_assert_int_eq(embeng_table_exchange(e, RUN_TABLES), -ENOENT);
	ck_assert_int_eq(embeng_table_exchange(NULL, 0), -EINVAL);
	embeng_close(e);
	ck_assert_int_eq(embeng_open(DEVICE("exchange:t0=rows"), model, &e, NULL), -EINVAL);
	embeng_model_free(model);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, a_handle_chooses_what_a_plan_does, 0, (int)COUNT(models));
	tcase_add_loop_test(tcase, bits_whatever_is_chosen, 0, (int)COUNT(wishes));
	tcase_add_test(tcase, wishes_that_are_refused);
	tcase_add_test(tcase, narrow_tables_have_no_columns);
	tcase_add_test(tcase, one_host_exchanges_nothing);
}

int main(void)
{
	return suite_main("hosts_choice", add_tests);
}
