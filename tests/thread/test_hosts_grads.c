// SPDX-License-Identifier: MIT
/*
 * Tables whose rows are spread, and whose owners make the sums of gradients (exchange=rows+grads), have the bits of
 * one process, also if each gradient is taken by itself.
 */
#include "embeng/hosts.h"
#include "hosts_help.h"
#include "suite.h"

#define DEADLINE (20 * 1000 * GROUP_MS)

static const uint32_t host_counts[] = {1, 2, 3, 4, 8};
#define HOST_COUNTS 5
#define OPTIMIZERS 5

static void train_all(struct run_host *h)
{
	for (int t = 0; h->e->hosts && !h->run->mixed && t < RUN_TABLES; t++) {
		const bool max = t == 1 && h->run->combiner == EMBENG_MAX;

		ck_assert_int_eq(embeng_table_exchange(h->e, t) == EMBENG_EXCHANGE_ROWS_GRADIENTS,
				 !max);
	}
	if (run_note(h, run_train(h->run, h->e, 1)) || run_note(h, embeng_flush(h->e, -1)))
		return;
	/* All steps of this host's program are done, but another host may have one to apply. */
	if (h->e->hosts && run_note(h, hosts_enter(h->e)))
		return;
	run_keep_rows(h->run, h->e);
	if (h->e->hosts)
		hosts_leave(h->e);
}

/* Trains on one host and on @count, and returns how many numbers differ. */
static size_t compare_hosts(const struct run *kind, uint32_t count, bool reversed)
{
	struct run_host hosts[RUN_HOSTS_MOST];
	struct run alone = *kind, group = *kind;
	size_t differ;

	group.reversed = reversed;
	run_alone(&alone);
	run_hosts(&group, count, train_all, NULL, 0, DEADLINE, hosts);
	for (uint32_t i = 0; i < count; i++)
		ck_assert_msg(!hosts[i].code, "host %u of %u: %d, %s", i, count, hosts[i].code,
			      hosts[i].text);
	differ = run_differences(&alone, &group);
	run_free_rows(&alone);
	run_free_rows(&group);
	return differ;
}

static struct embeng_optimizer optimizer_of(int i)
{
	struct embeng_optimizer o[OPTIMIZERS] = {embeng_sgd(0.1f), embeng_adagrad(0.1f),
						 embeng_adam(0.01f), embeng_ftrl(0.05f),
						 embeng_rowwise_adagrad(0.1f)};

	return o[i];
}

/* Optimizers and combiners, with weights and without; pipelining, distribution and accumulation by turns. */
START_TEST(bits_of_one_process)
{
	const int optimizer = _i / HOST_COUNTS;
	const uint32_t count = host_counts[_i % HOST_COUNTS];

	for (int form = 0; form < 6; form++) {
		const struct run kind = {
			.device = form & 1 ? RUN_GRADS : RUN_GRADS ",sharding=div",
			.optimizer = optimizer_of(optimizer),
			.combiner = (enum embeng_combiner_name)(form % 3),
			.weights = form >= 3,
			.pipelining = (form + optimizer) % 2,
			.ahead = (form + optimizer) % 2,
			.alone = (form / 2 + optimizer) % 2,
			.replicas = 4,
			.steps = 5,
		};

		ck_assert_uint_eq(compare_hosts(&kind, count, false), 0);
	}
}
END_TEST

/* Each gradient by itself, with all combiners, weighted and not. */
START_TEST(bits_without_accumulation)
{
	for (int form = 0; form < 6; form++) {
		const struct run kind = {
			.device = RUN_GRADS,
			.alone = 1,
			.optimizer = embeng_adagrad(0.1f),
			.combiner = (enum embeng_combiner_name)(form % 3),
			.weights = form >= 3,
			.pipelining = form & 1,
			.ahead = form & 1,
			.replicas = 5,
			.steps = 5,
		};

		ck_assert_uint_eq(compare_hosts(&kind, host_counts[_i], false), 0);
	}
}
END_TEST

/* Ids outside their tables, and a table that is quantized. */
START_TEST(bits_of_policies)
{
	for (int form = 0; form < 4; form++) {
		const struct run kind = {
			.device = RUN_GRADS,
			.policy = (enum embeng_policy)_i,
			.buckets = 9,
			.alone = form & 1,
			.optimizer = embeng_adagrad(0.1f),
			.combiner = form & 1 ? EMBENG_MEAN : EMBENG_SQRTN,
			.weights = form >> 1,
			.replicas = 5,
			.steps = 4,
		};

		ck_assert_uint_eq(compare_hosts(&kind, 3, false), 0);
	}
}
END_TEST

/* Sums, gradients and whole tables in one model; tables with max are whole. */
START_TEST(bits_of_mixed_exchanges)
{
	static const char *const devices[] = {
		RUN_DEVICE ",exchange=rows,exchange:t0=rows+grads,exchange:t2=rows+grads,"
			   "exchange:t4=rows+grads",
		RUN_DEVICE ",exchange:t0=rows+grads,exchange:t1=rows,exchange:t3=rows+grads"};

	for (size_t i = 0; i < sizeof(devices) / sizeof(*devices); i++) {
		const struct run kind = {
			.device = devices[i],
			.mixed = 1,
			.optimizer = embeng_adam(0.01f),
			.combiner = EMBENG_MAX,
			.pipelining = 1,
			.ahead = 1,
			.replicas = 4,
			.steps = 6,
		};

		ck_assert_uint_eq(compare_hosts(&kind, host_counts[_i], false), 0);
	}
}
END_TEST

/* Sums of gradients that are -0 stay so, and so do single ones. */
START_TEST(zeros_keep_their_sign)
{
	const struct run kind = {.device = RUN_GRADS,
				 .tiny = 1,
				 .alone = _i,
				 .optimizer = embeng_sgd(0.5f),
				 .combiner = EMBENG_MEAN,
				 .replicas = 4,
				 .steps = 4};

	ck_assert_uint_eq(compare_hosts(&kind, 3, false), 0);
}
END_TEST

START_TEST(another_order_differs)
{
	const struct run kind = {.device = RUN_GRADS,
				 .alone = _i,
				 .optimizer = embeng_adagrad(0.1f),
				 .replicas = 4,
				 .steps = 6};

	ck_assert_uint_gt(compare_hosts(&kind, 2, true), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, bits_of_one_process, 0, OPTIMIZERS * HOST_COUNTS);
	tcase_add_loop_test(tcase, bits_without_accumulation, 0, HOST_COUNTS);
	tcase_add_loop_test(tcase, bits_of_policies, EMBENG_POLICY_ERROR, EMBENG_POLICY_ZERO + 1);
	tcase_add_loop_test(tcase, bits_of_mixed_exchanges, 0, HOST_COUNTS);
	tcase_add_loop_test(tcase, zeros_keep_their_sign, 0, 2);
	tcase_add_loop_test(tcase, another_order_differs, 0, 2);
}

int main(void)
{
	return suite_main("hosts_grads", add_tests);
}
