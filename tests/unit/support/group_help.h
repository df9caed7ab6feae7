/* SPDX-License-Identifier: MIT */
/* Groups of threads: each rank runs a function, and what it saw is compared afterwards. */
#ifndef EMBENG_TESTS_GROUP_HELP_H
#define EMBENG_TESTS_GROUP_HELP_H

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "group/threads.h"

#define GROUP_RANKS_MOST 8
#define GROUP_MS 1000000ull
#define GROUP_DEADLINE (400 * GROUP_MS)
#define GROUP_SLACK (1000 * GROUP_MS)

/* One host of a test: what it is given, and what it saw. */
struct host {
	struct embeng_transport transport;
	struct embeng_group_options options;
	struct embeng_group *group;
	void (*run)(struct host *h);
	uint32_t rank, ranks;
	int code;      /* the first failure's */
	uint64_t took; /* nanoseconds of the failed call */
	char text[EMBENG_ERROR_TEXT];
};

/* Keeps the first failure of a host. */
static inline int host_note(struct host *h, int ret, const struct embeng_error *error,
			    uint64_t began)
{
	if (!ret || h->code)
		return ret;
	h->code = ret;
	h->took = now_ns() - began;
	snprintf(h->text, sizeof(h->text), "%s", error->text);
	return ret;
}

static inline int host_exchange(struct host *h, const struct embeng_exchange *x,
				struct embeng_bytes *received)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);
	const uint64_t began = now_ns();

	return host_note(h, embeng_group_exchange(h->group, x, received, &error), &error, began);
}

static inline void *host_thread(void *arg)
{
	struct host *h = arg;
	struct embeng_error error = EMBENG_INIT(embeng_error);
	const uint64_t began = now_ns();

	if (host_note(h, embeng_group_open(&h->transport, &h->options, &h->group, &error), &error,
		      began))
		return NULL;
	h->run(h);
	embeng_group_close(h->group);
	return NULL;
}

/* Runs @ranks hosts, each over a transport that is given. */
static inline void hosts_run_over(struct host *hosts, const struct embeng_transport *transports,
				  uint32_t ranks, void (*run)(struct host *h),
				  const struct embeng_group_options *options)
{
	pthread_t threads[GROUP_RANKS_MOST];

	for (uint32_t rank = 0; rank < ranks; rank++) {
		hosts[rank] = (struct host){
			.transport = transports[rank],
			.options = *options,
			.run = run,
			.rank = rank,
			.ranks = ranks,
		};
		ck_assert_int_eq(pthread_create(&threads[rank], NULL, host_thread, &hosts[rank]),
				 0);
	}
	for (uint32_t rank = 0; rank < ranks; rank++)
		pthread_join(threads[rank], NULL);
}

/* Runs @ranks hosts, but for @absent, which closes its transport at the end. */
static inline void hosts_run(struct host *hosts, uint32_t ranks, void (*run)(struct host *h),
			     const struct thread_fault *faults, size_t fault_count, uint32_t absent)
{
	struct embeng_transport transports[GROUP_RANKS_MOST];
	pthread_t threads[GROUP_RANKS_MOST];

	ck_assert_int_eq(threads_make(ranks, faults, fault_count, transports), 0);
	for (uint32_t rank = 0; rank < ranks; rank++) {
		hosts[rank] = (struct host){
			.transport = transports[rank],
			.options = EMBENG_INIT(embeng_group_options, .deadline_ns = GROUP_DEADLINE,
					       .piece_bytes = 4096),
			.run = run,
			.rank = rank,
			.ranks = ranks,
		};
		if (rank != absent)
			ck_assert_int_eq(
				pthread_create(&threads[rank], NULL, host_thread, &hosts[rank]), 0);
	}
	for (uint32_t rank = 0; rank < ranks; rank++) {
		if (rank != absent)
			pthread_join(threads[rank], NULL);
		else
			transports[rank].close(transports[rank].self);
	}
}

#define NOBODY UINT32_MAX

/* A sentence without the tenths of a second by which a busy machine was late: "for 0.6 s" becomes "for 0.4 s". */
static inline const char *host_sentence(const char *text, char to[static EMBENG_ERROR_TEXT])
{
	char *at;

	snprintf(to, EMBENG_ERROR_TEXT, "%s", text);
	at = strstr(to, " for 0.");
	if (at && at[7] > '4' && at[7] <= '9')
		at[7] = '4';
	return to;
}

/* All hosts but @but saw one sentence, with @words in it, in time. */
static inline void hosts_agree(const struct host *hosts, uint32_t ranks, uint32_t but, int code,
			       const char *words)
{
	const struct host *first = &hosts[but == 0];
	char sentence[EMBENG_ERROR_TEXT];

	for (uint32_t rank = 0; rank < ranks; rank++) {
		const struct host *h = &hosts[rank];

		if (rank == but)
			continue;
		ck_assert_msg(h->code == code, "rank %u: %d, %s", rank, h->code, h->text);
		ck_assert_str_eq(h->text, first->text);
		ck_assert_msg(strstr(host_sentence(h->text, sentence), words) != NULL,
			      "rank %u: %s", rank, h->text);
		ck_assert_uint_lt(h->took, GROUP_DEADLINE + GROUP_SLACK);
	}
}

#endif
