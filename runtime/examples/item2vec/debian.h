/* SPDX-License-Identifier: MIT */
/* Debian's package lists as baskets: what the binaries of a source package depend on. */
#ifndef ITEM2VEC_DATA_DEBIAN_H
#define ITEM2VEC_DATA_DEBIAN_H

#include "source.h"

/**
 * debian_read() - read control stanzas: dumpavail, a Packages file, dpkg's status
 * @s: its error names the line of what is malformed
 * @c: source packages are baskets, names in Depends and Pre-Depends are items:
 *	the first of alternatives, without version and architecture
 *
 * Return: 0, -EBADMSG, -ENOMEM, or what reading failed with.
 */
int debian_read(struct source *s, struct collector *c);

#endif
