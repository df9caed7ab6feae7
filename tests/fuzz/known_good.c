// SPDX-License-Identifier: MIT
/*
 * Runs a program of a few commands that are all good in a context of its own, after a fuzzer's
 * input: the device must still give the right results.
 */
#include "../unit/support/direct_model.h"
#include "watch.h"

#define ROWS 4u
#define DIM 2u

/* Memory that a program of a few commands shares with the device. */
struct shared {
	struct direct_blob blob;
	struct {
		struct embeng_lookup header;
		struct embeng_lookup_feature feature;
	} lookup;
	struct {
		struct embeng_update header;
		struct embeng_update_feature feature;
	} update;
	struct embeng_rows rows;
	float data[ROWS][DIM], out[2][DIM], gradients[2][DIM];
	s64 ids[2];
};

struct program {
	struct rig *rig;
	struct watch input, gradient, transfer;
	struct shared *shared;
	struct embeng_mem key;
};

#define PART(p, member) \
	((struct embeng_mem){(p)->key.index, (p)->key.generation, offsetof(struct shared, member), \
			     sizeof((p)->shared->member)})

static void call(struct program *p, struct watch *w, struct embeng_cmd cmd)
{
	u16 status = watch_call(p->rig, w, &cmd);

	fuzz_check(status == EMBENG_STATUS_OK, "opcode %u: status %u", cmd.opcode, status);
}

static void load(struct program *p)
{
	struct small_model model = small_model(ROWS, DIM);
	struct embeng_mem blob = PART(p, blob);

	small_blob(&model, &p->shared->blob);
	blob.length = p->shared->blob.length;
	call(p, &p->transfer, (struct embeng_cmd){.opcode = EMBENG_OP_MODEL_LOAD, .desc = blob});
}

static void rows(struct program *p, u16 opcode, u64 after)
{
	p->shared->rows = (struct embeng_rows){.count = ROWS, .data = PART(p, data)};
	call(p, &p->transfer,
	     (struct embeng_cmd){.opcode = opcode, .after = after, .desc = PART(p, rows)});
}

static void lookup(struct program *p)
{
	u64 hash = p->shared->blob.header.hash;

	p->shared->lookup.header = (struct embeng_lookup){
		.feature_count = 1,
		.model_hash = hash,
		.feature_stride = sizeof(struct embeng_lookup_feature)};
	p->shared->lookup.feature = (struct embeng_lookup_feature){.form = EMBENG_FORM_DENSE,
								   .id_width = 8,
								   .sample_count = 2,
								   .id_count = 2,
								   .ids = PART(p, ids),
								   .activations = PART(p, out)};
	call(p, &p->input,
	     (struct embeng_cmd){.opcode = EMBENG_OP_LOOKUP, .step = 1, .desc = PART(p, lookup)});
}

static void update(struct program *p)
{
	p->shared->update.header = (struct embeng_update){
		.feature_count = 1,
		.feature_stride = sizeof(struct embeng_update_feature),
		.model_hash = p->shared->blob.header.hash};
	p->shared->update.feature = (struct embeng_update_feature){.gradients = PART(p, gradients)};
	call(p, &p->gradient,
	     (struct embeng_cmd){.opcode = EMBENG_OP_UPDATE, .step = 1, .desc = PART(p, update)});
}

static void check(const struct shared *s, u32 row, float first, float second)
{
	fuzz_check(s->data[row][0] == first && s->data[row][1] == second, "row %u: %a %a", row,
		   (double)s->data[row][0], (double)s->data[row][1]);
}

/* Row r is (10 r, 10 r + 1); rows 3 and 1 are looked up, and get gradients 1 2 and 3 4. */
static void run(struct program *p)
{
	struct shared *s = p->shared;

	for (u32 r = 0; r < ROWS; r++) {
		s->data[r][0] = 10 * (float)r;
		s->data[r][1] = 10 * (float)r + 1;
	}
	for (u32 i = 0; i < 4; i++)
		s->gradients[i / DIM][i % DIM] = (float)i + 1;
	s->ids[0] = 3;
	s->ids[1] = 1;
	load(p);
	rows(p, EMBENG_OP_ROWS_WRITE, 0);
	lookup(p);
	fuzz_check(s->out[0][0] == 30 && s->out[0][1] == 31 && s->out[1][0] == 10 &&
			   s->out[1][1] == 11,
		   "looked up %a", (double)s->out[0][0]);
	update(p);
	rows(p, EMBENG_OP_ROWS_READ, 1);
	check(s, 0, 0, 1);
	check(s, 1, 7, 7);
	check(s, 2, 20, 21);
	check(s, 3, 29, 29);
}

void watch_known_good(struct rig *rig, u32 context)
{
	struct program p = {.rig = rig, .shared = fuzz_memory(sizeof(*p.shared))};

	rig_context(rig, context);
	watch_queue(&p.input, rig, context, EMBENG_QUEUE_INPUT, 0);
	watch_queue(&p.gradient, rig, context, EMBENG_QUEUE_GRADIENT, 0);
	watch_queue(&p.transfer, rig, context, EMBENG_QUEUE_TRANSFER, 0);
	p.key = rig_bind(rig, context, p.shared, sizeof(*p.shared),
			 EMBENG_REGION_DEVICE_READ | EMBENG_REGION_DEVICE_WRITE);
	run(&p);
	free(p.shared);
}
