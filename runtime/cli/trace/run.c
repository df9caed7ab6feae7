// SPDX-License-Identifier: MIT
/*
 * The command `embeng trace run`: runs a program whose commands the library records, and shows the
 * steps. The terminal's interrupts are left to the program meanwhile, so that a trace is shown of a
 * program that was interrupted, too.
 *
 * The child, and the folder of its record, live as long as the call. One thread does it all.
 */
#define _GNU_SOURCE /* asprintf() */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../frame/command.h"
#include "../frame/scratch.h"
#include "show.h"

extern char **environ;

static const struct argp_option run_options[] = {
	{"output", 'o', "FILE", 0, "Keep the record in this new file, for embeng trace show", 0},
	TRACE_SHOW_OPTIONS,
	{0},
};

struct recording {
	struct showing show;
	const char *output, *stray;
};

static error_t parse_recording_option(int key, char *arg, struct argp_state *state)
{
	struct recording *r = state->input;

	switch (key) {
	case 'o':
		r->output = arg;
		return 0;
	case ARGP_KEY_ARG:
		r->stray = arg;
		return 0;
	default:
		return trace_show_option(key, arg, state, &r->show);
	}
}

/* The child takes the terminal's signals as usual. @aside: it prints to stderr. */
static int spawn_program(char **argv, bool aside, pid_t *child)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t usual;
	int err = posix_spawn_file_actions_init(&actions);

	if (err)
		return err;
	sigemptyset(&usual);
	sigaddset(&usual, SIGINT);
	sigaddset(&usual, SIGQUIT);
	err = posix_spawnattr_init(&attributes);
	if (!err) {
		posix_spawnattr_setsigdefault(&attributes, &usual);
		posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
		if (aside)
			err = posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO,
							       STDOUT_FILENO);
		if (!err)
			err = posix_spawnp(child, argv[0], &actions, &attributes, argv, environ);
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&actions);
	return err;
}

/* Runs a program until it ends. Return: 0 with its exit status, or a negative errno. */
static int record_program(char **argv, const char *file, bool aside, int *status)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct sigaction interrupt, quit;
	int err = setenv("EMBENG_TRACE", file, 1) ? errno : 0, ended = 0;
	pid_t child = -1;

	if (err)
		return -err;
	fflush(NULL);
	sigaction(SIGINT, &ignore, &interrupt);
	sigaction(SIGQUIT, &ignore, &quit);
	err = spawn_program(argv, aside, &child);
	while (!err && waitpid(child, &ended, 0) < 0)
		err = errno == EINTR ? 0 : errno;
	sigaction(SIGINT, &interrupt, NULL);
	sigaction(SIGQUIT, &quit, NULL);
	*status = WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended);
	return -err;
}

static int run_and_show(const struct output *out, struct recording *r, const char *file)
{
	char **program = r->show.program;
	int code, err = record_program(program, file, out->json, &r->show.status);

	if (err)
		return output_fail(out, err == -ENOENT ? CLI_USAGE : exit_of_errno(err), err, NULL,
				   "%s: %s", program[0], strerror(-err));
	if (access(file, F_OK))
		code = output_fail(out, CLI_USAGE, ENOENT, NULL,
				   "%s opened no device by libembeng, so nothing was recorded",
				   program[0]);
	else
		code = trace_show_file(out, &r->show, file);
	return r->show.status ? r->show.status : code;
}

/* Without --output, the record is in a folder that goes with this command. */
static int run_recorded(const struct output *out, struct recording *r)
{
	char *folder = NULL, *file = NULL;
	int code, err = 0;

	if (r->output && !access(r->output, F_OK))
		return output_fail(out, CLI_USAGE, EEXIST, "Name a file that is not there yet",
				   "%s: %s", r->output, strerror(EEXIST));
	if (!r->output)
		err = scratch_make(&folder);
	if (!err && !r->output && asprintf(&file, "%s/trace", folder) < 0)
		err = -ENOMEM;
	code = err ? output_fail(out, exit_of_errno(err), err, NULL,
				 "there is no room for the record: %s", strerror(-err))
		   : run_and_show(out, r, r->output ? r->output : file);
	free(file);
	scratch_remove(folder);
	return code;
}

int trace_run(int argc, char **argv)
{
	static const char doc[] =
		"Run a program, have libembeng record its commands, and show the steps.\v"
		"The program is not changed, may be in any language and may use any device. The "
		"exit\n"
		"status is the program's, unless that is 0.\n\n" TRACE_STAGES_HELP "Examples:\n"
		"  embeng trace run -- ./train\n"
		"  embeng trace run --step 5 --chrome steps.json -- python3 train.py\n"
		"  embeng trace run -o run.trace -- ./train    then: embeng trace show run.trace";
	static const struct argp argp = {.options = run_options,
					 .parser = parse_recording_option,
					 .args_doc = "-- PROGRAM [ARGUMENT...]",
					 .doc = doc};
	struct output out = {.verb = "trace", .command = "run"};
	struct recording r = {0};
	int at, code = command_parse_before(&argp, argc, argv, &out, &r, &at);

	if (code)
		return code;
	if (r.stray || argc - at < 2)
		return output_fail(&out, CLI_USAGE, EINVAL, "See: embeng trace run --help",
				   "put the program behind --: embeng trace run -- %s",
				   r.stray ? r.stray : "PROGRAM");
	r.show.program = argv + at + 1;
	return run_recorded(&out, &r);
}
