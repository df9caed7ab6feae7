/* SPDX-License-Identifier: MIT */
/* An open profile. */
#ifndef EMBENG_PROFILE_OPEN_H
#define EMBENG_PROFILE_OPEN_H

#include "profile.h"
#include "embeng/profile.h"
#include "embeng/stacking.h"

struct profiled {
	struct profile_key key;
	char name[PROFILE_NAME_SIZE];
	struct hot_counts known; /* counts from the folder, with everything counted since */
	struct hot_counts fresh; /* the part of @known that was not saved yet */
};

struct embeng_profile {
	struct embeng_model *model;
	char *dir;
	struct embeng_profile_options options;
	struct profiled *tables;
	uint64_t random; /* state of the generator that chooses batches */
};

#endif
