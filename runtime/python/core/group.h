/* SPDX-License-Identifier: MIT */
/* The object Group, for the files that make groups and engines over them. */
#ifndef EMBENG_PYTHON_GROUP_H
#define EMBENG_PYTHON_GROUP_H

#include "core.h"
#include "open_group.h"

struct group_object {
	PyObject_HEAD
	struct core_state *state;
	struct open_group *open;
};

#endif
