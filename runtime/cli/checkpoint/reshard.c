// SPDX-License-Identifier: MIT
/*
 * The command `embeng checkpoint reshard`: writes a checkpoint again for another number of hosts.
 * The work is done by embeng_checkpoint_reshard().
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "../../examples/item2vec/settings.h"
#include "../frame/interrupt.h"
#include "../frame/transfer.h"
#include "../lookup/row_names.h"
#include "commands.h"
#include "embeng/shard.h"

enum { KEY_HOSTS = 0x100, KEY_SHARDING, KEY_SHARD_BYTES, KEY_KEEP };

struct reshard {
	const char *in, *to;
	struct embeng_reshard_options options;
};

static const struct argp_option options[] = {
	{"hosts", KEY_HOSTS, "M", 0, "Number of hosts (1)", 0},
	{"sharding", KEY_SHARDING, "div|mod", 0,
	 "Rows of a host: successive rows, or every M-th row (div)", 0},
	{"shard-bytes", KEY_SHARD_BYTES, "N", 0, "At most N bytes of rows in one file (1 GiB)", 0},
	{"keep", KEY_KEEP, "N", 0, "Checkpoints that stay in OUT, the new one included (2)", 0},
	{0},
};

static const char doc[] =
	"Write a checkpoint for another number of hosts, which share the rows of every table.\v"
	"OUT gets the same tables, slots, step and program state as IN, in other files. Every\n"
	"chunk is checked as it is read, and the command needs little memory however large the\n"
	"tables are. If anything stops it early, OUT has either its old contents or the\n"
	"complete new checkpoint. OUT may be the same folder as IN.\n\n"
	"  embeng checkpoint reshard orders.ckpt four.ckpt --hosts 4\n"
	"  embeng checkpoint reshard four.ckpt mod.ckpt --hosts 3 --sharding mod\n\n"
	"Exit status: 0 ok, 2 usage or no checkpoint in IN, 4 permission, 5 busy or disk full,\n"
	"7 read or write error, 11 corrupt.";

static error_t parse_hosts(const char *arg, struct reshard *r, struct argp_state *state)
{
	char error[SETTING_ERROR];
	int64_t hosts;

	if (whole_read("hosts", arg, 1, INT32_MAX, &hosts, error)) {
		argp_error(state, "%s", error);
		return EINVAL;
	}
	r->options.hosts = (uint32_t)hosts;
	return 0;
}

static error_t parse_bytes(const char *arg, struct reshard *r, struct argp_state *state)
{
	char error[SETTING_ERROR];
	int64_t bytes;

	if (whole_read("shard-bytes", arg, 1, INT64_MAX, &bytes, error)) {
		argp_error(state, "%s", error);
		return EINVAL;
	}
	r->options.shard_bytes = (uint64_t)bytes;
	return 0;
}

static error_t parse_keep(const char *arg, struct reshard *r, struct argp_state *state)
{
	char error[SETTING_ERROR];
	int64_t keep;

	if (whole_read("keep", arg, 1, 1000, &keep, error)) {
		argp_error(state, "%s", error);
		return EINVAL;
	}
	r->options.keep = (uint32_t)keep;
	return 0;
}

static error_t parse_sharding(const char *arg, struct reshard *r, struct argp_state *state)
{
	if (!strcmp(arg, "div")) {
		r->options.sharding = EMBENG_SHARDING_DIV;
	} else if (!strcmp(arg, "mod")) {
		r->options.sharding = EMBENG_SHARDING_MOD;
	} else {
		argp_error(state, "--sharding takes div or mod, not '%s'", arg);
		return EINVAL;
	}
	return 0;
}

static error_t parse_folder(const char *arg, struct reshard *r, struct argp_state *state)
{
	if (!r->in) {
		r->in = arg;
	} else if (!r->to) {
		r->to = arg;
	} else {
		argp_error(state, "reshard takes two folders, IN and OUT; '%s' is a third", arg);
		return EINVAL;
	}
	return 0;
}

static error_t parse_reshard_option(int key, char *arg, struct argp_state *state)
{
	struct reshard *r = state->input;

	switch (key) {
	case KEY_HOSTS:
		return parse_hosts(arg, r, state);
	case KEY_SHARDING:
		return parse_sharding(arg, r, state);
	case KEY_SHARD_BYTES:
		return parse_bytes(arg, r, state);
	case KEY_KEEP:
		return parse_keep(arg, r, state);
	case ARGP_KEY_ARG:
		return parse_folder(arg, r, state);
	case ARGP_KEY_END:
		if (r->to)
			return 0;
		argp_error(state, "%s missing; give the folder to %s",
			   r->in ? "OUT is" : "IN and OUT are",
			   r->in ? "write to" : "read from and the one to write to");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int report_resharding(const struct output *out, const struct reshard *r,
			     const struct embeng_checkpoint_info *info)
{
	const char *sharding = checkpoint_sharding(r->options.sharding);
	struct json_object *d;
	char size[BYTES_TEXT];

	if (!out->json) {
		printf("%s: %zu tables over %" PRIu32 " hosts, %s, in %zu files, %s\n", r->to,
		       info->table_count, r->options.hosts, sharding, info->file_count,
		       bytes_text(info->bytes, size));
		return CLI_OK;
	}
	d = json_document(out);
	json_add_text(d, "in", r->in);
	json_add_text(d, "out", r->to);
	json_add_number(d, "hosts", r->options.hosts);
	json_add_text(d, "sharding", sharding);
	json_add_number(d, "files", info->file_count);
	json_add_number(d, "bytes", info->bytes);
	return json_emit(d);
}

/* The names of rows, where the checkpoint has them, go with it. */
static int copy_names(const struct output *out, const struct reshard *r,
		      const struct embeng_checkpoint *c)
{
	char why[ROW_NAMES_ERROR];
	int rc = strcmp(r->in, r->to) ? row_names_copy(r->in, c, r->to, why) : 0;

	return rc && rc != -ENOENT ? output_fail(out, exit_of_errno(rc), rc, NULL, "%s", why)
				   : CLI_OK;
}

/* The report is read back from the new checkpoint. */
static int open_and_report(const struct output *out, const struct reshard *r)
{
	struct embeng_checkpoint_info info;
	struct embeng_checkpoint *c;
	int code = checkpoint_open(out, r->to, &c, &info);

	if (code)
		return code;
	code = copy_names(out, r, c);
	if (!code)
		code = report_resharding(out, r, &info);
	embeng_checkpoint_close(c);
	return code;
}

static int run_reshard(const struct output *out, struct reshard *r)
{
	struct transfer transfer = {.line = progress_start_slowly(!out->json), .cancels = true};
	int err, code;

	r->options.progress = transfer_progress;
	r->options.progress_arg = &transfer;
	interrupt_catch();
	err = embeng_checkpoint_reshard(r->in, r->to, &r->options, NULL);
	progress_clear(&transfer.line);
	code = err ? output_library_failure(out, err, NULL) : open_and_report(out, r);
	interrupt_release();
	return code;
}

int checkpoint_reshard(int argc, char **argv)
{
	static const struct argp argp = {.options = options,
					 .parser = parse_reshard_option,
					 .args_doc = "IN OUT",
					 .doc = doc};
	struct output out = {.verb = "checkpoint", .command = "reshard"};
	struct reshard r = {.options = {.size = sizeof(r.options), .hosts = 1}};
	int code = command_parse(&argp, argc, argv, &out, &r);

	return code ? code : run_reshard(&out, &r);
}
