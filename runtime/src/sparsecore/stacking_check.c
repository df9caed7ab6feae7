// SPDX-License-Identifier: MIT
/*
 * Checks the options of embeng_stacking_make() and fills in the defaults of the flavour.
 *
 * Only arguments are touched; no lock is needed.
 */
#include "base/check.h"
#include "partition.h"
#include "stacking.h"

#define WHAT "embeng_stacking_make"
#define CORES_DEFAULT 4
#define ACTIVATION_DEFAULT (2u << 20)
#define TF_SHARD_DEFAULT (UINT64_C(1) << 31)
#define TF_ROWS_DEFAULT INT32_MAX

static int check_groups(const struct embeng_stacking_options *o)
{
	if (o->group_count && !o->groups)
		return fail(-EINVAL, WHAT ": groups is NULL, group_count is %zu", o->group_count);
	if (o->group_count && o->no_stacking)
		return fail(-EINVAL, WHAT ": %zu groups to stack, and no_stacking", o->group_count);
	for (size_t g = 0; g < o->group_count; g++) {
		const struct embeng_stack_group *group = &o->groups[g];

		if (!group->tables || !group->table_count)
			return fail(-EINVAL, WHAT ": group %zu has no tables", g);
		if (group->name && !group->name[0])
			return fail(-EINVAL,
				    WHAT ": the name of group %zu is empty; NULL makes one "
					 "of its tables",
				    g);
	}
	return 0;
}

static void fill_defaults(struct embeng_stacking_options *o)
{
	bool tf = o->flavour == EMBENG_PARTITION_TF;

	if (!o->cores_per_device)
		o->cores_per_device = CORES_DEFAULT;
	if (!o->activation_limit_bytes)
		o->activation_limit_bytes = ACTIVATION_DEFAULT;
	if (!o->shard_limit_bytes)
		o->shard_limit_bytes = tf ? TF_SHARD_DEFAULT : UINT64_MAX;
	if (!o->row_limit)
		o->row_limit = tf ? TF_ROWS_DEFAULT : UINT64_MAX;
	if (!o->table_limit)
		o->table_limit = UINT64_MAX;
	if (!o->rotation_given)
		o->rotation = o->cores_per_device;
}

int stacker_options(struct stacker *s, const struct embeng_stacking_options *options)
{
	struct embeng_stacking_options *o = &s->options;
	int ret;

	if (!options)
		return fail(-EINVAL, WHAT ": no options");
	ret = config_take(o, options, sizeof(*o), "embeng_stacking_options");
	if (ret)
		return ret;
	if (o->profile && o->rotation_given)
		return fail(-EINVAL,
			    WHAT ": rotation %u is given, and a profile, which has its own",
			    o->rotation);
	fill_defaults(o);
	ret = grid_check(WHAT, o->flavour, o->sparse_cores, o->cores_per_device);
	return ret ? ret : check_groups(o);
}
