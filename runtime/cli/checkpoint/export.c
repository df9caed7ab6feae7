// SPDX-License-Identifier: MIT
/*
 * The command `embeng checkpoint export`: writes tables and slots into one file that other programs
 * read, .npy or .safetensors. Rows are read in pieces.
 *
 * The list of arrays lives for one call.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../frame/interrupt.h"
#include "../frame/outfile.h"
#include "../tensors/safetensors_write.h"
#include "commands.h"
#include "rows_pieces.h"
#include "rows_text.h"

/**
 * struct export - the call, then its meaning
 * @what: [what_count] arguments TABLE[/SLOT]; without any, all parameters are meant
 * @names: [count] name of each tensor: TABLE or TABLE/SLOT
 */
struct export
{
	const char *dir, *path;
	char **what;
	size_t what_count;
	bool npy;
	struct checkpoint_array *arrays;
	char **names;
	size_t count;
};

static const struct argp_option options[] = {
	{"output", 'o', "FILE", 0,
	 "The file to write, completely or not at all; its name ends in .npy or .safetensors", 0},
	{0},
};

static const char doc[] =
	"Write tables or slots as .npy, the format of NumPy, or as .safetensors.\v"
	"TABLE is the table's parameters, TABLE/SLOT a slot of its optimizer. A .npy has one of\n"
	"them. A .safetensors has any number, as tensors of these names; without a TABLE it has\n"
	"the parameters of all tables. The numbers are f32, little-endian. Rows are checked as\n"
	"they are read, and the command needs little memory however many there are.\n\n"
	"  embeng checkpoint export orders.ckpt items_in -o items.npy\n"
	"  embeng checkpoint export orders.ckpt -o orders.safetensors\n"
	"  embeng checkpoint export orders.ckpt items_in items_in/accumulators -o i.safetensors\n\n"
	"Exit status: 0 ok, 2 usage, no checkpoint or no such table, 4 permission, 5 disk\n"
	"full, 7 read or write error, 11 corrupt.";

static bool ends_in(const char *path, const char *end)
{
	size_t length = strlen(path), tail = strlen(end);

	return length > tail && !strcmp(path + length - tail, end);
}

static error_t check_export(struct export *e, struct argp_state *state)
{
	if (!e->dir) {
		argp_error(state, "DIR is missing; give the folder of a checkpoint");
	} else if (!e->path) {
		argp_error(state, "the file is missing; give -o FILE.npy or -o FILE.safetensors");
	} else if (!ends_in(e->path, ".npy") && !ends_in(e->path, ".safetensors")) {
		argp_error(state,
			   "'%s' ends neither in .npy nor in .safetensors, which says the "
			   "format to write",
			   e->path);
	} else if (ends_in(e->path, ".npy") && e->what_count != 1) {
		argp_error(state,
			   "a .npy has one table or slot, not %zu; embeng checkpoint ls %s "
			   "shows them, and a .safetensors may have several",
			   e->what_count, e->dir);
	} else {
		e->npy = ends_in(e->path, ".npy");
		return 0;
	}
	return EINVAL;
}

static error_t parse_export_option(int key, char *arg, struct argp_state *state)
{
	struct export *e = state->input;

	switch (key) {
	case 'o':
		e->path = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (!e->dir) {
			e->dir = arg;
			return 0;
		}
		e->what[e->what_count++] = arg;
		return 0;
	case ARGP_KEY_END:
		return check_export(e, state);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* -- arrays ---------------------------------------------------------------- */

static int lack_memory_for_names(const struct output *out)
{
	return output_fail(out, CLI_DEVICE, ENOMEM, NULL, "no memory for a list of tables");
}

static int name_array(const struct output *out, struct export *e, size_t i)
{
	const struct checkpoint_array *array = &e->arrays[i];
	size_t size = strlen(array->config.name) + (array->slot ? strlen(array->slot) : 0) + 2;

	e->names[i] = malloc(size);
	if (!e->names[i])
		return lack_memory_for_names(out);
	snprintf(e->names[i], size, "%s%s%s", array->config.name, array->slot ? "/" : "",
		 array->slot ? array->slot : "");
	e->count = i + 1;
	for (size_t k = 0; k < i; k++) {
		if (!strcmp(e->names[k], e->names[i]))
			return output_fail(out, CLI_USAGE, EINVAL, NULL,
					   "'%s' is given twice; a file has one tensor of a name",
					   e->names[i]);
	}
	return CLI_OK;
}

static int find_arrays(const struct output *out, const struct embeng_model *model, struct export *e)
{
	size_t count = e->what_count ? e->what_count : embeng_model_table_count(model);
	int code = CLI_OK;

	e->arrays = calloc(count + 1, sizeof(*e->arrays));
	e->names = calloc(count + 1, sizeof(*e->names));
	if (!e->arrays || !e->names)
		return lack_memory_for_names(out);
	for (size_t i = 0; !code && i < count; i++) {
		const char *what = e->what_count ? e->what[i] : embeng_model_table_name(model, i);

		code = checkpoint_find_array(out, e->dir, model, what, &e->arrays[i]);
		code = code ? code : name_array(out, e, i);
	}
	return code;
}

/* -- the file -------------------------------------------------------------- */

static int write_front(const struct export *e, FILE *to)
{
	struct safetensors_array *list;
	int rc;

	if (e->npy)
		return npy_header(to, e->arrays[0].config.vocabulary_size, e->arrays[0].width);
	list = calloc(e->count + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < e->count; i++)
		list[i] = (struct safetensors_array){
			.name = e->names[i],
			.rows = e->arrays[i].config.vocabulary_size,
			.dim = e->arrays[i].width,
		};
	rc = safetensors_front(to, list, e->count);
	free(list);
	return rc;
}

struct export_target {
	FILE *to;
	size_t dim;
};

static int write_exported_piece(void *arg, int64_t first, float *data, size_t count)
{
	const struct export_target *target = arg;

	(void)first;
	return npy_floats(target->to, data, count * target->dim);
}

static uint64_t count_exported_bytes(const struct export *e)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < e->count; i++)
		bytes += 4 * (uint64_t)e->arrays[i].config.vocabulary_size *
			 (uint64_t)e->arrays[i].width;
	return bytes;
}

static int write_exported_arrays(const struct embeng_checkpoint *c, const struct export *e,
				 FILE *to, struct transfer *transfer, bool *reading)
{
	struct export_target target = {.to = to};
	struct rows_pieces pieces = {
		.c = c,
		.write = write_exported_piece,
		.arg = &target,
		.transfer = transfer,
		.progress = {.what = "export", .total = count_exported_bytes(e)},
	};
	int rc = write_front(e, to);

	for (size_t i = 0; !rc && i < e->count; i++) {
		pieces.array = &e->arrays[i];
		pieces.end = e->arrays[i].config.vocabulary_size;
		target.dim = (size_t)e->arrays[i].width;
		rc = rows_in_pieces(&pieces);
	}
	*reading = pieces.reading;
	return rc;
}

static int report_export(const struct output *out, const struct export *e)
{
	struct json_object *d, *tensors;
	char size[BYTES_TEXT];

	if (!out->json) {
		printf("%s: %zu %s, %s\n", e->path, e->count, e->count == 1 ? "tensor" : "tensors",
		       bytes_text(count_exported_bytes(e), size));
		return CLI_OK;
	}
	d = json_document(out);
	tensors = json_object_new_array();
	for (size_t i = 0; i < e->count; i++) {
		struct json_object *tensor = json_object_new_object();

		json_add_text(tensor, "name", e->names[i]);
		json_add_number(tensor, "rows", (uint64_t)e->arrays[i].config.vocabulary_size);
		json_add_number(tensor, "dim", (uint64_t)e->arrays[i].width);
		json_object_array_add(tensors, tensor);
	}
	json_add_text(d, "dir", e->dir);
	json_add_text(d, "file", e->path);
	json_add_text(d, "format", e->npy ? "npy" : "safetensors");
	json_object_object_add(d, "tensors", tensors);
	return json_emit(d);
}

static int write_export(const struct output *out, const struct embeng_checkpoint *c,
			const struct export *e)
{
	struct transfer transfer = {.line = progress_start_slowly(!out->json), .cancels = true};
	struct outfile file;
	bool reading = false;
	int rc = outfile_open(&file, e->path);

	if (!rc) {
		rc = write_exported_arrays(c, e, file.stream, &transfer, &reading);
		progress_clear(&transfer.line);
		rc = outfile_end(&file, rc);
	}
	if (rc && reading)
		return output_library_failure(out, rc, NULL);
	if (rc)
		return output_fail(out, exit_of_errno(rc), rc, NULL, "%s: %s", e->path,
				   strerror(-rc));
	return report_export(out, e);
}

static int run_export(const struct output *out, const struct embeng_checkpoint *c, struct export *e)
{
	int code = find_arrays(out, embeng_checkpoint_model(c), e);

	if (!code) {
		interrupt_catch();
		code = write_export(out, c, e);
		interrupt_release();
	}
	for (size_t i = 0; i < e->count; i++)
		free(e->names[i]);
	free(e->names);
	free(e->arrays);
	return code;
}

int checkpoint_export(int argc, char **argv)
{
	static const struct argp argp = {.options = options,
					 .parser = parse_export_option,
					 .args_doc = "DIR [TABLE[/SLOT]...]",
					 .doc = doc};
	struct output out = {.verb = "checkpoint", .command = "export"};
	struct export e = {.what = calloc((size_t)argc, sizeof(*e.what))};
	struct embeng_checkpoint_info info;
	struct embeng_checkpoint *c;
	int code;

	if (!e.what)
		return lack_memory_for_names(&out);
	code = command_parse(&argp, argc, argv, &out, &e);
	if (!code)
		code = checkpoint_open(&out, e.dir, &c, &info);
	if (!code) {
		code = run_export(&out, c, &e);
		embeng_checkpoint_close(c);
	}
	free(e.what);
	return code;
}
