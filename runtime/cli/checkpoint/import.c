// SPDX-License-Identifier: MIT
/*
 * The command `embeng checkpoint import`: makes a checkpoint of the matrices in files of NumPy,
 * safetensors and torch. It decides which tensor becomes which table; import_save.c writes them.
 *
 * Files and tables live for one call.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../examples/item2vec/settings.h"
#include "import.h"

enum { KEY_TABLE = 0x100, KEY_INTO, KEY_FIRST };

/* A --table NAME[=TENSOR]; with --into the name may be TABLE/SLOT. */
struct wish {
	char *table;
	const char *tensor;
};

/**
 * struct import - the call, then its meaning
 * @paths: [path_count] files
 * @wishes: [wish_count] tables that the user names; without any, all matrices are taken
 * @files: [file_count] the files, open
 * @stems: [file_count] names of files without folder and suffix, for tensors without a name
 * @tables: [table_count] tables of the checkpoint
 * @left: tensors that are no matrices of floats, or with --into go nowhere
 * @edit: with --into the checkpoint of that folder, whose rows are replaced
 * @first: the row that a tensor begins at, or -1
 */
struct import {
	const char *to;
	struct edit edit;
	int64_t first;
	char **paths;
	size_t path_count;
	struct wish *wishes;
	size_t wish_count;
	struct tensor_file *files;
	char **stems;
	size_t file_count;
	struct import_table *tables;
	size_t table_count, left;
};

static const struct argp_option options[] = {
	{"output", 'o', "DIR", 0, "The folder of the new checkpoint", 0},
	{"table", KEY_TABLE, "NAME[=TENSOR]", 0,
	 "Take this tensor, as table NAME; may be repeated (all matrices of floats, by their "
	 "names)",
	 0},
	{"into", KEY_INTO, "OLD", 0,
	 "Write the checkpoint of folder OLD again, with rows of tables or slots from the files",
	 0},
	{"first", KEY_FIRST, "ROW", 0,
	 "With --into: the row that a tensor's first row replaces (all rows are replaced)", 0},
	{0},
};

static const char doc[] =
	"Make a checkpoint of the tables in .npy, .safetensors and torch.save() files.\v"
	"Each matrix of floats (f16, bf16, f32 or f64) becomes a table of f32 with its rows. It\n"
	"has the tensor's name; that of a .npy is the file's name. In a file of torch, which is\n"
	"read without torch and without running anything in it, the name is the path to the\n"
	"tensor, such as state_dict.items.weight. The tables have no optimizer: restore such a\n"
	"checkpoint with EMBENG_RESTORE_MISSING_SLOTS to train them. A value that is not finite\n"
	"as f32 is refused. DIR may not have a checkpoint yet.\n\n"
	"With --into the tables, slots, optimizers and step are those of OLD, which stays as it "
	"is,\n"
	"and rows are replaced by the tensors of the names TABLE and TABLE/SLOT, as export writes\n"
	"them. A tensor has as many rows and columns as the table or slot, or with --first fewer\n"
	"rows.\n\n"
	"  embeng checkpoint import items.npy -o items.ckpt\n"
	"  embeng checkpoint import model.pt --table items=emb.weight -o items.ckpt\n"
	"  embeng checkpoint import items.npy --into old.ckpt --table items/momenta=items -o "
	"new.ckpt\n\n"
	"Exit status: 0 ok, 2 usage or a value that is not finite, 3 no file that is read, 4\n"
	"permission, 5 no room, 7 read or write error, 11 a file is damaged.";

static error_t parse_wish(char *arg, struct import *im, struct argp_state *state)
{
	char *equals = strchr(arg, '=');
	struct wish *wish = &im->wishes[im->wish_count];

	if (!*arg || equals == arg || (equals && !equals[1])) {
		argp_error(state, "--table takes NAME or NAME=TENSOR, not '%s'", arg);
		return EINVAL;
	}
	if (equals)
		*equals = '\0';
	*wish = (struct wish){.table = arg, .tensor = equals ? equals + 1 : arg};
	im->wish_count++;
	return 0;
}

static error_t parse_import_option(int key, char *arg, struct argp_state *state)
{
	struct import *im = state->input;
	char error[SETTING_ERROR];

	switch (key) {
	case 'o':
		im->to = arg;
		return 0;
	case KEY_INTO:
		im->edit.dir = arg;
		return 0;
	case KEY_FIRST:
		if (!whole_read("first", arg, 0, INT64_MAX, &im->first, error))
			return 0;
		argp_error(state, "%s", error);
		return EINVAL;
	case KEY_TABLE:
		return parse_wish(arg, im, state);
	case ARGP_KEY_ARG:
		im->paths[im->path_count++] = arg;
		return 0;
	case ARGP_KEY_END:
		if (im->first >= 0 && !im->edit.dir) {
			argp_error(state,
				   "--first needs --into, the checkpoint whose rows are replaced");
			return EINVAL;
		}
		if (im->path_count && im->to)
			return 0;
		argp_error(state,
			   im->path_count
				   ? "the folder is missing; give -o DIR"
				   : "FILE is missing; give a .npy, a .safetensors or a file "
				     "of torch.save()");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int lack_import_memory(const struct output *out)
{
	return output_fail(out, CLI_DEVICE, ENOMEM, NULL,
			   "no memory for lists of files and tables");
}

/* -- which tensors --------------------------------------------------------- */

/* The name of a file without its folder and its suffix. */
static char *make_stem(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');

	return strndup(name, dot && dot != name ? (size_t)(dot - name) : strlen(name));
}

static int open_tensor_files(const struct output *out, struct import *im)
{
	for (size_t i = 0; i < im->path_count; i++) {
		struct tensor_file *f = &im->files[i];
		int rc = tensor_file_open(f, im->paths[i]);

		im->file_count = i + 1;
		if (rc)
			return output_fail(out, exit_of_errno(rc), rc, NULL, "%s", f->why);
		im->stems[i] = make_stem(im->paths[i]);
		if (!im->stems[i])
			return lack_import_memory(out);
	}
	return CLI_OK;
}

static const char *name_of_tensor(const struct import *im, size_t file, const struct tensor *t)
{
	return *t->name ? t->name : im->stems[file];
}

static int add_wanted(const struct output *out, struct import *im, const char *name, size_t file,
		      const struct tensor *t)
{
	struct import_table *larger = reallocarray(im->tables, im->table_count + 1,
						   sizeof(*larger));

	if (!larger)
		return lack_import_memory(out);
	im->tables = larger;
	im->tables[im->table_count++] = (struct import_table){
		.name = name, .file = &im->files[file], .tensor = t};
	return CLI_OK;
}

/* With --into a tensor goes where its name says. */
static bool has_place(const struct import *im, const char *name)
{
	return !im->edit.dir || import_has_array(embeng_checkpoint_model(im->edit.from), name);
}

static int take_all_tensors(const struct output *out, struct import *im)
{
	int code = CLI_OK;

	for (size_t i = 0; i < im->file_count; i++) {
		for (size_t k = 0; !code && k < im->files[i].count; k++) {
			const struct tensor *t = &im->files[i].list[k];

			if (tensor_is_table(t) && has_place(im, name_of_tensor(im, i, t)))
				code = add_wanted(out, im, name_of_tensor(im, i, t), i, t);
			else
				im->left++;
		}
	}
	return code;
}

static int refuse_tensor_form(const struct output *out, const struct import *im, size_t file,
			      const struct tensor *t)
{
	return output_fail(out, CLI_USAGE, EINVAL,
			   "A table is a matrix of f16, bf16, f32 or f64 with at least one row",
			   "%s: tensor '%s' has %zu %s%s, and is no table", im->paths[file],
			   name_of_tensor(im, file, t), t->rank,
			   t->rank == 1 ? "dimension" : "dimensions",
			   t->type == TENSOR_OTHER ? " and numbers of another type" : "");
}

static int take_wish(const struct output *out, struct import *im, const struct wish *wish)
{
	const struct tensor *found = NULL;
	size_t where = 0;

	for (size_t i = 0; i < im->file_count; i++) {
		for (size_t k = 0; k < im->files[i].count; k++) {
			const struct tensor *t = &im->files[i].list[k];

			if (strcmp(name_of_tensor(im, i, t), wish->tensor) != 0)
				continue;
			if (found)
				return output_fail(
					out, CLI_USAGE, EINVAL, "Import the files one by one",
					"tensor '%s' is in the files twice", wish->tensor);
			found = t;
			where = i;
		}
	}
	if (!found)
		return output_fail(out, CLI_USAGE, ENOENT,
				   "Without --table all matrices are taken, by their names",
				   "%s: there is no tensor '%s'",
				   im->path_count == 1 ? im->paths[0] : "the files", wish->tensor);
	if (!tensor_is_table(found))
		return refuse_tensor_form(out, im, where, found);
	return add_wanted(out, im, wish->table, where, found);
}

static int choose_tensors(const struct output *out, struct import *im)
{
	int code = im->wish_count ? CLI_OK : take_all_tensors(out, im);

	for (size_t i = 0; !code && i < im->wish_count; i++)
		code = take_wish(out, im, &im->wishes[i]);
	if (code || im->table_count)
		return code;
	if (im->edit.dir)
		return output_fail(
			out, CLI_USAGE, ENOENT,
			"embeng checkpoint ls shows the tables and slots; name the tensor: "
			"--table TABLE/SLOT=TENSOR",
			"%s: no matrix of floats among %zu tensors has the name of a table "
			"or TABLE/SLOT of %s",
			im->paths[0], im->left, im->edit.dir);
	if (im->left == 1 && im->file_count == 1)
		return refuse_tensor_form(out, im, 0, &im->files[0].list[0]);
	return output_fail(out, CLI_USAGE, ENOENT,
			   "Save the state_dict of a model of torch: "
			   "torch.save(model.state_dict(), FILE)",
			   "%s: there is no matrix of floats among %zu tensors", im->paths[0],
			   im->left);
}

/* -- the report ------------------------------------------------------------ */

static int print_import(const struct import *im)
{
	printf("%s: %zu %s\n", im->to, im->table_count, im->table_count == 1 ? "table" : "tables");
	for (size_t i = 0; i < im->table_count; i++) {
		const struct import_table *t = &im->tables[i];

		printf("  %s: %" PRIu64 " x %" PRIu64 ", from %s of %s (%s)\n", t->name,
		       t->tensor->shape[0], t->tensor->shape[1], tensor_label(t->tensor),
		       t->file->path, tensor_type_text(t->tensor->type));
	}
	if (im->left)
		printf("left out: %zu that %s no matrix of floats\n", im->left,
		       im->left == 1 ? "is" : "are");
	return CLI_OK;
}

static int report_import(const struct output *out, const struct import *im)
{
	struct json_object *d, *tables;

	if (!out->json)
		return print_import(im);
	d = json_document(out);
	tables = json_object_new_array();
	for (size_t i = 0; i < im->table_count; i++) {
		const struct import_table *t = &im->tables[i];
		struct json_object *table = json_object_new_object();

		json_add_text(table, "name", t->name);
		json_add_number(table, "rows", t->tensor->shape[0]);
		json_add_number(table, "dim", t->tensor->shape[1]);
		json_add_text(table, "file", t->file->path);
		json_add_text(table, "tensor", *t->tensor->name ? t->tensor->name : NULL);
		json_add_text(table, "type", tensor_type_text(t->tensor->type));
		json_object_array_add(tables, table);
	}
	json_add_text(d, "dir", im->to);
	json_object_object_add(d, "tables", tables);
	json_add_number(d, "left_out", im->left);
	return json_emit(d);
}

/* -- the call -------------------------------------------------------------- */

static int refuse_old(const struct output *out, const char *dir)
{
	struct embeng_checkpoint *c = NULL;
	int ret = embeng_checkpoint_open(dir, &c, NULL);

	embeng_checkpoint_close(c);
	if (ret == -ENOENT)
		return CLI_OK;
	return output_fail(out, CLI_USAGE, EEXIST, "Import into another folder",
			   "%s: it holds a checkpoint, which is not replaced", dir);
}

static int run_import(const struct output *out, struct import *im)
{
	int code = refuse_old(out, im->to);

	im->edit.out = out;
	im->edit.to = im->to;
	if (!code && im->edit.dir)
		code = edit_open(&im->edit);
	code = code ? code : open_tensor_files(out, im);
	code = code ? code : choose_tensors(out, im);
	if (!code && im->edit.dir)
		return import_rows(&im->edit, im->tables, im->table_count, im->first);
	code = code ? code : import_save(out, im->to, im->tables, im->table_count);
	return code ? code : report_import(out, im);
}

static void free_import(struct import *im)
{
	for (size_t i = 0; i < im->file_count; i++) {
		tensor_file_close(&im->files[i]);
		free(im->stems[i]);
	}
	free(im->files);
	free(im->stems);
	free(im->tables);
	free(im->wishes);
	free(im->paths);
	edit_close(&im->edit);
}

int checkpoint_import(int argc, char **argv)
{
	static const struct argp argp = {.options = options,
					 .parser = parse_import_option,
					 .args_doc = "FILE...",
					 .doc = doc};
	struct output out = {.verb = "checkpoint", .command = "import"};
	size_t most = (size_t)argc;
	struct import im = {
		.paths = calloc(most, sizeof(*im.paths)),
		.wishes = calloc(most, sizeof(*im.wishes)),
		.files = calloc(most, sizeof(*im.files)),
		.stems = calloc(most, sizeof(*im.stems)),
		.first = -1,
	};
	int code;

	if (!im.paths || !im.wishes || !im.files || !im.stems)
		code = lack_import_memory(&out);
	else
		code = command_parse(&argp, argc, argv, &out, &im);
	if (!code)
		code = run_import(&out, &im);
	free_import(&im);
	return code;
}
