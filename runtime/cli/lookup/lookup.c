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
	"In a checkpoint of embeng train an ID may also be the name of an item. A number is a\n"
	"row; with --names it is a name, too. Rows are printed with their names.\n\n"
	"Examples:\n"
	"  embeng lookup orders.ckpt items_in 17             row 17 of a table\n"
	"  embeng lookup orders.ckpt items_in bread milk     two rows by their names\n"
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
	{"names", 'n', NULL, 0, "Take each ID as the name of a row, also if it is a number", 0},
	{"verify", KEY_VERIFY, NULL, 0, "Check all parameters first, not only those that are read",
	 0},
	{0},
};

/* A text that is no number is a name, which the checkpoint has to know. */
static void parse_id(struct question *q, const char *text)
{
	int64_t id = 0;

	if (number_read_signed(text, INT64_MIN, INT64_MAX, &id))
		q->names[q->id_count] = text;
	q->words[q->id_count] = text;
	q->ids[q->id_count++] = id;
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
	case 'n':
		q->by_name = true;
		return 0;
	case KEY_VERIFY:
		q->verify = true;
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num > 1)
			parse_id(q, arg);
		else
			*(state->arg_num ? &q->name : &q->dir) = arg;
		return 0;
	case ARGP_KEY_END:
		for (size_t k = 0; q->by_name && k < q->id_count; k++)
			q->names[k] = q->words[k];
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

static const char *name_of(const struct answer *a, int64_t id)
{
	return id >= 0 && (uint64_t)id < a->names.count ? a->names.text[id] : NULL;
}

static void print_row(const struct answer *a, int64_t id)
{
	const char *name = name_of(a, id);

	printf("%lld%s%s: ", (long long)id, name ? " " : "", name ? name : "");
}

static void print_answer(const struct question *q, const struct answer *a)
{
	int64_t dim = a->shape[a->rank - 1], lines = 1;

	for (size_t i = 0; i + 1 < a->rank; i++)
		lines *= a->shape[i];
	for (int64_t line = 0; line < lines; line++) {
		if (!a->feature)
			print_row(a, q->ids[line]);
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
	struct json_object *names = a->names.count ? json_object_new_array() : NULL;
	const float *at = a->activations;

	for (size_t i = 0; i < q->id_count; i++)
		json_object_array_add(ids, json_object_new_int64(q->ids[i]));
	for (size_t i = 0; names && i < q->id_count; i++) {
		const char *name = name_of(a, q->ids[i]);

		json_object_array_add(names, name ? json_object_new_string(name) : NULL);
	}
	for (size_t i = 0; i < q->weight_count; i++)
		json_object_array_add(weights, json_float((double)q->weights[i]));
	json_object_object_add(d, "dir", json_object_new_string(q->dir));
	json_object_object_add(d, "table", json_object_new_string(a->table));
	json_object_object_add(d, "feature",
			       a->feature ? json_object_new_string(a->feature) : NULL);
	json_object_object_add(d, "ids", ids);
	if (names)
		json_object_object_add(d, "names", names);
	json_object_object_add(d, "weights", weights);
	json_object_object_add(d, "activations", nest_numbers(a->shape, a->rank, &at));
	return d;
}

static int answer_lookup(const struct output *out, struct question *q)
{
	static const char hint[] = "`embeng checkpoint ls DIR` shows the tables";
	struct answer a = {0};
	int err = question_answer(q, &a), code = CLI_OK;

	if (a.refusal)
		code = output_fail(out, exit_of_errno(err), err, a.near ? a.near : hint, "%s: %s",
				   q->name, a.refusal);
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
	struct question q = {
		.ids = calloc((size_t)argc, sizeof(*q.ids)),
		.names = calloc((size_t)argc, sizeof(*q.names)),
		.words = calloc((size_t)argc, sizeof(*q.words)),
	};
	int code;

	if (q.ids && q.names && q.words)
		code = command_parse(&argp, argc, argv, &out, &q);
	else
		code = output_fail(&out, CLI_DEVICE, ENOMEM, NULL, "out of memory");
	if (!code)
		code = answer_lookup(&out, &q);
	free(q.ids);
	free(q.names);
	free(q.words);
	free(q.weights);
	return code;
}
