// SPDX-License-Identifier: MIT
/*
 * The verb `embeng train`: item embeddings from the user's own data. Options and data are read
 * here; the learning is in learn.c.
 */
#include <errno.h>
#include <string.h>

#include "../../cli/frame/command.h"
#include "basket.h"
#include "csv.h"
#include "learn_steps.h"

enum { KEY_FORMAT = KEY_FREE };

enum format { FORMAT_DETECT, FORMAT_CSV, FORMAT_BASKETS };

struct arguments {
	struct learn learn;
	const char *path;
	enum format format;
};

static const struct argp_option options[] = {
	{"device", 'd', "DEVICE", 0,
	 "The device, by a name that embeng list shows; default as for info", 1},
	{"format", KEY_FORMAT, "FORMAT", 0, "csv or baskets; by default the first line decides", 1},
	{"query", KEY_QUERY, "ITEM", 0, "Show the items that go best with ITEM; may be repeated",
	 1},
	{"split", KEY_SPLIT, "BY", 0,
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
	{"resume", KEY_RESUME, "DIR", 0,
	 "Continue the training saved in DIR, with its options, and save there", 4},
	{"max-steps", KEY_MAX_STEPS, "N", 0, "Stop after N steps of this run", 4},
	{0},
};

static error_t parse_data_format(struct arguments *a, const char *arg, struct argp_state *state)
{
	if (!strcmp(arg, "csv"))
		a->format = FORMAT_CSV;
	else if (!strcmp(arg, "baskets"))
		a->format = FORMAT_BASKETS;
	else {
		argp_error(state, "--format takes csv or baskets, not '%s'", arg);
		return EINVAL;
	}
	return 0;
}

static error_t parse_train_option(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case KEY_FORMAT:
		return parse_data_format(a, arg, state);
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
	       "FILE (- is stdin) has one user,item[,rating,timestamp] a line, like ratings.csv\n"
	       "of MovieLens, or one basket a line, with its items separated by spaces. A CSV\n"
	       "file may begin with a header that names the columns; other columns are ignored.\n"
	       "All items of a user are a basket.\n\n"
	       "The command shows the loss of each epoch, and then hit@10. For this figure one\n"
	       "item of each basket is held out of the training and ranked against 99 others,\n"
	       "which are drawn by popularity. hit@10 is the share of baskets whose held-out\n"
	       "item ranks among the first 10 of these 100. The hit@10 of ranking by popularity\n"
	       "alone is shown beside it.\n\n"
	       "  embeng train ratings.csv --split time\n"
	       "  embeng train orders.txt --query bread --query milk\n\n"
	       "With --save a training can be stopped and resumed. The result is the same, bit\n"
	       "for bit, as that of a training that was never stopped, on any number of cores.\n"
	       "Ctrl-C finishes the step, saves, and stops. --epochs may be raised to train\n"
	       "longer; other options must stay the same.\n\n"
	       "  embeng train orders.txt --save orders.ckpt --save-every 1000\n"
	       "  embeng train orders.txt --resume orders.ckpt --query bread\n"
	       "  embeng checkpoint ls orders.ckpt\n\n"
	       "Exit status: 0 learned, or stopped by --max-steps; 1 no better than popularity,\n"
	       "2 usage, 5 disk full, 11 a malformed line or a corrupt checkpoint, which the\n"
	       "message names.",
};

/* Stays on the first line that has text. */
static int detect_format(struct source *s, enum format *format)
{
	int rc;

	do {
		rc = source_line(s);
		if (rc <= 0)
			return rc;
	} while (!s->length);
	s->again = true;
	*format = strchr(s->text, ',') ? FORMAT_CSV : FORMAT_BASKETS;
	return 0;
}

static int read_training_data(struct source *s, enum format format, struct collector *c)
{
	int rc = 0;

	if (format == FORMAT_DETECT)
		rc = detect_format(s, &format);
	if (rc)
		return rc;
	return format == FORMAT_CSV ? csv_read(s, c) : basket_read(s, c);
}

static int read_training_file(const struct output *out, const struct arguments *a,
			      struct collector *c)
{
	bool is_stdin = !strcmp(a->path, "-");
	struct source s = {
		.stream = is_stdin ? stdin : fopen(a->path, "r"),
		.name = is_stdin ? "stdin" : a->path,
	};
	int rc, err = errno;

	if (!s.stream)
		return output_fail(out, exit_of_errno(err), err, NULL, "%s: %s", a->path,
				   strerror(err));
	rc = read_training_data(&s, a->format, c);
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
	return code;
}
