// SPDX-License-Identifier: MIT
/*
 * Checks numbers that are written into rows from outside: parameters are finite, and slots are what
 * their optimizer can go on from. The ranges are those of the engine, which checks the same; here
 * the sentence is made that names table, slot, row and column.
 *
 * The model is only read; no lock is needed.
 */
#include <inttypes.h>

#include "../../../engine/blob/blob.h"
#include "../../../engine/kernels/optimizers.h"
#include "../../../engine/kernels/ranges.h"
#include "base/bits.h"
#include "base/error.h"
#include "numbers.h"

uint32_t numbers_range(const struct embeng_model *model, int table, size_t slot)
{
	return slot ? numbers_slot_range(model->tables[table].optimizer.kind, slot - 1)
		    : KERNEL_FINITE;
}

uint64_t numbers_first_bad(const struct embeng_model *model, int table, size_t slot,
			   const float *data, uint64_t count)
{
	return numbers_until((const uint32_t *)(const void *)data, count,
			     numbers_range(model, table, slot),
			     model->engine.non_finite == EMBENG_NON_FINITE_ALLOW);
}

int numbers_error(const struct embeng_model *model, const char *what, int table, size_t slot,
		  uint64_t row, uint64_t column, float value)
{
	const char *name = model_slot_name(model, table, slot);

	return error_set(-ERANGE, EMBENG_STATUS_NUMBER,
			 "%s: table %s, %s%s, row %" PRIu64 ", column %" PRIu64
			 ": %g must be %s; correct it%s",
			 what, model->tables[table].name, slot ? "slot " : "", name, row, column,
			 (double)value, numbers_allowed(numbers_range(model, table, slot)),
			 f32_finite(bits(value)) ? "" : ", or give the model non_finite allow");
}
