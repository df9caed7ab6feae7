// SPDX-License-Identifier: MIT
/*
 * The command `embeng checkpoint ls`: lists the tables and slots of a checkpoint and their sizes.
 * Only the index and the headers of the shards are read for it, and no rows.
 */
#include <inttypes.h>
#include <string.h>

#include "../frame/terminal.h"
#include "../frame/transfer.h"
#include "commands.h"

static const char doc[] =
	"Show what a checkpoint contains, without a device.\v"
	"The index and the header of every file are checked, but not the rows; embeng\n"
	"checkpoint verify checks those. STEP is the number of updates that the optimizers\n"
	"have applied.\n\n"
	"  embeng checkpoint ls orders.ckpt\n"
	"  embeng checkpoint ls orders.ckpt --json | jq -r .program_state\n\n"
	"Exit status: 0 ok, 2 usage or no checkpoint in DIR, 4 permission, 11 corrupt.";

static uint64_t count_table_bytes(const struct embeng_model *model, size_t t,
				  const struct embeng_table_config *table)
{
	uint64_t row = (uint64_t)table->dim;

	for (size_t k = 0; k < embeng_model_slot_count(model, t); k++)
		row += (uint64_t)embeng_model_slot_width(model, (int)t,
							 embeng_model_slot_name(model, t, k));
	return (uint64_t)table->vocabulary_size * row * sizeof(float);
}

static void print_table(const struct embeng_model *model, size_t t, int columns)
{
	struct embeng_table_config table = EMBENG_INIT(embeng_table_config);
	size_t slots = embeng_model_slot_count(model, t);
	char size[BYTES_TEXT];

	embeng_model_get_table(model, t, &table);
	terminal_print(table.name, columns);
	printf("%12" PRId64 "  %4" PRId64 "  %10s  %-20s  ", table.vocabulary_size, table.dim,
	       bytes_text(count_table_bytes(model, t, &table), size), checkpoint_optimizer(&table));
	for (size_t k = 0; k < slots; k++)
		printf("%s%s", k ? ", " : "", embeng_model_slot_name(model, t, k));
	printf("%s\n", slots ? "" : "-");
}

static int print_checkpoint(const char *dir, const struct embeng_model *model,
			    const struct embeng_checkpoint_info *info)
{
	size_t tables = embeng_model_table_count(model);
	struct embeng_engine_config engine = EMBENG_INIT(embeng_engine_config);
	char size[BYTES_TEXT];
	int columns = 5;

	printf("%s: step %" PRIu64 ", %zu tables, %zu files, %s\n", dir, info->step,
	       info->table_count, info->file_count, bytes_text(info->bytes, size));
	if (info->deltas)
		printf("a full checkpoint and %" PRIu32 " delta%s; embeng checkpoint compact makes "
		       "them one\n",
		       info->deltas, info->deltas == 1 ? "" : "s");
	embeng_model_get_engine(model, &engine);
	if (engine.hosts > 1)
		printf("sharded over %" PRIu32 " hosts, %s\n", engine.hosts,
		       checkpoint_sharding(engine.sharding));
	if (info->program_state)
		printf("program state: %s\n", bytes_text(strlen(info->program_state), size));
	for (size_t t = 0; t < tables; t++) {
		int wanted = terminal_width(embeng_model_table_name(model, t));

		columns = wanted > columns ? wanted : columns;
	}
	putchar('\n');
	terminal_print("TABLE", columns);
	printf("%12s  %4s  %10s  %-20s  %s\n", "ROWS", "DIM", "SIZE", "OPTIMIZER", "SLOTS");
	for (size_t t = 0; t < tables; t++)
		print_table(model, t, columns);
	return CLI_OK;
}

static struct json_object *json_table(const struct embeng_model *model, size_t t)
{
	struct json_object *object = json_object_new_object(), *slots = json_object_new_array();
	struct embeng_table_config table = EMBENG_INIT(embeng_table_config);
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
	json_add_number(object, "bytes", count_table_bytes(model, t, &table));
	return object;
}

static int emit_checkpoint(const struct output *out, const char *dir,
			   const struct embeng_model *model,
			   const struct embeng_checkpoint_info *info)
{
	struct json_object *d = json_document(out), *tables = json_object_new_array();
	struct embeng_engine_config engine = EMBENG_INIT(embeng_engine_config);
	char hash[24];

	snprintf(hash, sizeof(hash), "%016" PRIx64, info->model_hash);
	json_add_text(d, "dir", dir);
	json_add_number(d, "step", info->step);
	json_add_text(d, "model_hash", hash);
	embeng_model_get_engine(model, &engine);
	json_add_number(d, "hosts", engine.hosts);
	json_add_text(d, "sharding", checkpoint_sharding(engine.sharding));
	json_add_number(d, "files", info->file_count);
	json_add_number(d, "bytes", info->bytes);
	json_add_number(d, "deltas", info->deltas);
	json_add_number(d, "chunks", info->chunk_count);
	for (size_t t = 0; t < embeng_model_table_count(model); t++)
		json_object_array_add(tables, json_table(model, t));
	json_object_object_add(d, "tables", tables);
	json_add_text(d, "program_state", info->program_state);
	return json_emit(d);
}

static int run_ls(const struct output *out, const char *dir, const struct embeng_checkpoint *c,
		  const struct embeng_checkpoint_info *info)
{
	const struct embeng_model *model = embeng_checkpoint_model(c);

	return out->json ? emit_checkpoint(out, dir, model, info)
			 : print_checkpoint(dir, model, info);
}

int checkpoint_ls(int argc, char **argv)
{
	static const struct checkpoint_command command = {
		.name = "ls", .doc = doc, .steps = true, .run = run_ls};

	return checkpoint_run(&command, argc, argv);
}
