// SPDX-License-Identifier: MIT
/* embeng checkpoint ls */
#include <inttypes.h>
#include <string.h>

#include "checkpoint.h"
#include "transfer.h"

static const char doc[] =
	"Show what a checkpoint holds, without a device.\v"
	"The index and the header of every file are checked, not the rows: embeng checkpoint\n"
	"verify does that. STEP is the optimizer's count of updates.\n\n"
	"  embeng checkpoint ls orders.ckpt\n"
	"  embeng checkpoint ls orders.ckpt --json | jq -r .program_state\n\n"
	"Exit status: 0 ok, 2 usage or no checkpoint there, 4 permission, 11 corrupt.";

static uint64_t table_bytes(const struct embeng_table_config *table, size_t slots)
{
	return (uint64_t)table->vocabulary_size * (uint64_t)table->dim * sizeof(float) * (1 + slots);
}

/* Columns that UTF-8 takes, but for wide and combining characters. */
static int width(const char *text)
{
	int columns = 0;

	for (; *text; text++)
		columns += ((unsigned char)*text & 0xc0) != 0x80;
	return columns;
}

/* A stranger's checkpoint must not speak to the terminal. */
static void print_name(const char *name, int columns)
{
	for (const char *c = name; *c; c++)
		putchar((unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c);
	printf("%*s  ", columns - width(name), "");
}

static void print_table(const struct embeng_model *model, size_t t, int columns)
{
	struct embeng_table_config table = {.size = sizeof(table)};
	size_t slots = embeng_model_slot_count(model, t);
	char size[BYTES_TEXT];

	embeng_model_get_table(model, t, &table);
	print_name(table.name, columns);
	printf("%12" PRId64 "  %4" PRId64 "  %10s  %-16s  ", table.vocabulary_size, table.dim,
	       bytes_text(table_bytes(&table, slots), size), checkpoint_optimizer(&table));
	for (size_t k = 0; k < slots; k++)
		printf("%s%s", k ? ", " : "", embeng_model_slot_name(model, t, k));
	printf("%s\n", slots ? "" : "-");
}

static int print_all(const char *dir, const struct embeng_model *model,
		     const struct embeng_checkpoint_info *info)
{
	size_t tables = embeng_model_table_count(model);
	char size[BYTES_TEXT];
	int columns = 5;

	printf("%s: step %" PRIu64 ", %zu tables, %zu files, %s\n", dir, info->step,
	       info->table_count, info->file_count, bytes_text(info->bytes, size));
	if (info->program_state)
		printf("program state: %s\n", bytes_text(strlen(info->program_state), size));
	for (size_t t = 0; t < tables; t++) {
		int wanted = width(embeng_model_table_name(model, t));

		columns = wanted > columns ? wanted : columns;
	}
	putchar('\n');
	print_name("TABLE", columns);
	printf("%12s  %4s  %10s  %-16s  %s\n", "ROWS", "DIM", "SIZE", "OPTIMIZER", "SLOTS");
	for (size_t t = 0; t < tables; t++)
		print_table(model, t, columns);
	return CLI_OK;
}

static struct json_object *json_table(const struct embeng_model *model, size_t t)
{
	struct json_object *object = json_object_new_object(), *slots = json_object_new_array();
	struct embeng_table_config table = {.size = sizeof(table)};
	size_t count = embeng_model_slot_count(model, t);

	embeng_model_get_table(model, t, &table);
	json_add_text(object, "name", table.name);
	json_add_number(object, "rows", (uint64_t)table.vocabulary_size);
	json_add_number(object, "dim", (uint64_t)table.dim);
	json_add_text(object, "optimizer", checkpoint_optimizer(&table));
	for (size_t k = 0; k < count; k++)
		json_object_array_add(slots,
				      json_object_new_string(embeng_model_slot_name(model, t, k)));
	json_object_object_add(object, "slots", slots);
	json_add_number(object, "bytes", table_bytes(&table, count));
	return object;
}

static int emit(const struct output *out, const char *dir, const struct embeng_model *model,
		const struct embeng_checkpoint_info *info)
{
	struct json_object *d = json_document(out), *tables = json_object_new_array();
	char hash[24];

	snprintf(hash, sizeof(hash), "%016" PRIx64, info->model_hash);
	json_add_text(d, "dir", dir);
	json_add_number(d, "step", info->step);
	json_add_text(d, "model_hash", hash);
	json_add_number(d, "files", info->file_count);
	json_add_number(d, "bytes", info->bytes);
	json_add_number(d, "chunks", info->chunk_count);
	for (size_t t = 0; t < embeng_model_table_count(model); t++)
		json_object_array_add(tables, json_table(model, t));
	json_object_object_add(d, "tables", tables);
	json_add_text(d, "program_state", info->program_state);
	return json_emit(d);
}

int checkpoint_ls(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = checkpoint_parse_dir, .args_doc = "DIR", .doc = doc};
	struct output out = {.verb = "checkpoint", .command = "ls"};
	struct embeng_checkpoint_info info;
	struct embeng_checkpoint *c;
	const char *dir = NULL;
	int code = command_parse(&argp, argc, argv, &out, &dir);

	if (!code)
		code = checkpoint_open(&out, dir, &c, &info);
	if (code)
		return code;
	if (out.json)
		code = emit(&out, dir, embeng_checkpoint_model(c), &info);
	else
		code = print_all(dir, embeng_checkpoint_model(c), &info);
	embeng_checkpoint_close(c);
	return code;
}
