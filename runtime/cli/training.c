// SPDX-License-Identifier: MIT
/* The state of a training as JSON. Floating point is hexadecimal: not a bit is lost. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "training.h"

#define SCHEMA "embeng.training/1"

static void add_text(struct json_object *to, const char *key, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void add_text(struct json_object *to, const char *key, const char *format, ...)
{
	char text[SETTING_TEXT];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	json_object_object_add(to, key, json_object_new_string(text));
}

static struct json_object *settings_object(const struct settings *settings)
{
	struct json_object *object = json_object_new_object();
	char text[SETTING_TEXT];

	for (size_t k = 0; setting_at(k); k++) {
		setting_write(settings, k, text);
		if (*text)
			add_text(object, setting_at(k), "%s", text);
	}
	return object;
}

char *training_text(const struct training *training)
{
	const struct place *at = &training->place;
	const int flags = JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE;
	struct json_object *object = json_object_new_object();
	char *text;

	add_text(object, "schema", SCHEMA);
	add_text(object, "data", "%016" PRIx64, training->data);
	json_object_object_add(object, "options", settings_object(&training->settings));
	json_object_object_add(object, "epoch", json_object_new_int64(at->epoch));
	json_object_object_add(object, "step", json_object_new_int64((int64_t)at->step));
	add_text(object, "random", "%016" PRIx64, at->random);
	add_text(object, "loss_sum", "%a", at->loss_sum);
	add_text(object, "loss", "%a", at->loss);
	text = strdup(json_object_to_json_string_ext(object, flags));
	json_object_put(object);
	return text;
}

static int malformed(char error[TRAINING_ERROR], const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int malformed(char error[TRAINING_ERROR], const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error, TRAINING_ERROR, format, args);
	va_end(args);
	return -EBADMSG;
}

static const char *text_of(struct json_object *object, const char *key)
{
	struct json_object *value;

	if (!json_object_object_get_ex(object, key, &value) ||
	    !json_object_is_type(value, json_type_string))
		return NULL;
	return json_object_get_string(value);
}

static int read_whole(struct json_object *object, const char *key, int64_t *value,
		      char error[TRAINING_ERROR])
{
	struct json_object *found;

	if (!json_object_object_get_ex(object, key, &found) ||
	    !json_object_is_type(found, json_type_int) || json_object_get_int64(found) < 0)
		return malformed(error, "its \"%s\" is no whole number", key);
	*value = json_object_get_int64(found);
	return 0;
}

static int read_bits(struct json_object *object, const char *key, uint64_t *value,
		     char error[TRAINING_ERROR])
{
	const char *text = text_of(object, key);

	if (!text || strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
		return malformed(error, "its \"%s\" is not 16 hexadecimal digits", key);
	*value = strtoull(text, NULL, 16);
	return 0;
}

static int read_float(struct json_object *object, const char *key, double *value,
		      char error[TRAINING_ERROR])
{
	const char *text = text_of(object, key);
	double given;
	char *end;

	if (!text)
		return malformed(error, "its \"%s\" is missing", key);
	given = strtod(text, &end);
	if (end == text || *end)
		return malformed(error, "its \"%s\" is no number", key);
	*value = given;
	return 0;
}

static int read_settings(struct json_object *object, struct settings *settings,
			 char error[TRAINING_ERROR])
{
	struct json_object *options;
	char why[SETTING_ERROR];

	if (!json_object_object_get_ex(object, "options", &options) ||
	    !json_object_is_type(options, json_type_object))
		return malformed(error, "its \"options\" are missing");
	*settings = settings_default;
	json_object_object_foreach(options, name, value) {
		if (!json_object_is_type(value, json_type_string))
			return malformed(error, "its option \"%.40s\" is no text", name);
		if (setting_read(settings, name, json_object_get_string(value), why))
			return malformed(error, "its options: %s", why);
	}
	if (settings_missing(settings))
		return malformed(error, "its option \"%s\" is missing", settings_missing(settings));
	return 0;
}

static int read_object(struct json_object *object, struct training *training,
		       char error[TRAINING_ERROR])
{
	const char *schema = text_of(object, "schema");
	struct place *at = &training->place;
	int64_t step = 0;
	int rc;

	if (!schema || strcmp(schema, SCHEMA) != 0)
		return malformed(error, "embeng train did not write it");
	rc = read_bits(object, "data", &training->data, error);
	if (!rc)
		rc = read_settings(object, &training->settings, error);
	if (!rc)
		rc = read_whole(object, "epoch", &at->epoch, error);
	if (!rc)
		rc = read_whole(object, "step", &step, error);
	if (!rc)
		rc = read_bits(object, "random", &at->random, error);
	if (!rc)
		rc = read_float(object, "loss_sum", &at->loss_sum, error);
	if (!rc)
		rc = read_float(object, "loss", &at->loss, error);
	at->step = (size_t)step;
	return rc;
}

int training_read(const char *text, struct training *training, char error[TRAINING_ERROR])
{
	struct json_object *object = json_tokener_parse(text);
	struct training read = {0};
	int rc = read_object(object, &read, error);

	json_object_put(object);
	if (!rc)
		*training = read;
	return rc;
}
