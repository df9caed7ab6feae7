// SPDX-License-Identifier: MIT
#define _GNU_SOURCE /* secure_getenv */
#include "name.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"

#define CORES_MAX 64

/* Digits and a suffix for a power of 1024; false for anything else, or overflow. */
static bool parse_number(const char *text, bool suffix, uint64_t *out)
{
	static const char suffixes[] = "KMG";
	unsigned long long value;
	const char *which;
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno)
		return false;
	if (suffix && *end && (which = strchr(suffixes, *end))) {
		unsigned int shift = 10 * (unsigned int)(which - suffixes + 1);

		if (value > UINT64_MAX >> shift)
			return false;
		value <<= shift;
		end++;
	}
	if (*end)
		return false;
	*out = value;
	return true;
}

static int parse_variant(const char *value, const char *from, struct name *out)
{
	if (!*value || strlen(value) >= sizeof(out->variant))
		return fail(-EINVAL,
			    "%s: \"%s\" is not a kernel variant; \"portable\" always works", from,
			    value);
	strcpy(out->variant, value);
	return 0;
}

static int parse_option(char *option, struct name *out)
{
	char *value = strchr(option, '=');
	uint64_t number;

	if (!value)
		return fail(-EINVAL,
			    "device name: option \"%s\" has no value; write cores=N, "
			    "memory=BYTES or variant=NAME",
			    option);
	*value++ = 0;
	if (!strcmp(option, "cores")) {
		if (!parse_number(value, false, &number) || !number || number > CORES_MAX)
			return fail(-EINVAL, "device name: cores=%s, allowed is 1 to %d", value,
				    CORES_MAX);
		out->cores = (uint32_t)number;
		return 0;
	}
	if (!strcmp(option, "memory")) {
		if (!parse_number(value, true, &number) || !number)
			return fail(-EINVAL,
				    "device name: memory=%s, give bytes from 1, or a number "
				    "with K, M or G",
				    value);
		out->memory = number;
		return 0;
	}
	if (!strcmp(option, "variant"))
		return parse_variant(value, "device name", out);
	return fail(-EINVAL,
		    "device name: option \"%s\" is not known; there are cores, memory and variant",
		    option);
}

static int parse_soft(const char *options, struct name *out)
{
	char *copy, *option, *rest;
	int ret = 0;

	copy = strdup(options);
	if (!copy)
		return fail(-ENOMEM, "no memory for the device name");
	for (option = strtok_r(copy, ",", &rest); option && !ret;
	     option = strtok_r(NULL, ",", &rest))
		ret = parse_option(option, out);
	free(copy);
	return ret;
}

static int unknown_name(const char *text)
{
	if (!strncmp(text, "/dev/accel/", 11) || !strncmp(text, "pci:", 4))
		return fail(-ENODEV,
			    "device \"%s\": this build has only the soft device; open \"soft\"",
			    text);
	return fail(-ENODEV, "device \"%s\" is not known; open \"soft\" or \"soft:cores=4\"", text);
}

const char *name_kernel(void)
{
	const char *variant = secure_getenv("EMBENG_KERNEL");

	return variant && *variant ? variant : NULL;
}

int name_parse(const char *text, struct name *out)
{
	struct name name = {.kind = NAME_SOFT};
	const char *variant;
	int ret = 0;

	if (!text)
		text = secure_getenv("EMBENG_DEVICE");
	if (!text || !*text)
		text = "soft";
	if (!strncmp(text, "soft:", 5))
		ret = parse_soft(text + 5, &name);
	else if (strcmp(text, "soft"))
		ret = unknown_name(text);
	if (ret)
		return ret;
	variant = name_kernel();
	if (!name.variant[0] && variant) {
		ret = parse_variant(variant, "EMBENG_KERNEL", &name);
		if (ret)
			return ret;
	}
	*out = name;
	return 0;
}
