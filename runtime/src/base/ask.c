// SPDX-License-Identifier: MIT
/*
 * Asks the program of the calling thread whether a call that takes long shall end. Interpreters need
 * this: a signal's handler leaves a note there, and what the note asks for is found by a function that
 * takes a lock of the interpreter's.
 *
 * All is the calling thread's own, so there are no locks, and it ends with the thread.
 */
#include "ask.h"

#include <errno.h>
#include <stdint.h>

#include "clock.h"
#include "embeng.h"
#include "error.h"

#define ASK_NS 50000000ull

static _Thread_local struct {
	embeng_ask_fn ask;
	void *arg;
	bool allowed;
	uint64_t asked_ns;
} asker;

void embeng_ask(embeng_ask_fn ask, void *arg)
{
	asker.ask = ask;
	asker.arg = arg;
	asker.asked_ns = ask ? now_ns() : 0;
}

bool ask_allow(bool allowed)
{
	bool before = asker.allowed;

	asker.allowed = allowed;
	return before;
}

int ask_program(void)
{
	uint64_t now;

	if (!asker.ask || !asker.allowed)
		return 0;
	now = now_ns();
	if (now - asker.asked_ns < ASK_NS)
		return 0;
	asker.asked_ns = now;
	if (!asker.ask(asker.arg))
		return 0;
	return fail(-EINTR,
		    "the program ended the call when it was asked (embeng_ask()); nothing is "
		    "lost: call again to go on");
}
