/* SPDX-License-Identifier: MIT */
/* Text of others on a terminal. */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

/* Columns that UTF-8 takes, but for wide and combining characters. */
int terminal_width(const char *text);

/* Prints it without control characters, so that a stranger's file does not speak to the terminal. */
void terminal_put(const char *text);

/* terminal_put(), and blanks up to @columns and two more. */
void terminal_print(const char *text, int columns);

#endif
