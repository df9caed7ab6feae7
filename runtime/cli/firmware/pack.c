// SPDX-License-Identifier: MIT
/*
 * The command `embeng fw pack`: makes an image from text sources, and checks it before it is
 * written.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../../firmware-loader/source.h"
#include "commands.h"

#define SOURCE_MOST (64u << 20)
#define SOURCES_MOST 64

static const char doc[] =
	"Make a firmware image from text sources.\v"
	"Several SOURCEs together make one image; embeng-firmware(5) describes how to write\n"
	"them. The image is written only if a device on this processor would boot it, for\n"
	"which its self-tests are run. The same sources always give the same bytes.\n\n"
	"  embeng fw pack firmware.txt self-tests.txt -o embeng.fw\n\n"
	"Exit status: 0 ok, 2 usage or a source is wrong, 4 permission, 5 disk full, 7 write\n"
	"error, 10 a self-test fails.";

static const struct argp_option options[] = {
	{"output", 'o', "IMAGE", 0, "Write the image to this file, completely or not at all", 0},
	{0},
};

struct arguments {
	const char *output;
	const char *sources[SOURCES_MOST];
	size_t count;
};

static error_t parse_pack_option(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case 'o':
		a->output = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (a->count == SOURCES_MOST) {
			argp_error(state, "there are more than %d SOURCEs", SOURCES_MOST);
			return EINVAL;
		}
		a->sources[a->count++] = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->count || !a->output) {
			argp_error(state, a->count ? "-o IMAGE is missing; name the file to write"
						   : "SOURCE is missing; name the files to read");
			return EINVAL;
		}
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int source_failed(const struct output *out, const struct fw_source *s, int err)
{
	return output_fail(out, exit_of_errno(err), err, NULL, "%s", s->error);
}

static int read_sources(const struct output *out, const struct arguments *a, struct fw_source *s)
{
	unsigned char *text;
	size_t length;
	int code = CLI_OK, err;

	for (size_t i = 0; !code && i < a->count; i++) {
		code = fw_read(out, a->sources[i], SOURCE_MOST, &text, &length);
		if (code)
			break;
		err = fw_source_read(s, a->sources[i], (char *)text, length);
		free(text);
		if (err)
			code = source_failed(out, s, err);
	}
	return code;
}

static int make_image(const struct output *out, const struct arguments *a, struct fw_image *image)
{
	struct fw_source s = {0};
	void *data = NULL;
	int code = read_sources(out, a, &s), err;

	if (!code) {
		err = fw_source_pack(&s, &data, &image->length);
		code = err ? source_failed(out, &s, err) : CLI_OK;
		image->data = data;
	}
	fw_source_free(&s);
	if (!code)
		code = fw_check(out, image, 0);
	return code ? code : fw_self_test(out, image);
}

static int report_packed_image(const struct output *out, const struct fw_image *image)
{
	char version[FW_VERSION_TEXT];
	struct json_object *d;

	if (!out->json) {
		printf("%s: %s, %zu bytes, %u self-tests passed\n", image->path,
		       fw_version(image->firmware.version, version), image->length,
		       image->firmware.test_count);
		return CLI_OK;
	}
	d = json_document(out);
	fw_add_image(d, image);
	json_add_number(d, "self_tests", image->firmware.test_count);
	return json_emit(d);
}

int fw_pack(int argc, char **argv)
{
	static const struct argp argp = {.options = options,
					 .parser = parse_pack_option,
					 .args_doc = "SOURCE...",
					 .doc = doc};
	struct output out = {.verb = "fw", .command = "pack"};
	struct arguments a = {0};
	struct fw_image image = {0};
	int code = command_parse(&argp, argc, argv, &out, &a);

	if (code)
		return code;
	image.path = a.output;
	code = make_image(&out, &a, &image);
	if (!code)
		code = fw_write(&out, a.output, image.data, image.length);
	if (!code)
		code = report_packed_image(&out, &image);
	free(image.data);
	return code;
}
