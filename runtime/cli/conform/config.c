// SPDX-License-Identifier: MIT
/*
 * The step expect_config of a vector: exports the model as a TPUEmbeddingConfiguration and compares
 * the bytes, or imports bytes and compares the models.
 *
 * Bytes live for one step.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"
#include "value.h"
#include "embeng/tpu.h"

/* Bytes shown beside the first that differs. */
#define SHOWN 8
#define SHOWN_TEXT (2 * SHOWN + 1)

/* Bytes of a protobuf; the holder frees them. */
struct bytes {
	void *data;
	size_t length;
};

static int read_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10 : -1;
}

static int hex_read(struct run *r, const char *key, const char *text, struct bytes *out)
{
	size_t digits = strlen(text), good = strspn(text, "0123456789abcdefABCDEF");
	unsigned char *data;

	if (text[good] || digits % 2)
		return run_fail(r, -EINVAL,
				"%s: %zu of %zu characters are hexadecimal digits; all must "
				"be, two for each byte",
				key, good, digits);
	data = malloc(digits / 2 + 1);
	if (!data)
		return run_fail(r, -ENOMEM, "out of memory");
	for (size_t i = 0; i < digits / 2; i++)
		data[i] = (unsigned char)(read_hex_digit(text[2 * i]) << 4 |
					  read_hex_digit(text[2 * i + 1]));
	out->data = data;
	out->length = digits / 2;
	return 0;
}

/* Some bytes from @at on, "" at their end. */
static const char *show_bytes(char text[SHOWN_TEXT], const struct bytes *bytes, size_t at)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *data = bytes->data;
	size_t length = 0;

	for (; length < SHOWN && at + length < bytes->length; length++) {
		text[2 * length] = digits[data[at + length] >> 4];
		text[2 * length + 1] = digits[data[at + length] & 15];
	}
	text[2 * length] = '\0';
	return text;
}

static int compare_bytes(struct run *r, const char *key, const struct bytes *got,
			 const struct bytes *expected)
{
	size_t least = got->length < expected->length ? got->length : expected->length, at = 0;
	const unsigned char *a = got->data, *b = expected->data;
	char text[SHOWN_TEXT], other[SHOWN_TEXT];

	while (at < least && a[at] == b[at])
		at++;
	if (at == got->length && at == expected->length)
		return 0;
	run_mismatch(r, "at", key,
		     "the configurations differ from byte %zu on: '%s' of %zu bytes, "
		     "expected '%s' of %zu",
		     at, show_bytes(text, got, at), got->length, show_bytes(other, expected, at),
		     expected->length);
	json_object_object_add(r->failure, "got", json_object_new_string(text));
	json_object_object_add(r->failure, "expected", json_object_new_string(other));
	return STEP_MISMATCH;
}

static int export_model(struct run *r, const struct embeng_model *model, struct bytes *out)
{
	int err = embeng_tpu_export(model, NULL, &out->data, &out->length);

	return err ? run_library(r, err) : 0;
}

/* Both models are exported in one form, so the bytes can be compared. */
static int compare_models(struct run *r, const struct embeng_model *imported)
{
	struct bytes got = {0}, expected = {0};
	int result = export_model(r, r->model, &expected);

	if (!result)
		result = export_model(r, imported, &got);
	if (!result)
		result = compare_bytes(r, "import_hex", &got, &expected);
	free(got.data);
	free(expected.data);
	return result;
}

static int expect_import(struct run *r, const struct bytes *bytes)
{
	struct embeng_tpu *tpu;
	int result = embeng_tpu_import(bytes->data, bytes->length, NULL, &tpu);

	if (result)
		return run_library(r, result);
	result = compare_models(r, embeng_tpu_model(tpu));
	embeng_tpu_free(tpu);
	return result;
}

static int expect_export(struct run *r, const struct bytes *expected)
{
	struct bytes got = {0};
	int result = export_model(r, r->model, &got);

	if (!result)
		result = compare_bytes(r, "hex", &got, expected);
	free(got.data);
	return result;
}

int step_expect_config(struct run *r, const struct json *body)
{
	const char *key = member(body, "hex") ? "hex" : "import_hex";
	struct bytes bytes = {0};
	int result = hex_read(r, key, text_member(body, key, ""), &bytes);

	if (result)
		return result;
	result = strcmp(key, "hex") ? expect_import(r, &bytes) : expect_export(r, &bytes);
	free(bytes.data);
	return result;
}
