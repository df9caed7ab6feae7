// SPDX-License-Identifier: MIT
/*
 * Writes a checkpoint again for another number of hosts. It is a save (save.c) whose rows come from
 * another checkpoint, and it works in a folder of its own or in the same one.
 *
 * The buffer and the source checkpoint live for one call. The folder that is written to is locked.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/error.h"
#include "save.h"

#define WHAT "embeng_checkpoint_reshard"

/* Behind the lock: @in may be the folder that is written to. */
static int begin_reshard(struct save *s)
{
	int ret = embeng_checkpoint_open(s->in, &s->from, NULL);

	if (ret)
		return ret;
	s->index.step = s->from->index.step;
	s->index.model_hash = s->from->index.model_hash;
	s->index.model = s->from->index.model;
	s->index.program_state = s->from->index.program_state;
	/* Where its own files lie is known by now. */
	s->index.model->engine.hosts = s->reshard->hosts;
	s->index.model->engine.sharding = s->reshard->sharding;
	return index_make_frozen(&s->index, s->from->index.frozen_steps);
}

static int read_checkpoint_rows(struct save *s, size_t table, size_t array,
				const struct embeng_shard_rows *rows, const char **data)
{
	*data = s->buffer;
	return checkpoint_gather(s->from, (int)table, (int)array, rows, s->buffer);
}

static const struct save_source checkpoint_source = {
	.what = WHAT,
	.progress = "reshard",
	.begin = begin_reshard,
	.rows = save_rows,
	.room = save_make_room,
	.read = read_checkpoint_rows,
};

static int check_reshard_options(struct embeng_reshard_options *o,
				 const struct embeng_reshard_options *given)
{
	int ret = config_take(o, given, sizeof(*o), "embeng_reshard_options");

	if (ret)
		return ret;
	if (o->hosts > INT32_MAX)
		return fail(-ERANGE, WHAT ": %" PRIu32 " hosts are more than %d", o->hosts,
			    INT32_MAX);
	if ((unsigned int)o->sharding > EMBENG_SHARDING_MOD)
		return fail(-EINVAL,
			    WHAT ": sharding %d is unknown; there are EMBENG_SHARDING_DIV and "
				 "EMBENG_SHARDING_MOD",
			    (int)o->sharding);
	if (!o->hosts)
		o->hosts = 1;
	return 0;
}

/* Before a folder is made for it. */
static int check_in(const char *in)
{
	struct embeng_checkpoint *c;
	int ret = embeng_checkpoint_open(in, &c, NULL);

	if (!ret)
		embeng_checkpoint_close(c);
	return ret;
}

static int reshard_folder(const char *in, const char *out,
			  const struct embeng_reshard_options *options)
{
	struct embeng_reshard_options o;
	struct save s = {.source = &checkpoint_source, .in = in, .dir = out, .reshard = &o};
	int ret;

	if (!in || !out)
		return fail(-EINVAL, WHAT ": in and out must be given");
	ret = check_reshard_options(&o, options);
	ret = ret ? ret : check_in(in);
	if (ret)
		return ret;
	s.options.shard_bytes = o.shard_bytes;
	/* A copy is no worse than what it is of. */
	s.options.flags = EMBENG_SAVE_NOT_FINITE;
	s.options.keep = o.keep;
	s.options.progress = o.progress;
	s.options.progress_arg = o.progress_arg;
	ret = save_run(&s);
	free(s.buffer);
	embeng_checkpoint_close(s.from);
	return ret;
}

int embeng_checkpoint_reshard(const char *in, const char *out,
			      const struct embeng_reshard_options *options,
			      struct embeng_error *error)
{
	int ret = reshard_folder(in, out, options);

	if (ret)
		give_error(error);
	return ret;
}
