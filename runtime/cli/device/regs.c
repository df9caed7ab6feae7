// SPDX-License-Identifier: MIT
/*
 * The verb `embeng regs`: reads, decodes and writes registers of a device, keeps them in a file,
 * compares them with such a file, and shows the event log. No model is opened for it. Behind the
 * driver it needs the rights of an administrator.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../text/number.h"
#include "../frame/command.h"
#include "../frame/document.h"
#include "../frame/outfile.h"
#include "device.h"
#include "events.h"
#include "registers.h"
#include "regs_show.h"
#include "snapshot.h"

static const char doc[] =
	"Show all registers of a device, or those that are named, for bring-up. REGISTER is\n"
	"the name of one, of a group (capabilities, state, requests, counters), or has a field\n"
	"behind it, as in features.quantization.\v"
	"Examples:\n"
	"  embeng regs                                    show all registers of the first device\n"
	"  embeng regs boot_state boot_error              show two registers\n"
	"  embeng regs counters                           show a group of registers\n"
	"  embeng regs features.quantization              show one field\n"
	"  embeng regs -d soft --json                     for scripts\n"
	"  embeng regs --save before.json                 keep all registers in a file\n"
	"  embeng regs --diff before.json                 show what has changed since\n"
	"  embeng regs --diff before.json after.json      compare two files, without a device\n"
	"  embeng regs --log                              show what happened to the device\n"
	"  embeng regs -d pci:0000:01:00.0 --write control=1\n"
	"                                                 write without the driver's knowledge\n\n"
	"For a device behind the driver this needs the rights of an administrator.";

enum { KEY_WRITE = 0x100, KEY_LOG, KEY_SAVE, KEY_DIFF, KEY_NAMES };

static const struct argp_option options[] = {
	{"device", 'd', "DEVICE", 0, "The device, by a name that `embeng list` shows", 0},
	{"write", KEY_WRITE, "NAME=VALUE", 0,
	 "Write a register that is the driver's to write; unbind the driver first; may be "
	 "repeated",
	 0},
	{"log", KEY_LOG, 0, 0, "Show the event log of the device instead, oldest event first", 0},
	{"save", KEY_SAVE, "FILE", 0, "Write all registers into a file, for --diff", 0},
	{"diff", KEY_DIFF, 0, 0,
	 "Show what is different between two files that --save wrote, or between one file and the "
	 "device",
	 0},
	{"list-names", KEY_NAMES, NULL, OPTION_HIDDEN, NULL, 0}, /* for completions */
	{0},
};

#define WRITES_MAX 32

/**
 * struct call - arguments of one call
 * @chosen: names of what to show, or with --diff the files
 */
struct call {
	const char *device, *save;
	bool log, diff, names;
	struct regs_chosen chosen;
	size_t write_count;
	struct {
		const struct reg *reg;
		uint64_t value;
	} writes[WRITES_MAX]; /* in their order */
};

/* "MINOR, MAJOR": the names of a register's fields */
static void join_field_names(const struct reg *reg, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < register_field_count && used < size; i++) {
		if (register_fields[i].offset == reg->offset)
			used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "",
						 register_fields[i].name);
	}
}

static error_t refuse_register_field(const char *name, const struct reg *reg,
				     struct argp_state *state)
{
	char names[512];

	join_field_names(reg, names, sizeof(names));
	if (*names)
		argp_error(state, "'%s': the register %s has no such field; its fields are %s",
			   name, reg->name, names);
	else
		argp_error(state, "'%s': the register %s is one number and has no fields", name,
			   reg->name);
	return EINVAL;
}

static error_t check_register_name(const char *name, struct argp_state *state)
{
	const struct reg *reg = register_find(name, strcspn(name, "."));
	const char *dot = strchr(name, '.'), *nearest = register_nearest(name);

	if (reg && dot && !register_field_find(reg, dot + 1))
		return refuse_register_field(name, reg, state);
	if (reg || register_group_find(name))
		return 0;
	if (nearest)
		argp_error(state, "there is no register or group '%s'; did you mean %s?", name,
			   nearest);
	else
		argp_error(state, "there is no register or group '%s'; embeng regs shows all",
			   name);
	return EINVAL;
}

static error_t add_register_name(struct call *call, const char *name, struct argp_state *state)
{
	if (call->chosen.count == REGS_NAMES_MAX) {
		argp_error(state,
			   "more than %d names are given; name a group, or give none to "
			   "see all registers",
			   REGS_NAMES_MAX);
		return EINVAL;
	}
	call->chosen.names[call->chosen.count++] = name;
	return 0;
}

static error_t parse_value(const char *text, const char *digits, struct argp_state *state,
			   uint64_t *value)
{
	if (!number_read_code(digits, value))
		return 0;
	argp_error(state, "--write %s: the value is no number; give a number like 17 or 0x11",
		   text);
	return EINVAL;
}

static error_t parse_write(struct call *call, const char *text, struct argp_state *state)
{
	size_t length = strcspn(text, "=");
	const struct reg *reg = register_find(text, length);

	if (!reg || !text[length]) {
		argp_error(state, "--write %s: write NAME=VALUE with the name of a register", text);
		return EINVAL;
	}
	if (!strcmp(reg->writer, "DEVICE")) {
		argp_error(state,
			   "--write %s: only the device writes %s; choose a register that embeng "
			   "regs shows as driver",
			   text, reg->name);
		return EINVAL;
	}
	if (call->write_count == WRITES_MAX) {
		argp_error(state,
			   "--write %s: one call can write at most %d registers; use several calls",
			   text, WRITES_MAX);
		return EINVAL;
	}
	call->writes[call->write_count].reg = reg;
	return parse_value(text, text + length + 1, state,
			   &call->writes[call->write_count++].value);
}

static error_t check_diff(const struct call *call, struct argp_state *state)
{
	if (call->log || call->save || call->write_count)
		argp_error(state, "--diff only compares; leave out --log, --save and --write");
	else if (!call->chosen.count || call->chosen.count > 2)
		argp_error(state, "--diff takes one or two files that embeng regs --save wrote");
	else if (call->chosen.count == 2 && call->device)
		argp_error(state, "--diff of two files needs no device; leave out -d or a file");
	else
		return 0;
	return EINVAL;
}

static error_t check_regs_call(const struct call *call, struct argp_state *state)
{
	error_t err = 0;

	if (call->diff)
		return check_diff(call, state);
	if (call->log && (call->chosen.count || call->save)) {
		argp_error(state, "--log shows the event log and no registers; leave out --log, or "
				  "the names and --save");
		return EINVAL;
	}
	if (call->save && call->chosen.count) {
		argp_error(state, "--save writes all registers; leave out the names");
		return EINVAL;
	}
	for (size_t i = 0; !err && i < call->chosen.count; i++)
		err = check_register_name(call->chosen.names[i], state);
	return err;
}

static error_t parse_regs_option(int key, char *arg, struct argp_state *state)
{
	struct call *call = state->input;

	switch (key) {
	case 'd':
		call->device = arg;
		return 0;
	case KEY_WRITE:
		return parse_write(call, arg, state);
	case KEY_LOG:
		call->log = true;
		return 0;
	case KEY_SAVE:
		call->save = arg;
		return 0;
	case KEY_DIFF:
		call->diff = true;
		return 0;
	case KEY_NAMES:
		call->names = true;
		return 0;
	case ARGP_KEY_ARG:
		return add_register_name(call, arg, state);
	case ARGP_KEY_END:
		return check_regs_call(call, state);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* The file has all registers, whichever names were given. */
static int save_registers(const struct call *call, const struct output *out, const char *device,
			  const char *page)
{
	static const struct regs_chosen all;
	struct json_object *document = regs_document(out, &all, device, page);
	struct outfile file;
	size_t length;
	char *text;
	int err = document_text(document, &text, &length);

	json_object_put(document);
	if (!err)
		err = outfile_open(&file, call->save);
	if (!err) {
		fwrite(text, 1, length, file.stream);
		err = outfile_commit(&file);
	}
	free(text);
	if (err)
		return output_fail(out, exit_of_errno(err), err, NULL, "%s: %s", call->save,
				   strerror(-err));
	if (!out->json) {
		printf("%zu registers of %s are in %s\n", register_count, device, call->save);
		return CLI_OK;
	}
	document = json_document(out);
	json_add_text(document, "device", device);
	json_add_text(document, "file", call->save);
	json_add_number(document, "saved", register_count);
	return json_emit(document);
}

static int write_all(const struct call *call)
{
	int err = 0;

	for (size_t k = 0; !err && k < call->write_count; k++)
		err = embeng_register_write(call->device, call->writes[k].reg->offset,
					    call->writes[k].value);
	return err;
}

/* Writes what is to be written, then copies the registers. Return: the exit code. */
static int read_device(const struct call *call, const struct output *out,
		       struct embeng_device_info *info, char *page)
{
	int err = write_all(call);

	if (!err)
		err = embeng_registers_read(call->device, page);
	if (err)
		return output_library_failure(out, err, err == -ENODEV ? device_hint : NULL);
	/* It need not run for that. */
	(void)embeng_device_info(call->device, info);
	return CLI_OK;
}

static int load_side(const struct output *out, struct snapshot *s, const char *path)
{
	char why[SNAPSHOT_WHY];
	int err = snapshot_load(s, path, why);

	if (!err)
		return CLI_OK;
	return output_fail(out, err == -ENOMEM ? CLI_DEVICE : CLI_USAGE, err,
			   "embeng regs --save FILE writes a snapshot", "%s", why);
}

static int diff_registers(const struct call *call, const struct output *out)
{
	struct embeng_device_info info = EMBENG_INIT(embeng_device_info);
	struct snapshot *sides = calloc(2, sizeof(*sides));
	char page[EMBENG_REGISTERS_BYTES];
	int code;

	if (!sides)
		return output_fail(out, CLI_DEVICE, ENOMEM, NULL, "out of memory");
	code = load_side(out, &sides[0], call->chosen.names[0]);
	if (!code && call->chosen.count == 2)
		code = load_side(out, &sides[1], call->chosen.names[1]);
	else if (!code)
		code = read_device(call, out, &info, page);
	if (!code && call->chosen.count == 1)
		snapshot_take(&sides[1], info.name, page);
	if (!code)
		code = snapshot_compare(out, &sides[0], &sides[1]);
	free(sides);
	return code;
}

static void print_lower_case(const char *name)
{
	for (; *name; name++)
		putchar(tolower((unsigned char)*name));
}

/* For completions: all that NAME may be, a line each. */
static int list_register_names(void)
{
	for (size_t i = 0; i < register_group_count; i++) {
		print_lower_case(register_groups[i].name);
		putchar('\n');
	}
	for (size_t i = 0; i < register_count; i++) {
		print_lower_case(registers[i].name);
		putchar('\n');
		for (size_t f = 0; f < register_field_count; f++) {
			if (register_fields[f].offset != registers[i].offset)
				continue;
			print_lower_case(registers[i].name);
			putchar('.');
			print_lower_case(register_fields[f].name);
			putchar('\n');
		}
	}
	return CLI_OK;
}

int cmd_regs(int argc, char **argv)
{
	static const struct argp argp = {.options = options,
					 .parser = parse_regs_option,
					 .args_doc = "[REGISTER...]",
					 .doc = doc};
	struct output out = {.verb = "regs"};
	struct embeng_device_info info = EMBENG_INIT(embeng_device_info);
	struct call call = {0};
	char page[EMBENG_REGISTERS_BYTES];
	int code = command_parse(&argp, argc, argv, &out, &call);

	if (code)
		return code;
	if (call.names)
		return list_register_names();
	if (call.diff)
		return diff_registers(&call, &out);
	code = read_device(&call, &out, &info, page);
	if (code)
		return code;
	if (call.log)
		return events_show(&out, page);
	return call.save ? save_registers(&call, &out, info.name, page)
			 : regs_show(&out, &call.chosen, info.name, page);
}
