// SPDX-License-Identifier: MIT
/*
 * Makes the document of a sample: the counts as they were read, and their rates. A number that is not
 * known is null, so that scripts can tell it from 0.
 *
 * The document belongs to the caller.
 */
#include "documents.h"

#include <math.h>
#include <string.h>

#include "page.h"

static const char *const count_keys[COUNTS] = {
#define KEY(name, key, file) key,
	COUNT_TABLE(KEY)
#undef KEY
};

static const char *const gauge_keys[GAUGES] = {
#define KEY(name, key) key,
	GAUGE_TABLE(KEY)
#undef KEY
};

static const char *const context_keys[FDINFO_NUMBERS] = {
#define KEY(name, key, json, words) json,
	FDINFO_TABLE(KEY)
#undef KEY
};

static void add_known_number(struct json_object *to, const char *key, bool known, uint64_t number)
{
	json_object_object_add(to, key, known ? json_object_new_uint64(number) : NULL);
}

static void add_rate(struct json_object *to, const char *key, double rate)
{
	json_object_object_add(to, key, isnan(rate) ? NULL : json_float(rate));
}

static void add_gauges(struct json_object *to, const struct sample_device *device)
{
	for (size_t i = 0; i < GAUGES; i++) {
		bool known = device->gauged & 1u << i;

		json_object_object_add(to, gauge_keys[i],
				       known ? json_object_new_int64(device->gauges[i]) : NULL);
	}
}

static struct json_object *document_rated_device(const struct rated_device *rated)
{
	struct json_object *document = json_object_new_object();
	struct json_object *counts = json_object_new_object();
	struct json_object *rates = json_object_new_object();
	const struct sample_device *device = rated->now;
	char state[CELL_BYTES];

	json_add_text(document, "address", device->address);
	json_add_text(document, "node", device->node);
	json_add_text(document, "driver", device->driver);
	json_add_text(document, "state", page_device_state(device, state));
	json_add_text(document, "link", device->link);
	json_add_text(document, "firmware", device->firmware);
	json_add_number(document, "cores", device->cores);
	add_rate(document, "busy", rated->busy);
	add_gauges(document, device);
	for (size_t i = 0; i < COUNTS; i++) {
		add_known_number(counts, count_keys[i], device->known & 1u << i, device->counts[i]);
		add_rate(rates, count_keys[i], rated->rates[i]);
	}
	json_object_object_add(document, "counts", counts);
	json_object_object_add(document, "per_second", rates);
	return document;
}

static struct json_object *document_queue(const struct sample_queue *queue)
{
	struct json_object *document = json_object_new_object();

	json_add_number(document, "queue", queue->number);
	json_add_text(document, "kind", sample_queue_kind(queue));
	json_add_text(document, "path", queue->mapped ? "mapped" : "validated");
	json_add_number(document, "pending", queue->tail - queue->head);
	json_add_text(document, "waits_for", sample_queue_wait(queue));
	json_add_number(document, "replica", queue->replica);
	json_add_number(document, "step", queue->step);
	return document;
}

static struct json_object *document_hot_table(const struct hot_table *table)
{
	struct json_object *document = json_object_new_object();
	struct json_object *rows = json_object_new_array();

	json_add_number(document, "table", table->table);
	json_add_number(document, "ids", table->ids);
	add_rate(document, "ids_per_second", table->ids_rate);
	json_add_number(document, "unique_ids", table->unique_ids);
	json_add_number(document, "steps", table->steps);
	json_add_number(document, "hot_error", table->error);
	for (size_t i = 0; i < table->row_count; i++) {
		struct json_object *row = json_object_new_object();

		json_add_number(row, "row", table->rows[i].row);
		json_add_number(row, "count", table->rows[i].count);
		json_object_array_add(rows, row);
	}
	json_object_object_add(document, "rows", rows);
	return document;
}

/* null: nobody asked for it. */
static struct json_object *document_hot_look(const struct hot_look *look)
{
	struct json_object *document, *tables;

	if (!look)
		return NULL;
	document = json_object_new_object();
	tables = json_object_new_array();
	json_object_object_add(document, "reason",
			       *look->reason ? json_object_new_string(look->reason) : NULL);
	add_known_number(document, "table_count", look->model_tables != 0, look->model_tables);
	for (size_t i = 0; i < look->count; i++)
		json_object_array_add(tables, document_hot_table(&look->tables[i]));
	json_object_object_add(document, "tables", tables);
	return document;
}

/* null: the driver told this process nothing of queues. */
static struct json_object *document_queues(const struct sample *sample,
					   const struct sample_context *context)
{
	struct json_object *queues;

	if (sample->queues_hidden)
		return NULL;
	queues = json_object_new_array();
	for (size_t i = 0; i < sample->queue_count; i++) {
		if (page_queue_is_of(&sample->queues[i], context))
			json_object_array_add(queues, document_queue(&sample->queues[i]));
	}
	return queues;
}

static struct json_object *document_rated_context(const struct rated_context *rated,
						  const struct sample *sample)
{
	struct json_object *document = json_object_new_object();
	struct json_object *counts = json_object_new_object();
	struct json_object *rates = json_object_new_object();
	const struct sample_context *context = rated->now;

	json_add_number(document, "pid", context->pid);
	json_add_text(document, "program", context->program);
	json_add_text(document, "device", context->info.address);
	add_known_number(document, "client", context->info.has_client, context->info.client);
	json_add_number(document, "processes", context->processes);
	json_add_number(document, "descriptors", context->descriptors);
	add_rate(document, "busy", rated->busy);
	add_rate(document, "waits_per_second", rates_context_waits(rated));
	for (size_t i = 0; i < FDINFO_NUMBERS; i++) {
		add_known_number(counts, context_keys[i], context->info.known & 1u << i,
				 context->info.numbers[i]);
		add_rate(rates, context_keys[i], rated->rates[i]);
	}
	json_object_object_add(document, "counts", counts);
	json_object_object_add(document, "per_second", rates);
	json_object_object_add(document, "queue_list", document_queues(sample, context));
	json_object_object_add(document, "hot", document_hot_look(rated->hot));
	return document;
}

struct json_object *top_document(const struct output *out, const struct rates *rates)
{
	struct json_object *document = json_document(out);
	struct json_object *devices = json_object_new_array();
	struct json_object *contexts = json_object_new_array();
	const struct sample *sample = rates->sample;

	json_add_number(document, "time_ns", sample->time_ns);
	add_rate(document, "seconds", rates->seconds > 0 ? rates->seconds : NAN);
	json_add_number(document, "hidden_processes", sample->hidden);
	for (size_t i = 0; i < sample->device_count; i++)
		json_object_array_add(devices, document_rated_device(&rates->devices[i]));
	for (size_t i = 0; i < sample->context_count; i++)
		json_object_array_add(contexts,
				      document_rated_context(&rates->contexts[i], sample));
	json_object_object_add(document, "devices", devices);
	json_object_object_add(document, "contexts", contexts);
	return document;
}
