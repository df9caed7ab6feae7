/* SPDX-License-Identifier: MIT */
/* SIGINT and SIGTERM while there is something to bring to a proper end. */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

#include <stdbool.h>

/*
 * From here on the first of them is only noted; a third one ends the program, should
 * what waits for the first be stuck. A signal that is ignored (nohup) stays so.
 */
void interrupt_catch(void);
bool interrupted(void);

/* What they did before holds again; one that was noted is raised again, and ends the program. */
void interrupt_release(void);

#endif
