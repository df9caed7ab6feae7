// SPDX-License-Identifier: MIT
/*
 * The verb `embeng report`: puts what a helper needs to know of a machine's embedding engines into one
 * archive, and nothing of the people who use it.
 *
 * All is gathered in memory first, so that the archive is written whole or not at all.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "../frame/command.h"
#include "../frame/outfile.h"
#include "gather.h"

#define DEFAULT_PATH "embeng-report.tar"

static const char doc[] =
	"Put what somebody who helps needs to know into one archive.\v"
	"The archive has a README that says what each file is, and only text and JSON: versions,\n"
	"what embeng doctor finds, registers, the event log, counters, the driver's trace and\n"
	"messages, dumps of hangs with what embeng decode says of them, and the configuration.\n\n"
	"It has nothing personal: no name of the machine or of its users, no serial numbers or\n"
	"hardware addresses of networks, nothing of other programs, no addresses of memory. The\n"
	"README lists all that is left out. Look through the files before you send them.\n\n"
	"  sudo embeng report -o report.tar     as an administrator, who may read all of it\n"
	"  tar -xf report.tar -O embeng-report/README\n"
	"  embeng report --root recorded/       of a recorded tree, see embeng doctor\n\n"
	"Exit status: 0 all could be read, 1 something could not, which the README names; the\n"
	"archive is written all the same. 2 usage, 4 permission, 5 no space.";

enum { KEY_ROOT = 0x100 };

static const struct argp_option options[] = {
	{"output", 'o', "FILE", 0, "The archive to write, - for standard output [" DEFAULT_PATH "]",
	 0},
	{"root", KEY_ROOT, "DIR", 0, "Report on the recorded tree in DIR in place of this machine",
	 0},
	{0},
};

struct call {
	const char *path, *root;
};

static error_t parse_report_option(int key, char *arg, struct argp_state *state)
{
	struct call *call = state->input;

	switch (key) {
	case 'o':
		call->path = arg;
		return 0;
	case KEY_ROOT:
		call->root = arg;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "report takes no argument, given '%s'; name the archive with -o",
			   arg);
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* A tar file by such a name would be taken for a compressed one, which no program could read. */
static const char *find_compression(const char *path)
{
	static const char *const ends[] = {".gz", ".tgz", ".xz", ".txz", ".bz2", ".zst", ".zip"};
	size_t length = strlen(path);

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		size_t end = strlen(ends[i]);

		if (length >= end && !strcmp(path + length - end, ends[i]))
			return ends[i];
	}
	return NULL;
}

/* Return: an exit status, which was told. */
static int check_archive_path(const struct output *out, const char *path)
{
	const char *compression = find_compression(path);

	if (out->json && !strcmp(path, "-"))
		return output_fail(
			out, CLI_USAGE, EINVAL, "name another file with -o",
			"the archive and the document cannot both go to standard output");
	if (compression)
		return output_fail(out, CLI_USAGE, EINVAL,
				   "name it .tar, and compress it afterwards",
				   "%s: the archive is a tar file, which is not compressed; its "
				   "name cannot end in %s",
				   path, compression);
	return CLI_OK;
}

static int gather_all(struct gather *g)
{
	int err = clean_learn(&g->bundle->clean, g->tree);

	if (err)
		return err;
	err = functions_find(g->tree, &g->functions);
	if (err)
		return err;
	gather_versions(g);
	gather_verbs(g);
	gather_devices(g);
	gather_dumps(g);
	gather_trace(g);
	gather_log(g);
	gather_configuration(g);
	functions_free(&g->functions);
	return 0;
}

static int write_archive(const struct bundle *bundle, const char *path)
{
	struct outfile f;
	int err = outfile_open(&f, path);

	return err ? err : outfile_end(&f, bundle_write(bundle, f.stream));
}

static int tell_written(const struct output *out, const struct bundle *bundle, const char *path)
{
	size_t failures = bundle_failures(bundle), files = 0;
	int code = failures ? CLI_CHECK : CLI_OK;
	struct json_object *document;

	if (out->json) {
		document = json_document(out);
		json_add_text(document, "archive", path);
		bundle_document(bundle, document);
		json_emit(document);
		return code;
	}
	for (size_t i = 0; i < bundle->count; i++)
		files += bundle->files[i].text != NULL;
	fprintf(stderr, "%s: %zu files and a README\n", path, files);
	for (size_t i = 0; i < bundle->count; i++) {
		if (bundle->files[i].failed)
			fprintf(stderr, "  %s could not be read: %s\n", bundle->files[i].name,
				bundle->files[i].reason);
	}
	return code;
}

int cmd_report(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options, .parser = parse_report_option, .doc = doc};
	struct output out = {.verb = "report"};
	struct call call = {.path = DEFAULT_PATH};
	struct bundle bundle = {0};
	struct gather g = {.bundle = &bundle};
	int code = command_parse(&argp, argc, argv, &out, &call), err;

	if (!code)
		code = check_archive_path(&out, call.path);
	if (code)
		return code;
	err = tree_open(call.root, &g.tree);
	if (err)
		return output_fail(&out, exit_of_errno(err), err, NULL, "%s: %s",
				   call.root ? call.root : "/", strerror(-err));
	g.root = call.root;
	err = gather_all(&g);
	tree_close(g.tree);
	if (err) {
		code = output_fail(&out, exit_of_errno(err), err, NULL, "the machine's files: %s",
				   strerror(-err));
	} else {
		err = write_archive(&bundle, call.path);
		code = err ? output_fail(&out, exit_of_errno(err), err, NULL, "%s: %s", call.path,
					 strerror(-err))
			   : tell_written(&out, &bundle, call.path);
	}
	bundle_free(&bundle);
	return code;
}
