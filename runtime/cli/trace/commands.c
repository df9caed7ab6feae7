// SPDX-License-Identifier: MIT
/*
 * The verb `embeng trace`: records the driver's trace events and shows the steps in them. The events
 * go into an instance of tracefs of their own, so that nobody else's trace is disturbed. The
 * instance keeps them until the next start. run.c has the library's own record of a program.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "embeng.h"

#include "../device/device.h"
#include "../frame/command.h"
#include "../frame/group.h"
#include "show.h"

#define TRACING "/sys/kernel/tracing"
#define INSTANCE TRACING "/instances/embeng"
#define PATH_BYTES 512

enum { KEY_ROOT = 0x100 };

#define ROOT_OPTION \
	{"root", KEY_ROOT, "DIR", 0, "Use the files below this folder, not this machine's", 0}
#define DEVICE_OPTION \
	{"device", 'd', "DEVICE", 0, "A device behind the driver; all of them are recorded", 0}

static const struct argp_option record_options[] = {DEVICE_OPTION, ROOT_OPTION, {0}};

static const struct argp_option show_options[] = {
	ROOT_OPTION,
	TRACE_SHOW_OPTIONS,
	{0},
};

struct tracing {
	const char *root, *device, *file;
	struct showing show;
};

static error_t parse_trace_option(int key, char *arg, struct argp_state *state)
{
	struct tracing *t = state->input;

	switch (key) {
	case 'd':
		t->device = arg;
		return 0;
	case KEY_ROOT:
		t->root = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num) {
			argp_error(state, "'%s' is one argument too many", arg);
			return EINVAL;
		}
		t->file = arg;
		return 0;
	default:
		return trace_show_option(key, arg, state, &t->show);
	}
}

static int parse_tracing(const char *arguments, const char *doc, const struct argp_option *options,
			 int argc, char **argv, struct output *out, struct tracing *t)
{
	const struct argp argp = {.options = options,
				  .parser = parse_trace_option,
				  .args_doc = arguments,
				  .doc = doc};
	int code = command_parse(&argp, argc, argv, out, t);

	if (!code && t->file && !arguments)
		code = output_fail(out, CLI_USAGE, EINVAL, NULL, "'%s' is one argument too many",
				   t->file);
	return code;
}

static const char *trace_path(const struct tracing *t, const char *name, char path[PATH_BYTES])
{
	snprintf(path, PATH_BYTES, "%s%s", t->root ? t->root : "", name);
	return path;
}

static int refuse_tracing(const struct output *out, const struct tracing *t, const char *path,
			  int err)
{
	char events[PATH_BYTES];

	if (err == EACCES || err == EPERM)
		return output_fail(out, CLI_PERMISSION, err,
				   "Run the command as root: a trace shows what all programs do",
				   "%s: %s", path, strerror(err));
	if (access(trace_path(t, TRACING "/events", events), F_OK))
		return output_fail(
			out, CLI_UNSUPPORTED, ENOENT, "mount -t tracefs tracing " TRACING,
			"%s is not there: tracefs is not mounted, or the kernel has none", events);
	if (access(trace_path(t, TRACING "/events/embeng", events), F_OK))
		return output_fail(out, CLI_NO_DRIVER, ENXIO, "modprobe embeng",
				   "%s is not there: the driver is not loaded", events);
	return output_fail(out, exit_of_errno(err), err, NULL, "%s: %s", path, strerror(err));
}

static int write_tracing(const struct output *out, const struct tracing *t, const char *name,
			 const char *text)
{
	char path[PATH_BYTES];
	int fd = open(trace_path(t, name, path), O_WRONLY | O_TRUNC | O_CLOEXEC), err = 0;

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		err = errno;
	if (fd >= 0)
		close(fd);
	return err ? refuse_tracing(out, t, path, err) : CLI_OK;
}

/* The soft device runs in the program, and no driver sees it: only the library does. */
static int refuse_soft(const struct output *out, const struct tracing *t)
{
	if (!t->device || strncmp(t->device, "soft", 4))
		return CLI_OK;
	return output_fail(out, CLI_UNSUPPORTED, ENOTSUP,
			   "Record the program's own view: embeng trace run -- PROGRAM",
			   "the device %s is in software: no driver sees its commands", t->device);
}

static int emit_recording(const struct output *out, const char *words, bool recording)
{
	struct json_object *document;

	if (!out->json) {
		puts(words);
		return CLI_OK;
	}
	document = json_document(out);
	json_object_object_add(document, "recording", json_object_new_boolean(recording));
	json_add_text(document, "folder", INSTANCE);
	return json_emit(document);
}

static int trace_start(int argc, char **argv)
{
	static const char doc[] =
		"Record the driver's events from now on, in place of an earlier record.\v"
		"Only commands that go through the driver are seen: run programs with\n"
		"EMBENG_PATH=validated. Programs that share queues with the device bypass it.";
	struct output out = {.verb = "trace", .command = "start"};
	struct tracing t = {0};
	char path[PATH_BYTES];
	int code = parse_tracing(NULL, doc, record_options, argc, argv, &out, &t);

	if (!code)
		code = refuse_soft(&out, &t);
	if (code)
		return code;
	if (mkdir(trace_path(&t, INSTANCE, path), 0700) && errno != EEXIST)
		return refuse_tracing(&out, &t, path, errno);
	code = write_tracing(&out, &t, INSTANCE "/events/embeng/enable", "0\n");
	if (!code)
		code = write_tracing(&out, &t, INSTANCE "/trace_clock", "mono\n");
	if (!code)
		code = write_tracing(&out, &t, INSTANCE "/trace", "");
	if (!code)
		code = write_tracing(&out, &t, INSTANCE "/tracing_on", "1\n");
	if (!code)
		code = write_tracing(&out, &t, INSTANCE "/events/embeng/enable", "1\n");
	if (code)
		return code;
	return emit_recording(&out,
			      "recording; run programs with EMBENG_PATH=validated, then embeng "
			      "trace stop",
			      true);
}

static int trace_stop(int argc, char **argv)
{
	static const char doc[] =
		"Stop recording. What was recorded is kept for embeng trace show.";
	struct output out = {.verb = "trace", .command = "stop"};
	struct tracing t = {0};
	int code = parse_tracing(NULL, doc, record_options, argc, argv, &out, &t);

	if (!code)
		code = refuse_soft(&out, &t);
	if (!code)
		code = write_tracing(&out, &t, INSTANCE "/events/embeng/enable", "0\n");
	return code ? code
		    : emit_recording(&out, "stopped; embeng trace show shows the steps", false);
}

/* Shows what the driver has recorded. */
static int show_recorded(const struct output *out, const struct tracing *t)
{
	char path[PATH_BYTES], *text;
	size_t length;
	int code, err = trace_load(trace_path(t, INSTANCE "/trace", path), &text, &length);

	if (err == -ENOENT)
		return output_fail(out, CLI_USAGE, ENOENT, "embeng trace start",
				   "%s is not there: nothing was recorded", path);
	if (err)
		return refuse_tracing(out, t, path, -err);
	code = trace_show_text(out, &t->show, text, length);
	free(text);
	return code;
}

static int trace_show(int argc, char **argv)
{
	static const char doc[] =
		"Show the steps of what was recorded, or of FILE: a copy of the kernel's trace, or "
		"the\n"
		"file that EMBENG_TRACE named.\v" TRACE_STAGES_HELP "Examples:\n"
		"  embeng trace show --step 5\n"
		"  embeng trace show --chrome steps.json     then open it in ui.perfetto.dev\n"
		"  embeng trace show recorded.txt --json";
	struct output out = {.verb = "trace", .command = "show"};
	struct tracing t = {0};
	int code = parse_tracing("[FILE]", doc, show_options, argc, argv, &out, &t);

	if (code)
		return code;
	t.show.file = t.file;
	return t.file ? trace_show_file(&out, &t.show, t.file) : show_recorded(&out, &t);
}

static const struct group_command list[] = {
	{"start", "start", "record the driver's events", trace_start},
	{"stop", "stop", "stop recording", trace_stop},
	{"show", "show [FILE]", "show steps with the times of their stages", trace_show},
	{"run", "run -- PROGRAM", "have the library record a program, and show its steps",
	 trace_run},
};

static const struct group group = {
	.verb = "trace",
	.list = list,
	.count = sizeof(list) / sizeof(list[0]),
	.column = 15,
	.intro = "Usage: embeng trace COMMAND [OPTION...]\n"
		 "Follow steps from their submission to their completion, as the driver sees them "
		 "or,\n"
		 "with any device, as the library does. Recording the driver's view, by start and "
		 "stop,\n"
		 "needs the rights of an administrator.\n",
	.end = "\nExamples:\n"
	       "  embeng trace run -- ./train            with any device, also in software\n"
	       "  embeng trace start\n"
	       "  EMBENG_PATH=validated ./train\n"
	       "  embeng trace stop\n"
	       "  embeng trace show --chrome steps.json\n"
	       "  embeng trace show --help               show the options of a command\n\n"
	       "Exit status: 0 ok, 2 usage or nothing was recorded, 3 unsupported, 4 permission,\n"
	       "9 the driver is not loaded; run has the program's, unless that is 0.\n",
};

int cmd_trace(int argc, char **argv)
{
	return group_run(&group, argc, argv);
}
