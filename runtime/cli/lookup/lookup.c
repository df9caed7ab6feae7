// SPDX-License-Identifier: MIT
/*
 * The verb `embeng lookup`: asks a checkpoint for rows of a table or for a feature's bag, and
 * prints the answer.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../text/number.h"
#include "../frame/command.h"
#include "lookup.h"

static const char doc[] =
	"Look ids up in a checkpoint, on the CPU, without a device.\v"
	"With the name of a TABLE the output is the rows with these ids, one a line. With the\n"
	"name of a FEATURE the ids are one bag, and the output is what the model gets for it:\n"
	"the rows combined by the table's combiner or, for a sequence, one line for each\n"
	"position. `embeng checkpoint ls DIR` shows the tables.\n\n"
	"Examples:\n"
	"  embeng lookup orders.ckpt items_in 17             row 17 of a table\n"
	"  embeng lookup orders.ckpt items_in 3 17 4 --json  three rows, for scripts\n"
	"  embeng lookup ads.ckpt clicked 3 17 4             the bag of a feature\n"
	"  embeng lookup ads.ckpt clicked 3 17 -w 2,0.5      id 3 weighs four times as much\n\n"
	"A feature skips negative ids and, with the combiners mean and sqrtn, ids whose weight\n"
	"is not above 0, unless it is unchecked. Write negative ids after --. An id beyond the\n"
	"table is an error.\n\n"
	"Exit status: 0 ok, 2 usage, no checkpoint in DIR, unknown name or id, 4 permission,\n"
	"11 corrupt.";

#define KEY_VERIFY 256

static const struct argp_option options[] = {
	{"feature", 'f', NULL, 0, "Take the name as a feature even if a table has the same name",
	 0},
	{"weights", 'w', "W,W,...", 0, "One weight for each id of a feature", 0},
	{"verify", KEY_VERIFY, NULL, 0, "Check all parameters first, not only those that are read",
	 0},
	{0},
};

static error_t parse_id(struct question *q, const char *text, struct argp_state *state)
{
	int64_t id;

	if (number_read_signed(text, INT64_MIN, INT64_MAX, &id)) {
		argp_error(state, "'%s' is no id; an id is a whole number of 64 bits", text);
		return EINVAL;
	}
	q->ids[q->id_count++] = id;
	return 0;
}

static error_t parse_weights(struct question *q, const char *text, struct argp_state *state)
{
	char *end;

	free(q->weights);
	q->weights = calloc(strlen(text) + 1, sizeof(*q->weights));
	q->weight_count = 0;
	if (!q->weights)
		return ENOMEM;
	for (;; text = end + 1) {
		q->weights[q->weight_count++] = strtof(text, &end);
		if (end == text || (*end && *end != ',')) {
			argp_error(state,
				   "--weights takes numbers with commas between them, like 2,0.5; "
				   "'%s' is no number",
				   text);
			return EINVAL;
		}
		if (!*end)
			return 0;
	}
}

static error_t parse_lookup_option(int key, char *arg, struct argp_state *state)
{
	struct question *q = state->input;

	switch (key) {
	case 'f':
		q->feature = true;
		return 0;
	case 'w':
		return parse_weights(q, arg, state);
	case KEY_VERIFY:
		q->verify = true;
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num > 1)
			return parse_id(q, arg, state);
		*(state->arg_num ? &q->name : &q->dir) = arg;
		return 0;
	case ARGP_KEY_END:
		if (q->id_count)
			return 0;
		argp_error(state, "%s missing",
			   !q->dir    ? "DIR, a table or feature, and ids are"
			   : !q->name ? "a table or feature, and ids are"
				      : "ids are");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void print_answer(const struct question *q, const struct answer *a)
{
	int64_t dim = a->shape[a->rank - 1], lines = 1;

	for (size_t i = 0; i + 1 < a->rank; i++)
		lines *= a->shape[i];
	for (int64_t line = 0; line < lines; line++) {
		if (!a->feature)
			printf("%lld: ", (long long)q->ids[line]);
		for (int64_t c = 0; c < dim; c++)
			printf("%s%.9g", c ? " " : "", (double)a->activations[line * dim + c]);
		putchar('\n');
	}
}

/* Numbers of a shape as nested lists; *@at goes on behind them. */
static struct json_object *nest_numbers(const int64_t *shape, size_t rank, const float **at)
{
	struct json_object *list;

	if (!rank)
		return json_float((double)*(*at)++);
	list = json_object_new_array();
	for (int64_t i = 0; i < shape[0]; i++)
		json_object_array_add(list, nest_numbers(shape + 1, rank - 1, at));
	return list;
}

static struct json_object *document_answer(const struct output *out, const struct question *q,
					   const struct answer *a)
{
	struct json_object *d = json_document(out), *ids = json_object_new_array();
	struct json_object *weights = q->weights ? json_object_new_array() : NULL;
	const float *at = a->activations;

	for (size_t i = 0; i < q->id_count; i++)
		json_object_array_add(ids, json_object_new_int64(q->ids[i]));
	for (size_t i = 0; i < q->weight_count; i++)
		json_object_array_add(weights, json_float((double)q->weights[i]));
	json_object_object_add(d, "dir", json_object_new_string(q->dir));
	json_object_object_add(d, "table", json_object_new_string(a->table));
	json_object_object_add(d, "feature",
			       a->feature ? json_object_new_string(a->feature) : NULL);
	json_object_object_add(d, "ids", ids);
	json_object_object_add(d, "weights", weights);
	json_object_object_add(d, "activations", nest_numbers(a->shape, a->rank, &at));
	return d;
}

static int answer_lookup(const struct output *out, const struct question *q)
{
	static const char hint[] = "`embeng checkpoint ls DIR` shows the tables";
	struct answer a = {0};
	int err = question_answer(q, &a), code = CLI_OK;

	if (a.refusal)
		code = output_fail(out, exit_of_errno(err), err, hint, "%s: %s", q->name,
				   a.refusal);
	else if (err)
		code = output_library_failure(out, err, hint);
	else if (out->json)
		code = json_emit(document_answer(out, q, &a));
	else
		print_answer(q, &a);
	answer_free(&a);
	return code;
}

int cmd_lookup(int argc, char **argv)
{
	static const struct argp argp = {.options = options,
					 .parser = parse_lookup_option,
					 .args_doc = "DIR TABLE|FEATURE ID...",
					 .doc = doc};
	struct output out = {.verb = "lookup"};
	struct question q = {.ids = calloc((size_t)argc, sizeof(*q.ids))};
	int code;

	if (!q.ids)
		return output_fail(&out, CLI_DEVICE, ENOMEM, NULL, "out of memory");
	code = command_parse(&argp, argc, argv, &out, &q);
	if (!code)
		code = answer_lookup(&out, &q);
	free(q.ids);
	free(q.weights);
	return code;
}
