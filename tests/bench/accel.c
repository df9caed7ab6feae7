// SPDX-License-Identifier: MIT
/*
 * Measures how long it takes to submit NOPs to a device behind the driver and to see them complete,
 * by ioctl and through the mapped ring. The thread is pinned to a processor. In a virtual machine
 * without hardware virtualization only the ratios mean something.
 * usage: tests/vm/run -- build/tests/bench/accel [COMMANDS A RUN]
 */
#define _GNU_SOURCE
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "accel.h"
#include "bench.h"

#define RUNS 7
#define ENTRIES 256

enum way { VALIDATED, POLLED, INTERRUPTED, WAYS };

static const char *const names[WAYS] = {
	"validated submit, wait",
	"mapped, polled",
	"mapped, by interrupt",
};

static int fd;

static void submit(struct ring *ring, const struct embeng_cmd *cmds, uint32_t count)
{
	struct embeng_accel_submit arg = {.queue = ring->made.queue,
					  .count = count,
					  .stride = sizeof(cmds[0]),
					  .commands = (uintptr_t)cmds,
					  .cq_head = ring->cq_head};

	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_SUBMIT, &arg), 0);
}

/* One doorbell for all of them. */
static void write_ring(struct ring *ring, const struct embeng_cmd *cmds, uint32_t count)
{
	const struct embeng_queue_layout *layout = &ring->made.layout;

	for (uint32_t k = 0; k < count; k++) {
		uint32_t slot = ring->sq_tail++ & (layout->sq_entries - 1);

		memcpy(ring->memory + layout->sq + slot * sizeof(cmds[k]), &cmds[k],
		       sizeof(cmds[k]));
	}
	embeng_doorbell_tail(&ring->doorbell->sq_tail, ring->sq_tail);
}

static uint32_t unread(const struct ring *ring)
{
	return embeng_observe_cq_tail(&accel_header(ring)->cq_tail) - ring->cq_head;
}

/* From handing @count commands over until all are seen done. */
static void round_trip(struct ring *ring, enum way way, const struct embeng_cmd *cmds,
		       uint32_t count)
{
	if (way == VALIDATED)
		submit(ring, cmds, count);
	else
		write_ring(ring, cmds, count);
	if (way == POLLED)
		while (unread(ring) < count)
			;
	else if (way == VALIDATED || unread(ring) < count)
		ck_assert_int_eq(accel_wait(fd, ring, count), 0);
	ck_assert_uint_ge(unread(ring), count);
	ring->cq_head += count;
	if (ring->doorbell)
		embeng_doorbell_cq_head(&ring->doorbell->cq_head, ring->cq_head);
}

static struct ring make_ring(enum way way)
{
	struct ring ring = {.made = accel_queue(EMBENG_QUEUE_TRANSFER,
						way == VALIDATED ? 0 : EMBENG_ACCEL_QUEUE_MAPPED)};

	ring.made.sq_entries = ENTRIES;
	ring.made.cq_entries = ENTRIES;
	ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_QUEUE_CREATE, &ring.made), 0);
	ring.memory = accel_map(fd, ring.made.ring, ring.made.layout.size,
				way == VALIDATED ? PROT_READ : PROT_READ | PROT_WRITE);
	if (way != VALIDATED)
		ring.doorbell = accel_map(fd, ring.made.doorbell, sizeof(*ring.doorbell),
					  PROT_READ | PROT_WRITE);
	return ring;
}

/* Microseconds a round trip, after one that is not counted. */
static struct spread measure(enum way way, uint32_t batch, uint32_t commands)
{
	struct embeng_cmd cmds[64] = {{.opcode = EMBENG_OP_NOP}};
	struct ring ring = make_ring(way);
	uint32_t trips = commands / batch;
	double us[RUNS];

	round_trip(&ring, way, cmds, batch);
	for (int run = 0; run < RUNS; run++) {
		double begun = now_ms();

		for (uint32_t k = 0; k < trips; k++)
			round_trip(&ring, way, cmds, batch);
		us[run] = (now_ms() - begun) * 1e3 / trips;
	}
	accel_ring_close(fd, &ring);
	return spread_of(us, RUNS);
}

/* A call that asks how large an answer would be. */
static struct spread measure_call(uint32_t calls)
{
	double us[RUNS];

	for (int run = 0; run < RUNS; run++) {
		double begun = now_ms();

		for (uint32_t k = 0; k < calls; k++) {
			struct embeng_accel_query arg = {.what = EMBENG_ACCEL_QUERY_DEVICE};

			ck_assert_int_eq(accel_call(fd, DRM_IOCTL_EMBENG_QUERY, &arg), 0);
		}
		us[run] = (now_ms() - begun) * 1e3 / calls;
	}
	return spread_of(us, RUNS);
}

static void print(const char *what, uint32_t batch, struct spread us, double call)
{
	printf("%-24s %5u  %9.2f /%9.2f /%9.2f  %8.2f / %.2f / %.2f  %10.0f\n", what, batch, us.min,
	       us.median, us.max, us.min / call, us.median / call, us.max / call,
	       batch * 1e6 / us.median);
	fflush(stdout);
}

/* The emulator's threads keep the other processor. */
static void pin(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		perror("not pinned");
}

static uint32_t commands = 4096;

/* A benchmark in a Check test: accel_open() and the like assert, which Check allows only there. */
START_TEST(bench)
{
	static const uint32_t batches[] = {1, 8, 64};
	struct spread call;

	pin();
	fd = accel_open();
	accel_context(fd);
	call = measure_call(commands);
	printf("%d runs of %u commands; min / median / max\n", RUNS, commands);
	printf("%-24s %5s  %-31s  %-24s %s\n", "", "batch", "us until all are done",
	       "in empty ioctls", "commands/s");
	print("empty ioctl", 1, call, call.median);
	for (enum way way = VALIDATED; way < WAYS; way++)
		for (size_t k = 0; k < sizeof(batches) / sizeof(batches[0]); k++)
			print(names[way], batches[k], measure(way, batches[k], commands),
			      call.median);
	close(fd);
}
END_TEST

int main(int argc, char **argv)
{
	Suite *suite = suite_create("bench-accel");
	TCase *tcase = tcase_create("bench");
	SRunner *runner;
	int failed;

	if (argc > 1)
		commands = (uint32_t)strtoul(argv[1], NULL, 0);
	if (commands < 64) {
		fprintf(stderr, "usage: bench-accel [COMMANDS A RUN, from 64]\n");
		return 2;
	}
	tcase_add_test(tcase, bench);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_set_fork_status(runner, CK_NOFORK);
	srunner_run_all(runner, CK_SILENT);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
