// SPDX-License-Identifier: MIT
/*
 * The last check: one lookup through the library, on the device or, on a machine without one, on the
 * soft device. Its rows and weights are small whole numbers, so that each sum is exact and any other
 * bit is a fault.
 *
 * A device that hangs gets a deadline. The handle and all that belongs to it lives for one check.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "embeng.h"

#include "checks.h"

#define DEADLINE_NS 20000000000ll

enum { ROWS = 4, DIM = 2, BAGS = 2 };

/* Row r is (r + 1, 10 r + 10); a bag's activation is the sum of its rows, each times its weight. */
static const float rows[ROWS * DIM] = {1, 10, 2, 20, 3, 30, 4, 40};
static const int32_t ids[] = {0, 2, 3, 1};
static const int64_t lengths[BAGS] = {2, 2};
static const float weights[] = {1, 2, 1, 3};
static const float expected[BAGS * DIM] = {7, 70, 10, 100};

static int make_doctor_model(struct embeng_model **out)
{
	struct embeng_model *model = embeng_model_new();
	int table, feature;

	if (!model)
		return -ENOMEM;
	table = embeng_model_add_table(model, &EMBENG_INIT(embeng_table_config, .name = "doctor",
							   .vocabulary_size = ROWS, .dim = DIM,
							   .combiner = EMBENG_SUM));
	feature = table < 0 ? table
			    : embeng_model_add_feature(model, &EMBENG_INIT(embeng_feature_config,
									   .name = "doctor",
									   .table = table));
	if (feature < 0) {
		embeng_model_free(model);
		return feature;
	}
	*out = model;
	return 0;
}

/* Looks the bags up and copies their activations. */
static int look_bags_up(struct embeng *e, struct embeng_batch *batch, float got[BAGS * DIM])
{
	struct embeng_activations out = EMBENG_INIT(embeng_activations);
	int err = embeng_rows_write(e, 0, NULL, NULL, ROWS, rows);

	if (!err)
		err = embeng_batch_ragged(batch, 0, EMBENG_I32, ids, 4, lengths, BAGS, weights, 4);
	if (!err)
		err = embeng_enqueue(e, batch, DEADLINE_NS);
	if (!err)
		err = embeng_dequeue(e, 0, DEADLINE_NS, &out);
	if (err)
		return err;
	memcpy(got, out.features[0].data, BAGS * DIM * sizeof(float));
	return embeng_release(e, &out);
}

static int run_test_lookup(const char *name, float got[BAGS * DIM])
{
	struct embeng_model *model = NULL;
	struct embeng *e = NULL;
	struct embeng_batch *batch;
	int err = make_doctor_model(&model);

	if (!err)
		err = embeng_open(name, model, &e, NULL);
	if (!err) {
		batch = embeng_batch_new(e, EMBENG_INFERENCE, 0);
		err = batch ? look_bags_up(e, batch, got) : -ENOMEM;
		embeng_batch_free(batch);
	}
	embeng_close(e);
	embeng_model_free(model);
	return err;
}

static void report_failure(const char *name, int err, struct finding *f)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);

	embeng_last_error(&error);
	found_problem(f, exit_of_errno(err), "on %.100s: %.400s", name, error.text);
	found_fix(f, "The sentence says what to do; `embeng regs --log` and `dmesg` have what the "
		     "device and the driver say");
}

void check_lookup(const struct machine *m, const struct function *device, struct finding *f)
{
	float got[BAGS * DIM] = {0};
	char name[160] = "soft";
	int err;

	if (tree_is_recorded(m->tree)) {
		found_nothing(f, "a recorded tree has no device to try");
		return;
	}
	if (m->named)
		snprintf(name, sizeof(name), "%s", m->named);
	else if (device && *device->node)
		snprintf(name, sizeof(name), "/dev/accel/%s", device->node);
	else if (device)
		snprintf(name, sizeof(name), "pci:%s", device->address);
	err = run_test_lookup(name, got);
	if (err) {
		report_failure(name, err, f);
		return;
	}
	if (!memcmp(got, expected, sizeof(got))) {
		found_ok(f, "a lookup of %d bags on %.100s gave the right sums", BAGS, name);
		return;
	}
	found_problem(f, CLI_CHECK, "a lookup on %.100s gave %g %g %g %g, not %g %g %g %g", name,
		      got[0], got[1], got[2], got[3], expected[0], expected[1], expected[2],
		      expected[3]);
	found_fix(f,
		  "`embeng conform -d %.100s tests/vectors` shows which operations are wrong; do "
		  "not train on this device",
		  name);
}
