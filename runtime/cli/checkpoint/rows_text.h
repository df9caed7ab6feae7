/* SPDX-License-Identifier: MIT */
/* Rows of floats as files have them. */
#ifndef CLI_ROWS_TEXT_H
#define CLI_ROWS_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Each returns 0 or a negative errno of the stream. */

/* The header of a .npy file, version 1.0: little-endian f32, [rows][dim]. */
int npy_header(FILE *out, int64_t rows, int64_t dim);

/* [count] floats as .npy has them; @data is used up. */
int npy_floats(FILE *out, float *data, size_t count);

/* A row a line, its numbers separated by spaces, 9 digits: the same f32 when read back. */
int text_rows(FILE *out, const float *data, size_t count, size_t dim);

#endif
