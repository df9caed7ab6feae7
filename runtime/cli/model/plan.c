// SPDX-License-Identifier: MIT
/*
 * The verb `embeng plan`: forecasts the memory that a model will need, and with --hosts what its tables
 * cost on several hosts. Its options are read here; the model and the reports are in plan_model.c,
 * plan_report.c and plan_hosts.c.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../device/device.h"
#include "../frame/command.h"
#include "../frame/exit.h"
#include "../frame/machine.h"
#include "../frame/numbers.h"
#include "plan.h"

static const char doc[] =
	"Compute how many bytes a model will need, for each table, slot and buffer, before\n"
	"anything is allocated, and tell whether it fits the device. With --hosts, compute what\n"
	"its tables cost on several hosts.\v"
	"MODEL is a JSON file with the tables, features and engine of a conformance vector;\n"
	"steps are not needed. Instead of a file, --checkpoint or --table and --feature can\n"
	"describe the model. OPTIMIZER is none, sgd (the default) or another one of\n"
	"embeng-optimizers(7); its slots are as large as the table, or have one number a row.\n"
	"A table without --feature gets one feature, which has the name of the table. Counts\n"
	"may end in k, M or G for thousands, millions and billions.\n\n"
	"Examples:\n"
	"  embeng plan --table users:10Mx64:adagrad\n"
	"  embeng plan --table items:2Mx128:adam --feature clicked:items --feature seen:items:50 "
	"\\\n"
	"      --batch 4k --ids 20\n"
	"  embeng plan model.json --replicas 4 --json\n"
	"  embeng plan --checkpoint saved --inference\n"
	"  embeng plan --table items:100Mx128:adagrad --hosts 8 --link 100G -b 4k --ids 20\n\n"
	"The plan assumes bags of 64-bit ids, as many steps ahead as the device takes, and the\n"
	"largest batch in every training step. A program then uses at most what the plan says.\n"
	"Tables and slots must fit the table memory of the device. All bytes together must fit\n"
	"the memory of the machine, and the model must keep the limits that embeng info shows.\n\n"
	"With --hosts, the plan has for each table the bytes of a step in each exchange that "
	"keeps\n"
	"the bits of one process, and which of them is the cheapest. It has the messages, and the\n"
	"memory of the host that needs the most. A model of one replica gets one for each host\n"
	"then, unless --replicas says another number. Rows are asked for equally often, by a Zipf\n"
	"law, or as often as a profile has counted (embeng_profile_open(3)).\n\n"
	"Exit status: 0 fits, 1 does not fit, 2 usage or no model.";

enum {
	KEY_CHECKPOINT = 0x100,
	KEY_TABLE,
	KEY_FEATURE,
	KEY_IDS,
	KEY_WEIGHTS,
	KEY_BUFFERS,
	KEY_SPLITS,
	KEY_INFERENCE,
	KEY_CORES,
	KEY_REPLICAS,
	KEY_DEPTH,
	KEY_HOSTS,
	KEY_LINK,
	KEY_ZIPF,
	KEY_PROFILE,
	KEY_EXCHANGE,
};

static const struct argp_option options[] = {
	{"checkpoint", KEY_CHECKPOINT, "DIR", 0, "Use the model of this checkpoint", 0},
	{"table", KEY_TABLE, "NAME:ROWSxDIM[:OPTIMIZER]", 0, "Add a table; may be repeated", 0},
	{"feature", KEY_FEATURE, "NAME:TABLE[:LENGTH]", 0,
	 "Add a feature of a table, with LENGTH a sequence; may be repeated", 0},
	{"batch", 'b', "N", 0, "Samples in a batch (1024)", 0},
	{"ids", KEY_IDS, "N", 0, "Ids in a sample of a pooled feature (1)", 0},
	{"weights", KEY_WEIGHTS, NULL, 0, "Ids of pooled features have weights", 0},
	{"buffers", KEY_BUFFERS, NULL, 0,
	 "Ids, weights and gradients are in device buffers and not copied", 0},
	{"splits", KEY_SPLITS, NULL, 0, "64-bit row splits are in device buffers, too", 0},
	{"inference", KEY_INFERENCE, NULL, 0, "Inference batches run between the training steps",
	 0},
	{"cores", KEY_CORES, "N", 0, "Number of cores (the device's)", 0},
	{"replicas", KEY_REPLICAS, "N", 0, "Number of replicas (the model's)", 0},
	{"depth", KEY_DEPTH, "N", 0, "Number of steps enqueued ahead (the most the device takes)",
	 0},
	{"hosts", KEY_HOSTS, "N", 0, "Number of hosts that the tables are distributed over", 0},
	{"link", KEY_LINK, "BITS", 0,
	 "Bits a second that a host can send, while it gets as many (100G)", 0},
	{"exchange", KEY_EXCHANGE, "cheapest|table|rows|rows-gradients", 0,
	 "The exchange of each table that allows it (cheapest)", 0},
	{"zipf", KEY_ZIPF, "EXPONENT", 0,
	 "Rows are asked for by a Zipf law, the first row most often (0: equally often)", 0},
	{"profile", KEY_PROFILE, "DIR", 0, "Rows are asked for as often as this profile says", 0},
	{"device", 'd', "DEVICE", 0, "The device, by a name that `embeng list` shows", 0},
	{0},
};

static error_t parse_count(struct argp_state *state, const char *name, const char *arg,
			   int64_t most, int64_t *value)
{
	if (!count_read(arg, strlen(arg), 1, most, value))
		return 0;
	argp_error(state, "--%s takes a count from 1 to %" PRId64 " (1000, 1k), not '%s'", name,
		   most, arg);
	return EINVAL;
}

static error_t parse_count32(struct argp_state *state, const char *name, const char *arg,
			     int64_t most, uint32_t *value)
{
	int64_t n = 0;
	error_t err = parse_count(state, name, arg, most, &n);

	*value = (uint32_t)n;
	return err;
}

#define ZIPF_MOST 8
#define LINK_MOST 1000000000000000

static error_t parse_zipf(struct argp_state *state, const char *arg, double *zipf)
{
	char *end;

	*zipf = strtod(arg, &end);
	if (end != arg && !*end && *zipf >= 0 && *zipf <= ZIPF_MOST)
		return 0;
	argp_error(state, "--zipf takes a number from 0 to %d (1.05), not '%s'", ZIPF_MOST, arg);
	return EINVAL;
}

static error_t parse_exchange(struct argp_state *state, const char *arg,
			      enum embeng_exchange_kind *exchange)
{
	static const struct {
		const char *name;
		enum embeng_exchange_kind kind;
	} names[] = {
		{"cheapest", EMBENG_EXCHANGE_NONE},
		{"table", EMBENG_EXCHANGE_TABLE},
		{"rows", EMBENG_EXCHANGE_ROWS},
		{"rows-gradients", EMBENG_EXCHANGE_ROWS_GRADIENTS},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		*exchange = names[i].kind;
		if (!strcmp(arg, names[i].name))
			return 0;
	}
	argp_error(state, "--exchange takes cheapest, table, rows or rows-gradients, not '%s'",
		   arg);
	return EINVAL;
}

/* Options that say something only of several hosts. ARGP_ERR_UNKNOWN: it is none of them. */
static error_t parse_hosts_option(int key, const char *arg, struct argp_state *state)
{
	struct plan_call *call = state->input;
	int64_t bits = 0;
	error_t err;

	switch (key) {
	case KEY_HOSTS:
		return parse_count32(state, "hosts", arg, EMBENG_HOSTS_MOST, &call->hosts.hosts);
	case KEY_LINK:
		call->only_with_hosts = "link";
		err = parse_count(state, "link", arg, LINK_MOST, &bits);
		call->hosts.link_bits = (double)bits;
		return err;
	case KEY_ZIPF:
		call->only_with_hosts = "zipf";
		return parse_zipf(state, arg, &call->hosts.zipf);
	case KEY_EXCHANGE:
		call->only_with_hosts = "exchange";
		return parse_exchange(state, arg, &call->hosts.exchange);
	case KEY_PROFILE:
		call->only_with_hosts = "profile";
		call->profile = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_plan_option(int key, char *arg, struct argp_state *state)
{
	struct plan_call *call = state->input;
	struct embeng_plan_options *o = &call->options;

	switch (key) {
	case KEY_CHECKPOINT:
		call->checkpoint = arg;
		return 0;
	case KEY_TABLE:
		call->tables[call->table_count++] = arg;
		return 0;
	case KEY_FEATURE:
		call->features[call->feature_count++] = arg;
		return 0;
	case 'b':
		return parse_count(state, "batch", arg, UINT32_MAX, &o->batch_size);
	case KEY_IDS:
		return parse_count(state, "ids", arg, UINT32_MAX, &o->ids_per_sample);
	case KEY_WEIGHTS:
		o->weights = 1;
		return 0;
	case KEY_BUFFERS:
		o->buffers = 1;
		return 0;
	case KEY_SPLITS:
		o->splits = 1;
		return 0;
	case KEY_INFERENCE:
		o->inference = 1;
		return 0;
	case KEY_CORES:
		return parse_count32(state, "cores", arg, EMBENG_MAX_CORES, &o->cores);
	case KEY_REPLICAS:
		return parse_count(state, "replicas", arg, UINT32_MAX, &call->replicas);
	case KEY_DEPTH:
		return parse_count32(state, "depth", arg, 64, &o->step_depth);
	case 'd':
		call->device = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (call->path)
			argp_error(state, "plan takes one MODEL, not both '%s' and '%s'",
				   call->path, arg);
		call->path = arg;
		return 0;
	default:
		return parse_hosts_option(key, arg, state);
	}
}

static int report_hosts(struct plan_report *r, const struct output *out)
{
	struct plan_call *call = r->call;
	struct embeng_error error = EMBENG_INIT(embeng_error);
	struct embeng_profile *profile = NULL;
	struct embeng_hosts_plan *plan = NULL;
	int err = 0, code;

	if (call->profile)
		err = embeng_profile_open(call->profile, r->model, NULL, &profile, &error);
	call->hosts.plan = &call->options;
	call->hosts.profile = profile;
	err = err ? err : embeng_model_plan_hosts(r->model, &call->hosts, &plan);
	r->hosts = plan;
	code = err ? output_library_failure(out, err, "See: embeng plan --help")
		   : plan_say_hosts(r, out);
	embeng_hosts_plan_free(plan);
	embeng_profile_close(profile);
	return code;
}

static int report_plan(struct plan_call *call, const struct embeng_model *model,
		       const struct embeng_device_info *device, const struct output *out)
{
	struct plan_report r = {.model = model,
				.call = call,
				.device = device,
				.memory = machine_memory(),
				.available = machine_memory_available()};
	struct embeng_plan *plan;
	int err, code;

	call->options.cores = call->options.cores ? call->options.cores : device->cores;
	call->options.step_depth = call->options.step_depth ? call->options.step_depth
							    : device->step_depth;
	if (call->hosts.hosts)
		return report_hosts(&r, out);
	err = embeng_model_plan(model, &call->options, &plan);
	if (err)
		return output_library_failure(out, err, "See: embeng plan --help");
	r.plan = plan;
	code = plan_say(&r, out);
	embeng_plan_free(plan);
	return code;
}

static int run_plan(struct plan_call *call, const struct output *out)
{
	struct embeng_device_info device = EMBENG_INIT(embeng_device_info);
	struct embeng_model *model;
	int code, err;

	if (call->only_with_hosts && !call->hosts.hosts)
		return output_fail(out, CLI_USAGE, EINVAL, "See: embeng plan --help",
				   "--%s is about several hosts: give --hosts, too",
				   call->only_with_hosts);
	code = plan_model(call, out, &model);
	if (code)
		return code;
	err = embeng_device_info(call->device, &device);
	code = err ? output_library_failure(out, err, "`embeng list` shows the devices")
		   : report_plan(call, model, &device, out);
	embeng_model_free(model);
	return code;
}

int cmd_plan(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options, .parser = parse_plan_option, .args_doc = "[MODEL]", .doc = doc};
	struct output out = {.verb = "plan"};
	struct plan_call call = {.options = {.size = sizeof(call.options), .id_type = EMBENG_I64},
				 .hosts = {.size = sizeof(call.hosts)}};
	int code;

	/* No option takes less than an argument. */
	call.tables = calloc((size_t)argc + 1, sizeof(*call.tables));
	call.features = calloc((size_t)argc + 1, sizeof(*call.features));
	if (!call.tables || !call.features) {
		free(call.tables);
		free(call.features);
		return output_fail(&out, CLI_DEVICE, ENOMEM, NULL, "out of memory");
	}
	code = command_parse(&argp, argc, argv, &out, &call);
	code = code ? code : run_plan(&call, &out);
	free(call.tables);
	free(call.features);
	return code;
}
