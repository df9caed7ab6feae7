// SPDX-License-Identifier: MIT
/*
 * The machine of a pickle: a stack, marks on it and a memo. It knows the operations that torch.save()
 * uses and refuses all others.
 *
 * All values are in one list of the struct pickle, which frees them. Stack, marks and memo live for
 * one call.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pickle.h"

/* A growing array of values; @marks has indices of the stack. */
struct values {
	struct pickle_value **list;
	size_t count, capacity;
};

struct machine {
	struct pickle *pickle;
	const char *start, *p, *end;
	struct values stack, memo;
	size_t *marks, mark_count, mark_capacity;
	char *why;
};

static int fail_pickle(struct machine *m, int err, const char *what)
{
	snprintf(m->why, PICKLE_WHY, "byte %zu: %s", (size_t)(m->p - m->start), what);
	return err;
}

static int lack_memory(struct machine *m)
{
	return fail_pickle(m, -ENOMEM, "no memory for the value");
}

/* Return: the list with room for one more, or NULL, and then the list is as it was. */
static void *grow_pickle_list(void *list, size_t *capacity, size_t count, size_t size)
{
	size_t wanted = *capacity ? 2 * *capacity : 8;
	void *larger;

	if (count < *capacity)
		return list;
	larger = reallocarray(list, wanted, size);
	if (larger)
		*capacity = wanted;
	return larger;
}

static bool append_item(struct pickle_value *to, struct pickle_value *item)
{
	void *list = grow_pickle_list(to->items, &to->capacity, to->count, sizeof(*to->items));

	if (!list)
		return false;
	to->items = list;
	to->items[to->count++] = item;
	return true;
}

static bool append_value(struct values *to, struct pickle_value *v)
{
	void *list = grow_pickle_list(to->list, &to->capacity, to->count, sizeof(*to->list));

	if (!list)
		return false;
	to->list = list;
	to->list[to->count++] = v;
	return true;
}

static struct pickle_value *make_value(struct machine *m, enum pickle_kind kind)
{
	struct pickle_value *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->kind = kind;
	v->next = m->pickle->all;
	m->pickle->all = v;
	return v;
}

/* -- the stack ------------------------------------------------------------- */

static int push_value(struct machine *m, struct pickle_value *v)
{
	return v && append_value(&m->stack, v) ? 0 : lack_memory(m);
}

/* Only values above the last mark may be taken. */
static struct pickle_value *pop_value(struct machine *m)
{
	size_t floor = m->mark_count ? m->marks[m->mark_count - 1] : 0;

	return m->stack.count > floor ? m->stack.list[--m->stack.count] : NULL;
}

static struct pickle_value *top_value(const struct machine *m)
{
	size_t floor = m->mark_count ? m->marks[m->mark_count - 1] : 0;

	return m->stack.count > floor ? m->stack.list[m->stack.count - 1] : NULL;
}

static int stack_is_short(struct machine *m)
{
	return fail_pickle(m, -EBADMSG, "an operation finds too few values; the pickle is damaged");
}

static int push_mark(struct machine *m)
{
	size_t *marks = grow_pickle_list(m->marks, &m->mark_capacity, m->mark_count,
					 sizeof(*m->marks));

	if (!marks)
		return lack_memory(m);
	m->marks = marks;
	m->marks[m->mark_count++] = m->stack.count;
	return 0;
}

/* The index of the first value above the last mark, which is taken off; -1 without a mark. */
static ssize_t pop_mark(struct machine *m)
{
	return m->mark_count ? (ssize_t)m->marks[--m->mark_count] : -1;
}

/* -- operations ------------------------------------------------------------ */

/* A little-endian number of @bytes bytes, which are taken. */
static int take_number(struct machine *m, unsigned int bytes, uint64_t *number)
{
	if ((size_t)(m->end - m->p) < bytes)
		return fail_pickle(m, -EBADMSG, "the pickle is cut off");
	*number = 0;
	for (unsigned int i = bytes; i--;)
		*number = *number << 8 | (unsigned char)m->p[i];
	m->p += bytes;
	return 0;
}

/* A text or bytes whose length stands before it, in @bytes bytes. */
static int push_counted(struct machine *m, unsigned int bytes, enum pickle_kind kind)
{
	struct pickle_value *v;
	uint64_t length;
	int rc = take_number(m, bytes, &length);

	if (rc)
		return rc;
	if ((uint64_t)(m->end - m->p) < length)
		return fail_pickle(m, -EBADMSG, "the pickle is cut off");
	v = make_value(m, kind);
	if (!v)
		return lack_memory(m);
	v->text = m->p;
	v->length = (size_t)length;
	m->p += length;
	return push_value(m, v);
}

static int push_integer(struct machine *m, unsigned int bytes, bool has_sign)
{
	struct pickle_value *v;
	uint64_t number;
	int rc = take_number(m, bytes, &number);

	if (rc)
		return rc;
	if (has_sign && bytes && bytes < 8 && number >> (8 * bytes - 1) & 1)
		number -= 1ull << 8 * bytes;
	v = make_value(m, PICKLE_INTEGER);
	if (!v)
		return lack_memory(m);
	v->integer = (int64_t)number;
	return push_value(m, v);
}

static int push_long(struct machine *m)
{
	uint64_t bytes;
	int rc = take_number(m, 1, &bytes);

	if (rc)
		return rc;
	if (bytes <= 8)
		return push_integer(m, (unsigned int)bytes, true);
	if ((uint64_t)(m->end - m->p) < bytes)
		return fail_pickle(m, -EBADMSG, "the pickle is cut off");
	m->p += bytes;
	return push_value(m, make_value(m, PICKLE_OTHER));
}

static int push_other(struct machine *m, unsigned int bytes)
{
	if ((size_t)(m->end - m->p) < bytes)
		return fail_pickle(m, -EBADMSG, "the pickle is cut off");
	m->p += bytes;
	return push_value(m, make_value(m, PICKLE_OTHER));
}

/* A line of the pickle as a text. */
static int take_line(struct machine *m, struct pickle_value **line)
{
	const char *newline = memchr(m->p, '\n', (size_t)(m->end - m->p));

	if (!newline)
		return fail_pickle(m, -EBADMSG, "the pickle is cut off");
	*line = make_value(m, PICKLE_TEXT);
	if (!*line)
		return lack_memory(m);
	(*line)->text = m->p;
	(*line)->length = (size_t)(newline - m->p);
	m->p = newline + 1;
	return 0;
}

static int push_name(struct machine *m, struct pickle_value *module, struct pickle_value *name)
{
	struct pickle_value *v = make_value(m, PICKLE_NAME);

	if (!module || !name)
		return stack_is_short(m);
	if (!v || !append_item(v, module) || !append_item(v, name))
		return lack_memory(m);
	return push_value(m, v);
}

static int push_global(struct machine *m)
{
	struct pickle_value *module, *name;
	int rc = take_line(m, &module);

	rc = rc ? rc : take_line(m, &name);
	return rc ? rc : push_name(m, module, name);
}

static int push_stack_global(struct machine *m)
{
	struct pickle_value *name = pop_value(m), *module = pop_value(m);

	return push_name(m, module, name);
}

/* A tuple of the @count topmost values. */
static int push_tuple(struct machine *m, size_t count)
{
	size_t floor = m->mark_count ? m->marks[m->mark_count - 1] : 0, first;
	struct pickle_value *v = make_value(m, PICKLE_TUPLE);

	if (m->stack.count - floor < count)
		return stack_is_short(m);
	first = m->stack.count - count;
	for (size_t i = first; v && i < m->stack.count; i++) {
		if (!append_item(v, m->stack.list[i]))
			return lack_memory(m);
	}
	m->stack.count = first;
	return push_value(m, v);
}

static int push_marked_tuple(struct machine *m)
{
	ssize_t first = pop_mark(m);

	return first < 0 ? stack_is_short(m) : push_tuple(m, m->stack.count - (size_t)first);
}

/* Moves values from index @first on into the container below them. */
static int append_from(struct machine *m, size_t first, bool pairs)
{
	size_t floor = m->mark_count ? m->marks[m->mark_count - 1] : 0;
	struct pickle_value *to;

	if (first <= floor || (pairs && (m->stack.count - first) % 2))
		return stack_is_short(m);
	to = m->stack.list[first - 1];
	if (to->kind != (pairs ? PICKLE_DICT : PICKLE_LIST) && to->kind != PICKLE_CALL)
		return fail_pickle(m, -EBADMSG, "items are added to a value that has none");
	for (size_t i = first; i < m->stack.count; i++) {
		/* An element appended to an unknown object is no key and value of it. */
		if ((pairs || to->kind == PICKLE_LIST) && !append_item(to, m->stack.list[i]))
			return lack_memory(m);
	}
	m->stack.count = first;
	return 0;
}

static int append_some(struct machine *m, size_t count, bool pairs)
{
	return m->stack.count < count ? stack_is_short(m)
				      : append_from(m, m->stack.count - count, pairs);
}

static int append_marked(struct machine *m, bool pairs)
{
	ssize_t first = pop_mark(m);

	return first < 0 ? stack_is_short(m) : append_from(m, (size_t)first, pairs);
}

static int push_call(struct machine *m)
{
	struct pickle_value *arguments = pop_value(m), *callee = pop_value(m);
	struct pickle_value *v = make_value(m, PICKLE_CALL);

	if (!arguments || !callee)
		return stack_is_short(m);
	if (!v || !append_item(v, callee) || !append_item(v, arguments))
		return lack_memory(m);
	return push_value(m, v);
}

static int push_persistent(struct machine *m)
{
	struct pickle_value *id = pop_value(m), *v = make_value(m, PICKLE_PERSISTENT);

	if (!id)
		return stack_is_short(m);
	if (!v || !append_item(v, id))
		return lack_memory(m);
	return push_value(m, v);
}

/* The state that an object is built with says nothing about tensors. */
static int drop_state(struct machine *m)
{
	return pop_value(m) && top_value(m) ? 0 : stack_is_short(m);
}

/* -- the memo -------------------------------------------------------------- */

/* Every entry took an operation, so that no index is as large as the pickle. */
static int put_memo(struct machine *m, uint64_t index)
{
	struct pickle_value *v = top_value(m);

	if (!v)
		return stack_is_short(m);
	if (index >= (uint64_t)(m->end - m->start))
		return fail_pickle(m, -EBADMSG, "an index of the memo is too large");
	while (m->memo.count <= index) {
		if (!append_value(&m->memo, NULL))
			return lack_memory(m);
	}
	m->memo.list[index] = v;
	return 0;
}

static int put_numbered(struct machine *m, unsigned int bytes)
{
	uint64_t index;
	int rc = take_number(m, bytes, &index);

	return rc ? rc : put_memo(m, index);
}

static int get_numbered(struct machine *m, unsigned int bytes)
{
	uint64_t index;
	int rc = take_number(m, bytes, &index);

	if (rc)
		return rc;
	if (index >= m->memo.count || !m->memo.list[index])
		return fail_pickle(m, -EBADMSG, "an index of the memo was never set");
	return push_value(m, m->memo.list[index]);
}

/* -- the machine ----------------------------------------------------------- */

/* Operations with a number or a text of their own, and the memo. Return: 1 if it is none of them. */
static int run_literal(struct machine *m, unsigned char op)
{
	switch (op) {
	case 'K': /* BININT1 */
		return push_integer(m, 1, false);
	case 'M': /* BININT2 */
		return push_integer(m, 2, false);
	case 'J': /* BININT */
		return push_integer(m, 4, true);
	case 0x8a: /* LONG1 */
		return push_long(m);
	case 'G': /* BINFLOAT */
		return push_other(m, 8);
	case 'N':  /* NONE */
	case 0x88: /* NEWTRUE */
	case 0x89: /* NEWFALSE */
		return push_other(m, 0);
	case 'X': /* BINUNICODE */
		return push_counted(m, 4, PICKLE_TEXT);
	case 0x8c: /* SHORT_BINUNICODE */
		return push_counted(m, 1, PICKLE_TEXT);
	case 0x8d: /* BINUNICODE8 */
		return push_counted(m, 8, PICKLE_TEXT);
	case 'U': /* SHORT_BINSTRING */
	case 'C': /* SHORT_BINBYTES */
		return push_counted(m, 1, PICKLE_OTHER);
	case 'T': /* BINSTRING */
	case 'B': /* BINBYTES */
		return push_counted(m, 4, PICKLE_OTHER);
	case 'q': /* BINPUT */
		return put_numbered(m, 1);
	case 'r': /* LONG_BINPUT */
		return put_numbered(m, 4);
	case 0x94: /* MEMOIZE */
		return put_memo(m, m->memo.count);
	case 'h': /* BINGET */
		return get_numbered(m, 1);
	case 'j': /* LONG_BINGET */
		return get_numbered(m, 4);
	default:
		return 1;
	}
}

/* Operations on containers and objects. Return: 1 if it is none of them. */
static int run_container(struct machine *m, unsigned char op)
{
	switch (op) {
	case '(': /* MARK */
		return push_mark(m);
	case '}': /* EMPTY_DICT */
		return push_value(m, make_value(m, PICKLE_DICT));
	case ']': /* EMPTY_LIST */
		return push_value(m, make_value(m, PICKLE_LIST));
	case ')': /* EMPTY_TUPLE */
		return push_tuple(m, 0);
	case 't': /* TUPLE */
		return push_marked_tuple(m);
	case 0x85: /* TUPLE1, TUPLE2, TUPLE3 */
	case 0x86:
	case 0x87:
		return push_tuple(m, op - 0x84u);
	case 's': /* SETITEM */
		return append_some(m, 2, true);
	case 'u': /* SETITEMS */
		return append_marked(m, true);
	case 'a': /* APPEND */
		return append_some(m, 1, false);
	case 'e': /* APPENDS */
		return append_marked(m, false);
	case 'c': /* GLOBAL */
		return push_global(m);
	case 0x93: /* STACK_GLOBAL */
		return push_stack_global(m);
	case 'R':  /* REDUCE */
	case 0x81: /* NEWOBJ */
		return push_call(m);
	case 'b': /* BUILD */
		return drop_state(m);
	case 'Q': /* BINPERSID */
		return push_persistent(m);
	default:
		return 1;
	}
}

static int run_operation(struct machine *m, unsigned char op)
{
	uint64_t number;
	int rc;

	if (op == 0x95) /* FRAME */
		return take_number(m, 8, &number);
	rc = run_literal(m, op);
	rc = rc == 1 ? run_container(m, op) : rc;
	if (rc != 1)
		return rc;
	snprintf(m->why, PICKLE_WHY, "byte %zu: operation 0x%02x is none that torch.save() uses",
		 (size_t)(m->p - m->start) - 1, op);
	return -ENOTSUP;
}

static int run_machine(struct machine *m)
{
	int rc = 0;

	if (m->end - m->p < 2 || *m->p != '\x80' || m->p[1] < 2 || m->p[1] > 5)
		return fail_pickle(m, -ENOTSUP, "this is no pickle of protocols 2 to 5");
	m->p += 2;
	while (!rc && m->p < m->end) {
		unsigned char op = (unsigned char)*m->p++;

		if (op != '.') {
			rc = run_operation(m, op);
			continue;
		}
		m->pickle->top = pop_value(m);
		return m->pickle->top ? 0 : stack_is_short(m);
	}
	return rc ? rc : fail_pickle(m, -EBADMSG, "the pickle is cut off");
}

int pickle_read(struct pickle *pickle, const char *bytes, size_t length, char why[PICKLE_WHY])
{
	struct machine m = {
		.pickle = pickle, .start = bytes, .p = bytes, .end = bytes + length, .why = why};
	int rc;

	*pickle = (struct pickle){0};
	rc = run_machine(&m);
	free(m.stack.list);
	free(m.memo.list);
	free(m.marks);
	return rc;
}

void pickle_free(struct pickle *pickle)
{
	while (pickle->all) {
		struct pickle_value *v = pickle->all;

		pickle->all = v->next;
		free(v->items);
		free(v);
	}
	pickle->top = NULL;
}
