// SPDX-License-Identifier: MIT
/* Prints a training's results. */
#include <inttypes.h>

#include "exit.h"
#include "report.h"

#define HOT_SHOWN 5

struct stage {
	const char *name;
	uint64_t ns;
};

#define STAGES 7

static void stages_of(const struct learned *l, struct stage stages[STAGES])
{
	const struct embeng_counter_values *c = &l->counters;
	const struct stage all[STAGES] = {
		{"check", c->time_check_ns},	 {"lookup", c->time_lookup_ns},
		{"partition", c->time_partition_ns}, {"update", c->time_update_ns},
		{"rings", c->time_ring_ns},	 {"copies", c->time_copy_ns},
		{"dense", l->dense_ns},
	};

	for (int k = 0; k < STAGES; k++)
		stages[k] = all[k];
}

void report_data(const struct output *out, const struct learned *l)
{
	const struct dataset *d = l->data;

	if (out->json)
		return;
	printf("Data: %s\n", l->source);
	if (l->note)
		printf("      %s\n", l->note);
	printf("      %zu baskets, %zu items, %zu uses\n", d->basket_count, d->items.count,
	       d->start[d->basket_count]);
	fflush(stdout);
}

static void text_stages(const struct learned *l)
{
	struct stage stages[STAGES];

	stages_of(l, stages);
	printf("Time per stage, ms:");
	for (int k = 0; k < STAGES; k++)
		printf(" %s %.1f%s", stages[k].name, (double)stages[k].ns / 1e6,
		       k == STAGES - 1 ? " (in the program)\n" : ",");
}

static void text_hot_rows(const struct learned *l)
{
	printf("Hottest rows:");
	for (size_t k = 0; k < l->stats.hot_count && k < HOT_SHOWN; k++)
		printf("%s %s (%" PRIu64 ")", k ? "," : "",
		       l->data->items.text[l->stats.hot[k].row], l->stats.hot[k].count);
	printf("\n");
}

static void text_answers(const struct learned *l, const uint32_t *queries, size_t count)
{
	for (size_t q = 0; q < count; q++) {
		struct neighbor found[NEIGHBORS];
		size_t n = neighbors_of(&l->vectors, l->data->items.count, queries[q], found);

		printf("What goes with %s:", l->data->items.text[queries[q]]);
		for (size_t k = 0; k < n; k++)
			printf("%s %s", k ? "," : "", l->data->items.text[found[k].item]);
		printf("\n");
	}
}

static int text_result(const struct learned *l, const uint32_t *queries, size_t count)
{
	printf("\nhit@10     %.3f  the item held out ranks in the first 10 of 100\n", l->hit_at_10);
	printf("popularity %.3f  the same draw, ranked by use alone\n\n", l->popularity_hit_at_10);
	text_hot_rows(l);
	text_stages(l);
	printf("%.2f s on %s, %u cores: %" PRIu64 " lookups, %" PRIu64 " updates, %" PRIu64
	       " bytes copied\n\n",
	       l->seconds, l->device.name, l->device.cores, l->counters.lookups,
	       l->counters.updates, l->counters.bytes_copied);
	text_answers(l, queries, count);
	if (!(l->hit_at_10 > l->popularity_hit_at_10))
		printf("Nothing was learned: hit@10 is not above popularity.\n");
	return fflush(stdout) ? CLI_DEVICE : CLI_OK;
}

static void add_number(struct json_object *to, const char *key, double value)
{
	json_object_object_add(to, key, json_float(value));
}

static void add_count(struct json_object *to, const char *key, uint64_t value)
{
	json_object_object_add(to, key, json_object_new_int64((int64_t)value));
}

static void add_text(struct json_object *to, const char *key, const char *value)
{
	json_object_object_add(to, key, value ? json_object_new_string(value) : NULL);
}

static struct json_object *json_hot_rows(const struct learned *l)
{
	struct json_object *rows = json_object_new_array();

	for (size_t k = 0; k < l->stats.hot_count; k++) {
		struct json_object *row = json_object_new_object();

		add_text(row, "item", l->data->items.text[l->stats.hot[k].row]);
		add_count(row, "row", (uint64_t)l->stats.hot[k].row);
		add_count(row, "count", l->stats.hot[k].count);
		json_object_array_add(rows, row);
	}
	return rows;
}

static struct json_object *json_stages(const struct learned *l)
{
	struct json_object *object = json_object_new_object();
	struct stage stages[STAGES];

	stages_of(l, stages);
	for (int k = 0; k < STAGES; k++)
		add_number(object, stages[k].name, (double)stages[k].ns / 1e9);
	return object;
}

static struct json_object *json_answers(const struct learned *l, const uint32_t *queries,
					size_t count)
{
	struct json_object *answers = json_object_new_object();

	for (size_t q = 0; q < count; q++) {
		struct json_object *items = json_object_new_array();
		struct neighbor found[NEIGHBORS];
		size_t n = neighbors_of(&l->vectors, l->data->items.count, queries[q], found);

		for (size_t k = 0; k < n; k++) {
			struct json_object *item = json_object_new_object();

			add_text(item, "item", l->data->items.text[found[k].item]);
			add_number(item, "score", found[k].score);
			json_object_array_add(items, item);
		}
		json_object_object_add(answers, l->data->items.text[queries[q]], items);
	}
	return answers;
}

static int json_result(const struct output *out, const struct learned *l, const uint32_t *queries,
		       size_t count)
{
	struct json_object *d = json_document(out);

	add_text(d, "source", l->source);
	add_text(d, "note", l->note);
	add_number(d, "hit_at_10", l->hit_at_10);
	add_number(d, "popularity_hit_at_10", l->popularity_hit_at_10);
	add_count(d, "baskets", l->data->basket_count);
	add_count(d, "items", l->data->items.count);
	add_count(d, "examples", l->examples);
	add_count(d, "epochs", (uint64_t)l->epochs);
	add_count(d, "seed", l->settings->seed);
	add_number(d, "loss", l->loss);
	add_number(d, "seconds", l->seconds);
	add_count(d, "lookups", l->counters.lookups);
	add_count(d, "updates", l->counters.updates);
	add_count(d, "bytes_copied", l->counters.bytes_copied);
	add_text(d, "device", l->device.name);
	add_count(d, "cores", l->device.cores);
	json_object_object_add(d, "stage_seconds", json_stages(l));
	json_object_object_add(d, "hot_rows", json_hot_rows(l));
	json_object_object_add(d, "goes_with", json_answers(l, queries, count));
	return json_emit(d);
}

int report_result(const struct output *out, const struct learned *l, const uint32_t *queries,
		  size_t count)
{
	int code = out->json ? json_result(out, l, queries, count)
			     : text_result(l, queries, count);

	if (code != CLI_OK)
		return code;
	return l->hit_at_10 > l->popularity_hit_at_10 ? CLI_OK : CLI_CHECK;
}
