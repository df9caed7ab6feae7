/* SPDX-License-Identifier: MIT */
/* Calls that take long ask the program whether they shall end; see embeng_ask(). */
#ifndef EMBENG_ASK_H
#define EMBENG_ASK_H

#include <stdbool.h>

/*
 * Says whether this thread may ask from now on, which it may not at first. It may while it holds no
 * lock, since the program's function may wait for another thread that wants one. Return: what was so
 * before.
 */
bool ask_allow(bool allowed);

/*
 * ask_program() - ask, if this thread may and has not done so for some time
 *
 * Cheap enough to be called after each thousand rows. Return: 0, or -EINTR with a sentence.
 */
int ask_program(void);

#endif
