// SPDX-License-Identifier: MIT
/*
 * The state of a training as JSON, which a checkpoint keeps as its program state. Numbers with a
 * fraction are written in hexadecimal, so that not a bit is lost.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../json/json_read.h"
#include "../../json/json_write.h"
#include "../../text/number.h"
#include "training.h"

/* More than the options need, so that what others wrote is told from what is no JSON. */
#define LEVELS 32

#define SCHEMA "embeng.training/1"

static void write_text(struct json_writer *w, const char *key, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void write_text(struct json_writer *w, const char *key, const char *format, ...)
{
	char text[SETTING_TEXT];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	json_write_text(w, key, text);
}

static void write_settings(struct json_writer *w, const struct settings *settings)
{
	char text[SETTING_TEXT];

	json_write_object(w, "options");
	for (size_t k = 0; setting_at(k); k++) {
		setting_write(settings, k, text);
		if (*text)
			json_write_text(w, setting_at(k), text);
	}
	json_write_close(w);
}

char *training_text(const struct training *training)
{
	const struct place *at = &training->place;
	struct json_writer w;
	size_t length;
	char *text;

	json_write_begin(&w, JSON_COMPACT);
	json_write_object(&w, NULL);
	json_write_text(&w, "schema", SCHEMA);
	write_text(&w, "data", "%016" PRIx64, training->data);
	if (training->names.count)
		row_names_mark_write(&w, &training->names);
	write_settings(&w, &training->settings);
	if (training->last_epoch)
		json_write_number(&w, "last_epoch", (uint64_t)training->last_epoch);
	json_write_number(&w, "epoch", (uint64_t)at->epoch);
	json_write_number(&w, "step", at->step);
	write_text(&w, "random", "%016" PRIx64, at->random);
	write_text(&w, "loss_sum", "%a", at->loss_sum);
	write_text(&w, "loss", "%a", at->loss);
	json_write_close(&w);
	return json_write_end(&w, &text, &length) ? NULL : text;
}

static int report_malformed(char error[TRAINING_ERROR], const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int report_malformed(char error[TRAINING_ERROR], const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error, TRAINING_ERROR, format, args);
	va_end(args);
	return -EBADMSG;
}

static int read_whole(const struct json *object, const char *key, int64_t *value,
		      char error[TRAINING_ERROR])
{
	const struct json *found = json_get(object, key);

	if (!json_is(found, JSON_INTEGER) || found->magnitude > INT64_MAX || json_int64(found) < 0)
		return report_malformed(error, "its \"%s\" is no whole number", key);
	*value = json_int64(found);
	return 0;
}

static int read_bits(const struct json *object, const char *key, uint64_t *value,
		     char error[TRAINING_ERROR])
{
	const char *text = json_string(json_get(object, key));

	if (!text || strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16 ||
	    number_read(text, 16, 16, value))
		return report_malformed(error, "its \"%s\" is not 16 hexadecimal digits", key);
	return 0;
}

static int read_float(const struct json *object, const char *key, double *value,
		      char error[TRAINING_ERROR])
{
	const char *text = json_string(json_get(object, key));
	double given;
	char *end;

	if (!text)
		return report_malformed(error, "its \"%s\" is missing", key);
	given = strtod(text, &end);
	if (end == text || *end)
		return report_malformed(error, "its \"%s\" is no number", key);
	*value = given;
	return 0;
}

static int read_training_settings(const struct json *object, struct settings *settings,
				  char error[TRAINING_ERROR])
{
	const struct json *options = json_get(object, "options");
	char why[SETTING_ERROR];

	if (!json_is(options, JSON_OBJECT))
		return report_malformed(error, "its \"options\" are missing");
	*settings = settings_default;
	for (size_t i = 0; i < json_length(options); i++) {
		const char *name = json_name(options, i), *text = json_string(json_at(options, i));

		if (!text)
			return report_malformed(error, "its option \"%.40s\" is no text", name);
		if (setting_read(settings, name, text, why))
			return report_malformed(error, "its options: %s", why);
	}
	if (settings_missing(settings))
		return report_malformed(error, "its option \"%s\" is missing",
					settings_missing(settings));
	return 0;
}

static int read_object(const struct json *object, struct training *training,
		       char error[TRAINING_ERROR])
{
	const char *schema = json_string(json_get(object, "schema"));
	struct place *at = &training->place;
	int64_t step = 0;
	int rc;

	if (!schema || strcmp(schema, SCHEMA) != 0)
		return report_malformed(error, "embeng train did not write it");
	rc = read_bits(object, "data", &training->data, error);
	if (!rc && row_names_mark_read(object, &training->names))
		rc = report_malformed(error, "its \"names\" are malformed");
	if (!rc && json_get(object, "last_epoch"))
		rc = read_whole(object, "last_epoch", &training->last_epoch, error);
	if (!rc)
		rc = read_training_settings(object, &training->settings, error);
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
	struct training read = {0};
	const struct json *object;
	char why[JSON_WHY];
	int rc = json_read(text, strlen(text), LEVELS, &object, why);

	if (rc == -EBADMSG)
		return report_malformed(error, "embeng train did not write it");
	if (rc) {
		snprintf(error, TRAINING_ERROR, "%s", why);
		return rc;
	}
	rc = read_object(object, &read, error);
	json_free(object);
	if (!rc)
		*training = read;
	return rc;
}
