/* SPDX-License-Identifier: MIT */
/* A model layer that only waits and takes notes, to test the queue layer alone. */
#ifndef EMBENG_TESTS_FAKE_MODEL_H
#define EMBENG_TESTS_FAKE_MODEL_H

#include "engine/device/device.h"

#define FAKE_LOG 64u
#define FAKE_SMALL 5u /* argument of a command that touches no memory */

struct fake_model {
	u64 admitted, ready;		      /* highest step that may be admitted, that may run */
	u16 accept_status;		      /* status that model_accept() fails with */
	bool small;			      /* commands touch no memory, else very much */
	void (*accepting)(struct command *c); /* called inside model_accept() */
	void (*running)(struct command *c);   /* called inside model_run() */
	u64 log[FAKE_LOG];		      /* cookies in the order they ran */
	u32 runs, finishes, releases, commits;
};

extern struct fake_model fake;

#endif
