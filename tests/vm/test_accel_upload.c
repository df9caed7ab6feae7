// SPDX-License-Identifier: MIT
/* Another firmware image at run time: taken, refused, canceled. */
#include "../unit/support/suite.h"
#include "embeng_firmware.h"
#include "embeng_regs.h"
#include "fault_file.h"
#include "flood.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define IMAGE "/lib/firmware/embeng/embeng.fw"
#define UPLOAD "/sys/class/firmware/embeng-0eb0:00:00.0/"
#define FUNCTION "/sys/bus/pci/devices/0eb0:00:00.0/"

struct image {
	char *data;
	size_t length;
};

static struct embeng_fw_header *header_of(struct image image)
{
	return (struct embeng_fw_header *)image.data;
}

static struct image read_image(void)
{
	struct image image = {.data = malloc(EMBENG_FW_LENGTH_MAX)};
	int file = open(IMAGE, O_RDONLY);
	ssize_t length = read(file, image.data, EMBENG_FW_LENGTH_MAX);

	ck_assert_int_gt(length, (ssize_t)sizeof(struct embeng_fw_header));
	close(file);
	image.length = (size_t)length;
	return image;
}

static void hand_over(struct image image)
{
	int file;

	accel_write(UPLOAD "loading", "1");
	file = open(UPLOAD "data", O_WRONLY);
	for (size_t at = 0; at < image.length;) {
		ssize_t done = write(file, image.data + at, image.length - at);

		ck_assert_msg(done > 0, "data: %s", strerror(errno));
		at += (size_t)done;
	}
	close(file);
	accel_write(UPLOAD "loading", "0");
}

/* Waits for the upload to end. Return: the error, "" if there was none. */
static const char *end_of_upload(void)
{
	while (strcmp(accel_read_file(UPLOAD "status"), "idle\n"))
		usleep(2000);
	return accel_read_file(UPLOAD "error");
}

static const char *upload(struct image image)
{
	hand_over(image);
	return end_of_upload();
}

static uint64_t version(void)
{
	unsigned int part[4];

	ck_assert_int_eq(sscanf(accel_read_file(FUNCTION "firmware_version"), "%u.%u.%u.%u",
				&part[0], &part[1], &part[2], &part[3]),
			 4);
	return (uint64_t)part[0] << 48 | (uint64_t)part[1] << 32 | part[2] << 16 | part[3];
}

START_TEST(test_a_newer_image_runs)
{
	struct image image = read_image();
	uint64_t before = version();
	int fd = accel_open();
	struct flood f;
	pthread_t thread;

	accel_context(fd);
	f = flood_of(fd);
	ck_assert_int_eq(pthread_create(&thread, NULL, flood, &f), 0);
	header_of(image)->version = before + 1;
	ck_assert_str_eq(upload(image), "");
	ck_assert_uint_eq(version(), before + 1);
	pthread_join(thread, NULL);
	accel_check_lost(fd, &f.ring);
	close(fd);
	accel_works();
	/* It is what a reset boots from now on. */
	accel_write(FUNCTION "reset", "1");
	ck_assert_uint_eq(version(), before + 1);
	header_of(image)->version = before;
	ck_assert_str_eq(upload(image), "");
	ck_assert_uint_eq(version(), before);
	free(image.data);
}
END_TEST

/* Refused as a whole before the device hears of it: contexts live on. */
static void refuse_at_once(struct image image, const char *error)
{
	int fd = accel_open();
	struct ring ring;

	accel_context(fd);
	ring = accel_ring(fd, EMBENG_QUEUE_TRANSFER, EMBENG_ACCEL_QUEUE_MAPPED);
	ck_assert_str_eq(upload(image), error);
	accel_push(&ring, (struct embeng_cmd){.cookie = 6});
	ck_assert_uint_eq(accel_take(fd, &ring).cookie, 6);
	close(fd);
}

START_TEST(test_no_image)
{
	struct image image = read_image(), part = {image.data, sizeof(struct embeng_fw_header) - 1};
	struct embeng_fw_header good = *header_of(image);

	refuse_at_once(part, "preparing:invalid-file-size\n");
	part.length = image.length - 1;
	refuse_at_once(part, "preparing:firmware-invalid\n");
	header_of(image)->magic++;
	refuse_at_once(image, "preparing:firmware-invalid\n");
	*header_of(image) = good;
	header_of(image)->format++;
	refuse_at_once(image, "preparing:firmware-invalid\n");
	*header_of(image) = good;
	header_of(image)->interface_major++;
	refuse_at_once(image, "preparing:firmware-invalid\n");
	free(image.data);
}
END_TEST

static void check_refusal(uint32_t error, uint64_t offset)
{
	char expected[48];

	snprintf(expected, sizeof(expected), "error %u, byte %" PRIu64 "%s: ", error, offset,
		 error == EMBENG_BOOT_ERROR_SELF_TEST ? ", self-test 0" : "");
	ck_assert_msg(
		!strncmp(accel_read_file(FUNCTION "firmware_refused"), expected, strlen(expected)),
		"%s is not %s", accel_read_file(FUNCTION "firmware_refused"), expected);
}

/* The device refuses, says why, and runs what it ran before. */
static void refuse(struct image image, uint32_t error, uint64_t offset)
{
	uint64_t before = version();

	ck_assert_str_eq(upload(image), "programming:firmware-invalid\n");
	check_refusal(error, offset);
	ck_assert_uint_eq(version(), before);
	accel_works();
}

/* The driver sees it by itself, so that nobody loses a context. */
static void refuse_unheard(struct image image, uint32_t error, uint64_t offset)
{
	refuse_at_once(image, "preparing:firmware-invalid\n");
	check_refusal(error, offset);
}

START_TEST(test_bad_images)
{
	struct image image = read_image();
	struct embeng_fw_header good = *header_of(image);
	struct embeng_fw_section *section = (void *)(image.data + sizeof(good));

	for (uint32_t i = 0; i < good.section_count; i++) {
		image.data[section[i].offset + section[i].length - 1] ^= 1;
		refuse_unheard(image, EMBENG_BOOT_ERROR_HASH, section[i].offset);
		image.data[section[i].offset + section[i].length - 1] ^= 1;
	}
	section[0].sha256[31] ^= 0x80;
	refuse_unheard(image, EMBENG_BOOT_ERROR_HASH, section[0].offset);
	section[0].sha256[31] ^= 0x80;
	header_of(image)->interface_minor = UINT32_MAX;
	refuse_unheard(image, EMBENG_BOOT_ERROR_INTERFACE,
		       offsetof(struct embeng_fw_header, interface_minor));
	*header_of(image) = good;
	/* below its own minimum_version */
	header_of(image)->version = 0;
	refuse_unheard(image, EMBENG_BOOT_ERROR_PARAMETER,
		       section[0].offset + offsetof(struct embeng_fw_parameters, minimum_version));
	*header_of(image) = good;
	header_of(image)->section_count = 0;
	refuse_unheard(image, EMBENG_BOOT_ERROR_SECTION,
		       offsetof(struct embeng_fw_header, section_count));
	*header_of(image) = good;
	header_of(image)->reserved[3] = 1;
	refuse_unheard(image, EMBENG_BOOT_ERROR_RESERVED,
		       offsetof(struct embeng_fw_header, reserved) + 3);
	*header_of(image) = good;
	/* bytes that are no signature behind the image */
	memset(image.data + image.length, 0, 128);
	image.length += 128;
	refuse_unheard(image, EMBENG_BOOT_ERROR_SIGNATURE, image.length - 128);
	free(image.data);
}
END_TEST

/*
 * Each error with which a device can refuse an image is reported. The emulator injects it, since
 * some would need other images or other memory.
 */
START_TEST(test_every_refusal)
{
	struct image image = read_image();

	fault_arm("firmware_refuses", 1);
	fault_file_set("firmware_refuses", "value", (uint64_t)_i);
	refuse(image, (uint32_t)_i, _i == EMBENG_BOOT_ERROR_LENGTH ? image.length : 0);
	free(image.data);
}
END_TEST

static void *reset_slowly(void *arg)
{
	accel_write(FUNCTION "reset", "1");
	return arg;
}

/* The new image waits for a reset that is under way, and is not wanted any more. */
START_TEST(test_canceled)
{
	struct image image = read_image();
	uint64_t before = version();
	pthread_t thread;

	fault_arm("firmware_slow", 1);
	fault_file_set("firmware_slow", "value", 3 * SECOND);
	ck_assert_int_eq(pthread_create(&thread, NULL, reset_slowly, NULL), 0);
	while (fault_get("firmware_slow", "count"))
		usleep(1000);
	header_of(image)->version = before + 1;
	hand_over(image);
	while (strcmp(accel_read_file(UPLOAD "status"), "programming\n"))
		usleep(1000);
	accel_write(UPLOAD "cancel", "1");
	ck_assert_str_eq(end_of_upload(), "programming:user-abort\n");
	pthread_join(thread, NULL);
	ck_assert_uint_eq(version(), before);
	accel_works();
	free(image.data);
}
END_TEST

static void add(TCase *tc)
{
	tcase_add_test(tc, test_a_newer_image_runs);
	tcase_add_test(tc, test_no_image);
	tcase_add_test(tc, test_bad_images);
	tcase_add_loop_test(tc, test_every_refusal, 1, EMBENG_BOOT_ERROR_SIGNATURE_MISMATCH + 1);
	tcase_add_test(tc, test_canceled);
}

int main(void)
{
	return suite_main("upload", add);
}
