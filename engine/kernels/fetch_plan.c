// SPDX-License-Identifier: MIT
/*
 * Fills a plan of fetching ahead from what is known of a processor: its vendor and the sizes of its
 * caches. This is the only file that knows which form suits which processor; a host that has
 * measured its own puts that in place of what this file chose. The measurements behind each choice
 * are in docs/design/kernels.md.
 *
 * There are no floats here and no memory; any thread may call.
 */
#include "fetch_plan.h"

#define KIB 1024ull
#define MIB (1024 * KIB)

/* Processors of AMD with a first cache of this size or more gain by fetching into it: Zen 5. */
#define LARGE_FIRST_BYTES (48 * KIB)

/* They stand in for the sizes of caches that are not known. */
#define USUAL_SECOND_BYTES (1 * MIB)
#define USUAL_THIRD_BYTES (32 * MIB)

/* @share of a cache of @bytes, within limits: virtual machines tell of caches that they share. */
static u64 share_of_cache(u64 bytes, u64 usual, u64 share, u64 least, u64 most)
{
	u64 part = (bytes ? bytes : usual) / share;

	if (part < least)
		return least;
	return part > most ? most : part;
}

static u32 choose_lookup_form(const struct fetch_machine *machine, bool far)
{
	switch (machine->vendor) {
	case FETCH_VENDOR_AMD:
		if (machine->first_bytes >= LARGE_FIRST_BYTES)
			return KERNEL_FETCH_FIRST;
		return far ? KERNEL_FETCH_BURST : KERNEL_FETCH_TOUCH;
	case FETCH_VENDOR_INTEL:
		return KERNEL_FETCH_TOUCH;
	case FETCH_VENDOR_OTHER:
		break;
	}
	return KERNEL_FETCH_SECOND;
}

static struct fetch_ways choose_ways(const struct fetch_machine *machine, bool far)
{
	const bool again = far && machine->vendor == FETCH_VENDOR_AMD;

	return (struct fetch_ways){
		.lookup = { FETCH_ROWS_LOOKUP, choose_lookup_form(machine, far) },
		.update = { FETCH_ROWS_UPDATE, again ? KERNEL_FETCH_AGAIN : KERNEL_FETCH_SECOND },
	};
}

void fetch_plan_fill(struct fetch_plan *plan, const struct fetch_machine *machine)
{
	const u64 second = machine->second_bytes, third = machine->third_bytes;

	plan->near = choose_ways(machine, false);
	plan->far = choose_ways(machine, true);
	plan->least_bytes = share_of_cache(second, USUAL_SECOND_BYTES, 4, 64 * KIB, 512 * KIB);
	plan->gradient_bytes = share_of_cache(second, USUAL_SECOND_BYTES, 2, 128 * KIB, 1 * MIB);
	plan->cached_bytes = share_of_cache(third, USUAL_THIRD_BYTES, 1, 8 * MIB, 64 * MIB);
}
