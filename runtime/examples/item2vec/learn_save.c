// SPDX-License-Identifier: MIT
/*
 * Checkpoints of a training: writes one with the names of its rows, and goes on from one. Settings
 * must be those of the run that wrote it. If the data is, too, the results are those of a run without
 * a break, to the bit; with other data, rows are found by the names of their items.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../cli/frame/exit.h"
#include "../../cli/frame/transfer.h"
#include "learn_steps.h"

static int refuse_resume(const struct output *out, const char *dir, const char *why)
{
	return output_fail(out, CLI_USAGE, EINVAL,
			   "--resume goes on with what embeng train --save wrote",
			   "%s: this checkpoint cannot be resumed: %s", dir, why);
}

static int read_state(const struct output *out, const struct embeng_checkpoint *checkpoint,
		      struct learn *learn)
{
	struct embeng_checkpoint_info info = EMBENG_INIT(embeng_checkpoint_info);
	char why[TRAINING_ERROR], differs[SETTING_ERROR];
	int rc = embeng_checkpoint_info(checkpoint, &info);

	if (rc)
		return output_library_failure(out, rc, NULL);
	if (!info.program_state)
		return refuse_resume(out, learn->resume, "embeng train did not write it");
	rc = training_read(info.program_state, &learn->from, why);
	if (rc == -ENOMEM)
		return output_fail(out, exit_of_errno(rc), rc, NULL, "%s: %s", learn->resume, why);
	if (rc)
		return refuse_resume(out, learn->resume, why);
	if (settings_continue(&learn->settings, &learn->from.settings, differs))
		return output_fail(out, CLI_USAGE, EINVAL,
				   "Leave the option out to continue, or --resume to start again",
				   "%s: %s", learn->resume, differs);
	return CLI_OK;
}

/* Checkpoints of older versions have no names; they go on with their own data alone. */
static int read_known_items(const struct output *out, const struct embeng_checkpoint *checkpoint,
			    struct learn *learn)
{
	char why[ROW_NAMES_ERROR];
	int rc;

	if (!learn->from.names.count)
		return CLI_OK;
	rc = row_names_load(learn->resume, checkpoint, &learn->known, why);
	return rc ? output_fail(out, exit_of_errno(rc), rc,
				"Without the names no row can be told from another", "%s", why)
		  : CLI_OK;
}

int resume_read(const struct output *out, struct learn *learn)
{
	struct embeng_checkpoint *checkpoint;
	int rc = embeng_checkpoint_open(learn->resume, &checkpoint, NULL), code;

	if (rc)
		return output_library_failure(out, rc,
					      rc == -ENOENT ? "--save DIR starts a training "
							      "that can be resumed"
							    : NULL);
	code = read_state(out, checkpoint, learn);
	if (!code)
		code = read_known_items(out, checkpoint, learn);
	embeng_checkpoint_close(checkpoint);
	return code;
}

static int check_resumed_place(const struct output *out, const struct learn *learn,
			       const struct trainer *t, int64_t epochs)
{
	const struct place *at = &t->at;

	if (at->epoch < epochs || (at->epoch == epochs && !at->step))
		return CLI_OK;
	return output_fail(out, CLI_USAGE, ERANGE, "--epochs counts from the start of the training",
			   "%s: the training is in epoch %" PRId64 " already, --epochs %" PRId64
			   " lies before it",
			   learn->resume, at->epoch + (at->step > 0), epochs);
}

static int refuse_other_data(const struct output *out, const struct learn *learn,
			     const struct learned *l)
{
	return output_fail(
		out, CLI_USAGE, EINVAL, "Give it the data that the training was started with",
		"%s: it was trained on other data than %s, and an older version saved it, "
		"without names of its rows",
		learn->resume, l->source);
}

/* An epoch of other data has other steps: the training goes on at the start of one. */
static int choose_place(const struct output *out, const struct learn *learn,
			const struct trainer *t, struct learned *l, struct place *place)
{
	bool given = setting_given(&learn->settings, "epochs");

	*place = learn->from.place;
	l->other_data = l->data_hash != learn->from.data;
	if (!l->other_data) {
		if (!given && learn->from.last_epoch)
			l->epochs = learn->from.last_epoch;
		return CLI_OK;
	}
	if (!learn->known.count)
		return refuse_other_data(out, learn, l);
	place->step = 0;
	place->loss_sum = 0;
	if (!given)
		l->epochs = place->epoch + trainer_epochs(t);
	if (l->epochs > place->epoch)
		return CLI_OK;
	return output_fail(
		out, CLI_USAGE, ERANGE,
		"--epochs counts from the start of the training; without it there are as "
		"many more as were asked for at first",
		"%s: %" PRId64 " epochs are trained already, so that --epochs %" PRId64
		" leaves none for the new data",
		learn->resume, place->epoch, l->epochs);
}

static int restore_tables(const struct output *out, const struct learn *learn, struct trainer *t,
			  struct learned *l)
{
	struct transfer transfer = {.line = progress_start_slowly(!out->json), .cancels = true};
	struct embeng_restore_options options = EMBENG_INIT(
		embeng_restore_options, .progress = transfer_progress, .progress_arg = &transfer,
		.report = &l->restored);
	int rc;

	l->restored.size = sizeof(l->restored);
	/* New items have rows behind those of the checkpoint. */
	if (learn->known.count && l->new_items)
		options.flags = EMBENG_RESTORE_OTHER_SHAPES;
	rc = embeng_restore(t->e, learn->resume, &options);
	progress_clear(&transfer.line);
	return rc ? output_library_failure(out, rc,
					   rc == -EINVAL ? "Its tables were changed after the "
							   "training saved them; resume an earlier "
							   "checkpoint, or --save into a new folder"
							 : NULL)
		  : CLI_OK;
}

int resume_apply(const struct output *out, const struct learn *learn, struct trainer *t,
		 struct learned *l)
{
	struct place place;
	int rc = choose_place(out, learn, t, l, &place);

	if (rc)
		return rc;
	if (trainer_go_to(t, &place))
		return refuse_resume(out, learn->resume,
				     "its place is beyond the last step of an epoch");
	rc = check_resumed_place(out, learn, t, l->epochs);
	if (!rc)
		rc = restore_tables(out, learn, t, l);
	if (rc)
		return rc;
	l->resumed = true;
	l->from = place;
	return CLI_OK;
}

static int system_failure(const struct output *out, const char *dir)
{
	int err = errno;

	return output_fail(out, exit_of_errno(err), err, NULL, "%s: %s", dir, strerror(err));
}

static bool same_folder(const char *a, const char *b)
{
	struct stat first, second;

	return a && b && !stat(a, &first) && !stat(b, &second) && first.st_dev == second.st_dev &&
	       first.st_ino == second.st_ino;
}

static int make_save_folder(const char *dir)
{
	struct stat stat_of;

	if (!mkdir(dir, 0777))
		return 0;
	if (errno != EEXIST)
		return -1;
	if (!stat(dir, &stat_of) && !S_ISDIR(stat_of.st_mode)) {
		errno = ENOTDIR;
		return -1;
	}
	return access(dir, W_OK | X_OK);
}

int save_prepare(const struct output *out, const struct learn *learn)
{
	struct embeng_checkpoint *checkpoint;
	int rc;

	if (make_save_folder(learn->save))
		return system_failure(out, learn->save);
	if (same_folder(learn->save, learn->resume))
		return CLI_OK;
	rc = embeng_checkpoint_open(learn->save, &checkpoint, NULL);
	if (rc == -ENOENT)
		return CLI_OK;
	if (!rc)
		embeng_checkpoint_close(checkpoint);
	return output_fail(out, CLI_USAGE, EEXIST,
			   "Name another folder, remove this one, or go on from it: "
			   "embeng train FILE --resume DIR",
			   "%s: it holds a checkpoint, which is not replaced", learn->save);
}

/*
 * Writes the names once in a run, before its first checkpoint. Those that the folder had are the
 * first ones of these. Return: 0, or the exit code after a report.
 */
static int save_names(const struct output *out, struct learned *l, const char *dir)
{
	int rc = 0;

	if (!l->names_saved)
		rc = row_names_save(dir, l->data->items.text, l->data->items.count);
	if (rc)
		return output_fail(out, exit_of_errno(rc), rc, NULL, "%s/" ROW_NAMES_FILE ": %s",
				   dir, strerror(-rc));
	l->names_saved = true;
	return 0;
}

int save_now(const struct output *out, struct trainer *t, struct learned *l, const char *dir)
{
	struct transfer transfer = {.line = progress_start_slowly(!out->json),
				    .cancels = l->serves};
	struct training training = {
		.settings = *l->settings,
		.data = l->data_hash,
		.last_epoch = l->epochs,
		.names = l->names,
		.place = trainer_place(t),
	};
	int rc = save_names(out, l, dir);
	char *state = rc ? NULL : training_text(&training);
	struct embeng_save_options options = EMBENG_INIT(
		embeng_save_options, .progress = transfer_progress, .progress_arg = &transfer,
		.program_state = state, .keep = (uint32_t)l->keep,
		.flags = l->delta ? EMBENG_SAVE_DELTA : 0, .report = &l->last_save);
	uint64_t began = clock_ns();

	if (!state)
		return rc ? rc : -ENOMEM;
	l->last_save = (struct embeng_save_report){.size = sizeof(l->last_save)};
	rc = embeng_save(t->e, dir, &options);
	progress_clear(&transfer.line);
	free(state);
	if (rc)
		return rc;
	l->save_ns += clock_ns() - began;
	l->saves++;
	l->deltas += l->last_save.delta != 0;
	l->saved_at = training.place;
	report_save(out, l);
	return 0;
}
