// SPDX-License-Identifier: MIT
/*
 * Turns a completion that reports a failure into its errno and an error sentence, and the code of a
 * boot that failed into words, by the tables of embeng_engine.h and embeng_regs.h. A failed lookup
 * has more to say: session/lookup_error.c.
 *
 * The completion is only read; texts are constant. No lock is needed.
 */
#include <inttypes.h>
#include <stdbool.h>

#include "base/error.h"
#include "status_text.h"

struct meaning {
	int code;
	const char *text;
};

static struct meaning meaning_of(uint16_t status)
{
	switch (status) {
#define MEANING(name, value, cls, err, exit_code, text) \
	case value: \
		return (struct meaning){-(err), text};
		EMBENG_STATUS_TABLE(MEANING)
#undef MEANING
	}
	return (struct meaning){-EIO, "a status that this library does not know"};
}

int status_errno(uint16_t status)
{
	return meaning_of(status).code;
}

static const char *field_words(uint32_t field)
{
	switch (field) {
#define WORDS(name, value, words) \
	case value: \
		return words;
		EMBENG_FIELD_TABLE(WORDS)
#undef WORDS
	}
	return "a field that this library does not know";
}

/* True if the completion has no more to say than its status. */
static bool tells_no_place(const struct embeng_cqe *c)
{
	return c->field == EMBENG_FIELD_NONE && !c->element && !c->value && !c->limit;
}

int command_error(const char *what, const struct embeng_cqe *c)
{
	struct meaning meaning = meaning_of(c->status);
	const char *field = field_words(c->field);

	if (c->status == EMBENG_STATUS_NO_SPACE)
		return error_set(meaning.code, c->status,
				 "%s: %s: %" PRIu64 " bytes are needed, there are %" PRIu64, what,
				 meaning.text, (uint64_t)c->value, (uint64_t)c->limit);
	if (c->status == EMBENG_STATUS_HUNG)
		return error_set(meaning.code, c->status,
				 "%s: %s after %" PRIu64 " ms (command %" PRIu64
				 " of its queue, step "
				 "%" PRIu64 "); the device kept a dump of it in "
				 "/sys/class/devcoredump",
				 what, meaning.text, (uint64_t)c->value / 1000000,
				 (uint64_t)c->element, (uint64_t)c->step);
	if (c->status == EMBENG_STATUS_ABORTED || tells_no_place(c))
		return error_set(meaning.code, c->status, "%s: %s", what, meaning.text);
	return error_set(meaning.code, c->status,
			 "%s: %s (%s%selement %" PRIu64 ", value %" PRIu64 ", limit %" PRIu64 ")",
			 what, meaning.text, field, *field ? ", " : "", (uint64_t)c->element,
			 (uint64_t)c->value, (uint64_t)c->limit);
}

const char *boot_error_text(uint32_t error)
{
	switch (error) {
#define TEXT(name, value, text) \
	case value: \
		return text;
		EMBENG_BOOT_ERROR_TABLE(TEXT)
#undef TEXT
	}
	return "an error that this library does not know";
}
