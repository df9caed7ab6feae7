// SPDX-License-Identifier: MIT
/*
 * Seals and checks the header of a message between two hosts. It is a file because every message
 * passes here, whichever kind it is, and nothing of a message is believed before.
 *
 * Only arguments are touched; no lock is needed.
 */
#include "wire.h"

#include <inttypes.h>
#include <string.h>

#include "../../../engine/hash/crc32c.h"
#include "base/error.h"

void wire_seal(struct wire_header *header)
{
	header->crc = 0;
	header->crc = crc32c(0, header, sizeof(*header));
}

/* A header of another version or byte order cannot be checked any further. */
static int check_sender(const struct wire_header *h, const char *who)
{
	if (h->magic == __builtin_bswap32(WIRE_MAGIC))
		return fail(-EPROTO,
			    "%s has another byte order; a group's hosts must have the same one",
			    who);
	if (h->magic != WIRE_MAGIC)
		return fail(-EBADMSG, "%s sent a message that begins with %08" PRIx32 ", not %08x",
			    who, h->magic, WIRE_MAGIC);
	if (h->version != WIRE_VERSION)
		return fail(-EPROTO,
			    "%s speaks version %" PRIu32
			    " of the messages, another host version %u; "
			    "run the same libembeng on all hosts",
			    who, h->version, WIRE_VERSION);
	return 0;
}

int wire_check(const void *message, uint64_t moved, uint32_t peer, uint32_t ranks, const char *who)
{
	struct wire_header h;
	uint32_t crc;
	int ret;

	if (moved < sizeof(h))
		return fail(-EBADMSG,
			    "%s sent a message of %" PRIu64 " bytes; a header has %zu bytes", who,
			    moved, sizeof(h));
	memcpy(&h, message, sizeof(h));
	ret = check_sender(&h, who);
	if (ret)
		return ret;
	crc = h.crc;
	wire_seal(&h);
	if (h.crc != crc)
		return fail(-EBADMSG, "%s sent a header that was damaged on its way", who);
	if (h.rank != peer)
		return fail(-EPROTO, "%s says that it is host %" PRIu32, who, h.rank);
	if (h.ranks != ranks)
		return fail(-EPROTO,
			    "%s belongs to a group of %" PRIu32
			    " hosts, another host to one of %" PRIu32,
			    who, h.ranks, ranks);
	return 0;
}
