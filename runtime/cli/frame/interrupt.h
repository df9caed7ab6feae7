/* SPDX-License-Identifier: MIT */
/* Handling of SIGINT and SIGTERM during work that must be finished properly. */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

#include <stdbool.h>

/*
 * From here on the first of these signals is only noted. A third one ends the program, in case the
 * code that should see the first is stuck. A signal that was ignored (nohup) stays ignored.
 */
void interrupt_catch(void);
bool interrupted(void);

/* Restores the earlier handlers. A signal that was noted is raised again, and ends the program. */
void interrupt_release(void);

#endif
