// SPDX-License-Identifier: MIT
/*
 * The verb `embeng conform`: runs conformance vectors against a device and reports each as TAP or
 * in one JSON document. Over a group of hosts, host 0 reports.
 *
 * The list of vectors lives for the whole run; each vector opens and closes the device for itself.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "../../text/number.h"
#include "../device/device.h"
#include "../frame/command.h"
#include "../frame/progress.h"
#include "../frame/tap.h"
#include "hosts.h"
#include "list.h"
#include "run.h"
#include "value.h"

static const char doc[] =
	"Run conformance vectors. A vector is a small model, a script of steps, and the\n"
	"results that the steps must have.\v"
	"A PATH is a file, or a folder that is searched for *.json. The output is TAP 14.\n\n"
	"Examples:\n"
	"  embeng conform tests/vectors\n"
	"  embeng conform -d soft:variant=portable --cores 3 tests/vectors/lookup\n"
	"  embeng conform --keep-going tests/vectors/train/slots_given.json\n"
	"  embeng conform --json tests/vectors | jq .failed\n"
	"  mpirun -n 2 embeng conform -d mpi:soft tests/vectors/train\n\n"
	"Exit status: 0 all vectors passed or were skipped, 1 a vector failed, 2 the call or a\n"
	"file is malformed (nothing runs then), 6 no such device; over hosts 7 a host has left or\n"
	"failed, 8 a host did not answer.";

enum { KEY_CORES = 256, KEY_KEEP_GOING };

static const struct argp_option options[] = {
	{"device", 'd', "DEVICE", 0, "Run on this device; default as for info", 0},
	{"cores", KEY_CORES, "N", 0, "Cores of a soft device, for vectors that do not say", 0},
	{"keep-going", KEY_KEEP_GOING, NULL, 0, "Go on after a failed step of a vector", 0},
	{0},
};

struct call {
	struct run_options run;
	struct vector_hosts hosts; /* where run.hosts points to, over a group of hosts */
	char **paths;
	size_t path_count;
};

static error_t parse_core_count(struct argp_state *state, const char *arg, int64_t *cores)
{
	if (!number_read_signed(arg, 1, INT64_MAX, cores))
		return 0;
	argp_error(state, "--cores takes a number from 1, not '%s'", arg);
	return EINVAL;
}

static error_t parse_conform_option(int key, char *arg, struct argp_state *state)
{
	struct call *call = state->input;

	switch (key) {
	case 'd':
		call->run.device = arg;
		return 0;
	case KEY_CORES:
		return parse_core_count(state, arg, &call->run.cores);
	case KEY_KEEP_GOING:
		call->run.keep_going = true;
		return 0;
	case ARGP_KEY_ARGS:
		call->paths = state->argv + state->next;
		call->path_count = (size_t)(state->argc - state->next);
		state->next = state->argc;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "PATH is missing; give a file or a folder of vectors");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Outcomes so far, and where they go. */
struct report {
	const struct output *out;
	bool quiet;		     /* another host reports */
	struct json_object *vectors; /* --json */
	size_t passed, failed, skipped;
};

static void add_to_document(struct report *report, const struct vector_entry *entry,
			    const char *result, const char *key, struct json_object *detail)
{
	struct json_object *vector = json_object_new_object();

	json_add_text(vector, "name", text_member(entry->vector, "name", ""));
	json_object_object_add(vector, "file", json_object_new_string(entry->path));
	json_object_object_add(vector, "result", json_object_new_string(result));
	if (detail)
		json_object_object_add(vector, key, json_object_get(detail));
	json_object_array_add(report->vectors, vector);
}

static void report_skip(struct report *report, size_t number, const struct vector_entry *entry,
			struct json_object *lacks)
{
	report->skipped++;
	if (report->quiet)
		return;
	if (report->vectors)
		add_to_document(report, entry, "skipped", "lacks", lacks);
	else
		tap_skip(stdout, number, text_member(entry->vector, "name", ""), lacks);
}

static void report_run(struct report *report, size_t number, const struct vector_entry *entry,
		       struct json_object *failures)
{
	const char *name = text_member(entry->vector, "name", "");
	bool passed = !json_object_array_length(failures);

	if (passed)
		report->passed++;
	else
		report->failed++;
	if (report->quiet)
		return;
	if (report->vectors)
		add_to_document(report, entry, passed ? "passed" : "failed", "failures",
				passed ? NULL : failures);
	else if (passed)
		tap_ok(stdout, number, name);
	else
		tap_not_ok(stdout, number, name, entry->path, failures);
}

/* A host that is missing ends the whole run. ETIME says that it was silent, all else that it is known to be gone. */
static int report_lost_host(const struct output *out, int err, const struct embeng_error *error)
{
	return output_fail(out, err == -ETIME ? CLI_TIMEOUT : CLI_DEVICE, err, NULL, "%s",
			   error->text);
}

static void report_outcome(struct report *report, size_t number, const struct vector_entry *entry,
			   const struct vector_outcome *outcome)
{
	struct json_object *why;

	if (outcome->refused_step < 0) {
		report_run(report, number, entry, outcome->failures);
		return;
	}
	why = json_object_new_array();
	json_object_array_add(why, json_object_new_string(outcome->refused));
	report_skip(report, number, entry, why);
	json_object_put(why);
}

/* Returns 0, or an exit code that ends the run. */
static int run_vector(struct report *report, size_t number, const struct vector_entry *entry,
		      struct call *call)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);
	struct vector_hosts *hosts = call->run.hosts ? &call->hosts : NULL;
	struct vector_outcome outcome;
	int err = hosts ? vector_hosts_enter(hosts, entry->vector, &error) : 0;

	if (err)
		return report_lost_host(report->out, err, &error);
	vector_run(entry->vector, &call->run, &outcome);
	if (hosts)
		err = vector_hosts_settle(hosts, &outcome, call->run.keep_going, &error);
	if (!err)
		report_outcome(report, number, entry, &outcome);
	json_object_put(outcome.failures);
	return err ? report_lost_host(report->out, err, &error) : 0;
}

static int run_one(struct report *report, size_t number, const struct vector_entry *entry,
		   struct call *call)
{
	struct json_object *lacks = vector_lacks(entry->vector);
	struct json_object *refused = call->run.hosts
					      ? vector_hosts_refuse(&call->hosts, entry->vector)
					      : NULL;
	int code = 0;

	if (json_object_array_length(lacks))
		report_skip(report, number, entry, lacks);
	else if (refused)
		report_skip(report, number, entry, refused);
	else
		code = run_vector(report, number, entry, call);
	json_object_put(lacks);
	json_object_put(refused);
	fflush(stdout);
	return code;
}

static bool asks_for_cores(const struct call *call, const struct vector_list *list)
{
	bool asks = call->run.cores;

	for (size_t i = 0; i < list->count; i++)
		asks |= member(member(list->entries[i].vector, "engine"), "cores") != NULL;
	return asks;
}

static int finish_report(const struct report *report, const struct embeng_device_info *info)
{
	struct json_object *document;
	int code;

	if (!report->vectors || report->quiet)
		return report->failed ? CLI_CHECK : CLI_OK;
	document = json_document(report->out);
	json_object_object_add(document, "device", device_document(info));
	json_object_object_add(document, "passed", json_object_new_int64((int64_t)report->passed));
	json_object_object_add(document, "failed", json_object_new_int64((int64_t)report->failed));
	json_object_object_add(document, "skipped",
			       json_object_new_int64((int64_t)report->skipped));
	json_object_object_add(document, "vectors", report->vectors);
	code = json_emit(document);
	return code ? code : report->failed ? CLI_CHECK : CLI_OK;
}

static int run_vectors(struct call *call, const struct vector_list *list,
		       const struct embeng_device_info *info, const struct output *out)
{
	struct report report = {.out = out, .quiet = call->run.hosts && call->hosts.rank};
	struct progress progress = progress_start(report.quiet || !isatty(STDOUT_FILENO) ||
						  out->json);
	int code = 0;

	if (out->json) {
		report.vectors = json_object_new_array();
	} else if (!report.quiet) {
		tap_begin(stdout);
		tap_plan(stdout, list->count);
	}
	if (!out->json && !report.quiet && call->run.fixed_cores && asks_for_cores(call, list))
		tap_comment(stdout, "cores: the number is fixed; vectors cannot choose another");
	for (size_t i = 0; !code && i < list->count; i++) {
		progress_line(&progress, "%zu of %zu, %zu failed: %s", i + 1, list->count,
			      report.failed, list->entries[i].path);
		code = run_one(&report, i + 1, &list->entries[i], call);
	}
	progress_clear(&progress);
	if (!code)
		return finish_report(&report, info);
	json_object_put(report.vectors);
	return code;
}

/* Waits for all hosts, if the device is on several. @code: this host's, which all are told if it is not 0. */
static int join_hosts(struct call *call, const struct vector_list *list, int code,
		      const struct output *out)
{
	const char *device = device_choose(call->run.device);
	struct embeng_error error = EMBENG_INIT(embeng_error);
	int err;

	if (!vector_hosts_prefix(device))
		return code;
	err = vector_hosts_join(&call->hosts, device, list->count, code ? -EINVAL : 0, &error);
	if (!err)
		call->run.hosts = &call->hosts;
	if (code || !err)
		return code;
	if (err == -ETIME || err == -EHOSTDOWN)
		return report_lost_host(out, err, &error);
	return output_fail(out, exit_of_errno(err), err, NULL, "%s", error.text);
}

static bool cores_are_fixed(const char *device, const struct embeng_device_info *info)
{
	return strcmp(info->kind, "soft") != 0 || strstr(device, "cores=");
}

static int run_conform(struct call *call, const struct output *out)
{
	struct embeng_device_info info = EMBENG_INIT(embeng_device_info);
	struct vector_list list = {0};
	int code = vector_list_read(&list, call->paths, call->path_count, out), err;

	if (!code) {
		err = embeng_device_info(call->run.device, &info);
		if (err)
			code = output_library_failure(out, err,
						      err == -ENODEV ? device_hint : NULL);
	}
	code = join_hosts(call, &list, code, out);
	if (!code) {
		call->run.device = device_choose(call->run.device);
		if (!call->run.device)
			call->run.device = strcmp(info.kind, "soft") ? info.name : "soft";
		call->run.fixed_cores = cores_are_fixed(call->run.device, &info);
		code = run_vectors(call, &list, &info, out);
	}
	vector_hosts_leave(&call->hosts);
	vector_list_free(&list);
	return code;
}

int cmd_conform(int argc, char **argv)
{
	static const struct argp argp = {.options = options,
					 .parser = parse_conform_option,
					 .args_doc = "PATH...",
					 .doc = doc};
	struct output out = {.verb = "conform"};
	struct call call = {0};
	int code = command_parse(&argp, argc, argv, &out, &call);

	return code ? code : run_conform(&call, &out);
}
