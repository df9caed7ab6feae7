/* SPDX-License-Identifier: MIT */
/* Reasons not to begin, because other programs or the board would come to harm. */
#ifndef CLI_VALIDATE_HARM_H
#define CLI_VALIDATE_HARM_H

#include "../frame/output.h"
#include "subject.h"

/* Most of a critical temperature, in degrees below it, at which work begins or goes on. */
#define HARM_MARGIN_C 10

/**
 * harm_temperature() - read the device's temperature
 * @celsius: out: degrees
 * @limit: out: degrees from which on nothing is begun
 *
 * Return: false for a device without sensors.
 */
bool harm_temperature(const struct subject *s, double *celsius, double *limit);

/*
 * Names another program that has work or memory on the device. @root: folder in place of the root of
 * the file system. Return: false if none is found. Only programs of the same user are seen, unless
 * this one may look at all; tables of others are seen by the memory that they take.
 */
bool harm_find_program(const struct subject *s, const char *root, char *text, size_t size);

/*
 * Refuses to begin, as a failure of the verb. @force: other programs are no reason. Return: 0 or an
 * exit code.
 */
int harm_refuse(const struct subject *s, bool force, const struct output *out);

#endif
