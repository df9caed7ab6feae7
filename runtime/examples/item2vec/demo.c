// SPDX-License-Identifier: MIT
/*
 * The verb `embeng demo`: learns which packages go together from the machine's own package data, so
 * that it needs no data of the user's. The learning is shared with `embeng train` (learn.c).
 */
#include <errno.h>
#include <glob.h>
#include <string.h>

#include "../../cli/frame/command.h"
#include "debian.h"
#include "learn.h"

enum { KEY_SOURCE = KEY_FREE };

#define APT_LISTS "/var/lib/apt/lists/*_Packages"
#define DPKG_STATUS "/var/lib/dpkg/status"

struct arguments {
	struct learn learn;
	const char *source;
};

/* The data that was read, and where it came from. */
struct found {
	struct collector data;
	const char *from, *note;
};

static const struct argp_option options[] = {
	{"device", 'd', "DEVICE", 0,
	 "The device, by a name that embeng list shows; default as for info", 1},
	{"query", KEY_QUERY, "PACKAGE", 0,
	 "Show the packages that go best with PACKAGE; may be repeated", 1},
	{"source", KEY_SOURCE, "FILE", 0, "Read FILE: a Packages file, dumpavail or dpkg's status",
	 1},
	{"save", KEY_SAVE, "DIR", 0, "Keep the checkpoint in DIR, not in a temporary folder", 1},
	{"epochs", KEY_EPOCHS, "N", 0, "Passes over the data (6; more if there is little data)", 2},
	{"seed", KEY_SEED, "N", 0, "Seed of the tables, the split and all that is drawn (1)", 2},
	{0},
};

static error_t parse_demo_option(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case KEY_SOURCE:
		a->source = arg;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state,
			   "demo takes no argument, given '%s'; embeng train reads your own data",
			   arg);
		return EINVAL;
	default:
		return learn_option(&a->learn, key, arg, state);
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse_demo_option,
	.doc = "Watch embedding tables train on the package dependencies of this machine.\v"
	       "The packages that a source package's binaries depend on are a basket. One\n"
	       "package of each basket is held out, and then guessed from the others. The data\n"
	       "comes from apt's package lists, which apt-get update fetches, or else from the\n"
	       "list of installed packages.\n\n"
	       "The command shows the loss of each epoch; hit@10, the share of baskets whose\n"
	       "held-out package ranks among the first 10 of 100, beside the hit@10 of ranking\n"
	       "by popularity; the rows that are used most; the time of each stage; and what\n"
	       "goes with some packages. For the last part the tables are saved as a checkpoint,\n"
	       "the engine is closed, and the answers are looked up in the checkpoint.\n\n"
	       "  embeng demo --query libgtk-3-0\n"
	       "  embeng demo --save demo.ckpt; embeng checkpoint ls demo.ckpt\n\n"
	       "Exit status: 0 learned, 1 no better than popularity, 2 usage, 11 malformed data.",
};

static int read_stream(const struct output *out, FILE *stream, const char *name,
		       struct collector *c)
{
	struct source s = {.stream = stream, .name = name};
	int rc = debian_read(&s, c);

	source_free(&s);
	return rc ? learn_read_failed(out, &s, rc) : CLI_OK;
}

static int read_control_file(const struct output *out, const char *path, struct collector *c)
{
	FILE *stream = fopen(path, "re");
	int err = errno, code;

	if (!stream)
		return output_fail(out, exit_of_errno(err), err, NULL, "%s: %s", path,
				   strerror(err));
	code = read_stream(out, stream, path, c);
	fclose(stream);
	return code;
}

static int read_apt_cache(const struct output *out, struct found *f)
{
	FILE *stream = popen("apt-cache dumpavail 2>/dev/null", "re");
	int code;

	if (!stream)
		return CLI_OK;
	code = read_stream(out, stream, "apt-cache dumpavail", &f->data);
	/* If it failed, its output is not complete. */
	if (pclose(stream))
		collector_free(&f->data);
	f->from = "apt's package lists (apt-cache dumpavail)";
	return code;
}

static int read_lists(const struct output *out, const glob_t *lists, struct found *f)
{
	int code = CLI_OK;

	for (size_t k = 0; k < lists->gl_pathc && !code; k++)
		code = read_control_file(out, lists->gl_pathv[k], &f->data);
	f->from = "apt's package lists (" APT_LISTS ")";
	return code;
}

/* apt may keep its lists compressed; then it alone reads them. */
static int read_apt(const struct output *out, struct found *f)
{
	glob_t lists;
	int code = CLI_OK;

	if (!glob(APT_LISTS "*", 0, NULL, &lists))
		code = read_apt_cache(out, f);
	globfree(&lists);
	if (code || f->data.use_count)
		return code;
	if (!glob(APT_LISTS, 0, NULL, &lists))
		code = read_lists(out, &lists, f);
	globfree(&lists);
	return code;
}

static int read_status(const struct output *out, const char *path, struct found *f)
{
	f->from = path;
	f->note = "that is dpkg's status, the installed packages alone: little data. "
		  "apt-get update fetches apt's lists";
	return read_control_file(out, path, &f->data);
}

static int read_machine(const struct output *out, struct found *f)
{
	int code = read_apt(out, f);

	if (code || f->data.use_count)
		return code;
	return read_status(out, DPKG_STATUS, f);
}

static int read_demo_data(const struct output *out, const struct arguments *a, struct found *f)
{
	const char *slash = a->source ? strrchr(a->source, '/') : NULL;

	if (!a->source)
		return read_machine(out, f);
	if (!strcmp(slash ? slash + 1 : a->source, "status"))
		return read_status(out, a->source, f);
	f->from = a->source;
	return read_control_file(out, a->source, &f->data);
}

int cmd_demo(int argc, char **argv)
{
	static const char *const usual[] = {"libgtk-3-0", "python3-numpy", "ruby",
					    "libssl3",	  "zlib1g",	   NULL};
	struct output out = {.verb = "demo"};
	struct arguments a = {
		.learn = {.settings = settings_default, .usual = usual, .serve = true},
	};
	struct found f = {0};
	uint64_t started = clock_ns();
	int code = command_parse(&argp, argc, argv, &out, &a);

	if (code)
		return code;
	code = read_demo_data(&out, &a, &f);
	if (!code)
		code = learn_run(&out, &a.learn, &f.data, f.from, f.note, started);
	collector_free(&f.data);
	return code;
}
