// SPDX-License-Identifier: MIT
/*
 * The parts of a report that other verbs of this command know: it is started once more for each, with
 * --json. A verb that hangs on a broken device, or dies of it, then takes nothing else with it.
 *
 * A child is killed and waited for when its time is over. Its standard error goes nowhere.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../frame/document.h"
#include "gather.h"

#define SECONDS 60
#define DOCUMENT_MOST ((size_t)8 << 20)

extern char **environ;

static pid_t start_verb(char *const argv[], int *from)
{
	posix_spawn_file_actions_t actions;
	int ends[2], err;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	err = posix_spawn_file_actions_init(&actions);
	if (!err) {
		err = posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
		if (!err)
			err = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null",
							       O_WRONLY, 0);
		if (!err)
			err = posix_spawn(&child, "/proc/self/exe", &actions, NULL, argv, environ);
		posix_spawn_file_actions_destroy(&actions);
	}
	close(ends[1]);
	if (err) {
		close(ends[0]);
		return -err;
	}
	*from = ends[0];
	return child;
}

/* Reads all that the child prints. Return: 0, -ETIME or -EFBIG. */
static int read_verb(int from, FILE *to)
{
	int64_t left_ms = SECONDS * 1000;
	size_t sum = 0;
	char part[4096];

	for (;;) {
		struct pollfd watched = {.fd = from, .events = POLLIN};
		ssize_t got;

		if (left_ms <= 0 || sum > DOCUMENT_MOST)
			return sum > DOCUMENT_MOST ? -EFBIG : -ETIME;
		if (poll(&watched, 1, 100) <= 0) {
			left_ms -= 100;
			continue;
		}
		got = read(from, part, sizeof(part));
		if (got <= 0)
			return 0;
		fwrite(part, 1, (size_t)got, to);
		sum += (size_t)got;
	}
}

static int run_other_verb(char *const argv[], char **text)
{
	int from = -1, err, status;
	pid_t child = start_verb(argv, &from);
	size_t size;
	FILE *to;

	if (child < 0)
		return (int)child;
	to = gather_open(text, &size);
	err = read_verb(from, to);
	gather_close(to);
	close(from);
	if (err)
		kill(child, SIGKILL);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (!err && WIFSIGNALED(status))
		err = -ECHILD;
	return err;
}

/* A document of the verb itself, also of its failure, which says what is wrong with the machine. */
static bool is_document_of(const char *text, const char *verb)
{
	char schema[64];

	snprintf(schema, sizeof(schema), "\"embeng.%s/1\"", verb);
	return strstr(text, schema) != NULL;
}

static void add_verb(struct gather *g, const char *verb, const char *words, char *const argv[])
{
	char name[BUNDLE_NAME], *text = NULL;
	int err = run_other_verb(argv, &text);

	snprintf(name, sizeof(name), "%s.json", verb);
	if (!err && text && is_document_of(text, verb)) {
		bundle_add(g->bundle, name, words, text);
		return;
	}
	free(text);
	if (err == -ETIME)
		bundle_miss(g->bundle, name, words, true, "embeng %s did not end within %d s", verb,
			    SECONDS);
	else if (err)
		bundle_miss(g->bundle, name, words, true, "embeng %s: %s", verb,
			    err == -ECHILD ? "it was killed" : strerror(-err));
	else
		bundle_miss(g->bundle, name, words, true, "this embeng has no verb %s", verb);
}

void gather_verbs(struct gather *g)
{
	static char embeng[] = "embeng", doctor[] = "doctor", list[] = "list", json[] = "--json",
		    root[] = "--root";
	char *const doctor_argv[] = {embeng,	      doctor, json, g->root ? root : NULL,
				     (char *)g->root, NULL};
	char *const list_argv[] = {embeng, list, json, NULL};

	add_verb(g, "doctor", "every check of embeng doctor, with what was seen", doctor_argv);
	if (g->root)
		bundle_miss(g->bundle, "list.json", "the devices and what they can do", false,
			    "a recorded tree has no device to ask");
	else
		add_verb(g, "list", "the devices and what they can do", list_argv);
}
