/* SPDX-License-Identifier: MIT */
/* The registers of the validated device. */
#ifndef CLI_VALIDATE_REGISTERS_H
#define CLI_VALIDATE_REGISTERS_H

#include "embeng_regs.h"

#include "subject.h"

/**
 * struct registers - a copy of the register page
 */
struct registers {
	_Alignas(8) char page[EMBENG_REGISTERS_SIZE];
};

/* Skips @f where this process may not read them, and fails it where they cannot be read. */
bool registers_copy(const struct subject *s, struct registers *r, struct finding *f);

/* A register of 4 bytes. */
uint32_t registers_word(const struct registers *r, enum embeng_register which);

#endif
