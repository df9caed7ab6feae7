// SPDX-License-Identifier: MIT
/*
 * The command `embeng checkpoint list`: lists the checkpoints in a folder, the newest first. Only
 * indices and the headers of shards are read.
 */
#include <errno.h>
#include <inttypes.h>

#include "../frame/transfer.h"
#include "commands.h"

static const char doc[] =
	"List the checkpoints in a folder, the newest first.\v"
	"A save keeps the checkpoint before it, or as many as --keep says. The commands ls and\n"
	"verify look at an earlier one with --step.\n\n"
	"  embeng checkpoint list orders.ckpt\n\n"
	"Exit status: 0 ok, 2 usage or no checkpoint in DIR, 4 permission, 11 corrupt.";

static void print_listed(size_t back, const struct embeng_checkpoint_info *info)
{
	char size[BYTES_TEXT];

	if (!back)
		printf("%20s  %6s  %6s  %6s  %10s  %s\n", "STEP", "TABLES", "FILES", "DELTAS",
		       "SIZE", "MODEL");
	printf("%20" PRIu64 "  %6zu  %6zu  %6" PRIu32 "  %10s  %016" PRIx64 "\n", info->step,
	       info->table_count, info->file_count, info->deltas, bytes_text(info->bytes, size),
	       info->model_hash);
}

static void json_add_listed(struct json_object *list, const struct embeng_checkpoint_info *info)
{
	struct json_object *object = json_object_new_object();
	char hash[24];

	snprintf(hash, sizeof(hash), "%016" PRIx64, info->model_hash);
	json_add_number(object, "step", info->step);
	json_add_text(object, "model_hash", hash);
	json_add_number(object, "tables", info->table_count);
	json_add_number(object, "files", info->file_count);
	json_add_number(object, "bytes", info->bytes);
	json_add_number(object, "deltas", info->deltas);
	json_object_array_add(list, object);
}

/* The newest is open already. */
static int run_list(const struct output *out, const char *dir, const struct embeng_checkpoint *c,
		    const struct embeng_checkpoint_info *newest)
{
	struct json_object *list = json_object_new_array(), *d;
	struct embeng_checkpoint_info info = *newest;
	struct embeng_checkpoint *earlier;
	size_t back = 0;
	int err = 0;

	(void)c;
	while (!err) {
		json_add_listed(list, &info);
		if (!out->json)
			print_listed(back, &info);
		err = embeng_checkpoint_open_earlier(dir, ++back, &earlier, NULL);
		if (err)
			break;
		err = embeng_checkpoint_info(earlier, &info);
		embeng_checkpoint_close(earlier);
	}
	if (err != -ENODATA || !out->json) {
		json_object_put(list);
		return err == -ENODATA ? CLI_OK : output_library_failure(out, err, NULL);
	}
	d = json_document(out);
	json_add_text(d, "dir", dir);
	json_object_object_add(d, "checkpoints", list);
	return json_emit(d);
}

int checkpoint_list(int argc, char **argv)
{
	static const struct checkpoint_command command = {
		.name = "list", .doc = doc, .run = run_list};

	return checkpoint_run(&command, argc, argv);
}
