/* SPDX-License-Identifier: MIT */
/* The verbs of the embeng command, and the code that all of them share. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <argp.h>
#include <stddef.h>

#include "exit.h"
#include "output.h"

/**
 * struct command - one verb
 * @name: name as typed
 * @summary: one line for `embeng --help`
 * @run: runs the verb; argv[0] is "embeng VERB"; returns an &enum cli_exit
 */
struct command {
	const char *name, *summary;
	int (*run)(int argc, char **argv);
};

extern const struct command commands[];
extern const size_t command_count;

const struct command *command_find(const char *name);

/* The verb that a misspelt @name most likely means, or NULL. */
const struct command *command_nearest(const char *name);

/**
 * command_parse() - read a verb's options
 * @argp: options of the verb, to which --json and --help are added. Its parser may call
 *	argp_error(): the sentence is reported like any other failure
 * @out: filled in; its json member says whether --json was given
 * @input: passed to the parser as argp_state.input
 *
 * Return: 0 to go on, else an exit code to return after the failure was reported.
 * --help prints and exits.
 */
int command_parse(const struct argp *argp, int argc, char **argv, struct output *out, void *input);

/* As command_parse() for the words before a "--". @at: set to the place of that, or to @argc. */
int command_parse_before(const struct argp *argp, int argc, char **argv, struct output *out,
			 void *input, int *at);

/**
 * argument_take() - take the one argument that a command has; for ARGP_KEY_ARG
 * @place: NULL, or the argument that was taken before
 * @what: its name in --help, such as "FILE"
 *
 * Return: 0, or EINVAL after argp_error() if it is a second one.
 */
error_t argument_take(const char **place, const char *arg, const char *what,
		      struct argp_state *state);

int cmd_list(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_regs(int argc, char **argv);
int cmd_reset(int argc, char **argv);
int cmd_plan(int argc, char **argv);
int cmd_demo(int argc, char **argv);
int cmd_checkpoint(int argc, char **argv);
int cmd_train(int argc, char **argv);
int cmd_lookup(int argc, char **argv);
int cmd_config(int argc, char **argv);
int cmd_events(int argc, char **argv);
int cmd_fault(int argc, char **argv);
int cmd_fw(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_trace(int argc, char **argv);
int cmd_tune(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_decode(int argc, char **argv);
int cmd_conform(int argc, char **argv);
int cmd_validate(int argc, char **argv);
int cmd_vm(int argc, char **argv);

#endif
