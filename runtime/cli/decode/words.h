/* SPDX-License-Identifier: MIT */
/* The words for numbers of the interface, from the tables of the uapi. NULL: the number has none. */
#ifndef CLI_DECODE_WORDS_H
#define CLI_DECODE_WORDS_H

#include <stdint.h>

const char *word_opcode(uint64_t opcode);
const char *word_status(uint64_t status);
const char *word_status_sentence(uint64_t status);
const char *word_field(uint64_t field);
const char *word_queue_kind(uint64_t kind);
const char *word_queue_state(uint64_t state);
const char *word_wait(uint64_t wait);
const char *word_form(uint64_t form);
const char *word_combiner(uint64_t combiner);
const char *word_out_of_range(uint64_t policy);
const char *word_optimizer(uint64_t optimizer);
const char *word_fill(uint64_t fill);
const char *word_stage(uint64_t action);
const char *word_freeze(uint64_t action);
const char *word_record(uint64_t type);
const char *word_admin(uint64_t opcode);
const char *word_boot_state(uint64_t state);
const char *word_boot_error(uint64_t error);
const char *word_boot_error_sentence(uint64_t error);
const char *word_flavour(uint64_t flavour);

/* The meaning of a cause of a reset, by the word that the driver writes. */
const char *word_cause(const char *cause);

/* The word, or "unknown". */
static inline const char *word_or_unknown(const char *word)
{
	return word ? word : "unknown";
}

#endif
