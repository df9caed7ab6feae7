// SPDX-License-Identifier: MIT
/*
 * Simulated quantization of a table in a checkpoint's index, read and written. It is apart from
 * index_model.c, which would be too long with it.
 *
 * Only arguments are touched; no lock is needed.
 */
#include "index.h"

int index_read_quantization(const struct json *table, const struct place *at,
			    struct embeng_quantization *out)
{
	struct embeng_quantization read = {0};
	const struct json *o;
	uint64_t buckets;
	int ret;

	if (!json_get(table, "quantization"))
		return 0;
	ret = json_member(table, at, "quantization", JSON_OBJECT, &o);
	ret = ret ? ret : json_number(o, at, "num_buckets", 2, INT32_MAX, &buckets);
	ret = ret ? ret : json_real(o, at, "lower", NULL, &read.lower);
	ret = ret ? ret : json_real(o, at, "upper", NULL, &read.upper);
	if (ret)
		return ret;
	read.num_buckets = (int64_t)buckets;
	*out = read;
	return 0;
}

void index_write_quantization(struct json_writer *w, const struct embeng_quantization *q)
{
	if (!q->num_buckets)
		return;
	json_write_object(w, "quantization");
	json_write_number(w, "num_buckets", (uint64_t)q->num_buckets);
	json_write_float(w, "lower", q->lower);
	json_write_float(w, "upper", q->upper);
	json_write_close(w);
}
