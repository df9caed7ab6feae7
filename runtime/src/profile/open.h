/* SPDX-License-Identifier: MIT */
/* An open profile. */
#ifndef EMBENG_PROFILE_OPEN_H
#define EMBENG_PROFILE_OPEN_H

#include "profile.h"

struct profiled {
	struct profile_key key;
	char name[PROFILE_NAME_SIZE];
	struct hot_counts known; /* the folder's, and what was seen since */
	struct hot_counts fresh; /* of it, what no save has had yet */
};

struct embeng_profile {
	struct embeng_model *model;
	char *dir;
	struct embeng_profile_options options;
	struct profiled *tables;
	uint64_t random; /* state of the choice */
};

#endif
