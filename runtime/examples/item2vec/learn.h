/* SPDX-License-Identifier: MIT */
/* The code from baskets to a report, which `embeng train` and `embeng demo` share. */
#ifndef ITEM2VEC_LEARN_H
#define ITEM2VEC_LEARN_H

#include <argp.h>

#include "../../cli/frame/output.h"
#include "report.h"
#include "source.h"
#include "training.h"

#define QUERIES_MAX 16

/**
 * struct learn - arguments of a verb
 * @queries: [query_count] names of items whose neighbours are shown
 * @usual: NULL-terminated list of names, of which those in the data are used if there are no
 *	queries; or NULL
 * @save: folder for checkpoints, or NULL
 * @keep: checkpoints that stay in the folder, 0: as many as the library keeps
 * @delta: save only the rows that changed
 * @save_every: steps between checkpoints, 0: one after every epoch
 * @resume: folder of the checkpoint to go on from, or NULL
 * @from: contents of that checkpoint's program state
 * @known: names of its rows, which the caller frees; none if it does not name them
 * @max_steps: most steps of this run, 0: no limit
 * @serve: save once, at the end, and answer from the checkpoint without the engine
 */
struct learn {
	struct settings settings;
	const char *queries[QUERIES_MAX];
	size_t query_count;
	const char *const *usual;
	const char *save, *resume;
	int64_t save_every, max_steps, keep;
	bool delta;
	struct training from;
	struct row_names known;
	bool serve;
};

/* Keys of options that have no letter. The settings come first, in the order of setting_at(). */
enum learn_key {
	KEY_DIM = 0x100,
	KEY_EPOCHS,
	KEY_NEGATIVES,
	KEY_RATE,
	KEY_OPTIMIZER,
	KEY_BATCH,
	KEY_SEED,
	KEY_SPLIT,
	KEY_MIN_COUNT,
	KEY_MIN_BASKET,
	KEY_QUERY,
	KEY_SAVE,
	KEY_SAVE_EVERY,
	KEY_KEEP,
	KEY_DELTA,
	KEY_RESUME,
	KEY_MAX_STEPS,
	KEY_FREE, /* keys of a verb's own options begin here */
};

/* Parses any of these keys, 'd' and ARGP_KEY_END. Return: ARGP_ERR_UNKNOWN for others. */
error_t learn_option(struct learn *learn, int key, char *arg, struct argp_state *state);

/* Reports the failure @rc of a reader. Return: the exit code. */
int learn_read_failed(const struct output *out, const struct source *s, int rc);

/**
 * learn_run() - build, train, evaluate, report
 * @c: the data, which is used up
 * @from: origin of the data, for people
 * @note: a remark on the data, or NULL
 * @started_ns: clock_ns() before the data was read
 *
 * Return: the exit code, after a failure was reported.
 */
int learn_run(const struct output *out, const struct learn *learn, struct collector *c,
	      const char *from, const char *note, uint64_t started_ns);

#endif
