// SPDX-License-Identifier: MIT
/*
 * Opens a checkpoint that comes as a stream: its shards go into a spool, and every byte of them is
 * checked before the caller gets it.
 *
 * The checkpoint belongs to the caller, with the spool in it. No lock is needed.
 */
#include "base/error.h"
#include "open.h"
#include "session/session.h"
#include "stream.h"

int checkpoint_open_stream(const struct embeng_reader *from, const char *what,
			   embeng_progress_fn progress, void *progress_arg,
			   struct embeng_checkpoint **out)
{
	struct stream_in in = {
		.word = "receive", .progress = progress, .progress_arg = progress_arg};
	struct embeng_checkpoint *c = NULL;
	struct spool *spool = NULL;
	int ret = stream_in_take(&in, from, what);

	ret = ret ? ret : spool_receive(&in, &spool);
	ret = ret ? ret : checkpoint_open_spool(spool, in.index, in.index_bytes, &c);
	ret = ret ? ret : stream_check_said(&in, &c->index);
	stream_in_free(&in);
	ret = ret ? ret : checkpoint_verify_from(c, 0, progress, progress_arg);
	if (ret)
		embeng_checkpoint_close(c);
	else
		*out = c;
	return ret;
}

int embeng_checkpoint_open_stream(const struct embeng_reader *from, embeng_progress_fn progress,
				  void *progress_arg, struct embeng_checkpoint **out,
				  struct embeng_error *error)
{
	int ret = out ? checkpoint_open_stream(from, "embeng_checkpoint_open_stream", progress,
					       progress_arg, out)
		      : fail(-EINVAL, "embeng_checkpoint_open_stream: out must be given");

	if (ret)
		give_error(error);
	return ret;
}
