// SPDX-License-Identifier: MIT
/*
 * The reader: one pass over the text, as deep in calls as values may lie. Values of a container
 * that is still open wait on a stack; when it closes they are moved to the arena, one behind the
 * other. The document owns the arena, and a document that is refused goes with all of it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_token.h"

#define FEW 8 /* members whose names are compared each with each */

struct json_document {
	struct json root; /* first: json_free() is handed this */
	struct json_arena arena;
};

/* A value of an open container, with its name and where that stood in an object. */
struct waiting {
	struct json_member member;
	size_t at;
};

struct reader {
	struct json_source s;
	unsigned int levels;
	struct waiting *waiting;
	size_t count, capacity;
};

static int read_json_value(struct reader *r, unsigned int level, struct json *out);

static void skip_space(struct json_source *s)
{
	while (s->at < s->length && memchr(" \t\n\r", s->text[s->at], 4))
		s->at++;
}

/* The next character, or 0 at the end: a zero byte has no place in any text. */
static char next_character(struct json_source *s)
{
	skip_space(s);
	return s->at < s->length ? s->text[s->at] : '\0';
}

static int refuse_next(struct json_source *s)
{
	if (s->at == s->length)
		return json_refuse_end(s);
	return json_refuse(s, "a character that has no place here");
}

static int let_wait(struct reader *r, const struct waiting *value)
{
	if (r->count == r->capacity) {
		size_t capacity = 2 * r->capacity + 32;
		struct waiting *grown = reallocarray(r->waiting, capacity, sizeof(*grown));

		if (!grown)
			return json_no_memory(&r->s);
		r->waiting = grown;
		r->capacity = capacity;
	}
	r->waiting[r->count++] = *value;
	return 0;
}

/* -- names --------------------------------------------------------------- */

static int compare_names(const struct waiting *a, const struct waiting *b)
{
	if (a->member.name_length != b->member.name_length)
		return a->member.name_length < b->member.name_length ? -1 : 1;
	return memcmp(a->member.name, b->member.name, a->member.name_length);
}

/* If two have one name, the later one comes behind the other. */
static int order_names(const void *left, const void *right)
{
	const struct waiting *const *a = left, *const *b = right;
	int order = compare_names(*a, *b);

	return order ? order : ((*a)->at > (*b)->at) - ((*a)->at < (*b)->at);
}

static int refuse_twice(struct json_source *s, const struct waiting *member)
{
	s->at = member->at;
	return json_refuse(s, "an object has two members of the same name");
}

static int check_few_member_names(struct json_source *s, const struct waiting *members,
				  size_t count)
{
	for (size_t i = 1; i < count; i++) {
		for (size_t k = 0; k < i; k++) {
			if (!compare_names(&members[i], &members[k]))
				return refuse_twice(s, &members[i]);
		}
	}
	return 0;
}

static int check_member_names(struct json_source *s, const struct waiting *members, size_t count)
{
	const struct waiting **order;
	int ret = 0;

	if (count <= FEW)
		return check_few_member_names(s, members, count);
	order = reallocarray(NULL, count, sizeof(*order));
	if (!order)
		return json_no_memory(s);
	for (size_t i = 0; i < count; i++)
		order[i] = &members[i];
	qsort(order, count, sizeof(*order), order_names);
	for (size_t i = 1; !ret && i < count; i++) {
		if (!compare_names(order[i - 1], order[i]))
			ret = refuse_twice(s, order[i]);
	}
	free(order);
	return ret;
}

static int read_member_name(struct json_source *s, struct waiting *out)
{
	int ret;

	if (next_character(s) != '"')
		return refuse_next(s);
	out->at = s->at;
	ret = json_take_text(s, &out->member.name, &out->member.name_length);
	if (!ret && memchr(out->member.name, '\0', out->member.name_length)) {
		s->at = out->at;
		return json_refuse(s, "a member's name has a zero byte inside");
	}
	if (!ret && next_character(s) != ':')
		return refuse_next(s);
	s->at++;
	return ret;
}

/* -- values -------------------------------------------------------------- */

static int close_array(struct reader *r, size_t base, struct json *out)
{
	size_t count = r->count - base;
	struct json *elements = NULL;

	if (count) {
		elements = json_arena_take(r->s.arena, count * sizeof(*elements));
		if (!elements)
			return json_no_memory(&r->s);
	}
	for (size_t i = 0; i < count; i++)
		elements[i] = r->waiting[base + i].member.value;
	r->count = base;
	*out = (struct json){.kind = JSON_ARRAY, .length = count, .elements = elements};
	return 0;
}

static int close_object(struct reader *r, size_t base, struct json *out)
{
	size_t count = r->count - base;
	struct json_member *members = NULL;

	if (count) {
		int ret = check_member_names(&r->s, r->waiting + base, count);

		if (ret)
			return ret;
		members = json_arena_take(r->s.arena, count * sizeof(*members));
		if (!members)
			return json_no_memory(&r->s);
	}
	for (size_t i = 0; i < count; i++)
		members[i] = r->waiting[base + i].member;
	r->count = base;
	*out = (struct json){.kind = JSON_OBJECT, .length = count, .members = members};
	return 0;
}

/* From behind the opening bracket to behind the closing one. */
static int read_container(struct reader *r, unsigned int level, char close, struct json *out)
{
	size_t base = r->count;
	int ret = 0;
	char c;

	r->s.at++;
	c = next_character(&r->s);
	for (bool more = c != close; more;) {
		struct waiting value = {0};

		if (close == '}')
			ret = read_member_name(&r->s, &value);
		ret = ret ? ret : read_json_value(r, level + 1, &value.member.value);
		ret = ret ? ret : let_wait(r, &value);
		if (ret)
			return ret;
		c = next_character(&r->s);
		if (c != ',' && c != close)
			return refuse_next(&r->s);
		more = c == ',';
		r->s.at += more;
	}
	ret = close == '}' ? close_object(r, base, out) : close_array(r, base, out);
	r->s.at++;
	return ret;
}

static int read_text_value(struct json_source *s, struct json *out)
{
	*out = (struct json){.kind = JSON_TEXT};
	return json_take_text(s, &out->text, &out->length);
}

static int refuse_level(struct reader *r)
{
	snprintf(r->s.why, JSON_WHY, "no JSON at byte %zu: a value lies deeper than %u levels",
		 r->s.at, r->levels);
	return -EBADMSG;
}

static int read_json_value(struct reader *r, unsigned int level, struct json *out)
{
	char c = next_character(&r->s);

	if (c && level > r->levels)
		return refuse_level(r);
	switch (c) {
	case '{':
		return read_container(r, level, '}', out);
	case '[':
		return read_container(r, level, ']', out);
	case '"':
		return read_text_value(&r->s, out);
	case 't':
	case 'f':
		*out = (struct json){.kind = JSON_BOOLEAN, .boolean = c == 't'};
		return json_take_word(&r->s, c == 't' ? "true" : "false");
	case 'n':
		*out = (struct json){.kind = JSON_NULL};
		return json_take_word(&r->s, "null");
	case '-':
	case '0' ... '9':
		return json_take_number(&r->s, out);
	}
	return refuse_next(&r->s);
}

static int read_json_document(struct reader *r, struct json *root)
{
	int ret = read_json_value(r, 1, root);

	if (ret)
		return ret;
	skip_space(&r->s);
	return r->s.at < r->s.length ? json_refuse(&r->s, "something stands behind the document")
				     : 0;
}

int json_read(const char *text, size_t length, unsigned int levels, const struct json **out,
	      char why[JSON_WHY])
{
	struct json_document *document = calloc(1, sizeof(*document));
	struct reader r = {.s = {.text = text, .length = length, .why = why}, .levels = levels};
	int ret;

	r.s.plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	if (!document || !r.s.plain) {
		ret = json_no_memory(&r.s);
	} else {
		r.s.arena = &document->arena;
		ret = read_json_document(&r, &document->root);
	}
	free(r.waiting);
	if (r.s.plain)
		freelocale(r.s.plain);
	if (ret)
		json_free(document ? &document->root : NULL);
	else
		*out = &document->root;
	return ret;
}

void json_free(const struct json *document)
{
	/* A document is const for its readers, but this file made it. */
	struct json_document *whole = (struct json_document *)(uintptr_t)document;

	if (!whole)
		return;
	json_arena_free(&whole->arena);
	free(whole);
}
