/* SPDX-License-Identifier: MIT */
/* The header that each message of a group begins with, and the texts of its control messages. */
#ifndef EMBENG_GROUP_WIRE_H
#define EMBENG_GROUP_WIRE_H

#include <stdint.h>

#include "embeng/group.h"

#define WIRE_MAGIC 0x47424d45u /* "EMBG" in little-endian order */
#define WIRE_VERSION 1u
/* The first message of a body has its header and as much of the body as fits. */
#define WIRE_FIRST_BYTES 4096u
#define WIRE_CONTROL_TAG EMBENG_GROUP_CHANNELS
#define WIRE_RANK_WORDS (EMBENG_GROUP_RANKS_MOST / 64)

enum wire_kind {
	WIRE_EXCHANGE,
	WIRE_STATE,
	WIRE_VERDICT,
	WIRE_BYE,
	WIRE_ASK,   /* is this host alive? */
	WIRE_ALIVE, /* the answer */
};

/*
 * struct wire_header - all numbers in the byte order of the sender
 * @serial: number of exchanges that the channel had before
 * @status: 0, or a negative errno whose sentence is the body
 * @bytes: length of the whole body, whose CRC-32C is @body_crc
 * @crc: CRC-32C of the header with 0 here
 */
struct wire_header {
	uint32_t magic, version;
	uint32_t kind, rank, ranks, replicas;
	int32_t status;
	uint32_t channel;
	uint64_t step, model, rates, bytes;
	char phase[EMBENG_PHASE_TEXT];
	uint64_t serial;
	uint32_t body_crc, crc;
	uint8_t zero[24];
};

_Static_assert(sizeof(struct wire_header) == 128, "wire_header");

#define WIRE_INLINE_BYTES (WIRE_FIRST_BYTES - (uint32_t)sizeof(struct wire_header))

/*
 * struct wire_state - the knowledge of a host when an exchange has failed somewhere
 * @code: 0; -ETIME: its deadline passed; or the errno of another cause that it has seen, in @text
 * @busy: it is in an exchange, which @step, @serial and @phase tell; otherwise they are of the next
 * @waited_ns: time since its exchange began
 * @silent: ranks of which nothing came, a bit each
 * @stuck: ranks that sent something and did not finish, a bit each
 */
struct wire_state {
	int32_t code;
	uint32_t busy, channel;
	uint32_t zero;
	uint64_t step, serial, waited_ns;
	char phase[EMBENG_PHASE_TEXT];
	char text[EMBENG_ERROR_TEXT];
	uint64_t silent[WIRE_RANK_WORDS], stuck[WIRE_RANK_WORDS];
};

_Static_assert(sizeof(struct wire_state) <= WIRE_INLINE_BYTES, "a state is one message");

/* Sets @header's checksum, the last thing before it is sent. */
void wire_seal(struct wire_header *header);

/*
 * Checks that the first @moved bytes of a message are a header, from @peer. @who names that host in
 * the sentence. Return: 0, -EBADMSG, -EPROTO.
 */
int wire_check(const void *message, uint64_t moved, uint32_t peer, uint32_t ranks, const char *who);

#endif
