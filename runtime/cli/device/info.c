// SPDX-License-Identifier: MIT
/*
 * The verb `embeng info`: shows the limits and capabilities of a device. It makes no context, so
 * that a device whose contexts are all taken is shown as well.
 */
#include <errno.h>

#include "../frame/command.h"
#include "../frame/terminal.h"
#include "device.h"

static const char doc[] =
	"Show what a device is and what it can do.\v"
	"Examples:\n"
	"  embeng info                            the default device\n"
	"  embeng info -d /dev/accel/accel0       a device behind the kernel driver\n"
	"  embeng info -d pci:0000:01:00.0        a device by its PCI address\n"
	"  embeng info -d soft:cores=4            the soft device with four cores\n"
	"  embeng info -d soft:variant=portable   the soft device without vector instructions\n"
	"  embeng info --json                     for scripts\n\n"
	"The default device is the one that the environment variable EMBENG_DEVICE names. If\n"
	"it is not set, the default is the first device on the PCI bus, or the soft device if\n"
	"there is none.";

static const struct argp_option options[] = {
	{"device", 'd', "DEVICE", 0, "The device, by a name that `embeng list` shows", 0},
	{0},
};

static error_t parse_info_option(int key, char *arg, struct argp_state *state)
{
	const char **device = state->input;

	switch (key) {
	case 'd':
		*device = arg;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "info takes no argument, given '%s'; name a device with -d", arg);
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void print_capabilities(uint32_t features)
{
	const char *name, *separator = "";
	uint32_t bit;

	printf("capabilities  ");
	for (size_t k = 0; (name = device_capability(k, &bit)); k++) {
		if (features & bit) {
			printf("%s%s", separator, name);
			separator = ", ";
		}
	}
	putchar('\n');
}

static void print_text(const char *label, const char *text)
{
	if (*text)
		printf("%-13s %s\n", label, text);
}

/* The text has words of a file that may be anybody's. */
static void print_stranger(const char *label, const char *text)
{
	if (!*text)
		return;
	printf("%-13s ignored: ", label);
	terminal_put(text);
	putchar('\n');
}

static void print_info(const struct embeng_device_info *info)
{
	char firmware[64];

	device_firmware(info, firmware, sizeof(firmware));
	printf("name          %s\n", info->name);
	printf("kind          %s\n", info->kind);
	print_text("description", info->description);
	print_text("address", info->address);
	print_text("driver", info->driver);
	printf("variant       %s\n", *info->variant ? info->variant : "-");
	print_text("state", info->state);
	printf("firmware      %s\n", firmware);
	printf("interface     %u.%u\n", info->interface_major, info->interface_minor);
	printf("cores         %u\n", info->cores);
	printf("table memory  %llu MiB\n", (unsigned long long)(info->table_memory >> 20));
	if (info->command_bytes)
		printf("command       up to %llu MiB\n",
		       (unsigned long long)(info->command_bytes >> 20));
	printf("step depth    %u\n", info->step_depth);
	printf("replicas      up to %u\n", info->replicas);
	printf("tables        up to %u\n", info->tables);
	printf("dim           up to %u\n", info->dim);
	print_capabilities(info->features);
	print_text("fetch ahead", info->fetch);
	print_text("fetch from", info->fetch_source);
	print_stranger("tune file", info->tune_problem);
}

int cmd_info(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options, .parser = parse_info_option, .doc = doc};
	struct embeng_device_info info = EMBENG_INIT(embeng_device_info);
	struct output out = {.verb = "info"};
	struct json_object *document;
	const char *device = NULL;
	int code = command_parse(&argp, argc, argv, &out, &device), err;

	if (code)
		return code;
	err = embeng_device_info(device, &info);
	if (err)
		return output_library_failure(&out, err, err == -ENODEV ? device_hint : NULL);
	if (!out.json) {
		print_info(&info);
		return CLI_OK;
	}
	document = json_document(&out);
	json_object_object_add(document, "device", device_document(&info));
	return json_emit(document);
}
