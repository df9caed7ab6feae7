/* SPDX-License-Identifier: MIT */
/* The descriptor of a device that another process has open. */
#ifndef CLI_TOP_BORROW_H
#define CLI_TOP_BORROW_H

#include "../board/finding.h"
#include "sample.h"

/**
 * borrow_descriptor() - duplicate the descriptor by which a process has a context
 * @tree: the files of this machine
 * @f: fails with a sentence if there is no descriptor
 *
 * Return: a descriptor of the same open file, to be closed; or -1.
 */
int borrow_descriptor(struct tree *tree, const struct sample_context *context, struct finding *f);

#endif
