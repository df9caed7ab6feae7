/* SPDX-License-Identifier: MIT */
/* The kernel's fault injection: allocations and copies that fail on request. */
#ifndef EMBENG_TESTS_HOSTILE_INJECT_H
#define EMBENG_TESTS_HOSTILE_INJECT_H

#include <stdbool.h>

/* Fails the test when the kernel has none, and says which options it wants. */
void inject_begin(void);

/*
 * Lets only calls from @module fail, from its functions behind @after, and none
 * below the function @but.
 */
void inject_below_module(const char *module, const char *after, const char *but);
/* Lets only calls from this function fail, also through others that it calls. */
void inject_below_function(const char *function);

/* Makes the @nth allocation or copy of this thread from now on fail, once. */
void inject_arm(unsigned int nth);
/* Return: true if it has failed. */
bool inject_disarm(void);

/* Makes @percent in a hundred allocations of marked tasks fail; 0: none. */
void inject_chance(unsigned int percent);
/* Like inject_chance(), but only every @interval-th allocation may fail. */
void inject_seldom(unsigned int percent, unsigned int interval);
void inject_mark_self(bool on);
/* Marks kernel threads whose name begins so; returns how many there are. */
int inject_mark_threads(const char *name);

#endif
