// SPDX-License-Identifier: MIT
/*
 * The verb `embeng vm`: boots a virtual machine that has emulated devices behind the driver, runs a
 * command there and exits with its status. The scripts of runtime/vm boot it; here are the options,
 * and what is made of the command's output.
 */
#define _GNU_SOURCE /* asprintf(), secure_getenv() */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../text/number.h"
#include "../frame/command.h"
#include "../frame/outfile.h"

#include "junit.h"
#include "script.h"

static const char doc[] =
	"Boot a virtual machine that has emulated devices behind the kernel driver, and run a\n"
	"command there as root. The command finds this machine's files. What it changes is kept\n"
	"in the folder of --share, and is gone with the machine elsewhere. The exit status is the\n"
	"command's; 124 when the time limit passed, 125 when the machine did not come up.\v"
	"Examples:\n"
	"  embeng vm -- embeng list                     one device, on a kernel of Debian's\n"
	"  embeng vm --share . --junit tests.xml -- make test\n"
	"  embeng vm --kernel newest --devices 2 -- ./two_devices\n\n"
	"The first run fetches a kernel and builds the modules; later ones find both in\n"
	"~/.cache/embeng, or in the folder that EMBENG_CACHE names.";

enum {
	KEY_KERNEL = 0x100,
	KEY_MEMORY,
	KEY_CPUS,
	KEY_DEVICES,
	KEY_TIMEOUT,
	KEY_SHARE,
	KEY_JUNIT,
	KEY_LOG,
	KEY_RECORD,
	KEY_ACCEL,
};

static const struct argp_option options[] = {
	{"kernel", KEY_KERNEL, "NAME", 0,
	 "stock, Debian's 6.12 (default); newest, the newest version that Debian has; a version "
	 "such as 7.3; host, the kernel of this machine; or the folder of a kernel that was built",
	 0},
	{"devices", KEY_DEVICES, "N", 0, "Number of emulated devices, 1 to 16 (default 1)", 0},
	{"memory", KEY_MEMORY, "SIZE", 0, "Memory of the machine, such as 2G (default 1G)", 0},
	{"cpus", KEY_CPUS, "N", 0, "Processors of the machine, 1 to 64 (default 2)", 0},
	{"accel", KEY_ACCEL, "tcg|kvm", 0,
	 "tcg, which runs anywhere (default); or kvm, which is faster where it works", 0},
	{"timeout", KEY_TIMEOUT, "SECONDS", 0,
	 "End the machine after so many seconds, 1 to 9999999 (default 300)", 0},
	{"share", KEY_SHARE, "DIR", 0, "The folder in which the command's changes are kept", 0},
	{"junit", KEY_JUNIT, "FILE", 0,
	 "Write JUnit XML of the TAP that the command prints; without TAP, of its exit status", 0},
	{"log", KEY_LOG, "FILE", 0, "Write the kernel's messages", 0},
	{"record", KEY_RECORD, "FILE", 0,
	 "Write what the device was given and did, for `embeng replay`", 0},
	{0},
};

#define MOST_WORDS 18 /* options of the script with their values */

/**
 * struct vm_call - the options that the user gave
 * @words: options for the script, each with its value behind it
 * @count: number of @words
 */
struct vm_call {
	const char *words[MOST_WORDS], *junit;
	size_t count;
};

static error_t take_vm_word(struct vm_call *call, const char *option, const char *value)
{
	for (size_t i = 0; i < call->count; i += 2) {
		if (!strcmp(call->words[i], option)) { /* the last one counts */
			call->words[i + 1] = value;
			return 0;
		}
	}
	call->words[call->count++] = option;
	call->words[call->count++] = value;
	return 0;
}

static error_t take_number_word(struct argp_state *state, const char *option, const char *value,
				int64_t most)
{
	int64_t number;

	if (number_read_signed(value, 1, most, &number)) {
		argp_error(state, "%s takes a number from 1 to %lld, not '%s'", option,
			   (long long)most, value);
		return EINVAL;
	}
	return take_vm_word(state->input, option, value);
}

/* As QEMU takes it, which counts in MiB where there is no letter. */
static error_t take_memory(struct argp_state *state, const char *value)
{
	size_t digits = strspn(value, "0123456789");

	if (!digits || digits > 6 || !strchr("MG", value[digits]) ||
	    (value[digits] && value[digits + 1])) {
		argp_error(state, "--memory takes a size such as 512M or 2G, not '%s'", value);
		return EINVAL;
	}
	return take_vm_word(state->input, "--memory", value);
}

static error_t take_accel(struct argp_state *state, const char *value)
{
	if (strcmp(value, "kvm") && strcmp(value, "tcg")) {
		argp_error(state, "--accel takes kvm or tcg, not '%s'", value);
		return EINVAL;
	}
	return take_vm_word(state->input, "--accel", value);
}

static error_t parse_vm_option(int key, char *arg, struct argp_state *state)
{
	struct vm_call *call = state->input;

	switch (key) {
	case KEY_KERNEL:
		return take_vm_word(call, "--kernel", arg);
	case KEY_MEMORY:
		return take_memory(state, arg);
	case KEY_CPUS:
		return take_number_word(state, "--cpus", arg, 64);
	case KEY_DEVICES:
		return take_number_word(state, "--devices", arg, 16);
	case KEY_TIMEOUT:
		return take_number_word(state, "--timeout", arg, 9999999);
	case KEY_SHARE:
		return take_vm_word(call, "--share", arg);
	case KEY_JUNIT:
		call->junit = arg;
		return 0;
	case KEY_LOG:
		return take_vm_word(call, "--log", arg);
	case KEY_RECORD:
		return take_vm_word(call, "--record", arg);
	case KEY_ACCEL:
		return take_accel(state, arg);
	case ARGP_KEY_ARG:
		argp_error(state, "put -- before the command: embeng vm [OPTION...] -- %s", arg);
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* The installed script, below the folder of an installation that is not in its place yet. */
static int name_script(char **path)
{
	const char *root = secure_getenv("EMBENG_VM_ROOT");

	return asprintf(path, "%s%s/run", root ? root : "", EMBENG_VM_DIR) < 0 ? -ENOMEM : 0;
}

/* Return: the arguments of the script, malloc'd, or NULL. @command ends in NULL. */
static char **script_arguments(const struct vm_call *call, char *script, char **command, int words)
{
	char **argv = calloc(call->count + (size_t)words + 2, sizeof(*argv));
	size_t at = 0;

	if (!argv)
		return NULL;
	argv[at++] = script;
	for (size_t i = 0; i < call->count; i++)
		argv[at++] = (char *)call->words[i];
	memcpy(argv + at, command, (size_t)words * sizeof(*argv));
	return argv;
}

static int write_junit(struct outfile *file, const struct vm_run *run, char **command)
{
	const char *name = strrchr(command[0], '/');
	struct junit junit = {.suite = name && name[1] ? name + 1 : command[0],
			      .status = run->status,
			      .seconds = run->seconds,
			      .tap = &run->tap};

	junit_write(file->stream, &junit);
	return outfile_commit(file);
}

static void add_tests(struct json_object *document, const struct tap *tap)
{
	struct json_object *tests = NULL;

	if (tap_spoken(tap)) {
		tests = json_object_new_object();
		json_add_number(tests, "passed", tap_count(tap, TAP_PASSED));
		json_add_number(tests, "failed", tap_count(tap, TAP_FAILED));
		json_add_number(tests, "skipped", tap_count(tap, TAP_SKIPPED));
	}
	json_object_object_add(document, "tests", tests);
}

static void print_document(const struct output *out, const struct vm_run *run, char **command)
{
	struct json_object *document = json_document(out), *words = json_object_new_array();

	for (; *command; command++)
		json_object_array_add(words, json_object_new_string(*command));
	json_object_object_add(document, "command", words);
	json_add_number(document, "status", (uint64_t)run->status);
	json_add_float(document, "seconds", run->seconds);
	add_tests(document, &run->tap);
	json_emit(document);
}

static int run_command(const struct output *out, const struct vm_call *call, char **argv,
		       char **command)
{
	struct vm_run run = {.copy = out->json ? stderr : stdout};
	struct outfile junit = {0};
	int rc = call->junit ? outfile_open(&junit, call->junit) : 0;

	if (rc)
		return output_fail(out, exit_of_errno(rc), rc, NULL, "%s: %s", call->junit,
				   strerror(-rc));
	rc = script_run(argv, &run);
	if (!rc && call->junit)
		rc = write_junit(&junit, &run, command);
	if (rc) {
		outfile_abort(&junit);
		tap_free(&run.tap);
		return output_fail(out, VM_NO_MACHINE, rc, NULL, "the run cannot be recorded: %s",
				   strerror(-rc));
	}
	if (out->json)
		print_document(out, &run, command);
	tap_free(&run.tap);
	return run.status;
}

/* @command is what follows the "--", and the "--" is in front of it. */
static int start_run(const struct output *out, struct vm_call *call, char **command, int words)
{
	char *script, **argv;
	int code;

	if (words < 2)
		return output_fail(out, CLI_USAGE, EINVAL, "See: embeng vm --help",
				   "no command is given; put one behind --");
	if (name_script(&script))
		return output_fail(out, CLI_DEVICE, ENOMEM, NULL, "out of memory");
	if (access(script, X_OK)) {
		code = output_fail(out, VM_NO_MACHINE, errno,
				   "Install embeng; EMBENG_VM_ROOT names the DESTDIR of an "
				   "installation that is not in its place yet",
				   "the script that boots the machine, %s, cannot be run: %s",
				   script, strerror(errno));
		free(script);
		return code;
	}
	argv = script_arguments(call, script, command, words);
	code = argv ? run_command(out, call, argv, command + 1)
		    : output_fail(out, CLI_DEVICE, ENOMEM, NULL, "out of memory");
	free(argv);
	free(script);
	return code;
}

int cmd_vm(int argc, char **argv)
{
	static const struct argp argp = {.options = options,
					 .parser = parse_vm_option,
					 .args_doc = "-- COMMAND [ARGUMENT...]",
					 .doc = doc};
	struct output out = {.verb = "vm"};
	struct vm_call call = {0};
	int at, code = command_parse_before(&argp, argc, argv, &out, &call, &at);

	return code ? code : start_run(&out, &call, argv + at, argc - at);
}
