// SPDX-License-Identifier: MIT
/*
 * A save into a stream: the shards one after another, then the index, which a reader cannot do
 * without, so that a stream that ends early is none. There is no folder, and nothing to be kept.
 *
 * The struct save and its struct stream_out live for one call.
 */
#include "base/error.h"
#include "save.h"
#include "stream.h"

int save_run_stream(struct save *s)
{
	int ret = save_draw_nonce(s);

	ret = ret ? ret : s->source->begin(s);
	ret = ret ? ret : s->source->rows(s);
	ret = ret ? ret : stream_finish(s->stream, &s->index);
	if (!ret)
		save_give_report(s);
	save_forget_index(s);
	return ret;
}
