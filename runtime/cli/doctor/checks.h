/* SPDX-License-Identifier: MIT */
/* The checks of `embeng doctor`, in the order in which they are made. */
#ifndef CLI_DOCTOR_CHECKS_H
#define CLI_DOCTOR_CHECKS_H

#include <stddef.h>

#include "finding.h"
#include "machine.h"

/**
 * struct check - one check
 * @name: name in tables and documents, which stays the same from release to release
 * @needs: names of earlier checks without which this one says nothing, separated by blanks
 * @each: it is made for each device
 * @why: why it matters
 * @look: fills in the finding; @device is NULL unless @each
 */
struct check {
	const char *name, *needs;
	bool each;
	const char *why;
	void (*look)(const struct machine *m, const struct function *device, struct finding *f);
};

extern const struct check checks[];
extern const size_t check_count;

typedef void check_fn(const struct machine *m, const struct function *device, struct finding *f);

/* bus.c */
check_fn check_function, check_ids, check_answers, check_bars, check_bars_place;

/* driver.c, driver_load.c, blacklist.c */
/*
 * Finds the driver's module by what modprobe goes by, whether the file is there or not. False if
 * modprobe knows none for the release.
 */
bool find_driver_module(const struct machine *m, const char *release, char path[TREE_PATH]);

check_fn check_kernel, check_driver_built, check_driver_blacklisted, check_driver_signed,
	check_driver_loaded, check_taint, check_driver_bound;

/* firmware.c */
check_fn check_firmware_file, check_driver_probe, check_firmware_old, check_firmware_signature,
	check_firmware_refused, check_firmware_fallback;

/* health.c */
check_fn check_wedged, check_hung, check_readings, check_ecc, check_temperature;

/* node.c */
check_fn check_node, check_node_number, check_node_mode, check_node_access;

/* limits.c */
check_fn check_memlock, check_memory_limit, check_processor_quota;

/* platform.c, host.c */
check_fn check_power, check_link, check_aer, check_iommu_group, check_iommu_mode, check_swiotlb,
	check_huge_pages, check_governor;

/* lookup.c: the last check, on a device or, without one, on the soft device */
check_fn check_lookup;

#endif
