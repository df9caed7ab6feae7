/* SPDX-License-Identifier: MIT */
/* Traced steps as text, as a document, and as a file for Perfetto. */
#ifndef CLI_TRACE_REPORT_H
#define CLI_TRACE_REPORT_H

#include "../frame/output.h"
#include "steps.h"

/* Prints the steps, or makes the document's members of them. @step: 0 for all. */
void trace_print(const struct trace_steps *steps, uint64_t step);
void trace_document(struct json_object *document, const struct trace_steps *steps, uint64_t step);

/* Writes trace events in Chrome's format. Return: 0 or a negative errno. */
int trace_chrome(const char *path, const struct trace_steps *steps, uint64_t step);

#endif
