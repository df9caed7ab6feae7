// SPDX-License-Identifier: MIT
/*
 * The verb `embeng train`: item embeddings from the user's own data. Options and data are read
 * here; the learning is in learn.c.
 */
#include <errno.h>
#include <string.h>

#include "../../cli/frame/command.h"
#include "basket.h"
#include "learn_steps.h"
#include "ratings.h"
#include "sniff.h"

enum { KEY_FORMAT = KEY_FREE, KEY_SEPARATOR, KEY_COLUMNS };

struct arguments {
	struct learn learn;
	const char *path;
	struct format format;
};

static const struct argp_option options[] = {
	{"device", 'd', "DEVICE", 0,
	 "The device, by a name that embeng list shows; default as for info", 1},
	{"format", KEY_FORMAT, "baskets|ratings|csv", 0,
	 "Format of the input, where csv is ratings with commas; by default the first lines decide",
	 1},
	{"separator", KEY_SEPARATOR, "TEXT", 0,
	 "Text between columns or items: tab, comma, semicolon, blank, '::' or others", 1},
	{"columns", KEY_COLUMNS, "LIST", 0,
	 "Columns of ratings in their order (user,-,item), or by their names in the header "
	 "(user=who,item=book)",
	 1},
	{"query", KEY_QUERY, "ITEM", 0, "Show the items that go best with ITEM; may be repeated",
	 1},
	{"split", KEY_SPLIT, "seed|time", 0,
	 "Item of each basket to hold out: seed (drawn, the default) or time (the newest)", 2},
	{"min-count", KEY_MIN_COUNT, "N", 0, "Leave out items that are in fewer than N baskets (5)",
	 2},
	{"min-basket", KEY_MIN_BASKET, "N", 0, "Then leave out baskets of fewer than N items (3)",
	 2},
	{"dim", KEY_DIM, "N", 0, "Columns of the tables (32)", 3},
	{"epochs", KEY_EPOCHS, "N", 0, "Passes over the data (6; more if there is little data)", 3},
	{"negatives", KEY_NEGATIVES, "N", 0, "Random items that each item is trained against (5)",
	 3},
	{"learning-rate", KEY_RATE, "X", 0,
	 "Learning rate (0.2; 0.01 or 0.1 for some optimizers, see embeng(1))", 3},
	{"optimizer", KEY_OPTIMIZER, "NAME", 0,
	 "adagrad (default) or another of embeng-optimizers(7)", 3},
	{"batch", KEY_BATCH, "N", 0, "Examples in a step (512)", 3},
	{"seed", KEY_SEED, "N", 0, "Seed of the tables, the split and all that is drawn (1)", 3},
	{"save", KEY_SAVE, "DIR", 0,
	 "Save checkpoints in DIR: after each epoch, at the end, and when interrupted", 4},
	{"save-every", KEY_SAVE_EVERY, "N", 0,
	 "Save after every N steps instead of after each epoch", 4},
	{"keep", KEY_KEEP, "N", 0, "Checkpoints that stay in DIR, the newest included (2)", 4},
	{"delta", KEY_DELTA, NULL, 0,
	 "Save only the rows that differ from the checkpoint in DIR, where that is smaller", 4},
	{"resume", KEY_RESUME, "DIR", 0,
	 "Continue the training saved in DIR, with its options, and save there", 4},
	{"max-steps", KEY_MAX_STEPS, "N", 0, "Stop after N steps of this run", 4},
	{0},
};

static error_t parse_data_format(int (*read)(struct format *, const char *, char *),
				 struct arguments *a, const char *arg, struct argp_state *state)
{
	char error[FORMAT_ERROR];

	if (!read(&a->format, arg, error))
		return 0;
	argp_error(state, "%s", error);
	return EINVAL;
}

/* The parts of the format together, then what all verbs that learn have. */
static error_t finish_train_options(struct arguments *a, struct argp_state *state)
{
	char error[FORMAT_ERROR];

	if (format_check(&a->format, error)) {
		argp_error(state, "%s", error);
		return EINVAL;
	}
	return learn_option(&a->learn, ARGP_KEY_END, NULL, state);
}

static error_t parse_train_option(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case KEY_FORMAT:
		return parse_data_format(format_read_kind, a, arg, state);
	case KEY_SEPARATOR:
		return parse_data_format(format_read_separator, a, arg, state);
	case KEY_COLUMNS:
		return parse_data_format(format_read_columns, a, arg, state);
	case ARGP_KEY_END:
		return finish_train_options(a, state);
	case ARGP_KEY_ARG:
		if (a->path) {
			argp_error(state, "train reads one FILE; '%s' is a second", arg);
			return EINVAL;
		}
		a->path = arg;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "FILE is missing; give a CSV file of user,item, or a file with a "
				  "basket a line");
		return EINVAL;
	default:
		return learn_option(&a->learn, key, arg, state);
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse_train_option,
	.args_doc = "FILE",
	.doc = "Learn embeddings of items from the items that occur together.\v"
	       "FILE (- is stdin) has one user,item[,rating,timestamp] a line, like the ratings\n"
	       "of MovieLens, or one basket a line, with its items separated by blanks. Columns\n"
	       "may be separated by commas, tabs, semicolons or ::, and a header may name them;\n"
	       "other columns are ignored. All items of a user are a basket. The command says on\n"
	       "stderr how it reads the file, and refuses one whose format is not clear.\n\n"
	       "The command shows the loss of each epoch, and then hit@10. For this figure one\n"
	       "item of each basket is held out of the training and ranked against 99 others,\n"
	       "which are drawn by popularity. hit@10 is the share of baskets whose held-out\n"
	       "item ranks among the first 10 of these 100. The hit@10 of ranking by popularity\n"
	       "alone is shown beside it.\n\n"
	       "  embeng train ratings.csv --split time\n"
	       "  embeng train orders.txt --query bread --query milk\n"
	       "  embeng train sales.csv --separator '|' --columns user=client,item=product\n\n"
	       "With --save a training can be stopped and resumed. The result is the same, bit\n"
	       "for bit, as that of a training that was never stopped, on any number of cores.\n"
	       "Ctrl-C finishes the step, saves, and stops. --epochs may be raised to train\n"
	       "longer; other options must stay the same. A training may also go on with other\n"
	       "data: items keep what they learned, new ones get rows behind the others.\n\n"
	       "  embeng train orders.txt --save orders.ckpt --save-every 1000\n"
	       "  embeng train orders.txt --resume orders.ckpt --query bread\n"
	       "  embeng checkpoint ls orders.ckpt\n\n"
	       "Exit status: 0 learned, or stopped by --max-steps; 1 no better than popularity,\n"
	       "2 usage, 5 disk full, 11 a malformed line, a file whose format is not clear, or\n"
	       "a corrupt checkpoint; the message names it.",
};

/* People are told how a file is read that does not say it itself. */
static int read_training_data(struct source *s, struct collector *c)
{
	char words[SNIFF_TEXT];
	int rc = sniff(s, words);

	if (rc)
		return rc;
	if (*words)
		fprintf(stderr, "embeng train: %s is read as %s\n", s->name, words);
	return s->format.kind == FORMAT_RATINGS ? ratings_read(s, c) : basket_read(s, c);
}

static int read_training_file(const struct output *out, const struct arguments *a,
			      struct collector *c)
{
	bool is_stdin = !strcmp(a->path, "-");
	struct source s = {
		.stream = is_stdin ? stdin : fopen(a->path, "re"),
		.name = is_stdin ? "stdin" : a->path,
		.format = a->format,
	};
	int rc, err = errno;

	if (!s.stream)
		return output_fail(out, exit_of_errno(err), err, NULL, "%s: %s", a->path,
				   strerror(err));
	rc = read_training_data(&s, c);
	if (!is_stdin)
		fclose(s.stream);
	source_free(&s);
	return rc ? learn_read_failed(out, &s, rc) : CLI_OK;
}

int cmd_train(int argc, char **argv)
{
	struct output out = {.verb = "train"};
	struct arguments a = {.learn.settings = settings_default};
	struct collector c = {0};
	uint64_t started = clock_ns();
	int code = command_parse(&argp, argc, argv, &out, &a);

	if (code)
		return code;
	settings_complete(&a.learn.settings);
	if (a.learn.resume)
		code = resume_read(&out, &a.learn);
	if (!code)
		code = read_training_file(&out, &a, &c);
	if (!code)
		code = learn_run(&out, &a.learn, &c, a.path, NULL, started);
	collector_free(&c);
	row_names_free(&a.learn.known);
	return code;
}
