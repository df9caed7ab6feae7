// SPDX-License-Identifier: MIT
/*
 * Notes SIGINT and SIGTERM, so that work can come to a proper end. The third signal ends the
 * program.
 *
 * The handler touches only variables that signals may touch. The old handlers are put back by
 * interrupt_release().
 */
#include <signal.h>
#include <stddef.h>
#include <stdio.h>

#include "interrupt.h"

static const int caught[] = {SIGINT, SIGTERM};

#define COUNT (sizeof(caught) / sizeof(caught[0]))

static struct sigaction old_actions[COUNT];
static volatile sig_atomic_t noted, noted_count;

static void note_signal(int number)
{
	noted = number;
	noted_count = noted_count + 1;
	if (noted_count == 2)
		signal(number, SIG_DFL);
}

void interrupt_catch(void)
{
	struct sigaction action = {.sa_handler = note_signal, .sa_flags = SA_RESTART};

	noted = 0;
	noted_count = 0;
	sigemptyset(&action.sa_mask);
	for (size_t k = 0; k < COUNT; k++) {
		sigaction(caught[k], NULL, &old_actions[k]);
		if (old_actions[k].sa_handler != SIG_IGN)
			sigaction(caught[k], &action, NULL);
	}
}

bool interrupted(void)
{
	return noted;
}

void interrupt_release(void)
{
	for (size_t k = 0; k < COUNT; k++)
		sigaction(caught[k], &old_actions[k], NULL);
	if (noted) {
		fflush(NULL);
		raise(noted);
	}
}
