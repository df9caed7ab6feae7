// SPDX-License-Identifier: MIT
/*
 * The verb `embeng fault`: lists, arms and clears the faults of an emulated device. It is a verb of
 * its own, and not a part of one that tests devices, because a fault stays armed until it has struck
 * or is cleared.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "../../text/number.h"
#include "../device/device.h"
#include "../frame/command.h"
#include "../frame/group.h"
#include "faults.h"

enum { KEY_ROOT = 0x100, KEY_VALUE, KEY_TARGET, KEY_PER_MILLE, KEY_SEED, KEY_NAMES };

#define DEVICE_OPTION \
	{"device", 'd', "DEVICE", 0, "The emulated device, by a name that `embeng list` shows", 0}
#define ROOT_OPTION \
	{"root", KEY_ROOT, "DIR", 0, "Use the files below this folder, not this machine's", 0}

/**
 * struct setting - arguments of one call
 * @target, @per_mille, @seed, @value: NULL if they were not given
 * @names: only the names are listed
 */
struct setting {
	const char *root, *device, *name, *count, *value, *target, *per_mille, *seed;
	bool names;
};

static const struct argp_option list_options[] = {
	DEVICE_OPTION,
	ROOT_OPTION,
	{"list-names", KEY_NAMES, NULL, OPTION_HIDDEN, NULL, 0}, /* for completions */
	{0},
};

static const struct argp_option clear_options[] = {DEVICE_OPTION, ROOT_OPTION, {0}};

static const struct argp_option set_options[] = {
	DEVICE_OPTION,
	ROOT_OPTION,
	{"value", KEY_VALUE, "VALUE", 0,
	 "How much: a number in the fault's unit, or the name of a boot error (the fault's "
	 "default)",
	 0},
	{"target", KEY_TARGET, "N", 0, "Strike only this queue, context or vector (any)", 0},
	{"per-mille", KEY_PER_MILLE, "N", 0, "Strike at N of a thousand occasions (1000)", 0},
	{"seed", KEY_SEED, "N", 0, "Seed of the choice between occasions (0)", 0},
	{0},
};

static error_t parse_fault_option(int key, char *arg, struct argp_state *state)
{
	struct setting *s = state->input;

	switch (key) {
	case 'd':
		s->device = arg;
		return 0;
	case KEY_ROOT:
		s->root = arg;
		return 0;
	case KEY_VALUE:
		s->value = arg;
		return 0;
	case KEY_TARGET:
		s->target = arg;
		return 0;
	case KEY_PER_MILLE:
		s->per_mille = arg;
		return 0;
	case KEY_SEED:
		s->seed = arg;
		return 0;
	case KEY_NAMES:
		s->names = true;
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num > 1) {
			argp_error(state, "'%s' is one argument too many", arg);
			return EINVAL;
		}
		*(state->arg_num ? &s->count : &s->name) = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int parse_fault_call(const char *arguments, const char *doc,
			    const struct argp_option *options, int argc, char **argv,
			    struct output *out, struct setting *s)
{
	const struct argp argp = {.options = options,
				  .parser = parse_fault_option,
				  .args_doc = arguments,
				  .doc = doc};

	return command_parse(&argp, argc, argv, out, s);
}

static const char *fault_count_text(const struct fault *fault, char text[32])
{
	if (!fault->count)
		return "off";
	if (fault->count == FAULT_FOREVER)
		return "for ever";
	snprintf(text, 32, "%" PRIu64 " more", fault->count);
	return text;
}

static void print_fault(const struct fault *fault)
{
	const char *error = fault_boot_error_name(fault->value);
	char text[32];

	printf("%-19s %-10s %s\n", fault->name, fault_count_text(fault, text), fault->about);
	printf("%-19s strikes a %s", "", fault->target_is);
	if (fault->target != FAULT_ANY)
		printf(", only %" PRIu64, fault->target);
	if (fault->per_mille != 1000)
		printf(", at %" PRIu64 " of 1000 occasions", fault->per_mille);
	if (*fault->value_is && !strcmp(fault->value_is, "boot error") && error)
		printf("; boot error %" PRIu64 " (%s)", fault->value, error);
	else if (*fault->value_is)
		printf("; %" PRIu64 " %s", fault->value, fault->value_is);
	if (fault->hits)
		printf("; struck %" PRIu64 " times", fault->hits);
	putchar('\n');
}

static struct json_object *document_fault(const struct fault *fault)
{
	struct json_object *row = json_object_new_object();
	bool any = fault->target == FAULT_ANY;

	json_add_text(row, "name", fault->name);
	json_add_text(row, "about", fault->about);
	json_add_number(row, "count", fault->count);
	json_object_object_add(row, "forever",
			       json_object_new_boolean(fault->count == FAULT_FOREVER));
	json_add_text(row, "target_is", fault->target_is);
	json_object_object_add(row, "target", any ? NULL : json_object_new_uint64(fault->target));
	json_add_number(row, "per_mille", fault->per_mille);
	json_add_number(row, "seed", fault->seed);
	json_add_text(row, "value_is", *fault->value_is ? fault->value_is : NULL);
	json_add_number(row, "value", fault->value);
	json_add_number(row, "value_default", fault->value_default);
	json_add_number(row, "tries", fault->tries);
	json_add_number(row, "hits", fault->hits);
	return row;
}

static struct json_object *document_faults(const struct output *out, const struct faults *f)
{
	struct json_object *document = json_document(out);

	json_add_number(document, "number", f->number);
	json_add_text(document, "address", *f->address ? f->address : NULL);
	return document;
}

static int fault_list(int argc, char **argv)
{
	static const char doc[] =
		"List the faults of an emulated device, or the one that is named.\v"
		"Examples:\n"
		"  embeng fault list\n"
		"  embeng fault list link_down\n"
		"  embeng fault list -d pci:0eb0:00:00.0 --json";
	struct output out = {.verb = "fault", .command = "list"};
	struct setting s = {0};
	struct faults f = {0};
	struct fault *only = NULL;
	struct json_object *document, *list;
	int code = parse_fault_call("[FAULT]", doc, list_options, argc, argv, &out, &s);

	if (code)
		return code;
	if (s.count)
		return output_fail(&out, CLI_USAGE, EINVAL, NULL, "'%s' is one name too many",
				   s.count);
	f.root = s.root;
	f.device = s.device;
	code = faults_read(&out, &f);
	if (!code && s.name && !(only = faults_find(&out, &f, s.name)))
		code = CLI_USAGE;
	if (code)
		return code;
	list = out.json ? json_object_new_array() : NULL;
	for (size_t i = 0; i < f.count; i++) {
		if (only && only != &f.list[i])
			continue;
		if (list)
			json_object_array_add(list, document_fault(&f.list[i]));
		else if (s.names)
			puts(f.list[i].name);
		else
			print_fault(&f.list[i]);
	}
	if (!list)
		return CLI_OK;
	document = document_faults(&out, &f);
	json_object_object_add(document, "faults", list);
	return json_emit(document);
}

static int read_setting(const struct output *out, const char *what, const char *text,
			uint64_t least, uint64_t most, uint64_t *value)
{
	if (!text)
		return CLI_OK;
	if (!number_read_code(text, value) && *value >= least && *value <= most)
		return CLI_OK;
	return output_fail(out, CLI_USAGE, EINVAL, NULL,
			   "%s takes a whole number from %" PRIu64 " to %" PRIu64 ", not '%s'",
			   what, least, most, text);
}

static int read_fault_value(const struct output *out, const char *text, struct fault *fault)
{
	int64_t error;

	if (text && !*fault->value_is)
		return output_fail(out, CLI_USAGE, EINVAL, "Leave out --value",
				   "the fault %s does not use a value", fault->name);
	fault->value = fault->value_default;
	if (!text || strcmp(fault->value_is, "boot error"))
		return read_setting(out, "--value", text, 1, UINT64_MAX, &fault->value);
	error = fault_boot_error(text);
	if (error > 0) {
		fault->value = (uint64_t)error;
		return CLI_OK;
	}
	if (!number_read_code(text, &fault->value) && fault->value &&
	    fault_boot_error_name(fault->value))
		return CLI_OK;
	return output_fail(out, CLI_USAGE, EINVAL, "embeng-registers(7) lists the boot errors",
			   "--value: there is no boot error '%s'", text);
}

/* Fills in all settings of the fault, since some may be left from an earlier use. */
static int read_fault_settings(const struct output *out, const struct setting *s,
			       struct fault *fault)
{
	int code;

	fault->count = 1;
	fault->target = FAULT_ANY;
	fault->per_mille = 1000;
	fault->seed = 0;
	if (s->count && !strcmp(s->count, "forever"))
		fault->count = FAULT_FOREVER;
	else if ((code = read_setting(out, "the count", s->count, 1, UINT32_MAX, &fault->count)))
		return code;
	if (s->target && !strcmp(fault->target_is, "device"))
		return output_fail(out, CLI_USAGE, EINVAL, "Leave out --target",
				   "the fault %s strikes the whole device", fault->name);
	code = read_setting(out, "--target", s->target, 0, UINT32_MAX - 1, &fault->target);
	if (!code)
		code = read_setting(out, "--per-mille", s->per_mille, 1, 1000, &fault->per_mille);
	if (!code)
		code = read_setting(out, "--seed", s->seed, 0, UINT64_MAX, &fault->seed);
	return code ? code : read_fault_value(out, s->value, fault);
}

/* The count is written last, because the fault may strike from then on. */
static int write_fault_settings(const struct output *out, const struct faults *f,
				const struct fault *fault)
{
	const struct {
		const char *name;
		uint64_t value;
	} files[] = {
		{"count", 0},
		{"per_mille", fault->per_mille},
		{"target", fault->target},
		{"seed", fault->seed},
		{"value", fault->value},
		{"tries", 0},
		{"count", fault->count},
	};
	int code = CLI_OK;

	for (size_t i = 0; !code && i < sizeof(files) / sizeof(files[0]); i++)
		code = fault_write(out, f, fault, files[i].name, files[i].value);
	return code;
}

static int fault_arm(int argc, char **argv)
{
	static const char doc[] =
		"Arm a fault, once or COUNT times; COUNT may be forever. Settings that are not\n"
		"given get their defaults.\v"
		"Examples:\n"
		"  embeng fault set drop_completion --target 3     lose one completion of queue 3\n"
		"  embeng fault set firmware_refuses --value HASH  the next boot fails so\n"
		"  embeng fault set link_down --value 2000000000   away for two seconds\n"
		"  embeng fault set dma_error forever --per-mille 5 --seed 7";
	struct output out = {.verb = "fault", .command = "set"};
	struct setting s = {0};
	struct faults f = {0};
	struct fault *fault = NULL;
	struct json_object *document;
	int code = parse_fault_call("FAULT [COUNT]", doc, set_options, argc, argv, &out, &s);

	if (!code && !s.name)
		code = output_fail(&out, CLI_USAGE, EINVAL, "embeng fault list shows all faults",
				   "the name of a fault is missing");
	if (code)
		return code;
	f.root = s.root;
	f.device = s.device;
	code = faults_read(&out, &f);
	if (!code && !(fault = faults_find(&out, &f, s.name)))
		code = CLI_USAGE;
	if (!code)
		code = read_fault_settings(&out, &s, fault);
	if (!code)
		code = write_fault_settings(&out, &f, fault);
	if (code)
		return code;
	if (!out.json) {
		print_fault(fault);
		return CLI_OK;
	}
	document = document_faults(&out, &f);
	json_object_object_add(document, "fault", document_fault(fault));
	return json_emit(document);
}

static int clear_fault(const struct output *out, const struct faults *f, struct fault *fault,
		       struct json_object *list)
{
	bool armed = fault->count;
	int code;

	fault->count = 0;
	fault->per_mille = 1000;
	fault->target = FAULT_ANY;
	fault->seed = 0;
	fault->value = fault->value_default;
	code = write_fault_settings(out, f, fault);
	if (code || !armed)
		return code;
	if (list)
		json_object_array_add(list, json_object_new_string(fault->name));
	else
		printf("%s is off\n", fault->name);
	return CLI_OK;
}

static int fault_clear(int argc, char **argv)
{
	static const char doc[] = "Switch a fault off, or all faults, and give settings their "
				  "defaults again. It does\n"
				  "not mend what a fault has broken; that takes embeng reset.\v"
				  "Examples:\n"
				  "  embeng fault clear                 all faults\n"
				  "  embeng fault clear drop_completion";
	struct output out = {.verb = "fault", .command = "clear"};
	struct setting s = {0};
	struct faults f = {0};
	struct fault *only = NULL;
	struct json_object *list, *document;
	int code = parse_fault_call("[FAULT]", doc, clear_options, argc, argv, &out, &s);

	if (!code && s.count)
		code = output_fail(&out, CLI_USAGE, EINVAL, NULL, "'%s' is one name too many",
				   s.count);
	if (code)
		return code;
	f.root = s.root;
	f.device = s.device;
	code = faults_read(&out, &f);
	if (!code && s.name && !(only = faults_find(&out, &f, s.name)))
		code = CLI_USAGE;
	list = out.json ? json_object_new_array() : NULL;
	for (size_t i = 0; !code && i < f.count; i++) {
		if (!only || only == &f.list[i])
			code = clear_fault(&out, &f, &f.list[i], list);
	}
	if (code || !list) {
		json_object_put(list);
		return code;
	}
	document = document_faults(&out, &f);
	json_object_object_add(document, "cleared", list);
	return json_emit(document);
}

static const struct group_command list[] = {
	{"list", "list [FAULT]", "show faults, what they do, and how they are set", fault_list},
	{"set", "set FAULT [COUNT]", "arm a fault", fault_arm},
	{"clear", "clear [FAULT]", "switch a fault off, or all of them", fault_clear},
};

static const struct group group = {
	.verb = "fault",
	.list = list,
	.count = sizeof(list) / sizeof(list[0]),
	.column = 18,
	.intro =
		"Usage: embeng fault COMMAND [OPTION...]\n"
		"Break an emulated device on purpose, to see how programs bear it. A device of "
		"the\n"
		"module embeng_emu has these faults; hardware and the soft device have none. This\n"
		"needs the rights of an administrator.\n",
	.end = "\nExamples:\n"
	       "  embeng fault list\n"
	       "  embeng fault set stall_queue --target 2\n"
	       "  embeng fault clear\n"
	       "  embeng fault set --help                show the options of a command\n\n"
	       "Exit status: 0 ok, 2 usage, 3 the device has no faults, 4 permission,\n"
	       "6 no such device.\n",
};

int cmd_fault(int argc, char **argv)
{
	return group_run(&group, argc, argv);
}
