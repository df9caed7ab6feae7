// SPDX-License-Identifier: MIT
/*
 * The command `embeng checkpoint verify`: checks all chunks of a checkpoint against their
 * checksums.
 */
#include <inttypes.h>

#include "../frame/interrupt.h"
#include "../frame/transfer.h"
#include "../lookup/row_names.h"
#include "commands.h"

static const char doc[] =
	"Read every byte of a checkpoint and check it against its checksums.\v"
	"Every 64 KiB of a file have a CRC-32C. If something is wrong, the message names the\n"
	"file and the offset of the first fault. Tables that were saved with values that are\n"
	"not finite are named; that is no fault of the files.\n\n"
	"  embeng checkpoint verify orders.ckpt && embeng train orders.txt --resume orders.ckpt\n\n"
	"Exit status: 0 no fault, 2 usage or no checkpoint in DIR, 4 permission, 7 read error,\n"
	"11 corrupt.";

/* 1 if all tables are finite, 0 if one is not, else an errno: the checkpoint does not say. */
static int all_finite(const struct embeng_checkpoint *c, size_t tables)
{
	int all = 1;

	for (size_t t = 0; t < tables; t++) {
		int finite = embeng_checkpoint_finite(c, (int)t);

		if (!finite)
			return 0;
		all = finite < 0 ? finite : all;
	}
	return all;
}

static void print_not_finite(const char *dir, const struct embeng_checkpoint *c, size_t tables)
{
	for (size_t t = 0; t < tables; t++) {
		if (!embeng_checkpoint_finite(c, (int)t))
			printf("%s: table %s has values that are not finite\n", dir,
			       embeng_model_table_name(embeng_checkpoint_model(c), t));
	}
}

static int report_no_fault(const struct output *out, const char *dir,
			   const struct embeng_checkpoint *c,
			   const struct embeng_checkpoint_info *info)
{
	int finite = all_finite(c, info->table_count);
	struct json_object *d;
	char size[BYTES_TEXT];

	if (!out->json) {
		printf("%s: no fault: %zu tables, %zu files, %s in %" PRIu64 " chunks\n", dir,
		       info->table_count, info->file_count, bytes_text(info->bytes, size),
		       info->chunk_count);
		print_not_finite(dir, c, info->table_count);
		return CLI_OK;
	}
	d = json_document(out);
	json_add_text(d, "dir", dir);
	json_object_object_add(d, "whole", json_object_new_boolean(true));
	json_object_object_add(d, "finite", finite < 0 ? NULL : json_object_new_boolean(finite));
	json_add_number(d, "files", info->file_count);
	json_add_number(d, "bytes", info->bytes);
	json_add_number(d, "chunks", info->chunk_count);
	return json_emit(d);
}

/* The file of names, where the checkpoint has one. */
static int verify_names(const struct output *out, const char *dir,
			const struct embeng_checkpoint *c)
{
	char why[ROW_NAMES_ERROR];
	struct row_names names;
	int rc = row_names_load(dir, c, &names, why);

	row_names_free(&names);
	return rc && rc != -ENOENT ? output_fail(out, exit_of_errno(rc), rc, NULL, "%s", why)
				   : CLI_OK;
}

static int run_checkpoint_verify(const struct output *out, const char *dir,
				 const struct embeng_checkpoint *c,
				 const struct embeng_checkpoint_info *info)
{
	struct transfer transfer = {.line = progress_start_slowly(!out->json), .cancels = true};
	int err, code;

	interrupt_catch();
	err = embeng_checkpoint_verify(c, transfer_progress, &transfer);
	progress_clear(&transfer.line);
	code = err ? output_library_failure(out, err, NULL) : verify_names(out, dir, c);
	if (!code)
		code = report_no_fault(out, dir, c, info);
	interrupt_release();
	return code;
}

int checkpoint_verify(int argc, char **argv)
{
	static const struct checkpoint_command command = {
		.name = "verify", .doc = doc, .steps = true, .run = run_checkpoint_verify};

	return checkpoint_run(&command, argc, argv);
}
