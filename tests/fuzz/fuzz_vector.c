// SPDX-License-Identifier: MIT
/*
 * Conformance vectors: any text is read. A vector that is accepted and small also runs, on a
 * device of one core.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include "../../engine/hash/crc32c.h"
#include "../../runtime/cli/conform/file.h"
#include "../../runtime/cli/conform/run.h"
#include "../../runtime/cli/conform/value.h"
#include "../unit/support/failing_alloc.h"
#include "fuzz.h"

#define ROWS_MOST 4096
#define FLOATS_MOST 65536
#define REPLICAS_MOST 4
#define LIMIT ((size_t)32 << 20) /* bytes; inputs may ask for any number of samples */

static bool engine_is_small(const struct json *engine)
{
	return integer_member(engine, "replicas", 1) <= REPLICAS_MOST &&
	       integer_member(engine, "cores", 1) <= 4;
}

static bool tables_are_small(const struct json *tables)
{
	int64_t floats = 0;

	for (size_t i = 0; i < list_length(tables); i++) {
		const struct json *table = json_at(tables, i);
		int64_t rows = integer_member(table, "vocabulary_size", 1);
		int64_t dim = integer_member(table, "dim", 1);

		/* sizes below 1, which the model refuses, take no memory */
		if (rows > ROWS_MOST || dim > ROWS_MOST)
			return false;
		floats += rows > 0 && dim > 0 ? rows * dim : 0;
	}
	return floats <= FLOATS_MOST;
}

static bool is_small(const struct json *vector)
{
	const struct json *steps = member(vector, "steps");

	for (size_t i = 0; i < list_length(steps); i++) {
		const struct json *reopen = member(json_at(steps, i), "reopen");

		if (!engine_is_small(member(reopen, "engine")))
			return false;
	}
	return engine_is_small(member(vector, "engine")) &&
	       tables_are_small(member(vector, "tables")) && list_length(steps) <= 64;
}

/* Each failure names its step and says what was wrong. */
static void check_failures(struct json_object *failures)
{
	for (size_t i = 0; i < json_object_array_length(failures); i++) {
		struct json_object *failure = json_object_array_get_idx(failures, i), *text;

		fuzz_check(json_object_object_get_ex(failure, "step", NULL) &&
				   json_object_object_get_ex(failure, "verb", &text),
			   "failure %zu", i);
		fuzz_check(json_object_object_get_ex(failure, "message", &text) &&
				   *json_object_get_string(text),
			   "failure %zu", i);
	}
}

static void run(const struct json *vector, uint32_t scarce)
{
	const struct run_options options = {
		.device = "soft:cores=1,memory=16M", .fixed_cores = true, .keep_going = true};
	struct json_object *lacks = vector_lacks(vector);

	if (!json_object_array_length(lacks) && is_small(vector)) {
		struct vector_outcome outcome;

		scarce_begin(scarce);
		scarce_limit(LIMIT);
		vector_run(vector, &options, &outcome);
		scarce_end();
		fuzz_check(outcome.refused_step < 0, "no group refuses a step");
		check_failures(outcome.failures);
		json_object_put(outcome.failures);
	}
	json_object_put(lacks);
}

/* As a file, and from memory with nothing behind its end. */
static const struct json *read_both(const uint8_t *data, size_t size)
{
	char error[VECTOR_ERROR_TEXT] = "", same[VECTOR_ERROR_TEXT], path[32];
	char *text = fuzz_memory(size);
	int file = memfd_create("vector", 0);
	const struct json *vector, *other;

	memcpy(text, data, size);
	fuzz_check(file >= 0 && write(file, data, size) == (ssize_t)size, "no file");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	vector = vector_parse(text, size, error);
	other = vector_read(path, same);
	fuzz_check(vector || error[0], "a refusal without a reason");
	fuzz_check(!vector == !other && !strcmp(error, same), "'%s' and '%s'", error, same);
	json_free(other);
	other = vector_read_model(path, same);
	fuzz_check(other || same[0], "a refusal without a reason");
	json_free(other);
	scarce_begin(1 + (uint32_t)size % 2);
	json_free(vector_read(path, same));
	scarce_end();
	close(file);
	free(text);
	return vector;
}

/* A folder, and a file that is not there. */
static void read_nothing(void)
{
	static const char *const paths[] = {"/", "/no such file"};
	char error[VECTOR_ERROR_TEXT];

	for (int i = 0; i < 2; i++) {
		fuzz_check(!vector_read(paths[i], error), "%s", paths[i]);
		fuzz_check(!strncmp(error, "cannot be read", 14), "'%s'", error);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t sum = crc32c(0, data, size);
	const struct json *vector = read_both(data, size);

	if (!size)
		read_nothing();
	if (vector) {
		run(vector, 0);
		run(vector, 1 + sum % 768);
	}
	json_free(vector);
	return 0;
}
