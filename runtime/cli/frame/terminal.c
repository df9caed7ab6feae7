// SPDX-License-Identifier: MIT
/*
 * Prints text that others wrote on a terminal: measures its width in columns, and prints nothing of
 * it that the terminal would take as a command.
 */
#include <stdio.h>

#include "terminal.h"

int terminal_width(const char *text)
{
	int columns = 0;

	for (; *text; text++)
		columns += ((unsigned char)*text & 0xc0) != 0x80;
	return columns;
}

void terminal_put(const char *text)
{
	for (const char *c = text; *c; c++)
		putchar((unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c);
}

void terminal_print(const char *text, int columns)
{
	terminal_put(text);
	printf("%*s  ", columns - terminal_width(text), "");
}
