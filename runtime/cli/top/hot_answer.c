// SPDX-License-Identifier: MIT
/*
 * Takes the counts of a table out of the device's answer. The answer stood in memory where the other
 * program may write, so nothing of it is believed that would be used as a length. It is apart from the
 * asking, which needs a device.
 *
 * Nothing is kept here.
 */
#include "hot.h"

#include <math.h>
#include <string.h>

bool hot_read(const struct embeng_stats *stats, uint32_t table, struct hot_table *out)
{
	if (stats->table != table || stats->hot_count > EMBENG_STATS_HOT)
		return false;
	*out = (struct hot_table){
		.table = table,
		.ids = stats->ids,
		.unique_ids = stats->unique_ids,
		.steps = stats->steps,
		.error = stats->hot_error,
		.ids_rate = NAN,
		.row_count = (size_t)stats->hot_count,
	};
	memcpy(out->rows, stats->hot, out->row_count * sizeof(*out->rows));
	return true;
}
