// SPDX-License-Identifier: MIT
/*
 * The verb `embeng replay`: runs what a device did once more, from a recording of it, and says where
 * something else came. It is apart from `embeng conform`, which brings its own input and knows the
 * right numbers: a recording knows only what came.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../text/number.h"
#include "../frame/command.h"
#include "../frame/infile.h"
#include "../frame/interrupt.h"
#include "play.h"

#define FILE_MOST ((size_t)64 << 30)
#define CORES_MOST 64

static const char doc[] =
	"Run what a device did once more, from a recording, and compare every result.\v"
	"The same commands run with the same operands, in the same order and with the same\n"
	"faults, on the engine in this process. Each completion is compared: its status, and\n"
	"all bytes that the command wrote. The first difference ends the replay.\n\n"
	"  EMBENG_RECORD=run.ebrc python3 train.py   record a program on the soft device\n"
	"  embeng vm --record run.ebrc -- ./test     record the emulator\n"
	"  embeng replay run.ebrc                    run it again\n"
	"  embeng decode run.ebrc                    read it\n\n"
	"Exit status: 0 all is the same, 1 something differs, 2 usage or a file that is no\n"
	"recording, 7 this machine has not what it takes, 11 a damaged recording. The end of a\n"
	"recording may be missing: what is there is played.";

enum { KEY_CORES = 0x100, KEY_VARIANT };

static const struct argp_option options[] = {
	{"cores", KEY_CORES, "N", 0, "Have N engine cores, not as many as recorded", 0},
	{"variant", KEY_VARIANT, "NAME", 0,
	 "Use this kernel variant, not the best of this processor", 0},
	{0},
};

struct call {
	const char *path;
	struct play_options play;
};

/* The entries of a file. */
struct entries {
	struct recording recording;
	struct recording_entry *list;
	size_t count, room;
};

static error_t parse_replay_option(int key, char *arg, struct argp_state *state)
{
	struct call *call = state->input;
	uint64_t number;

	switch (key) {
	case KEY_CORES:
		if (number_read(arg, strlen(arg), 10, &number) || !number || number > CORES_MOST) {
			argp_error(state, "--cores takes 1 to %d, given '%s'", CORES_MOST, arg);
			return EINVAL;
		}
		call->play.cores = (uint32_t)number;
		return 0;
	case KEY_VARIANT:
		call->play.variant = arg;
		return 0;
	case ARGP_KEY_ARG:
		return argument_take(&call->path, arg, "FILE", state);
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "FILE is missing");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int collect_entries(struct entries *e)
{
	struct recording_entry entry;

	while (recording_next(&e->recording, &entry)) {
		if (e->count == e->room) {
			size_t room = e->room ? 2 * e->room : 1024;
			struct recording_entry *larger = realloc(e->list, room * sizeof(*larger));

			if (!larger)
				return -ENOMEM;
			e->list = larger;
			e->room = room;
		}
		e->list[e->count++] = entry;
	}
	return 0;
}

static const char *verdict_of(const struct play_result *result)
{
	if (result->differs)
		return "different";
	return result->impossible[0] ? "impossible" : "same";
}

static void add_difference(struct json_object *document, const struct play_result *result)
{
	const struct difference *d = &result->difference;
	struct json_object *to;

	if (!result->differs) {
		json_object_object_add(document, "difference", NULL);
		return;
	}
	to = json_object_new_object();
	json_add_number(to, "entry", d->entry);
	json_add_number(to, "offset", d->offset);
	json_add_text(to, "command", d->command);
	json_add_text(to, "what", d->what);
	json_add_text(to, "recorded", d->recorded);
	json_add_text(to, "here", d->here);
	json_object_object_add(document, "difference", to);
}

static void emit_replay(const struct output *out, const struct call *call, const struct entries *e,
			const struct play_result *result)
{
	const struct recording *r = &e->recording;
	struct json_object *document = json_document(out);

	json_add_text(document, "file", call->path);
	json_add_text(document, "verdict", verdict_of(result));
	json_add_text(document, "problem", r->problem[0] ? r->problem : NULL);
	json_add_text(document, "impossible", result->impossible[0] ? result->impossible : NULL);
	json_add_text(document, "unfinished", result->unfinished[0] ? result->unfinished : NULL);
	json_add_number(document, "cores", result->cores);
	json_add_text(document, "variant", result->variant);
	json_add_number(document, "entries", e->count);
	json_add_number(document, "played", result->entries);
	json_add_number(document, "commands", result->commands);
	json_add_number(document, "completions", result->completions);
	json_add_number(document, "outputs", result->outputs);
	json_add_number(document, "output_bytes", result->output_bytes);
	json_add_number(document, "skipped_outputs", result->skipped);
	json_add_number(document, "faults", result->faults);
	json_add_number(document, "injected_faults", result->injected);
	add_difference(document, result);
	json_emit(document);
}

static void print_replay(const struct call *call, const struct entries *e,
			 const struct play_result *result)
{
	const struct difference *d = &result->difference;

	printf("%s: %" PRIu64 " commands on %u core%s (%s), %" PRIu64 " completions and %" PRIu64
	       " outputs of %" PRIu64 " bytes compared\n",
	       call->path, result->commands, result->cores, result->cores == 1 ? "" : "s",
	       result->variant, result->completions, result->outputs, result->output_bytes);
	if (result->faults)
		printf("faults: %" PRIu64 " recorded, %" PRIu64 " struck here\n", result->faults,
		       result->injected);
	if (result->skipped)
		printf("not compared: %" PRIu64 " outputs of STATS, which tell about each core\n",
		       result->skipped);
	if (e->recording.problem[0])
		printf("the recording has no end: %s\n", e->recording.problem);
	if (result->unfinished[0])
		printf("%s\n", result->unfinished);
	if (result->differs)
		printf("different: entry %" PRIu64 " at byte %" PRIu64
		       "\n  command   %s\n  what      %s\n  recorded  %s\n  here      %s\n",
		       d->entry, d->offset, d->command, d->what, d->recorded, d->here);
	else if (!result->impossible[0])
		printf("the same: every status and every byte\n");
}

static int show_replay(const struct output *out, const struct call *call, const struct entries *e,
		       const struct play_result *result)
{
	if (result->impossible[0] && !out->json)
		return output_fail(out, CLI_DEVICE, EIO, NULL, "%s: %s", call->path,
				   result->impossible);
	if (out->json)
		emit_replay(out, call, e, result);
	else
		print_replay(call, e, result);
	if (result->differs)
		return CLI_CHECK;
	if (result->impossible[0])
		return CLI_DEVICE;
	return e->recording.problem[0] && !e->recording.is_cut ? CLI_CORRUPT : CLI_OK;
}

static int replay_entries(const struct output *out, const struct call *call, struct entries *e)
{
	struct play_result result;

	if (!recording_is(e->recording.data, e->recording.size))
		return output_fail(out, CLI_USAGE, EINVAL,
				   "EMBENG_RECORD=FILE makes one; embeng decode FILE tells what a "
				   "file is",
				   "%s is no recording", call->path);
	if (collect_entries(e))
		return output_fail(out, CLI_DEVICE, ENOMEM, NULL, "out of memory");
	if (!e->count)
		return output_fail(out, CLI_CORRUPT, EBADMSG, NULL, "%s: %s", call->path,
				   e->recording.problem);
	interrupt_catch();
	if (play(e->list, e->count, &call->play, &result))
		return output_fail(out, CLI_DEVICE, ENOMEM, NULL, "out of memory");
	interrupt_release();
	return show_replay(out, call, e, &result);
}

int cmd_replay(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options, .parser = parse_replay_option, .args_doc = "FILE", .doc = doc};
	struct output out = {.verb = "replay"};
	struct call call = {0};
	struct entries entries = {0};
	char *data = NULL;
	size_t size;
	int code = command_parse(&argp, argc, argv, &out, &call), err;

	if (code)
		return code;
	err = infile_read(call.path, FILE_MOST, &data, &size);
	if (err)
		return output_fail(&out, err == -ENOENT ? CLI_USAGE : exit_of_errno(err), err, NULL,
				   "%s cannot be read: %s", call.path, strerror(-err));
	recording_begin(&entries.recording, (unsigned char *)data, size);
	code = replay_entries(&out, &call, &entries);
	free(entries.list);
	free(data);
	return code;
}
