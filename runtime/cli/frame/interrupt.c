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

static const int numbers[] = {SIGINT, SIGTERM};

#define COUNT (sizeof(numbers) / sizeof(numbers[0]))

static struct sigaction before[COUNT];
static volatile sig_atomic_t noted, times;

static void note(int number)
{
	noted = number;
	times = times + 1;
	if (times == 2)
		signal(number, SIG_DFL);
}

void interrupt_catch(void)
{
	struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART};

	noted = 0;
	times = 0;
	sigemptyset(&action.sa_mask);
	for (size_t k = 0; k < COUNT; k++) {
		sigaction(numbers[k], NULL, &before[k]);
		if (before[k].sa_handler != SIG_IGN)
			sigaction(numbers[k], &action, NULL);
	}
}

bool interrupted(void)
{
	return noted;
}

void interrupt_release(void)
{
	for (size_t k = 0; k < COUNT; k++)
		sigaction(numbers[k], &before[k], NULL);
	if (noted) {
		fflush(NULL);
		raise(noted);
	}
}
