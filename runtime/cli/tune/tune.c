// SPDX-License-Identifier: MIT
/*
 * The verb `embeng tune`: measures how rows are best fetched ahead on this machine, shows what it
 * found, and writes it to a file that embeng_open() reads. The measuring is in measure.c, and the
 * text of the file in runtime/src/host/, which the library compiles too.
 *
 * The file appears whole or not at all. Nothing outlives the call.
 */
#define _GNU_SOURCE /* secure_getenv */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../../../engine/kernels/kernels.h"
#include "../../../engine/kernels/variants.h"
#include "../frame/command.h"
#include "../frame/machine.h"
#include "../frame/outfile.h"
#include "../frame/progress.h"
#include "measure.h"

static const char doc[] =
	"Measure how table rows are best fetched ahead on this machine, and write what was found\n"
	"to a file that every program reads when it opens a soft device. It changes the speed of\n"
	"lookups and training and never a result.\v"
	"Examples:\n"
	"  embeng tune                                  for the programs of this user\n"
	"  embeng tune --output /etc/embeng/tune.json   for all users of the machine\n"
	"  embeng tune --dry-run                        only show what is best\n\n"
	"Run it while the machine has nothing else to do; it takes a few seconds. `embeng info`\n"
	"shows what a device uses and why a file is ignored, if one is.";

enum { OPTION_VARIANT = 256 };

static const struct argp_option options[] = {
	{"output", 'o', "FILE", 0,
	 "Write FILE (the file that EMBENG_TUNE names, else embeng/tune.json in "
	 "$XDG_CONFIG_HOME or ~/.config); - is standard output",
	 0},
	{"dry-run", 'n', NULL, 0, "Write no file", 0},
	{"variant", OPTION_VARIANT, "NAME", 0,
	 "Measure this kernel variant (the one that EMBENG_KERNEL names, else the best one)", 0},
	{0},
};

struct tune_call {
	const char *output, *variant;
	bool dry_run;
};

/* The rest of a call: what was measured, and where it went. */
struct tune_done {
	struct tune tune;
	struct tune_found found[TUNE_KINDS];
	double busy;
	char path[TUNE_PATH]; /* "": nothing was written */
	bool is_read;	      /* programs read a file of that path without being told */
};

static error_t parse_tune_option(int key, char *arg, struct argp_state *state)
{
	struct tune_call *call = state->input;

	switch (key) {
	case 'o':
		call->output = arg;
		return 0;
	case 'n':
		call->dry_run = true;
		return 0;
	case OPTION_VARIANT:
		call->variant = arg;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "tune takes no argument, given '%s'; name a file with --output",
			   arg);
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const char *const kind_words[] = {
	[TUNE_NEAR_LOOKUP] = "lookups, small models",
	[TUNE_NEAR_UPDATE] = "updates, small models",
	[TUNE_FAR_LOOKUP] = "lookups, large models",
	[TUNE_FAR_UPDATE] = "updates, large models",
};
static const char *const kind_keys[] = {
	[TUNE_NEAR_LOOKUP] = "near_lookup",
	[TUNE_NEAR_UPDATE] = "near_update",
	[TUNE_FAR_LOOKUP] = "far_lookup",
	[TUNE_FAR_UPDATE] = "far_update",
};

static void show_progress(void *arg, enum tune_kind kind, int done, int all)
{
	progress_line(arg, "measuring %s: %d %%", kind_words[kind], 100 * done / all);
}

static int choose_kernels(const struct tune_call *call, const struct output *out,
			  const struct kernel_ops **kernels)
{
	const char *environment = secure_getenv("EMBENG_KERNEL");
	const char *name = call->variant;

	if (!name && environment && *environment)
		name = environment;
	*kernels = kernel_select(name);
	if (*kernels)
		return 0;
	if (kernel_variant_exists(name))
		return output_fail(out, CLI_UNSUPPORTED, ENOTSUP, NULL,
				   "this processor lacks what the kernel variant \"%s\" needs",
				   name);
	return output_fail(out, CLI_USAGE, EINVAL, "\"portable\" always works",
			   "\"%s\" is not a kernel variant", name);
}

/* Where the file goes: 0 with "" for nowhere and "-" for standard output, or an exit code. */
static int choose_tune_path(const struct tune_call *call, const struct output *out,
			    struct tune_done *done)
{
	const char *given = call->output ? call->output : tune_named_path();
	char user[TUNE_PATH];
	const bool has_user = tune_user_path(user);

	if (call->dry_run)
		return 0;
	if (!given && !has_user)
		return output_fail(out, CLI_USAGE, ENOENT, "Name a file with --output",
				   "neither XDG_CONFIG_HOME nor HOME has an absolute path");
	if (!given)
		given = user;
	if (strlen(given) >= sizeof(done->path))
		return output_fail(out, CLI_USAGE, ENAMETOOLONG, NULL,
				   "--output: the path is too long");
	if (out->json && !strcmp(given, "-"))
		return output_fail(out, CLI_USAGE, EINVAL, "Give --output another file, or none",
				   "--json and --output - both write to standard output");
	strcpy(done->path, given);
	if (tune_named_path())
		done->is_read = !strcmp(given, tune_named_path());
	else
		done->is_read = !strcmp(given, TUNE_SYSTEM_PATH) ||
				(has_user && !strcmp(given, user));
	return 0;
}

/* Makes the folders of the user's own file, for him alone, as the XDG specification says. */
static void make_user_folders(const char *path)
{
	char folder[TUNE_PATH];

	if (!tune_user_path(folder) || strcmp(folder, path))
		return;
	/* The file cannot be opened where a folder could not be made, and its error is reported. */
	for (char *slash = folder + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(folder, 0700);
		*slash = '/';
	}
}

static int write_tune_text(const struct tune_done *done, const char *text, size_t length)
{
	struct outfile file;
	int ret;

	make_user_folders(done->path);
	ret = outfile_open(&file, done->path);
	if (ret)
		return ret;
	/* A failed write is told by outfile_commit(). */
	fwrite(text, 1, length, file.stream);
	return outfile_commit(&file);
}

static int save_tune(const struct tune_done *done, const struct output *out)
{
	size_t length;
	char *text;
	int ret;

	if (!*done->path)
		return 0;
	ret = tune_write(&done->tune, &text, &length);
	if (ret)
		return output_fail(out, CLI_DEVICE, ret, NULL, "the file cannot be made: %s",
				   strerror(-ret));
	ret = write_tune_text(done, text, length);
	free(text);
	if (ret)
		return output_fail(out, exit_of_errno(ret), ret, "Name another file with --output",
				   "%s: cannot be written: %s", done->path, strerror(-ret));
	return 0;
}

static int measure_machine(const struct tune_call *call, const struct output *out,
			   struct tune_done *done)
{
	struct progress progress = progress_start(!out->json);
	const struct kernel_ops *kernels;
	struct fetch_machine machine;
	struct fetch_plan plan;
	int cpus[MACHINE_CPUS], count, ret = choose_kernels(call, out, &kernels);

	if (ret)
		return ret;
	processor_machine(&machine);
	fetch_plan_fill(&plan, &machine);
	count = machine_cpus(cpus);
	done->busy = machine_busy(200);
	if (count)
		machine_pin(cpus, 1);
	ret = tune_measure(kernels, &plan, done->found, show_progress, &progress);
	if (count)
		machine_pin(cpus, count);
	progress_clear(&progress);
	if (ret)
		return output_fail(out, CLI_DEVICE, ret, NULL,
				   "there is no memory for measuring, which takes %llu MiB",
				   TUNE_MEMORY_BYTES >> 20);
	processor_name(done->tune.processor);
	snprintf(done->tune.variant, sizeof(done->tune.variant), "%s", kernels->name);
	return 0;
}

static struct fetch_way best_way(const struct tune_found *found)
{
	return found->trials[found->best].way;
}

static void take_best_ways(struct tune_done *done)
{
	done->tune.near.lookup = best_way(&done->found[TUNE_NEAR_LOOKUP]);
	done->tune.near.update = best_way(&done->found[TUNE_NEAR_UPDATE]);
	done->tune.far.lookup = best_way(&done->found[TUNE_FAR_LOOKUP]);
	done->tune.far.update = best_way(&done->found[TUNE_FAR_UPDATE]);
}

#define BUSY_SHARE 0.1

static void print_found(FILE *to, const char *kind, const struct tune_found *found)
{
	for (int i = 0; i < found->count; i++) {
		const struct tune_trial *trial = &found->trials[i];
		char word[FETCH_WORD];

		fetch_way_text(trial->way, word);
		fprintf(to, "%-23s %-10s %9.2f  %5.2f%s%s\n", i ? "" : kind, word, trial->ns,
			trial->ns / found->trials[0].ns, i ? "" : "  default",
			i == found->best ? "  best" : "");
	}
}

static void print_done(const struct tune_done *done)
{
	/* The file itself may go to standard output. */
	FILE *to = !strcmp(done->path, "-") ? stderr : stdout;

	fprintf(to, "%s\nkernel variant %s\n", done->tune.processor, done->tune.variant);
	if (done->busy > BUSY_SHARE)
		fprintf(to,
			"warning: the processors were %.0f %% busy with other work; measure "
			"again when they are idle\n",
			100 * done->busy);
	fprintf(to, "\n%-23s %-10s %9s  %5s\n", "", "way", "ns a row", "ratio");
	for (int kind = 0; kind < TUNE_KINDS; kind++)
		print_found(to, kind_words[kind], &done->found[kind]);
	if (!*done->path || to == stderr)
		return;
	fprintf(to, "\nwritten to %s\n", done->path);
	if (!done->is_read)
		fprintf(to, "Programs read it if EMBENG_TUNE names it.\n");
	if (secure_getenv("EMBENG_PREFETCH"))
		fprintf(to, "EMBENG_PREFETCH is set, and is used instead of the file.\n");
}

static struct json_object *found_document(const struct tune_found *found)
{
	struct json_object *list = json_object_new_array();

	for (int i = 0; i < found->count; i++) {
		struct json_object *trial = json_object_new_object();
		char word[FETCH_WORD];

		fetch_way_text(found->trials[i].way, word);
		json_add_text(trial, "way", word);
		json_object_object_add(trial, "ns_per_row", json_float(found->trials[i].ns));
		json_object_object_add(trial, "default", json_object_new_boolean(!i));
		json_object_object_add(trial, "best", json_object_new_boolean(i == found->best));
		json_object_array_add(list, trial);
	}
	return list;
}

static int emit_done(const struct tune_done *done, const struct output *out)
{
	struct json_object *document = json_document(out), *measured = json_object_new_object();

	json_add_text(document, "processor", done->tune.processor);
	json_add_text(document, "variant", done->tune.variant);
	json_object_object_add(document, "busy", json_float(done->busy));
	for (int kind = 0; kind < TUNE_KINDS; kind++)
		json_object_object_add(measured, kind_keys[kind],
				       found_document(&done->found[kind]));
	json_object_object_add(document, "measured", measured);
	json_add_text(document, "file", *done->path ? done->path : NULL);
	return json_emit(document);
}

int cmd_tune(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options, .parser = parse_tune_option, .doc = doc};
	struct output out = {.verb = "tune"};
	struct tune_call call = {0};
	struct tune_done done = {0};
	int code = command_parse(&argp, argc, argv, &out, &call);

	code = code ? code : choose_tune_path(&call, &out, &done);
	code = code ? code : measure_machine(&call, &out, &done);
	if (code)
		return code;
	take_best_ways(&done);
	code = save_tune(&done, &out);
	if (code)
		return code;
	if (out.json)
		return emit_done(&done, &out);
	print_done(&done);
	return CLI_OK;
}
