// SPDX-License-Identifier: MIT
/*
 * A host of a group, started by a launcher: makes exchanges, checks every byte, and fails as it is told.
 *
 * usage: hosts TRANSPORT STEPS [FAULT RANK STEP]
 *
 * FAULT is kill, stop, leave, skip or slow. Prints one line: "rank R of N: " and "all bytes are right" or the
 * sentence of the error, with the seconds that the failed call took.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "embeng/group.h"
#include "stop.h"

#define RANKS_MOST 64
#define BYTES_MOST 300000
#define DEADLINE_NS 3000000000u

struct plan {
	const char *fault;
	uint32_t rank;
	uint64_t step, steps;
};

static double read_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static uint64_t length_of(uint64_t step, uint32_t from, uint32_t to)
{
	static const uint64_t lengths[] = {0, 1, 3968, 3969, 70000, BYTES_MOST};

	return lengths[(step * 5 + from * 3 + to) % 6];
}

static unsigned char byte_of(uint64_t step, uint32_t from, uint32_t to, uint64_t i)
{
	return (unsigned char)(step * 31 + from * 7 + to * 3 + i * 13 + i / 251);
}

static void fill_bytes(const struct embeng_group *g, uint64_t step, unsigned char *room,
		       struct embeng_bytes *send)
{
	const uint32_t rank = embeng_group_rank(g);

	for (uint32_t to = 0; to < embeng_group_ranks(g); to++) {
		send[to] = (struct embeng_bytes){room, length_of(step, rank, to)};
		for (uint64_t i = 0; i < send[to].bytes; i++)
			room[i] = byte_of(step, rank, to, i);
		room += send[to].bytes;
	}
}

static int check_bytes(const struct embeng_group *g, uint64_t step, const struct embeng_bytes *came)
{
	const uint32_t rank = embeng_group_rank(g);

	for (uint32_t from = 0; from < embeng_group_ranks(g); from++) {
		const unsigned char *bytes = came[from].data;

		if (came[from].bytes != length_of(step, from, rank))
			return -EBADMSG;
		for (uint64_t i = 0; i < came[from].bytes; i++) {
			if (bytes[i] != byte_of(step, from, rank, i))
				return -EBADMSG;
		}
	}
	return 0;
}

/* Returns true if the steps end here without a failure. */
static int meet_fault(const struct embeng_group *g, const struct plan *plan, uint64_t *step)
{
	if (!plan->fault || plan->rank != embeng_group_rank(g) || plan->step != *step)
		return 0;
	if (!strcmp(plan->fault, "kill"))
		raise(SIGKILL);
	if (!strcmp(plan->fault, "stop"))
		stop_process();
	if (!strcmp(plan->fault, "slow"))
		usleep(1500000);
	*step += !strcmp(plan->fault, "skip");
	return !strcmp(plan->fault, "leave");
}

static int run_steps(struct embeng_group *g, const struct plan *plan, struct embeng_error *error,
		     double *took)
{
	static struct embeng_bytes send[RANKS_MOST], came[RANKS_MOST];
	unsigned char *room = malloc((size_t)embeng_group_ranks(g) * BYTES_MOST);
	int ret = room ? 0 : -ENOMEM;

	for (uint64_t step = 1; step <= plan->steps && !ret; step++) {
		struct embeng_exchange x = {
			.size = sizeof(x), .phase = "rows", .step = step, .model = 7, .send = send};
		const double began = read_seconds();

		if (meet_fault(g, plan, &x.step))
			break;
		fill_bytes(g, step, room, send);
		ret = embeng_group_exchange(g, &x, came, error);
		*took = read_seconds() - began;
		if (!ret && check_bytes(g, step, came)) {
			ret = -EBADMSG;
			snprintf(error->text, sizeof(error->text), "wrong bytes in step %llu",
				 (unsigned long long)step);
		}
	}
	free(room);
	return ret;
}

/* MPI is the parent's, and the exit of a child must leave it alone. Returns how many of some children failed. */
static int count_bad_children(void)
{
	int bad = 0, status;

	for (int i = 0; i < 20 && !bad; i++) {
		const pid_t child = fork();

		if (!child) {
			alarm(5); /* it would wait for ever for MPI */
			exit(0);
		}
		bad += child < 0 || waitpid(child, &status, 0) != child || status;
	}
	return bad;
}

static void say_line(uint32_t rank, uint32_t ranks, int ret, double took, const char *text)
{
	char line[700];
	int length;

	if (ret)
		length = snprintf(line, sizeof(line), "rank %u of %u: %d after %.1f s: %s\n", rank,
				  ranks, ret, took, text);
	else
		length = snprintf(line, sizeof(line), "rank %u of %u: all bytes are right\n", rank,
				  ranks);
	if (write(1, line, (size_t)length) != length)
		_exit(4);
}

int main(int argc, char **argv)
{
	const struct embeng_group_options options = EMBENG_INIT(
		embeng_group_options, .deadline_ns = DEADLINE_NS, .piece_bytes = 65536);
	struct embeng_error error = EMBENG_INIT(embeng_error);
	struct embeng_transport transport;
	struct plan plan = {0};
	struct embeng_group *g;
	double took = 0;
	uint32_t rank = 0, ranks = 1;
	int ret;

	if (argc < 3)
		return 2;
	plan.steps = strtoull(argv[2], NULL, 10);
	if (argc == 6) {
		plan.fault = argv[3];
		plan.rank = (uint32_t)strtoul(argv[4], NULL, 10);
		plan.step = strtoull(argv[5], NULL, 10);
	}
	ret = embeng_group_transport(argv[1], &transport, &error);
	if (!ret) {
		rank = transport.rank;
		ranks = transport.ranks;
		ret = embeng_group_open(&transport, &options, &g, &error);
	}
	if (!ret) {
		ret = run_steps(g, &plan, &error, &took);
		if (!ret && count_bad_children()) {
			ret = -ECHILD;
			snprintf(error.text, sizeof(error.text), "a child did not exit well");
		}
		embeng_group_close(g);
	}
	say_line(rank, ranks, ret, took, error.text);
	/* A launcher kills all others as soon as one fails: let them say their lines, too. */
	if (ret)
		sleep(2);
	return ret ? 3 : 0;
}
