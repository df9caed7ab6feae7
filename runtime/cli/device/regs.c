// SPDX-License-Identifier: MIT
/*
 * The verb `embeng regs`: reads and writes registers of a device, and shows its event log. No model
 * is opened for it. Behind the driver it needs the rights of an administrator.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "embeng_regs.h"

#include "../../text/number.h"
#include "../frame/command.h"
#include "device.h"
#include "events.h"

static const char doc[] =
	"Show all registers of a device, or those that are named, for bring-up.\v"
	"Examples:\n"
	"  embeng regs                                    show all registers of the first device\n"
	"  embeng regs boot_state boot_error              show two registers\n"
	"  embeng regs -d soft --json                     for scripts\n"
	"  embeng regs --log                              show what happened to the device\n"
	"  embeng regs -d pci:0000:01:00.0 --write control=1\n"
	"                                                 write without the driver's knowledge\n\n"
	"For a device behind the driver this needs the rights of an administrator.";

enum { KEY_WRITE = 0x100, KEY_LOG };

static const struct argp_option options[] = {
	{"device", 'd', "DEVICE", 0, "The device, by a name that `embeng list` shows", 0},
	{"write", KEY_WRITE, "NAME=VALUE", 0,
	 "Write a register that is the driver's to write; unbind the driver first; may be "
	 "repeated",
	 0},
	{"log", KEY_LOG, 0, 0, "Show the event log of the device instead, oldest event first", 0},
	{0},
};

struct reg {
	const char *name, *writer, *words;
	uint32_t offset, bytes;
};

static const struct reg registers[] = {
#define ROW(name, offset, bytes, writer, reset, words) {#name, #writer, words, offset, bytes},
	EMBENG_REGISTER_TABLE(ROW)
#undef ROW
};

#define REGISTERS (sizeof(registers) / sizeof(registers[0]))

#define WRITES_MAX 32

struct call {
	const char *device;
	bool wanted[REGISTERS];
	bool some; /* not all */
	bool log;
	size_t write_count;
	struct {
		const struct reg *reg;
		uint64_t value;
	} writes[WRITES_MAX]; /* in their order */
};

static const struct reg *find_register(const char *name, size_t length)
{
	for (size_t i = 0; i < REGISTERS; i++) {
		if (strlen(registers[i].name) == length &&
		    !strncasecmp(registers[i].name, name, length))
			return &registers[i];
	}
	return NULL;
}

static error_t want_register(struct call *call, const char *name, struct argp_state *state)
{
	const struct reg *reg = find_register(name, strlen(name));

	if (!reg) {
		argp_error(state, "there is no register '%s'; embeng regs shows all", name);
		return EINVAL;
	}
	call->wanted[reg - registers] = true;
	call->some = true;
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
	const struct reg *reg = find_register(text, length);

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
	case ARGP_KEY_ARG:
		return want_register(call, arg, state);
	case ARGP_KEY_END:
		if (!call->log || !call->some)
			return 0;
		argp_error(state, "--log shows the event log and no registers; leave out --log "
				  "or the names");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static uint64_t read_register(const struct reg *reg, const char *page)
{
	uint64_t value = 0;

	memcpy(&value, page + reg->offset, reg->bytes);
	return value;
}

static void print_register(const struct reg *reg, const char *page)
{
	printf("%03x  %-20s %#18" PRIx64 "  %-6s  %s\n", reg->offset, reg->name,
	       read_register(reg, page), strcmp(reg->writer, "DEVICE") ? "driver" : "device",
	       reg->words);
}

static struct json_object *document_register(const struct reg *reg, const char *page)
{
	struct json_object *row = json_object_new_object();

	json_add_text(row, "name", reg->name);
	json_add_number(row, "offset", reg->offset);
	json_add_number(row, "bytes", reg->bytes);
	json_add_number(row, "value", read_register(reg, page));
	json_add_text(row, "writer", strcmp(reg->writer, "DEVICE") ? "driver" : "device");
	json_add_text(row, "meaning", reg->words);
	return row;
}

/* The device is told, as the caller may have named none. */
static int show_registers(const struct call *call, const struct output *out, const char *device,
			  const char *page)
{
	struct json_object *rows = out->json ? json_object_new_array() : NULL, *document;

	if (!rows)
		printf("registers of %s\n", device);
	for (size_t i = 0; i < REGISTERS; i++) {
		if (call->some && !call->wanted[i])
			continue;
		if (rows)
			json_object_array_add(rows, document_register(&registers[i], page));
		else
			print_register(&registers[i], page);
	}
	if (!rows)
		return CLI_OK;
	document = json_document(out);
	json_add_text(document, "device", device);
	json_object_object_add(document, "registers", rows);
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

int cmd_regs(int argc, char **argv)
{
	static const struct argp argp = {.options = options,
					 .parser = parse_regs_option,
					 .args_doc = "[NAME...]",
					 .doc = doc};
	struct output out = {.verb = "regs"};
	struct embeng_device_info info = EMBENG_INIT(embeng_device_info);
	struct call call = {0};
	char page[EMBENG_REGISTERS_BYTES];
	int code = command_parse(&argp, argc, argv, &out, &call), err;

	if (code)
		return code;
	err = write_all(&call);
	if (!err)
		err = embeng_registers_read(call.device, page);
	if (err)
		return output_library_failure(&out, err, err == -ENODEV ? device_hint : NULL);
	/* It need not run for that. */
	(void)embeng_device_info(call.device, &info);
	return call.log ? events_show(&out, page) : show_registers(&call, &out, info.name, page);
}
