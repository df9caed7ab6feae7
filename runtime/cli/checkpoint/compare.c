// SPDX-License-Identifier: MIT
/*
 * The command `embeng checkpoint compare`: looks the same random batches up in an engine and in a
 * checkpoint, and reports where they differ. The comparison itself is in compare_lookups.c.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "../../examples/item2vec/settings.h"
#include "../device/device.h"
#include "../frame/interrupt.h"
#include "../frame/progress.h"
#include "../frame/terminal.h"
#include "commands.h"
#include "compare_lookups.h"

enum { KEY_BATCHES = 0x100, KEY_SAMPLES, KEY_SEED };

struct call {
	const char *dir, *device;
	int64_t batches, samples, seed;
};

static const struct argp_option options[] = {
	{"device", 'd', "DEVICE", 0, "The engine, by a name that `embeng list` shows", 0},
	{"batches", KEY_BATCHES, "N", 0, "Number of batches to compare (16)", 0},
	{"samples", KEY_SAMPLES, "N", 0, "Samples for features whose output shape is open (256)",
	 0},
	{"seed", KEY_SEED, "N", 0, "Draw other batches (1)", 0},
	{0},
};

static const char doc[] =
	"Look the same batches up as training does and as serving does, and compare the bits.\v"
	"One lookup is that of training: the parameters of the checkpoint in DIR are loaded\n"
	"into an engine. The other is that of serving, which reads the parameters straight\n"
	"from the files. Every feature of the model gets random bags; pooled features also get\n"
	"weights, all above 0. For negative ids and for weights that are not above 0 the two\n"
	"lookups differ on purpose, as embeng_serving_lookup(3) explains.\n\n"
	"  embeng checkpoint compare ads.ckpt\n"
	"  embeng checkpoint compare ads.ckpt -d soft:cores=4 --batches 100 --json\n\n"
	"Exit status: 0 the same bits, 1 they differ, 2 usage or no checkpoint in DIR, 4\n"
	"permission, 5 no room on the device, 6 no such device, 7 device or read error, 11\n"
	"corrupt.";

static error_t parse_whole(const char *name, const char *arg, int64_t most, int64_t *value,
			   struct argp_state *state)
{
	char error[SETTING_ERROR];

	if (!whole_read(name, arg, 1, most, value, error))
		return 0;
	argp_error(state, "%s", error);
	return EINVAL;
}

static error_t parse_compare_option(int key, char *arg, struct argp_state *state)
{
	struct call *call = state->input;

	switch (key) {
	case 'd':
		call->device = arg;
		return 0;
	case KEY_BATCHES:
		return parse_whole("batches", arg, INT32_MAX, &call->batches, state);
	case KEY_SAMPLES:
		return parse_whole("samples", arg, 1 << 20, &call->samples, state);
	case KEY_SEED:
		return parse_whole("seed", arg, INT64_MAX, &call->seed, state);
	case ARGP_KEY_ARG:
		return argument_take(&call->dir, arg, "DIR", state);
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "DIR is missing; give the folder of a checkpoint");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static bool all_same(const struct comparison *c, size_t features)
{
	for (size_t f = 0; f < features; f++)
		if (c->features[f].differing)
			return false;
	return true;
}

static void print_feature(const char *name, const struct difference *d, int columns)
{
	terminal_print(name, columns);
	printf("%12" PRIu64 "  %12" PRIu64 "  %.9g\n", d->floats, d->differing, d->largest);
	if (d->differing)
		printf("  first: batch %" PRIu64 ", element %" PRIu64
		       ": engine %.9g, serving %.9g\n",
		       d->batch, d->at, (double)d->engine, (double)d->serving);
}

static void print_comparison(const struct call *call, const struct comparison *c, size_t features)
{
	const struct embeng_model *model = embeng_get_model(c->e);
	int columns = 7;

	for (size_t f = 0; f < features; f++) {
		int wanted = terminal_width(embeng_model_feature_name(model, f));

		columns = wanted > columns ? wanted : columns;
	}
	printf("%s: %" PRIu64 " batches, seed %" PRId64 ": %s\n\n", call->dir, c->batches,
	       call->seed, all_same(c, features) ? "the same bits" : "they differ");
	terminal_print("FEATURE", columns);
	printf("%12s  %12s  %s\n", "FLOATS", "DIFFERING", "LARGEST");
	for (size_t f = 0; f < features; f++)
		print_feature(embeng_model_feature_name(model, f), &c->features[f], columns);
}

static struct json_object *json_feature(const char *name, const struct difference *d)
{
	struct json_object *o = json_object_new_object(), *first = NULL;

	if (d->differing) {
		first = json_object_new_object();
		json_add_number(first, "batch", d->batch);
		json_add_number(first, "at", d->at);
		json_add_float(first, "engine", (double)d->engine);
		json_add_float(first, "serving", (double)d->serving);
	}
	json_add_text(o, "name", name);
	json_add_number(o, "floats", d->floats);
	json_add_number(o, "differing", d->differing);
	json_add_float(o, "largest", d->largest);
	json_object_object_add(o, "first", first);
	return o;
}

static int emit_comparison(const struct output *out, const struct call *call,
			   const struct comparison *c, size_t features)
{
	struct json_object *d = json_document(out), *list = json_object_new_array();
	const struct embeng_model *model = embeng_get_model(c->e);

	for (size_t f = 0; f < features; f++)
		json_object_array_add(
			list, json_feature(embeng_model_feature_name(model, f), &c->features[f]));
	json_add_text(d, "dir", call->dir);
	json_add_number(d, "batches", c->batches);
	json_add_number(d, "seed", (uint64_t)call->seed);
	json_object_object_add(d, "same", json_object_new_boolean(all_same(c, features)));
	json_object_object_add(d, "features", list);
	return json_emit(d);
}

static int report_comparison(const struct output *out, const struct call *call,
			     const struct comparison *c)
{
	size_t features = embeng_model_feature_count(embeng_get_model(c->e));
	int code = CLI_OK;

	if (out->json)
		code = emit_comparison(out, call, c, features);
	else
		print_comparison(call, c, features);
	return code ? code : all_same(c, features) ? CLI_OK : CLI_CHECK;
}

static int compare_batches(struct comparison *c, const struct call *call, bool json)
{
	struct progress line = progress_start_slowly(!json);
	int err = 0;

	while (!err && c->batches < (uint64_t)call->batches && !interrupted()) {
		err = comparison_batch(c);
		progress_line(&line, "compare: %" PRIu64 " of %" PRId64 " batches", c->batches,
			      call->batches);
	}
	progress_clear(&line);
	return err;
}

static int report_compare_failure(const struct output *out, const struct call *call, int err)
{
	if (err == -ENOMEM)
		return output_fail(out, CLI_DEVICE, err, NULL, "%s: out of memory", call->dir);
	return output_library_failure(out, err, err == -ENODEV ? device_hint : NULL);
}

static int run_compare(const struct output *out, const struct call *call)
{
	struct comparison c = {.samples = call->samples,
			       .random = random_seeded((uint64_t)call->seed, RANDOM_SAMPLES)};
	int code, err;

	interrupt_catch();
	err = comparison_open(&c, call->dir, call->device);
	if (!err && !embeng_model_feature_count(embeng_get_model(c.e)))
		code = output_fail(out, CLI_USAGE, EINVAL, NULL, "%s: its model has no features",
				   call->dir);
	else if (!err && (err = compare_batches(&c, call, out->json)) == -EFBIG)
		code = output_fail(out, CLI_USAGE, ERANGE, "Draw fewer with --samples N",
				   "%s: an output shape has too many samples", call->dir);
	else
		code = err ? report_compare_failure(out, call, err)
			   : report_comparison(out, call, &c);
	comparison_close(&c);
	interrupt_release();
	return code;
}

int checkpoint_compare(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options, .parser = parse_compare_option, .args_doc = "DIR", .doc = doc};
	struct output out = {.verb = "checkpoint", .command = "compare"};
	struct call call = {.batches = 16, .samples = 256, .seed = 1};
	int code = command_parse(&argp, argc, argv, &out, &call);

	return code ? code : run_compare(&out, &call);
}
