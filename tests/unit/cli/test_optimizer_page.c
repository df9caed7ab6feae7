// SPDX-License-Identifier: MIT
/*
 * embeng-optimizers(7) against the code: every kind, key, default, range, slot and start that
 * the page has is the code's, and it leaves none out. EMBENG_MANUALS is where the page is.
 */
#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cli/conform/schema.h"
#include "runtime/cli/conform/settings.h"
#include "json_help.h"
#include "suite.h"

#define CELLS 4
#define ROWS 320
#define KINDS 21

/* A row of a .Bl -column table, without the macros of its cells. */
struct row {
	char cell[CELLS][96];
};

static struct row rows[ROWS];
static size_t row_count;

static void take_cell(struct row *row, size_t at, char *text)
{
	static const char *const macros[] = {"Va ", "Cm ", "Sy "};

	text += strspn(text, " ");
	for (size_t i = 0; i < sizeof(macros) / sizeof(macros[0]); i++) {
		if (!strncmp(text, macros[i], 3))
			text += 3;
	}
	ck_assert_uint_lt(at, CELLS);
	ck_assert_uint_lt(strlen(text), sizeof(row->cell[0]));
	strcpy(row->cell[at], text);
}

static void take_row(char *line)
{
	struct row *row = &rows[row_count++];

	ck_assert_uint_lt(row_count, ROWS);
	memset(row, 0, sizeof(*row));
	for (size_t at = 0; line; at++) {
		char *next = strstr(line, " Ta");

		if (next) {
			*next = '\0';
			next += 3;
		}
		take_cell(row, at, line);
		line = next;
	}
}

/* The table of a section, without its heading. */
static void read_table(const char *section)
{
	FILE *page = fopen(EMBENG_MANUALS "/embeng-optimizers.7", "r");
	char line[256];
	int state = 0; /* before the section, in it, in its table, after that */

	ck_assert_msg(page, "%s: %s", EMBENG_MANUALS, strerror(errno));
	row_count = 0;
	while (fgets(line, sizeof(line), page)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, ".Sh ", 4))
			state = state == 0 && !strcmp(line + 4, section) ? 1 : state ? 3 : 0;
		else if (state == 1 && !strncmp(line, ".Bl -column", 11))
			state = 2;
		else if (state == 2 && !strcmp(line, ".El"))
			state = 3;
		else if (state == 2 && strncmp(line, ".It Sy ", 7))
			take_row(line + 4);
	}
	fclose(page);
	ck_assert_msg(row_count, "%s has no table", section);
}

/* First row of a kind, and one past its last. */
static void find_kind(const char *kind, size_t *first, size_t *end)
{
	size_t found = 0;

	for (size_t i = 0; i < row_count; i++) {
		if (strcmp(rows[i].cell[0], kind) || *rows[i].cell[1])
			continue;
		*first = i + 1;
		found++;
	}
	ck_assert_msg(found == 1, "%s is there %zu times", kind, found);
	for (*end = *first; *end < row_count && *rows[*end].cell[1]; ++*end)
		;
}

static struct embeng_optimizer start_of(const char *kind, const char *more)
{
	struct embeng_optimizer o;
	const struct json *spec;
	char text[96];

	snprintf(text, sizeof(text), "{\"kind\": \"%s\"%s}", kind, more);
	spec = must_read(text);
	ck_assert_msg(optimizer_read(spec, &o), "%s", kind);
	json_free(spec);
	return o;
}

static struct embeng_table_config table_of(struct embeng_optimizer optimizer)
{
	return (struct embeng_table_config){.size = sizeof(struct embeng_table_config),
					    .vocabulary_size = 1,
					    .dim = 1,
					    .optimizer = optimizer};
}

/* The optimizer as the library completes it: each setting that had no value has its default. */
static struct embeng_optimizer filled_in(struct embeng_optimizer optimizer)
{
	struct embeng_table_config c = table_of(optimizer);
	struct embeng_model *m = embeng_model_new();

	ck_assert_int_eq(embeng_model_add_table(m, &c), 0);
	ck_assert_int_eq(embeng_model_get_table(m, 0, &c), 0);
	embeng_model_free(m);
	return c.optimizer;
}

static void expect_default(const struct embeng_optimizer *o, const char *key, const char *text)
{
	const struct setting *s = setting_find(key);
	const void *at;
	int on;

	ck_assert_msg(s, "%s is no setting", key);
	at = (const char *)o + s->at;
	if (s->type == SETTING_NUMBER) {
		ck_assert_msg(strtof(text, NULL) == *(const float *)at, "%s is %g, not %s", key,
			      (double)*(const float *)at, text);
		return;
	}
	if (s->type == SETTING_NAME) {
		ck_assert(!strcmp(text, "none") && !*(const char *const *)at);
		return;
	}
	on = s->type == SETTING_SWITCH ? *(const unsigned char *)at
	     : s->type == SETTING_INT  ? *(const int *)at
				       : *(const enum embeng_tristate *)at == EMBENG_ON;
	ck_assert_msg(!strcmp(text, on ? "true" : "false"), "%s is not %s", key, text);
}

static void expect_add(struct embeng_optimizer o, const char *key, float value, int code)
{
	struct embeng_table_config c = table_of(o);
	struct embeng_model *m = embeng_model_new();

	memcpy((char *)&c.optimizer + setting_find(key)->at, &value, sizeof(value));
	ck_assert_msg(embeng_model_add_table(m, &c) == code, "%s %g", key, (double)value);
	embeng_model_free(m);
}

/* The library allows and refuses values at the edges of @range as the page says. */
static void expect_range(const struct embeng_optimizer *o, const char *key, const char *range)
{
	static const struct {
		const char *range;
		float allowed[2], refused[2];
	} ranges[] = {
		{"finite", {-1e30f, 1e30f}, {INFINITY, NAN}},
		{"above 0", {1e-30f, 1e30f}, {0, INFINITY}},
		{"0 or above", {0, 1e30f}, {-1e-30f, INFINITY}},
		{"0 or below", {0, -1e30f}, {1e-30f, -INFINITY}},
		{"[0, 1]", {0, 1}, {-1e-30f, 1.0000001f}},
		{"[0, 1)", {0, 0.99999994f}, {-1e-30f, 1}},
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		if (strcmp(ranges[i].range, range))
			continue;
		for (int k = 0; k < 2; k++) {
			expect_add(*o, key, ranges[i].allowed[k], 0);
			expect_add(*o, key, ranges[i].refused[k], -ERANGE);
		}
		return;
	}
	if (setting_find(key)->type == SETTING_NAME && !strcmp(range, "a name"))
		return;
	ck_assert_msg(setting_find(key)->type != SETTING_NUMBER && !strcmp(range, "switch"),
		      "%s: range '%s'", key, range);
}

/* clang-format off */
static const char *const kinds[KINDS] = {
	"sgd", "adagrad", "adagrad_momentum", "ftrl", "adam", "momentum", "lion", "rms_prop",
	"centered_rms_prop", "adadelta", "proximal_adagrad", "assign", "laprop", "proximal_yogi",
	"bounded_adagrad", "online_yogi", "frequency_estimator", "frequency_aware_adagrad",
	"mdl_adagrad_light", "rowwise_adagrad", "partial_rowwise_adam",
};
/* clang-format on */

START_TEST(every_kind_once)
{
	size_t first, end, headings = 0;

	read_table("KINDS");
	for (int kind = EMBENG_SGD; kind < EMBENG_SGD + KINDS; kind++) {
		ck_assert_str_eq(embeng_optimizer_text(kind), kinds[kind - EMBENG_SGD]);
		find_kind(embeng_optimizer_text(kind), &first, &end);
	}
	ck_assert_ptr_null(embeng_optimizer_text(EMBENG_SGD + KINDS));
	for (size_t i = 0; i < row_count; i++)
		headings += !*rows[i].cell[1];
	ck_assert_uint_eq(headings, KINDS);
}
END_TEST

START_TEST(keys_are_the_codes)
{
	const char *kind = kinds[_i];
	struct embeng_optimizer raw = start_of(kind, ""), o = filled_in(raw);
	size_t first, end, keys = 0, wanted = 0;

	read_table("KINDS");
	find_kind(kind, &first, &end);
	for (size_t i = first; i < end; i++) {
		const struct row *row = &rows[i];

		if (strcmp(row->cell[0], "key"))
			continue;
		if (!strcmp(row->cell[1], "learning_rate")) {
			ck_assert(strtof(row->cell[2], NULL) == raw.learning_rate);
			continue;
		}
		expect_default(&o, row->cell[1], row->cell[2]);
		expect_range(&raw, row->cell[1], row->cell[3]);
		for (const struct key *key = optimizer_keys(kind); key->name; key++)
			keys += !strcmp(key->name, row->cell[1]);
	}
	for (const struct key *key = optimizer_keys(kind); key->name; key++)
		wanted++;
	ck_assert_uint_eq(keys, wanted);
}
END_TEST

/* The one default that depends on another key stands in brackets. */
START_TEST(epsilon_of_the_corrected_form)
{
	struct embeng_optimizer o = start_of("adam", ", \"bias_correction\": true");
	size_t first, end, found = 0;

	read_table("KINDS");
	find_kind("adam", &first, &end);
	for (size_t i = first; i < end; i++) {
		if (strcmp(rows[i].cell[1], "epsilon"))
			continue;
		ck_assert_ptr_nonnull(strchr(rows[i].cell[2], '('));
		ck_assert(strtof(strchr(rows[i].cell[2], '(') + 1, NULL) == o.epsilon);
		found++;
	}
	ck_assert_uint_eq(found, 1);
}
END_TEST

static float start_on_page(const struct embeng_optimizer *o, const char *text)
{
	const struct setting *s = setting_find(text);
	float start;
	char *end;

	if (s)
		return *(const float *)((const char *)o + s->at);
	start = strtof(text, &end);
	ck_assert_msg(*text && !*end, "start '%s'", text);
	return start;
}

START_TEST(slots_are_the_codes)
{
	struct embeng_optimizer o = start_of(kinds[_i], "");
	struct embeng_table_config c = table_of(o);
	struct embeng_model *m = embeng_model_new();
	size_t first, end, slots = 0;
	struct embeng *e;
	float got;

	read_table("KINDS");
	find_kind(kinds[_i], &first, &end);
	ck_assert_int_eq(embeng_model_add_table(m, &c), 0);
	ck_assert_int_eq(embeng_open("soft:cores=1,memory=1M", m, &e, NULL), 0);
	for (size_t i = first; i < end; i++) {
		if (strcmp(rows[i].cell[0], "slot"))
			continue;
		ck_assert_str_eq(embeng_model_slot_name(m, 0, slots++), rows[i].cell[1]);
		ck_assert_int_eq(embeng_rows_read(e, 0, rows[i].cell[1], NULL, 1, &got), 0);
		ck_assert(got == start_on_page(&o, rows[i].cell[2]));
	}
	ck_assert_uint_eq(slots, embeng_model_slot_count(m, 0));
	embeng_close(e);
	embeng_model_free(m);
}
END_TEST

START_TEST(formula_and_source)
{
	size_t first, end, formulas = 0, sources = 0;

	read_table("KINDS");
	find_kind(kinds[_i], &first, &end);
	for (size_t i = first; i < end; i++) {
		formulas += !strcmp(rows[i].cell[0], "formula");
		sources += !strcmp(rows[i].cell[0], "source");
	}
	ck_assert(formulas && sources);
}
END_TEST

START_TEST(common_keys_are_the_codes)
{
	struct embeng_optimizer o = filled_in(start_of("sgd", ""));
	size_t found = 0, wanted = 0;

	read_table("COMMON KEYS");
	for (size_t i = 0; i < row_count; i++) {
		if (setting_find(rows[i].cell[0]))
			expect_default(&o, rows[i].cell[0], rows[i].cell[1]);
		for (const struct key *key = optimizer_common_keys; key->name; key++)
			found += !strcmp(key->name, rows[i].cell[0]);
	}
	for (const struct key *key = optimizer_common_keys; key->name; key++)
		wanted += strcmp(key->name, "kind") != 0;
	ck_assert_uint_eq(row_count, wanted);
	ck_assert_uint_eq(found, wanted);
	ck_assert(!o.has_clip_min && !o.has_clip_max);
	ck_assert(!o.has_clip_weight_min && !o.has_clip_weight_max);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, every_kind_once);
	tcase_add_loop_test(tcase, keys_are_the_codes, 0, KINDS);
	tcase_add_test(tcase, epsilon_of_the_corrected_form);
	tcase_add_loop_test(tcase, slots_are_the_codes, 0, KINDS);
	tcase_add_loop_test(tcase, formula_and_source, 0, KINDS);
	tcase_add_test(tcase, common_keys_are_the_codes);
}

int main(void)
{
	return suite_main("optimizer_page", add);
}
