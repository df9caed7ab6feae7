/* SPDX-License-Identifier: MIT */
/* Compares what hosts learn with what one process does, for tests of every way to place tables. */
#ifndef EMBENG_TESTS_COMPARE_HELP_H
#define EMBENG_TESTS_COMPARE_HELP_H

#include "hosts_help.h"

#define RUN_DEADLINE (20 * 1000 * GROUP_MS)
#define RUN_HOST_COUNTS 5
#define RUN_OPTIMIZERS 5

static inline uint32_t run_host_count(int i)
{
	static const uint32_t counts[RUN_HOST_COUNTS] = {1, 2, 3, 4, 8};

	return counts[i % RUN_HOST_COUNTS];
}

static inline struct embeng_optimizer run_optimizer(int i)
{
	struct embeng_optimizer o[RUN_OPTIMIZERS] = {embeng_sgd(0.1f), embeng_adagrad(0.1f),
						     embeng_adam(0.01f), embeng_ftrl(0.05f),
						     embeng_rowwise_adagrad(0.1f)};

	return o[i];
}

/* Ends the training of one process or of one host, and keeps the rows. */
static inline void run_end(struct run_host *h)
{
	if (h->code || run_note(h, embeng_flush(h->e, -1)))
		return;
	/* All steps of this host's program are done, but another host may have one to apply. */
	if (h->e->hosts && run_note(h, hosts_enter(h->e)))
		return;
	run_keep_rows(h->run, h->e);
	if (h->e->hosts)
		hosts_leave(h->e);
}

static inline void run_train_all(struct run_host *h)
{
	run_note(h, run_train(h->run, h->e, 1));
	run_end(h);
}

/* Trains on one host by itself, and on @count hosts by @body. Return: how many numbers differ. */
static inline size_t run_compare(const struct run *kind, uint32_t count, bool reversed,
				 void (*body)(struct run_host *h))
{
	struct run_host hosts[RUN_HOSTS_MOST];
	struct run alone = *kind, group = *kind;
	size_t differ;

	group.reversed = reversed;
	run_alone(&alone);
	run_hosts(&group, count, body, NULL, 0, RUN_DEADLINE, hosts);
	for (uint32_t i = 0; i < count; i++)
		ck_assert_msg(!hosts[i].code, "host %u of %u: %d, %s", i, count, hosts[i].code,
			      hosts[i].text);
	differ = run_differences(&alone, &group);
	run_free_rows(&alone);
	run_free_rows(&group);
	return differ;
}

#endif
