// SPDX-License-Identifier: MIT
/*
 * Reads the text sources of a firmware image: lines, sections and numbers. Errors name the file and
 * the line. The sections of self-tests are read in source_test.c.
 *
 * A struct fw_source collects what several files say and lives until fw_source_free().
 */
#include "source.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../runtime/text/number.h"
#include "../uapi/embeng_engine.h"
#include "image.h"

#define BLANK " \t\r"

enum section { SECTION_NONE, SECTION_IMAGE, SECTION_PARAMETERS, SECTION_STRINGS, SECTION_TEST };

static const char *const section_names[] = {
	[SECTION_IMAGE] = "image",
	[SECTION_PARAMETERS] = "parameters",
	[SECTION_STRINGS] = "strings",
	[SECTION_TEST] = "self-test",
};

static const struct {
	const char *name;
	unsigned int offset, bytes;
	__u64 low, high;
} parameters[] = {
#define PARAMETER(name, bytes, low, high, words) \
	{#name, offsetof(struct embeng_fw_parameters, name), bytes, low, high},
	EMBENG_FW_PARAMETER_TABLE(PARAMETER)
#undef PARAMETER
};

#define PARAMETERS (sizeof(parameters) / sizeof(parameters[0]))
#define GIVEN_VERSION (1u << PARAMETERS)
#define GIVEN_BUILD_ID (GIVEN_VERSION << 1)
#define GIVEN_PARAMETERS (GIVEN_VERSION - 1)

static const struct {
	const char *name;
	__u32 bit;
} capabilities[] = {
#define CAPABILITY(name, key, words) {key, EMBENG_CAP_##name},
	EMBENG_CAP_TABLE(CAPABILITY)
#undef CAPABILITY
};

int fw_source_fail(struct fw_source *s, const char *format, ...)
{
	int used = s->line ? snprintf(s->error, sizeof(s->error), "%s:%u: ", s->name, s->line)
			   : snprintf(s->error, sizeof(s->error), "%s: ", s->name);
	va_list args;

	if (used < 0 || (size_t)used >= sizeof(s->error))
		return -EINVAL;
	va_start(args, format);
	vsnprintf(s->error + used, sizeof(s->error) - (size_t)used, format, args);
	va_end(args);
	return -EINVAL;
}

static int out_of_memory(struct fw_source *s)
{
	fw_source_fail(s, "out of memory");
	return -ENOMEM;
}

int fw_source_append(struct fw_source *s, struct fw_source_bytes *to, const void *data,
		     size_t length)
{
	unsigned char *larger = realloc(to->data, to->length + length + 1);

	if (!larger)
		return out_of_memory(s);
	if (length)
		memcpy(larger + to->length, data, length);
	to->data = larger;
	to->length += length;
	return 0;
}

int fw_source_number(struct fw_source *s, const char *key, const char *text, __u64 low, __u64 high,
		     __u64 *value)
{
	uint64_t n;
	int ret = number_read_code(text, &n);

	if (ret == -EINVAL)
		return fw_source_fail(s, "%s is '%s', not a whole number", key, text);
	if (ret || n < low || n > high)
		return fw_source_fail(s, "%s is %s, allowed are %llu to %llu", key, text,
				      (unsigned long long)low, (unsigned long long)high);
	*value = n;
	return 0;
}

int fw_source_float(struct fw_source *s, const char *key, const char *text, __u32 *bits)
{
	float value;
	char *end;

	value = strtof(text, &end);
	if (end == text || *end)
		return fw_source_fail(s, "%s: '%s' is no number", key, text);
	memcpy(bits, &value, sizeof(*bits));
	return 0;
}

int version_read(const char *text, __u64 *version)
{
	uint64_t part;
	__u64 packed = 0;
	int parts = 0;

	for (;; text++) {
		size_t length = strcspn(text, ".");

		if (parts == 4 || number_read(text, length, 10, &part) || part > 0xffff)
			return -EINVAL;
		packed = packed << 16 | part;
		parts++;
		text += length;
		if (!*text)
			break;
	}
	if (parts < 3)
		return -EINVAL;
	*version = parts == 3 ? packed << 16 : packed;
	return 0;
}

static int read_version(struct fw_source *s, const char *key, const char *text, __u64 *version)
{
	if (!version_read(text, version))
		return 0;
	return fw_source_fail(s, "%s is '%s', not like 1.2.3 or 1.2.3.4, each at most 65535", key,
			      text);
}

static int read_features(struct fw_source *s, char *text, __u64 *features)
{
	char *rest = NULL;

	*features = 0;
	for (char *name = strtok_r(text, BLANK, &rest); name; name = strtok_r(NULL, BLANK, &rest)) {
		size_t i = 0, count = sizeof(capabilities) / sizeof(capabilities[0]);

		while (i < count && strcmp(capabilities[i].name, name) != 0)
			i++;
		if (i == count)
			return fw_source_fail(s, "features: there is no '%s'", name);
		*features |= capabilities[i].bit;
	}
	return 0;
}

/* Says once for all that a key was there. */
static int take_once(struct fw_source *s, const char *key, unsigned int bit)
{
	if (s->given & bit)
		return fw_source_fail(s, "%s is given a second time", key);
	s->given |= bit;
	return 0;
}

static int image_key(struct fw_source *s, const char *key, const char *value)
{
	size_t length = strlen(value);
	int ret;

	if (!strcmp(key, "version")) {
		ret = take_once(s, key, GIVEN_VERSION);
		return ret ? ret : read_version(s, key, value, &s->version);
	}
	if (strcmp(key, "build_id") != 0)
		return fw_source_fail(s, "an image has version and build_id, no %s", key);
	ret = take_once(s, key, GIVEN_BUILD_ID);
	if (!ret && length >= sizeof(s->build_id))
		return fw_source_fail(s, "build_id has %zu bytes, at most %zu fit", length,
				      sizeof(s->build_id) - 1);
	if (!ret)
		memcpy(s->build_id, value, length + 1);
	return ret;
}

static int parameter_value(struct fw_source *s, size_t i, char *value, __u64 *number)
{
	const char *key = parameters[i].name;

	if (!strcmp(key, "features"))
		return read_features(s, value, number);
	if (!strcmp(key, "minimum_version"))
		return read_version(s, key, value, number);
	return fw_source_number(s, key, value, parameters[i].low, parameters[i].high, number);
}

static int parameter_key(struct fw_source *s, const char *key, char *value)
{
	__u64 number;
	size_t i = 0;
	int ret;

	while (i < PARAMETERS && strcmp(parameters[i].name, key) != 0)
		i++;
	if (i == PARAMETERS)
		return fw_source_fail(s, "there is no boot parameter %s", key);
	ret = take_once(s, key, 1u << i);
	if (!ret)
		ret = parameter_value(s, i, value, &number);
	if (!ret)
		memcpy((char *)&s->parameters + parameters[i].offset, &number, parameters[i].bytes);
	return ret;
}

static int string_key(struct fw_source *s, const char *key, const char *value)
{
	int ret = fw_source_append(s, &s->strings, key, strlen(key));

	if (!ret)
		ret = fw_source_append(s, &s->strings, "=", 1);
	return ret ? ret : fw_source_append(s, &s->strings, value, strlen(value) + 1);
}

static int put_key(struct fw_source *s, const char *key, char *value)
{
	switch (s->section) {
	case SECTION_IMAGE:
		return image_key(s, key, value);
	case SECTION_PARAMETERS:
		return parameter_key(s, key, value);
	case SECTION_STRINGS:
		return string_key(s, key, value);
	case SECTION_TEST:
		return fw_source_test_key(s, key, value);
	default:
		return fw_source_fail(s, "%s stands before any section", key);
	}
}

static int end_section(struct fw_source *s)
{
	int ret = s->section == SECTION_TEST ? fw_source_test_end(s) : 0;

	s->section = SECTION_NONE;
	return ret;
}

static int begin_section(struct fw_source *s, char *line)
{
	char *end = strchr(line, ']');
	int ret = end_section(s);

	if (ret)
		return ret;
	if (!end || end[1])
		return fw_source_fail(s, "a section is written [name], not %s", line);
	*end = '\0';
	for (int i = SECTION_IMAGE; i <= SECTION_TEST; i++) {
		if (!strcmp(section_names[i], line + 1))
			s->section = i;
	}
	s->test.line = s->line;
	return s->section ? 0 : fw_source_fail(s, "there is no section %s", line + 1);
}

static void strip_blanks(char *text)
{
	size_t length = strlen(text);

	while (length && strchr(BLANK, text[length - 1]))
		text[--length] = '\0';
}

static int read_entry(struct fw_source *s, char *text)
{
	char *equals;

	strip_blanks(text);
	if (!*text || *text == '#')
		return 0;
	if (*text == '[')
		return begin_section(s, text);
	equals = strchr(text, '=');
	if (!equals || equals == text)
		return fw_source_fail(s, "'%s' is neither [section] nor key = value", text);
	*equals = '\0';
	strip_blanks(text);
	return put_key(s, text, equals + 1 + strspn(equals + 1, BLANK));
}

/* A line that begins with a blank goes on the one before. Return: where the next entry begins. */
static char *cut_entry(char *text, unsigned int *lines)
{
	char *end = strchr(text, '\n');

	*lines = 1;
	while (end && (end[1] == ' ' || end[1] == '\t')) {
		*end = ' ';
		end = strchr(end, '\n');
		++*lines;
	}
	if (!end)
		return NULL;
	*end = '\0';
	return end + 1;
}

int fw_source_read(struct fw_source *s, const char *name, const char *text, size_t length)
{
	char *copy = malloc(length + 1), *next;
	unsigned int lines;
	int ret = 0;

	s->name = name;
	s->line = 1;
	s->section = SECTION_NONE;
	if (!copy)
		return out_of_memory(s);
	memcpy(copy, text, length);
	copy[length] = '\0';
	if (memchr(copy, '\0', length))
		ret = fw_source_fail(s, "this is no text: it has a zero byte");
	for (char *entry = copy; !ret && entry; entry = next, s->line += lines) {
		next = cut_entry(entry, &lines);
		ret = read_entry(s, entry);
	}
	if (!ret)
		ret = end_section(s);
	free(copy);
	return ret;
}

static int all_given(struct fw_source *s)
{
	s->line = 0;
	if (!(s->given & GIVEN_VERSION))
		return fw_source_fail(s, "the [image] has no version");
	for (size_t i = 0; i < PARAMETERS; i++) {
		if (!(s->given & 1u << i))
			return fw_source_fail(s, "the boot parameter %s is missing",
					      parameters[i].name);
	}
	if (s->parameters.minimum_version > s->version)
		return fw_source_fail(s, "minimum_version is above the image's own version");
	return 0;
}

int fw_source_pack(struct fw_source *s, void **image, size_t *length)
{
	struct image_section sections[3] = {
		{EMBENG_FW_PARAMETERS, EMBENG_FW_SECTION_MANDATORY, &s->parameters,
		 sizeof(s->parameters)},
	};
	size_t count = 1;
	int ret = all_given(s);

	if (s->tests.length)
		sections[count++] = (struct image_section){EMBENG_FW_SELF_TEST,
							   EMBENG_FW_SECTION_MANDATORY,
							   s->tests.data, s->tests.length};
	if (s->strings.length)
		sections[count++] = (struct image_section){EMBENG_FW_STRINGS, 0, s->strings.data,
							   s->strings.length};
	if (ret)
		return ret;
	ret = image_pack(s->version, s->build_id, sections, count, image, length);
	if (ret == -EFBIG)
		return fw_source_fail(s,
				      "the image is too large: at most %llu bytes, of which "
				      "self-tests take %zu and strings %zu",
				      EMBENG_FW_LENGTH_MAX, s->tests.length, s->strings.length);
	return ret ? out_of_memory(s) : 0;
}

void fw_source_free(struct fw_source *s)
{
	free(s->strings.data);
	free(s->tests.data);
	fw_source_test_free(&s->test);
}
