// SPDX-License-Identifier: MIT
/*
 * The verb `embeng validate`: reads its options, refuses where a validation would do harm, and runs
 * the chosen suites in rounds.
 *
 * Everything lives for one call. A signal ends the check that runs at its next step, and what was
 * found until then is told.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "../../text/number.h"
#include "../bench/clock.h"
#include "../device/device.h"
#include "../frame/command.h"
#include "../frame/interrupt.h"
#include "../frame/machine.h"
#include "harm.h"
#include "report.h"

static const char doc[] =
	"Check that a device is in order, part by part: the link, the firmware, interrupts, DMA,\n"
	"table memory, fences, the numbers that it computes, how fast it is, and how it comes "
	"back\n"
	"from resets. Each part is a suite of checks; a suite that needs one that failed is not\n"
	"run.\v"
	"SUITE is link, device, interrupt, dma, memory, fences, numeric, throughput or reset, or\n"
	"the name of a set: quick (the default), full or soak. --list says what each proves and\n"
	"how long it takes.\n\n"
	"Tables and contexts of other programs are never touched. While another program uses the\n"
	"device, or when it is hot, nothing is begun.\n\n"
	"Examples:\n"
	"  embeng validate                              the quick suites on the default device\n"
	"  embeng validate full --allow-reset           everything, on a device that nobody uses\n"
	"  embeng validate memory --mib 4096 --time 600 4 GiB of table memory for ten minutes\n"
	"  embeng validate --tap numeric --seed 17      a run that can be repeated, for a "
	"harness\n\n"
	"Exit status: 0 all checks passed or were skipped, 1 a check failed, 5 the device is in\n"
	"use or hot, 6 no such device.";

enum { KEY_TAP = 256, KEY_LIST, KEY_LOOP, KEY_TIME, KEY_SEED, KEY_FORCE, KEY_ALLOW_RESET, KEY_MIB };

static const struct argp_option options[] = {
	{"device", 'd', "DEVICE", 0, "Validate this device; default as for info", 0},
	{"list", KEY_LIST, NULL, 0, "List suites and checks, and run nothing", 0},
	{"tap", KEY_TAP, NULL, 0, "Print a line of TAP for each check as it ends", 0},
	{"loop", KEY_LOOP, "N", 0, "Run N rounds, or \"forever\" (1)", 0},
	{"time", KEY_TIME, "SECONDS", 0, "Begin rounds until so much time has passed", 0},
	{"seed", KEY_SEED, "N", 0, "Draw the data of an earlier run, which printed this number", 0},
	{"force", KEY_FORCE, NULL, 0, "Begin although other programs use the device", 0},
	{"allow-reset", KEY_ALLOW_RESET, NULL, 0,
	 "Run suite reset, by which all programs on the device lose their tables", 0},
	{"mib", KEY_MIB, "N", 0, "MiB of table memory that suite memory covers (4 quick, else 32)",
	 0},
	{0},
};

#define LOOP_FOREVER UINT64_MAX
#define MIB_MOST (1 << 24)
#define TIME_MOST (1 << 30)

struct call {
	const char *device;
	bool tap, list, force, allow_reset, seeded, full, names_suite;
	uint64_t loop, seed, mib;
	int64_t seconds;
	uint32_t chosen;
};

static error_t parse_suite(struct argp_state *state, struct call *call, const char *arg)
{
	const struct suite_set *set = suite_set_find(arg);
	int suite = suite_find(arg);

	if (set) {
		call->chosen |= set->members;
		call->full |= set->full;
		if (set->hold_s && call->seconds < 0)
			call->seconds = set->hold_s;
	} else if (suite >= 0) {
		call->chosen |= SUITE_BIT(suite);
		call->full = true;
		call->names_suite |= suites[suite].disturbs;
	} else {
		argp_error(state, "there is no suite '%s'; --list shows all", arg);
		return EINVAL;
	}
	return 0;
}

static error_t parse_amount(struct argp_state *state, const char *option, const char *arg,
			    int64_t most, int64_t *value)
{
	if (!number_read_signed(arg, 1, most, value))
		return 0;
	argp_error(state, "%s takes a number from 1 to %" PRId64 ", not '%s'", option, most, arg);
	return EINVAL;
}

static error_t parse_loop(struct argp_state *state, struct call *call, const char *arg)
{
	int64_t rounds = 0;
	error_t err = 0;

	if (!strcmp(arg, "forever"))
		call->loop = LOOP_FOREVER;
	else if (number_read_signed(arg, 1, INT64_MAX, &rounds))
		argp_error(state, "--loop takes a number from 1, or \"forever\", not '%s'", arg);
	else
		call->loop = (uint64_t)rounds;
	return call->loop ? err : EINVAL;
}

static error_t parse_seed(struct argp_state *state, struct call *call, const char *arg)
{
	call->seeded = true;
	if (!number_read_code(arg, &call->seed))
		return 0;
	argp_error(state, "--seed takes a whole number below 2^64, not '%s'", arg);
	return EINVAL;
}

static error_t parse_number_option(int key, const char *arg, struct argp_state *state)
{
	struct call *call = state->input;
	int64_t value = 0;
	error_t err;

	switch (key) {
	case KEY_LOOP:
		return parse_loop(state, call, arg);
	case KEY_SEED:
		return parse_seed(state, call, arg);
	case KEY_TIME:
		return parse_amount(state, "--time", arg, TIME_MOST, &call->seconds);
	case KEY_MIB:
		err = parse_amount(state, "--mib", arg, MIB_MOST, &value);
		call->mib = (uint64_t)value;
		return err;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_validate_option(int key, char *arg, struct argp_state *state)
{
	struct call *call = state->input;

	switch (key) {
	case 'd':
		call->device = arg;
		return 0;
	case KEY_LIST:
		call->list = true;
		return 0;
	case KEY_TAP:
		call->tap = true;
		return 0;
	case KEY_FORCE:
		call->force = true;
		return 0;
	case KEY_ALLOW_RESET:
		call->allow_reset = true;
		return 0;
	case ARGP_KEY_ARG:
		return parse_suite(state, call, arg);
	default:
		return parse_number_option(key, arg, state);
	}
}

static int check_combination(const struct call *call, const struct output *out)
{
	if (call->tap && out->json)
		return output_fail(out, CLI_USAGE, EINVAL, "Give one of them",
				   "--tap and --json exclude each other");
	if (call->names_suite && !call->allow_reset)
		return output_fail(
			out, CLI_USAGE, EINVAL, NULL,
			"suite reset takes the tables of every program on the device; give "
			"--allow-reset to run it");
	return 0;
}

/* A half of the table memory is left to others, and three quarters of a soft device's host. */
static uint64_t choose_memory(const struct call *call, const struct subject *s)
{
	uint64_t wanted = (call->mib ? call->mib : call->full ? 32 : 4) << 20, most;

	most = s->soft ? machine_memory_available() / 4 : s->info.table_memory / 2;
	if (call->mib || !most || wanted < most)
		return wanted;
	return most > 1u << 20 ? most : 1u << 20;
}

/* A node whose device is broken: the suites link and device say what is wrong with it. */
static bool is_broken_board(const struct embeng_device_info *info, int err)
{
	return err == -EHOSTDOWN && !strcmp(info->kind, "accel") && *info->name == '/';
}

static int find_subject(struct call *call, struct subject *s, const struct output *out)
{
	int err = embeng_device_info(call->device, &s->info);

	if (err && !is_broken_board(&s->info, err))
		return output_library_failure(out, err, err == -ENODEV ? device_hint : NULL);
	s->device = device_choose(call->device);
	if (!s->device)
		s->device = strcmp(s->info.kind, "soft") ? s->info.name : "soft";
	s->full = call->full;
	s->allow_reset = call->allow_reset;
	s->seed = call->seed;
	subject_begin(s, "");
	s->memory_bytes = choose_memory(call, s);
	return harm_refuse(s, call->force, out);
}

/* Table memory that lost data fails whatever uses it. */
static int explain_failure(void *arg, size_t suite, char *text, size_t size)
{
	const struct report *r = arg;
	uint64_t lost = subject_lost_data(r->v->subject);

	if (!lost || suite == SUITE_MEMORY)
		return -1;
	snprintf(text, size, "table memory lost data (%" PRIu64 " uncorrectable errors)", lost);
	return SUITE_MEMORY;
}

static bool is_subject_hot(const struct subject *s)
{
	double celsius, limit;

	return harm_temperature(s, &celsius, &limit) && celsius > limit;
}

static bool wants_round(const struct call *call, const struct validation *v, double began)
{
	if (interrupted())
		return false;
	if (call->seconds >= 0 && v->rounds)
		return v->rounds < call->loop && now_ms() - began < (double)call->seconds * 1e3;
	return v->rounds < call->loop;
}

static int run_rounds(const struct call *call, struct validation *v, const struct output *out)
{
	double began = now_ms();
	struct report r;
	int code;

	report_begin(&r, v, out, call->tap);
	v->arg = &r;
	while (!r.stopped && wants_round(call, v, began)) {
		validation_round(v);
		if (is_subject_hot(v->subject))
			r.stopped = "the device is hot";
	}
	if (interrupted())
		r.stopped = "interrupted";
	r.seconds = (now_ms() - began) / 1e3;
	code = report_end(&r);
	if (!code && validation_failed(v))
		code = CLI_CHECK;
	return code;
}

static int run_validation(struct call *call, const struct output *out)
{
	struct validation *v = calloc(1, sizeof(*v));
	struct subject s = {.info = EMBENG_INIT(embeng_device_info)};
	int code;

	if (!v)
		return output_fail(out, CLI_DEVICE, ENOMEM, NULL, "out of memory");
	code = find_subject(call, &s, out);
	if (!code) {
		*v = (struct validation){.list = suites,
					 .count = SUITES,
					 .chosen = call->chosen,
					 .subject = &s,
					 .explain = explain_failure,
					 .began = report_check_begins,
					 .ended = report_check_ends};
		interrupt_catch();
		code = output_finish(run_rounds(call, v, out));
		interrupt_release();
	}
	free(v);
	return code;
}

int cmd_validate(int argc, char **argv)
{
	static const struct argp argp = {.options = options,
					 .parser = parse_validate_option,
					 .args_doc = "[SUITE...]",
					 .doc = doc};
	struct output out = {.verb = "validate"};
	struct call call = {.seconds = -1};
	int code = command_parse(&argp, argc, argv, &out, &call);

	code = code ? code : check_combination(&call, &out);
	if (code)
		return code;
	if (call.list)
		return report_list(&out);
	if (!call.chosen)
		call.chosen = suite_sets[0].members;
	if (!call.loop)
		call.loop = call.seconds >= 0 ? LOOP_FOREVER : 1;
	if (!call.seeded && getrandom(&call.seed, sizeof(uint32_t), 0) < 0)
		call.seed = (uint64_t)time(NULL);
	return run_validation(&call, &out);
}
