// SPDX-License-Identifier: MIT
/*
 * Runs a vector from its model to its last step, and decides whether a call that failed was
 * expected to.
 *
 * A struct run lives for one vector.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../json/json_write.h"
#include "../frame/exit.h"
#include "../frame/scratch.h"
#include "hosts.h"
#include "value.h"

static bool contains_all(const struct json *texts, const char *message)
{
	for (size_t i = 0; i < list_length(texts); i++) {
		if (!strcasestr(message, json_string(json_at(texts, i))))
			return false;
	}
	return true;
}

/* @error: as the vector has it. */
static void note_other_error(struct run *r, const struct json *error, int result, const char *said)
{
	struct json_writer w;
	size_t length;
	char *text;

	json_write_begin(&w, JSON_COMPACT);
	json_write_value(&w, NULL, error);
	if (json_write_end(&w, &text, &length))
		text = NULL;
	run_fail(r, 0, "the step must fail with %s, but the error is %s: %.*s",
		 text ? text : "another error", errno_name(result), EMBENG_ERROR_TEXT, said);
	free(text);
}

/* A call must fail, and its errno and sentence must be those expected. */
static int check_expected_error(struct run *r, int result, const struct json *error)
{
	const char *name = text_member(error, "errno", NULL);
	char said[RUN_TEXT];

	if (result > 0)
		return result;
	if (result == 0) {
		run_fail(r, 0, "the step must fail%s%s, but did not", name ? " with " : "",
			 name ? name : "");
	} else {
		if ((!name || -result == errno_by_name(name)) &&
		    contains_all(member(error, "contains"), r->text))
			return 0;
		memcpy(said, r->text, sizeof(said));
		note_other_error(r, error, result, said);
	}
	run_new_failure(r);
	return STEP_MISMATCH;
}

static int check_unexpected_error(struct run *r, int result)
{
	if (result < 0) {
		json_object_object_add(run_new_failure(r), "errno",
				       json_object_new_string(errno_name(result)));
		return STEP_MISMATCH;
	}
	return result;
}

static int settle_result(struct run *r, int result, const struct json *error)
{
	if (result == STEP_ELSEWHERE)
		return 0;
	return error ? check_expected_error(r, result, error) : check_unexpected_error(r, result);
}

static void note_failure(struct run *r, struct json_object *failures, size_t step, const char *verb)
{
	json_object_object_add(r->failure, "step", json_object_new_int64((int64_t)step));
	json_object_object_add(r->failure, "verb", json_object_new_string(verb));
	json_object_array_add(failures, r->failure);
	r->failure = NULL;
}

/* Returns whether the step passed. */
static bool run_step(struct run *r, size_t number, const struct json *step,
		     struct vector_outcome *outcome)
{
	const struct json *error = member(step, "error");
	const char *verb = "";
	int result = 0;

	r->wait_ns = vector_hosts_wait(r, error);
	for (size_t i = 0; i < json_length(step); i++) {
		if (strcmp(json_name(step, i), "error") != 0) {
			verb = json_name(step, i);
			result = step_run(r, verb, json_at(step, i));
		}
	}
	if (vector_hosts_refused(r, result, error, (int64_t)number, outcome) ||
	    !settle_result(r, result, error))
		return true;
	note_failure(r, outcome->failures, number, verb);
	return false;
}

static void run_steps(struct run *r, struct vector_outcome *outcome)
{
	const struct json *steps = member(r->vector, "steps");
	const bool goes_on = r->options->keep_going || r->options->hosts;

	for (size_t i = 0; i < list_length(steps); i++) {
		if (!run_step(r, i + 1, json_at(steps, i), outcome) && !goes_on)
			return;
	}
}

void vector_run(const struct json *vector, const struct run_options *options,
		struct vector_outcome *outcome)
{
	const struct json *model_error = member(vector, "model_error");
	struct run r = {.options = options, .vector = vector};
	int opened;

	*outcome = (struct vector_outcome){.failures = json_object_new_array(), .refused_step = -1};
	if (options->hosts && options->hosts->scratch[0])
		r.scratch = strdup(options->hosts->scratch);
	opened = run_open(&r, member(vector, "engine"), true);
	if (!vector_hosts_refused(&r, opened, model_error, 0, outcome)) {
		if (settle_result(&r, opened, model_error))
			note_failure(&r, outcome->failures, 0, "model");
		else if (!model_error)
			run_steps(&r, outcome);
	}
	run_close(&r);
	if (options->hosts)
		free(r.scratch);
	else
		scratch_remove(r.scratch);
	json_object_put(r.failure);
}
