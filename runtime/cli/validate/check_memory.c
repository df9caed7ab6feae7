// SPDX-License-Identifier: MIT
/*
 * Suite memory: table memory keeps what is written to it. Rows are written and read by the engine's
 * own commands, and every bit of a row is used, because the model allows numbers that are not finite.
 *
 * The tables are the check's own. Rows move in pieces, so that the host needs little memory.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "bed.h"
#include "checks.h"
#include "patterns.h"

enum { DIM = 64, PIECE_ROWS = 4096, PIECE_WORDS = PIECE_ROWS * DIM };
#define ROW_BYTES (DIM * sizeof(float))

/**
 * struct sweep - passes over a table
 * @words: [PIECE_WORDS] a piece of it
 */
struct sweep {
	struct bed bed;
	int64_t *ids;
	uint32_t *words;
	const char *what;
	struct finding *f;
};

static bool sweep_open(const struct subject *s, struct sweep *w, struct finding *f)
{
	const struct bed_config config = {.rows = (int64_t)(s->memory_bytes / ROW_BYTES),
					  .dim = DIM};

	*w = (struct sweep){.ids = malloc(PIECE_ROWS * sizeof(*w->ids)),
			    .words = malloc(PIECE_WORDS * sizeof(*w->words)),
			    .f = f};
	if (w->ids && w->words && bed_open(s, &config, &w->bed, f))
		return true;
	finding_fail(f, "out of memory");
	free(w->ids);
	free(w->words);
	return false;
}

static void sweep_close(struct sweep *w)
{
	bed_close(&w->bed);
	free(w->ids);
	free(w->words);
}

/* Names the rows of piece @piece. Return: how many they are. */
static size_t name_rows(const struct sweep *w, int64_t piece)
{
	int64_t first = piece * PIECE_ROWS, count = w->bed.rows - first;

	if (count > PIECE_ROWS)
		count = PIECE_ROWS;
	for (int64_t i = 0; i < count; i++)
		w->ids[i] = first + i;
	return (size_t)count;
}

static void pour_piece(const struct sweep *w, int64_t piece, pattern_fn pattern, uint64_t key)
{
	size_t count = name_rows(w, piece);

	pattern_fill(w->words, count * DIM, (uint64_t)w->ids[0] * DIM, pattern, key);
	finding_library(
		w->f, embeng_rows_write(w->bed.e, 0, NULL, w->ids, count, (const float *)w->words),
		"writing rows");
}

static void judge_piece(const struct sweep *w, int64_t piece, pattern_fn pattern, uint64_t key)
{
	size_t count = name_rows(w, piece);

	if (!finding_library(w->f,
			     embeng_rows_read(w->bed.e, 0, NULL, w->ids, count, (float *)w->words),
			     "reading rows"))
		pattern_compare(w->words, count * DIM, (uint64_t)w->ids[0] * DIM, pattern, key,
				w->what, DIM, w->f);
}

/**
 * struct element - one pass of a march
 * @down: from the last piece to the first
 * @reads: a piece is read first, and must hold @read
 * @writes: it is then written with @write
 */
struct element {
	bool down, reads, writes;
	uint64_t read, write;
};

static void run_element(const struct sweep *w, pattern_fn pattern, const struct element *e)
{
	int64_t pieces = (w->bed.rows + PIECE_ROWS - 1) / PIECE_ROWS;

	for (int64_t i = 0; i < pieces && finding_good(w->f) && !finding_interrupted(w->f); i++) {
		int64_t piece = e->down ? pieces - 1 - i : i;

		if (e->reads)
			judge_piece(w, piece, pattern, e->read);
		if (e->writes && finding_good(w->f))
			pour_piece(w, piece, pattern, e->write);
	}
}

static void run_pattern(struct sweep *w, const char *what, pattern_fn pattern, uint64_t key)
{
	const struct element write = {.writes = true, .write = key};
	const struct element read = {.reads = true, .read = key};

	w->what = what;
	run_element(w, pattern, &write);
	run_element(w, pattern, &read);
}

void check_memory_patterns(const struct subject *s, struct finding *f)
{
	static const uint32_t solid[] = {0, UINT32_MAX, 0x55555555, 0xaaaaaaaa, 0x00ff00ff};
	struct sweep w;
	char what[32];

	if (!sweep_open(s, &w, f))
		return;
	for (size_t k = 0; k < sizeof(solid) / sizeof(solid[0]); k++) {
		snprintf(what, sizeof(what), "0x%08" PRIx32, solid[k]);
		run_pattern(&w, what, pattern_same, solid[k]);
	}
	for (uint64_t k = 0; k < (s->full ? 32 : 4); k++)
		run_pattern(&w, "a walking bit", pattern_walking, k);
	run_pattern(&w, "random words", pattern_random, s->seed + s->round);
	finding_note(f, "%" PRId64 " rows of %zu bytes", w.bed.rows, ROW_BYTES);
	sweep_close(&w);
}

/* The rows whose number has one bit set are those that a stuck address line confuses. */
static void poke_rows(struct sweep *w)
{
	const struct element read = {.reads = true, .read = 0};

	w->what = "a row beside those that were written again";
	for (int64_t row = 1; row < w->bed.rows && finding_good(w->f); row *= 2) {
		uint32_t words[DIM], kept[DIM];

		pattern_fill(words, DIM, 0, pattern_random, (uint64_t)row);
		pattern_fill(kept, DIM, (uint64_t)row * DIM, pattern_address, 0);
		finding_library(w->f,
				embeng_rows_write(w->bed.e, 0, NULL, &row, 1, (const float *)words),
				"writing a row");
		finding_library(
			w->f,
			embeng_rows_read(w->bed.e, 0, NULL, (int64_t[]){0}, 1, (float *)w->words),
			"reading a row");
		if (finding_good(w->f))
			pattern_compare(w->words, DIM, 0, pattern_address, 0, w->what, DIM, w->f);
		finding_library(w->f,
				embeng_rows_write(w->bed.e, 0, NULL, &row, 1, (const float *)kept),
				"writing a row");
	}
	run_element(w, pattern_address, &read);
}

void check_memory_addresses(const struct subject *s, struct finding *f)
{
	struct sweep w;

	if (!sweep_open(s, &w, f))
		return;
	run_pattern(&w, "each word its own address", pattern_address, 0);
	poke_rows(&w);
	run_pattern(&w, "each word its own address, inverted", pattern_address, UINT32_MAX);
	sweep_close(&w);
}

/* March C-: each piece is read and inverted upwards twice, then downwards twice. */
void check_memory_march(const struct subject *s, struct finding *f)
{
	static const struct element elements[] = {
		{.writes = true, .write = 0},
		{.reads = true, .read = 0, .writes = true, .write = UINT32_MAX},
		{.reads = true, .read = UINT32_MAX, .writes = true, .write = 0},
		{.down = true, .reads = true, .read = 0, .writes = true, .write = UINT32_MAX},
		{.down = true, .reads = true, .read = UINT32_MAX, .writes = true, .write = 0},
		{.reads = true, .read = 0},
	};
	struct sweep w;

	if (!sweep_open(s, &w, f))
		return;
	w.what = "march C-";
	for (size_t k = 0; k < sizeof(elements) / sizeof(elements[0]); k++)
		run_element(&w, pattern_same, &elements[k]);
	sweep_close(&w);
}

/* Memory that corrects its errors still has them. */
void check_memory_errors(const struct subject *s, struct finding *f)
{
	uint64_t before, corrected, lost;
	struct sweep w;

	if (!subject_number(s, "counters/ecc_correctable", &before)) {
		finding_skip(f, "the device does not count errors of its memory");
		return;
	}
	lost = subject_lost_data(s);
	finding_figure(f, (double)lost, 0, "errors");
	if (lost)
		finding_fail(f, "table memory lost data: %" PRIu64 " uncorrectable errors", lost);
	if (!finding_good(f) || !sweep_open(s, &w, f))
		return;
	run_pattern(&w, "random words", pattern_random, s->seed);
	sweep_close(&w);
	lost = subject_lost_data(s);
	if (!subject_number(s, "counters/ecc_correctable", &corrected))
		corrected = before;
	finding_figure(f, (double)(corrected - before + lost), 0, "errors");
	if (lost) {
		*f = (struct finding){.unit = f->unit, .measured = f->measured};
		finding_fail(f, "table memory lost data: %" PRIu64 " uncorrectable errors", lost);
	}
	if (corrected != before)
		finding_fail(f,
			     "table memory corrected %" PRIu64 " errors while %" PRIu64
			     " bytes were written and read",
			     corrected - before, s->memory_bytes);
}
