// SPDX-License-Identifier: MIT
/*
 * Model blobs with any bytes, for a model that is loaded and for one that extends it. Checksum and hash
 * are made right again, so that changes reach the checks behind them.
 */
#include "model.h"
#include "../unit/support/failing_alloc.h"
#include "watch.h"

struct loader {
	struct rig *rig;
	struct watch transfer;
	u8 *blob;
	u64 length;
	float row[64];
};

static void add_name(struct direct_blob *b)
{
	struct embeng_record_name name = {.of = EMBENG_RECORD_TABLE, .name = "t"};
	struct embeng_record head = {EMBENG_RECORD_NAME, 0, sizeof(name)};
	u64 at = b->length;

	blob_record(b, EMBENG_RECORD_NAME, &name, sizeof(name));
	memcpy(b->data + at, &head, sizeof(head)); /* it may be skipped */
}

static void add_quantization(struct fuzz *f, struct direct_blob *b)
{
	struct embeng_record_quantization q = {.table = fuzz_below(f, MODEL_TABLES),
					       .lower = model_bits(-1),
					       .upper = model_bits(1)};

	q.num_buckets = (u32)fuzz_near(f, 2 + fuzz_below(f, 8));
	blob_record(b, EMBENG_RECORD_QUANTIZATION, &q, sizeof(q));
}

/* A part of the least table that has it: the counts of this are often one too many or too few. */
static void add_shard(struct fuzz *f, const struct fuzz_model *m, struct direct_blob *b)
{
	struct embeng_record_shard s = {.table = fuzz_below(f, MODEL_TABLES), .first_row = 1};
	const struct embeng_record_table *t = &m->tables[s.table];

	s.row_step = fuzz_near(f, 1 + fuzz_below(f, 4));
	s.whole_rows = fuzz_near(f, 2 + (t->rows - 1) * s.row_step);
	s.first_column = fuzz_below(f, 8);
	s.whole_dim = (u32)fuzz_near(f, s.first_column + t->dim);
	blob_record(b, EMBENG_RECORD_SHARD, &s, sizeof(s));
}

/* FNV of the mandatory records, as far as records can be followed. */
static u64 hash_records(const u8 *data, u64 length)
{
	u64 hash = FNV1A_START, at = sizeof(struct embeng_blob_header);
	struct embeng_record head;

	for (; at + sizeof(head) <= length; at += head.length) {
		memcpy(&head, data + at, sizeof(head));
		if (head.length < sizeof(head) || head.length > length - at)
			break;
		if (head.flags & EMBENG_RECORD_MANDATORY)
			hash = fnv1a(hash, data + at, head.length);
	}
	return hash;
}

static void seal(struct fuzz *f, struct direct_blob *b)
{
	struct embeng_blob_header *h = &b->header;

	memcpy(h, b->data, sizeof(*h));
	h->length = fuzz_near(f, b->length);
	h->record_count = (u32)fuzz_near(f, h->record_count);
	h->hash = fuzz_near(f, hash_records(b->data, b->length));
	h->crc32c = 0;
	memcpy(b->data, h, sizeof(*h));
	h->crc32c = (u32)fuzz_near(f, crc32c(0, b->data, b->length));
	memcpy(b->data, h, sizeof(*h));
}

static void make(struct fuzz *f, struct direct_blob *b)
{
	struct fuzz_model m = {0};
	u64 more;

	model_make(f, ~0u, &m);
	m.engine.table_count -= fuzz_rarely(f, 16);
	model_blob(&m, b);
	more = fuzz_take(f, 1);
	if (more % 4 == 3)
		add_name(b);
	if (more >= 192)
		add_quantization(f, b);
	if (more % 8 >= 6)
		add_shard(f, &m, b);
	memcpy(b->data, &b->header, sizeof(b->header));
	fuzz_edit(f, b->data + sizeof(b->header), b->length - sizeof(b->header), 3);
	fuzz_edit(f, b->data, sizeof(b->header), 1);
	b->length = (b->length - fuzz_near(f, 0)) % sizeof(b->data);
	if (b->length >= sizeof(b->header))
		seal(f, b);
}

/* The last row and the last column of a part are in the whole table. */
static void check_shard(const struct blob *blob, u32 t)
{
	const struct embeng_record_shard *s = &blob->shards[t];
	u64 last = 0;

	if (!s->row_step)
		return;
	fuzz_check(!__builtin_mul_overflow(blob->tables[t].rows - 1, s->row_step, &last) &&
			   !__builtin_add_overflow(last, s->first_row, &last) &&
			   last < s->whole_rows,
		   "table %u: last row %llu of %llu", t, last, s->whole_rows);
	fuzz_check((u64)s->first_column + blob->tables[t].dim <= s->whole_dim,
		   "table %u: column %u of %u", t, s->first_column, s->whole_dim);
}

static void check_parsed(const struct blob *blob, const struct embeng_caps *caps)
{
	fuzz_check(blob->engine.step_depth && blob->engine.step_depth <= caps->step_depth,
		   "depth %u", blob->engine.step_depth);
	for (u32 t = 0; t < blob->engine.table_count; t++) {
		fuzz_check(blob->tables[t].rows && blob->tables[t].dim, "table %u is empty", t);
		fuzz_check(!blob->tables[t].optimizer == (blob->kernels[t] == U32_MAX),
			   "table %u: optimizer %u, kernel %u", t, blob->tables[t].optimizer,
			   blob->kernels[t]);
		check_shard(blob, t);
	}
	for (u32 i = 0; i < blob->engine.feature_count; i++)
		fuzz_check(blob->features[i].table < blob->engine.table_count, "feature %u", i);
}

static u16 parse(const struct loader *l)
{
	struct fault fault = {0};
	struct blob blob;
	u16 status = blob_parse(l->blob, l->length, &l->rig->engine->caps, &blob, &fault);

	fuzz_check(status == fault.status, "status %u, fault %u", status, fault.status);
	if (status)
		fuzz_check(fault.element <= l->length, "byte %llu", fault.element);
	else
		check_parsed(&blob, &l->rig->engine->caps);
	blob_free(&blob);
	return status;
}

static u16 call_with(struct loader *l, struct embeng_cmd cmd, void *data, u64 length, u32 rights)
{
	if (length)
		cmd.desc = rig_bind(l->rig, 0, data, length, rights);
	return watch_call(l->rig, &l->transfer, &cmd);
}

static u16 call(struct loader *l, u16 opcode, void *data, u64 length, u32 rights)
{
	return call_with(l, (struct embeng_cmd){.opcode = opcode}, data, length, rights);
}

static const struct model *loaded(const struct loader *l)
{
	return l->rig->engine->contexts[0]->model;
}

/* Parameters start at 0, slots where the blob says. */
static void check_row(struct loader *l, u32 table, u32 slot)
{
	const struct embeng_record_table *record = &loaded(l)->tables[table].record;
	u32 want = slot ? record->slot_start[slot - 1] : 0, got;
	u32 width = embeng_slot_width(record->optimizer, slot, record->dim);
	struct embeng_rows rows = {.table = table, .slot = slot, .count = 1};

	rows.data = rig_bind(l->rig, 0, l->row, 4ull * width, EMBENG_REGION_DEVICE_WRITE);
	fuzz_check(!call(l, EMBENG_OP_ROWS_READ, &rows, sizeof(rows), EMBENG_REGION_DEVICE_READ),
		   "table %u", table);
	memcpy(&got, &l->row[width - 1], sizeof(got));
	fuzz_check(got == want, "table %u, slot %u: %x, not %x", table, slot, got, want);
}

static void check_rows(struct loader *l)
{
	for (u32 t = 0; t < loaded(l)->blob.engine.table_count; t++)
		check_row(l, t, loaded(l)->tables[t].record.slot_count);
}

/* The last table once more, behind itself. */
static void repeat_table(struct direct_blob *b)
{
	u64 at = sizeof(b->header), last = 0;
	struct embeng_record_engine *engine = (void *)(b->data + at);
	struct embeng_record *record;

	for (; at + sizeof(*record) <= b->length; at += record->length) {
		record = (void *)(b->data + at);
		if (record->length < sizeof(*record) || record->length > b->length - at)
			return;
		if (record->type == EMBENG_RECORD_TABLE)
			last = at;
	}
	record = (void *)(b->data + last);
	if (!last || b->length + record->length > sizeof(b->data))
		return;
	at = last + record->length;
	memmove(b->data + at + record->length, b->data + at, b->length - at);
	memcpy(b->data + at, record, record->length);
	b->length += record->length;
	b->header.record_count++;
	memcpy(b->data, &b->header, sizeof(b->header));
	engine->table_count++;
}

/* A model that extends the loaded one or is refused: rows of tables that were there stay. */
static void extend(struct loader *l, struct fuzz *f)
{
	static struct direct_blob b;
	const struct embeng_cmd cmd = {.opcode = EMBENG_OP_MODEL_LOAD, .flags = EMBENG_CMD_EXTENDS};
	u32 tables = loaded(l)->blob.engine.table_count;
	u16 status;
	u8 *blob;

	b.length = l->length;
	memcpy(b.data, l->blob, l->length);
	memcpy(&b.header, b.data, sizeof(b.header));
	if (fuzz_rarely(f, 2))
		repeat_table(&b);
	fuzz_edit(f, b.data + sizeof(b.header), b.length - sizeof(b.header), 2);
	seal(f, &b);
	blob = fuzz_memory(b.length);
	memcpy(blob, b.data, b.length);
	scarce_begin(fuzz_below(f, 64));
	status = call_with(l, cmd, blob, b.length, EMBENG_REGION_DEVICE_READ);
	scarce_end();
	fuzz_check(loaded(l), "the model is lost");
	fuzz_check(!status || loaded(l)->blob.engine.table_count == tables, "%u tables, not %u",
		   loaded(l)->blob.engine.table_count, tables);
	check_rows(l);
	free(blob);
}

static void load(struct loader *l, struct fuzz *f, u16 parsed, u32 scarce)
{
	u16 status;
	bool failed;

	scarce_begin(scarce);
	status = call(l, EMBENG_OP_MODEL_LOAD, l->blob, l->length, EMBENG_REGION_DEVICE_READ);
	failed = scarce_end();
	fuzz_check(failed || !parsed || status == parsed || l->length < 32, "status %u, not %u",
		   status, parsed);
	if (status) {
		fuzz_check(!loaded(l), "a model that was refused");
	} else {
		check_rows(l);
		extend(l, f);
		fuzz_check(!call(l, EMBENG_OP_MODEL_UNLOAD, NULL, 0, 0), "unload");
	}
	fuzz_check(!l->rig->engine->table_memory_used, "%llu bytes are not given back",
		   l->rig->engine->table_memory_used);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct direct_blob b;
	struct fuzz f = {data, size};
	struct loader l = {.rig = watch_power_on()};
	u32 scarce = fuzz_below(&f, 64);
	u16 status;

	make(&f, &b);
	l.length = b.length;
	l.blob = fuzz_memory(l.length);
	memcpy(l.blob, b.data, l.length);
	rig_context(l.rig, 0);
	watch_queue(&l.transfer, l.rig, 0, EMBENG_QUEUE_TRANSFER, 0);
	status = parse(&l);
	if (l.length && (!status || scarce < 8))
		load(&l, &f, status, scarce);
	rig_free(l.rig);
	free(l.blob);
	return 0;
}
