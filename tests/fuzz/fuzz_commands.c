// SPDX-License-Identifier: MIT
/* Commands with any fields, any order of steps, in one context of a device that others use, too. */
#include "arena.h"
#include "batches.h"
#include "../unit/support/failing_alloc.h"

#define ACTIONS 96u

static void call_any(struct session *s, struct watch *w, struct embeng_cmd *cmd, struct fuzz *f)
{
	fuzz_edit(f, cmd, sizeof(*cmd), 2);
	if (cmd->opcode == EMBENG_OP_NOP) /* up to some microseconds late */
		cmd->arg &= ~0ull >> 24 | 0xffull << EMBENG_NOP_DELAY_SHIFT;
	watch_submit(w, cmd);
	if (fuzz_rarely(f, 2))
		engine_run(s->rig->engine, fuzz_rarely(f, 2) ? ENGINE_RUN_ACCEPT : ENGINE_RUN_ALL);
}

static void submit_lookup(struct session *s, struct fuzz *f, bool training)
{
	u32 replica = fuzz_below(f, REPLICAS);
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_LOOKUP};

	if (training)
		cmd.step = fuzz_near(f, ++s->looked[replica]);
	else
		cmd.after = fuzz_near(f, session_applied(s));
	/* By the count, so that inputs found before it mean what they did. */
	s->ids_only = cmd.step % 8 == 5 || cmd.step % 8 == 2;
	if (s->ids_only)
		cmd.flags = EMBENG_CMD_IDS_ONLY;
	cmd.desc = session_lookup(s, f);
	s->ids_only = false;
	call_any(s, training ? &s->input[replica] : &s->inference, &cmd, f);
}

static void submit_update(struct session *s, struct fuzz *f)
{
	u32 replica = fuzz_below(f, REPLICAS);
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_UPDATE};

	cmd.step = fuzz_near(f, ++s->updated[replica]);
	cmd.desc = session_update(s, f, replica, cmd.step);
	if (cmd.step % 8 == 7) {
		cmd.flags = EMBENG_CMD_DISCARD;
		cmd.desc = (struct embeng_mem){0};
	}
	call_any(s, &s->gradient[replica], &cmd, f);
}

static void submit_rows(struct session *s, struct fuzz *f)
{
	struct embeng_cmd cmd = {.opcode = (u16)(EMBENG_OP_ROWS_WRITE + fuzz_below(f, 3)),
				 .after = fuzz_near(f, session_applied(s))};

	if (cmd.opcode == EMBENG_OP_ROWS_WRITE)
		cmd.flags = fuzz_rarely(f, 4) ? EMBENG_CMD_STAGED : 0;
	cmd.desc = session_rows(s, f, cmd.opcode);
	call_any(s, &s->transfer, &cmd, f);
}

static void submit_stats(struct session *s, struct fuzz *f)
{
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_STATS,
				 .after = fuzz_near(f, session_applied(s)),
				 .arg = fuzz_below(f, MODEL_TABLES)};

	if (fuzz_rarely(f, 2))
		cmd.arg |= EMBENG_STATS_CLEAR;
	/* By the step, as above. */
	if (cmd.after % 4 == 3) {
		cmd.arg = (u32)cmd.arg | EMBENG_STATS_NOW;
		cmd.after = 0;
	}
	arena_take(&s->out, sizeof(struct embeng_stats), &cmd.desc);
	call_any(s, &s->transfer, &cmd, f);
}

static void submit_state(struct session *s, struct fuzz *f)
{
	u64 steps = fuzz_near(f, 3);
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_STATE_WRITE,
				 .after = fuzz_near(f, session_applied(s)),
				 .arg = fuzz_below(f, MODEL_TABLES + 2)};

	if (fuzz_rarely(f, 2)) {
		cmd.opcode = EMBENG_OP_STATE_READ;
		arena_take(&s->out, sizeof(u64), &cmd.desc);
	} else {
		cmd.desc = arena_put(&s->in, &steps, sizeof(steps));
	}
	call_any(s, &s->transfer, &cmd, f);
}

static void submit_stage(struct session *s, struct fuzz *f)
{
	u64 action = fuzz_below(f, 3);
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_STAGE,
				 .after = fuzz_near(f, session_applied(s)),
				 .arg = action << EMBENG_STAGE_ACTION_SHIFT};

	if (action == EMBENG_STAGE_BEGIN)
		cmd.arg |= fuzz_below(f, MODEL_TABLES) | (u64)fuzz_below(f, 3)
								 << EMBENG_STAGE_SLOT_SHIFT;
	call_any(s, &s->transfer, &cmd, f);
}

static void submit_freeze(struct session *s, struct fuzz *f)
{
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_FREEZE,
				 .after = fuzz_near(f, session_applied(s)),
				 .arg = fuzz_below(f, MODEL_TABLES) |
					(u64)fuzz_below(f, 4) << EMBENG_FREEZE_ACTION_SHIFT};

	call_any(s, &s->transfer, &cmd, f);
}

/* Its number is that of a session's first snapshots. */
static void submit_snapshot(struct session *s, struct fuzz *f)
{
	struct embeng_cmd cmd = {.opcode = (u16)(EMBENG_OP_SNAPSHOT + fuzz_below(f, 3))};

	switch (cmd.opcode) {
	case EMBENG_OP_SNAPSHOT:
		cmd.after = fuzz_near(f, session_applied(s));
		arena_take(&s->out, sizeof(u64), &cmd.desc);
		break;
	case EMBENG_OP_SNAPSHOT_READ:
		cmd.arg = fuzz_near(f, 1);
		cmd.desc = session_rows(s, f, EMBENG_OP_ROWS_READ);
		break;
	case EMBENG_OP_SNAPSHOT_END:
		cmd.arg = fuzz_near(f, 1) | (u64)fuzz_below(f, 4) << EMBENG_SNAPSHOT_TABLES_SHIFT;
		break;
	}
	call_any(s, &s->transfer, &cmd, f);
}

static void submit_fence(struct session *s, struct fuzz *f)
{
	struct embeng_fence_point points[3];
	u32 count = fuzz_below(f, 3) + 1;
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_FENCE};

	for (u32 i = 0; i < count; i++)
		points[i] = (struct embeng_fence_point){(u32)fuzz_near(f, 1 + fuzz_below(f, 7)),
							(u32)fuzz_near(f, 0)};
	cmd.desc = arena_put(&s->in, points, count * sizeof(points[0]));
	call_any(s, session_any(s, f), &cmd, f);
}

static void submit_plain(struct session *s, struct fuzz *f)
{
	struct embeng_cmd cmd = {0};

	switch (fuzz_below(f, 7)) {
	case 0:
		cmd.opcode = EMBENG_OP_DRAIN;
		cmd.step = fuzz_near(f, session_applied(s) + 1);
		break;
	case 1:
		cmd.arg = fuzz_near(f, 0) | (u64)fuzz_take(f, 1) << EMBENG_NOP_DELAY_SHIFT;
		call_any(s, session_any(s, f), &cmd, f);
		return;
	case 2:
		cmd.opcode = EMBENG_OP_MODEL_UNLOAD;
		cmd.after = fuzz_near(f, session_applied(s));
		break;
	case 3:
		cmd.opcode = EMBENG_OP_MODEL_LOAD;
		/* By the count, as above. The same tables again are a model that extends. */
		if (++s->loads % 2)
			cmd.flags = EMBENG_CMD_EXTENDS;
		cmd.desc = session_blob(s);
		break;
	default:
		submit_snapshot(s, f);
		return;
	}
	call_any(s, &s->transfer, &cmd, f);
}

static void submit_bytes(struct session *s, struct fuzz *f)
{
	struct embeng_cmd cmd;

	for (size_t i = 0; i < sizeof(cmd); i++)
		((u8 *)&cmd)[i] = (u8)fuzz_take(f, 1);
	cmd.opcode &= 31;
	call_any(s, session_any(s, f), &cmd, f);
}

static void act(struct session *s, struct fuzz *f)
{
	switch (fuzz_below(f, 17)) {
	case 0:
	case 1:
	case 2:
	case 3:
		return submit_lookup(s, f, true);
	case 4:
		return submit_lookup(s, f, false);
	case 5:
	case 6:
	case 7:
		return submit_update(s, f);
	case 8:
		return submit_rows(s, f);
	case 9:
		return submit_stats(s, f);
	case 10:
		return submit_state(s, f);
	case 11:
		return submit_stage(s, f);
	case 12:
		return submit_fence(s, f);
	case 13:
		return submit_plain(s, f);
	case 14:
		return submit_bytes(s, f);
	case 15:
		return session_change(s, f);
	case 16:
		return submit_freeze(s, f);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = {data, size};
	u32 scarce = fuzz_below(&f, 128);
	struct session *s = session_new(&f);

	scarce_begin(scarce);
	for (u32 i = 0; i < ACTIONS && f.left; i++) {
		act(s, &f);
		if (fuzz_rarely(&f, 2))
			session_settle(s);
	}
	session_settle(s);
	scarce_end();
	session_free(s);
	return 0;
}
