// SPDX-License-Identifier: MIT
/*
 * The command `embeng checkpoint pack`: writes the checkpoint of a folder as one stream, into a pipe or
 * a file. `embeng checkpoint unpack` (unpack.c) makes a folder of it.
 *
 * Files live for one call.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../examples/item2vec/settings.h"
#include "../frame/interrupt.h"
#include "../frame/outfile.h"
#include "../frame/transfer.h"
#include "../lookup/row_names.h"
#include "commands.h"

enum { KEY_STEP = 0x100 };

/* @path: NULL or "-": stdout; @written: bytes; @failed: errno of a write, or 0 */
struct packing {
	const char *dir, *path;
	bool at_step;
	int64_t step;
	struct outfile file;
	uint64_t written;
	int failed;
};

static const struct argp_option options[] = {
	{"output", 'o', "FILE", 0, "The file to write, completely or not at all (stdout)", 0},
	{"step", KEY_STEP, "N", 0, "Take the newest checkpoint of step N, see list", 0},
	{0},
};

static const char doc[] =
	"Write a checkpoint as one stream, which unpack makes a folder of again.\v"
	"The stream is a tar archive, and what it unpacks is a checkpoint's folder: its rows,\n"
	"slots, deltas and the names of rows, but no earlier checkpoints. Every byte is checked\n"
	"before it is written. Nothing is kept in memory or on disk meanwhile.\n\n"
	"  embeng checkpoint pack orders.ckpt | ssh host embeng checkpoint unpack - orders.ckpt\n"
	"  embeng checkpoint pack orders.ckpt -o orders.tar\n\n"
	"Exit status: 0 ok, 2 usage or no checkpoint in DIR, 4 permission, 5 disk full, 7 read or\n"
	"write error, 11 corrupt.";

static error_t parse_checkpoint_pack_option(int key, char *arg, struct argp_state *state)
{
	struct packing *p = state->input;
	char error[SETTING_ERROR];

	switch (key) {
	case 'o':
		p->path = arg;
		return 0;
	case KEY_STEP:
		p->at_step = true;
		if (!whole_read("step", arg, 0, INT64_MAX, &p->step, error))
			return 0;
		argp_error(state, "%s", error);
		return EINVAL;
	case ARGP_KEY_ARG:
		return argument_take(&p->dir, arg, "DIR", state);
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "DIR is missing; give the folder of a checkpoint");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static bool packs_to_stdout(const struct packing *p)
{
	return !p->path || !strcmp(p->path, "-");
}

static int check_pack_output(const struct output *out, const struct packing *p)
{
	if (!packs_to_stdout(p))
		return CLI_OK;
	if (out->json)
		return output_fail(
			out, CLI_USAGE, EINVAL, "Give -o FILE",
			"with --json the document goes to stdout, where the stream would "
			"go");
	if (isatty(STDOUT_FILENO))
		return output_fail(out, CLI_USAGE, EINVAL, "Give -o FILE, or a pipe",
				   "a stream is binary and not for a terminal");
	return CLI_OK;
}

/* The write of a struct embeng_writer. */
static int64_t write_packed(void *arg, const void *data, size_t bytes)
{
	struct packing *p = arg;

	errno = 0;
	if (fwrite(data, 1, bytes, p->file.stream) == bytes) {
		p->written += bytes;
		return (int64_t)bytes;
	}
	p->failed = errno ? -errno : -EIO;
	return p->failed;
}

static int report_packed(const struct output *out, const struct packing *p,
			 const struct embeng_checkpoint_info *info)
{
	char size[BYTES_TEXT];
	struct json_object *d;

	if (packs_to_stdout(p))
		return CLI_OK;
	if (!out->json) {
		printf("%s: step %llu, %zu %s, %s\n", p->path, (unsigned long long)info->step,
		       info->table_count, info->table_count == 1 ? "table" : "tables",
		       bytes_text(p->written, size));
		return CLI_OK;
	}
	d = json_document(out);
	json_add_text(d, "dir", p->dir);
	json_add_text(d, "file", p->path);
	json_add_number(d, "step", info->step);
	json_add_number(d, "tables", info->table_count);
	json_add_number(d, "bytes", p->written);
	return json_emit(d);
}

static int write_packed_file(const struct output *out, struct packing *p,
			     const struct embeng_checkpoint *c)
{
	static const char *const files[] = {ROW_NAMES_FILE};
	struct transfer transfer = {.line = progress_start_slowly(!out->json), .cancels = true};
	const struct embeng_writer to = {.size = sizeof(to), .write = write_packed, .arg = p};
	const struct embeng_pack_options o = {.size = sizeof(o),
					      .progress = transfer_progress,
					      .progress_arg = &transfer,
					      .files = files,
					      .file_count = 1};
	const char *name = packs_to_stdout(p) ? "stdout" : p->path;
	int rc = outfile_open(&p->file, p->path), packed = 0;

	if (!rc) {
		packed = embeng_checkpoint_pack(c, &to, &o, NULL);
		progress_clear(&transfer.line);
		rc = outfile_end(&p->file, packed);
	}
	if (packed && !p->failed)
		return output_library_failure(out, packed, NULL);
	return rc ? output_fail(out, exit_of_errno(rc), rc, NULL, "%s: %s", name, strerror(-rc))
		  : CLI_OK;
}

int checkpoint_pack(int argc, char **argv)
{
	static const struct argp argp = {.options = options,
					 .parser = parse_checkpoint_pack_option,
					 .args_doc = "DIR",
					 .doc = doc};
	struct output out = {.verb = "checkpoint", .command = "pack"};
	struct packing p = {0};
	struct embeng_checkpoint_info info;
	struct embeng_checkpoint *c;
	int code = command_parse(&argp, argc, argv, &out, &p);

	code = code ? code : check_pack_output(&out, &p);
	code = code ? code
		    : checkpoint_open_at(&out, p.dir, p.at_step, (uint64_t)p.step, &c, &info);
	if (code)
		return code;
	interrupt_catch();
	code = write_packed_file(&out, &p, c);
	code = code ? code : report_packed(&out, &p, &info);
	interrupt_release();
	embeng_checkpoint_close(c);
	return code;
}
