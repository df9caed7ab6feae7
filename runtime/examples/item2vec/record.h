/* SPDX-License-Identifier: MIT */
/* Cuts a line into fields at the separator of its format. */
#ifndef ITEM2VEC_DATA_RECORD_H
#define ITEM2VEC_DATA_RECORD_H

#include "source.h"

#define RECORD_FIELDS 256

struct record {
	struct piece fields[RECORD_FIELDS];
	size_t count;
};

/**
 * record_split() - cut the line that was read last into fields
 * @separator: text between fields; SEPARATOR_BLANK for any blanks
 *
 * A field may be in quotes (RFC 4180); blanks around one that is not are left out. Fields point
 * into the line, which is changed. Return: 0, or -EBADMSG with a sentence in @s->error.
 */
int record_split(struct source *s, const char *separator, struct record *record);

/* Return: 0, or -EBADMSG if the line has a control character that is not a tab. */
int record_check_characters(struct source *s);

#endif
