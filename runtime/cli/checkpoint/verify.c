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
#include "verify_finite.h"

static const char doc[] =
	"Read every byte of a checkpoint and check it against its checksums.\v"
	"Every 64 KiB of a file have a CRC-32C. If something is wrong, the message names the\n"
	"file and the offset of the first fault. Values that are not finite are named, the\n"
	"first of each table and slot; that is no fault of the files.\n\n"
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

static int report_no_fault(const struct output *out, const char *dir,
			   const struct embeng_checkpoint *c,
			   const struct embeng_checkpoint_info *info)
{
	int finite = all_finite(c, info->table_count);
	struct json_object *d, *list = out->json ? json_object_new_array() : NULL;
	char size[BYTES_TEXT];
	int rc;

	if (!out->json)
		printf("%s: no fault: %zu tables, %zu files, %s in %" PRIu64 " chunks\n", dir,
		       info->table_count, info->file_count, bytes_text(info->bytes, size),
		       info->chunk_count);
	rc = verify_finite(dir, c, list);
	if (rc || !list) {
		json_object_put(list);
		return rc ? output_library_failure(out, rc, NULL) : CLI_OK;
	}
	d = json_document(out);
	json_add_text(d, "dir", dir);
	json_object_object_add(d, "whole", json_object_new_boolean(true));
	json_object_object_add(d, "finite", finite < 0 ? NULL : json_object_new_boolean(finite));
	json_object_object_add(d, "not_finite", list);
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
