// SPDX-License-Identifier: MIT
/*
 * The verb `embeng doctor`: looks for whatever keeps a device from being opened or makes it slow. The
 * checks are in checks.c; this file has the options, the tree that is examined, and its record.
 */
#include <errno.h>
#include <string.h>

#include "../device/device.h"
#include "../frame/command.h"
#include "print.h"

static const char doc[] =
	"Check whatever may keep a device from being opened or make it slow, from the bus to one\n"
	"lookup, and say what to do.\v"
	"Examples:\n"
	"  embeng doctor                        check every device of this machine\n"
	"  embeng doctor -d /dev/accel/accel0   check one device\n"
	"  embeng doctor -v                     also show checks that were not made, and all "
	"reasons\n"
	"  embeng doctor --json                 for scripts: .checks[].verdict\n"
	"  embeng doctor --record DIR           also keep what was read, for a bug report\n"
	"  embeng doctor --root DIR             examine such a record\n\n"
	"A machine without an engine has the soft device, on which the lookup is tried.\n\n"
	"Exit status: 0 no problem, 1 a lookup gave wrong sums, 2 usage, 4 the node may not be\n"
	"opened, 5 another driver has the device, 6 no such device or no node, 7 device error,\n"
	"9 driver not built, loaded or bound, 10 firmware. The first problem decides.";

enum { KEY_ROOT = 0x100, KEY_RECORD };

static const struct argp_option options[] = {
	{"device", 'd', "DEVICE", 0, "Check this device alone, by a name that `embeng list` shows",
	 0},
	{"verbose", 'v', NULL, 0, "Also show checks that were not made, and why each check matters",
	 0},
	{"root", KEY_ROOT, "DIR", 0, "Examine the files of a machine that --record kept in DIR", 0},
	{"record", KEY_RECORD, "DIR", 0, "Copy the files that are read into DIR, a new folder", 0},
	{0},
};

struct call {
	const char *device, *root, *record;
	bool verbose;
};

static error_t parse_doctor_option(int key, char *arg, struct argp_state *state)
{
	struct call *call = state->input;

	switch (key) {
	case 'd':
		call->device = arg;
		return 0;
	case 'v':
		call->verbose = true;
		return 0;
	case KEY_ROOT:
		call->root = arg;
		return 0;
	case KEY_RECORD:
		call->record = arg;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "doctor takes no argument, given '%s'; name a device with -d",
			   arg);
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int show_results(const struct output *out, const struct call *call, const struct machine *m)
{
	struct results results;
	int code;

	if (machine_examine(m, &results))
		return output_fail(out, CLI_DEVICE, ENOMEM, NULL, "out of memory");
	code = results_exit_code(&results);
	if (out->json)
		json_emit(doctor_document(out, m, &results));
	else
		doctor_print(&results, call->verbose);
	results_free(&results);
	return code;
}

static int examine_tree(const struct output *out, const struct call *call, struct tree *tree)
{
	const char *named = call->root ? call->device : device_choose(call->device);
	struct machine m;
	int err = machine_open(tree, named && *named ? named : NULL, &m), code;

	if (err)
		return output_fail(out, exit_of_errno(err), err, NULL,
				   "the files of the machine cannot be read: %s", strerror(-err));
	code = show_results(out, call, &m);
	machine_close(&m);
	return code;
}

/* A record that is not complete is told of behind the results, which stand all the same. */
static int close_tree(struct tree *tree, const struct call *call, int code)
{
	int err = tree_close(tree);

	if (!err)
		return code;
	fprintf(stderr, "embeng doctor: %s: the record is not complete: %s\n", call->record,
		strerror(-err));
	return code ? code : exit_of_errno(err);
}

int cmd_doctor(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options, .parser = parse_doctor_option, .doc = doc};
	struct output out = {.verb = "doctor"};
	struct call call = {0};
	struct tree *tree;
	int code = command_parse(&argp, argc, argv, &out, &call), err;

	if (code)
		return code;
	err = tree_open(call.root, &tree);
	if (err)
		return output_fail(&out, exit_of_errno(err), err,
				   "--root wants a folder that `embeng doctor --record` has made",
				   "%s: %s", call.root ? call.root : "/", strerror(-err));
	err = call.record ? tree_record(tree, call.record) : 0;
	if (err) {
		tree_close(tree);
		return output_fail(
			&out, exit_of_errno(err), err,
			"--record wants the name of a folder that is not there, or is empty",
			"%s: %s", call.record, strerror(-err));
	}
	return close_tree(tree, &call, examine_tree(&out, &call, tree));
}
