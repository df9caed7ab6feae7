// SPDX-License-Identifier: MIT
/*
 * The command `embeng checkpoint compact`: writes a checkpoint that has deltas as a full one. It is a
 * resharding for the hosts that the checkpoint has already, whose files then have every row.
 */
#include <errno.h>
#include <inttypes.h>

#include "../frame/interrupt.h"
#include "../frame/transfer.h"
#include "edit.h"
#include "embeng/shard.h"

static const struct argp_option options[] = {
	{"output", 'o', "OUT", 0, "Write to folder OUT instead of DIR", 0},
	{"keep", 'k', "N", 0, "Number of checkpoints that the folder keeps, this one included (2)",
	 0},
	{0},
};

static const char doc[] =
	"Fold the deltas of a checkpoint into a full one.\v"
	"A delta, from embeng train --delta or EMBENG_SAVE_DELTA, has only the rows that\n"
	"changed, and needs the checkpoints before it. The new checkpoint has the same tables,\n"
	"slots, step and program state in files of its own. A checkpoint without deltas stays as\n"
	"it is, unless it goes to OUT. The old one stays beside the new one; with --keep 1 it is\n"
	"removed.\n\n"
	"  embeng checkpoint compact orders.ckpt\n"
	"  embeng checkpoint compact orders.ckpt -o whole.ckpt\n\n"
	"Exit status: 0 ok, 2 usage or no checkpoint in DIR, 4 permission, 5 busy or disk full,\n"
	"7 read or write error, 11 corrupt.";

static int report_compacted(const struct output *out, const struct edit *edit,
			    const struct embeng_checkpoint_info *info)
{
	const char *to = edit->to ? edit->to : edit->dir;
	struct json_object *d;
	char size[BYTES_TEXT];

	if (!out->json) {
		printf("%s: step %" PRIu64 ", %" PRIu32 " deltas folded, %zu files, %s\n", to,
		       info->step, edit->info.deltas, info->file_count,
		       bytes_text(info->bytes, size));
		return CLI_OK;
	}
	d = json_document(out);
	json_add_text(d, "dir", edit->dir);
	json_add_text(d, "out", to);
	json_add_number(d, "step", info->step);
	json_add_number(d, "folded", edit->info.deltas);
	json_add_number(d, "deltas", info->deltas);
	json_add_number(d, "files", info->file_count);
	json_add_number(d, "bytes", info->bytes);
	return json_emit(d);
}

/* The report is read back from the new checkpoint. */
static int report_folder(const struct output *out, const struct edit *edit)
{
	struct embeng_checkpoint_info info;
	struct embeng_checkpoint *c;
	int code = checkpoint_open(out, edit->to ? edit->to : edit->dir, &c, &info);

	if (code)
		return code;
	code = report_compacted(out, edit, &info);
	embeng_checkpoint_close(c);
	return code;
}

static int write_compacted(const struct output *out, const struct edit *edit)
{
	struct transfer transfer = {.line = progress_start_slowly(!out->json), .cancels = true};
	struct embeng_engine_config engine = EMBENG_INIT(embeng_engine_config);
	struct embeng_reshard_options o = EMBENG_INIT(embeng_reshard_options, .keep = edit->keep,
						      .progress = transfer_progress,
						      .progress_arg = &transfer);
	int err = embeng_model_get_engine(embeng_checkpoint_model(edit->from), &engine), code;

	o.hosts = engine.hosts;
	o.sharding = engine.sharding;
	interrupt_catch();
	if (!err)
		err = embeng_checkpoint_reshard(edit->dir, edit->to ? edit->to : edit->dir, &o,
						NULL);
	progress_clear(&transfer.line);
	code = err ? output_library_failure(out, err, NULL) : edit_copy_row_names(edit);
	interrupt_release();
	return code;
}

int checkpoint_compact(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options, .parser = edit_parse_option, .args_doc = "DIR", .doc = doc};
	struct output out = {.verb = "checkpoint", .command = "compact"};
	struct edit edit = {.out = &out};
	int code = command_parse(&argp, argc, argv, &out, &edit);

	if (!code && edit.count)
		code = output_fail(&out, CLI_USAGE, EINVAL, NULL,
				   "the command takes one folder; '%s' is a second, see -o",
				   edit.list[0]);
	if (!code)
		code = edit_open(&edit);
	if (!code && (edit.info.deltas || edit.to))
		code = write_compacted(&out, &edit);
	if (!code)
		code = report_folder(&out, &edit);
	edit_close(&edit);
	return code;
}
