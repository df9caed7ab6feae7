// SPDX-License-Identifier: MIT
/*
 * The command `embeng checkpoint dump`: writes rows of a table or a slot as text or as a .npy file.
 * Rows are read in pieces, so that a table of any size can be written.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../examples/item2vec/settings.h"
#include "../../text/number.h"
#include "../frame/interrupt.h"
#include "../frame/outfile.h"
#include "../frame/transfer.h"
#include "../lookup/row_names.h"
#include "commands.h"
#include "rows_pieces.h"
#include "rows_text.h"

enum { KEY_ROWS = 0x100, KEY_FORMAT, KEY_NAMES, KEY_STEP };

enum format { FORMAT_BY_NAME, FORMAT_TEXT, FORMAT_NPY };

/**
 * struct dump - the call, then its meaning
 * @first: the first row
 * @end: behind the last; -1: all there are
 * @named: each row begins with its name
 * @names: these names
 * @array: the table or slot
 * @at_step: @step chooses the checkpoint
 */
struct dump {
	const char *dir, *what, *path;
	enum format format;
	int64_t first, end;
	bool named;
	struct row_names names;
	struct checkpoint_array array;
	bool at_step;
	int64_t step;
};

static const struct argp_option options[] = {
	{"rows", KEY_ROWS, "A:B", 0,
	 "Rows A to B - 1; A: goes to the end, :B starts at 0, A is one row", 0},
	{"format", KEY_FORMAT, "text|npy", 0,
	 "Format of the output; by default npy if FILE ends in .npy", 0},
	{"names", KEY_NAMES, NULL, 0,
	 "Begin each line of text with the name of the row and a tab, where embeng train saved "
	 "names",
	 0},
	{"step", KEY_STEP, "N", 0, "Take the newest checkpoint of step N, see list", 0},
	{"output", 'o', "FILE", 0, "Write to FILE, completely or not at all, instead of stdout", 0},
	{0},
};

static const char doc[] =
	"Write rows of a table, or of a slot of its optimizer, as text or as .npy.\v"
	"Text has one row a line, with its numbers separated by spaces. Each number has enough\n"
	"digits to give the same f32 again. npy is the format of NumPy, with f32. Rows are\n"
	"checked as they are read, and the command needs little memory however many there are.\n"
	"--json describes the FILE that was written.\n\n"
	"  embeng checkpoint dump orders.ckpt items_in --rows 0:3\n"
	"  embeng checkpoint dump orders.ckpt items_in --names\n"
	"  embeng checkpoint dump orders.ckpt items_in -o items.npy\n"
	"  embeng checkpoint dump orders.ckpt items_in/accumulators | head\n"
	"  python3 -c 'import numpy; print(numpy.load(\"items.npy\").shape)'\n\n"
	"Exit status: 0 ok, 2 usage, no checkpoint or no such table, 4 permission, 5 disk\n"
	"full, 7 read or write error, 11 corrupt.";

static bool parse_row_number(const char *text, size_t length, int64_t *row)
{
	uint64_t value;

	if (number_read(text, length, 10, &value) || value > INT64_MAX)
		return false;
	*row = (int64_t)value;
	return true;
}

/* Either of A:B may be left out, and stays as it was. */
static bool parse_rows(const char *arg, struct dump *d)
{
	size_t length = strcspn(arg, ":");
	const char *end = arg[length] ? arg + length + 1 : NULL;

	if ((length || !end) && !parse_row_number(arg, length, &d->first))
		return false;
	if (!end)
		d->end = d->first + (d->first < INT64_MAX);
	return !end || !*end || parse_row_number(end, strlen(end), &d->end);
}

static error_t parse_dump_format(const char *arg, struct dump *d, struct argp_state *state)
{
	if (!strcmp(arg, "text"))
		d->format = FORMAT_TEXT;
	else if (!strcmp(arg, "npy"))
		d->format = FORMAT_NPY;
	else {
		argp_error(state, "--format takes text or npy, not '%s'", arg);
		return EINVAL;
	}
	return 0;
}

static error_t parse_dumped_step(const char *arg, struct dump *d, struct argp_state *state)
{
	char error[SETTING_ERROR];

	if (whole_read("step", arg, 0, INT64_MAX, &d->step, error)) {
		argp_error(state, "%s", error);
		return EINVAL;
	}
	d->at_step = true;
	return 0;
}

static error_t parse_argument(char *arg, struct dump *d, struct argp_state *state)
{
	if (!d->dir) {
		d->dir = arg;
	} else if (!d->what) {
		d->what = arg;
	} else {
		argp_error(state, "dump writes one table; '%s' is too much", arg);
		return EINVAL;
	}
	return 0;
}

static error_t parse_dump_option(int key, char *arg, struct argp_state *state)
{
	struct dump *d = state->input;

	switch (key) {
	case KEY_ROWS:
		if (parse_rows(arg, d))
			return 0;
		argp_error(state, "--rows takes A:B, A:, :B or A, not '%s'", arg);
		return EINVAL;
	case KEY_FORMAT:
		return parse_dump_format(arg, d, state);
	case KEY_STEP:
		return parse_dumped_step(arg, d, state);
	case KEY_NAMES:
		d->named = true;
		return 0;
	case 'o':
		d->path = strcmp(arg, "-") != 0 ? arg : NULL;
		return 0;
	case ARGP_KEY_ARG:
		return parse_argument(arg, d, state);
	case ARGP_KEY_END:
		if (d->what)
			return 0;
		argp_error(state, "%s is missing; embeng checkpoint ls DIR shows the tables",
			   d->dir ? "TABLE" : "DIR");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int check_row_range(const struct output *out, struct dump *d)
{
	int64_t rows = d->array.config.vocabulary_size;

	if (d->end < 0)
		d->end = rows;
	if (d->first <= d->end && d->end <= rows)
		return CLI_OK;
	return output_fail(out, CLI_USAGE, ERANGE, NULL,
			   "--rows %" PRId64 ":%" PRId64 ": table '%s' has only rows 0:%" PRId64,
			   d->first, d->end, d->array.config.name, rows);
}

/* The names of the rows, if they are wanted. */
static int load_dumped_names(const struct output *out, const struct embeng_checkpoint *c,
			     struct dump *d)
{
	char why[ROW_NAMES_ERROR];
	int rc;

	if (!d->named)
		return CLI_OK;
	if (d->format == FORMAT_NPY)
		return output_fail(out, CLI_USAGE, EINVAL,
				   "The names are in " ROW_NAMES_FILE " of the folder, one a line",
				   "--names is for text; npy has numbers alone");
	rc = row_names_load(d->dir, c, &d->names, why);
	return rc ? output_fail(out, exit_of_errno(rc), rc, NULL, "%s", why) : CLI_OK;
}

static int check_output(const struct output *out, struct dump *d)
{
	size_t length = d->path ? strlen(d->path) : 0;

	if (d->format == FORMAT_BY_NAME)
		d->format = length > 4 && !strcmp(d->path + length - 4, ".npy") ? FORMAT_NPY
										: FORMAT_TEXT;
	if (out->json && !d->path)
		return output_fail(out, CLI_USAGE, EINVAL, "Name a file: -o FILE",
				   "with --json the document goes to stdout, where rows would go");
	if (d->format == FORMAT_NPY && !d->path && isatty(STDOUT_FILENO))
		return output_fail(out, CLI_USAGE, EINVAL, "Name a file: -o FILE.npy",
				   "npy is binary and not for a terminal");
	return CLI_OK;
}

static int write_named_text(FILE *to, const struct dump *d, int64_t first, const float *data,
			    size_t count)
{
	size_t dim = (size_t)d->array.width;
	int rc = 0;

	if (!d->named)
		return text_rows(to, data, count, dim);
	for (size_t k = 0; !rc && k < count; k++) {
		size_t row = (size_t)first + k;

		if (row < d->names.count)
			fputs(d->names.text[row], to);
		putc('\t', to);
		rc = text_rows(to, data + k * dim, 1, dim);
	}
	return rc;
}

struct dump_target {
	const struct dump *dump;
	FILE *to;
};

static int write_dumped_piece(void *arg, int64_t first, float *data, size_t count)
{
	const struct dump_target *target = arg;
	const struct dump *d = target->dump;

	if (d->format == FORMAT_NPY)
		return npy_floats(target->to, data, count * (size_t)d->array.width);
	return write_named_text(target->to, d, first, data, count);
}

static int dump_rows(const struct embeng_checkpoint *c, const struct dump *d, FILE *to,
		     struct transfer *transfer, bool *reading)
{
	struct dump_target target = {.dump = d, .to = to};
	struct rows_pieces pieces = {
		.c = c,
		.array = &d->array,
		.first = d->first,
		.end = d->end,
		.write = write_dumped_piece,
		.arg = &target,
		.transfer = transfer,
		.progress = {.what = "dump",
			     .total = (uint64_t)(d->end - d->first) * (uint64_t)d->array.width *
				      sizeof(float)},
	};
	int rc = rows_in_pieces(&pieces);

	*reading = pieces.reading;
	return rc;
}

static int write_failure(const struct output *out, const struct dump *d, int rc)
{
	return output_fail(out, exit_of_errno(rc), rc, NULL, "%s: %s", d->path ? d->path : "stdout",
			   strerror(-rc));
}

static int report_dump(const struct output *out, const struct dump *d)
{
	struct json_object *document, *rows = json_object_new_array();

	json_object_array_add(rows, json_object_new_int64(d->first));
	json_object_array_add(rows, json_object_new_int64(d->end));
	document = json_document(out);
	json_add_text(document, "dir", d->dir);
	json_add_text(document, "table", d->array.config.name);
	json_add_text(document, "slot", d->array.slot ? d->array.slot : "parameters");
	json_object_object_add(document, "rows", rows);
	json_object_object_add(document, "dim", json_object_new_int64(d->array.width));
	json_add_text(document, "format", d->format == FORMAT_NPY ? "npy" : "text");
	json_add_text(document, "file", d->path);
	return json_emit(document);
}

static int write_file(const struct output *out, const struct embeng_checkpoint *c,
		      const struct dump *d)
{
	/* A line that moves, between lines of rows, is no help. */
	bool shown = !out->json && (d->path || !isatty(STDOUT_FILENO)), reading = false;
	struct transfer transfer = {.line = progress_start_slowly(shown), .cancels = true};
	struct outfile file;
	int rc = outfile_open(&file, d->path);

	if (rc)
		return write_failure(out, d, rc);
	if (d->format == FORMAT_NPY)
		rc = npy_header(file.stream, d->end - d->first, d->array.width);
	if (!rc)
		rc = dump_rows(c, d, file.stream, &transfer, &reading);
	progress_clear(&transfer.line);
	rc = outfile_end(&file, rc);
	if (rc && reading)
		return output_library_failure(out, rc, NULL);
	if (rc)
		return write_failure(out, d, rc);
	return out->json ? report_dump(out, d) : CLI_OK;
}

static int run_dump(const struct output *out, const struct embeng_checkpoint *c, struct dump *d)
{
	const struct embeng_model *model = embeng_checkpoint_model(c);
	int code = checkpoint_find_array(out, d->dir, model, d->what, &d->array);

	if (!code)
		code = check_row_range(out, d);
	if (!code)
		code = load_dumped_names(out, c, d);
	if (!code) {
		interrupt_catch();
		code = write_file(out, c, d);
		interrupt_release();
	}
	return code;
}

int checkpoint_dump(int argc, char **argv)
{
	static const struct argp argp = {.options = options,
					 .parser = parse_dump_option,
					 .args_doc = "DIR TABLE[/SLOT]",
					 .doc = doc};
	struct output out = {.verb = "checkpoint", .command = "dump"};
	struct dump d = {.end = -1};
	struct embeng_checkpoint_info info;
	struct embeng_checkpoint *c;
	int code = command_parse(&argp, argc, argv, &out, &d);

	if (!code)
		code = check_output(&out, &d);
	if (!code)
		code = checkpoint_open_at(&out, d.dir, d.at_step, (uint64_t)d.step, &c, &info);
	if (code)
		return code;
	code = run_dump(&out, c, &d);
	row_names_free(&d.names);
	embeng_checkpoint_close(c);
	return code;
}
