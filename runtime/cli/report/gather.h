/* SPDX-License-Identifier: MIT */
/* Filling a report from the files of a machine, live or recorded. */
#ifndef CLI_REPORT_GATHER_H
#define CLI_REPORT_GATHER_H

#include "../system/function.h"
#include "bundle.h"

/**
 * struct gather - a report that is being filled
 * @bundle: its files
 * @tree: the files of the machine
 * @root: folder of a recorded tree, or NULL
 * @functions: the engines on the bus
 */
struct gather {
	struct bundle *bundle;
	struct tree *tree;
	const char *root;
	struct functions functions;
};

void gather_versions(struct gather *g);
void gather_configuration(struct gather *g);

/* gather_device.c: what sysfs and debugfs have of each device */
void gather_devices(struct gather *g);

/* gather_kernel.c: the log, the trace, and dumps of hangs */
void gather_log(struct gather *g);
void gather_trace(struct gather *g);
void gather_dumps(struct gather *g);

/* gather_verb.c: documents of other verbs of this command */
void gather_verbs(struct gather *g);

/* Reads a file of text. NULL: it was noted as missing under @name, with the reason. */
char *gather_text(struct gather *g, const char *name, const char *words, const char *path,
		  size_t most);

/* Opens a text in memory; ends the command when there is no memory. */
FILE *gather_open(char **text, size_t *size);
void gather_close(FILE *text);

#endif
