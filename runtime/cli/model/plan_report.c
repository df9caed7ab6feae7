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

/* Table memory alone is the device's; a soft device takes all of it from the machine. */
static bool fits_tables(const struct plan_report *r)
{
	return r->plan->table_bytes <= r->device->table_memory;
}

static bool fits_device(const struct plan_report *r)
{
	return fits_tables(r) && plan_keeps_limits(r);
}

static bool fits_machine(const struct plan_report *r)
{
	return r->plan->total_bytes <= r->available;
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
	plan_say_limits(r);
	plan_say_fit("table memory of the device", r->plan->table_bytes, r->device->table_memory);
	plan_say_fit("available memory of the machine", r->plan->total_bytes, r->available);
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

static int emit_plan(const struct plan_report *r, const struct output *out)
{
	struct json_object *document = json_document(out), *items = json_object_new_array();
	const struct embeng_plan_options *o = &r->call->options;

	for (size_t i = 0; i < r->plan->item_count; i++)
		json_object_array_add(items, item_document(r, &r->plan->items[i]));
	json_object_object_add(document, "items", items);
	json_add_number(document, "table_bytes", r->plan->table_bytes);
	json_add_number(document, "buffer_bytes", r->plan->buffer_bytes);
	json_add_number(document, "engine_bytes", r->plan->engine_bytes);
	json_add_number(document, "total_bytes", r->plan->total_bytes);
	json_add_number(document, "cores", o->cores);
	json_add_number(document, "step_depth", o->step_depth);
	plan_add_fit(document, r, r->plan->table_bytes, r->plan->total_bytes);
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
