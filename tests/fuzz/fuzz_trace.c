// SPDX-License-Identifier: MIT
/*
 * The text of the kernel's trace: any bytes are read as one. The stages of every command that is done
 * add up to the time between its submission and its completion, and both forms of the report take
 * the steps.
 */
#include <errno.h>

#include "../../runtime/cli/trace/report.h"
#include "fuzz.h"

static void check_traced(const struct trace_command *c)
{
	uint64_t sum = 0;

	if (!c->done)
		return;
	for (int stage = 0; stage < TRACE_STAGES; stage++)
		sum += c->stage_ns[stage];
	fuzz_check(c->seen >= c->submitted && sum == c->seen - c->submitted, "%llu",
		   (unsigned long long)sum);
	fuzz_check(c->accepted || !c->stage_ns[TRACE_ACCEPT], "%llu",
		   (unsigned long long)c->stage_ns[TRACE_ACCEPT]);
}

static void print_to_memory(const struct trace_steps *steps)
{
	FILE *saved = stdout;
	char *text = NULL;
	size_t size;

	stdout = open_memstream(&text, &size);
	fuzz_check(stdout, "%d", errno);
	trace_print(steps, 0);
	fclose(stdout);
	stdout = saved;
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct json_object *document = json_object_new_object();
	struct trace_events events;
	struct trace_steps steps;
	size_t done = 0;

	fuzz_check(!trace_parse(&events, (const char *)data, size), "%zu", size);
	fuzz_check(!trace_steps_make(&steps, &events), "%zu", events.count);
	for (size_t i = 0; i < steps.count; i++) {
		check_traced(&steps.list[i]);
		done += steps.list[i].done;
	}
	fuzz_check(steps.count == done + steps.unfinished, "%zu", done);
	print_to_memory(&steps);
	trace_document(document, &steps, 0);
	fuzz_check(!trace_chrome("/dev/null", &steps, 0), "%zu", steps.count);
	json_object_put(document);
	trace_steps_free(&steps);
	trace_free(&events);
	return 0;
}
