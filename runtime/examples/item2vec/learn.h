/* SPDX-License-Identifier: MIT */
/* From baskets to a report: what `embeng train` and `embeng demo` have in common. */
#ifndef ITEM2VEC_LEARN_H
#define ITEM2VEC_LEARN_H

#include <argp.h>

#include "../../cli/frame/output.h"
#include "report.h"
#include "source.h"
#include "training.h"

#define QUERIES_MAX 16

/**
 * struct learn - a verb's arguments
 * @queries: [query_count] items to answer for, by name
 * @usual: when there are none: those of these that there are; NULL-terminated or NULL
 * @save: folder for checkpoints, or NULL
 * @save_every: steps between them, 0: after every epoch
 * @resume: folder of the checkpoint to go on from, or NULL
 * @from: what that says
 * @max_steps: of this run, 0: any
 * @serve: save once, at the end, and answer from there, without the engine
 */
struct learn {
	struct settings settings;
	const char *queries[QUERIES_MAX];
	size_t query_count;
	const char *const *usual;
	const char *save, *resume;
	int64_t save_every, max_steps;
	struct training from;
	bool serve;
};

/* Keys of options that have no letter; the settings first, in the order of setting_at(). */
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
	KEY_RESUME,
	KEY_MAX_STEPS,
	KEY_FREE, /* a verb's own from here */
};

/* Takes any of these keys, 'd' and ARGP_KEY_END; ARGP_ERR_UNKNOWN for others. */
error_t learn_option(struct learn *learn, int key, char *arg, struct argp_state *state);

/* The exit code of a reader's failure, reported; @rc as it returned. */
int learn_read_failed(const struct output *out, const struct source *s, int rc);

/**
 * learn_run() - build, train, evaluate, report
 * @c: the data, which is used up
 * @from: where it is from
 * @note: NULL or what to know of it
 * @started_ns: clock_ns() before it was read
 *
 * Return: the exit code, its failure reported.
 */
int learn_run(const struct output *out, const struct learn *learn, struct collector *c,
	      const char *from, const char *note, uint64_t started_ns);

#endif
