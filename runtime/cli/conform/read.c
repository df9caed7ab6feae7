// SPDX-License-Identifier: MIT
/*
 * Reads parts of a step's body that several verbs have: the replica, a count, the flavour of
 * partitions, and how many elements a shape has.
 */
#include <errno.h>
#include <string.h>

#include "run.h"
#include "value.h"

int step_replica(struct run *r, const struct json *body, uint32_t *replica)
{
	int64_t given = integer_member(body, "replica", 0);

	if (given < 0 || given > UINT32_MAX)
		return run_fail(r, -ERANGE, "there is no replica %lld", (long long)given);
	*replica = (uint32_t)given;
	return 0;
}

int read_count(struct run *r, const struct json *body, const char *key, int64_t otherwise,
	       int64_t least, uint64_t *out)
{
	int64_t value = integer_member(body, key, otherwise);

	if (value < least || value > INT32_MAX)
		return run_fail(r, -ERANGE, "%s is %lld; it must be %lld to %d", key,
				(long long)value, (long long)least, INT32_MAX);
	*out = (uint64_t)value;
	return 0;
}

int read_partition_flavour(struct run *r, const struct json *body,
			   enum embeng_partition_flavour *flavour)
{
	const char *name = text_member(body, "flavour", "");

	*flavour = strcmp(name, "jax") ? EMBENG_PARTITION_TF : EMBENG_PARTITION_JAX;
	if (strcmp(name, "tf") && strcmp(name, "jax"))
		return run_fail(r, -EINVAL, "there is no flavour '%s'; give tf or jax", name);
	return 0;
}

size_t shape_elements(const struct output_shape *shape)
{
	size_t count = 1;

	for (size_t i = 0; i < shape->rank; i++)
		count *= (size_t)shape->shape[i];
	return count;
}
