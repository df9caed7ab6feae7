/* SPDX-License-Identifier: MIT */
/* The code that the commands of embeng fw share. */
#ifndef CLI_FIRMWARE_COMMANDS_H
#define CLI_FIRMWARE_COMMANDS_H

#include <stdint.h>

#include "../../../engine/control/firmware.h"
#include "../../../engine/control/signature.h"
#include "../frame/command.h"

int fw_pack(int argc, char **argv);
int fw_inspect(int argc, char **argv);
int fw_verify(int argc, char **argv);
int fw_sign(int argc, char **argv);
int fw_show(int argc, char **argv);

/**
 * struct fw_image - a firmware image in memory
 * @path: path that it was read from, for messages
 * @data: bytes, malloc'd
 * @length: number of bytes, with a signature
 * @signature: where the image ends and what follows; fw_check() fills it
 * @firmware: contents that a device would use; fw_check() fills it
 */
struct fw_image {
	const char *path;
	unsigned char *data;
	size_t length;
	struct signature signature;
	struct firmware firmware;
};

/**
 * fw_read() - read a whole file
 * @most: most bytes that it may have
 * @data: set to malloc'd bytes, with a zero byte behind them
 *
 * Return: 0, or an exit code after the failure was reported.
 */
int fw_read(const struct output *out, const char *path, size_t most, unsigned char **data,
	    size_t *length);

/* Writes a file as a whole or not at all. Return: as fw_read(). */
int fw_write(const struct output *out, const char *path, const void *data, size_t length);

/*
 * Reads an image and checks everything except its self-tests, like a device that boots no version
 * below @minimum. Return: as fw_read().
 */
int fw_load(const struct output *out, const char *path, uint64_t minimum, struct fw_image *image);

/* Checks an image in memory like fw_load(). */
int fw_check(const struct output *out, struct fw_image *image, uint64_t minimum);

/* Runs the self-tests on every kernel variant that this processor has. Return: as fw_read(). */
int fw_self_test(const struct output *out, const struct fw_image *image);

#define FW_SIGNATURE_TEXT 128

/* Writes "unsigned", or "signed by key 12ab..." if the signature says by which. */
const char *fw_signature(const struct fw_image *image, char text[FW_SIGNATURE_TEXT]);

#define FW_VERSION_TEXT 40

/* Writes a version, such as "0.1.0 build 0". */
const char *fw_version(uint64_t version, char text[FW_VERSION_TEXT]);

/* Adds the members "image", "version", "length", "signed_length" and "signature" to a document. */
void fw_add_image(struct json_object *to, const struct fw_image *image);

/* An argp parser of one argument, IMAGE, for verbs whose input begins with its path. */
error_t fw_parse_image(int key, char *arg, struct argp_state *state);

#endif
