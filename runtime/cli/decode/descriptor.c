// SPDX-License-Identifier: MIT
/*
 * Reads descriptors of commands, as they lie in a program's memory: those of LOOKUP, UPDATE, the
 * commands on rows, PARTITION, and the exchanges of rows. A descriptor has no magic. It is known by its length, which its
 * counts and strides must give exactly; others are read when --as names them.
 *
 * The engine checks a descriptor against the model and the regions of its context, which a file does
 * not have. The checks here need the descriptor alone: reserved fields, forms and widths, and
 * that each array has the length that its count asks for.
 */
#include <inttypes.h>
#include <string.h>

#include "command.h"
#include "readers.h"
#include "words.h"

static bool stride_ok(uint64_t stride, size_t least)
{
	return stride >= least && stride % 8 == 0;
}

/* Copies a structure of which as much as the file has is there; the rest is 0. */
static bool copy_whole(struct sheet *s, const struct bytes *b, uint64_t at, void *to, size_t size)
{
	size_t have = at < b->size ? (size_t)(b->size - at) : 0;

	memset(to, 0, size);
	memcpy(to, b->data + (have ? at : 0), have < size ? have : size);
	if (have >= size)
		return true;
	sheet_odd(s, b->size,
		  "the file ends inside of a structure that has %zu bytes from %" PRIu64 " on",
		  size, at);
	return false;
}

static void show_mem(struct sheet *s, uint64_t at, const char *name, const struct embeng_mem *m)
{
	if (!m->index && !m->generation && !m->offset && !m->length) {
		sheet_text(s, at, name, "not given");
		return;
	}
	sheet_text(s, at, name, "key %u:%u, offset %llu, length %llu", m->index, m->generation,
		   (unsigned long long)m->offset, (unsigned long long)m->length);
	if (!m->generation)
		sheet_odd(s, at, "%s has a key of generation 0, which no key has", name);
	if (m->offset + m->length < m->offset)
		sheet_odd(s, at, "offset and length of %s exceed 64 bits", name);
}

/* An array of @count elements of @width bytes. */
static void check_array_length(struct sheet *s, uint64_t at, const char *name,
			       const struct embeng_mem *m, uint64_t count, uint64_t width)
{
	uint64_t bytes;

	if (__builtin_mul_overflow(count, width, &bytes))
		sheet_odd(s, at, "%s: %" PRIu64 " elements exceed 64 bits", name, count);
	else if (m->length != bytes)
		sheet_odd(s, at,
			  "%s has %llu bytes, and %" PRIu64 " elements of %" PRIu64
			  " bytes need %" PRIu64,
			  name, (unsigned long long)m->length, count, width, bytes);
	if (width && m->offset % width)
		sheet_odd(s, at, "%s begins at %llu, which is no multiple of %" PRIu64, name,
			  (unsigned long long)m->offset, width);
}

static void check_zero(struct sheet *s, uint64_t at, const char *name, uint64_t value)
{
	if (value)
		sheet_odd(s, at, "%s is %#" PRIx64 ", and must be 0", name, value);
}

/* A descriptor ends with the last of its structures. */
static void check_size(struct sheet *s, const struct bytes *b, uint64_t size)
{
	if (size != b->size)
		sheet_odd(s, b->size,
			  "the counts and strides make %" PRIu64 " bytes, and the file has %zu",
			  size, b->size);
}

#define N(type, member, words) \
	sheet_number(s, at + offsetof(struct embeng_##type, member), #member, v.member, words)
#define M(type, member) show_mem(s, at + offsetof(struct embeng_##type, member), #member, &v.member)
#define X(type, member) \
	sheet_text(s, at + offsetof(struct embeng_##type, member), #member, "%#llx", \
		   (unsigned long long)v.member)
#define AT(type, member) (at + offsetof(struct embeng_##type, member))

/* -- LOOKUP -------------------------------------------------------------- */

static uint64_t lookup_bytes(const struct embeng_lookup *h)
{
	return sizeof(*h) + (uint64_t)h->feature_count * h->feature_stride +
	       (uint64_t)h->stack_count * h->stack_stride +
	       (uint64_t)h->member_count * h->member_stride;
}

bool lookup_is(const struct bytes *b)
{
	struct embeng_lookup h;

	if (b->size < sizeof(h))
		return false;
	memcpy(&h, b->data, sizeof(h));
	return h.feature_count &&
	       stride_ok(h.feature_stride, sizeof(struct embeng_lookup_feature)) &&
	       h.stack_count <= h.member_count && lookup_bytes(&h) == b->size;
}

static void check_csr(struct sheet *s, uint64_t at, const struct embeng_lookup_feature *v)
{
	if (v->form == EMBENG_FORM_PARTITIONED)
		return;
	check_array_length(s, AT(lookup_feature, ids), "ids", &v->ids, v->id_count, v->id_width);
	if (v->id_width != 4 && v->id_width != 8)
		sheet_odd(s, AT(lookup_feature, id_width), "ids of %u bytes, allowed are 4 and 8",
			  v->id_width);
	if (v->weights.generation)
		check_array_length(s, AT(lookup_feature, weights), "weights", &v->weights,
				   v->id_count, 4);
	if ((v->form == EMBENG_FORM_DENSE || v->form == EMBENG_FORM_ROWS) &&
	    v->id_count != v->sample_count)
		sheet_odd(s, AT(lookup_feature, id_count),
			  "a feature of one id for each sample has %llu ids and %llu samples, "
			  "which must be equal",
			  (unsigned long long)v->id_count, (unsigned long long)v->sample_count);
	if (v->form != EMBENG_FORM_CSR && v->form != EMBENG_FORM_POOLED)
		return;
	if (v->offset_width != 4 && v->offset_width != 8)
		sheet_odd(s, AT(lookup_feature, offset_width),
			  "row offsets of %u bytes, allowed are 4 and 8", v->offset_width);
	else
		check_array_length(s, AT(lookup_feature, offsets), "offsets", &v->offsets,
				   v->sample_count + 1, v->offset_width);
}

static void show_lookup_feature(struct sheet *s, const struct bytes *b, uint64_t at, uint32_t i)
{
	struct embeng_lookup_feature v;
	bool whole;

	sheet_part(s, at, "feature %u", i);
	whole = copy_whole(s, b, at, &v, sizeof(v));
	sheet_says(s, "%s, %llu samples, %llu ids", word_or_unknown(word_form(v.form)),
		   (unsigned long long)v.sample_count, (unsigned long long)v.id_count);
	N(lookup_feature, feature, NULL);
	N(lookup_feature, form, word_form(v.form));
	N(lookup_feature, id_width, "bytes");
	N(lookup_feature, offset_width, "bytes");
	N(lookup_feature, sample_count, NULL);
	N(lookup_feature, id_count, NULL);
	M(lookup_feature, offsets);
	M(lookup_feature, ids);
	M(lookup_feature, weights);
	M(lookup_feature, activations);
	N(lookup_feature, activation_stride, "bytes");
	if (!whole)
		return;
	if (v.feature != i)
		sheet_odd(s, at, "feature %u stands where feature %u must be", v.feature, i);
	if (!word_form(v.form) || v.form == EMBENG_FORM_COO)
		sheet_odd(s, AT(lookup_feature, form), "the form %u is none of a LOOKUP", v.form);
	check_zero(s, AT(lookup_feature, reserved), "reserved", v.reserved);
	check_csr(s, at, &v);
}

static void show_stack(struct sheet *s, const struct bytes *b, uint64_t at, uint32_t i)
{
	struct embeng_lookup_stack v;
	bool whole;

	sheet_part(s, at, "stack %u", i);
	whole = copy_whole(s, b, at, &v, sizeof(v));
	N(lookup_stack, member_count, NULL);
	N(lookup_stack, cores, NULL);
	N(lookup_stack, device_cores, NULL);
	N(lookup_stack, minibatches, NULL);
	N(lookup_stack, row_stride, NULL);
	X(lookup_stack, flags);
	N(lookup_stack, item_count, NULL);
	M(lookup_stack, row_pointers);
	M(lookup_stack, tokens);
	M(lookup_stack, samples);
	M(lookup_stack, gains);
	M(lookup_stack, bounds);
	if (!whole)
		return;
	check_array_length(s, AT(lookup_stack, tokens), "tokens", &v.tokens, v.item_count, 4);
	check_array_length(s, AT(lookup_stack, samples), "samples", &v.samples, v.item_count, 4);
	check_array_length(s, AT(lookup_stack, gains), "gains", &v.gains, v.item_count, 4);
	check_zero(s, AT(lookup_stack, reserved), "reserved", v.reserved[0] | v.reserved[1]);
	if (!v.device_cores || v.cores % v.device_cores)
		sheet_odd(s, AT(lookup_stack, device_cores),
			  "%u cores of the device do not divide %u cores", v.device_cores, v.cores);
}

static void show_member(struct sheet *s, const struct bytes *b, uint64_t at, uint32_t i)
{
	struct embeng_lookup_member v;

	sheet_part(s, at, "member %u", i);
	if (copy_whole(s, b, at, &v, sizeof(v)))
		check_zero(s, AT(lookup_member, reserved), "reserved", v.reserved);
	N(lookup_member, feature, v.feature == EMBENG_NO_INDEX ? "no feature here" : NULL);
	N(lookup_member, rotation, NULL);
	N(lookup_member, column_offset, NULL);
	N(lookup_member, sample_count, NULL);
}

/* Shows an array of structures up to the end of the file. Return: byte behind the array. */
static uint64_t show_array(struct sheet *s, const struct bytes *b, uint64_t at, uint32_t count,
			   uint32_t stride,
			   void (*show)(struct sheet *, const struct bytes *, uint64_t, uint32_t))
{
	for (uint32_t i = 0; i < count; i++) {
		if (at + (uint64_t)i * stride >= b->size || !stride) {
			sheet_odd(s, b->size, "the file ends in front of number %u of %u", i,
				  count);
			break;
		}
		show(s, b, at + (uint64_t)i * stride, i);
	}
	return at + (uint64_t)count * stride;
}

void lookup_read(struct sheet *s, const struct bytes *b)
{
	struct embeng_lookup v;
	uint64_t at = 0;

	sheet_part(s, 0, "header");
	copy_whole(s, b, 0, &v, sizeof(v));
	N(lookup, feature_count, NULL);
	N(lookup, feature_stride, "bytes");
	X(lookup, model_hash);
	N(lookup, stack_count, NULL);
	N(lookup, stack_stride, "bytes");
	N(lookup, member_count, NULL);
	N(lookup, member_stride, "bytes");
	sheet_verdict(s, "The descriptor of a LOOKUP for the model %016llx; features: %u.",
		      (unsigned long long)v.model_hash, v.feature_count);
	if (!stride_ok(v.feature_stride, sizeof(struct embeng_lookup_feature)))
		sheet_odd(s, AT(lookup, feature_stride),
			  "the stride %u is below %zu or no multiple of 8", v.feature_stride,
			  sizeof(struct embeng_lookup_feature));
	check_size(s, b, lookup_bytes(&v));
	at = show_array(s, b, sizeof(v), v.feature_count, v.feature_stride, show_lookup_feature);
	at = show_array(s, b, at, v.stack_count, v.stack_stride, show_stack);
	show_array(s, b, at, v.member_count, v.member_stride, show_member);
}

/* -- UPDATE -------------------------------------------------------------- */

bool update_is(const struct bytes *b)
{
	struct embeng_update v;

	if (b->size < sizeof(v))
		return false;
	memcpy(&v, b->data, sizeof(v));
	return v.feature_count &&
	       stride_ok(v.feature_stride, sizeof(struct embeng_update_feature)) &&
	       sizeof(v) + (uint64_t)v.feature_count * v.feature_stride == b->size;
}

static void show_update_feature(struct sheet *s, const struct bytes *b, uint64_t at, uint32_t i)
{
	struct embeng_update_feature v;
	bool whole;

	sheet_part(s, at, "feature %u", i);
	whole = copy_whole(s, b, at, &v, sizeof(v));
	N(update_feature, feature, NULL);
	X(update_feature, flags);
	M(update_feature, gradients);
	if (whole && v.feature != i)
		sheet_odd(s, at, "feature %u stands where feature %u must be", v.feature, i);
	if (v.flags & ~(EMBENG_UPDATE_CHECKED | EMBENG_UPDATE_SUMS))
		sheet_odd(s, AT(update_feature, flags), "the flags %#x are unknown", v.flags);
	if (v.gradients.length % 4)
		sheet_odd(s, AT(update_feature, gradients),
			  "%llu bytes of gradients are no f32 array",
			  (unsigned long long)v.gradients.length);
}

void update_read(struct sheet *s, const struct bytes *b)
{
	struct embeng_update v;
	uint64_t at = 0;

	sheet_part(s, 0, "header");
	copy_whole(s, b, 0, &v, sizeof(v));
	N(update, feature_count, NULL);
	N(update, feature_stride, "bytes");
	N(update, rate_count, NULL);
	X(update, flags);
	X(update, model_hash);
	M(update, rates);
	X(update, multiplier);
	sheet_verdict(s, "The descriptor of an UPDATE for the model %016llx; features: %u.",
		      (unsigned long long)v.model_hash, v.feature_count);
	if (v.flags & ~EMBENG_UPDATE_MULTIPLIER)
		sheet_odd(s, AT(update, flags), "the flags %#x are unknown", v.flags);
	check_size(s, b, sizeof(v) + (uint64_t)v.feature_count * v.feature_stride);
	check_array_length(s, AT(update, rates), "rates", &v.rates, v.rate_count, 4);
	check_zero(s, AT(update, reserved1), "reserved1",
		   v.reserved1[0] | v.reserved1[1] | v.reserved1[2]);
	show_array(s, b, sizeof(v), v.feature_count, v.feature_stride, show_update_feature);
}

/* -- ROWS_* -------------------------------------------------------------- */

bool rows_is(const struct bytes *b)
{
	struct embeng_rows v;

	if (b->size != sizeof(v))
		return false;
	memcpy(&v, b->data, sizeof(v));
	return v.slot <= EMBENG_SLOTS_MAX && v.fill <= EMBENG_FILL_TRUNCATED_NORMAL &&
	       (v.data.generation || v.a || v.b || v.fill) && v.table < 1u << 24;
}

void rows_read(struct sheet *s, const struct bytes *b)
{
	struct embeng_rows v;
	uint64_t at = 0;

	sheet_part(s, 0, "rows");
	copy_whole(s, b, 0, &v, sizeof(v));
	N(rows, table, NULL);
	N(rows, slot, v.slot ? "a slot of the optimizer" : "the parameters");
	N(rows, first, NULL);
	N(rows, count, NULL);
	M(rows, ids);
	M(rows, data);
	N(rows, fill, word_fill(v.fill));
	X(rows, a);
	X(rows, b);
	X(rows, seed);
	sheet_verdict(s, "The descriptor of a command on %llu rows of table %u, slot %u.",
		      (unsigned long long)v.count, v.table, v.slot);
	check_size(s, b, sizeof(v));
	check_zero(s, AT(rows, reserved), "reserved", v.reserved);
	if (v.slot > EMBENG_SLOTS_MAX)
		sheet_odd(s, AT(rows, slot), "the slot %u is none that an optimizer has", v.slot);
	if (!word_fill(v.fill))
		sheet_odd(s, AT(rows, fill), "the fill %u is unknown", v.fill);
	if (v.ids.generation)
		check_array_length(s, AT(rows, ids), "ids", &v.ids, v.count, 8);
	if (v.ids.generation && v.first)
		sheet_odd(s, AT(rows, first), "first is %llu, and must be 0 beside a list of ids",
			  (unsigned long long)v.first);
	if (v.first + v.count < v.first)
		sheet_odd(s, AT(rows, count), "the range of rows exceeds 64 bits");
	if (v.count && v.data.generation && v.data.length % (4 * v.count))
		sheet_odd(s, AT(rows, data),
			  "%llu bytes are not the same number of f32 for each of %llu rows",
			  (unsigned long long)v.data.length, (unsigned long long)v.count);
}

/* -- PARTITION ----------------------------------------------------------- */

bool partition_is(const struct bytes *b)
{
	struct embeng_partition v;

	if (b->size < sizeof(v))
		return false;
	memcpy(&v, b->data, sizeof(v));
	return v.feature_count && v.flavour <= EMBENG_FLAVOUR_JAX &&
	       stride_ok(v.feature_stride, sizeof(struct embeng_partition_feature)) &&
	       sizeof(v) + (uint64_t)v.feature_count * v.feature_stride == b->size;
}

static void show_partition_feature(struct sheet *s, const struct bytes *b, uint64_t at, uint32_t i)
{
	struct embeng_partition_feature v;
	bool whole;

	sheet_part(s, at, "feature %u", i);
	whole = copy_whole(s, b, at, &v, sizeof(v));
	N(partition_feature, form, word_form(v.form));
	N(partition_feature, id_width, "bytes");
	N(partition_feature, offset_width, "bytes");
	N(partition_feature, combiner, word_combiner(v.combiner));
	N(partition_feature, rotation, NULL);
	N(partition_feature, rows, NULL);
	N(partition_feature, column_offset, NULL);
	N(partition_feature, sample_count, NULL);
	N(partition_feature, id_count, NULL);
	M(partition_feature, offsets);
	M(partition_feature, ids);
	M(partition_feature, weights);
	if (!whole)
		return;
	if (v.form != EMBENG_FORM_CSR && v.form != EMBENG_FORM_DENSE && v.form != EMBENG_FORM_COO)
		sheet_odd(s, AT(partition_feature, form), "the form %u is none of a PARTITION",
			  v.form);
	check_array_length(s, AT(partition_feature, ids), "ids", &v.ids, v.id_count, v.id_width);
	if (v.weights.generation)
		check_array_length(s, AT(partition_feature, weights), "weights", &v.weights,
				   v.id_count, 4);
}

void partition_read(struct sheet *s, const struct bytes *b)
{
	struct embeng_partition v;
	uint64_t at = 0;

	sheet_part(s, 0, "header");
	copy_whole(s, b, 0, &v, sizeof(v));
	N(partition, flavour, word_flavour(v.flavour));
	N(partition, bucket, NULL);
	X(partition, flags);
	N(partition, feature_count, NULL);
	N(partition, feature_stride, "bytes");
	N(partition, cores, NULL);
	N(partition, device_cores, NULL);
	N(partition, columns, NULL);
	N(partition, max_ids, v.max_ids ? NULL : "no limit");
	N(partition, max_unique_ids, v.max_unique_ids ? NULL : "no limit");
	N(partition, buffer, v.buffer ? NULL : "as many as are needed");
	M(partition, row_pointers);
	M(partition, tokens);
	M(partition, samples);
	M(partition, gains);
	M(partition, result);
	X(partition, splits);
	sheet_verdict(s, "The descriptor of a PARTITION; features: %u, cores: %u.", v.feature_count,
		      v.cores);
	check_size(s, b, sizeof(v) + (uint64_t)v.feature_count * v.feature_stride);
	check_zero(s, AT(partition, reserved), "reserved", v.reserved);
	if (!v.device_cores || v.cores % v.device_cores)
		sheet_odd(s, AT(partition, device_cores),
			  "%u cores of the device do not divide %u cores", v.device_cores, v.cores);
	if (v.cores && v.columns % v.cores)
		sheet_odd(s, AT(partition, columns), "%llu columns are no multiple of %u cores",
			  (unsigned long long)v.columns, v.cores);
	if (v.flags & ~(EMBENG_PARTITION_MINIBATCHING | EMBENG_PARTITION_DROPPING))
		sheet_odd(s, AT(partition, flags), "the flags %#x are unknown", v.flags);
	show_array(s, b, sizeof(v), v.feature_count, v.feature_stride, show_partition_feature);
}

/* -- UNIQUE, POOL, SUM --------------------------------------------------- */

static uint64_t exchange_bytes(const struct embeng_row_exchange *h)
{
	return sizeof(*h) + (uint64_t)h->table_count * h->table_stride +
	       (uint64_t)h->feature_count * h->feature_stride;
}

bool exchange_is(const struct bytes *b)
{
	struct embeng_row_exchange h;

	if (b->size < sizeof(h))
		return false;
	memcpy(&h, b->data, sizeof(h));
	return h.table_count && h.feature_count && h.placement <= EMBENG_PLACEMENT_MOD &&
	       stride_ok(h.table_stride, sizeof(struct embeng_exchange_table)) &&
	       stride_ok(h.feature_stride, sizeof(struct embeng_exchange_feature)) &&
	       exchange_bytes(&h) == b->size;
}

static void show_exchange_table(struct sheet *s, const struct bytes *b, uint64_t at, uint32_t i)
{
	struct embeng_exchange_table v;

	sheet_part(s, at, "table %u", i);
	if (copy_whole(s, b, at, &v, sizeof(v)))
		check_zero(s, AT(exchange_table, reserved), "reserved", v.reserved);
	N(exchange_table, row_count, NULL);
	N(exchange_table, dim, NULL);
	N(exchange_table, combiner, word_combiner(v.combiner));
	N(exchange_table, out_of_range, word_out_of_range(v.out_of_range));
	M(exchange_table, rows);
	M(exchange_table, result);
}

static void show_exchange_feature(struct sheet *s, const struct bytes *b, uint64_t at, uint32_t i)
{
	struct embeng_exchange_feature v;
	bool whole;

	sheet_part(s, at, "feature %u", i);
	whole = copy_whole(s, b, at, &v, sizeof(v));
	N(exchange_feature, table, NULL);
	N(exchange_feature, max_sequence_length, NULL);
	N(exchange_feature, form, word_form(v.form));
	N(exchange_feature, id_width, "bytes");
	N(exchange_feature, offset_width, "bytes");
	N(exchange_feature, sample_count, NULL);
	N(exchange_feature, id_count, NULL);
	M(exchange_feature, offsets);
	M(exchange_feature, ids);
	M(exchange_feature, weights);
	M(exchange_feature, data);
	if (!whole)
		return;
	if (v.form > EMBENG_FORM_POOLED)
		sheet_odd(s, AT(exchange_feature, form), "the form %u is none of an exchange",
			  v.form);
	check_zero(s, AT(exchange_feature, reserved), "reserved", v.reserved | v.reserved1);
	check_array_length(s, AT(exchange_feature, ids), "ids", &v.ids, v.id_count, v.id_width);
	if (v.weights.generation)
		check_array_length(s, AT(exchange_feature, weights), "weights", &v.weights,
				   v.id_count, 4);
	if (v.form != EMBENG_FORM_DENSE)
		check_array_length(s, AT(exchange_feature, offsets), "offsets", &v.offsets,
				   v.sample_count + 1, v.offset_width);
}

/* Only UNIQUE has hosts; nothing tells POOL from SUM. */
void exchange_read(struct sheet *s, const struct bytes *b)
{
	struct embeng_row_exchange v;
	uint64_t at = 0;

	sheet_part(s, 0, "header");
	copy_whole(s, b, 0, &v, sizeof(v));
	N(row_exchange, table_count, NULL);
	N(row_exchange, table_stride, "bytes");
	N(row_exchange, feature_count, NULL);
	N(row_exchange, feature_stride, "bytes");
	X(row_exchange, flags);
	N(row_exchange, hosts, NULL);
	N(row_exchange, placement, v.placement == EMBENG_PLACEMENT_MOD ? "MOD" : "DIV");
	sheet_verdict(s, "The descriptor of a %s; tables: %u, features: %u.",
		      v.hosts ? "UNIQUE" : "POOL or a SUM", v.table_count, v.feature_count);
	if (v.flags & ~EMBENG_EXCHANGE_NON_FINITE)
		sheet_odd(s, AT(row_exchange, flags), "the flags %#x are unknown", v.flags);
	check_zero(s, AT(row_exchange, reserved), "reserved", v.reserved);
	check_size(s, b, exchange_bytes(&v));
	at = show_array(s, b, sizeof(v), v.table_count, v.table_stride, show_exchange_table);
	show_array(s, b, at, v.feature_count, v.feature_stride, show_exchange_feature);
}
