/* SPDX-License-Identifier: MIT */
/* Reads Debian's package lists: a basket is everything that the binaries of a source depend on. */
#ifndef ITEM2VEC_DATA_DEBIAN_H
#define ITEM2VEC_DATA_DEBIAN_H

#include "source.h"

/**
 * debian_read() - read control stanzas of `apt-cache dumpavail`, a Packages file or dpkg's status
 * @s: source; its error names the line of a mistake
 * @c: collector; source packages become baskets, and names in Depends and Pre-Depends items:
 *	the first of alternatives, without version and architecture
 *
 * Return: 0, -EBADMSG, -ENOMEM, or the errno of a failed read.
 */
int debian_read(struct source *s, struct collector *c);

#endif
