// SPDX-License-Identifier: MIT
/*
 * Reports the results of learning, as text or as a document. Both have the same numbers, so they
 * are side by side.
 */
#include <inttypes.h>
#include <string.h>

#include "../../cli/frame/exit.h"
#include "../../cli/frame/transfer.h"
#include "report.h"

#define HOT_SHOWN 5

struct stage {
	const char *name;
	uint64_t ns;
};

#define STAGES 7

static void list_stages(const struct learned *l, struct stage stages[STAGES])
{
	const struct embeng_counter_values *c = &l->counters;
	const struct stage all[STAGES] = {
		{"check", c->time_check_ns},
		{"lookup", c->time_lookup_ns},
		{"partition", c->time_partition_ns},
		{"update", c->time_update_ns},
		{"rings", c->time_ring_ns},
		{"copies", c->time_copy_ns},
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

static void place_text(const struct learned *l, const struct place *at)
{
	if (at->step)
		printf("epoch %" PRId64 " of %" PRId64 ", step %zu of %zu", at->epoch + 1,
		       l->epochs, at->step, l->epoch_steps);
	else
		printf("epoch %" PRId64 " of %" PRId64, at->epoch, l->epochs);
}

/* Items that are in no basket of the data keep what they learned before. */
static size_t count_unused_items(const struct dataset *data)
{
	size_t unused = 0;

	for (size_t k = 0; k < data->items.count; k++)
		unused += !data->uses[k];
	return unused;
}

void report_start(const struct output *out, const struct learned *l)
{
	if (out->json || !l->resumed)
		return;
	printf("Resumed after ");
	place_text(l, &l->from);
	printf(l->from.epoch == l->epochs ? ", the last epoch\n" : "\n");
	if (l->other_data)
		printf("With other data; new items: %zu, items in no basket any more: %zu\n",
		       l->new_items, count_unused_items(l->data));
	if (*l->restored.text)
		printf("Differences:\n%s\n", l->restored.text);
	fflush(stdout);
}

void report_save(const struct output *out, const struct learned *l)
{
	const struct embeng_save_report *r = &l->last_save;
	char size[BYTES_TEXT];

	if (out->json || !l->delta)
		return;
	bytes_text(r->bytes, size);
	if (r->delta)
		printf("Saved delta %" PRIu32 " on the full checkpoint of step %" PRIu64
		       ": %" PRIu64 " rows, %s\n",
		       r->delta, r->base_step, r->rows, size);
	else
		printf("Saved in full: %" PRIu64 " rows, %s; no delta, since %s\n", r->rows, size,
		       r->why_full);
	fflush(stdout);
}

static void text_stages(const struct learned *l)
{
	struct stage stages[STAGES];

	list_stages(l, stages);
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

/* Answers come from the checkpoint if there is one to serve, else from the tables themselves. */
static const struct vectors *choose_vectors(const struct learned *l)
{
	return l->serves ? &l->served : &l->vectors;
}

static void text_checkpoint(const struct learned *l)
{
	char size[BYTES_TEXT];

	if (!l->saves)
		return;
	bytes_text(l->checkpoint_bytes, size);
	if (!l->serves) {
		printf("Saved in %s, %s: embeng checkpoint ls shows it, embeng train --resume "
		       "continues it\n\n",
		       l->checkpoint, size);
		return;
	}
	printf("Saved in %s, %s in %.0f ms%s.\n",
	       l->temporary ? "a temporary folder" : l->checkpoint, size, (double)l->save_ns / 1e6,
	       l->temporary ? " (--save DIR keeps it)" : "");
	printf("The engine is closed; the answers are looked up in that checkpoint, %.0f ms:\n\n",
	       (double)l->serve_ns / 1e6);
}

static void text_answers(const struct learned *l, const uint32_t *queries, size_t count)
{
	for (size_t q = 0; q < count; q++) {
		struct neighbor found[NEIGHBORS];
		size_t n = neighbors_of(choose_vectors(l), l->data->items.count, queries[q], found);

		printf("%s goes with:", l->data->items.text[queries[q]]);
		for (size_t k = 0; k < n; k++)
			printf("%s %s", k ? "," : "", l->data->items.text[found[k].item]);
		printf("\n");
	}
}

static int text_result(const struct learned *l, const uint32_t *queries, size_t count)
{
	printf("\nhit@10     %.3f  share of baskets whose held-out item ranks in the first "
	       "10 of 100\n",
	       l->hit_at_10);
	printf("popularity %.3f  that share when items are ranked by popularity alone\n\n",
	       l->popularity_hit_at_10);
	if (l->steps) {
		text_hot_rows(l);
		text_stages(l);
	}
	printf("%.2f s on %s, %u cores: %" PRIu64 " lookups, %" PRIu64 " updates, %" PRIu64
	       " bytes copied\n\n",
	       l->seconds, l->device.name, l->device.cores, l->counters.lookups,
	       l->counters.updates, l->counters.bytes_copied);
	text_checkpoint(l);
	text_answers(l, queries, count);
	if (!(l->hit_at_10 > l->popularity_hit_at_10))
		printf("Nothing was learned: hit@10 is not above popularity.\n");
	return CLI_OK;
}

static struct json_object *json_hot_rows(const struct learned *l)
{
	struct json_object *rows = json_object_new_array();

	for (size_t k = 0; k < l->stats.hot_count; k++) {
		struct json_object *row = json_object_new_object();

		json_add_text(row, "item", l->data->items.text[l->stats.hot[k].row]);
		json_add_number(row, "row", (uint64_t)l->stats.hot[k].row);
		json_add_number(row, "count", l->stats.hot[k].count);
		json_object_array_add(rows, row);
	}
	return rows;
}

static struct json_object *json_stages(const struct learned *l)
{
	struct json_object *object = json_object_new_object();
	struct stage stages[STAGES];

	list_stages(l, stages);
	for (int k = 0; k < STAGES; k++)
		json_add_float(object, stages[k].name, (double)stages[k].ns / 1e9);
	return object;
}

static struct json_object *json_answers(const struct learned *l, const uint32_t *queries,
					size_t count)
{
	struct json_object *answers = json_object_new_object();

	for (size_t q = 0; q < count; q++) {
		struct json_object *items = json_object_new_array();
		struct neighbor found[NEIGHBORS];
		size_t n = neighbors_of(choose_vectors(l), l->data->items.count, queries[q], found);

		for (size_t k = 0; k < n; k++) {
			struct json_object *item = json_object_new_object();

			json_add_text(item, "item", l->data->items.text[found[k].item]);
			json_add_float(item, "score", found[k].score);
			json_object_array_add(items, item);
		}
		json_object_object_add(answers, l->data->items.text[queries[q]], items);
	}
	return answers;
}

static struct json_object *json_place(const struct place *at)
{
	struct json_object *place = json_object_new_object();

	json_add_number(place, "epoch", (uint64_t)at->epoch);
	json_add_number(place, "step", at->step);
	return place;
}

static struct json_object *json_last_save(const struct embeng_save_report *r)
{
	struct json_object *save = json_object_new_object();

	json_add_number(save, "delta", r->delta);
	json_add_number(save, "rows", r->rows);
	json_add_number(save, "bytes", r->bytes);
	if (r->delta)
		json_add_number(save, "base_step", r->base_step);
	else if (r->why_full[0])
		json_add_text(save, "why_full", r->why_full);
	return save;
}

static struct json_object *json_checkpoint(const struct learned *l)
{
	struct json_object *checkpoint = json_object_new_object();

	json_add_text(checkpoint, "dir", l->temporary ? NULL : l->checkpoint);
	json_object_object_add(checkpoint, "temporary", json_object_new_boolean(l->temporary));
	json_add_number(checkpoint, "bytes", l->checkpoint_bytes);
	json_add_number(checkpoint, "saves", l->saves);
	json_add_float(checkpoint, "save_seconds", (double)l->save_ns / 1e9);
	json_add_number(checkpoint, "deltas", l->deltas);
	json_object_object_add(checkpoint, "last_save", json_last_save(&l->last_save));
	json_object_object_add(checkpoint, "answers", json_object_new_boolean(l->serves));
	if (l->serves)
		json_add_float(checkpoint, "serve_seconds", (double)l->serve_ns / 1e9);
	return checkpoint;
}

static struct json_object *json_stop(const struct learned *l)
{
	struct json_object *stopped = json_place(&l->place);

	json_add_text(stopped, "by", l->stopped == STOP_SIGNAL ? "signal" : "max-steps");
	return stopped;
}

/* A list of the lines of a text. */
static struct json_object *json_lines(const char *text)
{
	struct json_object *list = json_object_new_array();

	while (*text) {
		size_t length = strcspn(text, "\n");
		char line[EMBENG_RESTORE_TEXT];

		snprintf(line, sizeof(line), "%.*s", (int)length, text);
		json_object_array_add(list, json_object_new_string(line));
		text += length + (text[length] == '\n');
	}
	return list;
}

/* The part of the document that does not depend on whether the training has ended. */
static struct json_object *json_training(const struct output *out, const struct learned *l)
{
	struct json_object *d = json_document(out);

	json_add_text(d, "source", l->source);
	json_add_text(d, "note", l->note);
	json_add_number(d, "baskets", l->data->basket_count);
	json_add_number(d, "items", l->data->items.count);
	json_add_number(d, "examples", l->examples);
	json_add_number(d, "epochs", (uint64_t)l->epochs);
	json_add_number(d, "seed", (uint64_t)l->settings->seed);
	json_add_number(d, "steps", (uint64_t)l->steps);
	json_add_float(d, "loss", l->loss);
	json_object_object_add(d, "resumed", l->resumed ? json_place(&l->from) : NULL);
	if (l->resumed)
		json_object_object_add(d, "differences", json_lines(l->restored.text));
	if (l->other_data) {
		json_add_number(d, "new_items", l->new_items);
		json_add_number(d, "unused_items", count_unused_items(l->data));
	}
	json_object_object_add(d, "stopped", l->stopped ? json_stop(l) : NULL);
	json_object_object_add(d, "checkpoint", l->saves ? json_checkpoint(l) : NULL);
	return d;
}

int report_stopped(const struct output *out, const struct learned *l)
{
	if (out->json)
		return json_emit(json_training(out, l));
	printf("Stopped by %s after ", l->stopped == STOP_SIGNAL ? "a signal" : "--max-steps");
	place_text(l, &l->place);
	if (l->checkpoint && !l->serves)
		printf("\nSaved in %s; to go on: embeng train %s --resume %s\n", l->checkpoint,
		       l->source, l->checkpoint);
	else
		printf("; nothing is saved\n");
	return CLI_OK;
}

static int json_result(const struct output *out, const struct learned *l, const uint32_t *queries,
		       size_t count)
{
	struct json_object *d = json_training(out, l);

	json_add_float(d, "hit_at_10", l->hit_at_10);
	json_add_float(d, "popularity_hit_at_10", l->popularity_hit_at_10);
	json_add_float(d, "seconds", l->seconds);
	json_add_number(d, "lookups", l->counters.lookups);
	json_add_number(d, "updates", l->counters.updates);
	json_add_number(d, "bytes_copied", l->counters.bytes_copied);
	json_add_text(d, "device", l->device.name);
	json_add_number(d, "cores", l->device.cores);
	json_object_object_add(d, "stage_seconds", json_stages(l));
	json_object_object_add(d, "hot_rows", json_hot_rows(l));
	json_object_object_add(d, "goes_with", json_answers(l, queries, count));
	return json_emit(d);
}

int report_result(const struct output *out, const struct learned *l, const uint32_t *queries,
		  size_t count)
{
	int code = out->json ? json_result(out, l, queries, count) : text_result(l, queries, count);

	if (code != CLI_OK)
		return code;
	return l->hit_at_10 > l->popularity_hit_at_10 ? CLI_OK : CLI_CHECK;
}
