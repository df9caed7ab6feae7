/* SPDX-License-Identifier: MIT */
/* A rig whose model only notes its calls, and a region for the data of its commands. */
#ifndef EMBENG_TESTS_RING_HELP_H
#define EMBENG_TESTS_RING_HELP_H

#include "fake_model.h"
#include "rig.h"
#include "suite.h"

static struct rig *rig;
static u64 data[64];
static struct embeng_mem mem;

static inline struct rig *start(void)
{
	fake = (struct fake_model){.admitted = U64_MAX, .ready = U64_MAX};
	rig = rig_new(1, 0);
	mem = rig_bind(rig, 0, data, sizeof(data), EMBENG_REGION_DEVICE_READ);
	return rig;
}

static inline struct embeng_cmd lookup(u64 step)
{
	return (struct embeng_cmd){
		.opcode = EMBENG_OP_LOOKUP, .cookie = step, .step = step, .desc = mem};
}

#endif
