// SPDX-License-Identifier: MIT
/*
 * Boots of a device: a good image, refused images, parameters of the image, and registers before
 * and after.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "builtin_image.h"
#include "fake_model.h"
#include "image_help.h"
#include "rig.h"
#include "failing_alloc.h"
#include "suite.h"

static u8 copy[sizeof(embeng_builtin_image)];

static u32 reg(struct rig *rig, u32 which)
{
	return reg_read32(rig->engine, which);
}

START_TEST(boots_and_says_what_it_can_do)
{
	struct rig *rig = rig_power_on(3, 0);

	ck_assert_uint_eq(reg(rig, EMBENG_REG_MAGIC), EMBENG_DEVICE_MAGIC);
	ck_assert_uint_eq(reg(rig, EMBENG_REG_BOOT_STATE), EMBENG_BOOT_ROM);
	ck_assert_uint_eq(reg(rig, EMBENG_REG_CORES), 0);
	memcpy(copy, embeng_builtin_image, sizeof(copy));
	ck_assert_uint_eq(rig_boot(rig, copy, sizeof(copy)), EMBENG_BOOT_RUNNING);
	ck_assert_uint_eq(reg(rig, EMBENG_REG_BOOT_ERROR), EMBENG_BOOT_ERROR_NONE);
	ck_assert_uint_eq(reg(rig, EMBENG_REG_CORES), 3);
	ck_assert_uint_eq(reg(rig, EMBENG_REG_QUEUES), RIG_QUEUES);
	ck_assert_uint_eq(reg(rig, EMBENG_REG_DIM), 4096);
	ck_assert_uint_eq(reg(rig, EMBENG_REG_STEP_DEPTH), 8);
	ck_assert(reg(rig, EMBENG_REG_FEATURES) & EMBENG_CAP_SIGNATURE_UNCHECKED);
	ck_assert_uint_eq(reg_read64(rig->engine, EMBENG_REG_IDS), 1ull << 31);
	ck_assert_uint_gt(reg_read64(rig->engine, EMBENG_REG_FIRMWARE_VERSION), 0);
	rig_free(rig);
}
END_TEST

START_TEST(a_refused_image_leaves_it_without_firmware)
{
	struct rig *rig = rig_power_on(1, 0);

	memcpy(copy, embeng_builtin_image, sizeof(copy));
	copy[4] = 9;
	ck_assert_uint_eq(rig_boot(rig, copy, sizeof(copy)), EMBENG_BOOT_FAILED);
	ck_assert_uint_eq(reg(rig, EMBENG_REG_BOOT_ERROR), EMBENG_BOOT_ERROR_FORMAT);
	ck_assert_uint_eq(reg_read64(rig->engine, EMBENG_REG_BOOT_ERROR_OFFSET), 4);
	ck_assert_uint_eq(reg(rig, EMBENG_REG_CORES), 0);
	copy[4] = EMBENG_FW_FORMAT;
	ck_assert_uint_eq(rig_boot(rig, copy, sizeof(copy)), EMBENG_BOOT_RUNNING);
	rig_free(rig);
}
END_TEST

START_TEST(an_image_of_no_possible_length_is_refused)
{
	static const u64 lengths[] = {0, 127, EMBENG_FW_LENGTH_MAX + 1};
	static const u64 offsets[] = {0, 127, EMBENG_FW_LENGTH_MAX};
	struct rig *rig = rig_power_on(1, 0);

	ck_assert_uint_eq(rig_boot(rig, copy, lengths[_i]), EMBENG_BOOT_FAILED);
	ck_assert_uint_eq(reg(rig, EMBENG_REG_BOOT_ERROR), EMBENG_BOOT_ERROR_LENGTH);
	ck_assert_uint_eq(reg_read64(rig->engine, EMBENG_REG_BOOT_ERROR_OFFSET), offsets[_i]);
	rig_free(rig);
}
END_TEST

/* Boots an image of @parameters. */
static struct rig *boot_with(const struct embeng_fw_parameters *parameters, u32 cores)
{
	const struct image_section section = {EMBENG_FW_PARAMETERS, EMBENG_FW_SECTION_MANDATORY,
					      parameters, sizeof(*parameters)};
	struct rig *rig = rig_power_on(cores, 0);
	void *image;
	size_t length;

	ck_assert_int_eq(image_pack(GOOD_VERSION, "test", &section, 1, &image, &length), 0);
	ck_assert_uint_eq(rig_boot(rig, image, length), EMBENG_BOOT_RUNNING);
	free(image);
	return rig;
}

START_TEST(parameters_limit_what_the_device_gives)
{
	struct embeng_fw_parameters p = good_parameters;
	struct embeng_admin_cmd cmd = {
		.opcode = EMBENG_ADMIN_CONTEXT_CREATE, .context = 2, .count = 16};
	struct rig *rig;

	p.step_depth = 17;
	p.contexts = 2;
	p.queues = 3;
	p.regions = RIG_REGIONS;
	p.features = EMBENG_CAP_MAPPED_QUEUES | EMBENG_CAP_PROGRAMS;
	rig = boot_with(&p, 1);
	ck_assert_uint_eq(reg(rig, EMBENG_REG_STEP_DEPTH), 17);
	ck_assert_uint_eq(reg(rig, EMBENG_REG_CONTEXTS), 2);
	ck_assert_uint_eq(reg(rig, EMBENG_REG_QUEUES), 3);
	ck_assert_uint_eq(reg(rig, EMBENG_REG_REGIONS), RIG_REGIONS);
	/* programs are nothing that this device can do */
	ck_assert_uint_eq(reg(rig, EMBENG_REG_FEATURES),
			  EMBENG_CAP_MAPPED_QUEUES | EMBENG_CAP_SIGNATURE_UNCHECKED);
	ck_assert_uint_eq(rig_admin(rig, &cmd).status, EMBENG_STATUS_COUNT);
	rig_context(rig, 1);
	cmd = (struct embeng_admin_cmd){.opcode = EMBENG_ADMIN_QUEUE_CREATE,
					.queue = 3,
					.context = 1,
					.kind = EMBENG_QUEUE_TRANSFER};
	ck_assert_uint_eq(rig_admin(rig, &cmd).status, EMBENG_STATUS_COUNT);
	rig_free(rig);
}
END_TEST

START_TEST(a_parameter_says_how_often_the_heart_beats)
{
	struct embeng_fw_parameters p = good_parameters;
	struct rig *fast, *slow;
	u32 before;

	p.heartbeat_ms = 10000;
	slow = boot_with(&p, 1);
	p.heartbeat_ms = 1;
	fast = boot_with(&p, 1);
	rig_run(slow); /* the boot itself */
	before = reg(slow, EMBENG_REG_HEARTBEAT);
	while (reg(fast, EMBENG_REG_HEARTBEAT) < 3)
		rig_run(fast);
	rig_run(slow);
	ck_assert_uint_eq(slow->engine->heartbeat_ms, 10000);
	ck_assert_uint_eq(reg(slow, EMBENG_REG_HEARTBEAT), before);
	rig_free(fast);
	rig_free(slow);
}
END_TEST

static u32 seen[2]; /* a task was done by this worker */

static bool both_seen(void)
{
	return __atomic_load_n(&seen[0], __ATOMIC_RELAXED) &&
	       __atomic_load_n(&seen[1], __ATOMIC_RELAXED);
}

static void note_worker(void *arg, u64 task, u32 worker)
{
	(void)task;
	__atomic_store_n(&seen[worker], 1, __ATOMIC_RELAXED);
	while (arg && !both_seen())
		port_relax();
}

START_TEST(work_below_inline_bytes_stays_with_its_thread)
{
	struct embeng_fw_parameters p = good_parameters;
	struct context context = {0};
	struct queue queue = {0};
	struct command command = {.queue = &queue, .context = &context};
	struct rig *rig;

	p.inline_bytes = 5000;
	rig = boot_with(&p, 2);
	context.engine = rig->engine;
	workers_run(&command, note_worker, NULL, 100, 4999);
	ck_assert(seen[0] && !seen[1]);
	workers_run(&command, note_worker, rig, 100, 5000); /* needs both to end */
	ck_assert(both_seen());
	rig_free(rig);
}
END_TEST

START_TEST(an_image_outside_the_given_memory_is_refused)
{
	struct rig *rig = rig_power_on(1, 0);
	struct engine *e = rig->engine;

	reg_write64(e, EMBENG_REG_BOOT_ADDRESS, (u64)(size_t)copy);
	reg_write64(e, EMBENG_REG_BOOT_LENGTH, sizeof(copy));
	reg_write32(e, EMBENG_REG_BOOT_SEQUENCE, 1);
	rig_run(rig);
	ck_assert_uint_eq(reg(rig, EMBENG_REG_BOOT_DONE), 1);
	ck_assert_uint_eq(reg(rig, EMBENG_REG_BOOT_STATE), EMBENG_BOOT_FAILED);
	ck_assert_uint_eq(reg(rig, EMBENG_REG_BOOT_ERROR), EMBENG_BOOT_ERROR_ADDRESS);
	rig_free(rig);
}
END_TEST

/* An image of GOOD_VERSION with good_parameters and @minimum, to be freed. */
static void *pack_with_minimum(u64 minimum, size_t *length)
{
	struct embeng_fw_parameters p = good_parameters;
	const struct image_section section = {EMBENG_FW_PARAMETERS, EMBENG_FW_SECTION_MANDATORY, &p,
					      sizeof(p)};
	void *image;

	p.minimum_version = minimum;
	ck_assert_int_eq(image_pack(GOOD_VERSION, "test", &section, 1, &image, length), 0);
	return image;
}

static const struct {
	u32 sq, cq;
	u64 address; /* 0: of a good ring */
	u32 error;
} bad_rings[] = {
	{0, 32, 0, EMBENG_BOOT_ERROR_PARAMETER},
	{12, 32, 0, EMBENG_BOOT_ERROR_PARAMETER},
	{2 * EMBENG_SQ_ENTRIES_MAX, 32, 0, EMBENG_BOOT_ERROR_PARAMETER},
	{16, 0, 0, EMBENG_BOOT_ERROR_PARAMETER},
	{16, 12, 0, EMBENG_BOOT_ERROR_PARAMETER},
	{16, 4 * EMBENG_SQ_ENTRIES_MAX, 0, EMBENG_BOOT_ERROR_PARAMETER},
	{16, 32, 64, EMBENG_BOOT_ERROR_ADDRESS},
	/* Larger than the memory that is there, and not too large. */
	{EMBENG_SQ_ENTRIES_MAX, 2 * EMBENG_SQ_ENTRIES_MAX, 0, EMBENG_BOOT_ERROR_ADDRESS},
};

/* The image has no effect then: nothing is kept of it, and the next boot finds a fresh device. */
START_TEST(a_bad_admin_ring_is_refused)
{
	struct rig *rig = rig_power_on(1, 0);
	u64 ring = (u64)(size_t)rig->admin.ring;
	size_t length;
	u8 *image = pack_with_minimum(GOOD_VERSION, &length);

	reg_write64(rig->engine, EMBENG_REG_BOOT_RAISE, U64_MAX);
	reg_write32(rig->engine, EMBENG_REG_ADMIN_SQ_ENTRIES, bad_rings[_i].sq);
	reg_write32(rig->engine, EMBENG_REG_ADMIN_CQ_ENTRIES, bad_rings[_i].cq);
	if (bad_rings[_i].address)
		reg_write64(rig->engine, EMBENG_REG_ADMIN_RING, bad_rings[_i].address);
	ck_assert_uint_eq(rig_boot(rig, image, length), EMBENG_BOOT_FAILED);
	ck_assert_uint_eq(reg(rig, EMBENG_REG_BOOT_ERROR), bad_rings[_i].error);
	ck_assert_uint_eq(reg_read64(rig->engine, EMBENG_REG_BOOT_ERROR_OFFSET), 0);
	ck_assert_uint_eq(engine_firmware_minimum(rig->engine), 0);
	ck_assert_ptr_null(rig->engine->contexts);
	ck_assert_uint_eq(rig->engine->caps.contexts, 0);
	reg_write32(rig->engine, EMBENG_REG_ADMIN_SQ_ENTRIES, 16);
	reg_write32(rig->engine, EMBENG_REG_ADMIN_CQ_ENTRIES, 32);
	reg_write64(rig->engine, EMBENG_REG_ADMIN_RING, ring);
	ck_assert_uint_eq(rig_boot(rig, image, length), EMBENG_BOOT_RUNNING);
	ck_assert_uint_eq(engine_firmware_minimum(rig->engine), GOOD_VERSION);
	free(image);
	rig_free(rig);
}
END_TEST

/* It is read, and refused for what is in it. */
START_TEST(the_longest_image_is_looked_at)
{
	u8 *image = calloc(1, EMBENG_FW_LENGTH_MAX);
	struct rig *rig = rig_power_on(1, 0);

	ck_assert_ptr_nonnull(image);
	reg_write32(rig->engine, EMBENG_REG_BOOT_ERROR_INDEX, 7); /* a boot before left it */
	ck_assert_uint_eq(rig_boot(rig, image, EMBENG_FW_LENGTH_MAX), EMBENG_BOOT_FAILED);
	ck_assert_uint_eq(reg(rig, EMBENG_REG_BOOT_ERROR), EMBENG_BOOT_ERROR_MAGIC);
	ck_assert_uint_eq(reg(rig, EMBENG_REG_BOOT_ERROR_INDEX), 0);
	free(image);
	rig_free(rig);
}
END_TEST

/* It is answered, and nothing else happens. */
START_TEST(an_unknown_request_does_nothing)
{
	struct rig *rig = rig_new(1, 0);
	u32 sequence = reg(rig, EMBENG_REG_CONTROL_SEQUENCE) + 1;

	reg_write32(rig->engine, EMBENG_REG_CONTROL, EMBENG_CONTROL_RESET + 1);
	reg_write32(rig->engine, EMBENG_REG_CONTROL_SEQUENCE, sequence);
	for (u32 i = 0; i < 3; i++)
		rig_run(rig);
	ck_assert_uint_eq(reg(rig, EMBENG_REG_CONTROL_DONE), sequence);
	ck_assert_uint_eq(reg(rig, EMBENG_REG_BOOT_STATE), EMBENG_BOOT_RUNNING);
	rig_free(rig);
}
END_TEST

/* Nothing of Check's in between: it allocates, too. Returns whether an allocation failed. */
static bool boot_with_scarce(struct rig *rig, u32 nth)
{
	struct engine *e = rig->engine;

	reg_write64(e, EMBENG_REG_BOOT_ADDRESS, (u64)(size_t)embeng_builtin_image);
	reg_write64(e, EMBENG_REG_BOOT_LENGTH, sizeof(embeng_builtin_image));
	reg_write32(e, EMBENG_REG_BOOT_SEQUENCE, nth);
	scarce_begin(nth);
	rig_run(rig);
	return scarce_end();
}

/* Each of its allocations fails once, one boot after another. */
START_TEST(a_boot_without_memory_is_refused)
{
	struct rig *rig = rig_power_on(2, 0);
	u32 nth = 1;

	rig_grant(rig, embeng_builtin_image, sizeof(embeng_builtin_image));
	for (; boot_with_scarce(rig, nth); nth++) {
		ck_assert_uint_eq(reg(rig, EMBENG_REG_BOOT_DONE), nth);
		ck_assert_uint_eq(reg(rig, EMBENG_REG_BOOT_STATE), EMBENG_BOOT_FAILED);
		ck_assert_uint_eq(reg(rig, EMBENG_REG_BOOT_ERROR), EMBENG_BOOT_ERROR_MEMORY);
		ck_assert_uint_eq(reg(rig, EMBENG_REG_CORES), 0);
	}
	ck_assert_uint_eq(reg(rig, EMBENG_REG_BOOT_STATE), EMBENG_BOOT_RUNNING);
	ck_assert_uint_gt(nth, 4); /* the image, a self-test, the contexts, the queue */
	rig_free(rig);
}
END_TEST

START_TEST(a_boot_while_running_changes_nothing)
{
	struct rig *rig = rig_new(1, 0);

	memset(copy, 0, sizeof(copy));
	ck_assert_uint_eq(rig_boot(rig, copy, sizeof(copy)), EMBENG_BOOT_RUNNING);
	ck_assert_uint_eq(reg(rig, EMBENG_REG_CORES), 1);
	rig_free(rig);
}
END_TEST

START_TEST(a_warm_reset_keeps_nothing)
{
	struct rig *rig;
	struct rig_queue *q;
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_DRAIN, .step = 1};
	u32 boots;

	fake = (struct fake_model){.admitted = U64_MAX};
	rig = rig_new(2, _i != 0);
	q = rig_queue(rig, 0, EMBENG_QUEUE_TRANSFER, 0);
	rig_submit(q, &cmd);
	rig_run(rig);
	boots = reg(rig, EMBENG_REG_BOOT_DONE);
	reg_write64(rig->engine, EMBENG_REG_FIRMWARE_MINIMUM, 6);
	rig_warm_reset(rig);
	/* But for the answers to requests, which would come again, and for the lowest version. */
	ck_assert_uint_eq(boots, 1);
	ck_assert_uint_eq(reg(rig, EMBENG_REG_BOOT_DONE), boots);
	ck_assert_uint_eq(reg_read64(rig->engine, EMBENG_REG_FIRMWARE_MINIMUM), 6);
	ck_assert_uint_eq(reg(rig, EMBENG_REG_BOOT_STATE), EMBENG_BOOT_ROM);
	ck_assert_uint_eq(reg(rig, EMBENG_REG_QUEUES), 0);
	ck_assert_uint_eq(EMBENG_LOAD_ACQUIRE(&rig_header(q)->dead), 1);
	ck_assert_uint_eq(EMBENG_LOAD_ACQUIRE(&rig_header(&rig->admin)->dead), 1);
	ck_assert_uint_eq(rig_boot(rig, embeng_builtin_image, sizeof(embeng_builtin_image)),
			  EMBENG_BOOT_RUNNING);
	rig_free(rig);
}
END_TEST

/* The driver allows one version, the image wants another, and the device keeps a third. */
static const struct {
	u64 allowed, wanted, kept;
} raises[] = {
	{0, GOOD_VERSION, 5}, /* unsigned */
	{4, GOOD_VERSION, 5},
	{5, GOOD_VERSION, 5},
	{6, GOOD_VERSION, 6}, /* the recovery image's */
	{GOOD_VERSION, GOOD_VERSION, GOOD_VERSION},
	{U64_MAX, GOOD_VERSION, GOOD_VERSION},
	{U64_MAX, 4, 5},
	{U64_MAX, 6, 6},
};

START_TEST(an_image_raises_the_minimum_as_far_as_the_driver_allows)
{
	struct rig *rig = rig_power_on(1, 0);
	size_t length;
	void *image = pack_with_minimum(raises[_i].wanted, &length);

	rig->engine->firmware_minimum = 5;
	reg_write64(rig->engine, EMBENG_REG_BOOT_RAISE, raises[_i].allowed);
	ck_assert_uint_eq(rig_boot(rig, image, length), EMBENG_BOOT_RUNNING);
	ck_assert_uint_eq(reg_read64(rig->engine, EMBENG_REG_FIRMWARE_MINIMUM), raises[_i].kept);
	ck_assert_uint_eq(engine_firmware_minimum(rig->engine), raises[_i].kept);
	free(image);
	rig_free(rig);
}
END_TEST

START_TEST(a_refused_image_raises_nothing)
{
	struct rig *rig = rig_power_on(1, 0);
	size_t length;
	u8 *image = pack_with_minimum(GOOD_VERSION, &length);

	image[length - 1] ^= 1;
	reg_write64(rig->engine, EMBENG_REG_BOOT_RAISE, U64_MAX);
	ck_assert_uint_eq(rig_boot(rig, image, length), EMBENG_BOOT_FAILED);
	ck_assert_uint_eq(engine_firmware_minimum(rig->engine), 0);
	free(image);
	rig_free(rig);
}
END_TEST

/* A signature of one message byte, 'g': the test's device knows no other. */
struct signed_image {
	struct embeng_fw_signature head;
	u8 message[64];
};

static const struct signed_image good_signature = {
	.head = {.magic = EMBENG_FW_SIGNATURE_MAGIC,
		 .kind = EMBENG_FW_SIGNATURE_PKCS7,
		 .length = 1},
	.message = {'g'},
};

static u32 judge(void *arg, const void *image, u64 length, const void *message, u64 message_length)
{
	(void)arg;
	ck_assert_mem_eq(image, embeng_builtin_image, length);
	ck_assert_uint_eq(length, sizeof(embeng_builtin_image));
	ck_assert_uint_eq(message_length, 1);
	return *(const u8 *)message == 'g'   ? EMBENG_BOOT_ERROR_NONE
	       : *(const u8 *)message == 'k' ? EMBENG_BOOT_ERROR_SIGNATURE_KEY
					     : EMBENG_BOOT_ERROR_SIGNATURE_MISMATCH;
}

static struct rig *power_on_with_keys(void)
{
	struct rig *rig = rig_power_on(1, 0);

	rig->host.signature = judge;
	return rig;
}

static u32 boot_signed(struct rig *rig, const struct signed_image *s, u32 length)
{
	rig_grant(rig, s, sizeof(*s));
	reg_write64(rig->engine, EMBENG_REG_BOOT_SIGNATURE, (u64)(size_t)s);
	reg_write32(rig->engine, EMBENG_REG_BOOT_SIGNATURE_LENGTH, length);
	return rig_boot(rig, embeng_builtin_image, sizeof(embeng_builtin_image));
}

START_TEST(a_device_with_keys_boots_a_signed_image)
{
	struct rig *rig = power_on_with_keys();

	ck_assert_uint_eq(boot_signed(rig, &good_signature, sizeof(good_signature)),
			  EMBENG_BOOT_RUNNING);
	ck_assert(!(reg(rig, EMBENG_REG_FEATURES) & EMBENG_CAP_SIGNATURE_UNCHECKED));
	ck_assert_uint_eq(reg_read64(rig->engine, EMBENG_REG_BOOT_ERROR_OFFSET), 0);
	rig_free(rig);
}
END_TEST

static const struct {
	u32 length; /* as the driver says it */
	u32 magic;
	u8 message;
	u32 error;
	u64 offset; /* behind the image */
} unsigned_images[] = {
	{0, EMBENG_FW_SIGNATURE_MAGIC, 'g', EMBENG_BOOT_ERROR_SIGNATURE_MISSING, 0},
	{63, EMBENG_FW_SIGNATURE_MAGIC, 'g', EMBENG_BOOT_ERROR_SIGNATURE, 63},
	{64, EMBENG_FW_SIGNATURE_MAGIC, 'g', EMBENG_BOOT_ERROR_SIGNATURE, 8},
	{EMBENG_FW_SIGNATURE_MAX + 1, EMBENG_FW_SIGNATURE_MAGIC, 'g', EMBENG_BOOT_ERROR_SIGNATURE,
	 0},
	{128, EMBENG_FW_MAGIC, 'g', EMBENG_BOOT_ERROR_SIGNATURE, 0},
	{128, EMBENG_FW_SIGNATURE_MAGIC, 'k', EMBENG_BOOT_ERROR_SIGNATURE_KEY, 0},
	{128, EMBENG_FW_SIGNATURE_MAGIC, 'x', EMBENG_BOOT_ERROR_SIGNATURE_MISMATCH, 0},
};

START_TEST(a_device_with_keys_boots_no_other_image)
{
	struct signed_image s = good_signature;
	struct rig *rig = power_on_with_keys();

	s.head.magic = unsigned_images[_i].magic;
	s.message[0] = unsigned_images[_i].message;
	ck_assert_uint_eq(boot_signed(rig, &s, unsigned_images[_i].length), EMBENG_BOOT_FAILED);
	ck_assert_uint_eq(reg(rig, EMBENG_REG_BOOT_ERROR), unsigned_images[_i].error);
	ck_assert_uint_eq(reg_read64(rig->engine, EMBENG_REG_BOOT_ERROR_OFFSET),
			  sizeof(embeng_builtin_image) + unsigned_images[_i].offset);
	/* and is none the worse for it */
	ck_assert_uint_eq(boot_signed(rig, &good_signature, sizeof(good_signature)),
			  EMBENG_BOOT_RUNNING);
	rig_free(rig);
}
END_TEST

START_TEST(a_signature_outside_the_given_memory_is_refused)
{
	struct rig *rig = power_on_with_keys();

	reg_write64(rig->engine, EMBENG_REG_BOOT_SIGNATURE, (u64)(size_t)&good_signature);
	reg_write32(rig->engine, EMBENG_REG_BOOT_SIGNATURE_LENGTH, sizeof(good_signature));
	ck_assert_uint_eq(rig_boot(rig, embeng_builtin_image, sizeof(embeng_builtin_image)),
			  EMBENG_BOOT_FAILED);
	ck_assert_uint_eq(reg(rig, EMBENG_REG_BOOT_ERROR), EMBENG_BOOT_ERROR_ADDRESS);
	rig_free(rig);
}
END_TEST

/* It says that it has checked nothing. */
START_TEST(a_device_without_keys_does_not_look_at_signatures)
{
	struct rig *rig = rig_power_on(1, 0);
	struct signed_image s = {{0}, {0}};

	ck_assert_uint_eq(boot_signed(rig, &s, sizeof(s)), EMBENG_BOOT_RUNNING);
	ck_assert(reg(rig, EMBENG_REG_FEATURES) & EMBENG_CAP_SIGNATURE_UNCHECKED);
	rig_free(rig);
}
END_TEST

START_TEST(rollback_is_refused_after_a_newer_minimum)
{
	struct rig *rig = rig_power_on(1, 0);
	u64 version = 0;

	reg_write64(rig->engine, EMBENG_REG_BOOT_RAISE, U64_MAX);
	ck_assert_uint_eq(rig_boot(rig, embeng_builtin_image, sizeof(embeng_builtin_image)),
			  EMBENG_BOOT_RUNNING);
	rig_warm_reset(rig);
	memcpy(copy, embeng_builtin_image, sizeof(copy));
	memcpy(copy + offsetof(struct embeng_fw_header, version), &version, sizeof(version));
	ck_assert_uint_eq(rig_boot(rig, copy, sizeof(copy)), EMBENG_BOOT_FAILED);
	ck_assert_uint_eq(reg(rig, EMBENG_REG_BOOT_ERROR), EMBENG_BOOT_ERROR_VERSION);
	rig_free(rig);
}
END_TEST

START_TEST(the_heart_beats)
{
	struct rig *rig = rig_new(1, 1);
	u32 before = reg(rig, EMBENG_REG_HEARTBEAT);

	while (reg(rig, EMBENG_REG_HEARTBEAT) == before)
		rig_run(rig);
	rig_free(rig);
}
END_TEST

START_TEST(a_config_outside_its_limits_is_refused)
{
	static u8 memory[2 * 4096] __attribute__((aligned(4096)));
	const struct engine_config good = {.registers = memory,
					   .doorbells = memory,
					   .doorbell_stride = 4096,
					   .queues = 2,
					   .vectors = 1,
					   .cores = 1};
	struct engine_config bad[8];
	struct engine *e = NULL;
	u32 i;

	for (i = 0; i < 8; i++)
		bad[i] = good;
	bad[0].registers = memory + 8;
	bad[1].doorbells = NULL;
	bad[2].doorbell_stride = 64;
	bad[3].queues = 1;
	bad[4].vectors = 0;
	bad[5].cores = 0;
	bad[6].cores = 65;
	bad[7].variant = "no such";
	for (i = 0; i < 8; i++)
		ck_assert_int_eq(engine_create(&bad[i], &e), -EINVAL);
	ck_assert_ptr_null(e);
	engine_destroy(e);
}
END_TEST

/* Rings of @rig as they are now, in memory to be freed. */
static u8 *rings_of(const struct rig *rig, const struct rig_queue *q)
{
	u8 *all = malloc(rig->admin.layout.size + q->layout.size);

	memcpy(all, rig->admin.ring, rig->admin.layout.size);
	memcpy(all + rig->admin.layout.size, q->ring, q->layout.size);
	return all;
}

/* It answers its registers, and touches nothing that the host may have given to others. */
START_TEST(without_the_bus_no_memory_is_reached)
{
	struct rig *rig = rig_new(1, 0);
	struct rig_queue *q = rig_queue(rig, 0, EMBENG_QUEUE_TRANSFER, 0);
	struct embeng_cmd later = {.opcode = EMBENG_OP_NOP,
				   .arg = (u64)EMBENG_NOP_DELAY_MAX << EMBENG_NOP_DELAY_SHIFT};
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_NOP};
	u8 *before, *after;
	u32 beat;

	rig_submit(q, &later);
	engine_run(rig->engine, ENGINE_RUN_ALL);
	ck_assert_uint_eq(((struct embeng_ring_header *)(q->ring + q->layout.header))->sq_head, 1);
	rig_submit(q, &cmd);
	before = rings_of(rig, q);
	engine_bus(rig->engine, false);
	beat = reg_read32(rig->engine, EMBENG_REG_HEARTBEAT);
	while (reg_read32(rig->engine, EMBENG_REG_HEARTBEAT) == beat)
		engine_run(rig->engine, ENGINE_RUN_ALL);
	rig_warm_reset(rig);
	after = rings_of(rig, q);
	ck_assert_mem_eq(before, after, rig->admin.layout.size + q->layout.size);
	ck_assert_uint_eq(reg_read32(rig->engine, EMBENG_REG_BOOT_STATE), EMBENG_BOOT_ROM);
	free(before);
	free(after);
	rig_free(rig);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, boots_and_says_what_it_can_do);
	tcase_add_test(t, a_refused_image_leaves_it_without_firmware);
	tcase_add_loop_test(t, an_image_of_no_possible_length_is_refused, 0, 3);
	tcase_add_test(t, parameters_limit_what_the_device_gives);
	tcase_add_test(t, a_parameter_says_how_often_the_heart_beats);
	tcase_add_test(t, work_below_inline_bytes_stays_with_its_thread);
	tcase_add_test(t, an_image_outside_the_given_memory_is_refused);
	tcase_add_loop_test(t, a_bad_admin_ring_is_refused, 0,
			    (int)(sizeof(bad_rings) / sizeof(bad_rings[0])));
	tcase_add_test(t, the_longest_image_is_looked_at);
	tcase_add_test(t, an_unknown_request_does_nothing);
	tcase_add_test(t, a_boot_without_memory_is_refused);
	tcase_add_test(t, a_boot_while_running_changes_nothing);
	tcase_add_loop_test(t, a_warm_reset_keeps_nothing, 0, 2);
	tcase_add_loop_test(t, an_image_raises_the_minimum_as_far_as_the_driver_allows, 0,
			    (int)(sizeof(raises) / sizeof(raises[0])));
	tcase_add_test(t, a_refused_image_raises_nothing);
	tcase_add_test(t, a_device_with_keys_boots_a_signed_image);
	tcase_add_loop_test(t, a_device_with_keys_boots_no_other_image, 0,
			    (int)(sizeof(unsigned_images) / sizeof(unsigned_images[0])));
	tcase_add_test(t, a_signature_outside_the_given_memory_is_refused);
	tcase_add_test(t, a_device_without_keys_does_not_look_at_signatures);
	tcase_add_test(t, rollback_is_refused_after_a_newer_minimum);
	tcase_add_test(t, the_heart_beats);
	tcase_add_test(t, without_the_bus_no_memory_is_reached);
	tcase_add_test(t, a_config_outside_its_limits_is_refused);
}

int main(void)
{
	return suite_main("boot", add);
}
