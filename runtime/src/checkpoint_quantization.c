// SPDX-License-Identifier: MIT
/* A table's simulated quantization in the index. */
#include "checkpoint_index.h"

int index_read_quantization(struct json_object *table, const struct place *at,
			    struct embeng_quantization *out)
{
	struct embeng_quantization read = {0};
	struct json_object *o;
	uint64_t buckets;
	int ret;

	if (!json_object_object_get_ex(table, "quantization", NULL))
		return 0;
	ret = json_member(table, at, "quantization", json_type_object, &o);
	ret = ret ? ret : json_number(o, at, "num_buckets", 2, INT32_MAX, &buckets);
	ret = ret ? ret : json_real(o, at, "lower", NULL, &read.lower);
	ret = ret ? ret : json_real(o, at, "upper", NULL, &read.upper);
	if (ret)
		return ret;
	read.num_buckets = (int64_t)buckets;
	*out = read;
	return 0;
}

void index_add_quantization(struct json_object *table, const struct embeng_quantization *q)
{
	struct json_object *o;

	if (!q->num_buckets)
		return;
	o = json_object_new_object();
	json_object_object_add(o, "num_buckets", json_object_new_int64(q->num_buckets));
	json_object_object_add(o, "lower", json_of_float(q->lower));
	json_object_object_add(o, "upper", json_of_float(q->upper));
	json_object_object_add(table, "quantization", o);
}
