/* SPDX-License-Identifier: MIT */
/*
 * Protobufs of others, looked through before protobuf-c reads them: it would say no more than
 * that something is wrong, and lets pass what means two things.
 */
#ifndef EMBENG_TPU_WIRE_H
#define EMBENG_TPU_WIRE_H

#include <protobuf-c/protobuf-c.h>

#include "base/error.h"

#define TPU_MOST_BYTES (16u << 20)
#define TPU_MOST_ELEMENTS 4096u /* of a repeated message; unknown fields */
#define TPU_PATH 128

/* A message or field under way; @index below 0: not repeated. */
struct tpu_place {
	const struct tpu_place *above;
	const char *name;
	long index;
};

/* "table_descriptor[2].name"; "" without a place. */
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

/* handle.c: as callers are told; its text is @from's. */
struct embeng_tpu_unknown tpu_tell_unknown(const struct tpu_unknown *from);

/*
 * tpu_unpack() - check the bytes, then have protobuf-c read them
 * @what: starts sentences about the message itself
 * @unknowns: zeroed, filled; @fields is the caller's to free, on failure too. NULL: not wanted
 *
 * Return: 0, -EBADMSG, -ERANGE or -ENOMEM.
 */
int tpu_unpack(const ProtobufCMessageDescriptor *descriptor, const char *what, const void *bytes,
	       size_t length, struct tpu_unknowns *unknowns, ProtobufCMessage **message);

/* What tpu_unpack() made; NULL is fine. */
void tpu_unpacked_free(ProtobufCMessage *message);

/* The message as malloc'd bytes, never NULL. 0 or -ENOMEM. */
int tpu_pack(const ProtobufCMessage *message, void **bytes, size_t *length);

#endif
