// SPDX-License-Identifier: MIT
/*
 * The settings of learning as a table: names, limits, and how each is read and written. A setting
 * has one text form, on the command line and in a checkpoint.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../text/number.h"
#include "settings.h"

const struct settings settings_default = {
	.dim = 32,
	.negatives = 5,
	.batch = 512,
	.learning_rate = 0.2,
	.optimizer = EMBENG_ADAGRAD,
	.seed = 1,
	.min_count = 5,
	.min_basket = 3,
};

/**
 * struct setting - one of them
 * @kind: WHOLE: int64_t from @least to @most; RATE: double; EITHER: bool, whether @words[1];
 *	OPTIMIZER: enum embeng_optimizer_name
 * @free: a training that goes on may have another
 */
struct setting {
	const char *name;
	enum { WHOLE, RATE, EITHER, OPTIMIZER } kind;
	size_t offset;
	int64_t least, most;
	const char *words[2];
	bool free;
};

#define AT(member) offsetof(struct settings, member)

static const struct setting known_settings[] = {
	{"dim", WHOLE, AT(dim), 1, 1024, {0}, false},
	{"epochs", WHOLE, AT(epochs), 1, 1000000, {0}, true},
	{"negatives", WHOLE, AT(negatives), 1, 1000, {0}, false},
	{"learning-rate", RATE, AT(learning_rate), 0, 1000, {0}, false},
	{"optimizer", OPTIMIZER, AT(optimizer), 0, 0, {0}, false},
	{"batch", WHOLE, AT(batch), 1, 65536, {0}, false},
	{"seed", WHOLE, AT(seed), 0, INT64_MAX, {0}, false},
	{"split", EITHER, AT(by_time), 0, 0, {"seed", "time"}, false},
	{"min-count", WHOLE, AT(min_count), 1, 1000000000, {0}, false},
	{"min-basket", WHOLE, AT(min_basket), 3, 1000000000, {0}, false},
};

#define COUNT (sizeof(known_settings) / sizeof(known_settings[0]))

const char *setting_at(size_t k)
{
	return k < COUNT ? known_settings[k].name : NULL;
}

static void write_whole(const struct setting *what, int64_t value, char text[SETTING_TEXT])
{
	text[0] = '\0';
	if (value >= what->least)
		snprintf(text, SETTING_TEXT, "%lld", (long long)value);
}

/* As short as gives the same bits back. */
static void write_rate(double value, char text[SETTING_TEXT])
{
	snprintf(text, SETTING_TEXT, "%.15g", value);
	if (strtod(text, NULL) != value)
		snprintf(text, SETTING_TEXT, "%.17g", value);
}

void setting_write(const struct settings *s, size_t k, char text[SETTING_TEXT])
{
	const void *value = (const char *)s + known_settings[k].offset;

	switch (known_settings[k].kind) {
	case WHOLE:
		write_whole(&known_settings[k], *(const int64_t *)value, text);
		break;
	case RATE:
		write_rate(*(const double *)value, text);
		break;
	case EITHER:
		snprintf(text, SETTING_TEXT, "%s", known_settings[k].words[*(const bool *)value]);
		break;
	case OPTIMIZER:
		snprintf(text, SETTING_TEXT, "%s",
			 embeng_optimizer_text(*(const enum embeng_optimizer_name *)value));
		break;
	}
}

int whole_read(const char *name, const char *text, int64_t least, int64_t most, int64_t *value,
	       char error[SETTING_ERROR])
{
	if (number_read_signed(text, least, most, value)) {
		snprintf(error, SETTING_ERROR,
			 "--%s takes a whole number from %lld to %lld, not '%.40s'", name,
			 (long long)least, (long long)most, text);
		return -EINVAL;
	}
	return 0;
}

static int read_rate(const struct setting *what, const char *text, double *value,
		     char error[SETTING_ERROR])
{
	char *end;
	double given = strtod(text, &end);

	if (end == text || *end || !(given > 0) || !(given <= (double)what->most)) {
		snprintf(error, SETTING_ERROR,
			 "--%s takes a number above 0, up to %lld, not '%.40s'", what->name,
			 (long long)what->most, text);
		return -EINVAL;
	}
	*value = given;
	return 0;
}

static int read_either(const struct setting *what, const char *text, bool *value,
		       char error[SETTING_ERROR])
{
	bool second = !strcmp(text, what->words[1]);

	if (!second && strcmp(text, what->words[0]) != 0) {
		snprintf(error, SETTING_ERROR, "--%s takes %s or %s, not '%.40s'", what->name,
			 what->words[0], what->words[1], text);
		return -EINVAL;
	}
	*value = second;
	return 0;
}

static int read_optimizer_name(const struct setting *what, const char *text,
			       enum embeng_optimizer_name *value, char error[SETTING_ERROR])
{
	struct embeng_optimizer optimizer;

	/* Neither of the two follows a gradient. */
	if (embeng_optimizer_by_name(text, 0.0f, &optimizer) || optimizer.kind == EMBENG_ASSIGN ||
	    optimizer.kind == EMBENG_FREQUENCY_ESTIMATOR) {
		snprintf(error, SETTING_ERROR,
			 "--%s takes one of embeng-optimizers(7) that learns, such as adagrad, not "
			 "'%.40s'",
			 what->name, text);
		return -EINVAL;
	}
	*value = optimizer.kind;
	return 0;
}

static int read_one(struct settings *s, const struct setting *what, const char *text,
		    char error[SETTING_ERROR])
{
	void *value = (char *)s + what->offset;

	switch (what->kind) {
	case WHOLE:
		return whole_read(what->name, text, what->least, what->most, value, error);
	case RATE:
		return read_rate(what, text, value, error);
	case EITHER:
		return read_either(what, text, value, error);
	default:
		return read_optimizer_name(what, text, value, error);
	}
}

int setting_read(struct settings *s, const char *name, const char *text, char error[SETTING_ERROR])
{
	for (size_t k = 0; k < COUNT; k++) {
		int rc;

		if (strcmp(known_settings[k].name, name) != 0)
			continue;
		rc = read_one(s, &known_settings[k], text, error);
		if (!rc)
			s->given |= 1u << k;
		return rc;
	}
	snprintf(error, SETTING_ERROR, "there is no setting '%.40s'", name);
	return -EINVAL;
}

/* Whether its steps are of about the rate's size from the first one on. */
static bool steps_by_rate(enum embeng_optimizer_name kind)
{
	return kind == EMBENG_ADAM || kind == EMBENG_LION || kind == EMBENG_RMS_PROP ||
	       kind == EMBENG_CENTERED_RMS_PROP || kind == EMBENG_LAPROP;
}

void settings_complete(struct settings *s)
{
	for (size_t k = 0; k < COUNT; k++) {
		if (known_settings[k].kind == RATE && s->given >> k & 1)
			return;
	}
	if (steps_by_rate(s->optimizer))
		s->learning_rate = 0.01;
	else if (s->optimizer == EMBENG_ADAGRAD_MOMENTUM)
		s->learning_rate = 0.1;
}

int settings_continue(struct settings *s, const struct settings *saved, char error[SETTING_ERROR])
{
	struct settings merged = *saved;
	char asked[SETTING_TEXT], had[SETTING_TEXT];

	merged.device = s->device;
	merged.given = s->given;
	for (size_t k = 0; k < COUNT; k++) {
		if (!(s->given >> k & 1))
			continue;
		setting_write(s, k, asked);
		setting_write(saved, k, had);
		if (!known_settings[k].free && strcmp(asked, had) != 0) {
			snprintf(error, SETTING_ERROR, "it was trained with --%s %s, not %s",
				 known_settings[k].name, had, asked);
			return -EINVAL;
		}
		if (known_settings[k].free)
			read_one(&merged, &known_settings[k], asked, error);
	}
	*s = merged;
	return 0;
}

bool setting_given(const struct settings *s, const char *name)
{
	for (size_t k = 0; k < COUNT; k++) {
		if (!strcmp(known_settings[k].name, name))
			return s->given >> k & 1;
	}
	return false;
}

const char *settings_missing(const struct settings *s)
{
	for (size_t k = 0; k < COUNT; k++) {
		if (!known_settings[k].free && !(s->given >> k & 1))
			return known_settings[k].name;
	}
	return NULL;
}
