// SPDX-License-Identifier: MIT
/*
 * The lines of a dump that stand for memory of the program: the tables and features of its model,
 * and the counts of a descriptor. kmod/reset_dump_model.c writes them. They give names to the numbers
 * of all other lines.
 *
 * All that is read goes into the struct dump of the caller.
 */
#include "dump.h"

#include <inttypes.h>
#include <string.h>

#include "words.h"

bool dump_model(struct dump *d, struct line *line)
{
	uint64_t v[2];

	if (!line_pairs(line, "hash records", v))
		return false;
	sheet_part(d->s, line->offset, "model of context %" PRIu64, d->context);
	sheet_says(d->s, "a model of %" PRIu64 " records", v[1]);
	sheet_text(d->s, line->offset, "hash", "%016" PRIx64, v[0]);
	return true;
}

bool dump_table(struct dump *d, struct line *line)
{
	uint64_t index, v[3];

	if (!line_number(line, &index) || !line_pairs(line, "rows dim optimizer", v))
		return false;
	if (index != d->tables.table_count)
		sheet_odd(d->s, line->offset, "table %" PRIu64 " stands where table %u comes next",
			  index, d->tables.table_count);
	sheet_text(d->s, line->offset, "table", "%" PRIu64 ": %" PRIu64 " rows of %" PRIu64 ", %s",
		   index, v[0], v[1], word_or_unknown(word_optimizer(v[2])));
	if (!v[0] || !v[1])
		sheet_odd(d->s, line->offset, "table %" PRIu64 " has no rows or no columns", index);
	if (!word_optimizer(v[2]))
		sheet_odd(d->s, line->offset, "the optimizer %" PRIu64 " is unknown", v[2]);
	d->tables.table_count++;
	return true;
}

bool dump_feature(struct dump *d, struct line *line)
{
	uint64_t index, table;
	uint32_t at = d->tables.feature_count;

	if (!line_number(line, &index) || !line_pairs(line, "table", &table))
		return false;
	if (at < TABLES_KNOWN)
		d->tables.features[at].table = (uint32_t)table;
	sheet_text(d->s, line->offset, "feature", "%" PRIu64 " of table %" PRIu64, index, table);
	if (index != at)
		sheet_odd(d->s, line->offset,
			  "feature %" PRIu64 " stands where feature %u comes next", index, at);
	if (table >= d->tables.table_count)
		sheet_odd(d->s, line->offset,
			  "feature %" PRIu64 " is of table %" PRIu64
			  ", and the model has %u tables",
			  index, table, d->tables.table_count);
	d->tables.feature_count++;
	return true;
}

/* The text between two quotation marks, as it stands in the line. */
static bool take_quoted_name(struct line *line, char name[64])
{
	const char *begin = memchr(line->at, '"', line->length), *end;
	size_t length;

	if (!begin)
		return false;
	begin++;
	end = line->at + line->length;
	if (end == begin || end[-1] != '"')
		return false;
	length = (size_t)(end - 1 - begin);
	length = length < 63 ? length : 63;
	memcpy(name, begin, length);
	name[length] = '\0';
	return true;
}

bool dump_name(struct dump *d, struct line *line)
{
	uint64_t v[2];
	char name[64];

	if (!line_pairs(line, "of index", v) || !take_quoted_name(line, name))
		return false;
	sheet_text(d->s, line->offset, "name", "%s %" PRIu64 ": %s",
		   word_or_unknown(word_record(v[0])), v[1], name);
	if (v[0] == EMBENG_RECORD_TABLE && v[1] < TABLES_KNOWN)
		memcpy(d->tables.tables[v[1]], name, sizeof(name));
	if (v[0] == EMBENG_RECORD_FEATURE && v[1] < TABLES_KNOWN)
		memcpy(d->tables.features[v[1]].name, name, sizeof(name));
	return true;
}

static void add_about(struct dump *d, const char *text)
{
	char *about = d->blame.about;
	size_t used = strlen(about);

	if (!d->blame.found || strstr(about, text))
		return;
	snprintf(about + used, sizeof(d->blame.about) - used, "%s%s", used ? ", " : "", text);
}

static bool show_rows(struct dump *d, struct line *line)
{
	uint64_t v[5];
	char text[TABLE_TEXT], rows[TABLE_TEXT + 80];

	if (!line_pairs(line, "table slot first count fill", v))
		return false;
	table_text(&d->tables, v[0], text);
	snprintf(rows, sizeof(rows),
		 "%s, slot %" PRIu64 ", %" PRIu64 " rows from row %" PRIu64 " on", text, v[1], v[3],
		 v[2]);
	sheet_text(d->s, line->offset, "descriptor", "%s", rows);
	add_about(d, rows);
	if (d->tables.table_count && v[0] >= d->tables.table_count)
		sheet_odd(d->s, line->offset,
			  "the descriptor names table %" PRIu64 ", and the model has %u tables",
			  v[0], d->tables.table_count);
	if (v[1] > EMBENG_SLOTS_MAX)
		sheet_odd(d->s, line->offset,
			  "the descriptor names slot %" PRIu64 ", and no optimizer has it", v[1]);
	return true;
}

/* Both a LOOKUP and an UPDATE have a line for each feature. */
static bool show_feature(struct dump *d, struct line *line)
{
	struct line rest = *line;
	uint64_t feature, v[3];
	char text[TABLE_TEXT] = "";

	if (!line_number(&rest, &feature))
		return false;
	if (feature < d->tables.feature_count && feature < TABLES_KNOWN) {
		table_text(&d->tables, d->tables.features[feature].table, text);
		add_about(d, text);
	} else if (d->tables.feature_count) {
		sheet_odd(d->s, line->offset,
			  "the descriptor names feature %" PRIu64 ", and the model has %u features",
			  feature, d->tables.feature_count);
	}
	*line = rest;
	if (line_pairs(&rest, "form samples ids", v)) {
		sheet_text(d->s, line->offset, "descriptor",
			   "feature %" PRIu64 "%s%s: %s, %" PRIu64 " samples, %" PRIu64 " ids",
			   feature, *text ? " of " : "", text, word_or_unknown(word_form(v[0])),
			   v[1], v[2]);
		if (!word_form(v[0]))
			sheet_odd(d->s, line->offset, "the form %" PRIu64 " is unknown", v[0]);
		return true;
	}
	if (!line_pairs(line, "flags gradients", v))
		return false;
	sheet_text(d->s, line->offset, "descriptor",
		   "feature %" PRIu64 "%s%s: %" PRIu64 " bytes of gradients", feature,
		   *text ? " of " : "", text, v[1]);
	return true;
}

bool dump_descriptor(struct dump *d, struct line *line)
{
	struct line rest = *line;
	char word[16];
	uint64_t v[3];

	if (!line_take(&rest, word, sizeof(word)))
		return false;
	if (!strcmp(word, "table"))
		return show_rows(d, line);
	if (!strcmp(word, "feature")) {
		*line = rest;
		return show_feature(d, line);
	}
	if (!strcmp(word, "error")) {
		sheet_text(d->s, line->offset, "descriptor", "could not be read by the driver");
		return true;
	}
	if (!line_pairs(line, "features stride hash", v))
		return false;
	sheet_text(d->s, line->offset, "descriptor", "%" PRIu64 " features, model %016" PRIx64,
		   v[0], v[2]);
	if (d->tables.feature_count && d->tables.feature_count < TABLES_KNOWN / 2 &&
	    v[0] != d->tables.feature_count)
		sheet_odd(d->s, line->offset,
			  "the descriptor has %" PRIu64 " features, and the model has %u", v[0],
			  d->tables.feature_count);
	return true;
}
