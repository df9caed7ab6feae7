// SPDX-License-Identifier: MIT
#include "prefetch.h"

#include <pthread.h>
#include <stdlib.h>

#include "../../engine/kernels/kernels.h"
#include "port.h"

#define DIM 64u
#define TABLE_ROWS (PREFETCH_LARGE_FLOATS / DIM)
#define IDS 16384u
#define BAG 16u
#define SAMPLES (IDS / BAG)
#define TRIES 9
#define WORTH(best, ns) ((ns) + (ns) / 32 < (best)) /* less is noise */

struct measured {
	float *table, *out;
	u64 *rows, *bag;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool known;
static struct prefetch found;

static bool make(struct measured *m)
{
	m->table = port_alloc_table(TABLE_ROWS * DIM * sizeof(float));
	m->out = port_alloc(SAMPLES * DIM * sizeof(float));
	m->rows = port_alloc(IDS * sizeof(u64));
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
		.near = prefetch->near,
		.rows = m->rows, .rows_count = IDS, .bag = m->bag, .out = m->out,
		.out_stride = DIM };
	struct port_fpu fpu;
	uint64_t began;

	for (uint32_t k = 0; k < IDS; k++) {
		*state = *state * 6364136223846793005u + 1442695040888963407u;
		m->rows[k] = (*state >> 33) % TABLE_ROWS;
	}
	port_fpu_begin(&fpu);
	began = port_now_ns();
	kernels->lookup(&work, 0, SAMPLES);
	began = port_now_ns() - began;
	port_fpu_end(&fpu);
	return began;
}

/* In turn, so that what disturbs one disturbs all; the fastest of each counts. */
static struct prefetch measure(const struct measured *m, const struct kernel_ops *kernels)
{
	static const struct prefetch tried[] = {{PREFETCH_LOOKUP, false}, {16, false}, {24, false},
						{96, false},		  {24, true},  {32, true},
						{48, true}};
	enum { COUNT = sizeof(tried) / sizeof(tried[0]) };
	uint64_t least[COUNT], state = 1;
	uint32_t best = 0;

	for (int i = 0; i < COUNT; i++)
		least[i] = UINT64_MAX;
	for (int k = 0; k < TRIES * COUNT; k++) {
		uint64_t ns = time_lookup(m, kernels, &tried[k % COUNT], &state);

		if (ns < least[k % COUNT])
			least[k % COUNT] = ns;
	}
	for (uint32_t i = 1; i < COUNT; i++)
		if (WORTH(least[best], least[i]))
			best = i;
	return tried[best];
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
