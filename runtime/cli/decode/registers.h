/* SPDX-License-Identifier: MIT */
/* Registers by their name, wherever a file has them. */
#ifndef CLI_DECODE_REGISTERS_H
#define CLI_DECODE_REGISTERS_H

#include "sheet.h"

/* Adds a register to the present part, with what it means, and notes what is odd about its value. */
void register_show(struct sheet *s, uint64_t offset, const char *name, uint64_t value);

#endif
