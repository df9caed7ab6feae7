// SPDX-License-Identifier: MIT
/*
 * Measures round trips between two processors: of a cache line, and of threads that sleep until
 * they are woken. They are lower limits for the time of a small command.
 *
 * The second thread lives for one measurement.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../frame/machine.h"
#include "limits.h"

/**
 * struct pair - two words, a cache line and the one that comes with it apart
 * @sleeps: a thread that waits sleeps until it is woken
 */
struct pair {
	_Alignas(128) uint32_t ping;
	_Alignas(128) uint32_t pong;
	_Alignas(128) uint32_t rounds;
	int cpu;
	bool sleeps;
};

/* Rounds before others are let run: many times what an answer from a running thread takes. */
#define SPINS 10000

static void await_word(struct pair *p, uint32_t *word, uint32_t value)
{
	uint32_t seen, spins = 0;

	while ((seen = __atomic_load_n(word, __ATOMIC_ACQUIRE)) != value) {
		if (p->sleeps)
			syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
		else if (++spins > SPINS)
			sched_yield();
	}
}

static void set_word(struct pair *p, uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
	if (p->sleeps)
		syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void *answer_pings(void *arg)
{
	struct pair *p = arg;

	machine_pin(&p->cpu, 1);
	for (uint32_t i = 1; i <= p->rounds; i++) {
		await_word(p, &p->ping, i);
		set_word(p, &p->pong, i);
	}
	return NULL;
}

static int round_trips(bool sleeps, const int cpus[2], int runs, uint32_t trips, struct spread *us)
{
	struct pair p = {.rounds = trips * (uint32_t)(runs + 1), .cpu = cpus[1], .sleeps = sleeps};
	double took[RUNS_MOST + 1];
	uint32_t i = 0;
	pthread_t other;
	int err = pthread_create(&other, NULL, answer_pings, &p);

	if (err)
		return -err;
	for (int run = 0; run <= runs; run++) {
		double began = now_ms();

		for (uint32_t k = 0; k < trips; k++) {
			set_word(&p, &p.ping, ++i);
			await_word(&p, &p.pong, i);
		}
		took[run] = (now_ms() - began) * 1e3 / trips;
	}
	pthread_join(other, NULL);
	*us = spread_of(took + 1, runs);
	return 0;
}

int bench_latency_measure(struct bench_limits *l, const int cpus[2], int runs, double effort)
{
	int err = round_trips(false, cpus, runs, (uint32_t)(100000 * effort) + 10,
			      &l->cache_line_us);

	return err ? err
		   : round_trips(true, cpus, runs, (uint32_t)(5000 * effort) + 10, &l->futex_us);
}
