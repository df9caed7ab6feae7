/* SPDX-License-Identifier: MIT */
/*
 * Checks protobufs before protobuf-c reads them, because protobuf-c reports no more than
 * that something is wrong, and accepts messages that are ambiguous.
 */
#ifndef EMBENG_TPU_WIRE_H
#define EMBENG_TPU_WIRE_H

#include <protobuf-c/protobuf-c.h>

#include "base/error.h"
#include "embeng/tpu.h"

#define TPU_MOST_BYTES (16u << 20)
#define TPU_MOST_ELEMENTS 4096u /* most elements of a repeated message, and most unknown fields */
#define TPU_PATH 128

/* The place of a message or field that is being read. @index is below 0 if it is not repeated. */
struct tpu_place {
	const struct tpu_place *above;
	const char *name;
	long index;
};

/* Writes a place as "table_descriptor[2].name"; "" for NULL. */
const char *tpu_path(char text[static TPU_PATH], const struct tpu_place *place);

struct tpu_unknown {
	char message[TPU_PATH];
	uint32_t number, wire_type;
	uint64_t offset, length;
};

struct tpu_unknowns {
	struct tpu_unknown *fields;
	size_t count;
};

/* handle.c: converts to the public structure, whose text still belongs to @from. */
struct embeng_tpu_unknown tpu_tell_unknown(const struct tpu_unknown *from);

/*
 * tpu_unpack() - check the bytes of a message, then let protobuf-c read them
 * @what: start of sentences about the message as a whole
 * @unknowns: zeroed by the caller and filled with unknown fields; the caller frees @fields, also on
 *	failure. May be NULL
 *
 * Return: 0, -EBADMSG, -ERANGE or -ENOMEM.
 */
int tpu_unpack(const ProtobufCMessageDescriptor *descriptor, const char *what, const void *bytes,
	       size_t length, struct tpu_unknowns *unknowns, ProtobufCMessage **message);

/* Frees a message from tpu_unpack(). NULL is ignored. */
void tpu_unpacked_free(ProtobufCMessage *message);

/* Packs a message into malloc'd bytes, never NULL. Return: 0 or -ENOMEM. */
int tpu_pack(const ProtobufCMessage *message, void **bytes, size_t *length);

#endif
