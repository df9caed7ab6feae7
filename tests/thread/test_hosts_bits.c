// SPDX-License-Identifier: MIT
/* A handle over any number of hosts gives the bits of one process. */
#include "compare_help.h"
#include "sample.h"
#include "suite.h"

/* Each table is spread that can be, and each row is in one part, which hosts_locate() tells. */
static void check_spread(const struct hosts *h, const struct run *run)
{
	for (int t = 0; t < RUN_TABLES; t++) {
		int64_t rows = 0, local;
		uint32_t host;

		if (run->mixed && t % 2 == 0) {
			ck_assert_int_ne(h->place.parts[h->place.first[t]].kind, PLACE_ROWS);
			continue;
		}

		for (size_t i = h->place.first[t]; i < h->place.first[t + 1]; i++) {
			const struct place_part *part = &h->place.parts[i];

			ck_assert_int_eq(part->kind, PLACE_ROWS);
			rows += part->rows.count;
			for (int64_t k = 0; k < part->rows.count; k++) {
				ck_assert_int_eq(
					hosts_locate(h, t, part->rows.first + k * part->rows.stride,
						     &host, &local),
					0);
				ck_assert_uint_eq(host, part->host);
				ck_assert_int_eq(local, k);
			}
		}
		ck_assert_int_eq(rows, run_rows[t]);
		ck_assert_int_eq(hosts_locate(h, t, rows, &host, &local), -ERANGE);
	}
}

/* The table of 96 columns is cut, so that its parts are put together; every host has a part of some. */
static void check_placement(const struct hosts *h, const struct run *run)
{
	uint32_t parts = 0;

	if (h->wish.exchange == EMBENG_EXCHANGE_ROWS) {
		check_spread(h, run);
		return;
	}
	if (h->wish.exchange == EMBENG_EXCHANGE_TABLE) {
		ck_assert_uint_eq(h->place.part_count, RUN_TABLES);
		return;
	}
	if (!h->wish.exchange && run->optimizer.kind == EMBENG_ROWWISE_ADAGRAD) {
		ck_assert_int_eq(h->place.parts[h->place.first[1]].kind,
				 run->combiner == EMBENG_MAX ? PLACE_TABLE : PLACE_ROWS);
		return;
	}
	ck_assert_int_eq(h->place.parts[h->place.first[1]].kind, PLACE_COLUMN);
	ck_assert_uint_ge(h->place.first[2] - h->place.first[1],
			  h->wish.exchange == EMBENG_EXCHANGE_COLUMN ? h->hosts : 2);
	for (int t = 0; t < RUN_TABLES; t++)
		parts += hosts_part(h, t, h->rank) != NULL;
	ck_assert_uint_ge(parts, h->hosts <= 4);
}

static void train_all(struct run_host *h)
{
	if (h->e->hosts)
		check_placement(h->e->hosts, h->run);
	run_train_all(h);
}

/* Optimizers, each with several combiners; weights, which max does not take, and pipelining by turns. */
START_TEST(bits_of_one_process)
{
	const int optimizer = _i / RUN_HOST_COUNTS;
	const uint32_t count = run_host_count(_i);

	for (int form = 0; form < 4; form++) {
		const struct run kind = {
			.optimizer = run_optimizer(optimizer),
			.combiner = (enum embeng_combiner_name)((optimizer + form / 2) %
								(form & 1 ? 3 : 4)),
			.weights = form & 1,
			.pipelining = form >> 1,
			.ahead = form >> 1,
			.replicas = 4,
			.steps = 6,
		};

		ck_assert_uint_eq(run_compare(&kind, count, false, train_all), 0);
	}
}
END_TEST

/* Nobody asks for it: the largest table cannot be cut, and its rows are spread. */
START_TEST(bits_of_a_table_too_large_to_be_whole)
{
	for (int combiner = EMBENG_MEAN; combiner <= EMBENG_MAX; combiner++) {
		const struct run kind = {
			.optimizer = embeng_rowwise_adagrad(0.1f),
			.combiner = (enum embeng_combiner_name)combiner,
			.replicas = 4,
			.steps = 6,
		};

		ck_assert_uint_eq(run_compare(&kind, run_host_count(_i), false, train_all), 0);
	}
}
END_TEST

/* Rows are spread: each optimizer and combiner, weights, pipelining and distribution by turns. */
START_TEST(bits_of_spread_rows)
{
	const int optimizer = _i / RUN_HOST_COUNTS;
	const uint32_t count = run_host_count(_i);

	for (int form = 0; form < 4; form++) {
		const struct run kind = {
			.device = form & 1 ? RUN_ROWS : RUN_ROWS ",sharding=div",
			.optimizer = run_optimizer(optimizer),
			.combiner = (enum embeng_combiner_name)form,
			.weights = form != 3 && (optimizer + form) % 2,
			.pipelining = form >> 1,
			.ahead = form >> 1,
			.replicas = 4,
			.steps = 6,
		};

		ck_assert_uint_eq(run_compare(&kind, count, false, train_all), 0);
	}
}
END_TEST

/* Ids outside their tables, and a table that is quantized, whole, cut and spread. */
START_TEST(bits_of_policies)
{
	static const char *const devices[] = {RUN_DEVICE, RUN_DEVICE ",exchange=columns",
					      RUN_DEVICE ",exchange=table", RUN_ROWS};

	for (size_t i = 0; i < sizeof(devices) / sizeof(*devices); i++) {
		const struct run kind = {
			.device = devices[i],
			.policy = (enum embeng_policy)_i,
			.buckets = 9,
			.optimizer = embeng_adagrad(0.1f),
			.weights = 1,
			.replicas = 5,
			.steps = 4,
		};

		ck_assert_uint_eq(run_compare(&kind, 3, false, train_all), 0);
	}
}
END_TEST

/* Some tables are spread, and others are not: an owner is given sums of those and gradients of these. */
START_TEST(bits_of_mixed_tables)
{
	const struct run kind = {
		.device = RUN_ROWS,
		.mixed = 1,
		.optimizer = embeng_adagrad(0.1f),
		.combiner = EMBENG_SQRTN,
		.weights = 1,
		.pipelining = 1,
		.ahead = 1,
		.replicas = 4,
		.steps = 6,
	};

	ck_assert_uint_eq(run_compare(&kind, run_host_count(_i), false, train_all), 0);
}
END_TEST

/* Sums of gradients that are -0 stay so, where occurrences would begin at +0. */
START_TEST(zeros_of_spread_rows_keep_their_sign)
{
	const struct run kind = {.device = RUN_ROWS,
				 .tiny = 1,
				 .optimizer = embeng_sgd(0.5f),
				 .combiner = EMBENG_MEAN,
				 .replicas = 4,
				 .steps = 4};

	ck_assert_uint_eq(run_compare(&kind, 3, false, train_all), 0);
}
END_TEST

START_TEST(another_order_of_spread_rows_differs)
{
	const struct run kind = {
		.device = RUN_ROWS, .optimizer = embeng_adagrad(0.1f), .replicas = 4, .steps = 6};

	ck_assert_uint_gt(run_compare(&kind, 2, true, train_all), 0);
}
END_TEST

/* Replicas in another order are added in another order: the comparison sees that. */
START_TEST(another_order_differs)
{
	const struct run kind = {.optimizer = embeng_adagrad(0.1f), .replicas = 4, .steps = 6};

	ck_assert_uint_gt(run_compare(&kind, 2, true, train_all), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_set_timeout(tcase, 60);
	add_sampled_loop(tcase, bits_of_one_process, 0, 4 * RUN_HOST_COUNTS);
	tcase_add_loop_test(tcase, bits_of_a_table_too_large_to_be_whole, 0, RUN_HOST_COUNTS);
	tcase_add_test(tcase, another_order_differs);
	add_sampled_loop(tcase, bits_of_spread_rows, 0, 5 * RUN_HOST_COUNTS);
	tcase_add_loop_test(tcase, bits_of_policies, EMBENG_POLICY_ERROR, EMBENG_POLICY_ZERO + 1);
	tcase_add_loop_test(tcase, bits_of_mixed_tables, 0, RUN_HOST_COUNTS);
	tcase_add_test(tcase, zeros_of_spread_rows_keep_their_sign);
	tcase_add_test(tcase, another_order_of_spread_rows_differs);
}

int main(void)
{
	return suite_main("hosts_bits", add_tests);
}
