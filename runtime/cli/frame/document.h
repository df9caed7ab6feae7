/* SPDX-License-Identifier: MIT */
/* A JSON document as text, and what the command does when it has no memory for one. */
#ifndef CLI_DOCUMENT_H
#define CLI_DOCUMENT_H

#include <json-c/json.h>

/* Return: 0, -ENOMEM, or -EINVAL if a text is not UTF-8. The text ends in a newline. */
int document_text(struct json_object *document, char **text, size_t *length);

/* document_text() on one line. */
int document_line(struct json_object *document, char **text, size_t *length);

/* The schema that the document of a failure is to have; NULL: the failure goes to stderr alone. */
void document_expect(const char *schema);

/* Says that memory ran out, as a document if one is expected, and ends the process. */
_Noreturn void document_no_memory(void);

#endif
