// SPDX-License-Identifier: MIT
/*
 * Checks the options of a save, and that all its texts can be written, before anything is done.
 *
 * Only arguments are touched; no lock is needed.
 */
#include <string.h>

#include "base/check.h"
#include "base/error.h"
#include "save.h"

static int check_save_text(const struct save *s, const char *what, size_t index, const char *text)
{
	size_t good = text ? utf8_good(text) : 0;

	if (!text || !text[good])
		return 0;
	return fail(-EINVAL, "%s: %s %zu: byte %zu is not UTF-8, which files are written in",
		    s->source->what, what, index, good);
}

/* Only an engine's rows can be compared: other sources give each row once. */
static int check_save_flags(const struct save *s)
{
	const uint32_t known = EMBENG_SAVE_NOT_FINITE | (s->e ? EMBENG_SAVE_DELTA : 0);

	if (!(s->options.flags & ~known))
		return 0;
	return fail(-EINVAL, "%s: flags 0x%x, known are 0x%x", s->source->what, s->options.flags,
		    known);
}

static int check_save_report(const struct save *s)
{
	const struct embeng_save_report *report = s->options.report;

	if (!report || report->size >= sizeof(*report))
		return 0;
	return fail(-EINVAL,
		    "%s: the report's size is %zu, it is %zu bytes here; set size = sizeof(struct "
		    "embeng_save_report)",
		    s->source->what, report->size, sizeof(*report));
}

int save_check_options(const struct save *s, const struct embeng_model *m)
{
	const char *program_state = s->options.program_state;
	int ret = check_save_text(s, "program_state", 0, program_state);

	if (!ret && program_state && strlen(program_state) > PROGRAM_STATE_MAX)
		ret = fail(-ERANGE, "%s: program_state has %zu bytes, at most %u are allowed",
			   s->source->what, strlen(program_state), PROGRAM_STATE_MAX);
	for (size_t i = 0; !ret && i < m->table_count; i++)
		ret = check_save_text(s, "name of table", i, m->tables[i].name);
	for (size_t i = 0; !ret && i < m->feature_count; i++)
		ret = check_save_text(s, "name of feature", i, m->features[i].name);
	for (size_t i = 0; !ret && i < m->rate_count; i++)
		ret = check_save_text(s, "name of learning rate", i, m->rates[i]);
	ret = ret ? ret : check_save_flags(s);
	return ret ? ret : check_save_report(s);
}
