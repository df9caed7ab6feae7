// SPDX-License-Identifier: MIT
/*
 * Records what was wrong with a command. Each layer of the engine sets faults, so this is below all
 * of them. Only the fault that it is given is written.
 */
#include "../device/device.h"

u16 fault_set(struct fault *fault, u16 status, u32 field, u32 feature, u64 element, u64 value,
	      u64 limit)
{
	fault->status = status;
	fault->field = field;
	fault->feature = feature;
	fault->element = element;
	fault->value = value;
	fault->limit = limit;
	return status;
}
