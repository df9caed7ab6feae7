// SPDX-License-Identifier: MIT
/* A handle on a device behind the driver, against a driver in this process. */
#include <poll.h>
#include <stdlib.h>

#include "accel_help.h"

/* All that came of it: activations after training, and the rows. */
static void train_on(const char *name, float seen[6 + 8])
{
	struct embeng *e = open_on(name, 1);
	struct embeng_activations a = {.size = sizeof(a)};

	for (int step = 0; step < STEPS; step++)
		train_step(e, 0);
	ck_assert_int_eq(enqueue_bags(e, EMBENG_INFERENCE, 0, -1), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
	memcpy(seen, a.features[0].data, 6 * sizeof(float));
	ck_assert_int_eq(embeng_release(e, &a), 0);
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, NULL, 4, seen + 6), 0);
	embeng_close(e);
}

START_TEST(gives_the_bits_of_soft)
{
	float soft[14], mapped[14], validated[14];

	fake_install();
	train_on("soft:cores=1", soft);
	train_on(FAKE_NODE, mapped);
	ck_assert_uint_eq(fake.submits, 0);
	train_on(FAKE_NODE ",path=validated", validated);
	/* Three steps, a lookup, rows; the model has a call of its own. */
	ck_assert_uint_gt(fake.submits, 8);
	ck_assert_uint_gt(fake.waits, 0);
	ck_assert_mem_eq(mapped, soft, sizeof(soft));
	ck_assert_mem_eq(validated, soft, sizeof(soft));
	ck_assert(soft[0] != 15);
	nothing_left();
}
END_TEST

START_TEST(is_found_by_every_name)
{
	static const char *const names[] = {FAKE_NODE, "pci:" FAKE_ADDRESS, NULL};
	struct embeng_device_info info = {.size = sizeof(info)};

	fake_install();
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct embeng *e = open_on(names[i], 1);

		ck_assert_int_eq(embeng_info(e, &info), 0);
		ck_assert_str_eq(info.name, FAKE_NODE);
		ck_assert_str_eq(info.kind, "accel");
		ck_assert_str_eq(info.address, "pci:" FAKE_ADDRESS);
		ck_assert_str_eq(info.driver, "embeng");
		ck_assert_str_eq(info.description, "Embeng model engine");
		ck_assert_str_eq(info.state, "running");
		ck_assert(info.firmware_version == (1ull << 48 | 2ull << 32));
		embeng_close(e);
	}
	fake.function_count = 0;
	nothing_left();
}
END_TEST

START_TEST(takes_soft_where_there_is_none)
{
	struct embeng_device_info info = {.size = sizeof(info)};
	struct embeng *e;

	fake_install();
	fake.function_count = 0;
	e = open_on(NULL, 1);
	ck_assert_int_eq(embeng_info(e, &info), 0);
	ck_assert_str_eq(info.kind, "soft");
	embeng_close(e);
}
END_TEST

START_TEST(chooses_the_path)
{
	struct embeng_device_info info = {.size = sizeof(info)};
	struct embeng *e = NULL;

	fake_install();
	setenv("EMBENG_PATH", "validated", 1);
	e = open_on(FAKE_NODE, 1);
	ck_assert_uint_gt(fake.submits, 0);
	ck_assert_int_eq(embeng_info(e, &info), 0);
	ck_assert_str_eq(info.name, FAKE_NODE ",path=validated");
	embeng_close(e);
	unsetenv("EMBENG_PATH");
	fake.submits = 0;
	fake.device.flags = 0; /* mapped queues are forbidden */
	e = open_on(FAKE_NODE, 1);
	ck_assert_uint_gt(fake.submits, 0);
	embeng_close(e);
	ck_assert_int_eq(try_open(FAKE_NODE ",path=mapped", 1, &e), -ENOTSUP);
	expect_text("forbids mapped queues");
	nothing_left();
}
END_TEST

static void refused(int code, const char *name, const char *text)
{
	struct embeng *e = (struct embeng *)&fake;

	ck_assert_int_eq(try_open(name, 1, &e), code);
	expect_text(text);
	ck_assert_ptr_eq(e, &fake);
	nothing_left();
	fake_install();
}

START_TEST(says_what_is_wrong)
{
	fake_install();
	fake.open_error = -EACCES;
	refused(-EACCES, FAKE_NODE, "usermod -aG render");
	fake.open_error = -ENOENT;
	refused(-ENODEV, "/dev/accel/accel9", "no such device");
	fake.open_error = -EMFILE;
	refused(-EMFILE, FAKE_NODE, "Too many open files");
	fake.functions[0].node[0] = fake.functions[0].driver[0] = 0;
	refused(-ENXIO, "pci:" FAKE_ADDRESS, "modprobe embeng");
	fake.functions[0].node[0] = fake.functions[0].driver[0] = 0;
	fake.open_error = -ENOENT;
	refused(-ENXIO, FAKE_NODE, "modprobe embeng");
	refused(-ENODEV, "pci:0000:0b:00.0", "no embedding engine is there");
	fake.name = "ivpu";
	refused(-ENODEV, FAKE_NODE, "driver \"ivpu\"");
	fake.version = EMBENG_ACCEL_MINOR - 1;
	refused(-ENOTSUP, FAKE_NODE, "the driver speaks version 0.0");
	fake.device.boot_state = EMBENG_BOOT_FAILED;
	fake.device.boot_error = EMBENG_BOOT_ERROR_HASH;
	fake.device.boot_error_offset = 4242;
	refused(-EHOSTDOWN, FAKE_NODE, "does not match its hash (error 9, byte 4242");
	fake.device.boot_state = EMBENG_BOOT_ROM;
	refused(-EHOSTDOWN, FAKE_NODE, "state rom");
	fake.interface_major = 9;
	refused(-ENOTSUP, FAKE_NODE, "interface 9.");
}
END_TEST

static void refused_unbound(int code, const char *name, const char *refusal, const char *text)
{
	fake_install();
	fake.functions[0].node[0] = fake.functions[0].driver[0] = 0;
	fake.refusal = refusal;
	fake.open_error = -ENOENT;
	refused(code, name, text);
}

START_TEST(says_why_there_is_no_node)
{
	static const char no_file[] = "firmware -2: /lib/firmware/embeng/embeng.fw cannot be read";
	static const char *const names[] = {"pci:" FAKE_ADDRESS, FAKE_NODE, NULL};

	for (size_t i = 0; i < 3; i++) {
		refused_unbound(-ENXIO, names[i], NULL, "modprobe embeng");
		refused_unbound(-ENXIO, names[i], "",
				"not bound to it; bind it with `echo " FAKE_ADDRESS " >/sys/");
		refused_unbound(-EHOSTDOWN, names[i], no_file, no_file);
		refused_unbound(-ENXIO, names[i], "device -5: the kernel's log says why",
				"did not take it: device -5");
	}
	refused_unbound(-EHOSTDOWN, NULL, no_file, "name the device \"soft\"");
}
END_TEST

START_TEST(undoes_what_it_began)
{
	static const struct {
		unsigned long request;
		int error;
		const char *text;
	} cases[] = {
		{DRM_IOCTL_EMBENG_CONTEXT_CREATE, -EBUSY, "making a context"},
		{DRM_IOCTL_EMBENG_BO_CREATE, -EDQUOT, "memory limit"},
		{DRM_IOCTL_EMBENG_BIND, -ENOSPC, "binding a buffer: the device has no place"},
		{DRM_IOCTL_EMBENG_QUEUE_CREATE, -ENOSPC, "making a queue"},
		{DRM_IOCTL_EMBENG_QUEUE_CREATE, -EPERM, "permission denied"},
		{(unsigned long)-1, -ENOMEM, "ulimit -l"},
	};

	fake_install();
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		fake.fails = cases[i].request;
		fake.error = cases[i].error;
		refused(cases[i].error, FAKE_NODE, cases[i].text);
	}
	fake.fails = DRM_IOCTL_EMBENG_SUBMIT;
	fake.error = -EACCES;
	refused(-EACCES, FAKE_NODE ",path=validated", "submitting a command");
	fake.fails = DRM_IOCTL_EMBENG_MODEL_LOAD;
	fake.error = -EBADMSG;
	refused(-EBADMSG, FAKE_NODE ",path=validated", "loading the model");
}
END_TEST

static void lose(const char *name, int error, const char *text)
{
	struct embeng *e;
	struct embeng_activations a = {.size = sizeof(a)};
	struct pollfd p = {.events = POLLIN};
	float rows[8];

	fake_install();
	e = open_on(name, 1);
	p.fd = embeng_fd(e);
	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, -1), 0);
	ck_assert_int_eq(poll(&p, 1, 20000), 1); /* it completes */
	fake_lose(error);
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, NULL, 4, rows), error);
	expect_text(text);
	/* A step that completed before the loss is still there. */
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, -1), error);
	expect_text(text);
	embeng_close(e);
	nothing_left();
}

START_TEST(tells_of_loss)
{
	lose(FAKE_NODE, -ESHUTDOWN, "restore a checkpoint");
	lose(FAKE_NODE, -ENODEV, "the device is gone");
	lose(FAKE_NODE ",path=validated", -ESHUTDOWN, "restore a checkpoint");
	lose(FAKE_NODE ",path=validated", -ENODEV, "the device is gone");
}
END_TEST

static void poll_on(const char *name)
{
	struct embeng *e;
	struct embeng_activations a = {.size = sizeof(a)};
	struct pollfd p = {.events = POLLIN};

	fake_install();
	e = open_on(name, 1);
	p.fd = embeng_fd(e);
	ck_assert_int_ge(p.fd, 0);
	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, -1), 0);
	while (embeng_dequeue(e, 0, 0, &a) == -ETIME)
		ck_assert_int_eq(poll(&p, 1, 20000), 1);
	ck_assert_int_eq(apply_ones(e, 0), 0);
	ck_assert_int_eq(embeng_flush(e, -1), 0);
	embeng_close(e);
	nothing_left();
}

START_TEST(can_be_polled)
{
	poll_on(FAKE_NODE);
	poll_on(FAKE_NODE ",path=validated");
}
END_TEST

struct seen {
	int count;
	struct embeng_device_info infos[4];
};

static int see(void *arg, const struct embeng_device_info *info)
{
	struct seen *seen = arg;

	seen->infos[seen->count++] = *info;
	return 0;
}

START_TEST(lists_also_what_cannot_be_opened)
{
	struct seen seen = {0};

	fake_install();
	fake.functions[1] = (struct accel_function){.address = "0000:0c:00.0"};
	fake.function_count = 2;
	ck_assert_int_eq(embeng_device_list(see, &seen), 0);
	ck_assert_int_eq(seen.count, 3);
	ck_assert_str_eq(seen.infos[0].name, FAKE_NODE);
	ck_assert_str_eq(seen.infos[0].problem, "");
	ck_assert_uint_gt(seen.infos[0].table_memory, 0);
	ck_assert_str_eq(seen.infos[1].name, "pci:0000:0c:00.0");
	ck_assert_ptr_nonnull(strstr(seen.infos[1].problem, "modprobe embeng"));
	ck_assert_str_eq(seen.infos[2].kind, "soft");
	nothing_left();
}
END_TEST

/* No context is made: they may all be taken. */
START_TEST(tells_what_a_device_is)
{
	struct embeng_device_info info = {.size = sizeof(info)};

	fake_install();
	fake.fails = DRM_IOCTL_EMBENG_CONTEXT_CREATE;
	fake.error = -ENOSPC;
	ck_assert_int_eq(embeng_device_info(NULL, &info), 0);
	ck_assert_str_eq(info.name, FAKE_NODE);
	ck_assert_str_eq(info.description, "Embeng model engine");
	ck_assert_uint_gt(info.dim, 0);
	ck_assert_uint_gt(info.table_memory, 0);
	ck_assert_int_eq(embeng_device_info(FAKE_NODE ",path=validated", &info), 0);
	ck_assert_str_eq(info.name, FAKE_NODE ",path=validated");
	fake.device.flags = 0;
	ck_assert_int_eq(embeng_device_info(FAKE_NODE ",path=mapped", &info), -ENOTSUP);
	fake.functions[0].node[0] = 0;
	ck_assert_int_eq(embeng_device_info(NULL, &info), -ENXIO);
	ck_assert_str_eq(info.name, "pci:" FAKE_ADDRESS);
	ck_assert_uint_eq(info.dim, 0);
	fake.function_count = 0;
	ck_assert_int_eq(embeng_device_info(NULL, &info), 0);
	ck_assert_str_eq(info.kind, "soft");
	ck_assert_int_eq(embeng_device_info("soft:cores=3", &info), 0);
	ck_assert_uint_eq(info.cores, 3);
	info.size--;
	ck_assert_int_eq(embeng_device_info("soft", &info), -EINVAL);
	ck_assert_int_eq(embeng_device_info("soft", NULL), -EINVAL);
	nothing_left();
}
END_TEST

START_TEST(counts_what_the_driver_counts)
{
	struct embeng_counter_values v = {.size = sizeof(v)};
	struct embeng_usage usage = {.size = sizeof(usage)};
	struct embeng *e;

	fake_install();
	e = open_on(FAKE_NODE, 1);
	ck_assert_int_eq(embeng_counters(e, &v), 0);
	ck_assert_uint_eq(v.time_lookup_ns, 5);
	ck_assert_uint_eq(v.time_update_ns, 0);
	ck_assert_int_eq(embeng_usage(e, &usage), 0);
	ck_assert_uint_eq(usage.table_bytes, 0);
	fake.fails = DRM_IOCTL_EMBENG_QUERY;
	fake.error = -EIO;
	ck_assert_int_eq(embeng_counters(e, &v), 0);
	ck_assert_uint_eq(v.time_lookup_ns, 0);
	fake.fails = 0;
	embeng_close(e);
}
END_TEST

RUN_SUITE("accel", gives_the_bits_of_soft, is_found_by_every_name, takes_soft_where_there_is_none,
	  chooses_the_path, says_what_is_wrong, says_why_there_is_no_node, undoes_what_it_began,
	  tells_of_loss, can_be_polled, lists_also_what_cannot_be_opened, tells_what_a_device_is,
	  counts_what_the_driver_counts)
