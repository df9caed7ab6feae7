// SPDX-License-Identifier: MIT
/*
 * UNIQUE, POOL and SUM with any descriptor over any inputs: they fail with a status, or lists have the
 * rows of the hosts that their counts say, and each place is one of a list.
 */
#include "../../engine/types.h"
#include "../unit/support/failing_alloc.h"
#include "watch.h"

#define TABLES 2u
#define FEATURES 3u
#define SAMPLES 12u
#define MOST_IDS 24u
#define MANY_IDS 600u /* rows of several runs, and more than one piece */
#define MOST_ROWS 40u
#define MOST_DIM 5u
#define HOSTS 4u

/* An array that the command reads or writes. */
struct given {
	void *data;
	u64 bytes;
};

struct caller {
	struct rig *rig;
	struct watch transfer;
	struct embeng_row_exchange head;
	struct embeng_exchange_table tables[TABLES];
	struct embeng_exchange_feature features[FEATURES];
	struct given given[2 * TABLES + 4 * FEATURES];
	u32 given_count;
	u16 opcode;
	u8 *desc;
};

static void *give(struct caller *c, struct embeng_mem *mem, u64 bytes, u32 rights)
{
	void *data = fuzz_memory(bytes);

	c->given[c->given_count++] = (struct given){data, bytes};
	*mem = bytes ? rig_bind(c->rig, 0, data, bytes, rights) : (struct embeng_mem){0};
	return data;
}

static void put_number(void *data, u64 k, u32 width, u64 value)
{
	memcpy((u8 *)data + k * width, &value, width);
}

static void make_floats(struct caller *c, struct fuzz *f, struct embeng_mem *mem, u64 count)
{
	u32 *to = give(c, mem, 4 * count, EMBENG_REGION_DEVICE_READ);

	for (u64 i = 0; i < count; i++)
		to[i] = 0x3f800000 + (u32)i;
	if (count && fuzz_rarely(f, 2))
		to[fuzz_below(f, 256) % count] = (u32)fuzz_near(f, 0x7f7fffff);
}

static void make_table(struct caller *c, struct fuzz *f, u32 i)
{
	struct embeng_exchange_table *t = &c->tables[i];
	bool unique = c->opcode == EMBENG_OP_UNIQUE;

	t->row_count = fuzz_below(f, MOST_ROWS);
	t->out_of_range = (u8)fuzz_below(f, 4);
	if (unique) {
		t->row_count = fuzz_rarely(f, 4) ? 1ull << 40 : t->row_count + 1;
		give(c, &t->rows, 8ull * fuzz_below(f, 64), EMBENG_REGION_DEVICE_WRITE);
		give(c, &t->result, 8ull * c->head.hosts, EMBENG_REGION_DEVICE_WRITE);
		return;
	}
	t->out_of_range &= ~EMBENG_OUT_OF_RANGE_CLAMP;
	t->dim = 1 + fuzz_below(f, MOST_DIM);
	t->combiner = (u8)fuzz_below(f, 4);
	if (c->opcode == EMBENG_OP_POOL || t->combiner == EMBENG_COMBINER_MAX)
		make_floats(c, f, &t->rows, t->row_count * t->dim);
	if (c->opcode == EMBENG_OP_SUM)
		give(c, &t->result, 4 * t->row_count * t->dim, EMBENG_REGION_DEVICE_WRITE);
}

static void make_ids(struct caller *c, struct fuzz *f, struct embeng_exchange_feature *g)
{
	void *ids = give(c, &g->ids, g->id_count * g->id_width, EMBENG_REGION_DEVICE_READ);
	void *offsets;
	u64 at = 0;

	for (u64 k = 0; k < g->id_count; k++)
		put_number(ids, k, g->id_width, fuzz_near(f, k * 7 % (k % 3 ? 5 : 17)));
	if (g->form == EMBENG_FORM_DENSE)
		return;
	g->offset_width = fuzz_rarely(f, 2) ? 4 : 8;
	offsets = give(c, &g->offsets, (g->sample_count + 1) * g->offset_width,
		       EMBENG_REGION_DEVICE_READ);
	for (u64 k = 0; k <= g->sample_count; k++) {
		put_number(offsets, k, g->offset_width, fuzz_near(f, at));
		at += fuzz_below(f, 4);
		at = at > g->id_count || k + 1 == g->sample_count ? g->id_count : at;
	}
}

static void make_feature(struct caller *c, struct fuzz *f, u32 i)
{
	struct embeng_exchange_feature *g = &c->features[i];
	const struct embeng_exchange_table *t;
	u64 numbers;

	g->table = fuzz_below(f, TABLES);
	t = &c->tables[g->table];
	g->form = (u8)fuzz_below(f, 3); /* CSR, DENSE, POOLED */
	g->id_width = fuzz_rarely(f, 2) ? 4 : 8;
	g->max_sequence_length = fuzz_rarely(f, 3) ? fuzz_below(f, 4) : 0;
	g->sample_count = fuzz_below(f, SAMPLES);
	g->id_count = g->sample_count;
	if (g->form != EMBENG_FORM_DENSE && g->sample_count)
		g->id_count = fuzz_rarely(f, 8) ? MANY_IDS : fuzz_below(f, MOST_IDS);
	make_ids(c, f, g);
	if (c->opcode == EMBENG_OP_UNIQUE) {
		give(c, &g->data, 4 * g->id_count, EMBENG_REGION_DEVICE_WRITE);
		return;
	}
	if (t->combiner != EMBENG_COMBINER_MAX && g->form != EMBENG_FORM_DENSE &&
	    !(g->max_sequence_length && g->form == EMBENG_FORM_CSR) && fuzz_rarely(f, 2))
		make_floats(c, f, &g->weights, g->id_count);
	numbers = g->sample_count * t->dim;
	if (g->max_sequence_length && g->form == EMBENG_FORM_CSR)
		numbers *= g->max_sequence_length;
	if (c->opcode == EMBENG_OP_POOL)
		give(c, &g->data, 4 * numbers, EMBENG_REGION_DEVICE_WRITE);
	else if (!fuzz_rarely(f, 4))
		make_floats(c, f, &g->data, numbers);
}

static struct embeng_mem describe(struct caller *c, struct fuzz *f)
{
	u64 bytes = sizeof(c->head) + sizeof(c->tables) + sizeof(c->features);

	c->desc = fuzz_memory(bytes);
	memcpy(c->desc, &c->head, sizeof(c->head));
	memcpy(c->desc + sizeof(c->head), c->tables, sizeof(c->tables));
	memcpy(c->desc + sizeof(c->head) + sizeof(c->tables), c->features, sizeof(c->features));
	if (fuzz_rarely(f, 2))
		fuzz_edit(f, c->desc, bytes, 2);
	return rig_bind(c->rig, 0, c->desc, bytes, EMBENG_REGION_DEVICE_READ);
}

/* The lists of a descriptor that was not edited. */
static void check_lists(const struct caller *c)
{
	for (u32 i = 0; i < TABLES; i++) {
		const u64 *rows = c->given[2 * i].data, *counts = c->given[2 * i + 1].data;
		u64 count = 0;

		for (u32 h = 0; h < c->head.hosts; h++) {
			for (u64 k = 1; k < counts[h]; k++)
				fuzz_check(rows[count + k - 1] < rows[count + k],
					   "row %llu of host %u", k, h);
			count += counts[h];
		}
		fuzz_check(8 * count <= c->tables[i].rows.length, "%llu rows", count);
	}
}

static void make_head(struct caller *c, struct fuzz *f)
{
	c->opcode = (u16)(EMBENG_OP_UNIQUE + fuzz_below(f, 3));
	c->head = (struct embeng_row_exchange){
		.table_count = TABLES,
		.table_stride = sizeof(c->tables[0]),
		.feature_count = FEATURES,
		.feature_stride = sizeof(c->features[0]),
	};
	if (c->opcode == EMBENG_OP_UNIQUE) {
		c->head.hosts = 1 + fuzz_below(f, HOSTS);
		c->head.placement = fuzz_below(f, 2);
	} else {
		c->head.flags = fuzz_below(f, 2);
	}
}

static void caller_free(struct caller *c)
{
	rig_free(c->rig);
	for (u32 i = 0; i < c->given_count; i++)
		free(c->given[i].data);
	free(c->desc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = {data, size};
	struct caller c = {.rig = watch_power_on()};
	u32 scarce = fuzz_below(&f, 128);
	struct embeng_cmd cmd = {0};
	u16 status;

	rig_context(c.rig, 0);
	watch_queue(&c.transfer, c.rig, 0, EMBENG_QUEUE_TRANSFER, 0);
	make_head(&c, &f);
	for (u32 i = 0; i < TABLES; i++)
		make_table(&c, &f, i);
	for (u32 i = 0; i < FEATURES; i++)
		make_feature(&c, &f, i);
	cmd.opcode = c.opcode;
	cmd.desc = describe(&c, &f);
	scarce_begin(scarce);
	status = watch_call(c.rig, &c.transfer, &cmd);
	/* A second one finds the memory of the first. */
	if (status == EMBENG_STATUS_OK)
		status = watch_call(c.rig, &c.transfer, &cmd);
	scarce_end();
	if (status == EMBENG_STATUS_OK && c.opcode == EMBENG_OP_UNIQUE &&
	    !memcmp(c.desc, &c.head, sizeof(c.head)) &&
	    !memcmp(c.desc + sizeof(c.head), c.tables, sizeof(c.tables)))
		check_lists(&c);
	caller_free(&c);
	return 0;
}
