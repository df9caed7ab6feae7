/* SPDX-License-Identifier: MIT */
/* Headers of the members of a tar archive (POSIX ustar), which the stream of a checkpoint is. */
#ifndef EMBENG_TAR_H
#define EMBENG_TAR_H

#include <stdbool.h>
#include <stdint.h>

#define TAR_BLOCK 512u
#define TAR_NAME 101 /* bytes of a name, with its zero byte */

/*
 * TAR_NOTE is a pax header for the member behind it, TAR_NOTE_OF_ALL one for the whole archive.
 * TAR_OTHER is a link, a device, or an addition of one tar program.
 */
enum tar_kind { TAR_FILE, TAR_FOLDER, TAR_NOTE, TAR_NOTE_OF_ALL, TAR_OTHER };

/*
 * struct tar_member - a member, as its header says it
 * @name: without "./" in front; "" if it is too long or in a folder of its own
 * @bytes: bytes behind the header; zeros fill them up to whole blocks
 */
struct tar_member {
	char name[TAR_NAME];
	uint64_t bytes;
	enum tar_kind kind;
};

/* Fills the header of a file or of a note. The name must have fewer than TAR_NAME bytes. */
void tar_write_header(const struct tar_member *member, char block[TAR_BLOCK]);

/* Return: NULL, or what is wrong with the header, to follow "the header of a member". */
const char *tar_read_header(const char block[TAR_BLOCK], struct tar_member *member);

/* Whether all bytes are zero, as in the two blocks that end an archive. */
bool tar_all_zero(const char *bytes, uint64_t count);

/* Number of zeros behind a member of this size. */
static inline uint64_t tar_padding(uint64_t bytes)
{
	return (TAR_BLOCK - bytes % TAR_BLOCK) % TAR_BLOCK;
}

/*
 * tar_check_note() - look at the records "LENGTH KEY=VALUE\n" of a pax header
 * @comment: set to the value of "comment", not terminated, or left alone
 *
 * Return: NULL, or what is wrong: also a record that would change the name or size of a member.
 */
const char *tar_check_note(const char *text, uint64_t bytes, const char **comment,
			   uint64_t *comment_bytes);

#endif
