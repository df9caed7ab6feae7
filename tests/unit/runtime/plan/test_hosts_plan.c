// SPDX-License-Identifier: MIT
/*
 * Plans of hosts: parts are the totals in any random model, on any number of hosts; some are worked by
 * hand; and what cannot be planned is refused with a sentence.
 */
#include <math.h>
#include <unistd.h>

#include "embeng/hosts.h"
#include "failing_alloc.h"
#include "random_model.h"

#define MODELS 60
#define HEADER 128 /* each message has one */
#define SEGMENT 24 /* one replica has one in a message */

static struct embeng_hosts_plan *plan_with(const struct embeng_model *m,
					   const struct embeng_hosts_options *o)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);
	struct embeng_hosts_plan *plan = NULL;
	int ret = embeng_model_plan_hosts(m, o, &plan);

	embeng_last_error(&error);
	ck_assert_msg(!ret, "%s", error.text);
	return plan;
}

static struct embeng_hosts_plan *plan_of(const struct embeng_model *m, uint32_t hosts)
{
	return plan_with(m, &EMBENG_INIT(embeng_hosts_options, .hosts = hosts, .zipf = 1.05));
}

static const struct embeng_exchange_cost *chosen_of(const struct embeng_hosts_plan *plan, size_t t)
{
	return &plan->tables[t].costs[plan->tables[t].chosen];
}

/* Bytes of a step are those of the tables with a header for each pair of hosts and phase. */
static void check_bytes(const struct embeng_model *m, const struct embeng_hosts_plan *plan)
{
	uint64_t sent = 0, received = 0, messages = 0, bodies = 0;
	const uint64_t pairs = (uint64_t)plan->hosts * (plan->hosts - 1);
	const uint64_t phases = model_trains(m) && m->feature_count ? 3 : 2;

	for (uint32_t h = 0; h < plan->hosts; h++) {
		sent += plan->each[h].sent;
		received += plan->each[h].received;
		messages += plan->each[h].messages;
	}
	for (size_t t = 0; t < plan->table_count; t++) {
		const struct embeng_exchange_cost *c = chosen_of(plan, t);

		bodies += c->ids + c->forward + c->backward;
	}
	ck_assert_uint_eq(sent, plan->sent);
	ck_assert_uint_eq(received, sent);
	ck_assert_uint_eq(messages, plan->messages);
	ck_assert_uint_eq(sent, bodies + pairs * phases * HEADER +
					plan->replicas * (plan->hosts - 1ull) * phases * SEGMENT);
	ck_assert_uint_ge(messages, pairs * phases);
	ck_assert_uint_le(messages, 2 * pairs * phases);
}

/* A host's memory of tables, and all of a model's tables on all hosts. */
static void check_memory(const struct embeng_model *m, const struct embeng_hosts_plan *plan)
{
	uint64_t tables = 0, want = 0, most = 0;

	for (size_t t = 0; t < m->table_count; t++)
		want += (uint64_t)m->tables[t].rows * model_whole_row_bytes(&m->tables[t]);
	for (uint32_t h = 0; h < plan->hosts; h++) {
		const struct embeng_hosts_host *host = &plan->each[h];
		const uint64_t all = host->table_bytes + host->batch_bytes + host->row_bytes +
				     host->message_bytes;

		tables += host->table_bytes;
		ck_assert_uint_eq(host->message_bytes, host->sent + host->received);
		most = all > most ? all : most;
	}
	ck_assert_uint_eq(tables, want);
	ck_assert_uint_eq(most, plan->most_bytes);
	ck_assert_uint_ge(most, plan->mean_bytes);
}

static void check_parts(const struct embeng_model *m, const struct embeng_hosts_plan *plan)
{
	uint64_t replicas = 0;

	for (size_t t = 0; t < plan->table_count; t++) {
		const struct embeng_hosts_table *table = &plan->tables[t];
		uint32_t columns = 0;

		for (size_t i = 0; i < table->part_count; i++) {
			const struct embeng_hosts_part *part = &plan->parts[table->first_part + i];

			ck_assert_int_eq(part->table, (int)t);
			ck_assert_uint_eq(part->first_column, columns);
			ck_assert_uint_lt(part->host, plan->hosts);
			columns += part->columns;
		}
		ck_assert_int_eq(columns, m->tables[t].dim);
		if (table->whole_because)
			ck_assert_uint_eq(table->part_count, 1);
		ck_assert_uint_le(table->rows, table->ids);
		ck_assert_int_le((int64_t)table->rows, m->tables[t].rows);
		ck_assert(chosen_of(plan, t)->allowed);
	}
	for (uint32_t h = 0; h < plan->hosts; h++)
		replicas += plan->each[h].replicas;
	ck_assert_uint_eq(replicas, plan->replicas);
}

/* The choice is the cheapest, whatever is chosen for other tables. */
static void check_choice(const struct embeng_hosts_plan *plan)
{
	for (size_t t = 0; t < plan->table_count; t++) {
		for (int i = 0; i < EMBENG_EXCHANGE_CHOICES; i++) {
			const struct embeng_exchange_cost *c = &plan->tables[t].costs[i];

			ck_assert(c->allowed == !c->why_not);
			ck_assert(c->balance >= 1.0 - 1e-9);
			if (c->allowed && !plan->tables[t].too_large)
				ck_assert_uint_le(chosen_of(plan, t)->link_bytes, c->link_bytes);
		}
	}
}

START_TEST(parts_are_the_totals)
{
	static const uint32_t hosts[] = {1, 2, 3, 8, 64, 500, 4096};

	for (uint32_t seed = 1; seed <= MODELS; seed++) {
		struct embeng_model *m = random_model(seed);
		struct embeng_hosts_plan *plan = plan_of(m, hosts[_i]);

		check_bytes(m, plan);
		check_memory(m, plan);
		check_parts(m, plan);
		check_choice(plan);
		embeng_hosts_plan_free(plan);
		embeng_model_free(m);
	}
}
END_TEST

static struct embeng_model *model_of(struct embeng_optimizer optimizer, int64_t rows, int64_t dim,
				     size_t tables, uint32_t replicas)
{
	struct embeng_model *m = embeng_model_new();

	for (size_t t = 0; t < tables; t++) {
		struct embeng_table_config c = table_config(NULL);
		struct embeng_feature_config f = feature_config(NULL);

		c.vocabulary_size = rows;
		c.dim = dim;
		c.optimizer = optimizer;
		ck_assert_int_ge(embeng_model_add_table(m, &c), 0);
		f.table = (int)t;
		ck_assert_int_ge(embeng_model_add_feature(m, &f), 0);
	}
	ck_assert_int_eq(embeng_model_set_engine(
				 m, &EMBENG_INIT(embeng_engine_config, .replicas = replicas)),
			 0);
	return m;
}

/* Two hosts with a replica each; the table is on host 0, which host 1 asks. */
START_TEST(by_hand)
{
	struct embeng_model *m = model_of(embeng_adagrad(0.1f), 1000, 8, 1, 2);
	const struct embeng_plan_options batch = EMBENG_INIT(
		embeng_plan_options, .batch_size = 10, .ids_per_sample = 5, .id_type = EMBENG_I32,
		.weights = 1, .step_depth = 2);
	struct embeng_hosts_plan *plan = plan_with(
		m, &EMBENG_INIT(embeng_hosts_options, .hosts = 2, .plan = &batch));
	const struct embeng_exchange_cost *c = plan->tables[0].costs;
	/* 50 ids and weights, 11 offsets, what they are; 10 vectors of 8 columns */
	const uint64_t ids = 50 * 4 + 11 * 8 + 50 * 4 + 32, pooled = 10 * 8 * 4;
	const uint64_t rows = (uint64_t)llround(1000.0 * (1.0 - pow(0.999, 50)));

	ck_assert_int_eq(c[0].kind, EMBENG_EXCHANGE_TABLE);
	ck_assert_uint_eq(c[0].ids, ids);
	ck_assert_uint_eq(c[0].forward, pooled);
	ck_assert_uint_eq(c[0].backward, pooled + 8);
	ck_assert_uint_eq(c[0].link_bytes, ids + 2 * pooled + 8);
	ck_assert(c[0].balance > 2.0 - 1e-9 && c[0].balance < 2.0 + 1e-9);
	ck_assert_uint_eq(plan->tables[0].rows, rows);
	ck_assert_uint_eq(c[1].ids, rows * 4); /* half of each replica's rows are the other's */
	ck_assert_uint_eq(c[1].forward, rows * 32);
	ck_assert_uint_eq(c[1].backward, rows * 32);
	ck_assert_uint_eq(c[2].ids, rows * 4);
	ck_assert_uint_eq(c[2].forward, rows * 32);
	/* half of the ids with a weight each, and the bags that have some with a number and a gradient */
	ck_assert_uint_eq(c[2].backward,
			  2 * (24 + 25 * 8 + (uint64_t)llround(10 * (1 - pow(0.5, 5))) * 36));
	ck_assert_uint_eq(plan->tables[0].chosen, 0);
	ck_assert_uint_eq(plan->each[1].sent, ids + pooled + 8 + 3 * (HEADER + SEGMENT));
	ck_assert_uint_eq(plan->each[0].sent, pooled + 3 * (HEADER + SEGMENT));
	ck_assert_uint_eq(plan->messages, 6);
	ck_assert_uint_eq(plan->each[0].table_bytes, 2 * 1000 * 8 * 4);
	/* three steps in flight: of two replicas at the owner, of one at home */
	ck_assert_uint_eq(plan->each[0].batch_bytes, 3 * (2 * (ids + 2 * pooled) + 2 * pooled));
	ck_assert_uint_eq(plan->each[1].batch_bytes, 3 * 2 * pooled);
	ck_assert(fabs(plan->seconds - (8.0 * (double)(ids + 2 * pooled + 8 + 3 * SEGMENT) / 80e9 +
					3 * 10e-6 + 3 * 1.5e-6)) < 1e-12);
	embeng_hosts_plan_free(plan);
	embeng_model_free(m);
}
END_TEST

/* Numbers of rows are signed: up to 2^31 rows on a host have 4 bytes each, and one row more has 8. */
START_TEST(width_of_a_place)
{
	const int64_t most = (int64_t)1 << 32;
	const struct embeng_plan_options batch = EMBENG_INIT(embeng_plan_options, .batch_size = 10,
							     .ids_per_sample = 5);

	for (int64_t more = 0; more < 2; more++) {
		struct embeng_model *m = model_of(embeng_sgd(0.1f), most + more, 8, 1, 2);
		struct embeng_hosts_plan *plan = plan_with(
			m, &EMBENG_INIT(embeng_hosts_options, .hosts = 2, .plan = &batch));
		const struct embeng_hosts_table *t = &plan->tables[0];

		ck_assert_uint_eq(t->costs[1].ids, t->rows * (more ? 8 : 4));
		ck_assert_uint_eq(t->costs[2].ids, t->rows * (more ? 8 : 4));
		embeng_hosts_plan_free(plan);
		embeng_model_free(m);
	}
}
END_TEST

START_TEST(one_host_sends_nothing)
{
	struct embeng_model *m = model_of(embeng_adam(0.1f), 1000, 64, 3, 4);
	struct embeng_hosts_plan *plan = plan_of(m, 1);

	for (size_t t = 0; t < 3; t++) {
		ck_assert_int_eq(chosen_of(plan, t)->kind, EMBENG_EXCHANGE_NONE);
		ck_assert_uint_eq(chosen_of(plan, t)->link_bytes, 0);
	}
	ck_assert_uint_eq(plan->sent, 0);
	ck_assert_uint_eq(plan->messages, 0);
	ck_assert(plan->seconds == 0.0);
	ck_assert_uint_eq(plan->each[0].table_bytes, 3u * 3 * 1000 * 64 * 4);
	embeng_hosts_plan_free(plan);
	embeng_model_free(m);
}
END_TEST

static enum embeng_exchange_kind choice(int64_t rows, int64_t dim, size_t tables, uint32_t hosts,
					int64_t batch, int64_t ids, double zipf)
{
	struct embeng_model *m = model_of(embeng_adagrad(0.1f), rows, dim, tables, hosts);
	const struct embeng_plan_options sizes = EMBENG_INIT(
		embeng_plan_options, .batch_size = batch, .ids_per_sample = ids);
	struct embeng_hosts_plan *plan = plan_with(
		m,
		&EMBENG_INIT(embeng_hosts_options, .hosts = hosts, .plan = &sizes, .zipf = zipf));
	enum embeng_exchange_kind kind = chosen_of(plan, 0)->kind;

	embeng_hosts_plan_free(plan);
	embeng_model_free(m);
	return kind;
}

/* Long bags: pooled vectors are few. One id a sample: rows repeat. Many hosts: owners are too few. */
START_TEST(the_cheapest_by_workload)
{
	ck_assert_int_eq(choice(1000000, 64, 8, 8, 4096, 20, 0.0), EMBENG_EXCHANGE_TABLE);
	ck_assert_int_eq(choice(1000000, 64, 8, 16, 4096, 20, 0.0), EMBENG_EXCHANGE_COLUMN);
	ck_assert_int_eq(choice(1000000, 64, 8, 1024, 4096, 20, 0.0), EMBENG_EXCHANGE_ROWS);
	ck_assert_int_eq(choice(16000000, 16, 1, 16, 16384, 50, 0.0),
			 EMBENG_EXCHANGE_ROWS_GRADIENTS);
	ck_assert_int_eq(choice(16000000, 32, 1, 64, 16384, 50, 1.05), EMBENG_EXCHANGE_ROWS);
	ck_assert_int_eq(choice(1000000, 128, 1, 8, 4096, 1, 1.05), EMBENG_EXCHANGE_ROWS);
}
END_TEST

/* Ids numbered by popularity: every hosts-th row is even, a run of rows is not. */
START_TEST(balance_of_rows)
{
	struct embeng_model *m = model_of(embeng_adagrad(0.1f), 1000000, 64, 1, 64);
	const struct embeng_plan_options sizes = EMBENG_INIT(
		embeng_plan_options, .batch_size = 4096, .ids_per_sample = 20);
	struct embeng_hosts_plan *plan = plan_with(
		m, &EMBENG_INIT(embeng_hosts_options, .hosts = 64, .plan = &sizes, .zipf = 1.05));

	ck_assert(plan->tables[0].costs[1].balance < 1.02);
	ck_assert(plan->tables[0].balance_div > 10.0);
	embeng_hosts_plan_free(plan);
	embeng_model_free(m);
}
END_TEST

START_TEST(what_is_not_exact)
{
	struct embeng_optimizer alone = embeng_momentum(0.1f), frequent = embeng_sgd(0.1f);
	const struct {
		struct embeng_optimizer optimizer;
		enum embeng_non_finite policy;
		const char *rows, *gradients;
	} cases[] = {
		{embeng_adagrad(0.1f), EMBENG_NON_FINITE_ERROR, NULL, NULL},
		{alone, EMBENG_NON_FINITE_ERROR, "each gradient by itself", NULL},
		{frequent, EMBENG_NON_FINITE_ERROR, "scale_by_frequency", "scale_by_frequency"},
		{embeng_adagrad(0.1f), EMBENG_NON_FINITE_DROP, "not finite", "not finite"},
		{{0}, EMBENG_NON_FINITE_ERROR, NULL, "no gradients"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct embeng_optimizer o = cases[i].optimizer;
		struct embeng_hosts_plan *plan;
		struct embeng_model *m;

		if (i == 1)
			o.use_gradient_accumulation = EMBENG_OFF;
		o.scale_by_frequency = i == 2;
		m = model_of(o, 100, 8, 1, 2);
		ck_assert_int_eq(
			embeng_model_set_engine(m, &EMBENG_INIT(embeng_engine_config, .replicas = 2,
								.non_finite = cases[i].policy)),
			0);
		plan = plan_of(m, 2);
		for (int k = 1; k < 3; k++) {
			const char *want = k == 1 ? cases[i].rows : cases[i].gradients;
			const char *why = plan->tables[0].costs[k].why_not;

			ck_assert_msg(want ? why && strstr(why, want) : !why, "%zu: %s", i,
				      why ? why : "allowed");
		}
		embeng_hosts_plan_free(plan);
		embeng_model_free(m);
	}
}
END_TEST

/* More replicas than a device has: a table has an exchange that spreads its rows, whatever is asked for. */
START_TEST(many_replicas)
{
	struct embeng_optimizer alone = embeng_momentum(0.1f);

	alone.use_gradient_accumulation = EMBENG_OFF;
	for (uint32_t replicas = 64; replicas <= 65; replicas++)
		for (int i = 0; i < 2; i++) {
			struct embeng_model *m = model_of(i ? alone : embeng_adagrad(0.1f), 100, 8,
							  1, replicas);
			struct embeng_hosts_plan *plan = plan_with(
				m, &EMBENG_INIT(embeng_hosts_options, .hosts = 2,
						.exchange = EMBENG_EXCHANGE_TABLE));
			const struct embeng_exchange_cost *c = plan->tables[0].costs;

			ck_assert_int_eq(c[0].allowed, replicas == 64);
			ck_assert(replicas == 64 || strstr(c[0].why_not, "more replicas"));
			ck_assert_int_eq(plan->tables[0].too_large, 0);
			if (replicas == 64)
				ck_assert_uint_eq(plan->tables[0].chosen, 0);
			else if (i)
				ck_assert_uint_eq(plan->tables[0].chosen, 2);
			else
				ck_assert_uint_ge(plan->tables[0].chosen, 1);
			ck_assert_int_eq(chosen_of(plan, 0)->allowed, 1);
			embeng_hosts_plan_free(plan);
			embeng_model_free(m);
		}
}
END_TEST

/* The exchange that is asked for, where a table allows it. */
START_TEST(exchanges_by_name)
{
	struct embeng_optimizer alone = embeng_momentum(0.1f);
	static const enum embeng_exchange_kind kinds[] = {
		EMBENG_EXCHANGE_TABLE, EMBENG_EXCHANGE_COLUMN, EMBENG_EXCHANGE_ROWS,
		EMBENG_EXCHANGE_ROWS_GRADIENTS};
	static const unsigned int chosen[] = {0, 0, 1, 2}, chosen_alone[] = {0, 0, 0, 2};
	struct embeng_model *any = model_of(embeng_sgd(0.1f), 1000, 8, 1, 2), *m;

	alone.use_gradient_accumulation = EMBENG_OFF;
	m = model_of(alone, 10, 64, 1, 2);
	for (size_t i = 0; i < COUNT(kinds); i++) {
		const struct embeng_hosts_options o = EMBENG_INIT(embeng_hosts_options, .hosts = 2,
								  .exchange = kinds[i]);
		struct embeng_hosts_plan *plan = plan_with(any, &o);

		ck_assert_uint_eq(plan->tables[0].chosen, chosen[i]);
		check_bytes(any, plan);
		embeng_hosts_plan_free(plan);
		plan = plan_with(m, &o);
		if (kinds[i] != EMBENG_EXCHANGE_ROWS)
			ck_assert_uint_eq(plan->tables[0].chosen, chosen_alone[i]);
		else
			ck_assert_uint_ne(plan->tables[0].chosen, 1);
		embeng_hosts_plan_free(plan);
	}
	embeng_model_free(any);
	embeng_model_free(m);
}
END_TEST

/* Notes a batch of 200 ids, all of row 7. */
static void note_rows(struct embeng_profile *profile, const struct embeng_model *m)
{
	int64_t ids[200], lengths[10];
	struct embeng_batch *b;
	struct embeng *e;

	for (size_t i = 0; i < 200; i++)
		ids[i] = 7;
	for (size_t i = 0; i < 10; i++)
		lengths[i] = 20;
	ck_assert_int_eq(embeng_open("soft:cores=1,memory=16M", m, &e, NULL), 0);
	b = embeng_batch_new(e, EMBENG_TRAIN, 0);
	ck_assert_int_eq(embeng_batch_ragged(b, 0, EMBENG_I64, ids, 200, lengths, 10, NULL, 0), 0);
	ck_assert_int_eq(embeng_profile_note(profile, b), 1);
	embeng_batch_free(b);
	embeng_close(e);
}

START_TEST(rows_of_a_profile)
{
	char dir[] = "/tmp/embeng-hosts-XXXXXX";
	const struct embeng_profile_options all = EMBENG_INIT(embeng_profile_options, .rate = 1.0f);
	const struct embeng_plan_options sizes = EMBENG_INIT(embeng_plan_options, .batch_size = 10,
							     .ids_per_sample = 20);
	struct embeng_model *m = model_of(embeng_sgd(0.1f), 1000, 8, 1, 2);
	struct embeng_model *other = model_of(embeng_sgd(0.1f), 1001, 8, 1, 2);
	struct embeng_profile *profile;
	struct embeng_hosts_options o = EMBENG_INIT(embeng_hosts_options, .hosts = 2,
						    .plan = &sizes);
	struct embeng_hosts_plan *plan;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert_int_eq(embeng_profile_open(dir, m, &all, &profile, NULL), 0);
	o.profile = profile;
	plan = plan_with(m, &o);
	ck_assert_uint_eq(plan->tables[0].counted, 0);
	ck_assert_uint_eq(plan->tables[0].rows, (uint64_t)llround(1000 * (1 - pow(0.999, 200))));
	embeng_hosts_plan_free(plan);
	note_rows(profile, m);
	plan = plan_with(m, &o);
	ck_assert_uint_eq(plan->tables[0].counted, 1);
	ck_assert_uint_eq(plan->tables[0].rows, 1);
	ck_assert_uint_eq(plan->tables[0].costs[1].forward, 32); /* host 1 has row 7 */
	embeng_hosts_plan_free(plan);
	ASSERT_REFUSED(embeng_model_plan_hosts(other, &o, &plan), EINVAL, "of another model");
	embeng_profile_close(profile);
	ck_assert_int_eq(rmdir(dir), 0);
	embeng_model_free(m);
	embeng_model_free(other);
}
END_TEST

#define REFUSED(change, errno_, ...) \
	do { \
		struct embeng_hosts_options o = EMBENG_INIT(embeng_hosts_options, .hosts = 2); \
\
		change; \
		ASSERT_REFUSED(embeng_model_plan_hosts(m, &o, &plan), errno_, __VA_ARGS__); \
	} while (0)

START_TEST(refusals)
{
	struct embeng_model *m = model_of(embeng_sgd(0.1f), 1000, 8, 1, 1);
	struct embeng_plan_options sizes = EMBENG_INIT(embeng_plan_options, .batch_size = -1);
	struct embeng_hosts_plan *plan = NULL;

	ASSERT_REFUSED(embeng_model_plan_hosts(m, NULL, &plan), EINVAL, "must be given");
	REFUSED(o.hosts = 0, ERANGE, "hosts: 0", "1 to 4096");
	REFUSED(o.hosts = 4097, ERANGE, "4097");
	REFUSED(o.size = 4, EINVAL, "embeng_hosts_options");
	REFUSED(o.link_bits = -1, ERANGE, "link");
	REFUSED(o.link_bits = 0.0 / 0.0, ERANGE, "link");
	REFUSED(o.link_share = 1.1, ERANGE, "up to 1");
	REFUSED(o.message_seconds = 2, ERANGE, "message");
	REFUSED(o.exchange = (enum embeng_exchange_kind)5, EINVAL, "exchange 5");
	REFUSED(o.zipf = 9, ERANGE, "Zipf");
	REFUSED(o.plan = &sizes, ERANGE, "batch of -1");
	ck_assert_ptr_null(plan);
	embeng_model_free(m);
}
END_TEST

START_TEST(more_than_64_bits)
{
	struct embeng_hosts_plan *plan = NULL;
	struct embeng_model *m = model_of(embeng_sgd(0.1f), 1000, UINT32_MAX, 1, UINT32_MAX);
	struct embeng_plan_options sizes = EMBENG_INIT(embeng_plan_options, .batch_size = 1000000,
						       .ids_per_sample = 4000);

	REFUSED(o.plan = &sizes, ERANGE, "table_0", "64 bits");
	embeng_model_free(m);
}
END_TEST

/* Each allocation fails once. */
START_TEST(memory_runs_out)
{
	struct embeng_model *m = random_model(3);
	const struct embeng_hosts_options o = EMBENG_INIT(embeng_hosts_options, .hosts = 9);
	bool failed = true;
	uint32_t nth;

	for (nth = 1; failed; nth++) {
		struct embeng_hosts_plan *plan = NULL;
		int ret;

		scarce_begin(nth);
		ret = embeng_model_plan_hosts(m, &o, &plan);
		failed = scarce_end();
		ck_assert_int_eq(ret, failed ? -ENOMEM : 0);
		ck_assert(failed == !plan);
		embeng_hosts_plan_free(plan);
	}
	ck_assert_uint_gt(nth, 20);
	embeng_model_free(m);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_set_timeout(tcase, 240);
	tcase_add_loop_test(tcase, parts_are_the_totals, 0, 7);
	tcase_add_test(tcase, by_hand);
	tcase_add_test(tcase, width_of_a_place);
	tcase_add_test(tcase, one_host_sends_nothing);
	tcase_add_test(tcase, the_cheapest_by_workload);
	tcase_add_test(tcase, balance_of_rows);
	tcase_add_test(tcase, what_is_not_exact);
	tcase_add_test(tcase, many_replicas);
	tcase_add_test(tcase, exchanges_by_name);
	tcase_add_test(tcase, rows_of_a_profile);
	tcase_add_test(tcase, refusals);
	tcase_add_test(tcase, more_than_64_bits);
	tcase_add_test(tcase, memory_runs_out);
}

int main(void)
{
	return suite_main("hosts_plan", add_tests);
}
