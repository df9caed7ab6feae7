// SPDX-License-Identifier: MIT
/*
 * Cleans a text that leaves the machine. Every text of a report goes through here, whoever made it, so
 * that a file that has more in it than it should does no harm.
 *
 * The rules are about the form of a word, and about names that the machine's own files tell: they
 * would rather take too much than too little. Texts belong to the caller.
 */
#define _GNU_SOURCE
#include "clean.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../text/number.h"

#define FIRST_PERSON 1000u /* accounts below are the system's, see login.defs(5) */
#define NOBODY 65534u
#define PROGRAM_MOST 96 /* the name of a program, with its escapes */

const char *const clean_rules[] = {
	"the name of the machine and its domain: (host)",
	"names of accounts of people, their full names and their home folders: (user)",
	"names and process numbers of programs: (program)",
	"hardware addresses of networks: (mac)",
	"serial numbers: (serial)",
	"UUIDs and machine ids: (uuid)",
	"addresses of memory, the kernel's and those that the device is given: (address)",
	"kernel messages that are not of this driver, this emulator or this device",
	"trace events that are not of this driver, and the tasks in front of those that are",
	"command lines, environments and files of programs; the list of processes",
	"ids, weights, gradients and rows of tables; contents of mapped rings",
};

const size_t clean_rule_count = sizeof(clean_rules) / sizeof(clean_rules[0]);

/* -- what the names are -------------------------------------------------- */

static int add_secret(struct clean_names *names, const char *name, size_t length)
{
	char **list, *copy;

	/* These say nothing about anybody, and one letter would be found everywhere. */
	if (length < 2 || (length == 4 && !memcmp(name, "root", 4)) ||
	    (length == 9 && !memcmp(name, "localhost", 9)))
		return 0;
	list = reallocarray(names->list, names->count + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	names->list = list;
	copy = strndup(name, length);
	if (!copy)
		return -ENOMEM;
	names->list[names->count++] = copy;
	return 0;
}

static int learn_host(struct clean *clean, struct tree *tree, const char *path)
{
	char line[TREE_LINE];
	size_t length;
	int err;

	if (tree_line(tree, path, line, sizeof(line)))
		return 0;
	length = strcspn(line, " \t");
	if (!strncmp(line, "(none)", 6))
		return 0;
	err = add_secret(&clean->hosts, line, length);
	if (!err && strcspn(line, ".") < length)
		err = add_secret(&clean->hosts, line, strcspn(line, "."));
	return err;
}

/* A line of passwd(5): NAME:PASSWORD:UID:GID:FULL NAME,...:HOME:SHELL */
static int learn_account(struct clean *clean, char *line)
{
	char *fields[7] = {0};
	uint64_t uid;
	int err;

	for (int i = 0; i < 7 && line; i++)
		fields[i] = strsep(&line, ":");
	if (!fields[5] || number_read(fields[2], strlen(fields[2]), 10, &uid) ||
	    uid < FIRST_PERSON || uid == NOBODY)
		return 0;
	err = add_secret(&clean->users, fields[0], strlen(fields[0]));
	if (!err)
		err = add_secret(&clean->users, fields[4], strcspn(fields[4], ","));
	if (!err && strrchr(fields[5], '/'))
		err = add_secret(&clean->users, strrchr(fields[5], '/') + 1,
				 strlen(strrchr(fields[5], '/') + 1));
	return err;
}

static int learn_accounts(struct clean *clean, struct tree *tree)
{
	char *text = tree_text(tree, "/etc/passwd", TREE_TEXT), *rest = text, *line;
	int err = 0;

	while (!err && (line = strsep(&rest, "\n")))
		err = learn_account(clean, line);
	free(text);
	return err;
}

/* Accounts that no file has are known by the one who runs this. */
static int learn_environment(struct clean *clean)
{
	static const char *const names[] = {"USER", "LOGNAME", "SUDO_USER"};
	int err = 0;

	for (size_t i = 0; !err && i < sizeof(names) / sizeof(names[0]); i++) {
		const char *name = secure_getenv(names[i]);

		if (name)
			err = add_secret(&clean->users, name, strlen(name));
	}
	return err;
}

int clean_learn(struct clean *clean, struct tree *tree)
{
	static const char *const hosts[] = {"/proc/sys/kernel/hostname", "/etc/hostname",
					    "/proc/sys/kernel/domainname"};
	int err = 0;

	*clean = (struct clean){0};
	for (size_t i = 0; !err && i < sizeof(hosts) / sizeof(hosts[0]); i++)
		err = learn_host(clean, tree, hosts[i]);
	if (!err)
		err = learn_accounts(clean, tree);
	if (!err && !tree_is_recorded(tree))
		err = learn_environment(clean);
	return err;
}

static void free_names(struct clean_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->list[i]);
	free(names->list);
}

void clean_free(struct clean *clean)
{
	free_names(&clean->hosts);
	free_names(&clean->users);
	*clean = (struct clean){0};
}

/* -- what they look like ------------------------------------------------- */

static bool is_of_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static size_t count_hex(const char *p)
{
	size_t count = 0;

	while (isxdigit((unsigned char)p[count]))
		count++;
	return count;
}

/* Six pairs of digits, with the same mark between them. */
static size_t match_mac(const char *p)
{
	if (p[0] == '\0' || p[1] == '\0' || (p[2] != ':' && p[2] != '-'))
		return 0;
	for (size_t i = 0; i < 6; i++) {
		if (!isxdigit((unsigned char)p[3 * i]) || !isxdigit((unsigned char)p[3 * i + 1]))
			return 0;
		if (i < 5 && p[3 * i + 2] != p[2])
			return 0;
	}
	return is_of_word(p[17]) ? 0 : 17;
}

/* 8-4-4-4-12 digits, or the 32 digits of a machine id. */
static size_t match_uuid(const char *p)
{
	static const size_t groups[] = {8, 4, 4, 4, 12};
	size_t at = 0;

	if (count_hex(p) == 32 && !is_of_word(p[32]))
		return 32;
	for (size_t i = 0; i < 5; i++) {
		if (count_hex(p + at) != groups[i] || (i < 4 && p[at + groups[i]] != '-'))
			return 0;
		at += groups[i] + (i < 4);
	}
	return is_of_word(p[at]) ? 0 : at;
}

/* An address of the kernel: 16 digits that begin with ffff, with 0x or without. */
static size_t match_address(const char *p)
{
	size_t prefix = p[0] == '0' && (p[1] == 'x' || p[1] == 'X') ? 2 : 0;

	if (strncasecmp(p + prefix, "ffff", 4) != 0 || count_hex(p + prefix) != 16 ||
	    is_of_word(p[prefix + 16]))
		return 0;
	/* All ones are what a bus answers for a device that is not there. */
	return strspn(p + prefix, "fF") == 16 ? 0 : prefix + 16;
}

/* A register whose value is an address; returns the bytes up to the value, and those of the value. */
static size_t match_register(const char *p, size_t *value)
{
	static const char *const names[] = {"ADMIN_RING", "BOOT_ADDRESS", "BOOT_SIGNATURE"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t length = strlen(names[i]), gap;

		if (strncmp(p, names[i], length) != 0 || is_of_word(p[length]))
			continue;
		gap = strspn(p + length, " \t");
		if (!gap || p[length + gap] != '0' || p[length + gap + 1] != 'x')
			return 0;
		*value = 2 + count_hex(p + length + gap + 2);
		return length + gap;
	}
	return 0;
}

/* "Serial Number: 17-af", "serial=X": the bytes up to the value, and those of the value. */
static size_t match_serial(const char *p, size_t *value)
{
	size_t at = 6;

	if (strncasecmp(p, "serial", 6) != 0)
		return 0;
	if (!strncasecmp(p + at, "number", 6))
		at += 6;
	else if (!strncasecmp(p + at, "_number", 7) || !strncasecmp(p + at, " number", 7))
		at += 7;
	else if (!strncasecmp(p + at, " no", 3) || !strncasecmp(p + at, "_no", 3))
		at += 3;
	if (strspn(p + at, " \t:=#\"") == 0)
		return 0;
	at += strspn(p + at, " \t:=#\"");
	*value = strcspn(p + at, " \t\n,;\"");
	/* It has a digit; "serial port" has none. */
	return strcspn(p + at, "0123456789") < *value ? at : 0;
}

static size_t match_learnt_name(const struct clean_names *names, const char *p)
{
	size_t longest = 0;

	for (size_t i = 0; i < names->count; i++) {
		size_t length = strlen(names->list[i]);

		if (length > longest && !strncmp(p, names->list[i], length) &&
		    !is_of_word(p[length]))
			longest = length;
	}
	return longest;
}

static size_t match_home(const char *p)
{
	if (strncmp(p, "/home/", 6) != 0)
		return 0;
	return 6 + strcspn(p + 6, "/ \t\n:,;\"'");
}

/* -- the copy ------------------------------------------------------------- */

/* The end of "NAME[NUMBER]", where NAME may have blanks: behind "program " and " of context N of ". */
static size_t match_program(const char *p)
{
	size_t end = 0, digits;

	while (p[end] && p[end] != '\n' && p[end] != '"' && end < PROGRAM_MOST) {
		if (p[end] == '[') {
			digits = strspn(p + end + 1, "0123456789");
			if (digits && p[end + 1 + digits] == ']')
				return end + digits + 2;
		}
		end++;
	}
	return 0;
}

/* The bytes in front of the name of a program that begins here. */
static size_t match_program_mark(const char *p)
{
	size_t digits;

	if (!strncmp(p, "program ", 8))
		return 8 + strspn(p + 8, " ");
	if (strncmp(p, "context ", 8) != 0)
		return 0;
	digits = strspn(p + 8, "0123456789");
	return digits && !strncmp(p + 8 + digits, " of ", 4) ? 8 + digits + 4 : 0;
}

/* Copies what stays of something that begins here. Return: the bytes that are done with, or 0. */
static size_t clean_word(const struct clean *clean, const char *p, FILE *to)
{
	size_t value = 0, length = match_program_mark(p);

	if (length && match_program(p + length)) {
		fprintf(to, "%.*s(program)", (int)length, p);
		return length + match_program(p + length);
	}
	length = match_register(p, &value);
	if (length) {
		fprintf(to, "%.*s(address)", (int)length, p);
		return length + value;
	}
	length = match_serial(p, &value);
	if (length) {
		fprintf(to, "%.*s(serial)", (int)length, p);
		return length + value;
	}
	length = match_learnt_name(&clean->hosts, p);
	if (length) {
		fputs("(host)", to);
		while (p[length] == '.' && isalnum((unsigned char)p[length + 1]))
			length += 1 + strcspn(p + length + 1, ". \t\n:,;\"'/)");
		return length;
	}
	length = match_learnt_name(&clean->users, p);
	if (length)
		fputs("(user)", to);
	if (!length && (length = match_mac(p)))
		fputs("(mac)", to);
	if (!length && (length = match_uuid(p)))
		fputs("(uuid)", to);
	if (!length && (length = match_address(p)))
		fputs("(address)", to);
	return length;
}

char *clean_text_of(const struct clean *clean, const char *text)
{
	char *copy = NULL;
	size_t size, done;
	FILE *to = open_memstream(&copy, &size);
	char before = ' ';

	if (!to)
		return NULL;
	while (*text) {
		done = is_of_word(before) ? 0 : clean_word(clean, text, to);
		if (!done && match_home(text)) {
			done = match_home(text);
			fputs("/home/(user)", to);
		}
		if (!done) {
			fputc(*text, to);
			done = 1;
		}
		before = text[done - 1];
		text += done;
	}
	if (fclose(to)) {
		free(copy);
		return NULL;
	}
	return copy;
}
