/* SPDX-License-Identifier: MIT */
/* Text of others on a terminal. */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

/* Columns that UTF-8 takes, but for wide and combining characters. */
int terminal_width(const char *text);

/* Prints it, and blanks up to @columns and two more. A stranger's file does not speak to it. */
void terminal_print(const char *text, int columns);

#endif
