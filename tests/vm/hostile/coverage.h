/* SPDX-License-Identifier: MIT */
/*
 * Records which places of the driver were reached (KCOV), and the inputs that reached new ones. On
 * a kernel without KCOV nothing guides the choice of inputs, and they are random.
 */
#ifndef EMBENG_TESTS_HOSTILE_COVERAGE_H
#define EMBENG_TESTS_HOSTILE_COVERAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define INPUT_BYTES 384u
#define INPUTS 512u

/* Modules are shorter than this, and stand in one piece: low bits tell places apart. */
#define COVERAGE_SPAN (1u << 20)

/**
 * struct coverage - coverage, shared by all processes of a test
 * @places: a bit for each place that was reached
 * @reached: number of bits that are set
 * @count: number of inputs that were added, which are kept modulo INPUTS
 * @inputs: inputs that reached something new
 */
struct coverage {
	_Atomic uint64_t places[COVERAGE_SPAN / 64];
	_Atomic uint32_t reached;
	_Atomic uint32_t count;
	uint8_t inputs[INPUTS][INPUT_BYTES];
};

/* Whether the kernel has KCOV. */
bool coverage_there(void);

/* Records this thread from now on; does nothing on a kernel without KCOV. */
void coverage_begin(void);

/* Adds what was reached since the last call, and @input when any of it is new. */
void coverage_add(struct coverage *c, const uint8_t *input);

#endif
