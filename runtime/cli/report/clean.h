/* SPDX-License-Identifier: MIT */
/* Taking out of a text what tells of people and of the machine they use. */
#ifndef CLI_REPORT_CLEAN_H
#define CLI_REPORT_CLEAN_H

#include <stddef.h>

#include "../system/tree.h"

/**
 * struct clean - names that must not stay in a text
 * @hosts: names of the machine
 * @users: names of people: of their accounts, their own, and of their home folders
 */
struct clean {
	struct clean_names {
		char **list;
		size_t count;
	} hosts, users;
};

/* Learns the names from the files of a machine. Return: 0 or -ENOMEM. */
int clean_learn(struct clean *clean, struct tree *tree);
void clean_free(struct clean *clean);

/**
 * clean_text_of() - copy a text without what is personal in it
 *
 * Names that were learnt, programs with the number of their process, hardware addresses of networks,
 * serial numbers, UUIDs, home folders and addresses of memory become a word in brackets.
 *
 * Return: the copy, to be freed; NULL: there is no memory.
 */
char *clean_text_of(const struct clean *clean, const char *text);

/* The things that are left out of every text, a line each, for the archive and its reader. */
extern const char *const clean_rules[];
extern const size_t clean_rule_count;

#endif
