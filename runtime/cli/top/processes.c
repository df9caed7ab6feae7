// SPDX-License-Identifier: MIT
/*
 * Finds processes that have a device open, below /proc.
 *
 * A machine has many descriptors and few of them are devices. So the names of what all descriptors
 * lead to are read only when the caller asks for a search, and for processes that are new; other
 * samples read the files of the descriptors that were found. A process that opens a device later is
 * therefore seen at the next search.
 *
 * The list belongs to the caller's struct processes.
 */
#include "processes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../text/number.h"

#define FDINFO_BYTES 8192

static void clear_process(struct known_process *process)
{
	free(process->fds);
	*process = (struct known_process){0};
}

void processes_forget(struct processes *known)
{
	for (size_t i = 0; i < known->count; i++)
		clear_process(&known->list[i]);
	free(known->list);
	*known = (struct processes){0};
}

static bool read_small_number(const char *name, uint32_t *number)
{
	uint64_t value;

	if (number_read(name, strlen(name), 10, &value) || value > INT32_MAX)
		return false;
	*number = (uint32_t)value;
	return true;
}

static int add_descriptor(struct known_process *process, uint32_t fd)
{
	uint32_t *larger = realloc(process->fds, (process->count + 1) * sizeof(*larger));

	if (!larger)
		return -ENOMEM;
	process->fds = larger;
	larger[process->count++] = fd;
	return 0;
}

/* By the name of the node; what the driver is, its fdinfo says. */
static bool leads_to_accelerator(struct tree *tree, uint32_t pid, uint32_t fd)
{
	char path[TREE_PATH], name[64];

	return !tree_link(tree, tree_path(path, "/proc/%u/fd/%u", pid, fd), name, sizeof(name)) &&
	       !strncmp(name, "accel", 5);
}

static int search_process(struct tree *tree, struct known_process *process)
{
	char path[TREE_PATH];
	struct tree_names names;
	uint32_t fd;
	int err = tree_list(tree, tree_path(path, "/proc/%u/fd", process->pid), &names);

	process->hidden = err == -EACCES || err == -EPERM;
	if (err)
		return err == -ENOMEM ? err : 0;
	for (size_t i = 0; !err && i < names.count; i++) {
		if (read_small_number(names.list[i], &fd) &&
		    leads_to_accelerator(tree, process->pid, fd))
			err = add_descriptor(process, fd);
	}
	tree_names_free(&names);
	if (process->count && tree_line(tree, tree_path(path, "/proc/%u/comm", process->pid),
					process->program, sizeof(process->program)))
		strcpy(process->program, "?");
	return err;
}

/* Moves what is known of process @pid; all processes before it are gone, or were moved. */
static bool take_over(struct processes *old, size_t *at, struct known_process *process)
{
	for (; *at < old->count && old->list[*at].pid < process->pid; ++*at)
		clear_process(&old->list[*at]);
	if (*at == old->count || old->list[*at].pid != process->pid)
		return false;
	*process = old->list[*at];
	old->list[(*at)++] = (struct known_process){0};
	return true;
}

/* Both lists are in the order of process numbers, as tree_list() sorts names by number. */
static int list_processes(struct processes *known, struct tree *tree,
			  const struct tree_names *names, bool search)
{
	struct processes now = {.list = calloc(names->count + 1, sizeof(*now.list))};
	size_t at = 0;
	int err = now.list ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < names->count; i++) {
		struct known_process *process = &now.list[now.count];

		if (!read_small_number(names->list[i], &process->pid))
			continue;
		now.count++;
		if (search || !take_over(known, &at, process))
			err = search_process(tree, process);
	}
	processes_forget(known);
	if (err)
		processes_forget(&now);
	else
		*known = now;
	return err;
}

bool processes_fdinfo(struct tree *tree, uint32_t pid, uint32_t fd, struct fdinfo *out)
{
	char path[TREE_PATH], text[FDINFO_BYTES];
	ssize_t got = tree_bytes(tree, tree_path(path, "/proc/%u/fdinfo/%u", pid, fd), text,
				 sizeof(text) - 1);

	if (got <= 0)
		return false;
	text[got] = '\0';
	fdinfo_read(text, out);
	return !strcmp(out->driver, "embeng");
}

static int read_descriptor(struct tree *tree, const struct known_process *process, uint32_t fd,
			   struct sample *sample)
{
	struct fdinfo info;

	if (!processes_fdinfo(tree, process->pid, fd, &info))
		return 0;
	return sample_take_descriptor(sample, &info, process->pid, fd, process->program);
}

int processes_read(struct processes *known, struct tree *tree, bool search, struct sample *sample)
{
	struct tree_names names;
	int err = tree_list(tree, "/proc", &names);

	if (err)
		return err == -ENOMEM ? err : 0;
	err = list_processes(known, tree, &names, search);
	tree_names_free(&names);
	for (size_t i = 0; !err && i < known->count; i++) {
		const struct known_process *process = &known->list[i];

		sample->hidden += process->hidden;
		for (size_t k = 0; !err && k < process->count; k++)
			err = read_descriptor(tree, process, process->fds[k], sample);
	}
	return err;
}
