/* SPDX-License-Identifier: MIT */
/*
 * Reads a pickle of Python as a tree of values. Nothing is imported or called: a name is kept as two
 * texts, and a call as its callee and arguments, for the caller to recognize.
 */
#ifndef CLI_PICKLE_H
#define CLI_PICKLE_H

#include <stddef.h>
#include <stdint.h>

#define PICKLE_WHY 128

/**
 * enum pickle_kind - kinds of values, and what their items are
 * @PICKLE_OTHER: None, a bool, a float, bytes; no items
 * @PICKLE_INTEGER: a whole number of 64 bits
 * @PICKLE_TEXT: UTF-8
 * @PICKLE_NAME: a module's text and the text of a name in it
 * @PICKLE_TUPLE: its elements
 * @PICKLE_LIST: its elements
 * @PICKLE_DICT: keys and values, in turn
 * @PICKLE_CALL: the callee, the tuple of its arguments, then keys and values set on the result
 * @PICKLE_PERSISTENT: the value by which the program that wrote the pickle knows an object
 */
enum pickle_kind {
	PICKLE_OTHER,
	PICKLE_INTEGER,
	PICKLE_TEXT,
	PICKLE_NAME,
	PICKLE_TUPLE,
	PICKLE_LIST,
	PICKLE_DICT,
	PICKLE_CALL,
	PICKLE_PERSISTENT,
};

/**
 * struct pickle_value - a value; values may be reached by several ways, and contain themselves
 * @text: [length] of a text, in the pickle's bytes, without a zero byte
 * @next: for the owner's list of all values
 */
struct pickle_value {
	enum pickle_kind kind;
	int64_t integer;
	const char *text;
	size_t length;
	struct pickle_value **items;
	size_t count, capacity;
	struct pickle_value *next;
};

struct pickle {
	struct pickle_value *all, *top;
};

/**
 * pickle_read() - read a pickle of protocols 2 to 5
 * @bytes: [length] must stay until pickle_free()
 * @why: on failure, a sentence
 *
 * Return: 0, -EBADMSG, -ENOTSUP (an operation that torch.save() does not use) or -ENOMEM. The caller
 * calls pickle_free(), also then.
 */
int pickle_read(struct pickle *pickle, const char *bytes, size_t length, char why[PICKLE_WHY]);
void pickle_free(struct pickle *pickle);

#endif
