// SPDX-License-Identifier: MIT
/*
 * The command `embeng fw inspect`: shows the header, sections, parameters, strings and self-tests
 * of an image.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../../engine/hash/sha256.h"
#include "../../../firmware-loader/source.h"
#include "../device/device.h"
#include "commands.h"

static const char doc[] =
	"Show what a firmware image contains.\v"
	"The image is checked as a device checks it, except that its self-tests are not run;\n"
	"embeng fw verify runs them. Whoever signed it is named by the signature; whether that is\n"
	"true is for embeng fw verify --certificate.\n\n"
	"  embeng fw inspect embeng.fw\n"
	"  embeng fw inspect embeng.fw --json | jq .parameters\n\n"
	"Exit status: 0 ok, 2 usage, 4 permission, 7 read error, 10 a device would refuse the\n"
	"image.";

#define HEX_TEXT (2 * SHA256_BYTES + 1)

static const char *write_hex(const uint8_t bytes[SHA256_BYTES], char text[HEX_TEXT])
{
	for (size_t i = 0; i < SHA256_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	return text;
}

static const char *type_name(uint32_t type)
{
	switch (type) {
	case EMBENG_FW_PARAMETERS:
		return "parameters";
	case EMBENG_FW_SELF_TEST:
		return "self-tests";
	case EMBENG_FW_STRINGS:
		return "strings";
	case EMBENG_FW_PROGRAMS:
		return "programs";
	default:
		return "unknown";
	}
}

static struct embeng_fw_header header_of(const struct fw_image *image)
{
	struct embeng_fw_header header;

	memcpy(&header, image->data, sizeof(header));
	return header;
}

static struct embeng_fw_section section_of(const struct fw_image *image, uint32_t i)
{
	struct embeng_fw_header header = header_of(image);
	struct embeng_fw_section section;

	memcpy(&section, image->data + sizeof(header) + (size_t)i * header.section_stride,
	       sizeof(section));
	return section;
}

/* As text, when it is one, else as hexadecimal digits. */
static const char *build_id(const struct embeng_fw_header *header, char text[HEX_TEXT])
{
	size_t length = strnlen((const char *)header->build_id, sizeof(header->build_id));

	for (size_t i = 0; i < sizeof(header->build_id); i++) {
		uint8_t c = header->build_id[i];

		if (i < length ? c < ' ' || c > '~' : c)
			return write_hex(header->build_id, text);
	}
	memcpy(text, header->build_id, length);
	text[length] = '\0';
	return text;
}

static void print_header(const struct fw_image *image)
{
	struct embeng_fw_header h = header_of(image);
	char text[HEX_TEXT], signature[FW_SIGNATURE_TEXT];

	printf("image         %s\n", image->path);
	printf("version       %s\n", fw_version(h.version, text));
	printf("build id      %s\n", build_id(&h, text));
	printf("interface     %u.%u\n", h.interface_major, h.interface_minor);
	printf("length        %" PRIu64 " bytes, format %u\n", (uint64_t)h.length, h.format);
	printf("signature     %s\n", fw_signature(image, signature));
	printf("\n%-12s %-10s %8s %8s  %s\n", "SECTION", "", "OFFSET", "LENGTH", "SHA-256");
	for (uint32_t i = 0; i < h.section_count; i++) {
		struct embeng_fw_section s = section_of(image, i);

		printf("%-12s %-10s %8" PRIu64 " %8" PRIu64 "  %s\n", type_name(s.type),
		       s.flags & EMBENG_FW_SECTION_MANDATORY ? "mandatory" : "", (uint64_t)s.offset,
		       (uint64_t)s.length, write_hex(s.sha256, text));
	}
}

/* Calls @visit for each boot parameter, in order. */
static void each_parameter(const struct embeng_fw_parameters *p, void *arg,
			   void (*visit)(void *arg, const char *name, uint64_t value,
					 const char *words))
{
#define VISIT(name, bytes, low, high, words) visit(arg, #name, p->name, words);
	EMBENG_FW_PARAMETER_TABLE(VISIT)
#undef VISIT
}

static void print_feature_bits(uint64_t features)
{
	const char *name, *separator = "";
	uint32_t bit;

	for (size_t k = 0; (name = device_capability(k, &bit)); k++) {
		if (features & bit) {
			printf("%s%s", separator, name);
			separator = ", ";
		}
	}
	putchar('\n');
}

static void print_parameter(void *arg, const char *name, uint64_t value, const char *words)
{
	char version[FW_VERSION_TEXT];

	(void)arg;
	printf("%-16s ", name);
	if (!strcmp(name, "features"))
		print_feature_bits(value);
	else if (!strcmp(name, "minimum_version"))
		printf("%-15s  %s\n", fw_version(value, version), words);
	else
		printf("%-15" PRIu64 "  %s\n", value, words);
}

static void print_strings(const struct fw_image *image, const struct embeng_fw_section *s)
{
	const char *text = (const char *)image->data + s->offset, *end = text + s->length;

	printf("\nSTRINGS\n");
	for (; text < end; text += strlen(text) + 1)
		printf("%s\n", text);
}

static struct embeng_fw_self_test test_at(const struct fw_image *image, uint64_t at)
{
	struct embeng_fw_self_test test;

	memcpy(&test, image->data + at, sizeof(test));
	return test;
}

static void print_tests(const struct fw_image *image)
{
	uint64_t at = image->firmware.tests;

	printf("\n%-10s %8s  %-17s %-8s %5s %5s %7s %5s\n", "SELF-TEST", "OFFSET", "OPTIMIZER",
	       "COMBINER", "ROWS", "DIM", "SAMPLES", "IDS");
	for (uint32_t i = 0; i < image->firmware.test_count; i++) {
		struct embeng_fw_self_test t = test_at(image, at);

		printf("%-10u %8" PRIu64 "  %-17s %-8s %5u %5u %7u %5u\n", i, at,
		       fw_source_optimizer_name(t.optimizer), fw_source_combiner_name(t.combiner),
		       t.rows, t.dim, t.samples, t.ids);
		at += t.length;
	}
}

static int print_image(const struct fw_image *image)
{
	struct embeng_fw_header header = header_of(image);

	print_header(image);
	printf("\nPARAMETER\n");
	each_parameter(&image->firmware.parameters, NULL, print_parameter);
	for (uint32_t i = 0; i < header.section_count; i++) {
		struct embeng_fw_section s = section_of(image, i);

		if (s.type == EMBENG_FW_STRINGS)
			print_strings(image, &s);
	}
	if (image->firmware.test_count)
		print_tests(image);
	return CLI_OK;
}

static void add_parameter(void *arg, const char *name, uint64_t value, const char *words)
{
	char version[FW_VERSION_TEXT];

	(void)words;
	if (!strcmp(name, "minimum_version"))
		json_add_text(arg, name, fw_version(value, version));
	else
		json_add_number(arg, name, value);
}

static struct json_object *json_strings(const struct fw_image *image,
					const struct embeng_fw_section *s)
{
	const char *text = (const char *)image->data + s->offset, *end = text + s->length;
	struct json_object *strings = json_object_new_object();

	for (; text < end; text += strlen(text) + 1) {
		char *name = strndup(text, strcspn(text, "="));

		if (name)
			json_add_text(strings, name, strchr(text, '=') + 1);
		free(name);
	}
	return strings;
}

static struct json_object *json_section(const struct embeng_fw_section *s)
{
	struct json_object *object = json_object_new_object();
	bool mandatory = s->flags & EMBENG_FW_SECTION_MANDATORY;
	char text[HEX_TEXT];

	json_add_text(object, "type", type_name(s->type));
	json_add_number(object, "number", s->type);
	json_object_object_add(object, "mandatory", json_object_new_boolean(mandatory));
	json_add_number(object, "offset", s->offset);
	json_add_number(object, "length", s->length);
	json_add_text(object, "sha256", write_hex(s->sha256, text));
	return object;
}

static struct json_object *json_tests(const struct fw_image *image)
{
	struct json_object *tests = json_object_new_array();
	uint64_t at = image->firmware.tests;

	for (uint32_t i = 0; i < image->firmware.test_count; i++) {
		struct embeng_fw_self_test t = test_at(image, at);
		struct json_object *object = json_object_new_object();

		json_add_number(object, "offset", at);
		json_add_text(object, "optimizer", fw_source_optimizer_name(t.optimizer));
		json_add_text(object, "combiner", fw_source_combiner_name(t.combiner));
		json_add_number(object, "rows", t.rows);
		json_add_number(object, "dim", t.dim);
		json_add_number(object, "samples", t.samples);
		json_add_number(object, "ids", t.ids);
		json_object_array_add(tests, object);
		at += t.length;
	}
	return tests;
}

static int emit_image(const struct output *out, const struct fw_image *image)
{
	struct json_object *d = json_document(out), *sections = json_object_new_array();
	struct json_object *parameters = json_object_new_object(), *strings = NULL;
	struct embeng_fw_header h = header_of(image);
	char text[HEX_TEXT];

	fw_add_image(d, image);
	json_add_text(d, "build_id", build_id(&h, text));
	json_add_number(d, "format", h.format);
	json_add_number(d, "interface_major", h.interface_major);
	json_add_number(d, "interface_minor", h.interface_minor);
	for (uint32_t i = 0; i < h.section_count; i++) {
		struct embeng_fw_section s = section_of(image, i);

		json_object_array_add(sections, json_section(&s));
		if (s.type == EMBENG_FW_STRINGS)
			strings = json_strings(image, &s);
	}
	json_object_object_add(d, "sections", sections);
	each_parameter(&image->firmware.parameters, parameters, add_parameter);
	json_object_object_add(d, "parameters", parameters);
	json_object_object_add(d, "strings", strings ? strings : json_object_new_object());
	json_object_object_add(d, "self_tests", json_tests(image));
	return json_emit(d);
}

int fw_inspect(int argc, char **argv)
{
	static const struct argp argp = {.parser = fw_parse_image, .args_doc = "IMAGE", .doc = doc};
	struct output out = {.verb = "fw", .command = "inspect"};
	struct fw_image image = {0};
	int code = command_parse(&argp, argc, argv, &out, &image.path);

	if (!code)
		code = fw_load(&out, image.path, 0, &image);
	if (!code)
		code = out.json ? emit_image(&out, &image) : print_image(&image);
	free(image.data);
	return code;
}
