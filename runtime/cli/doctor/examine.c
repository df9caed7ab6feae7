// SPDX-License-Identifier: MIT
/*
 * Runs the checks in their order and keeps their results. A check whose need has stopped is not
 * made; its result says which one stopped.
 *
 * Results point to the functions of the machine, which outlives them.
 */
#include "examine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CMDLINE_MOST 65536

/* -- the machine ----------------------------------------------------------- */

static bool is_soft_name(const char *name)
{
	return !strncmp(name, "soft", 4) && (!name[4] || name[4] == ':' || name[4] == ',');
}

/* The part of a name in front of ",path=...", without its folder: "accel0", or an address. */
static void read_short_name(const struct machine *m, char *name, size_t size)
{
	char path[TREE_PATH];
	size_t length = strcspn(m->named, ",");

	snprintf(path, sizeof(path), "%.*s", (int)length, m->named);
	if (!strncmp(path, "pci:", 4)) {
		snprintf(name, size, "%s", path + 4);
		return;
	}
	/* A link by-path leads to the node. */
	if (*path == '/' && !tree_link(m->tree, path, name, size))
		return;
	snprintf(name, size, "%s", strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
}

static bool is_chosen_function(const struct machine *m, const struct function *function,
			       const char *name)
{
	if (m->named)
		return !strcmp(function->address, name) || (*name && !strcmp(function->node, name));
	return function_is_known(function) || !strcmp(function->driver, "embeng");
}

static int choose_devices(struct machine *m)
{
	char name[TREE_PATH] = "";

	if (m->soft || !m->functions.count)
		return 0;
	m->devices = calloc(m->functions.count, sizeof(m->devices[0]));
	if (!m->devices)
		return -ENOMEM;
	if (m->named)
		read_short_name(m, name, sizeof(name));
	for (size_t i = 0; i < m->functions.count; i++) {
		if (is_chosen_function(m, &m->functions.list[i], name))
			m->devices[m->count++] = &m->functions.list[i];
	}
	return 0;
}

int machine_open(struct tree *tree, const char *named, struct machine *m)
{
	int err;

	*m = (struct machine){.tree = tree, .named = named};
	m->soft = named && is_soft_name(named);
	tree_line(tree, "/proc/sys/kernel/osrelease", m->release, sizeof(m->release));
	m->cmdline = tree_text(tree, "/proc/cmdline", CMDLINE_MOST);
	if (!m->cmdline)
		m->cmdline = strdup("");
	err = m->cmdline ? functions_find(tree, &m->functions) : -ENOMEM;
	if (!err)
		err = choose_devices(m);
	if (err)
		machine_close(m);
	return err;
}

void machine_close(struct machine *m)
{
	free(m->devices);
	functions_free(&m->functions);
	free(m->cmdline);
	*m = (struct machine){0};
}

/* -- the checks ------------------------------------------------------------- */

/* The result of a need that stopped, for this device or for the machine; NULL if none did. */
static const struct result *find_stop(const struct results *results, const char *needs,
				      const char *device)
{
	for (size_t i = 0; i < results->count; i++) {
		const struct result *r = &results->list[i];

		if (r->finding.stops && has_word_in(needs, r->check->name) &&
		    (!r->device || !device || !strcmp(r->device, device)))
			return r;
	}
	return NULL;
}

/* Without an engine the last check is made on the soft device. */
static bool tries_soft(const struct machine *m, const struct results *results,
		       const struct check *check)
{
	return check->look == check_lookup && !m->count && results_exit_code(results) == CLI_OK;
}

static void make_check(const struct machine *m, const struct results *results,
		       const struct check *check, const struct function *device,
		       struct result *result)
{
	struct finding *f = &result->finding;
	const struct result *stop;

	*result = (struct result){.check = check, .device = device ? device->address : NULL};
	found_why(f, "%s", check->why);
	stop = find_stop(results, check->needs, result->device);
	if (stop && !tries_soft(m, results, check)) {
		result->stop = stop->stop ? stop->stop : stop->check;
		found_nothing(f, "not checked, because of %s", result->stop->name);
		f->stops = true;
	} else if (check->each && !device && !tries_soft(m, results, check)) {
		found_nothing(f, "not checked, there is no device");
	} else {
		check->look(m, device, f);
	}
}

int machine_examine(const struct machine *m, struct results *out)
{
	size_t most = check_count * (m->count ? m->count : 1);

	*out = (struct results){.list = calloc(most, sizeof(*out->list))};
	if (!out->list)
		return -ENOMEM;
	for (size_t i = 0; i < check_count; i++) {
		size_t times = checks[i].each && m->count ? m->count : 1;

		for (size_t k = 0; k < times; k++) {
			make_check(m, out, &checks[i],
				   checks[i].each && m->count ? m->devices[k] : NULL,
				   &out->list[out->count]);
			out->count++;
		}
	}
	return 0;
}

void results_free(struct results *results)
{
	free(results->list);
	*results = (struct results){0};
}

size_t results_count(const struct results *results, enum verdict verdict)
{
	size_t count = 0;

	for (size_t i = 0; i < results->count; i++)
		count += results->list[i].finding.verdict == verdict;
	return count;
}

int results_exit_code(const struct results *results)
{
	for (size_t i = 0; i < results->count; i++) {
		if (results->list[i].finding.verdict == VERDICT_PROBLEM)
			return results->list[i].finding.exit_code;
	}
	return CLI_OK;
}
