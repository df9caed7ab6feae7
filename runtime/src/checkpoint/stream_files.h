/* SPDX-License-Identifier: MIT */
/* Options of packing and unpacking, which share a structure. */
#ifndef EMBENG_STREAM_FILES_H
#define EMBENG_STREAM_FILES_H

#include <stdbool.h>

#include "session/session.h"
#include "stream.h"

/* stream_unpack.c: copies and checks the options. @given: NULL: defaults. Return: 0, -EINVAL, -ERANGE. */
int stream_take_options(struct embeng_pack_options *to, const struct embeng_pack_options *given,
			const char *what);

#endif
