// SPDX-License-Identifier: MIT
/*
 * Each call, once for each allocation and each copy on its way that can fail: a clean errno,
 * outputs as they were, nothing left behind, and the same call then works. The rest fails by
 * chance: what the driver does at probe, what the emulator's threads do while a model trains.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <fcntl.h>

#include "inject.h"
#include "options.h"
#include "scene.h"
#include "trainer.h"

#define DRIVER "/sys/bus/pci/drivers/embeng/"
#define MAPPED "/sys/kernel/debug/embeng_emu/0/mapped_pages"
#define ROUNDS 20u
#define STEPS 200u
#define NTH_MAX 10000u

static char function[32];

static uint64_t number_in(const char *path)
{
	unsigned long long value;
	FILE *file = fopen(path, "r");

	ck_assert_msg(file, "%s", path);
	ck_assert_int_eq(fscanf(file, "%llu", &value), 1);
	fclose(file);
	return value;
}

static uint32_t contexts(void)
{
	char path[96], line[256];
	uint32_t count = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/kernel/debug/accel/%s/contexts", function);
	file = fopen(path, "r");
	ck_assert_msg(file, "%s", path);
	while (fgets(line, sizeof(line), file))
		count += !strncmp(line, "context", 7);
	fclose(file);
	return count;
}

static void setup(void)
{
	char path[64], link[128];
	ssize_t length;
	int fd = accel_open_path(path, sizeof(path));

	close(fd);
	snprintf(link, sizeof(link), "/sys/class/accel/%s/device", strrchr(path, '/') + 1);
	length = readlink(link, path, sizeof(path) - 1);
	ck_assert_int_gt(length, 0);
	path[length] = 0;
	snprintf(function, sizeof(function), "%s", strrchr(path, '/') + 1);
	inject_begin();
}

/* Memory may lack, a pointer may turn bad, a table of descriptors may not grow. */
static bool is_clean(int error)
{
	return error == ENOMEM || error == EFAULT || error == ENFILE || error == EMFILE;
}

/* A call that failed with an injected failure has changed nothing: made again, it works. */
static void check_again(struct scene *s, const struct scene_call *call, unsigned int nth)
{
	int ret = scene_run(s);

	/* It was done when the last copy failed, and cannot be done twice. */
	if (s->request == DRM_IOCTL_EMBENG_CONTEXT_CREATE && ret == -EBUSY)
		ret = 0;
	ck_assert_msg(ret == s->expected, "%s: after failure %u it does not work: %s", call->name,
		      nth, strerror(-ret));
}

/* True when there was something to fail. */
static bool try_nth(const struct scene_call *call, unsigned int nth)
{
	union scene_arg before;
	struct scene s;
	bool injected;
	int ret;

	scene_open(&s, call);
	before = s.arg;
	inject_arm(nth);
	ret = scene_run(&s);
	injected = inject_disarm();
	if (ret != s.expected) {
		ck_assert_msg(injected, "%s: %s without a failure", call->name, strerror(-ret));
		ck_assert_msg(is_clean(-ret), "%s: failure %u gives %s", call->name, nth,
			      strerror(-ret));
		ck_assert_msg(!memcmp(&before, &s.arg, sizeof(before)),
			      "%s: failure %u writes outputs", call->name, nth);
		check_again(&s, call, nth);
	}
	scene_close(&s);
	return injected;
}

START_TEST(every_failure_is_clean)
{
	const struct scene_call *call = &scene_calls[_i];
	uint64_t pages = number_in(MAPPED);
	uint32_t before = contexts();
	int first = dup(STDIN_FILENO), next;
	unsigned int nth = 1;

	close(first);
	while (try_nth(call, nth)) {
		ck_assert_uint_lt(nth, NTH_MAX);
		nth++;
	}
	/* The core installs a dma-buf's descriptor before it copies the number out, or fails to. */
	if (!strcmp(call->name, "PRIME_HANDLE_TO_FD"))
		close_range((unsigned int)first, ~0u, 0);
	next = dup(STDIN_FILENO);
	close(next);
	ck_assert_msg(next == first, "%s: descriptor %d stays open", call->name, first);
	printf("# %s: %u failures\n", call->name, nth - 1);
	fflush(stdout);
	ck_assert_uint_eq(contexts(), before);
	ck_assert_msg(number_in(MAPPED) == pages, "%s: pages stay mapped", call->name);
}
END_TEST

/* A query with an injected failure either fails or gives the right answer. */
START_TEST(a_query_does_not_lie)
{
	const struct scene_call *call = NULL;
	uint64_t answer[32];
	struct scene s;
	bool injected;

	for (int i = 0; i < scene_call_count; i++) {
		if (!strcmp(scene_calls[i].name, "QUERY_DEVICE"))
			call = &scene_calls[i];
	}
	scene_open(&s, call);
	ck_assert_int_eq(scene_run(&s), 0);
	memcpy(answer, s.answer, sizeof(answer));
	for (unsigned int nth = 1;; nth++) {
		int ret;

		call->set(&s);
		memset(s.answer, 0, sizeof(s.answer));
		inject_arm(nth);
		ret = scene_run(&s);
		injected = inject_disarm();
		if (!ret)
			ck_assert_mem_eq(s.answer, answer, sizeof(answer));
		if (!injected)
			break;
	}
	scene_close(&s);
}
END_TEST

static void tell_driver(const char *file)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), DRIVER "%s", file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	if (write(fd, function, strlen(function)) < 0)
		ck_assert_int_ne(errno, EBADF);
	close(fd);
}

static bool is_bound(void)
{
	char path[96];

	snprintf(path, sizeof(path), DRIVER "%s", function);
	return !access(path, F_OK);
}

/*
 * Where memory is scarce while the driver comes. Not everywhere at once, as Linux 6.12 then has
 * errors and reports of its own: drm_minor_alloc() puts an error pointer, request_firmware()
 * tells of its vmalloc(), and free_desc() warns of entries in /proc/irq that register_irq_proc()
 * had no memory for.
 */
static const struct scarcity {
	const char *function; /* below it; NULL: in all that follows the firmware's request */
	unsigned int percent, interval;
} scarcities[] = {
	{NULL, 1, 5}, /* rarer, as there are more allocations than in the others */
	{"drm_dev_register", 1, 1},
	{"embeng_device_map", 3, 1},
};

#define SCARCITIES (sizeof(scarcities) / sizeof(*scarcities))

static void tell_driver_scarcely(const char *file, const struct scarcity *where, unsigned int times)
{
	inject_mark_self(true);
	if (where->function)
		inject_below_function(where->function);
	else
		inject_below_module("embeng", "embeng_boot_request", "register_irq_proc");
	inject_seldom(where->percent * times, where->interval);
	tell_driver(file);
	inject_chance(0);
	inject_mark_self(false);
}

/* Whether it failed to bind. */
static bool bind_fails(uint32_t i, const struct scarcity *where)
{
	static const struct scarcity leaving = {NULL, 1, 1};

	tell_driver_scarcely("unbind", &leaving, 1 + i % 20);
	ck_assert(!is_bound());
	ck_assert_uint_eq(number_in(MAPPED), 0);
	tell_driver_scarcely("bind", where, 1 + i % 5);
	if (is_bound())
		return false;
	ck_assert_msg(number_in(MAPPED) == 0, "round %u: pages stay mapped", i);
	tell_driver("bind");
	ck_assert_msg(is_bound(), "round %u: it does not bind after a failure", i);
	return true;
}

START_TEST(the_driver_comes_and_goes_with_scarce_memory)
{
	uint32_t failed[SCARCITIES] = {0};

	for (uint32_t i = 0; i < ROUNDS; i++) {
		for (uint32_t k = 0; k < SCARCITIES; k++)
			failed[k] += bind_fails(i, &scarcities[k]);
	}
	for (uint32_t k = 0; k < SCARCITIES; k++)
		printf("# probe failed %u times of %u below %s\n", failed[k], ROUNDS,
		       scarcities[k].function ?: "the rest");
	fflush(stdout);
	/* Both ways out were taken. */
	for (uint32_t k = 0; k < SCARCITIES; k++) {
		ck_assert_uint_gt(failed[k], 0);
		ck_assert_uint_lt(failed[k], ROUNDS);
	}
}
END_TEST

/* A command that the emulator has no memory for fails, and succeeds when it is submitted again. */
START_TEST(a_model_trains_while_the_workers_lack_memory)
{
	const char *wrong = "never opened";
	struct trainer t;
	int threads, fd;

	threads = inject_mark_threads("embeng");
	ck_assert_int_gt(threads, 0);
	for (int i = 0; wrong && i < 100; i++) {
		fd = accel_open();
		/* Seldom, as opening makes hundreds of allocations that must all succeed. */
		inject_seldom((unsigned int)_i, 20);
		wrong = trainer_open(&t, fd, _i % 2, 60 * SECOND, options.seed);
		inject_chance(0);
		if (!wrong)
			break;
		trainer_unmap(&t);
		close(fd);
	}
	ck_assert_msg(!wrong, "%s", wrong);
	t.forgiving = true;
	inject_chance(_i);
	for (uint32_t i = 0; i < STEPS && !wrong; i++)
		wrong = trainer_step(&t);
	inject_chance(0);
	ck_assert_msg(!wrong, "%s", wrong);
	wrong = trainer_check(&t);
	ck_assert_msg(!wrong, "%s", wrong);
	printf("# %u steps, %u commands given again, %d %% of %d threads' allocations fail\n",
	       STEPS, t.retries, _i, threads);
	fflush(stdout);
	trainer_unmap(&t);
	close(fd);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_loop_test(tcase, every_failure_is_clean, 0, scene_call_count);
	tcase_add_test(tcase, a_query_does_not_lie);
	tcase_add_loop_test(tcase, a_model_trains_while_the_workers_lack_memory, 1, 8);
	tcase_add_test(tcase, the_driver_comes_and_goes_with_scarce_memory);
}

int main(int argc, char **argv)
{
	return hostile_main(argc, argv, "failing", 0, add);
}
