// SPDX-License-Identifier: MIT
/*
 * The grid of cores that partitioned CSR is laid out for. A PARTITION writes that layout, and a
 * LOOKUP of partitioned batches reads it, so both check the grid here.
 *
 * Looks only at its arguments; no lock is needed.
 */
#include "grid.h"

u16 pcsr_check_grid(u32 cores, u32 device_cores, u32 index, struct fault *fault)
{
	if (!cores || cores > EMBENG_PARTITION_CORES_MAX)
		return fault_set(fault, EMBENG_STATUS_COUNT, EMBENG_FIELD_CORES, index, 0, cores,
				 EMBENG_PARTITION_CORES_MAX);
	if (!device_cores || device_cores > EMBENG_PARTITION_DEVICE_CORES_MAX)
		return fault_set(fault, EMBENG_STATUS_COUNT, EMBENG_FIELD_CORES, index, 0,
				 device_cores, EMBENG_PARTITION_DEVICE_CORES_MAX);
	if (cores % device_cores)
		return fault_set(fault, EMBENG_STATUS_GRID, EMBENG_FIELD_CORES, index, 0, cores,
				 device_cores);
	return 0;
}
