// SPDX-License-Identifier: MIT
/* A handle over any number of hosts gives the bits of one process. */
#include "hosts_help.h"
#include "suite.h"

#define DEADLINE (20 * 1000 * GROUP_MS)

/* The table of 96 columns is cut, so that its parts are put together; every host has a part of some. */
static void check_placement(const struct hosts *h)
{
	uint32_t parts = 0;

	ck_assert_uint_ge(h->place.first[2] - h->place.first[1], 2);
	for (int t = 0; t < RUN_TABLES; t++)
		parts += hosts_part(h, t, h->rank) != NULL;
	ck_assert_uint_ge(parts, h->hosts <= 4);
}

static void train_all(struct run_host *h)
{
	if (h->e->hosts)
		check_placement(h->e->hosts);
	if (run_note(h, run_train(h->run, h->e, 1)) || run_note(h, embeng_flush(h->e, -1)))
		return;
	/* All steps of this host's program are done, but another host may have one to apply. */
	if (h->e->hosts && run_note(h, hosts_enter(h->e)))
		return;
	run_keep_rows(h->run, h->e);
	if (h->e->hosts)
		hosts_leave(h->e);
}

static const uint32_t host_counts[] = {1, 2, 3, 4, 8};
#define HOST_COUNTS 5

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
	struct embeng_optimizer o[] = {embeng_sgd(0.1f), embeng_adagrad(0.1f), embeng_adam(0.01f),
				       embeng_ftrl(0.05f)};

	return o[i];
}

/* Optimizers, each with several combiners; weights, which max does not take, and pipelining by turns. */
START_TEST(bits_of_one_process)
{
	const int optimizer = _i / HOST_COUNTS;
	const uint32_t count = host_counts[_i % HOST_COUNTS];

	for (int form = 0; form < 4; form++) {
		const struct run kind = {
			.optimizer = optimizer_of(optimizer),
			.combiner = (enum embeng_combiner_name)((optimizer + form / 2) %
								(form & 1 ? 3 : 4)),
			.weights = form & 1,
			.pipelining = form >> 1,
			.ahead = form >> 1,
			.replicas = 4,
			.steps = 6,
		};

		ck_assert_uint_eq(compare_hosts(&kind, count, false), 0);
	}
}
END_TEST

/* Replicas in another order are added in another order: the comparison sees that. */
START_TEST(another_order_differs)
{
	const struct run kind = {.optimizer = embeng_adagrad(0.1f), .replicas = 4, .steps = 6};

	ck_assert_uint_gt(compare_hosts(&kind, 2, true), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, bits_of_one_process, 0, 4 * HOST_COUNTS);
	tcase_add_test(tcase, another_order_differs);
}

int main(void)
{
	return suite_main("hosts_bits", add_tests);
}
