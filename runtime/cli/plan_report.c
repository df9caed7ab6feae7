// SPDX-License-Identifier: MIT
/* A plan in words and as a document. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "exit.h"
#include "plan.h"
#include "transfer.h"

static const char *const kinds[] = {
	[EMBENG_PLAN_TABLE] = "table",
	[EMBENG_PLAN_SLOT] = "slot",
	[EMBENG_PLAN_ENGINE] = "engine",
	[EMBENG_PLAN_INPUT] = "input",
	[EMBENG_PLAN_ACTIVATIONS] = "activations",
	[EMBENG_PLAN_GRADIENTS] = "gradients",
	[EMBENG_PLAN_ROWS] = "row access",
};

static void line(const char *kind, const char *of, const char *slot, uint64_t bytes)
{
	char whose[80], text[BYTES_TEXT];

	snprintf(whose, sizeof(whose), "%.48s%s%.24s", of, *slot ? " " : "", slot);
	printf("%-12s  %-40s  %20" PRIu64 "  %10s\n", kind, whose, bytes, bytes_text(bytes, text));
}

static const char *owner(const struct plan_report *r, const struct embeng_plan_item *item)
{
	if (item->table >= 0)
		return embeng_model_table_name(r->model, (size_t)item->table);
	if (item->feature >= 0)
		return embeng_model_feature_name(r->model, (size_t)item->feature);
	return "-";
}

/* Table memory alone is the device's; a soft device takes all of it from the machine. */
static bool fits_device(const struct plan_report *r)
{
	return r->plan->table_bytes <= r->device->table_memory;
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

static void print_plan(const struct plan_report *r)
{
	printf("%-12s  %-40s  %20s\n", "KIND", "OF", "BYTES");
	for (size_t i = 0; i < r->plan->item_count; i++) {
		const struct embeng_plan_item *item = &r->plan->items[i];

		if (item->bytes)
			line(kinds[item->kind], owner(r, item), item->slot ? item->slot : "",
			     item->bytes);
	}
	line("tables", "", "", r->plan->table_bytes);
	line("buffers", "", "", r->plan->buffer_bytes);
	line("engine", "", "", r->plan->engine_bytes);
	line("total", "", "", r->plan->total_bytes);
	printf("\n");
	say_fit("table memory of the device", r->plan->table_bytes, r->device->table_memory,
		fits_device(r));
	say_fit("available memory of the machine", r->plan->total_bytes, r->available,
		fits_machine(r));
}

static struct json_object *item_document(const struct plan_report *r,
					 const struct embeng_plan_item *item)
{
	struct json_object *document = json_object_new_object();

	json_add_text(document, "kind", kinds[item->kind]);
	json_add_text(document, "table", item->table >= 0 ? owner(r, item) : NULL);
	json_add_text(document, "feature", item->feature >= 0 ? owner(r, item) : NULL);
	json_add_text(document, "slot", item->slot);
	json_add_number(document, "bytes", item->bytes);
	return document;
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
