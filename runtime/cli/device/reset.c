// SPDX-License-Identifier: MIT
/*
 * The verb `embeng reset`: resets a device that is named with -d. There is no default device for
 * it, because every program that uses the device loses its tables.
 */
#include <errno.h>

#include "../frame/command.h"
#include "device.h"

static const char doc[] =
	"Reset a device, which then boots its firmware again. Every program that has the\n"
	"device open loses its tables, and its next calls fail and say why.\v"
	"Examples:\n"
	"  embeng reset -d /dev/accel/accel0              reset the engine\n"
	"  embeng reset -d /dev/accel/accel0 --function   reset the whole PCI function";

enum { KEY_FUNCTION = 0x100 };

static const struct argp_option options[] = {
	{"device", 'd', "DEVICE", 0, "The device, by a name that `embeng list` shows; required", 0},
	{"function", KEY_FUNCTION, NULL, 0, "Reset the whole PCI function, not only the engine", 0},
	{0},
};

struct call {
	const char *device;
	enum embeng_reset what;
};

static error_t parse_reset_option(int key, char *arg, struct argp_state *state)
{
	struct call *call = state->input;

	switch (key) {
	case 'd':
		call->device = arg;
		return 0;
	case KEY_FUNCTION:
		call->what = EMBENG_RESET_FUNCTION;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "reset takes no argument, given '%s'; name a device with -d",
			   arg);
		return EINVAL;
	case ARGP_KEY_END:
		/* To the library an empty name is any device. */
		if (call->device && *call->device)
			return 0;
		/* A reset loses every program's tables, so no device is chosen by default. */
		argp_error(state, "no device is given; name one with -d");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int cmd_reset(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options, .parser = parse_reset_option, .doc = doc};
	struct output out = {.verb = "reset"};
	struct call call = {.what = EMBENG_RESET_ENGINE};
	int code = command_parse(&argp, argc, argv, &out, &call), err;
	struct json_object *document;

	if (code)
		return code;
	err = embeng_device_reset(call.device, call.what);
	if (err)
		return output_library_failure(&out, err, err == -ENODEV ? device_hint : NULL);
	if (!out.json) {
		printf("%s was reset\n", call.device);
		return CLI_OK;
	}
	document = json_document(&out);
	json_add_text(document, "device", call.device);
	json_add_text(document, "reset",
		      call.what == EMBENG_RESET_FUNCTION ? "function" : "engine");
	return json_emit(document);
}
