// SPDX-License-Identifier: MIT
/*
 * Suite dma through the library: rows move between the table and memory of many sizes, at many
 * offsets, in order and scattered. All bytes around them must stay as they were.
 *
 * Memory is the library's buffers, plain memory that the library copies, or registered memory; the
 * same moves are made with each.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../frame/random.h"
#include "bed.h"
#include "checks.h"
#include "errors.h"

enum { TABLE_ROWS = 8192, TABLE_DIM = 16, MOVES_QUICK = 60, MOVES_FULL = 600 };
#define SIDE_BYTES (1u << 20) /* room for all rows, at any offset below half of it */
#define GUARD 0x5a

/**
 * struct mover - a table, and memory that its rows move to and from
 * @from: [SIDE_BYTES] memory that rows are written from
 * @to: [SIDE_BYTES] memory that rows are read into
 * @image: [SIDE_BYTES] what must stand in @to
 */
struct mover {
	struct bed bed;
	struct random draw;
	char *from, *to, *image;
	int64_t ids[TABLE_ROWS];
	const char *what;
	struct finding *f;
};

/* Small and large counts are equally likely. */
static size_t draw_row_count(struct mover *m)
{
	size_t most = (size_t)2 << random_below(&m->draw, 12);

	return 1 + random_below(&m->draw, most > TABLE_ROWS ? TABLE_ROWS : most);
}

/* Offsets are multiples of 4: at the beginning of a page, around its end, or anywhere. */
static size_t draw_offset(struct mover *m)
{
	static const size_t edges[] = {0, 4, 60, 64, 4032, 4092, 4096, 4100, 65532};
	const size_t count = sizeof(edges) / sizeof(edges[0]);
	uint32_t k = random_below(&m->draw, 2 * count);

	return k < count ? edges[k] : 4 * (size_t)random_below(&m->draw, SIDE_BYTES / 16);
}

/* A part of a random order of all rows; no row comes twice. */
static void shuffle_rows(struct mover *m)
{
	for (size_t i = 0; i < TABLE_ROWS; i++)
		m->ids[i] = (int64_t)i;
	for (size_t i = TABLE_ROWS - 1; i; i--) {
		size_t k = random_below(&m->draw, i + 1);
		int64_t id = m->ids[i];

		m->ids[i] = m->ids[k];
		m->ids[k] = id;
	}
}

static size_t find_wrong_byte(const char *a, const char *b, size_t count)
{
	size_t i = 0;

	while (i < count && a[i] == b[i])
		i++;
	return i;
}

static void make_move(struct mover *m, int move)
{
	size_t count = draw_row_count(m), out = draw_offset(m), in = draw_offset(m);
	size_t bytes = count * TABLE_DIM * sizeof(float), at;
	bool scattered = random_below(&m->draw, 2);
	const int64_t *ids = scattered ? m->ids : NULL;

	if (scattered)
		shuffle_rows(m);
	for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
		uint64_t word = random_next(&m->draw);

		memcpy(m->from + out + i, &word, sizeof(word));
	}
	memset(m->to, GUARD, SIDE_BYTES);
	memset(m->image, GUARD, SIDE_BYTES);
	memcpy(m->image + in, m->from + out, bytes);
	if (finding_library(m->f,
			    embeng_rows_write(m->bed.e, 0, NULL, ids, count,
					      (const float *)(m->from + out)),
			    "writing rows") ||
	    finding_library(m->f,
			    embeng_rows_read(m->bed.e, 0, NULL, ids, count, (float *)(m->to + in)),
			    "reading rows"))
		return;
	at = find_wrong_byte(m->to, m->image, SIDE_BYTES);
	if (at != SIDE_BYTES)
		finding_fail(m->f,
			     "%s, move %d: %zu %srows from offset %zu to offset %zu: byte %zd of "
			     "them is 0x%02x, not 0x%02x",
			     m->what, move, count, scattered ? "scattered " : "", out, in,
			     (ssize_t)at - (ssize_t)in, (unsigned char)m->to[at],
			     (unsigned char)m->image[at]);
}

/* The moves need no memory beside @m's. */
static void run_moves(const struct subject *s, struct mover *m)
{
	int moves = s->full ? MOVES_FULL : MOVES_QUICK;

	m->draw = random_seeded(s->seed + s->round, RANDOM_ORDER);
	for (int k = 0; k < moves && finding_good(m->f) && !finding_interrupted(m->f); k++)
		make_move(m, k);
	finding_note(m->f, "%d moves of rows, all bytes as they must be", moves);
}

static struct mover *mover_new(const struct subject *s, const char *what, struct finding *f)
{
	const struct bed_config config = {.rows = TABLE_ROWS, .dim = TABLE_DIM};
	struct mover *m = calloc(1, sizeof(*m));

	if (m)
		m->image = malloc(SIDE_BYTES);
	if (!m || !m->image) {
		free(m);
		finding_fail(f, "out of memory");
		return NULL;
	}
	m->what = what;
	m->f = f;
	if (bed_open(s, &config, &m->bed, f))
		return m;
	free(m->image);
	free(m);
	return NULL;
}

static void mover_free(struct mover *m)
{
	bed_close(&m->bed);
	free(m->image);
	free(m);
}

void check_buffers(const struct subject *s, struct finding *f)
{
	struct mover *m = mover_new(s, "buffers", f);

	if (!m)
		return;
	m->from = embeng_buffer_alloc(m->bed.e, SIDE_BYTES);
	m->to = embeng_buffer_alloc(m->bed.e, SIDE_BYTES);
	if (m->from && m->to)
		run_moves(s, m);
	else
		finding_library(f, -ENOMEM, "a buffer");
	mover_free(m);
}

void check_copies(const struct subject *s, struct finding *f)
{
	struct mover *m = mover_new(s, "plain memory", f);

	if (!m)
		return;
	m->from = malloc(SIDE_BYTES);
	m->to = malloc(SIDE_BYTES);
	if (m->from && m->to)
		run_moves(s, m);
	else
		finding_fail(f, "out of memory");
	free(m->from);
	free(m->to);
	mover_free(m);
}

void check_registered(const struct subject *s, struct finding *f)
{
	struct mover *m = mover_new(s, "registered memory", f);
	void *both;

	if (!m)
		return;
	both = mmap(NULL, 2 * SIDE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	if (both == MAP_FAILED) {
		finding_fail(f, "out of memory");
	} else if (!finding_library(f, embeng_memory_register(m->bed.e, both, 2 * SIDE_BYTES),
				    "registering memory")) {
		m->from = both;
		m->to = m->from + SIDE_BYTES;
		run_moves(s, m);
		finding_library(f, embeng_memory_unregister(m->bed.e, both),
				"letting go of registered memory");
	}
	mover_free(m);
	if (both != MAP_FAILED)
		munmap(both, 2 * SIDE_BYTES);
}

void check_dma_errors(const struct subject *s, struct finding *f)
{
	if (bus_errors_known(s))
		bus_errors_check(s, f);
	else
		finding_skip(f, "the function does not report errors to the bus (no AER)");
}
