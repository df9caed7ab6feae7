/* SPDX-License-Identifier: MIT */
#ifndef CLI_DOCTOR_PRINT_H
#define CLI_DOCTOR_PRINT_H

#include "../frame/output.h"
#include "examine.h"

/*
 * Prints a line for each check, then what is to be done. Checks that were not made and the reasons
 * for those that are well are printed if @verbose.
 */
void doctor_print(const struct results *results, bool verbose);

/* Makes the document of a machine's results. */
struct json_object *doctor_document(const struct output *out, const struct machine *m,
				    const struct results *results);

#endif
