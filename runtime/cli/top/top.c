// SPDX-License-Identifier: MIT
/*
 * The verb `embeng top`: shows what the devices of this machine do, and for whom. It takes samples at
 * an interval and shows them on the screen, as text or as JSON.
 *
 * It opens no device, so that it shows those of which all contexts are taken, too. Only for hot rows it
 * asks a context, by the program's own open file. The soft device is not shown: it is inside of
 * another process.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "../frame/command.h"
#include "../frame/interrupt.h"
#include "../frame/numbers.h"
#include "documents.h"
#include "page.h"
#include "top.h"

static const char doc[] =
	"Show what the devices of this machine do and for which programs, over and over.\v"
	"Examples:\n"
	"  embeng top                       on the screen; h shows the keys, q quits\n"
	"  embeng top -d 0000:01:00.0       one device\n"
	"  embeng top --batch --count 10    ten pages of text, one every two seconds\n"
	"  embeng top --json                one sample as a document\n"
	"  embeng top --json --hot          the same with the hottest rows of each table\n"
	"  embeng top --batch --json        a document on each line, until it is interrupted\n\n"
	"Rates are differences of counts over the time between two samples. What is not known is\n"
	"- or null. Root sees the contexts of all users, and what their queues wait for; others\n"
	"see their own contexts. The soft device is not shown, because it is inside of the\n"
	"process that uses it.\n\n"
	"Hot rows are counts of the device since the program last cleared them. To ask for them,\n"
	"each look takes a queue of the program's context for some milliseconds, which needs the\n"
	"right to trace the program. The program's results and counts stay as they are. The "
	"screen\n"
	"asks the context that one looks into.\n\n"
	"Without ncurses, and if the output is no terminal, pages are printed as by --batch.";

enum {
	KEY_BATCH = 'b',
	KEY_COUNT = 'n',
	KEY_INTERVAL = 'i',
	KEY_SORT = 's',
	KEY_ROOT = 0x100,
	KEY_HOT
};

static const struct argp_option options[] = {
	{"device", 'd', "DEVICE", 0, "One device, by its PCI address or by its node", 0},
	{"batch", KEY_BATCH, 0, 0, "Print a page of text for each sample", 0},
	{"count", KEY_COUNT, "N", 0, "End after N samples", 0},
	{"interval", KEY_INTERVAL, "S", 0,
	 "Take a sample every S seconds, 0.1 to 3600; 2 by default", 0},
	{"sort", KEY_SORT, "busy|commands|ids|rows|memory|stalls|pid", 0,
	 "Sort contexts by this (busy)", 0},
	{"hot", KEY_HOT, 0, 0,
	 "In pages and documents: show the hottest tables and rows, for which each program's "
	 "context is asked",
	 0},
	{"root", KEY_ROOT, "DIR", 0,
	 "Read the files of a machine that were recorded in this folder; given several times, each "
	 "sample is read from the next folder",
	 0},
	{0},
};

struct top_call {
	const char *device;
	bool batch, hot;
	int64_t count; /* 0: no end */
	double interval;
	enum order order;
	const char *roots[SAMPLER_ROOTS];
	size_t root_count;
};

static error_t parse_interval(struct top_call *call, const char *arg, struct argp_state *state)
{
	char *end;
	double seconds = strtod(arg, &end);

	if (end == arg || *end || !(seconds >= 0.1 && seconds <= 3600)) {
		argp_error(state, "--interval %s: give a number of seconds from 0.1 to 3600", arg);
		return EINVAL;
	}
	call->interval = seconds;
	return 0;
}

static error_t parse_order(struct top_call *call, const char *arg, struct argp_state *state)
{
	call->order = order_named(arg);
	if (call->order != ORDERS)
		return 0;
	argp_error(state, "--sort %s: sort by busy, commands, ids, rows, memory, stalls or pid",
		   arg);
	return EINVAL;
}

static error_t parse_root(struct top_call *call, const char *arg, struct argp_state *state)
{
	if (call->root_count == SAMPLER_ROOTS) {
		argp_error(state, "--root %s: one call reads at most %d folders", arg,
			   SAMPLER_ROOTS);
		return EINVAL;
	}
	call->roots[call->root_count++] = arg;
	return 0;
}

/* A device by the names that `embeng list` shows for it. */
static const char *strip_device(const char *name)
{
	static const char *const fronts[] = {"/dev/accel/", "pci:"};

	for (size_t i = 0; i < sizeof(fronts) / sizeof(fronts[0]); i++) {
		if (!strncmp(name, fronts[i], strlen(fronts[i])))
			return name + strlen(fronts[i]);
	}
	return name;
}

static error_t parse_top_option(int key, char *arg, struct argp_state *state)
{
	struct top_call *call = state->input;

	switch (key) {
	case 'd':
		call->device = strip_device(arg);
		return 0;
	case KEY_BATCH:
		call->batch = true;
		return 0;
	case KEY_COUNT:
		if (!count_read(arg, strlen(arg), 1, INT64_MAX, &call->count))
			return 0;
		argp_error(state, "--count %s: give a number of samples from 1", arg);
		return EINVAL;
	case KEY_HOT:
		call->hot = true;
		return 0;
	case KEY_INTERVAL:
		return parse_interval(call, arg, state);
	case KEY_SORT:
		return parse_order(call, arg, state);
	case KEY_ROOT:
		return parse_root(call, arg, state);
	case ARGP_KEY_END:
		if (!call->hot || !call->root_count)
			return 0;
		argp_error(state, "--hot asks running programs; leave it out with --root");
		return EINVAL;
	case ARGP_KEY_ARG:
		argp_error(state, "top takes no argument, given '%s'; name a device with -d", arg);
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* A terminal has its width, and anything else any width. */
static int find_width(void)
{
	struct winsize size;

	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
		return 0;
	return size.ws_col;
}

static int print_page(const struct rates *rates, enum order order)
{
	struct page page = {.width = find_width(), .order = order};
	struct lines lines = {0};
	bool failed;

	page_overview(&page, rates, &lines);
	page_hot_contexts(&page, rates, &lines);
	failed = lines.failed;
	for (size_t i = 0; i < lines.count; i++)
		puts(lines.list[i].text);
	putchar('\n');
	lines_free(&lines);
	return failed ? exit_of_errno(ENOMEM) : output_finish(CLI_OK);
}

static int fail_sample(const struct output *out, int err)
{
	return output_fail(out, exit_of_errno(err), err, NULL, "the devices cannot be read: %s",
			   strerror(-err));
}

static int look_into_all(struct sampler *sampler)
{
	int err = 0;

	for (size_t i = 0; !err && !interrupted() && i < sampler->rates.sample->context_count; i++)
		err = sampler_look(sampler, &sampler->rates.contexts[i]);
	return err;
}

static int show_sample(const struct top_call *call, const struct output *out,
		       struct sampler *sampler)
{
	struct json_object *document;
	int err = call->hot ? look_into_all(sampler) : 0;

	if (err)
		return fail_sample(out, err);
	order_contexts(&sampler->rates, call->order);
	if (!out->json)
		return print_page(&sampler->rates, call->order);
	document = top_document(out, &sampler->rates);
	return call->batch || call->count > 1 ? json_emit_line(document) : json_emit(document);
}

/* Return: false once a signal asks for the end. */
static bool sleep_until_due(struct timespec *due, double seconds)
{
	double whole;
	long rest = lround(modf(seconds, &whole) * 1e9);

	due->tv_sec += (time_t)whole;
	due->tv_nsec += rest;
	if (due->tv_nsec >= 1000000000) {
		due->tv_sec++;
		due->tv_nsec -= 1000000000;
	}
	while (!interrupted() &&
	       clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, due, NULL) == EINTR)
		;
	return !interrupted();
}

/* The first sample has no rates, and is shown only where there will be no other. */
static int run_batch(struct top_call *call, const struct output *out, struct sampler *sampler)
{
	struct timespec due;
	int code = CLI_OK, err = 0;

	if (out->json && !call->batch && !call->count)
		call->count = 1;
	clock_gettime(CLOCK_MONOTONIC, &due);
	if (!sampler_goes_on(sampler))
		return show_sample(call, out, sampler);
	for (int64_t n = 0; !code && sampler_goes_on(sampler) && (!call->count || n < call->count);
	     n++) {
		if (!call->root_count && !sleep_until_due(&due, call->interval))
			break;
		err = sampler_take(sampler);
		code = err ? fail_sample(out, err) : show_sample(call, out, sampler);
	}
	return code;
}

static bool wants_screen(const struct top_call *call, const struct output *out)
{
	return !call->batch && !call->count && !out->json && isatty(STDOUT_FILENO) &&
	       isatty(STDIN_FILENO);
}

static int run_top(struct top_call *call, const struct output *out, struct sampler *sampler)
{
	int err, code;

	if (wants_screen(call, out)) {
		err = screen_run(sampler, call->order);
		if (err != -ENOTTY)
			return err ? fail_sample(out, err) : CLI_OK;
	}
	interrupt_catch();
	code = run_batch(call, out, sampler);
	interrupt_release();
	return code;
}

static int check_device(const struct top_call *call, const struct output *out,
			const struct sampler *sampler)
{
	if (!call->device || sampler->rates.sample->device_count)
		return CLI_OK;
	return output_fail(out, CLI_NO_DEVICE, ENODEV, "`embeng list` shows the devices",
			   "%s is no engine on the PCI bus; give its PCI address or its node",
			   call->device);
}

int cmd_top(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options, .parser = parse_top_option, .doc = doc};
	struct output out = {.verb = "top"};
	struct top_call call = {.interval = 2};
	struct sampler sampler = {0};
	int code = command_parse(&argp, argc, argv, &out, &call), err;

	if (code)
		return code;
	sampler.roots = call.roots;
	sampler.root_count = call.root_count;
	sampler.interval = call.interval;
	err = sampler_open(&sampler, call.device);
	code = err ? fail_sample(&out, err) : check_device(&call, &out, &sampler);
	if (!code)
		code = run_top(&call, &out, &sampler);
	sampler_close(&sampler);
	return code;
}
