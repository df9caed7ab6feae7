/* SPDX-License-Identifier: MIT */
/* The order of contexts in a list. */
#ifndef CLI_TOP_ORDER_H
#define CLI_TOP_ORDER_H

#include "rates.h"

/* X(name, word, words): what contexts can be sorted by. The largest number is first. */
#define ORDER_TABLE(X) \
	X(BUSY, "busy", "time that the device worked for it") \
	X(COMMANDS, "commands", "commands a second") \
	X(IDS, "ids", "ids looked up a second") \
	X(ROWS, "rows", "rows updated a second") \
	X(MEMORY, "memory", "memory of its buffers") \
	X(STALLS, "stalls", "times a second that a queue began to wait") \
	X(PID, "pid", "number of the process, the lowest first")

enum order {
#define ORDER_ENUM(name, word, words) ORDER_##name,
	ORDER_TABLE(ORDER_ENUM)
#undef ORDER_ENUM
		ORDERS
};

/* The word for an order, for example "busy". */
const char *order_word(enum order order);

/* Return: the order that a word stands for, or ORDERS. */
enum order order_named(const char *word);

/* Sorts contexts. Numbers that are not known come last, and the process numbers decide between equal ones. */
void order_contexts(struct rates *rates, enum order order);

#endif
