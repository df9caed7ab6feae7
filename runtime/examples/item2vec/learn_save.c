// SPDX-License-Identifier: MIT
/*
 * Checkpoints of a training: writes one, and goes on from one. Settings and data must be those of
 * the run that wrote it, so that the results are those of a run without a break, to the bit.
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
	struct embeng_checkpoint_info info = {.size = sizeof(info)};
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

int resume_apply(const struct output *out, const struct learn *learn, struct trainer *t,
		 struct learned *l)
{
	struct transfer transfer = {.line = progress_start_slowly(!out->json), .cancels = true};
	struct embeng_restore_options options = {
		.size = sizeof(options),
		.progress = transfer_progress,
		.progress_arg = &transfer,
	};
	int rc;

	if (l->data_hash != learn->from.data)
		return output_fail(out, CLI_USAGE, EINVAL,
				   "Give it the data that the training was started with",
				   "%s: it was trained on other data than %s", learn->resume,
				   l->source);
	if (trainer_go_to(t, &learn->from.place))
		return refuse_resume(out, learn->resume,
				     "its place is beyond the last step of an epoch");
	rc = check_resumed_place(out, learn, t, l->epochs);
	if (rc)
		return rc;
	rc = embeng_restore(t->e, learn->resume, &options);
	progress_clear(&transfer.line);
	if (rc)
		return output_library_failure(out, rc, NULL);
	l->resumed = true;
	l->from = learn->from.place;
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

int save_now(const struct output *out, struct trainer *t, struct learned *l, const char *dir)
{
	struct transfer transfer = {.line = progress_start_slowly(!out->json),
				    .cancels = l->serves};
	struct training training = {
		.settings = *l->settings,
		.data = l->data_hash,
		.place = trainer_place(t),
	};
	char *state = training_text(&training);
	struct embeng_save_options options = {
		.size = sizeof(options),
		.progress = transfer_progress,
		.progress_arg = &transfer,
		.program_state = state,
	};
	uint64_t began = clock_ns();
	int rc;

	if (!state)
		return -ENOMEM;
	rc = embeng_save(t->e, dir, &options);
	progress_clear(&transfer.line);
	free(state);
	if (rc)
		return rc;
	l->save_ns += clock_ns() - began;
	l->saves++;
	l->saved_at = training.place;
	return 0;
}
