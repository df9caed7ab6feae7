// SPDX-License-Identifier: MIT
/*
 * Measures how rows are best prefetched on this machine, for tables that are mostly in the third
 * cache and for larger ones. Each is measured once in the life of a process.
 *
 * The results are static, and a lock of this file is held while they are measured or read. The
 * measured tables live for one measurement.
 */
#include "prefetch.h"

#include <pthread.h>
#include <stdlib.h>

#include "../../../../engine/kernels/kernels.h"
#include "host/port.h"

#define DIM 64u
#define IDS 32768u
#define BAG 16u
#define SAMPLES (IDS / BAG)
#define TRIES 7
#define WORTH(best, ns) ((ns) + (ns) / 32 < (best)) /* less is noise */

/* Where the rows of all tables mostly are: in the third cache, or beyond. */
enum distance { NEAR, FAR };

struct measured {
	float *table, *out;
	u64 table_rows;
	u64 *bag;
	u32 *rows;
};

/*
 * 24 MiB nearly fill a third cache of 32, where the ways differ most. Beyond is 256 MiB: out of 64
 * half of the rows come from that cache, and the choice from noise.
 */
static const u64 table_rows[] = {[NEAR] = 3u << 15, [FAR] = 1u << 20};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct prefetch found[2]; /* no rows: not known */

static bool make(struct measured *m)
{
	m->table = port_alloc_table(m->table_rows * DIM * sizeof(float));
	m->out = port_alloc(SAMPLES * DIM * sizeof(float));
	m->rows = port_alloc(IDS * sizeof(*m->rows));
	m->bag = port_alloc((SAMPLES + 1) * sizeof(u64));
	if (!m->table || !m->out || !m->rows || !m->bag)
		return false;
	/* A page that was never written is the one of zeros, and in the cache. */
	for (uint64_t i = 0; i < m->table_rows; i++)
		m->table[i * DIM] = 1;
	for (uint64_t s = 0; s <= SAMPLES; s++)
		m->bag[s] = s * BAG;
	return true;
}

static void release(struct measured *m)
{
	port_free_table(m->table, m->table_rows * DIM * sizeof(float));
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
		m->rows[k] = (uint32_t)(*state >> 33) % (uint32_t)m->table_rows;
	}
	port_fpu_begin(&fpu);
	began = port_now_ns();
	kernels->lookup(&work, 0, SAMPLES);
	began = port_now_ns() - began;
	port_fpu_end(&fpu);
	return began;
}

/* Names for two of the ways that are tried; if two ways are alike, the likelier one comes first. */
enum { TOUCH, BURST };
static const struct prefetch tried[] = {[TOUCH] = {PREFETCH_LOOKUP, KERNEL_FETCH_TOUCH},
					[BURST] = {PREFETCH_LOOKUP, KERNEL_FETCH_BURST},
					{PREFETCH_LOOKUP, KERNEL_FETCH_SECOND},
					{16, KERNEL_FETCH_SECOND},
					{24, KERNEL_FETCH_SECOND},
					{96, KERNEL_FETCH_SECOND},
					{48, KERNEL_FETCH_FIRST},
					{64, KERNEL_FETCH_FIRST},
					{32, KERNEL_FETCH_FIRST},
					{24, KERNEL_FETCH_FIRST}};
enum { TRIED = sizeof(tried) / sizeof(tried[0]) };

/*
 * On processors of AMD bursts take as long in one process as in the next. Other ways take from a
 * tenth less to twice as much, by where the pages of this table happen to be, and the next table's
 * are elsewhere. On those of Intel no way varies so, and bursts take a tenth to a fifth longer.
 */
static bool worth_bursts(uint64_t best_ns, uint64_t burst_ns, bool steady)
{
	return steady ? burst_ns < best_ns + best_ns / 5 : WORTH(best_ns, burst_ns);
}

/* In turn, so that what disturbs one disturbs all; the fastest of each counts. */
static void measure(const struct measured *m, const struct kernel_ops *kernels, uint64_t *least)
{
	uint64_t state = 1;

	for (int i = 0; i < TRIED; i++)
		least[i] = UINT64_MAX;
	for (int k = 0; k < TRIES * TRIED; k++) {
		uint64_t ns = time_lookup(m, kernels, &tried[k % TRIED], &state);

		if (ns < least[k % TRIED])
			least[k % TRIED] = ns;
	}
}

/* The fastest; out of a cache bursts are no steadier than another way. */
static struct prefetch choose(const uint64_t *least, enum distance distance, bool steady)
{
	uint32_t best = TOUCH;

	for (uint32_t i = BURST + 1; i < TRIED; i++) {
		if (WORTH(least[best], least[i]))
			best = i;
	}
	if (worth_bursts(least[best], least[BURST], distance == FAR && steady))
		best = BURST;
	return tried[best];
}

static struct prefetch find(const struct kernel_ops *kernels, enum distance distance, bool steady)
{
	struct measured m = {.table_rows = table_rows[distance]};
	struct prefetch best = {0};
	uint64_t least[TRIED];

	if (make(&m)) {
		measure(&m, kernels, least);
		best = choose(least, distance, steady);
	}
	release(&m);
	return best;
}

const char *prefetch_cache(uint32_t fetch)
{
	static const char *const behind[] = {[KERNEL_FETCH_SECOND] = "",
					     [KERNEL_FETCH_FIRST] = ":l1",
					     [KERNEL_FETCH_TOUCH] = ":touch",
					     [KERNEL_FETCH_BURST] = ":burst"};

	return fetch <= KERNEL_FETCH_BURST ? behind[fetch] : NULL;
}

bool prefetch_bursts_steady(void)
{
#ifdef __x86_64__
	return __builtin_cpu_is("amd");
#else
	return false;
#endif
}

struct prefetch prefetch_measured(const struct kernel_ops *kernels, uint64_t floats, bool steady)
{
	enum distance distance = floats < PREFETCH_CACHED_BYTES / sizeof(float) ? NEAR : FAR;
	struct prefetch best;

	pthread_mutex_lock(&lock);
	if (!found[distance].rows)
		found[distance] = find(kernels, distance, steady);
	best = found[distance];
	pthread_mutex_unlock(&lock);
	return best;
}
