/* SPDX-License-Identifier: MIT */
/* Finds out the format of a data file from its first lines. */
#ifndef ITEM2VEC_DATA_SNIFF_H
#define ITEM2VEC_DATA_SNIFF_H

#include "source.h"

#define SNIFF_TEXT 240

/**
 * sniff() - complete @s->format by a look at the first lines
 * @s: source of which nothing was read yet; what its format says already is kept
 * @words: a clause for people that says how the file is read; empty if the user has said it all
 *
 * Lines of items between blanks are baskets unless they look like something else. A file of which
 * the format is not clear is refused with a question that names separator and options.
 *
 * Return: 0, -EBADMSG, -ENOMEM, or the errno of a failed read.
 */
int sniff(struct source *s, char words[SNIFF_TEXT]);

#endif
