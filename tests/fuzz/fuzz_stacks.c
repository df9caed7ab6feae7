// SPDX-License-Identifier: MIT
/*
 * Steps whose lookups are of partitioned CSR, with any descriptor and any numbers in the arrays:
 * refused, or looked up and updated; the device works on.
 */
#include "../unit/support/failing_alloc.h"
#include "batches.h"

#define ACTIONS 12u

/* Whether it was done, or waits for what other commands bring. */
static bool submit(struct session *s, struct watch *w, struct embeng_cmd *cmd)
{
	w->last = WATCH_NO_STATUS;
	if (!watch_submit(w, cmd))
		return false;
	session_settle(s);
	return !w->last || w->last == WATCH_NO_STATUS;
}

static void look(struct session *s, struct fuzz *f, u32 replica)
{
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_LOOKUP, .step = s->looked[replica] + 1};

	if (cmd.step > session_applied(s) + 2)
		return;
	cmd.desc = session_lookup(s, f);
	s->looked[replica] += submit(s, &s->input[replica], &cmd);
}

static void infer(struct session *s, struct fuzz *f)
{
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_LOOKUP, .after = session_applied(s)};

	cmd.desc = session_lookup(s, f);
	submit(s, &s->inference, &cmd);
}

static void update(struct session *s, struct fuzz *f, u32 replica)
{
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_UPDATE, .step = s->updated[replica] + 1};

	if (cmd.step > s->looked[replica])
		return;
	cmd.desc = session_update(s, f, replica, cmd.step);
	s->updated[replica] += submit(s, &s->gradient[replica], &cmd);
}

static void act(struct session *s, struct fuzz *f)
{
	u32 what = fuzz_below(f, 8);

	if (what < 3)
		look(s, f, what % REPLICAS);
	else if (what < 5)
		infer(s, f);
	else
		update(s, f, what % REPLICAS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = {data, size};
	u32 scarce = fuzz_below(&f, 255);
	struct session *s = session_new(&f);

	s->stacked = true;
	scarce_begin(scarce);
	for (u32 i = 0; i < ACTIONS && f.left; i++)
		act(s, &f);
	scarce_end();
	session_settle(s);
	session_free(s);
	return 0;
}
