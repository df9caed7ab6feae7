/* SPDX-License-Identifier: MIT */
/* The numbers that rows of tables and slots can have. */
#ifndef EMBENG_NUMBERS_H
#define EMBENG_NUMBERS_H

#include "model.h"

/* The range of a table's numbers, enum kernel_range of the engine; @slot: 0 for parameters. */
uint32_t numbers_range(const struct embeng_model *model, int table, size_t slot);

/* The range of slot @slot, from 0, of a kind of optimizer. */
uint32_t numbers_slot_range(enum embeng_optimizer_name kind, size_t slot);

/* Says in words which numbers a range has: "above 0 and finite". */
const char *numbers_allowed(uint32_t range);

/**
 * numbers_first_bad() - look for a number that the table or slot cannot have
 * @data: [@count] floats
 *
 * Return: its index, or @count.
 */
uint64_t numbers_first_bad(const struct embeng_model *model, int table, size_t slot,
			   const float *data, uint64_t count);

/* Says which number of a row is wrong; @what starts the sentence. Returns -ERANGE. */
int numbers_error(const struct embeng_model *model, const char *what, int table, size_t slot,
		  uint64_t row, uint64_t column, float value);

#endif
