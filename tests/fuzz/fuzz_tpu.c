// SPDX-License-Identifier: MIT
/*
 * Configurations of TPU embeddings. The first byte says which message ("c", "o": optimizer
 * alone, "l": layouts of tables), the second which allocation fails ("0": none); the rest are the
 * bytes of the message. A message that is accepted is written and read again until it no longer
 * changes.
 */
#include <errno.h>

#include "../unit/support/failing_alloc.h"
#include "embeng.h"
#include "embeng/tpu.h"
#include "fuzz.h"

#define CONFIGURATION "TPUEmbeddingConfiguration: protobuf-c"
#define OPTIMIZER "OptimizationParameters: protobuf-c"
#define LAYOUTS "SparseCoreTableLayouts: protobuf-c"

/* The error code is one of those that are documented, and the last error has a text. */
static void check_refused(int code, bool starved)
{
	struct embeng_error error = {.size = sizeof(error)};

	embeng_last_error(&error);
	fuzz_check(error.code == code && *error.text, "%d, '%s'", code, error.text);
	fuzz_check(strncmp(error.text, CONFIGURATION, strlen(CONFIGURATION)) &&
			   strncmp(error.text, OPTIMIZER, strlen(OPTIMIZER)) &&
			   strncmp(error.text, LAYOUTS, strlen(LAYOUTS)),
		   "what protobuf-c refuses has no place");
	fuzz_check(code == -EBADMSG || code == -EINVAL || code == -ERANGE || code == -EEXIST ||
			   code == -ENOENT || code == -ENOTSUP || (starved && code == -ENOMEM),
		   "%d, '%s'", code, error.text);
}

static void check_unknown(const struct embeng_tpu *tpu, size_t length)
{
	struct embeng_tpu_unknown u = {.size = sizeof(u)};
	size_t count = embeng_tpu_unknown_count(tpu);
	uint64_t end = 0;

	for (size_t i = 0; i < count; i++) {
		fuzz_check(!embeng_tpu_get_unknown(tpu, i, &u), "field %zu", i);
		fuzz_check(u.offset > end && u.length <= length - u.offset, "field %zu at %llu", i,
			   (unsigned long long)u.offset);
		end = u.offset + u.length - (u.length > 0);
	}
	fuzz_check(embeng_tpu_get_unknown(tpu, count, &u) == -ENOENT, "%zu", count);
}

/* Shapes that are open have no descriptor; counts of both forms may have a larger batch. */
static bool may_refuse(const struct embeng_tpu *tpu, const struct embeng_tpu_settings *settings,
		       int code)
{
	const struct embeng_model *model = embeng_tpu_model(tpu);
	struct embeng_shape shape;

	for (size_t f = 0; f < embeng_model_feature_count(model); f++) {
		embeng_model_output_shape(model, f, &shape);
		if (!shape.rank)
			return code == -EINVAL;
	}
	return settings->form == EMBENG_TPU_BOTH && code == -ERANGE;
}

static void *again(const struct embeng_tpu *tpu, size_t *length)
{
	struct embeng_tpu_settings settings = {.size = sizeof(settings)};
	void *bytes = NULL;
	int code;

	fuzz_check(!embeng_tpu_get_settings(tpu, &settings), "settings");
	code = embeng_tpu_export(embeng_tpu_model(tpu), &settings, &bytes, length);
	fuzz_check(!code || may_refuse(tpu, &settings, code), "%d", code);
	return bytes;
}

static void check_round(const struct embeng_tpu *tpu)
{
	size_t length = 0, other_length = 0;
	void *bytes = again(tpu, &length), *other;
	struct embeng_tpu *read;

	if (!bytes)
		return;
	fuzz_check(!embeng_tpu_import(bytes, length, NULL, &read), "what was written is refused");
	fuzz_check(!embeng_tpu_unknown_count(read), "unknown fields were written");
	other = again(read, &other_length);
	fuzz_check(other && length == other_length && !memcmp(bytes, other, length),
		   "%zu bytes, then %zu", length, other_length);
	embeng_tpu_free(read);
	free(bytes);
	free(other);
}

static void configuration(const uint8_t *data, size_t size, uint32_t scarce)
{
	struct embeng_tpu *tpu = NULL;
	bool starved;
	int code;

	scarce_begin(scarce);
	code = embeng_tpu_import(data, size, NULL, &tpu);
	starved = scarce_end();
	fuzz_check(!code == !!tpu, "%d", code);
	if (code) {
		check_refused(code, starved);
		return;
	}
	check_unknown(tpu, size);
	check_round(tpu);
	embeng_tpu_free(tpu);
}

static void optimizer(const uint8_t *data, size_t size, uint32_t scarce)
{
	struct embeng_optimizer o, other;
	int32_t tag = -7, other_tag;
	void *bytes;
	size_t length;
	bool starved;
	int code;

	scarce_begin(scarce);
	code = embeng_tpu_import_optimizer(data, size, &o, &tag);
	starved = scarce_end();
	fuzz_check(!code == (tag != -7), "%d, tag %d", code, tag);
	if (code) {
		check_refused(code, starved);
		return;
	}
	o.rate_name = tag < 0 ? NULL : "rate";
	fuzz_check(!embeng_tpu_export_optimizer(&o, tag, &bytes, &length), "export");
	fuzz_check(!embeng_tpu_import_optimizer(bytes, length, &other, &other_tag), "import");
	fuzz_check(other.kind == o.kind && other_tag == tag, "%d, tag %d", other.kind, other_tag);
	free(bytes);
}

/* The first and last row of each table have a place, no row beyond. */
static void check_places(const struct embeng_layouts *layouts)
{
	struct embeng_row_place at;

	for (size_t i = 0; i < layouts->table_count; i++) {
		const struct embeng_table_layout *l = &layouts->tables[i];
		int code = embeng_layout_place(l, l->rows - 1, &at);

		fuzz_check(!code || code == -ERANGE, "%d", code);
		fuzz_check(code || (at.core >= 0 && at.core < l->sparse_cores && at.row >= 0 &&
				    at.row < l->rows_per_core),
			   "core %lld, row %lld", (long long)at.core, (long long)at.row);
		fuzz_check(embeng_layout_place(l, l->rows, &at) == -ERANGE, "row beyond");
	}
}

static void layouts(const uint8_t *data, size_t size, uint32_t scarce)
{
	struct embeng_layouts *read = NULL, *again = NULL;
	void *bytes, *other;
	size_t length, other_length;
	bool starved;
	int code;

	scarce_begin(scarce);
	code = embeng_tpu_import_layouts(data, size, &read);
	starved = scarce_end();
	fuzz_check(!code == !!read, "%d", code);
	if (code) {
		check_refused(code, starved);
		return;
	}
	check_places(read);
	fuzz_check(!embeng_tpu_export_layouts(read->tables, read->table_count, &bytes, &length),
		   "what was read cannot be written");
	fuzz_check(!embeng_tpu_import_layouts(bytes, length, &again),
		   "what was written is refused");
	fuzz_check(!again->unknown_count, "unknown fields were written");
	fuzz_check(!embeng_tpu_export_layouts(again->tables, again->table_count, &other,
					      &other_length),
		   "export");
	fuzz_check(length == other_length && !memcmp(bytes, other, length), "%zu bytes, then %zu",
		   length, other_length);
	embeng_layouts_free(read);
	embeng_layouts_free(again);
	free(bytes);
	free(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t scarce = size > 1 && data[1] > '0' ? (data[1] - (uint32_t)'0') % 64 : 0;
	uint8_t *copy;

	if (size < 2)
		return 0;
	copy = fuzz_memory(size - 2);
	memcpy(copy, data + 2, size - 2);
	if (data[0] == 'o')
		optimizer(copy, size - 2, scarce);
	else if (data[0] == 'l')
		layouts(copy, size - 2, scarce);
	else
		configuration(copy, size - 2, scarce);
	free(copy);
	return 0;
}
