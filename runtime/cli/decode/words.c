// SPDX-License-Identifier: MIT
/*
 * Looks up the words for opcodes, statuses, fields and the like. They come from the tables of the
 * uapi where it has one; enumerations that have no table there are listed here.
 *
 * All texts are constant.
 */
#include "words.h"

#include <stddef.h>
#include <string.h>

#include "embeng_engine.h"
#include "embeng_regs.h"
#ifdef EMBENG_HAVE_ACCEL
#include "embeng_accel.h"
#endif

#define WORDS(name, ...) \
	const char *name(uint64_t number) \
	{ \
		static const char *const words[] = {__VA_ARGS__}; \
\
		return number < sizeof(words) / sizeof(words[0]) ? words[number] : NULL; \
	}

#define OPCODE(name, value, kinds, flags, words) [value] = words,
#define STATUS(name, value, cls, err, exit_code, text) [value] = #name,
#define SENTENCE(name, value, cls, err, exit_code, text) [value] = text,
#define FIELD(name, value, words) [value] = words,
#define BOOT_ERROR(name, value, text) [value] = text,
#define BOOT_ERROR_NAME(name, value, text) [value] = #name,
#define OPTIMIZER(name, value) [value] = #name,

WORDS(word_opcode, EMBENG_OPCODE_TABLE(OPCODE))
WORDS(word_status, EMBENG_STATUS_TABLE(STATUS))
WORDS(word_status_sentence, EMBENG_STATUS_TABLE(SENTENCE))
WORDS(word_field, EMBENG_FIELD_TABLE(FIELD))
WORDS(word_optimizer, [EMBENG_OPTIMIZER_NONE] = "NONE", EMBENG_OPTIMIZER_TABLE(OPTIMIZER))
WORDS(word_queue_kind, [EMBENG_QUEUE_ADMIN] = "ADMIN", [EMBENG_QUEUE_INPUT] = "INPUT",
      [EMBENG_QUEUE_INFERENCE] = "INFERENCE", [EMBENG_QUEUE_GRADIENT] = "GRADIENT",
      [EMBENG_QUEUE_TRANSFER] = "TRANSFER")
WORDS(word_queue_state, [EMBENG_QUEUE_RUNNING] = "RUNNING", [EMBENG_QUEUE_BLOCKED] = "BLOCKED",
      [EMBENG_QUEUE_CQ_FULL] = "CQ_FULL", [EMBENG_QUEUE_ERROR] = "ERROR")
WORDS(word_wait, [EMBENG_WAIT_NOTHING] = "nothing", [EMBENG_WAIT_LOOKUP] = "a LOOKUP",
      [EMBENG_WAIT_UPDATE] = "an UPDATE", [EMBENG_WAIT_QUEUE] = "another queue",
      [EMBENG_WAIT_SPACE] = "room in its completion ring")
WORDS(word_form, [EMBENG_FORM_CSR] = "CSR", [EMBENG_FORM_DENSE] = "DENSE",
      [EMBENG_FORM_POOLED] = "POOLED", [EMBENG_FORM_COO] = "COO",
      [EMBENG_FORM_PARTITIONED] = "PARTITIONED", [EMBENG_FORM_ROWS] = "ROWS")
WORDS(word_combiner, [EMBENG_COMBINER_SUM] = "sum", [EMBENG_COMBINER_MEAN] = "mean",
      [EMBENG_COMBINER_SQRTN] = "sqrtn", [EMBENG_COMBINER_MAX] = "max")
WORDS(word_out_of_range, [EMBENG_OUT_OF_RANGE_ERROR] = "error",
      [EMBENG_OUT_OF_RANGE_CLAMP] = "clamp", [EMBENG_OUT_OF_RANGE_DROP] = "drop",
      [EMBENG_OUT_OF_RANGE_ZERO] = "zero")
WORDS(word_fill, [EMBENG_FILL_CONSTANT] = "constant", [EMBENG_FILL_UNIFORM] = "uniform",
      [EMBENG_FILL_TRUNCATED_NORMAL] = "truncated normal")
WORDS(word_stage, [EMBENG_STAGE_BEGIN] = "BEGIN", [EMBENG_STAGE_COMMIT] = "COMMIT",
      [EMBENG_STAGE_DROP] = "DROP")
WORDS(word_freeze, [EMBENG_FREEZE_OFF] = "OFF", [EMBENG_FREEZE_ON] = "ON",
      [EMBENG_FREEZE_ASK] = "ASK")
WORDS(word_record, [EMBENG_RECORD_ENGINE] = "ENGINE", [EMBENG_RECORD_TABLE] = "TABLE",
      [EMBENG_RECORD_FEATURE] = "FEATURE", [EMBENG_RECORD_RATE] = "RATE",
      [EMBENG_RECORD_PROGRAM] = "PROGRAM", [EMBENG_RECORD_NAME] = "NAME",
      [EMBENG_RECORD_QUANTIZATION] = "QUANTIZATION", [EMBENG_RECORD_SHARD] = "SHARD")
WORDS(word_admin, [EMBENG_ADMIN_NOP] = "NOP", [EMBENG_ADMIN_CONTEXT_CREATE] = "CONTEXT_CREATE",
      [EMBENG_ADMIN_CONTEXT_DESTROY] = "CONTEXT_DESTROY",
      [EMBENG_ADMIN_QUEUE_CREATE] = "QUEUE_CREATE", [EMBENG_ADMIN_QUEUE_DESTROY] = "QUEUE_DESTROY",
      [EMBENG_ADMIN_INVALIDATE] = "INVALIDATE")
WORDS(word_boot_error, EMBENG_BOOT_ERROR_TABLE(BOOT_ERROR_NAME))
WORDS(word_boot_error_sentence, EMBENG_BOOT_ERROR_TABLE(BOOT_ERROR))
WORDS(word_boot_state, [EMBENG_BOOT_RESET] = "RESET", [EMBENG_BOOT_ROM] = "ROM",
      [EMBENG_BOOT_LOADING] = "LOADING", [EMBENG_BOOT_RUNNING] = "RUNNING",
      [EMBENG_BOOT_FAILED] = "FAILED")
WORDS(word_flavour, [EMBENG_FLAVOUR_TF] = "TF", [EMBENG_FLAVOUR_JAX] = "JAX")

const char *word_cause(const char *cause)
{
#ifdef EMBENG_HAVE_ACCEL
	static const struct {
		const char *word, *text;
	} causes[] = {
#define CAUSE(name, value, word, text) {word, text},
		EMBENG_ACCEL_CAUSE_TABLE(CAUSE)
#undef CAUSE
	};

	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		if (!strcmp(causes[i].word, cause))
			return causes[i].text;
	}
#else
	(void)cause;
#endif
	return NULL;
}
