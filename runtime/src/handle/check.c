// SPDX-License-Identifier: MIT
/*
 * Checks that every call begins with: the handle, the replica, and arguments against the model of
 * the handle. Batches, sessions and all that is built on them begin with these, so they stand
 * below all of them. Only what is constant as long as a handle lives is read: no lock is needed.
 */
#include "session/session.h"
#include "sparsecore/partition.h"

int session_check(const struct embeng *e, const char *call)
{
	if (!e)
		return fail(-EINVAL, "%s: no handle given", call);
	if (fork_generation() != e->fork)
		return fail(-ENOTSUP,
			    "%s: this process was forked from the one that opened the device; "
			    "open it again here",
			    call);
	return 0;
}

int session_check_alone(const struct embeng *e, const char *call)
{
	int ret = session_check(e, call);

	if (!ret && e->calls)
		ret = fail(-ENOTSUP,
			   "%s: the tables of this handle lie on the hosts of a group, where this "
			   "call is not possible; open the device without a group for it",
			   call);
	return ret;
}

static int check_replica_exists(const struct embeng *e, uint32_t replica, const char *call)
{
	int ret = session_check(e, call);

	if (!ret && replica >= e->replica_count)
		ret = fail(-ERANGE, "%s: replica %u, the model has %u", call, replica,
			   e->replica_count);
	return ret;
}

int session_check_replica(const struct embeng *e, uint32_t replica, const char *call)
{
	int ret = check_replica_exists(e, replica, call);

	if (ret || !e->calls || replica - e->first_replica < e->local_replicas)
		return ret;
	if (!e->local_replicas)
		return fail(-ERANGE,
			    "%s: replica %u is another host's; this host has none, since the group "
			    "has more hosts than the model has replicas (embeng_info())",
			    call, replica);
	return fail(-ERANGE,
		    "%s: replica %u is another host's; this host has replicas %u to %u "
		    "(embeng_info())",
		    call, replica, e->first_replica, e->first_replica + e->local_replicas - 1);
}

int session_check_feeder(const struct embeng *e, uint32_t replica, enum embeng_mode mode,
			 const char *call)
{
	return mode == EMBENG_INFERENCE ? check_replica_exists(e, replica, call)
					: session_check_replica(e, replica, call);
}

const struct embeng_model *embeng_get_model(const struct embeng *e)
{
	return e ? e->model : NULL;
}

int check_stacking(const char *what, const struct embeng *e, const struct embeng_stacking *stacking)
{
	if (!stacking)
		return fail(-EINVAL, "%s: no stacking", what);
	if (stacking->model_hash != embeng_model_hash(e->model))
		return fail(-EINVAL, "%s: the stacking is one of another model", what);
	return 0;
}
