// SPDX-License-Identifier: MIT
/*
 * The command `embeng fw show`: which firmware a device runs, who signed it, and why another was
 * refused. The driver says it in sysfs, so that it is shown of a device that cannot be opened, too.
 * The soft device has its image built in.
 *
 * Nothing is kept between calls, and no lock is needed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../device/device.h"
#include "commands.h"

#define VALUE_BYTES 512

static const char doc[] =
	"Show which firmware a device runs, where it is from, who signed it, the lowest version\n"
	"that the device boots, and why the newest image that was refused was.\v"
	"  embeng fw show\n"
	"  embeng fw show -d pci:0000:01:00.0 --json\n\n"
	"\"unsigned\" and \"unchecked\" mean that no key is enrolled: docs/firmware-keys.md.\n"
	"Exit status: 0 ok, 2 usage, 6 no such device, 9 no driver is bound to it.";

static const struct argp_option options[] = {
	{"device", 'd', "DEVICE", 0, "The device, by a name that `embeng list` shows", 0},
	{0},
};

/* A row is an attribute of the function, its labels, and its value for the soft device. */
static const struct {
	const char *attribute, *member, *label, *soft;
} rows[] = {
	{"firmware_version", "version", "version", NULL},
	{"firmware_minimum", "minimum", "lowest", "0.0.0.0"},
	{"firmware_image", "image", "image", "built in"},
	{"firmware_signature", "signature", "signature", "unsigned"},
	{"firmware_refused", "refused", "refused", "none"},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

struct choice {
	const char *name; /* NULL: the first */
	struct embeng_device_info info;
	bool found;
};

static error_t parse_fw_show_option(int key, char *arg, struct argp_state *state)
{
	struct choice *choice = state->input;

	switch (key) {
	case 'd':
		choice->name = arg;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "show takes no argument, given '%s'; name a device with -d", arg);
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* A name may have settings behind it, as soft:cores=4 has; they change no firmware. */
static bool is_named(const struct choice *choice, const struct embeng_device_info *info)
{
	const char *given = choice->name;
	size_t length;

	if (!given || !*given)
		return true;
	if (!strncmp(given, "soft", 4) && (!given[4] || given[4] == ':'))
		return !strcmp(info->kind, "soft");
	length = strcspn(given, ",");
	return (strlen(info->name) == length && !memcmp(given, info->name, length)) ||
	       (strlen(info->address) == length && !memcmp(given, info->address, length));
}

static int choose_device(void *arg, const struct embeng_device_info *info)
{
	struct choice *choice = arg;

	if (!is_named(choice, info))
		return 0;
	choice->info = *info;
	choice->found = true;
	return 1;
}

/* The first line of an attribute of the driver's. Return: false if there is none. */
static bool read_attribute(const struct embeng_device_info *info, const char *attribute,
			   char value[VALUE_BYTES])
{
	const char *address = info->address + strlen("pci:");
	char *path = NULL;
	FILE *file = NULL;
	bool read = false;

	if (!strncmp(info->address, "pci:", 4) &&
	    asprintf(&path, "/sys/bus/pci/devices/%s/%s", address, attribute) >= 0)
		file = fopen(path, "re");
	if (file) {
		read = fgets(value, VALUE_BYTES, file);
		fclose(file);
	}
	free(path);
	value[read ? strcspn(value, "\n") : 0] = '\0';
	return read;
}

static bool read_value(const struct embeng_device_info *info, size_t row, char value[VALUE_BYTES])
{
	uint64_t version = info->firmware_version;

	if (strcmp(info->kind, "soft"))
		return read_attribute(info, rows[row].attribute, value);
	if (rows[row].soft)
		snprintf(value, VALUE_BYTES, "%s", rows[row].soft);
	else
		snprintf(value, VALUE_BYTES, "%u.%u.%u.%u", (unsigned int)(version >> 48),
			 (unsigned int)(version >> 32 & 0xffff),
			 (unsigned int)(version >> 16 & 0xffff), (unsigned int)(version & 0xffff));
	return true;
}

static int show_firmware(const struct output *out, const struct embeng_device_info *info)
{
	struct json_object *d = out->json ? json_document(out) : NULL;
	char value[VALUE_BYTES];

	if (d)
		json_add_text(d, "device", info->name);
	else
		printf("%-13s %s\n", "device", info->name);
	for (size_t row = 0; row < ROWS; row++) {
		bool known = read_value(info, row, value);

		if (d)
			json_object_object_add(d, rows[row].member,
					       known ? json_object_new_string(value) : NULL);
		else
			printf("%-13s %s\n", rows[row].label, known ? value : "unknown");
	}
	return d ? json_emit(d) : CLI_OK;
}

int fw_show(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options, .parser = parse_fw_show_option, .doc = doc};
	struct output out = {.verb = "fw", .command = "show"};
	struct choice choice = {0};
	char value[VALUE_BYTES];
	int code = command_parse(&argp, argc, argv, &out, &choice), ret;

	if (code)
		return code;
	choice.name = device_choose(choice.name);
	ret = embeng_device_list(choose_device, &choice);
	if (ret < 0)
		return output_library_failure(&out, ret, NULL);
	if (!choice.found)
		return output_fail(&out, CLI_NO_DEVICE, ENODEV, device_hint, "%s: no such device",
				   choice.name);
	if (!read_value(&choice.info, 0, value))
		return output_fail(&out, CLI_NO_DRIVER, ENXIO, NULL, "%s", choice.info.problem);
	return show_firmware(&out, &choice.info);
}
