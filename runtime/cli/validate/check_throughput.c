// SPDX-License-Identifier: MIT
/*
 * Suite throughput: the device looks rows up as fast as its memory and its link let it, or nearly so.
 * The rate is told as a share of the lower of two limits: the rows that the host's memory gives at
 * random, as `embeng bench` measures it, and the bytes that the link carries.
 *
 * Other work on the machine slows both sides; the best of several passes counts for each.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../bench/limits.h"
#include "../frame/machine.h"
#include "../frame/random.h"
#include "bed.h"
#include "checks.h"

enum { DIM = 64, POOL = 20, BAGS = 512, IDS = POOL * BAGS, PASS_LOOKUPS = 8, RUNS = 5 };
#define ROW_BYTES (DIM * sizeof(float))
#define EFFORT 0.05
#define PASS_MS 500
/* The least share of the limit that a device in order reaches. */
#define FLOOR_SOFT 0.15
#define FLOOR_BOARD 0.1

/* Bytes a second and lane at this rate: 8b/10b up to 5 GT/s, 128b/130b from 8 GT/s on. */
static double lane_bytes(double gigatransfers)
{
	return gigatransfers * 1e9 / 8 * (gigatransfers < 8 ? 0.8 : 128.0 / 130);
}

/* A lookup's ids come over the link, and a sum of POOL rows goes back. Return: rows a second, or 0. */
static double link_limit(const struct subject *s)
{
	const double bytes = sizeof(int64_t) + (double)ROW_BYTES / POOL;
	uint64_t width;
	char speed[64];

	if (!subject_text(s, "current_link_speed", speed, sizeof(speed)) ||
	    !subject_number(s, "current_link_width", &width))
		return 0;
	return lane_bytes(strtod(speed, NULL)) * (double)width / bytes;
}

/* One thread for each core of the device, as far as there are processors. */
static double memory_limit(const struct subject *s, uint64_t table_bytes, struct finding *f)
{
	int cpus[MACHINE_CPUS], count = machine_cpus(cpus), err;
	struct bench_limits l = {.row_bytes = ROW_BYTES, .table_bytes = table_bytes};

	if (count < 1) {
		finding_fail(f, "the processors of this process are not known");
		return 0;
	}
	l.threads = s->info.cores && (int)s->info.cores < count ? (int)s->info.cores : count;
	err = bench_limits_measure(&l, cpus, count, RUNS, EFFORT);
	if (err)
		finding_fail(f, "the memory's limit cannot be measured: %s", strerror(-err));
	return err ? 0 : l.gather.max;
}

/* Rows a second of one pass, which a slow device ends early. */
static double time_pass(const struct bed *bed, const struct bed_bags *bags, float *out,
			struct finding *f)
{
	double began = now_ms(), ms = 0;
	int lookups = 0;

	while (finding_good(f) && lookups < PASS_LOOKUPS && ms < PASS_MS) {
		bed_lookup(bed, bags, out, f);
		lookups++;
		ms = now_ms() - began;
	}
	return (double)IDS * lookups / ms * 1e3;
}

static void draw_throughput_bags(const struct subject *s, int64_t rows, int64_t *ids,
				 int64_t *bounds)
{
	struct random draw = random_seeded(s->seed + s->round, RANDOM_SAMPLES);

	for (int i = 0; i < IDS; i++)
		ids[i] = random_below(&draw, (uint64_t)rows);
	for (int i = 0; i <= BAGS; i++)
		bounds[i] = (int64_t)i * POOL;
}

/* Rows a second of the best pass, after one that is not counted. */
static double measure_lookups(const struct subject *s, const struct bed *bed, struct finding *f)
{
	int64_t *ids = embeng_buffer_alloc(bed->e, IDS * sizeof(*ids));
	int64_t *bounds = embeng_buffer_alloc(bed->e, (BAGS + 1) * sizeof(*bounds));
	float *out = embeng_buffer_alloc(bed->e, BAGS * ROW_BYTES);
	const struct bed_bags bags = {ids, NULL, bounds, BAGS};
	double best = 0;

	if (!ids || !bounds || !out) {
		finding_library(f, -ENOMEM, "a buffer");
		return 0;
	}
	draw_throughput_bags(s, bed->rows, ids, bounds);
	for (int run = 0; run <= RUNS && finding_good(f); run++) {
		double rate = time_pass(bed, &bags, out, f);

		if (run && rate > best)
			best = rate;
	}
	return best;
}

static void judge_rate(const struct subject *s, double rate, double memory, double link,
		       struct finding *f)
{
	double limit = link && link < memory ? link : memory;
	double floor = s->soft ? FLOOR_SOFT : FLOOR_BOARD, share = rate / limit;

	finding_figure(f, share, floor, "of the limit");
	finding_note(f, "%.2f M rows/s, %.0f %% of the %s's %.2f M rows/s", rate / 1e6, share * 100,
		     limit == memory ? "memory" : "link", limit / 1e6);
	if (share < floor)
		finding_fail(f,
			     "the device is slow: %.3f M rows/s are %.2f %% of the %s's %.2f M "
			     "rows/s, and less than %.0f %%",
			     rate / 1e6, share * 100, limit == memory ? "memory" : "link",
			     limit / 1e6, floor * 100);
}

void check_throughput_rows(const struct subject *s, struct finding *f)
{
	const struct bed_config config = {
		.rows = (int64_t)(s->memory_bytes / ROW_BYTES), .dim = DIM, .combiner = EMBENG_SUM};
	double memory = memory_limit(s, s->memory_bytes, f), rate;
	struct bed bed;

	if (!finding_good(f) || !bed_open(s, &config, &bed, f))
		return;
	rate = measure_lookups(s, &bed, f);
	if (finding_good(f))
		judge_rate(s, rate, memory, link_limit(s), f);
	bed_close(&bed);
}
