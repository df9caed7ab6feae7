/* SPDX-License-Identifier: MIT */
/* Reading a whole file that somebody names. */
#ifndef CLI_INFILE_H
#define CLI_INFILE_H

#include <stddef.h>

/**
 * infile_read() - read a file, a pipe, or "-" for standard input
 * @most: bytes that the file may have
 * @text: set to the bytes, with a zero byte behind them, which the caller frees
 *
 * Return: 0 or a negative errno, -EFBIG for a file that is larger.
 */
int infile_read(const char *path, size_t most, char **text, size_t *length);

#endif
