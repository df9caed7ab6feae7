// SPDX-License-Identifier: MIT
/*
 * Ends the command when there is no memory for a part of a document. The linker sends the command's
 * calls of json-c that allocate to the functions here (--wrap): json-c returns NULL, and asserts when
 * that is used.
 *
 * Nothing here allocates. The schema that is expected is the process's, and set by one thread.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "document.h"
#include "exit.h"

static char expected[64];

void document_expect(const char *schema)
{
	snprintf(expected, sizeof(expected), "%s", schema ? schema : "");
}

_Noreturn void document_no_memory(void)
{
	fflush(stdout);
	if (*expected)
		dprintf(STDOUT_FILENO,
			"{\n  \"schema\": \"%s\",\n  \"error\": {\n    \"code\": %d,\n    "
			"\"name\": "
			"\"ENOMEM\",\n    \"message\": \"out of memory\",\n    \"hint\": null\n  "
			"}\n}\n",
			expected, CLI_DEVICE);
	else
		dprintf(STDERR_FILENO, "embeng: out of memory\n");
	_exit(CLI_DEVICE);
}
