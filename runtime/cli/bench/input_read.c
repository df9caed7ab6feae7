// SPDX-License-Identifier: MIT
/*
 * Reads the input that tests/bench/torch_peer.py --dump writes: raw little-endian arrays, one file
 * each. So both are measured with the same numbers.
 *
 * The blocks belong to the struct bench_input, which is freed here if a file is wrong.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../frame/exit.h"
#include "input.h"

/**
 * struct reading - a folder under way
 * @path: the file that is read
 * @typed: some file of ids has said how wide they are
 */
struct reading {
	struct bench_input *input;
	const struct bench_workload *workload;
	const char *folder;
	const struct output *out;
	char path[4096];
	bool typed;
};

static const char dump_hint[] =
	"tests/bench/torch_peer.py WORKLOAD fwd --dump DIR writes them; workload "
	"and scale must be the same";

static void name_file(struct reading *r, const char *what, int batch, int table)
{
	snprintf(r->path, sizeof(r->path), "%s/%s_%d_%d.bin", r->folder, what, batch, table);
}

static int report_bad_file(const struct reading *r, size_t offset, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int report_bad_file(const struct reading *r, size_t offset, const char *format, ...)
{
	char what[256];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	return output_fail(r->out, CLI_USAGE, EINVAL, dump_hint, "%s, offset %zu: %s", r->path,
			   offset, what);
}

static int report_unreadable(const struct reading *r, int err)
{
	return output_fail(r->out, exit_of_errno(err), err, dump_hint, "%s: %s", r->path,
			   strerror(err));
}

/* Bytes of the file at r->path, or -1 when it cannot be had: errno says why. */
static int64_t find_file_length(const struct reading *r)
{
	struct stat st;

	if (stat(r->path, &st))
		return -1;
	if (S_ISREG(st.st_mode))
		return st.st_size;
	errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
	return -1;
}

static int load_file(struct reading *r, void *to, size_t bytes)
{
	FILE *f = fopen(r->path, "rbe");
	size_t got;
	int err;

	if (!f)
		return report_unreadable(r, errno);
	errno = 0;
	got = fread(to, 1, bytes, f);
	err = errno;
	fclose(f);
	if (got == bytes)
		return 0;
	return err ? report_unreadable(r, err)
		   : report_bad_file(r, got, "the file ended here; it had %zu bytes before", bytes);
}

/* How wide @count integers of a file of @bytes are, in agreement with those before. */
static int find_type(struct reading *r, int64_t bytes, size_t count)
{
	enum embeng_id_type type = bytes == (int64_t)(count * sizeof(int32_t)) ? EMBENG_I32
									       : EMBENG_I64;

	if (bytes < 0)
		return report_unreadable(r, errno);
	if (bytes != (int64_t)(count * bench_id_width(type)))
		return report_bad_file(r, (size_t)bytes,
				       "the file has %" PRId64 " bytes, %s wants %zu (int64) "
				       "or %zu (int32)",
				       bytes, r->workload->name, count * sizeof(int64_t),
				       count * sizeof(int32_t));
	if (r->typed && type != r->input->type)
		return report_bad_file(
			r, 0, "the integers have %zu bytes, those of earlier files have %zu",
			bench_id_width(type), bench_id_width(r->input->type));
	r->input->type = type;
	r->typed = true;
	return 0;
}

static int load_integers(struct reading *r, size_t count, void **to)
{
	int code = find_type(r, find_file_length(r), count);

	if (code)
		return code;
	*to = bench_input_block(r->input, count, bench_id_width(r->input->type));
	return *to ? load_file(r, *to, count * bench_id_width(r->input->type))
		   : report_unreadable(r, ENOMEM);
}

static int load_floats(struct reading *r, size_t count, float **to)
{
	int64_t bytes = find_file_length(r);
	int code;

	if (bytes < 0)
		return report_unreadable(r, errno);
	if (bytes != (int64_t)(count * sizeof(float)))
		return report_bad_file(r, (size_t)bytes,
				       "the file has %" PRId64 " bytes, %s wants %zu", bytes,
				       r->workload->name, count * sizeof(float));
	*to = bench_input_block(r->input, count, sizeof(float));
	code = *to ? load_file(r, *to, count * sizeof(float)) : report_unreadable(r, ENOMEM);
	for (size_t k = 0; !code && k < count; k++)
		if (!isfinite((*to)[k]))
			code = report_bad_file(r, k * sizeof(float), "%g is not finite",
					       (double)(*to)[k]);
	return code;
}

static int read_ids(struct reading *r, int batch, int table)
{
	struct bench_column *c = &r->input->columns[batch][table];
	size_t count = bench_table_ids(r->workload);
	int64_t rows = r->workload->rows[table];
	int code;

	name_file(r, "ids", batch, table);
	code = load_integers(r, count, &c->ids);
	for (size_t k = 0; !code && k < count; k++) {
		int64_t id = bench_id(r->input, c, k);

		if (id < 0 || id >= rows)
			code = report_bad_file(
				r, k * bench_id_width(r->input->type),
				"id %" PRId64 " is outside the table, which has rows 0 to %" PRId64,
				id, rows - 1);
	}
	return code;
}

/* A file of offsets has where each bag begins; ours go on to where the last one ends. */
static int make_splits(struct reading *r, const struct bench_column *starts, int64_t *splits)
{
	int64_t most = (int64_t)bench_table_ids(r->workload), before = 0;
	size_t width = bench_id_width(r->input->type);

	for (size_t s = 0; s < (size_t)r->workload->samples; s++) {
		int64_t at = bench_id(r->input, starts, s);

		if (!s && at)
			return report_bad_file(r, 0,
					       "the first bag begins at %" PRId64 ", not at 0", at);
		if (at < before || at > most)
			return report_bad_file(r, s * width,
					       "bag %zu begins at %" PRId64 "; it must be %" PRId64
					       " to %" PRId64,
					       s, at, before, most);
		splits[s] = before = at;
	}
	splits[r->workload->samples] = most;
	return 0;
}

static int read_split_file(struct reading *r, int batch, int table)
{
	struct bench_column *c = &r->input->columns[batch][table], starts = {0};
	int code = 0;

	name_file(r, "offsets", batch, table);
	c->splits = bench_input_block(r->input, bench_bags(r->workload) + 1, sizeof(int64_t));
	if (!c->splits)
		return report_unreadable(r, ENOMEM);
	bench_even_splits(r->workload, c->splits);
	if (!r->workload->pooled)
		return 0;
	code = load_integers(r, bench_bags(r->workload), &starts.ids);
	return code ? code : make_splits(r, &starts, c->splits);
}

/* All features have weights or none: the first file decides. */
static int read_weights(struct reading *r, int batch, int table)
{
	bool wanted = r->input->columns[0][0].weights != NULL;

	name_file(r, "weights", batch, table);
	if (!batch && !table)
		wanted = find_file_length(r) >= 0;
	if (!wanted)
		return 0;
	return load_floats(r, bench_table_ids(r->workload),
			   &r->input->columns[batch][table].weights);
}

static int read_batch(struct reading *r, int batch)
{
	int code = 0;

	for (int t = 0; !code && t < r->workload->tables; t++) {
		code = read_ids(r, batch, t);
		code = code ? code : read_split_file(r, batch, t);
		code = code ? code : read_weights(r, batch, t);
	}
	return code;
}

static int read_folder(struct reading *r, int most)
{
	int code = 0;

	for (int b = 0; !code && b < most; b++) {
		name_file(r, "ids", b, 0);
		if (b && find_file_length(r) < 0 && errno == ENOENT)
			break;
		code = read_batch(r, b);
		r->input->batches = b + 1;
	}
	if (code)
		return code;
	snprintf(r->path, sizeof(r->path), "%s/grad.bin", r->folder);
	return load_floats(r, bench_elements(r->workload), &r->input->gradient);
}

int bench_input_read(struct bench_input *input, const struct bench_workload *workload,
		     const struct bench_source *source, const struct output *out)
{
	struct reading r = {
		.input = input, .workload = workload, .folder = source->folder, .out = out};
	int code = read_folder(&r, source->batches);

	if (code)
		bench_input_free(input);
	return code;
}
