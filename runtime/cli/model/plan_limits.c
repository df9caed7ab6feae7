// SPDX-License-Identifier: MIT
/*
 * Compares a plan with the device and the machine. It is a file because plans of one process and of
 * several hosts are compared alike; on several hosts it is the host with the most that counts.
 *
 * Nothing is kept; documents belong to the caller.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "../frame/exit.h"
#include "../frame/transfer.h"
#include "embeng/group.h"
#include "plan.h"

/* A limit of the device, or of all hosts together, other than memory. */
struct limit {
	const char *name, *table; /* or NULL: it is about no table alone */
	uint64_t need, most;
	bool of_hosts;
};

#define LIMITS 4

/* Columns of a table that one host has at the most. */
static int64_t columns_of(const struct plan_report *r, size_t t)
{
	struct embeng_table_config table = EMBENG_INIT(embeng_table_config);
	int64_t most = 0;

	embeng_model_get_table(r->model, t, &table);
	if (!r->hosts || r->hosts->tables[t].chosen)
		return table.dim;
	for (size_t i = 0; i < r->hosts->tables[t].part_count; i++) {
		const size_t part = r->hosts->tables[t].first_part + i;
		const int64_t columns = r->hosts->parts[part].columns;

		most = columns > most ? columns : most;
	}
	return most;
}

/* Index of the widest table, the first of those that are as wide; 0 if there is none. */
static size_t find_widest(const struct plan_report *r, int64_t *dim)
{
	size_t widest = 0;

	*dim = 0;
	for (size_t t = 0; t < embeng_model_table_count(r->model); t++) {
		const int64_t columns = columns_of(r, t);

		if (columns <= *dim)
			continue;
		*dim = columns;
		widest = t;
	}
	return widest;
}

/* Tables that the host with the most has rows or columns of. */
static uint64_t count_most_tables(const struct plan_report *r)
{
	const struct embeng_hosts_plan *plan = r->hosts;
	uint64_t on_all = 0, most = 0, *own;

	if (!plan)
		return embeng_model_table_count(r->model);
	own = calloc(plan->hosts, sizeof(*own));
	if (!own)
		return embeng_model_table_count(r->model);
	for (size_t t = 0; t < plan->table_count; t++)
		on_all += plan->tables[t].chosen != 0;
	for (size_t i = 0; i < plan->part_count; i++) {
		const struct embeng_hosts_part *part = &plan->parts[i];

		if (plan->tables[part->table].chosen)
			continue;
		own[part->host]++;
		most = own[part->host] > most ? own[part->host] : most;
	}
	free(own);
	return on_all + most;
}

static void fill_limits(const struct plan_report *r, struct limit limits[LIMITS])
{
	struct embeng_engine_config engine = EMBENG_INIT(embeng_engine_config);
	int64_t dim;
	const char *widest = embeng_model_table_name(r->model, find_widest(r, &dim));

	embeng_model_get_engine(r->model, &engine);
	limits[0] = (struct limit){"replicas", NULL, engine.replicas, r->device->replicas, false};
	if (r->hosts)
		limits[0] = (struct limit){"replicas", NULL, engine.replicas,
					   EMBENG_GROUP_REPLICAS_MOST, true};
	limits[1] = (struct limit){"step depth", NULL, r->call->options.step_depth,
				   r->device->step_depth, false};
	limits[2] = (struct limit){"tables", NULL, count_most_tables(r), r->device->tables, false};
	limits[3] = (struct limit){"dim", widest, (uint64_t)dim, r->device->dim, false};
}

uint64_t plan_most_tables(const struct embeng_hosts_plan *plan)
{
	uint64_t most = 0;

	for (uint32_t h = 0; h < plan->hosts; h++)
		most = plan->each[h].table_bytes > most ? plan->each[h].table_bytes : most;
	return most;
}

bool plan_keeps_limits(const struct plan_report *r)
{
	struct limit limits[LIMITS];
	bool keeps = true;

	fill_limits(r, limits);
	for (int k = 0; k < LIMITS; k++)
		keeps &= limits[k].need <= limits[k].most;
	return keeps;
}

void plan_say_fit(const char *where, uint64_t need, uint64_t room)
{
	char wanted[BYTES_TEXT], there[BYTES_TEXT];

	printf("%s: %s of %s, %s\n", where, bytes_text(need, wanted), bytes_text(room, there),
	       need <= room ? "fits" : "does NOT fit");
}

void plan_say_limits(const struct plan_report *r)
{
	struct limit limits[LIMITS];

	fill_limits(r, limits);
	for (int k = 0; k < LIMITS; k++)
		if (limits[k].need > limits[k].most)
			printf("%s%s%s: %" PRIu64 ", %s %" PRIu64 ", does NOT fit\n",
			       limits[k].name, limits[k].table ? " of table " : "",
			       limits[k].table ? limits[k].table : "", limits[k].need,
			       limits[k].of_hosts ? "all hosts together have" : "the device has",
			       limits[k].most);
}

/* Lists them for a document. */
static struct json_object *list_exceeded(const struct plan_report *r)
{
	struct json_object *list = json_object_new_array();
	struct limit limits[LIMITS];

	fill_limits(r, limits);
	for (int k = 0; k < LIMITS; k++) {
		struct json_object *o;

		if (limits[k].need <= limits[k].most)
			continue;
		o = json_object_new_object();
		json_add_text(o, "limit", limits[k].name);
		if (limits[k].table)
			json_add_text(o, "table", limits[k].table);
		json_add_number(o, "needed", limits[k].need);
		json_add_number(o, "most", limits[k].most);
		json_object_array_add(list, o);
	}
	return list;
}

void plan_add_fit(struct json_object *document, const struct plan_report *r, uint64_t tables,
		  uint64_t all)
{
	const bool device = tables <= r->device->table_memory && plan_keeps_limits(r);
	const bool machine = all <= r->available;

	json_add_text(document, "device", r->device->name);
	json_add_number(document, "table_memory", r->device->table_memory);
	json_add_number(document, "machine_memory", r->memory);
	json_add_number(document, "available_memory", r->available);
	json_object_object_add(document, "beyond", list_exceeded(r));
	json_object_object_add(document, "fits_device", json_object_new_boolean(device));
	json_object_object_add(document, "fits_machine", json_object_new_boolean(machine));
	json_object_object_add(document, "fits", json_object_new_boolean(device && machine));
}
