// SPDX-License-Identifier: MIT
/*
 * The verb `embeng list`: lists all devices, those that cannot be opened with the reason. It opens
 * no model: the library asks each device what it is.
 */
#include <errno.h>

#include "../frame/command.h"
#include "device.h"

static const char doc[] =
	"List all devices. A device that cannot be opened is listed with the reason.\v"
	"Examples:\n"
	"  embeng list            a table for people\n"
	"  embeng list --json     for scripts: .devices[].name is the name that -d takes\n"
	"  embeng info -d NAME    show more about one device";

static error_t parse_list_option(int key, char *arg, struct argp_state *state)
{
	if (key == ARGP_KEY_ARG)
		argp_error(state, "list takes no argument, given '%s'", arg);
	return key == ARGP_KEY_ARG ? EINVAL : ARGP_ERR_UNKNOWN;
}

struct listing {
	struct json_object *devices; /* NULL: as text */
	size_t shown;
};

/* The size of a device that cannot be opened is not known. */
static void show_size(const struct embeng_device_info *info)
{
	if (*info->problem)
		printf(" %5s %10s", "-", "-");
	else
		printf(" %5u %6llu MiB", info->cores,
		       (unsigned long long)(info->table_memory >> 20));
}

static int show_device(void *arg, const struct embeng_device_info *info)
{
	struct listing *listing = arg;

	if (listing->devices) {
		json_object_array_add(listing->devices, device_document(info));
		return 0;
	}
	if (!listing->shown++)
		printf("%-34s %-6s %-9s %5s %10s\n", "NAME", "KIND", "VARIANT", "CORES", "MEMORY");
	printf("%-34s %-6s %-9s", info->name, info->kind, *info->variant ? info->variant : "-");
	show_size(info);
	printf("%s%s\n", *info->description ? "  " : "", info->description);
	if (*info->problem)
		printf("  cannot be opened: %s\n", info->problem);
	return 0;
}

int cmd_list(int argc, char **argv)
{
	static const struct argp argp = {.parser = parse_list_option, .doc = doc};
	struct output out = {.verb = "list"};
	struct listing listing = {0};
	struct json_object *document;
	int code = command_parse(&argp, argc, argv, &out, NULL), err;

	if (code)
		return code;
	if (out.json)
		listing.devices = json_object_new_array();
	err = embeng_device_list(show_device, &listing);
	if (err) {
		json_object_put(listing.devices);
		return output_library_failure(&out, err, NULL);
	}
	if (!out.json) {
		if (!listing.shown)
			puts("no devices");
		return CLI_OK;
	}
	document = json_document(&out);
	json_object_object_add(document, "devices", listing.devices);
	return json_emit(document);
}
