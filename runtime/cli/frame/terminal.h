/* SPDX-License-Identifier: MIT */
/* Printing untrusted text on a terminal. */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

/* Columns of UTF-8 text: one for each character, also for wide and combining ones. */
int terminal_width(const char *text);

/* Prints text with '?' for control characters, which a file of somebody else may have. */
void terminal_put(const char *text);

/* Prints as terminal_put() does, then blanks up to @columns and two more. */
void terminal_print(const char *text, int columns);

#endif
