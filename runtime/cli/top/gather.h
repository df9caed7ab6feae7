/* SPDX-License-Identifier: MIT */
/* Takes samples from the files of a machine. */
#ifndef CLI_TOP_GATHER_H
#define CLI_TOP_GATHER_H

#include "sample.h"

struct gather;

/**
 * gather_new() - prepare to take samples
 * @only: PCI address or name of the node of the one device to look at; NULL: all
 *
 * Return: it, or NULL without memory.
 */
struct gather *gather_new(const char *only);
void gather_free(struct gather *gather);

/**
 * gather_sample() - take a sample
 * @tree: files to read; gather_forget() is called before another tree is given
 * @out: the sample, to be freed by sample_free()
 *
 * A file that cannot be read leaves out its number. Return: 0 or a negative errno.
 */
int gather_sample(struct gather *gather, struct tree *tree, struct sample *out);

/* Looks for everything anew at the next sample. */
void gather_forget(struct gather *gather);

#endif
