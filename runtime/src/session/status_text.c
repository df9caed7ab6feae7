// SPDX-License-Identifier: MIT
/*
 * Turns a completion that reports a failure into an error sentence in the words of the program: the
 * feature, the sample, the value and the limit.
 *
 * The completion and the batch are only read. No lock is needed.
 */
#include <inttypes.h>
#include <stdio.h>

#include "batch/partitioned.h"

struct meaning {
	int code;
	const char *text;
};

static struct meaning meaning_of(uint16_t status)
{
	switch (status) {
#define MEANING(name, value, cls, err, exit_code, text) \
	case value:                                     \
		return (struct meaning){-(err), text};
		EMBENG_STATUS_TABLE(MEANING)
#undef MEANING
	}
	return (struct meaning){-EIO, "a status that this library does not know"};
}

static const char *field_words(uint32_t field)
{
	switch (field) {
#define WORDS(name, value, words) \
	case value:               \
		return words;
		EMBENG_FIELD_TABLE(WORDS)
#undef WORDS
	}
	return "a field that this library does not know";
}

int command_error(const char *what, const struct embeng_cqe *c)
{
	struct meaning meaning = meaning_of(c->status);

	if (c->status == EMBENG_STATUS_NO_SPACE)
		return error_set(meaning.code, c->status,
				 "%s: %s: %" PRIu64 " bytes are needed, there are %" PRIu64, what,
				 meaning.text, (uint64_t)c->value, (uint64_t)c->limit);
	if (c->status == EMBENG_STATUS_HUNG)
		return error_set(meaning.code, c->status,
				 "%s: %s after %" PRIu64 " ms (command %" PRIu64 " of its queue, step "
				 "%" PRIu64 "); the device kept a dump of it in "
				 "/sys/class/devcoredump", what, meaning.text,
				 (uint64_t)c->value / 1000000, (uint64_t)c->element,
				 (uint64_t)c->step);
	if (c->status == EMBENG_STATUS_ABORTED)
		return error_set(meaning.code, c->status, "%s: %s", what, meaning.text);
	return error_set(meaning.code, c->status,
			 "%s: %s (%s, element %" PRIu64 ", value %" PRIu64 ", limit %" PRIu64 ")",
			 what, meaning.text, field_words(c->field), (uint64_t)c->element,
			 (uint64_t)c->value, (uint64_t)c->limit);
}

static int id_error(const struct embeng_model *m, const struct feature *f,
		    const struct input *input, const struct embeng_cqe *c)
{
	const struct table *t = &m->tables[f->table];

	return error_set(-ERANGE, c->status,
			 "feature %s, sample %zu: id %" PRId64 " is outside table %s, which has "
			 "rows 0 to %" PRId64 "; correct the id, or give the table an out_of_range "
			 "policy", f->name, input_sample(input, c->element), (int64_t)c->value,
			 t->name, t->rows - 1);
}

int lookup_error(const struct embeng *e, const struct embeng_batch *b, const struct embeng_cqe *c)
{
	const struct embeng_model *m = e->model;
	const struct feature *f;
	struct meaning meaning = meaning_of(c->status);
	char where[160];

	if (c->field >= EMBENG_FIELD_CORES)
		return partitioned_error(b, c);
	if (c->feature >= m->feature_count)
		return command_error("lookup", c);
	f = &m->features[c->feature];
	if (c->status == EMBENG_STATUS_ID)
		return id_error(m, f, &b->inputs[c->feature], c);
	if (c->status == EMBENG_STATUS_WEIGHT)
		return error_set(meaning.code, c->status,
				 "feature %s, sample %zu: weight %" PRIu64 " is not finite; the "
				 "feature has check_weights", f->name,
				 input_sample(&b->inputs[c->feature], c->element),
				 (uint64_t)c->element);
	snprintf(where, sizeof(where), "feature %s", f->name);
	return command_error(where, c);
}
