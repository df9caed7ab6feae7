// SPDX-License-Identifier: MIT
/*
 * The options of learning, which `embeng train` and `embeng demo` share. They are read into a
 * struct learn, which also says where to save and which queries to answer.
 */
#include <errno.h>

#include "learn.h"

static error_t add_query(struct learn *learn, const char *arg, struct argp_state *state)
{
	if (learn->query_count == QUERIES_MAX) {
		argp_error(state, "--query is given more than %d times", QUERIES_MAX);
		return EINVAL;
	}
	learn->queries[learn->query_count++] = arg;
	return 0;
}

static error_t refuse_option(struct argp_state *state, const char *error)
{
	argp_error(state, "%s", error);
	return EINVAL;
}

static error_t read_step_count(const char *name, const char *arg, int64_t *value,
			       struct argp_state *state)
{
	char error[SETTING_ERROR];

	return whole_read(name, arg, 1, INT64_MAX, value, error) ? refuse_option(state, error) : 0;
}

static error_t read_keep(struct learn *learn, const char *arg, struct argp_state *state)
{
	char error[SETTING_ERROR];

	return whole_read("keep", arg, 1, 1000, &learn->keep, error) ? refuse_option(state, error)
								     : 0;
}

/* A training that is resumed is saved where it was, unless another folder is named. */
static error_t finish_options(struct learn *learn, struct argp_state *state)
{
	if (!learn->save)
		learn->save = learn->resume;
	if (learn->save_every && !learn->save)
		return refuse_option(state, "--save-every needs a folder: --save DIR");
	if (learn->keep && !learn->save)
		return refuse_option(state, "--keep needs a folder: --save DIR");
	if (learn->delta && !learn->save)
		return refuse_option(state, "--delta needs a folder: --save DIR");
	return 0;
}

static error_t take_setting(struct learn *learn, const char *name, const char *arg,
			    struct argp_state *state)
{
	char error[SETTING_ERROR];

	return setting_read(&learn->settings, name, arg, error) ? refuse_option(state, error) : 0;
}

error_t learn_option(struct learn *learn, int key, char *arg, struct argp_state *state)
{
	if (key >= KEY_DIM && key <= KEY_MIN_BASKET)
		return take_setting(learn, setting_at((size_t)(key - KEY_DIM)), arg, state);
	switch (key) {
	case 'd':
		learn->settings.device = arg;
		return 0;
	case KEY_QUERY:
		return add_query(learn, arg, state);
	case KEY_SAVE:
		learn->save = arg;
		return 0;
	case KEY_SAVE_EVERY:
		return read_step_count("save-every", arg, &learn->save_every, state);
	case KEY_KEEP:
		return read_keep(learn, arg, state);
	case KEY_DELTA:
		learn->delta = true;
		return 0;
	case KEY_RESUME:
		learn->resume = arg;
		return 0;
	case KEY_MAX_STEPS:
		return read_step_count("max-steps", arg, &learn->max_steps, state);
	case ARGP_KEY_END:
		return finish_options(learn, state);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}
