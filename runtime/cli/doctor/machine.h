/* SPDX-License-Identifier: MIT */
/* The machine that `embeng doctor` examines. */
#ifndef CLI_DOCTOR_MACHINE_H
#define CLI_DOCTOR_MACHINE_H

#include "../system/function.h"

/**
 * struct machine - the machine that is examined
 * @tree: its files
 * @release: release of its kernel, "" if that is not known
 * @cmdline: the kernel's command line, "" if that is not known
 * @named: device that the user named, or NULL
 * @soft: the user named the soft device, so that nothing of an engine matters
 * @functions: all functions of the vendor
 * @devices: functions to examine: those that the driver knows, or the one that was named
 * @count: number of @devices
 */
struct machine {
	struct tree *tree;
	char release[96];
	char *cmdline;
	const char *named;
	bool soft;
	struct functions functions;
	const struct function **devices;
	size_t count;
};

/* True if @word is one of the words of @list, which blanks, tabs or newlines part. */
bool has_word_in(const char *list, const char *word);

/**
 * struct boot_word - a word of the kernel's command line, without its quotes
 * @name, @name_length: what stands in front of '='
 * @value, @length: what stands behind; "" if there is no '='
 */
struct boot_word {
	const char *name, *value;
	size_t name_length, length;
};

/* Takes the next word at *@at and moves *@at behind it. False if there is none. */
bool next_boot_word(const char **at, struct boot_word *word);

/* True if the word has this name, in which the kernel takes '-' for '_'. */
bool is_boot_word(const struct boot_word *word, const char *name);

/*
 * Copies the value of the last word "NAME=VALUE", or "" of a word "NAME", of the command line. False
 * if there is none.
 */
bool read_boot_option(const struct machine *m, const char *name, char *value, size_t size);

/* True if the process is in a user namespace of its own, as in a container without root. */
bool has_user_namespace(const struct machine *m);

/* True if the driver is loaded. */
bool is_driver_loaded(const struct machine *m);

/* Reads the first line of an attribute of a device; "" if there is none. False then. */
bool read_device_line(const struct machine *m, const struct function *device, const char *attribute,
		      char *line, size_t size);

/* Reads an attribute that is a number. False if there is none. */
bool read_device_number(const struct machine *m, const struct function *device,
			const char *attribute, uint64_t *value);

#endif
