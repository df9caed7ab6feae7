// SPDX-License-Identifier: MIT
#include "prefetch.h"

#include <pthread.h>
#include <stdlib.h>

#include "../../engine/kernels/kernels.h"
#include "port.h"

#define DIM 64u
#define TABLE_ROWS (PREFETCH_TABLE_FLOATS / DIM)
#define IDS 32768u
#define BAG 16u
#define SAMPLES (IDS / BAG)
#define TRIES 7
#define WORTH(best, ns) ((ns) + (ns) / 32 < (best)) /* less is noise */

struct measured {
	float *table, *out;
	u64 *bag;
	u32 *rows;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool known;
static struct prefetch found;

static bool make(struct measured *m)
{
	m->table = port_alloc_table(TABLE_ROWS * DIM * sizeof(float));
	m->out = port_alloc(SAMPLES * DIM * sizeof(float));
	m->rows = port_alloc(IDS * sizeof(*m->rows));
	m->bag = port_alloc((SAMPLES + 1) * sizeof(u64));
	if (!m->table || !m->out || !m->rows || !m->bag)
		return false;
	/* A page that was never written is the one of zeros, and in the cache. */
	for (uint64_t i = 0; i < TABLE_ROWS; i++)
		m->table[i * DIM] = 1;
	for (uint64_t s = 0; s <= SAMPLES; s++)
		m->bag[s] = s * BAG;
	return true;
}

static void release(struct measured *m)
{
	port_free_table(m->table, TABLE_ROWS * DIM * sizeof(float));
	port_free(m->out);
	port_free(m->rows);
	port_free(m->bag);
}

/* Other rows each time: those of the time before are in a cache. */
static uint64_t time_lookup(const struct measured *m, const struct kernel_ops *kernels,
			    const struct prefetch *prefetch, uint64_t *state)
{
	const struct kernel_bag_work work = {
		.table = m->table, .stride = DIM, .dim = DIM, .prefetch = prefetch->rows,
		.fetch = prefetch->fetch,
		.narrow = m->rows, .rows_count = IDS, .bag = m->bag, .out = m->out,
		.out_stride = DIM };
	struct port_fpu fpu;
	uint64_t began;

	for (uint32_t k = 0; k < IDS; k++) {
		*state = *state * 6364136223846793005u + 1442695040888963407u;
		m->rows[k] = (uint32_t)(*state >> 33) % TABLE_ROWS;
	}
	port_fpu_begin(&fpu);
	began = port_now_ns();
	kernels->lookup(&work, 0, SAMPLES);
	began = port_now_ns() - began;
	port_fpu_end(&fpu);
	return began;
}

enum { SPLIT, BURST, USUAL }; /* of those that are tried */

/*
 * What is measured here reads other rows each time, out of a table that the third cache of a large
 * processor holds. A split is for larger ones, and for rows that repeat, so that it has only not to
 * be a bad idea.
 */
static bool worth_a_split(const struct prefetch *best, uint64_t best_ns, uint64_t split_ns)
{
	return best->fetch == KERNEL_FETCH_SECOND && best->rows >= PREFETCH_LOOKUP &&
	       split_ns < best_ns + best_ns / 12;
}

/*
 * Bursts take as long in one process as in the next. Other ways take from a tenth less to twice as
 * much, by where the pages of this table happen to be, and the next table's are elsewhere.
 */
static bool worth_bursts(uint64_t best_ns, uint64_t burst_ns)
{
	return burst_ns < best_ns + best_ns / 5;
}

/* In turn, so that what disturbs one disturbs all; the fastest of each counts. */
static struct prefetch measure(const struct measured *m, const struct kernel_ops *kernels)
{
	static const struct prefetch tried[] = {[SPLIT] = {PREFETCH_LOOKUP, KERNEL_FETCH_SPLIT},
						[BURST] = {PREFETCH_LOOKUP, KERNEL_FETCH_BURST},
						[USUAL] = {PREFETCH_LOOKUP, KERNEL_FETCH_SECOND},
						{16, KERNEL_FETCH_SECOND},
						{24, KERNEL_FETCH_SECOND},
						{96, KERNEL_FETCH_SECOND},
						{24, KERNEL_FETCH_FIRST},
						{32, KERNEL_FETCH_FIRST},
						{48, KERNEL_FETCH_FIRST}};
	enum { COUNT = sizeof(tried) / sizeof(tried[0]) };
	uint64_t least[COUNT], state = 1;
	uint32_t best = USUAL;

	for (int i = 0; i < COUNT; i++)
		least[i] = UINT64_MAX;
	for (int k = 0; k < TRIES * COUNT; k++) {
		uint64_t ns = time_lookup(m, kernels, &tried[k % COUNT], &state);

		if (ns < least[k % COUNT])
			least[k % COUNT] = ns;
	}
	for (uint32_t i = USUAL + 1; i < COUNT; i++) {
		if (WORTH(least[best], least[i]))
			best = i;
	}
	if (worth_bursts(least[best], least[BURST]))
		return tried[BURST];
	return tried[worth_a_split(&tried[best], least[best], least[SPLIT]) ? SPLIT : best];
}

const char *prefetch_cache(uint32_t fetch)
{
	static const char *const behind[] = {[KERNEL_FETCH_SECOND] = "",
					     [KERNEL_FETCH_FIRST] = ":l1",
					     [KERNEL_FETCH_SPLIT] = ":split",
					     [KERNEL_FETCH_BURST] = ":burst"};

	return fetch <= KERNEL_FETCH_BURST ? behind[fetch] : NULL;
}

struct prefetch prefetch_measured(const struct kernel_ops *kernels)
{
	struct measured m;

	pthread_mutex_lock(&lock);
	if (!known) {
		found = make(&m) ? measure(&m, kernels) : (struct prefetch){0};
		known = found.rows;
		release(&m);
	}
	pthread_mutex_unlock(&lock);
	return found;
}
