// SPDX-License-Identifier: MIT
/*
 * The verb `embeng decode`: says in words what a file holds. It reads the file, finds the reader that
 * knows its contents, and prints what that one filled into the sheet.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "../firmware/commands.h"
#include "../frame/terminal.h"
#include "readers.h"

/* A trace may be long; what is longer is cut by the one who has it. */
#define FILE_MAX ((size_t)256 << 20)

static const char doc[] =
	"Say in words what a file holds, and what is odd in it.\v"
	"The contents tell what a file is, and not its name: a dump of the driver (devcoredump),\n"
	"trace events as tracefs or `trace-cmd report` print them, a recording, a model blob, a\n"
	"firmware image, the index or a shard of a checkpoint, a descriptor of a command, a copy\n"
	"of the registers, or captured ring memory. Each oddness has its byte or its line.\n\n"
	"  embeng decode /sys/class/devcoredump/devcd1/data   which command hung, on which table\n"
	"  embeng decode model.blob --json | jq .odd          for scripts\n"
	"  embeng decode cut.bin --as ring                    where too little is left to tell\n\n"
	"Exit status: 0 nothing is odd, 1 something is odd, 2 usage, or a file of no known "
	"format,\n"
	"4 permission, 7 read error.";

enum { KEY_AS = 0x100, KEY_NAMES };

static const struct argp_option options[] = {
	{"as", KEY_AS, "FORMAT", 0,
	 "Read the file as devcoredump, trace, recording, blob, firmware, index, shard, registers, "
	 "rows, lookup, update, partition, exchange or ring",
	 0},
	{"list-names", KEY_NAMES, NULL, OPTION_HIDDEN, NULL, 0}, /* for completions */
	{0},
};

struct call {
	const char *path;
	const struct reader *as;
	bool names;
};

static error_t parse_decode_option(int key, char *arg, struct argp_state *state)
{
	struct call *call = state->input;

	switch (key) {
	case KEY_AS:
		call->as = reader_by_name(arg);
		if (call->as)
			return 0;
		argp_error(state, "there is no format '%s'; --help lists them", arg);
		return EINVAL;
	case ARGP_KEY_ARG:
		return argument_take(&call->path, arg, "FILE", state);
	case KEY_NAMES:
		call->names = true;
		return 0;
	case ARGP_KEY_NO_ARGS:
		if (call->names)
			return 0;
		argp_error(state, "FILE is missing");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int show_sheet(const struct output *out, const struct bytes *b, const struct reader *reader)
{
	struct sheet sheet;
	int code;

	sheet_begin(&sheet);
	reader->read(&sheet, b);
	code = sheet.odd_count ? CLI_CHECK : CLI_OK;
	if (out->json) {
		struct json_object *document = json_document(out);

		json_add_text(document, "file", b->path);
		json_add_text(document, "format", reader->name);
		json_add_number(document, "bytes", b->size);
		sheet_document(&sheet, document);
		json_emit(document);
	} else {
		terminal_put(b->path);
		printf(": %s, %zu bytes\n", reader->words, b->size);
		sheet_print(&sheet, stdout);
	}
	sheet_end(&sheet);
	return code;
}

static int list_formats(void)
{
	for (size_t i = 0; i < reader_count; i++)
		puts(readers[i].name);
	return CLI_OK;
}

int cmd_decode(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options, .parser = parse_decode_option, .args_doc = "FILE", .doc = doc};
	struct output out = {.verb = "decode"};
	struct call call = {0};
	unsigned char *data = NULL;
	struct bytes b;
	int code = command_parse(&argp, argc, argv, &out, &call);

	if (!code && call.names)
		return list_formats();
	if (!code)
		code = fw_read(&out, call.path, FILE_MAX, &data, &b.size);
	if (code)
		return code;
	b.path = call.path;
	b.data = data;
	if (!call.as)
		call.as = reader_find(&b);
	if (call.as)
		code = show_sheet(&out, &b, call.as);
	else
		code = output_fail(&out, CLI_USAGE, EINVAL,
				   "--as FORMAT reads a file whose contents do not tell what it is",
				   "%s is of no format that is known here", call.path);
	free(data);
	return code;
}
