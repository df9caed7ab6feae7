/* SPDX-License-Identifier: MIT */
/* Writes rows of floats in the formats of files. */
#ifndef CLI_ROWS_TEXT_H
#define CLI_ROWS_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Each returns 0 or a negative errno of the stream. */

/* Writes the header of a .npy file, version 1.0: little-endian f32, [rows][dim]. */
int npy_header(FILE *out, int64_t rows, int64_t dim);

/* Writes @count floats in the format of .npy, for which @data is overwritten. */
int npy_floats(FILE *out, float *data, size_t count);

/* Writes each row on a line, with spaces between numbers of 9 digits, which keep all f32 bits. */
int text_rows(FILE *out, const float *data, size_t count, size_t dim);

#endif
