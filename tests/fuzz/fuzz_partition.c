// SPDX-License-Identifier: MIT
/*
 * PARTITION with any descriptor over any inputs: it fails with a status and writes nothing, or
 * what it wrote are items of the grid where the row pointers say.
 */
#include "../../engine/partition/partition.h"
#include "../unit/support/failing_alloc.h"
#include "watch.h"

#define FEATURES 3u
#define SAMPLES 16u
#define MOST_IDS 24u
#define MANY_IDS 600u /* enough to be sorted at once */
#define FLAGS (EMBENG_PARTITION_MINIBATCHING | EMBENG_PARTITION_DROPPING)

struct input {
	void *ids, *offsets, *weights;
};

struct caller {
	struct rig *rig;
	struct watch transfer;
	struct embeng_partition head;
	struct embeng_partition_feature features[FEATURES];
	struct input inputs[FEATURES];
	void *outputs[5];
	u8 *desc;
};

static struct embeng_mem give(struct caller *c, void **data, u64 bytes)
{
	*data = fuzz_memory(bytes);
	return bytes ? rig_bind(c->rig, 0, *data, bytes, EMBENG_REGION_DEVICE_READ)
		     : (struct embeng_mem){0};
}

static struct embeng_mem take(struct caller *c, u32 which, u64 bytes)
{
	c->outputs[which] = fuzz_memory(bytes);
	return rig_bind(c->rig, 0, c->outputs[which], bytes, EMBENG_REGION_DEVICE_WRITE);
}

static void write_number(void *data, u64 k, u32 width, u64 value)
{
	memcpy((u8 *)data + k * width, &value, width);
}

static void make_ids(struct caller *c, struct fuzz *f, u32 i)
{
	struct embeng_partition_feature *g = &c->features[i];

	g->ids = give(c, &c->inputs[i].ids, g->id_count * g->id_width);
	for (u64 k = 0; k < g->id_count; k++)
		write_number(c->inputs[i].ids, k, g->id_width,
			     fuzz_near(f, fuzz_below(f, 64) % g->rows));
	if (g->form == EMBENG_FORM_DENSE || fuzz_rarely(f, 2))
		return;
	g->weights = give(c, &c->inputs[i].weights, 4 * g->id_count);
	for (u64 k = 0; k < g->id_count; k++)
		write_number(c->inputs[i].weights, k, 4, fuzz_near(f, 0x3f800000));
}

static void make_offsets(struct caller *c, struct fuzz *f, u32 i)
{
	struct embeng_partition_feature *g = &c->features[i];
	bool coo = g->form == EMBENG_FORM_COO;
	u64 count = coo ? g->id_count : g->sample_count + 1, at = 0;

	if (g->form == EMBENG_FORM_DENSE)
		return;
	g->offset_width = fuzz_rarely(f, 2) ? 4 : 8;
	g->offsets = give(c, &c->inputs[i].offsets, count * g->offset_width);
	for (u64 k = 0; k < count; k++) {
		u64 last = coo ? g->sample_count - 1 : g->id_count;

		write_number(c->inputs[i].offsets, k, g->offset_width, fuzz_near(f, at));
		at += fuzz_below(f, 3);
		at = at > last || (!coo && k + 2 == count) ? last : at;
	}
}

static void make_feature(struct caller *c, struct fuzz *f, u32 i)
{
	static const u8 forms[] = {EMBENG_FORM_CSR, EMBENG_FORM_DENSE, EMBENG_FORM_COO};
	struct embeng_partition_feature *g = &c->features[i];
	u64 columns = c->head.columns / FEATURES / c->head.cores * c->head.cores;

	g->form = forms[fuzz_below(f, 3)];
	g->id_width = fuzz_rarely(f, 2) ? 4 : 8;
	g->combiner = (u8)fuzz_below(f, 3); /* MAX is refused; fuzz_edit() may come to it */
	g->rotation = fuzz_below(f, 256) % c->head.cores;
	g->rows = 1 + fuzz_below(f, 64) % columns;
	g->column_offset = i * columns;
	g->sample_count = fuzz_below(f, SAMPLES) / c->head.device_cores * c->head.device_cores;
	g->id_count = g->form == EMBENG_FORM_DENSE ? g->sample_count : fuzz_below(f, MOST_IDS);
	if (g->form != EMBENG_FORM_DENSE && g->id_count == MOST_IDS - 1)
		g->id_count = MANY_IDS;
	if (!g->sample_count)
		g->id_count = 0;
	make_ids(c, f, i);
	make_offsets(c, f, i);
}

static void make_head(struct caller *c, struct fuzz *f)
{
	struct embeng_partition *h = &c->head;

	h->flavour = (u8)fuzz_below(f, 2);
	h->bucket = (u8)(EMBENG_BUCKET_HASH - fuzz_below(f, 3));
	h->flags = (u16)(fuzz_below(f, 4) ^ FLAGS);
	h->feature_count = FEATURES;
	h->feature_stride = sizeof(c->features[0]);
	h->device_cores = 1u << fuzz_below(f, 3);
	h->cores = h->device_cores << fuzz_below(f, 3);
	if (fuzz_rarely(f, 4))
		h->cores *= 3;
	h->columns = (u64)h->cores * FEATURES * (1 + fuzz_below(f, 16));
	if (fuzz_rarely(f, 4))
		h->columns = (1ull << 31) / h->cores * h->cores;
	h->max_ids = fuzz_rarely(f, 3) ? 0 : 1 + fuzz_below(f, 4);
	h->max_unique_ids = fuzz_rarely(f, 3) ? 0 : 1 + fuzz_below(f, 4);
	h->buffer = fuzz_rarely(f, 3) ? 8ull * fuzz_below(f, 32) : 0;
}

static void make_outputs(struct caller *c, struct fuzz *f)
{
	struct embeng_partition *h = &c->head;
	u64 items = 8ull * (1 + fuzz_below(f, 128)) * 4;

	h->row_pointers = take(c, 0, 4ull * 8 * (1 + fuzz_below(f, 64) * 4));
	h->tokens = take(c, 1, 4 * items);
	h->samples = take(c, 2, 4 * items);
	h->gains = take(c, 3, 4 * items);
	h->result = take(c, 4,
			 sizeof(struct embeng_partition_result) + 8ull * h->cores +
				 24ull * h->device_cores);
}

/* One number of the descriptor that is not an array's. */
static void spoil(struct fuzz *f, u8 *desc)
{
	static const u8 widths[] = {1, 1, 2, 4, 4, 4, 4, 4, 8, 8, 8, 8};
	static const u8 feature_widths[] = {1, 1, 1, 1, 4, 8, 8, 8, 8};
	bool feature = fuzz_rarely(f, 2);
	u32 which = fuzz_below(f, feature ? sizeof(feature_widths) : sizeof(widths)), at = 0;
	u32 width = feature ? feature_widths[which] : widths[which];
	u64 value = 0;

	for (u32 i = 0; i < which; i++)
		at += feature ? feature_widths[i] : widths[i];
	if (feature)
		at += sizeof(struct embeng_partition) +
		      fuzz_below(f, FEATURES) * sizeof(struct embeng_partition_feature);
	memcpy(&value, desc + at, width);
	value = fuzz_rarely(f, 2) ? fuzz_take(f, width) : fuzz_near(f, value + 1);
	memcpy(desc + at, &value, width);
}

static struct embeng_mem describe(struct caller *c, struct fuzz *f)
{
	u64 bytes = sizeof(c->head) + sizeof(c->features);

	c->desc = fuzz_memory(bytes);
	memcpy(c->desc, &c->head, sizeof(c->head));
	memcpy(c->desc + sizeof(c->head), c->features, sizeof(c->features));
	if (fuzz_rarely(f, 2))
		spoil(f, c->desc);
	else if (fuzz_rarely(f, 3))
		fuzz_edit(f, c->desc, bytes, 2);
	memcpy(&c->head, c->desc, sizeof(c->head));
	return rig_bind(c->rig, 0, c->desc, bytes, EMBENG_REGION_DEVICE_READ);
}

/* Samples of one core, by the descriptor as the device took it: COO says any number of them. */
static u64 core_samples(const struct caller *c)
{
	struct embeng_partition_feature feature;
	u64 samples = 0;

	for (u32 i = 0; i < c->head.feature_count; i++) {
		memcpy(&feature, c->desc + sizeof(c->head) + (u64)i * c->head.feature_stride,
		       sizeof(feature));
		samples += feature.sample_count;
	}
	return samples / c->head.device_cores;
}

static void check_items(const struct caller *c, u64 at, u64 end)
{
	const u32 *tokens = c->outputs[1], *samples = c->outputs[2];
	u64 most = core_samples(c);

	for (; at < end; at++) {
		fuzz_check(tokens[at] < c->head.columns / c->head.cores, "token %u", tokens[at]);
		fuzz_check(samples[at] < most, "sample %u of %llu", samples[at], most);
	}
}

static void check_core(const struct caller *c, u32 core, const struct embeng_partition_result *r)
{
	const u64 *told = (const u64 *)((const u8 *)c->outputs[4] + sizeof(*r) +
					8ull * c->head.cores);
	u64 first = told[c->head.device_cores + core],
	    end = told[2ull * c->head.device_cores + core];
	bool own = c->head.flavour == EMBENG_FLAVOUR_JAX &&
		   !(c->head.flags & EMBENG_PARTITION_MINIBATCHING);
	const s32 *pointers = c->outputs[0];
	u64 at = first;

	fuzz_check(first <= end && end <= c->head.tokens.length / 4, "%llu to %llu", first, end);
	for (u32 m = 0; m < r->minibatches; m++) {
		for (u32 p = 0; p < c->head.cores; p++) {
			u64 pointer =
				(u64)pointers[((u64)core * r->minibatches + m) * r->row_stride +
					      p] +
				(own ? first : 0);

			fuzz_check(pointer >= at && pointer <= end, "%llu: %llu to %llu", pointer,
				   at, end);
			check_items(c, at, pointer);
			at = pcsr_aligned(pointer);
			at = at > end ? end : at;
		}
	}
}

static void check_result(const struct caller *c)
{
	const struct embeng_partition_result *r = c->outputs[4];

	fuzz_check(r->minibatches && r->minibatches <= EMBENG_PARTITION_BUCKETS, "%u",
		   r->minibatches);
	fuzz_check((u32)__builtin_popcountll(r->splits) + 1 == r->minibatches, "%llx", r->splits);
	for (u32 core = 0; core < c->head.device_cores; core++)
		check_core(c, core, r);
}

static void caller_free(struct caller *c)
{
	rig_free(c->rig);
	for (u32 i = 0; i < 5; i++)
		free(c->outputs[i]);
	for (u32 i = 0; i < FEATURES; i++) {
		free(c->inputs[i].ids);
		free(c->inputs[i].offsets);
		free(c->inputs[i].weights);
	}
	free(c->desc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = {data, size};
	struct caller c = {.rig = watch_power_on()};
	u32 scarce = fuzz_below(&f, 128);
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_PARTITION};
	u16 status;

	rig_context(c.rig, 0);
	watch_queue(&c.transfer, c.rig, 0, EMBENG_QUEUE_TRANSFER, 0);
	make_head(&c, &f);
	for (u32 i = 0; i < FEATURES; i++)
		make_feature(&c, &f, i);
	make_outputs(&c, &f);
	if (fuzz_rarely(&f, 4) && c.head.flags & EMBENG_PARTITION_MINIBATCHING)
		c.head.splits = fuzz_take(&f, 8) >> 1;
	cmd.desc = describe(&c, &f);
	if (fuzz_rarely(&f, 8))
		cmd.desc.length = fuzz_below(&f, 64);
	scarce_begin(scarce);
	status = watch_call(c.rig, &c.transfer, &cmd);
	scarce_end();
	if (status == EMBENG_STATUS_OK)
		check_result(&c);
	caller_free(&c);
	return 0;
}
