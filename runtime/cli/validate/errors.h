/* SPDX-License-Identifier: MIT */
/* Errors that the PCI function has reported to the bus (AER), as the kernel counts them. */
#ifndef CLI_VALIDATE_ERRORS_H
#define CLI_VALIDATE_ERRORS_H

#include "subject.h"

/* Whether the function reports errors at all. */
bool bus_errors_known(const struct subject *s);

/*
 * The sum of correctable, nonfatal and fatal errors since the kernel started, 0 if none are counted.
 * @names: NULL, or room of @size bytes for the kinds that are not 0, such as "Timeout 3, BadTLP 1"
 */
uint64_t bus_errors_now(const struct subject *s, char *names, size_t size);

/* Fails if the bus has counted errors since the first check, and says which. */
void bus_errors_check(const struct subject *s, struct finding *f);

#endif
