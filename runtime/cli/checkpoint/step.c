// SPDX-License-Identifier: MIT
/*
 * The command `embeng checkpoint step`: shows the step of a checkpoint, or writes it again with another
 * one.
 */
#include <errno.h>
#include <inttypes.h>

#include "../../examples/item2vec/settings.h"
#include "edit.h"

static const struct argp_option options[] = {EDIT_OPTIONS, {0}};

static const char doc[] =
	"Show the step of a checkpoint, or set it to STEP.\v"
	"The step is the number of updates that the optimizers have applied; the bias correction\n"
	"of Adam and learning rate schedules depend on it. With --step=N and STEP another\n"
	"checkpoint that the folder keeps becomes the current one.\n\n"
	"  embeng checkpoint step orders.ckpt\n"
	"  embeng checkpoint step orders.ckpt 0 -o fresh.ckpt\n\n"
	"Exit status: 0 ok, 2 usage or no checkpoint in DIR, 4 permission, 5 busy or disk full,\n"
	"7 read or write error, 11 corrupt.";

static int show_step(const struct edit *edit)
{
	struct json_object *d;

	if (!edit->out->json) {
		printf("%" PRIu64 "\n", edit->step);
		return CLI_OK;
	}
	d = json_document(edit->out);
	json_add_text(d, "dir", edit->dir);
	json_add_number(d, "step", edit->step);
	return json_emit(d);
}

static int set_step(struct edit *edit)
{
	char error[SETTING_ERROR];
	int64_t step;
	int code;

	if (whole_read("STEP", edit->list[0], 0, INT64_MAX, &step, error))
		return output_fail(edit->out, CLI_USAGE, EINVAL, NULL, "%s", error);
	edit->step = (uint64_t)step;
	code = edit_model(edit, NULL);
	return code ? code : edit_write(edit);
}

int checkpoint_step(int argc, char **argv)
{
	static const struct argp argp = {.options = options,
					 .parser = edit_parse_option,
					 .args_doc = "DIR [STEP]",
					 .doc = doc};
	struct output out = {.verb = "checkpoint", .command = "step"};
	struct edit edit = {.out = &out};
	int code = command_parse(&argp, argc, argv, &out, &edit);

	if (!code && edit.count > 1)
		code = output_fail(&out, CLI_USAGE, EINVAL, NULL,
				   "the command takes one STEP; '%s' is a second", edit.list[1]);
	if (!code)
		code = edit_open(&edit);
	if (!code)
		code = edit.count ? set_step(&edit) : show_step(&edit);
	edit_close(&edit);
	return code;
}
