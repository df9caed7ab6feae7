// SPDX-License-Identifier: MIT
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
