// SPDX-License-Identifier: MIT
/*
 * The command `embeng checkpoint unpack`: makes the checkpoint of a folder out of a stream, from a pipe
 * or a file. Unlike tar, it checks all of the stream before the folder has the checkpoint.
 *
 * The descriptor lives for one call.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../examples/item2vec/settings.h"
#include "../frame/interrupt.h"
#include "../frame/transfer.h"
#include "../lookup/row_names.h"
#include "commands.h"

/* @from: "-": stdin; @read: bytes */
struct unpack {
	const char *from, *dir;
	int64_t keep;
	int fd;
	uint64_t read;
};

static const struct argp_option options[] = {
	{"keep", 'k', "N", 0, "Number of checkpoints that the folder keeps, this one included (2)",
	 0},
	{0},
};

static const char doc[] =
	"Make a folder of a checkpoint that came as a stream.\v"
	"FILE is a stream that pack or embeng_save_stream() wrote, or a tar archive of what is in\n"
	"a checkpoint's folder; - is stdin. A checkpoint that is in DIR already becomes an "
	"earlier\n"
	"one, as after a save. All of the stream is checked first: if it is broken or ends early,\n"
	"DIR stays as it was.\n\n"
	"  embeng checkpoint pack orders.ckpt | ssh host embeng checkpoint unpack - orders.ckpt\n"
	"  embeng checkpoint unpack orders.tar orders.ckpt\n\n"
	"Exit status: 0 ok, 2 usage or no FILE, 4 permission, 5 busy or disk full, 7 read or "
	"write\n"
	"error, 11 corrupt.";

static error_t take_unpack_argument(char *arg, struct unpack *u, struct argp_state *state)
{
	if (!u->from) {
		u->from = arg;
		return 0;
	}
	if (!u->dir) {
		u->dir = arg;
		return 0;
	}
	argp_error(state, "the command takes FILE and DIR; '%s' is too much", arg);
	return EINVAL;
}

static error_t parse_unpack_option(int key, char *arg, struct argp_state *state)
{
	struct unpack *u = state->input;
	char error[SETTING_ERROR];

	switch (key) {
	case 'k':
		if (!whole_read("keep", arg, 1, 1000, &u->keep, error))
			return 0;
		argp_error(state, "%s", error);
		return EINVAL;
	case ARGP_KEY_ARG:
		return take_unpack_argument(arg, u, state);
	case ARGP_KEY_END:
		if (u->dir)
			return 0;
		argp_error(state, u->from ? "DIR is missing; give the folder to write"
					  : "FILE is missing; give a stream, or - for stdin");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/*
 * The read of a struct embeng_reader. A signal ends the wait for a pipe, which poll() does not begin
 * again, while it would not end a read.
 */
static int64_t read_unpacked(void *arg, void *data, size_t bytes)
{
	struct pollfd ready = {.events = POLLIN};
	struct unpack *u = arg;
	ssize_t n;

	ready.fd = u->fd;
	do {
		while (poll(&ready, 1, -1) < 0 && errno == EINTR) {
			if (interrupted())
				return -ECANCELED;
		}
		n = read(u->fd, data, bytes);
	} while (n < 0 && (errno == EINTR || errno == EAGAIN));
	if (n < 0)
		return -errno;
	u->read += (uint64_t)n;
	return n;
}

static int report_unpacked(const struct output *out, const struct unpack *u)
{
	struct embeng_checkpoint_info info;
	struct embeng_checkpoint *c;
	char size[BYTES_TEXT];
	struct json_object *d;
	int code = checkpoint_open(out, u->dir, &c, &info);

	if (code)
		return code;
	embeng_checkpoint_close(c);
	if (!out->json) {
		printf("%s: step %llu, %zu %s, %s\n", u->dir, (unsigned long long)info.step,
		       info.table_count, info.table_count == 1 ? "table" : "tables",
		       bytes_text(u->read, size));
		return CLI_OK;
	}
	d = json_document(out);
	json_add_text(d, "file", u->from);
	json_add_text(d, "dir", u->dir);
	json_add_number(d, "step", info.step);
	json_add_number(d, "tables", info.table_count);
	json_add_number(d, "bytes", u->read);
	return json_emit(d);
}

static int run_unpack(const struct output *out, struct unpack *u)
{
	static const char *const files[] = {ROW_NAMES_FILE};
	struct transfer transfer = {.line = progress_start_slowly(!out->json), .cancels = true};
	const struct embeng_reader from = {.size = sizeof(from), .read = read_unpacked, .arg = u};
	const struct embeng_pack_options o = {.size = sizeof(o),
					      .progress = transfer_progress,
					      .progress_arg = &transfer,
					      .files = files,
					      .file_count = 1,
					      .keep = (uint32_t)u->keep};
	int ret, code;

	interrupt_catch();
	ret = embeng_checkpoint_unpack(&from, u->dir, &o, NULL);
	progress_clear(&transfer.line);
	code = ret ? output_library_failure(out, ret, NULL) : report_unpacked(out, u);
	interrupt_release();
	return code;
}

static int open_unpacked(const struct output *out, struct unpack *u)
{
	u->fd = strcmp(u->from, "-") != 0 ? open(u->from, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
	if (u->fd < 0)
		return output_fail(out, exit_of_errno(errno), errno, NULL, "%s: %s", u->from,
				   strerror(errno));
	if (isatty(u->fd))
		return output_fail(out, CLI_USAGE, EINVAL, "Give FILE, or a pipe",
				   "a stream is binary and does not come from a terminal");
	return CLI_OK;
}

int checkpoint_unpack(int argc, char **argv)
{
	static const struct argp argp = {.options = options,
					 .parser = parse_unpack_option,
					 .args_doc = "FILE DIR",
					 .doc = doc};
	struct output out = {.verb = "checkpoint", .command = "unpack"};
	struct unpack u = {.fd = -1};
	int code = command_parse(&argp, argc, argv, &out, &u);

	code = code ? code : open_unpacked(&out, &u);
	code = code ? code : run_unpack(&out, &u);
	if (u.fd > STDERR_FILENO)
		close(u.fd);
	return code;
}
