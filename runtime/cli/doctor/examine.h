/* SPDX-License-Identifier: MIT */
/* Running the checks on a machine. */
#ifndef CLI_DOCTOR_EXAMINE_H
#define CLI_DOCTOR_EXAMINE_H

#include "checks.h"

/**
 * struct result - one check of one device, or of the machine
 * @check: the check
 * @device: address of the device, or NULL
 * @stop: check that stopped, if this one was not made on its account
 */
struct result {
	const struct check *check;
	const char *device;
	const struct check *stop;
	struct finding finding;
};

/* The results in the order of the table, a check's devices in the order of their addresses. */
struct results {
	struct result *list;
	size_t count;
};

/**
 * machine_open() - find what is to be examined
 * @tree: files of the machine, which must outlive it
 * @named: device that the user named, or NULL; lives as long
 *
 * Return: 0 or a negative errno. machine_close() frees what @m has.
 */
int machine_open(struct tree *tree, const char *named, struct machine *m);

void machine_close(struct machine *m);

/* Makes all checks. Return: 0 or -ENOMEM. @out is freed by results_free(). */
int machine_examine(const struct machine *m, struct results *out);

void results_free(struct results *results);

/* Number of results with a verdict. */
size_t results_count(const struct results *results, enum verdict verdict);

/* The exit code: of the first problem, or CLI_OK. */
int results_exit_code(const struct results *results);

#endif
