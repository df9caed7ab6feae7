// SPDX-License-Identifier: MIT
/* Options of learning. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learn.h"

static error_t whole(const char *name, const char *arg, int64_t least, int64_t most,
		     int64_t *value, struct argp_state *state)
{
	char *end;
	long long given;

	errno = 0;
	given = strtoll(arg, &end, 10);
	if (errno || end == arg || *end || given < least || given > most) {
		argp_error(state, "--%s takes a whole number from %lld to %lld, not '%s'", name,
			   (long long)least, (long long)most, arg);
		return EINVAL;
	}
	*value = given;
	return 0;
}

static error_t rate(const char *arg, double *value, struct argp_state *state)
{
	char *end;
	double given = strtod(arg, &end);

	if (end == arg || *end || !(given > 0) || !(given <= 1000)) {
		argp_error(state, "--learning-rate takes a number above 0, up to 1000, not '%s'",
			   arg);
		return EINVAL;
	}
	*value = given;
	return 0;
}

/* @chosen: whether it is @second. */
static error_t either(const char *name, const char *arg, const char *first, const char *second,
		      bool *chosen, struct argp_state *state)
{
	*chosen = !strcmp(arg, second);
	if (*chosen || !strcmp(arg, first))
		return 0;
	argp_error(state, "--%s takes %s or %s, not '%s'", name, first, second, arg);
	return EINVAL;
}

static error_t query(struct learn *learn, const char *arg, struct argp_state *state)
{
	if (learn->query_count == QUERIES_MAX) {
		argp_error(state, "--query is given more than %d times", QUERIES_MAX);
		return EINVAL;
	}
	learn->queries[learn->query_count++] = arg;
	return 0;
}

static error_t by_split(struct settings *s, const char *arg, struct argp_state *state)
{
	bool by_time;
	error_t err = either("split", arg, "seed", "time", &by_time, state);

	if (!err)
		s->split = by_time ? SPLIT_TIME : SPLIT_SEED;
	return err;
}

error_t learn_option(struct learn *learn, int key, char *arg, struct argp_state *state)
{
	struct settings *s = &learn->settings;
	int64_t seed;
	error_t err;

	switch (key) {
	case 'd':
		s->device = arg;
		return 0;
	case KEY_DIM:
		return whole("dim", arg, 1, 1024, &s->dim, state);
	case KEY_EPOCHS:
		return whole("epochs", arg, 1, 1000000, &s->epochs, state);
	case KEY_NEGATIVES:
		return whole("negatives", arg, 1, 1000, &s->negatives, state);
	case KEY_RATE:
		return rate(arg, &s->learning_rate, state);
	case KEY_OPTIMIZER:
		return either("optimizer", arg, "sgd", "adagrad", &s->adagrad, state);
	case KEY_BATCH:
		return whole("batch", arg, 1, 65536, &s->batch, state);
	case KEY_SEED:
		err = whole("seed", arg, 0, INT64_MAX, &seed, state);
		if (!err)
			s->seed = (uint64_t)seed;
		return err;
	case KEY_SPLIT:
		return by_split(s, arg, state);
	case KEY_MIN_COUNT:
		return whole("min-count", arg, 1, 1000000000, &s->min_count, state);
	case KEY_MIN_BASKET:
		return whole("min-basket", arg, 3, 1000000000, &s->min_basket, state);
	case KEY_QUERY:
		return query(learn, arg, state);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}
