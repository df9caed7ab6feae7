// SPDX-License-Identifier: MIT
/*
 * Reports a plan in words or as a document, and says whether it fits the device and the machine. A
 * plan that does not fit says which part of the device there is too little of.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../frame/exit.h"
#include "../frame/transfer.h"
#include "plan.h"

static const char *const item_kinds[] = {
	[EMBENG_PLAN_TABLE] = "table",
	[EMBENG_PLAN_SLOT] = "slot",
	[EMBENG_PLAN_ENGINE] = "engine",
	[EMBENG_PLAN_INPUT] = "input",
	[EMBENG_PLAN_ACTIVATIONS] = "activations",
	[EMBENG_PLAN_GRADIENTS] = "gradients",
	[EMBENG_PLAN_ROWS] = "row access",
};

static void print_line(const char *kind, const char *of, const char *slot, uint64_t bytes)
{
	char whose[80], text[BYTES_TEXT];

	snprintf(whose, sizeof(whose), "%.48s%s%.24s", of, *slot ? " " : "", slot);
	printf("%-12s  %-40s  %20" PRIu64 "  %10s\n", kind, whose, bytes, bytes_text(bytes, text));
}

static const char *name_owner(const struct plan_report *r, const struct embeng_plan_item *item)
{
	if (item->table >= 0)
		return embeng_model_table_name(r->model, (size_t)item->table);
	if (item->feature >= 0)
		return embeng_model_feature_name(r->model, (size_t)item->feature);
	return "-";
}

/* A limit of the device other than memory. */
struct limit {
	const char *name, *table; /* or NULL: it is about no table alone */
	uint64_t need, most;
};

#define LIMITS 4

/* Index of the widest table, the first of those that are as wide; 0 if there is none. */
static size_t find_widest(const struct embeng_model *model, int64_t *dim)
{
	struct embeng_table_config table = EMBENG_INIT(embeng_table_config);
	size_t widest = 0;

	*dim = 0;
	for (size_t t = 0; t < embeng_model_table_count(model); t++) {
		embeng_model_get_table(model, t, &table);
		if (table.dim <= *dim)
			continue;
		*dim = table.dim;
		widest = t;
	}
	return widest;
}

static void fill_limits(const struct plan_report *r, struct limit limits[LIMITS])
{
	struct embeng_engine_config engine = EMBENG_INIT(embeng_engine_config);
	int64_t dim;
	const char *widest = embeng_model_table_name(r->model, find_widest(r->model, &dim));

	embeng_model_get_engine(r->model, &engine);
	limits[0] = (struct limit){"replicas", NULL, engine.replicas, r->device->replicas};
	limits[1] = (struct limit){"step depth", NULL, r->call->options.step_depth,
				   r->device->step_depth};
	limits[2] = (struct limit){"tables", NULL, embeng_model_table_count(r->model),
				   r->device->tables};
	limits[3] = (struct limit){"dim", widest, (uint64_t)dim, r->device->dim};
}

/* Table memory alone is the device's; a soft device takes all of it from the machine. */
static bool fits_tables(const struct plan_report *r)
{
	return r->plan->table_bytes <= r->device->table_memory;
}

static bool fits_device(const struct plan_report *r)
{
	bool fits = fits_tables(r);
	struct limit limits[LIMITS];

	fill_limits(r, limits);
	for (int k = 0; k < LIMITS; k++)
		fits &= limits[k].need <= limits[k].most;
	return fits;
}

static bool fits_machine(const struct plan_report *r)
{
	return r->plan->total_bytes <= r->available;
}

static void say_fit(const char *where, uint64_t need, uint64_t room, bool fits)
{
	char wanted[BYTES_TEXT], there[BYTES_TEXT];

	printf("%s: %s of %s, %s\n", where, bytes_text(need, wanted), bytes_text(room, there),
	       fits ? "fits" : "does NOT fit");
}

static void say_limits(const struct plan_report *r)
{
	struct limit limits[LIMITS];

	fill_limits(r, limits);
	for (int k = 0; k < LIMITS; k++)
		if (limits[k].need > limits[k].most)
			printf("%s%s%s: %" PRIu64 ", the device has %" PRIu64 ", does NOT fit\n",
			       limits[k].name, limits[k].table ? " of table " : "",
			       limits[k].table ? limits[k].table : "", limits[k].need,
			       limits[k].most);
}

static void print_plan(const struct plan_report *r)
{
	printf("%-12s  %-40s  %20s\n", "KIND", "NAME", "BYTES");
	for (size_t i = 0; i < r->plan->item_count; i++) {
		const struct embeng_plan_item *item = &r->plan->items[i];

		if (item->bytes)
			print_line(item_kinds[item->kind], name_owner(r, item),
				   item->slot ? item->slot : "", item->bytes);
	}
	print_line("tables", "", "", r->plan->table_bytes);
	print_line("buffers", "", "", r->plan->buffer_bytes);
	print_line("engine", "", "", r->plan->engine_bytes);
	print_line("total", "", "", r->plan->total_bytes);
	printf("\n");
	say_limits(r);
	say_fit("table memory of the device", r->plan->table_bytes, r->device->table_memory,
		fits_tables(r));
	say_fit("available memory of the machine", r->plan->total_bytes, r->available,
		fits_machine(r));
}

static struct json_object *item_document(const struct plan_report *r,
					 const struct embeng_plan_item *item)
{
	struct json_object *document = json_object_new_object();

	json_add_text(document, "kind", item_kinds[item->kind]);
	json_add_text(document, "table", item->table >= 0 ? name_owner(r, item) : NULL);
	json_add_text(document, "feature", item->feature >= 0 ? name_owner(r, item) : NULL);
	json_add_text(document, "slot", item->slot);
	json_add_number(document, "bytes", item->bytes);
	return document;
}

/* Lists the limits of the device that the model exceeds. */
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

static int emit_plan(const struct plan_report *r, const struct output *out)
{
	struct json_object *document = json_document(out), *items = json_object_new_array();
	const struct embeng_plan_options *o = &r->call->options;
	bool fits = fits_device(r) && fits_machine(r);

	for (size_t i = 0; i < r->plan->item_count; i++)
		json_object_array_add(items, item_document(r, &r->plan->items[i]));
	json_object_object_add(document, "items", items);
	json_add_number(document, "table_bytes", r->plan->table_bytes);
	json_add_number(document, "buffer_bytes", r->plan->buffer_bytes);
	json_add_number(document, "engine_bytes", r->plan->engine_bytes);
	json_add_number(document, "total_bytes", r->plan->total_bytes);
	json_add_number(document, "cores", o->cores);
	json_add_number(document, "step_depth", o->step_depth);
	json_add_text(document, "device", r->device->name);
	json_add_number(document, "table_memory", r->device->table_memory);
	json_add_number(document, "machine_memory", r->memory);
	json_add_number(document, "available_memory", r->available);
	json_object_object_add(document, "beyond", list_exceeded(r));
	json_object_object_add(document, "fits_device", json_object_new_boolean(fits_device(r)));
	json_object_object_add(document, "fits_machine", json_object_new_boolean(fits_machine(r)));
	json_object_object_add(document, "fits", json_object_new_boolean(fits));
	return json_emit(document);
}

int plan_say(const struct plan_report *report, const struct output *out)
{
	bool fits = fits_device(report) && fits_machine(report);
	int code = CLI_OK;

	if (out->json)
		code = emit_plan(report, out);
	else
		print_plan(report);
	return code ? code : fits ? CLI_OK : CLI_CHECK;
}
