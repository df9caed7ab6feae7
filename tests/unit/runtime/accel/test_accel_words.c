// SPDX-License-Identifier: MIT
/*
 * Vendor and device in words: udev's hardware database knows both, one of them, or neither. The
 * functions of libudev that read it are played here, since no database can be named to the real ones.
 */
#include <libudev.h>

#include <stdio.h>
#include <string.h>

#include "runtime/src/device/accel/accel.h"
#include "session_help.h"

static const char *vendor, *model, *device;
static char asked[64];
static int open_objects;
static bool has_database;

struct udev *udev_new(void)
{
	open_objects++;
	return (struct udev *)&open_objects;
}

struct udev *udev_unref(struct udev *udev)
{
	open_objects -= !!udev;
	return NULL;
}

struct udev_hwdb *udev_hwdb_new(struct udev *udev)
{
	ck_assert_ptr_nonnull(udev);
	open_objects += has_database;
	return has_database ? (struct udev_hwdb *)&has_database : NULL;
}

struct udev_hwdb *udev_hwdb_unref(struct udev_hwdb *database)
{
	open_objects -= !!database;
	return NULL;
}

struct udev_list_entry *udev_hwdb_get_properties_list_entry(struct udev_hwdb *database,
							    const char *id, unsigned int flags)
{
	ck_assert_ptr_nonnull(database);
	ck_assert_uint_eq(flags, 0);
	snprintf(asked, sizeof(asked), "%s", id);
	return vendor || model ? (struct udev_list_entry *)asked : NULL;
}

struct udev_list_entry *udev_list_entry_get_by_name(struct udev_list_entry *list, const char *name)
{
	const char *value = !strcmp(name, "ID_VENDOR_FROM_DATABASE")  ? vendor
			    : !strcmp(name, "ID_MODEL_FROM_DATABASE") ? model
								      : NULL;

	return list ? (struct udev_list_entry *)value : NULL;
}

const char *udev_list_entry_get_value(struct udev_list_entry *entry)
{
	return (const char *)entry;
}

struct udev_device *udev_device_new_from_subsystem_sysname(struct udev *udev, const char *subsystem,
							   const char *sysname)
{
	ck_assert_ptr_nonnull(udev);
	ck_assert_str_eq(subsystem, "pci");
	ck_assert_str_eq(sysname, "0000:01:00.0");
	open_objects += !!device;
	return (struct udev_device *)device;
}

struct udev_device *udev_device_unref(struct udev_device *udev_device)
{
	open_objects -= !!udev_device;
	return NULL;
}

const char *udev_device_get_sysattr_value(struct udev_device *udev_device, const char *attribute)
{
	ck_assert_str_eq(attribute, "device");
	return (const char *)udev_device;
}

static void expect_words(const char *words)
{
	char text[128] = "nothing was written";

	accel_words("pci:0000:01:00.0", text, sizeof(text));
	ck_assert_str_eq(text, words);
	ck_assert_int_eq(open_objects, 0);
}

START_TEST(words_of_the_database)
{
	has_database = true;
	vendor = "Embeng";
	model = "Model Engine";
	expect_words("Embeng Model Engine");
	ck_assert_str_eq(asked, "pci:v00000EB0d00000001sv");
	model = NULL;
	expect_words("Embeng Device 0001");
	vendor = NULL;
	expect_words("Device 0eb0:0001");
}
END_TEST

START_TEST(words_of_another_generation)
{
	has_database = true;
	device = "0x0002";
	expect_words("Device 0eb0:0002");
	vendor = "Embeng";
	expect_words("Embeng Device 0002");
	ck_assert_str_eq(asked, "pci:v00000EB0d00000002sv");
}
END_TEST

START_TEST(words_without_a_database)
{
	device = NULL;
	has_database = false;
	vendor = "Embeng";
	expect_words("Device 0eb0:0001");
}
END_TEST

START_TEST(words_that_do_not_fit_are_cut)
{
	char text[8];

	has_database = true;
	vendor = "Embeng";
	model = "Model Engine";
	accel_words("pci:0000:01:00.0", text, sizeof(text));
	ck_assert_str_eq(text, "Embeng ");
}
END_TEST

RUN_SUITE("accel_words", words_of_the_database, words_of_another_generation,
	  words_without_a_database, words_that_do_not_fit_are_cut)
