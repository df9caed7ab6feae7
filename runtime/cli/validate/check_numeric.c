// SPDX-License-Identifier: MIT
/*
 * Suite numeric: lookups and updates give the numbers that their formulas give in f64, and every bit
 * that the reference gives. The reference is the library's soft device with one core and the kernel
 * variant "portable", which has no vectors; all devices and variants must agree with it to the bit.
 *
 * Bags, weights and gradients are drawn from the seed and the round.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../frame/random.h"
#include "bed.h"
#include "checks.h"

#define REFERENCE "soft:cores=1,variant=portable"
enum { ROWS = 512, DIM = 24, SAMPLES = 64, BAG_MOST = 12, STEPS_QUICK = 4, STEPS_FULL = 64 };
enum { CELLS = ROWS * DIM, OUTPUTS = SAMPLES * DIM, IDS_MOST = SAMPLES * BAG_MOST };

/* Room for one step, and the bags in it. */
struct draft {
	struct random draw;
	float rows[CELLS], other_rows[CELLS];
	float gradients[OUTPUTS], got[OUTPUTS], expected[OUTPUTS];
	float weights[IDS_MOST];
	int64_t ids[IDS_MOST], bounds[SAMPLES + 1];
	struct bed_bags bags;
};

/* From -1 to 1. */
static float draw_signed(struct draft *d)
{
	return (float)(int32_t)(uint32_t)(random_next(&d->draw) >> 32) / 2147483648.0f;
}

static void draw_numbers(struct draft *d, float *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		numbers[i] = draw_signed(d);
}

/* Some rows are far more frequent than others, and come more than once in a bag. */
static void draw_bags(struct draft *d)
{
	int64_t end = 0;

	for (int s = 0; s < SAMPLES; s++) {
		uint32_t count = random_below(&d->draw, BAG_MOST + 1);

		d->bounds[s] = end;
		for (uint32_t k = 0; k < count; k++, end++) {
			d->ids[end] = random_below(&d->draw, random_below(&d->draw, 2) ? ROWS : 8);
			d->weights[end] = 1.5f + draw_signed(d);
		}
	}
	d->bounds[SAMPLES] = end;
	d->bags = (struct bed_bags){d->ids, d->weights, d->bounds, SAMPLES};
}

static struct draft *draft_new(const struct subject *s, struct finding *f)
{
	struct draft *d = calloc(1, sizeof(*d));

	if (!d) {
		finding_fail(f, "out of memory");
		return NULL;
	}
	d->draw = random_seeded(s->seed + s->round, RANDOM_SAMPLES);
	draw_numbers(d, d->rows, CELLS);
	return d;
}

/* The combiner's divisor of a bag: by the sum of its weights, or of their squares. */
static double bag_divisor(const struct draft *d, int sample, enum embeng_combiner_name combiner)
{
	double sum = 0, squares = 0;

	for (int64_t k = d->bounds[sample]; k < d->bounds[sample + 1]; k++) {
		sum += d->weights[k];
		squares += (double)d->weights[k] * d->weights[k];
	}
	if (combiner == EMBENG_SUM || !squares)
		return 1;
	return combiner == EMBENG_MEAN ? sum : sqrt(squares);
}

static double bag_element(const struct draft *d, int sample, int column, double *magnitude)
{
	double sum = 0;

	*magnitude = 0;
	for (int64_t k = d->bounds[sample]; k < d->bounds[sample + 1]; k++) {
		double term = (double)d->weights[k] * d->rows[d->ids[k] * DIM + column];

		sum += term;
		*magnitude += fabs(term);
	}
	return sum;
}

/* Each addition in f32 is off by 2^-24 of what was added so far at most. */
static void judge_bags(const struct draft *d, enum embeng_combiner_name combiner, const char *name,
		       struct finding *f)
{
	for (int i = 0; i < OUTPUTS && finding_good(f); i++) {
		double magnitude, sum = bag_element(d, i / DIM, i % DIM, &magnitude);
		double divisor = bag_divisor(d, i / DIM, combiner), expected = sum / divisor;
		double allowed = ldexp(magnitude / divisor, -24) * (2 * BAG_MOST + 4) + 1e-30;

		if (!(fabs(d->got[i] - expected) <= allowed))
			finding_fail(
				f,
				"combiner %s, sample %d, column %d: %.9g, not %.9g (within %.1g)",
				name, i / DIM, i % DIM, (double)d->got[i], expected, allowed);
	}
}

void check_numeric_lookups(const struct subject *s, struct finding *f)
{
	static const struct {
		enum embeng_combiner_name combiner;
		const char *name;
	} kinds[] = {{EMBENG_SUM, "sum"}, {EMBENG_MEAN, "mean"}, {EMBENG_SQRTN, "sqrtn"}};
	struct draft *d = draft_new(s, f);
	int steps = s->full ? STEPS_FULL : STEPS_QUICK;

	for (size_t k = 0; d && finding_good(f) && k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		const struct bed_config config = {
			.rows = ROWS, .dim = DIM, .combiner = kinds[k].combiner};
		struct bed bed;

		if (!bed_open(s, &config, &bed, f))
			break;
		finding_library(f, embeng_rows_write(bed.e, 0, NULL, NULL, ROWS, d->rows),
				"writing rows");
		for (int step = 0; step < steps && finding_good(f); step++) {
			draw_bags(d);
			if (bed_lookup(&bed, &d->bags, d->got, f))
				judge_bags(d, kinds[k].combiner, kinds[k].name, f);
		}
		bed_close(&bed);
	}
	free(d);
}

/* The gradient of a row's element by the sum of its bags, in f64, and the sum of its terms' sizes. */
static double row_gradient(const struct draft *d, int64_t row, int column, double *magnitude)
{
	double sum = 0;

	*magnitude = 0;
	for (int sample = 0; sample < SAMPLES; sample++) {
		for (int64_t k = d->bounds[sample]; k < d->bounds[sample + 1]; k++) {
			double term = (double)d->weights[k] * d->gradients[sample * DIM + column];

			if (d->ids[k] == row) {
				sum += term;
				*magnitude += fabs(term);
			}
		}
	}
	return sum;
}

/* One step of SGD, and one of Adagrad from the accumulator 0.1. */
static void judge_rows(const struct draft *d, bool adagrad, struct finding *f)
{
	const double rate = 0.5f, start = 0.1f;

	for (int i = 0; i < CELLS && finding_good(f); i++) {
		double magnitude, g = row_gradient(d, i / DIM, i % DIM, &magnitude);
		double step = adagrad ? rate * g / sqrt(start + g * g) : rate * g;
		double slope = adagrad ? rate / sqrt(start) : rate;
		double expected = d->rows[i] - step;
		double allowed = ldexp(magnitude * slope, -24) * 64 +
				 ldexp(fabs(expected) + 1, -22);

		if (!(fabs(d->other_rows[i] - expected) <= allowed))
			finding_fail(f, "%s, row %d, column %d: %.9g, not %.9g (within %.1g)",
				     adagrad ? "adagrad" : "sgd", i / DIM, i % DIM,
				     (double)d->other_rows[i], expected, allowed);
	}
}

static void run_update(const struct subject *s, struct draft *d, bool adagrad, struct finding *f)
{
	const struct bed_config config = {.rows = ROWS,
					  .dim = DIM,
					  .combiner = EMBENG_SUM,
					  .optimizer = adagrad ? embeng_adagrad(0.5f)
							       : embeng_sgd(0.5f)};
	struct bed bed;

	draw_bags(d);
	draw_numbers(d, d->gradients, OUTPUTS);
	if (!bed_open(s, &config, &bed, f))
		return;
	if (!finding_library(f, embeng_rows_write(bed.e, 0, NULL, NULL, ROWS, d->rows),
			     "writing rows") &&
	    bed_train(&bed, &d->bags, d->gradients, d->got, f) &&
	    !finding_library(f, embeng_rows_read(bed.e, 0, NULL, NULL, ROWS, d->other_rows),
			     "reading rows"))
		judge_rows(d, adagrad, f);
	bed_close(&bed);
}

void check_numeric_updates(const struct subject *s, struct finding *f)
{
	struct draft *d = draft_new(s, f);

	for (int adagrad = 0; d && adagrad < 2 && finding_good(f); adagrad++)
		run_update(s, d, adagrad, f);
	free(d);
}

static void compare_bits(const float *got, const float *expected, size_t count, const char *what,
			 const char *optimizer, int step, struct finding *f)
{
	for (size_t i = 0; i < count && finding_good(f); i++) {
		uint32_t a, b;

		memcpy(&a, &got[i], sizeof(a));
		memcpy(&b, &expected[i], sizeof(b));
		if (a != b)
			finding_fail(f,
				     "%s, step %d: element %zu of the %s is %.9g (0x%08x), the "
				     "reference has %.9g (0x%08x)",
				     optimizer, step, i, what, (double)got[i], a,
				     (double)expected[i], b);
	}
}

/* Rows of both after the last step, with slots. */
static void compare_trained(struct draft *d, const struct bed *device, const struct bed *reference,
			    const char *optimizer, int steps, struct finding *f)
{
	const struct embeng_model *model = embeng_get_model(device->e);
	size_t slots = embeng_model_slot_count(model, 0);

	for (size_t k = 0; k <= slots && finding_good(f); k++) {
		const char *slot = k ? embeng_model_slot_name(model, 0, k - 1) : NULL;
		size_t width = (size_t)embeng_model_slot_width(model, 0, slot);

		if (finding_library(f, embeng_rows_read(device->e, 0, slot, NULL, ROWS, d->rows),
				    "reading rows") ||
		    finding_library(
			    f, embeng_rows_read(reference->e, 0, slot, NULL, ROWS, d->other_rows),
			    "reading the reference"))
			return;
		compare_bits(d->rows, d->other_rows, ROWS * width, slot ? slot : "rows", optimizer,
			     steps, f);
	}
}

static void train_both(struct draft *d, const struct bed *device, const struct bed *reference,
		       const char *optimizer, int steps, struct finding *f)
{
	for (int step = 1; step <= steps && finding_good(f) && !finding_interrupted(f); step++) {
		draw_bags(d);
		draw_numbers(d, d->gradients, OUTPUTS);
		if (bed_train(device, &d->bags, d->gradients, d->got, f) &&
		    bed_train(reference, &d->bags, d->gradients, d->expected, f))
			compare_bits(d->got, d->expected, OUTPUTS, "activations", optimizer, step,
				     f);
	}
	if (finding_good(f))
		compare_trained(d, device, reference, optimizer, steps, f);
}

static void compare_optimizer(const struct subject *s, struct draft *d,
			      struct embeng_optimizer optimizer, const char *name,
			      struct finding *f)
{
	struct bed_config config = {
		.rows = ROWS, .dim = DIM, .combiner = EMBENG_SQRTN, .optimizer = optimizer};
	struct bed device, reference;

	if (!bed_open(s, &config, &device, f))
		return;
	config.device = REFERENCE;
	if (bed_open(s, &config, &reference, f)) {
		draw_numbers(d, d->rows, CELLS);
		finding_library(f, embeng_rows_write(device.e, 0, NULL, NULL, ROWS, d->rows),
				"writing rows");
		finding_library(f, embeng_rows_write(reference.e, 0, NULL, NULL, ROWS, d->rows),
				"writing the reference");
		if (finding_good(f))
			train_both(d, &device, &reference, name, s->full ? STEPS_FULL : STEPS_QUICK,
				   f);
		bed_close(&reference);
	}
	bed_close(&device);
}

void check_numeric_reference(const struct subject *s, struct finding *f)
{
	static const struct {
		const char *name;
		struct embeng_optimizer (*make)(float learning_rate);
	} kinds[] = {{"sgd", embeng_sgd},
		     {"adagrad", embeng_adagrad},
		     {"adam", embeng_adam_corrected},
		     {"ftrl", embeng_ftrl},
		     {"momentum", embeng_momentum},
		     {"rms_prop", embeng_rms_prop}};
	const size_t count = sizeof(kinds) / sizeof(kinds[0]);
	struct draft *d = draft_new(s, f);

	for (size_t k = 0; d && k < count && finding_good(f) && !finding_interrupted(f); k++)
		compare_optimizer(s, d, kinds[k].make(0.05f), kinds[k].name, f);
	finding_note(f, "%zu optimizers, all bits as the reference has them", count);
	free(d);
}
