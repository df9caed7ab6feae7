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

/* Gives the group to an engine, until open_group_return(). Return: 0, -1. */
int group_lend(struct group_object *group);

#endif
