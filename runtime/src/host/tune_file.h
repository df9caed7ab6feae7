/* SPDX-License-Identifier: MIT */
/*
 * The file that `embeng tune` writes and embeng_open() reads: how rows are best fetched ahead on
 * this machine, as it was measured.
 */
#ifndef EMBENG_TUNE_FILE_H
#define EMBENG_TUNE_FILE_H

#include <stddef.h>

#include "processor.h"

#define TUNE_SYSTEM_PATH "/etc/embeng/tune.json"
#define TUNE_VARIANT 16
#define TUNE_BYTES_MOST (64u << 10)
#define TUNE_PATH 4096
#define TUNE_WHY 384
#define FETCH_WORD 16

/**
 * struct tune - the contents of a tune file
 * @processor: processor_name() of the processor that it was measured on
 * @variant: kernel variant that it was measured with
 * @near: as &struct fetch_plan has them
 * @far: as &struct fetch_plan has them
 */
struct tune {
	char processor[PROCESSOR_NAME];
	char variant[TUNE_VARIANT];
	struct fetch_ways near;
	struct fetch_ways far;
};

/*
 * A way in words: "48", "48:l1", "48:touch" and "48:burst" for lookups, "32" and "32:again" for
 * updates. fetch_way_parse() returns false for any other text, and for rows from FETCH_ROWS_MOST.
 */
void fetch_way_text(struct fetch_way way, char text[FETCH_WORD]);
bool fetch_lookup_parse(const char *text, struct fetch_way *out);
bool fetch_update_parse(const char *text, struct fetch_way *out);

/**
 * tune_user_path() - the user's own file, read before TUNE_SYSTEM_PATH
 * @path: filled with tune.json in $XDG_CONFIG_HOME/embeng, or in .config/embeng in $HOME
 *
 * Return: false where neither variable has an absolute path, where the path is too long, and in a
 * program that runs with more rights than its caller (setuid), which takes no file from him.
 */
bool tune_user_path(char path[TUNE_PATH]);

/* $EMBENG_TUNE, which is read in place of all others, or NULL; also NULL in a setuid program. */
const char *tune_named_path(void);

/**
 * tune_parse() - read the text of a file
 * @text: [@length]
 * @why: filled on failure: what is wrong, without the file's name
 *
 * Return: 0, -EBADMSG (not such a file, or of another version), -ENOMEM.
 */
int tune_parse(const char *text, size_t length, struct tune *out, char why[TUNE_WHY]);

/**
 * tune_write() - the text of a file
 * @text: out, malloc'd
 *
 * Return: 0, -EINVAL (the processor's name is not UTF-8), -ENOMEM.
 */
int tune_write(const struct tune *tune, char **text, size_t *length);

/* True if @tune is of this processor and variant, else @why says of which it is. */
bool tune_fits(const struct tune *tune, const char *processor, const char *variant,
	       char why[TUNE_WHY]);

#endif
