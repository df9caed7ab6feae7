// SPDX-License-Identifier: MIT
/*
 * Reads captured ring memory of a queue: embeng-ring(7), struct embeng_queue_layout. The memory begins
 * with the device's header; the two rings follow, and the file may have the doorbell (192 bytes)
 * behind them. Nothing in it says how large the rings are: of all sizes that fill the file, the one is
 * taken whose commands and completions have the fewest faults.
 *
 * All is read from the caller's copy. Without a doorbell it is not known how far the program has
 * submitted, so that only commands below sq_head are shown.
 */
#include <inttypes.h>
#include <string.h>

#include "command.h"
#include "embeng_regs.h"
#include "readers.h"
#include "words.h"

#define ENTRY 64u
#define RESERVED_WORDS 37u /* those of the header and of the report in it */

struct capture {
	const struct bytes *b;
	struct embeng_queue_layout layout;
	struct queue_indices indices;
	uint32_t kind;
};

static uint32_t count_reserved(const struct embeng_ring_header *h)
{
	uint32_t count = 0;

	for (size_t i = 0; i < 14; i++)
		count += h->reserved0[i] != 0;
	for (size_t i = 0; i < 15; i++)
		count += h->reserved2[i] != 0;
	for (size_t i = 0; i < 8; i++)
		count += h->report.reserved[i] != 0;
	return count;
}

static struct embeng_cmd command_at(const struct capture *c, uint32_t index)
{
	struct embeng_cmd cmd;

	memcpy(&cmd,
	       c->b->data + c->layout.sq + (uint64_t)(index & (c->layout.sq_entries - 1)) * ENTRY,
	       sizeof(cmd));
	return cmd;
}

static struct embeng_cqe completion_at(const struct capture *c, uint32_t index)
{
	struct embeng_cqe cqe;

	memcpy(&cqe,
	       c->b->data + c->layout.cq + (uint64_t)(index & (c->layout.cq_entries - 1)) * ENTRY,
	       sizeof(cqe));
	return cqe;
}

static bool is_blank_entry(const void *entry)
{
	static const unsigned char zeros[ENTRY];

	return !memcmp(entry, zeros, ENTRY);
}

/* Index of the first entry that may still be in a ring, below @end. */
static uint32_t oldest_index(uint32_t end, uint32_t entries)
{
	return end - entries;
}

static uint64_t count_faults(const struct capture *c)
{
	uint32_t head = c->indices.header.sq_head, tail = c->indices.header.cq_tail, i;
	uint64_t faults = 0;

	for (i = oldest_index(head, c->layout.sq_entries); i != head; i++) {
		struct embeng_cmd cmd = command_at(c, i);

		faults += !word_opcode(cmd.opcode) || cmd.reserved0;
	}
	for (i = oldest_index(tail, c->layout.cq_entries); i != tail; i++) {
		struct embeng_cqe cqe = completion_at(c, i);

		faults += !is_blank_entry(&cqe) && cqe.flags != EMBENG_CQE_ACCEPTED &&
			  cqe.flags != EMBENG_CQE_DONE;
	}
	return faults;
}

/* Tries rings of @sq entries; what is left must be a ring of completions, and perhaps a doorbell. */
static bool try_layout(struct capture *c, uint64_t sq, bool doorbell)
{
	uint64_t left = c->b->size - sizeof(struct embeng_ring_header) -
			(doorbell ? sizeof(struct embeng_doorbell) : 0);
	uint64_t cq = left / ENTRY - sq;

	if (left % ENTRY || left / ENTRY <= sq || cq & (cq - 1) ||
	    cq > 2ull * EMBENG_SQ_ENTRIES_MAX)
		return false;
	c->layout = embeng_ring_layout((uint32_t)sq, (uint32_t)cq, 0);
	c->indices.doorbell = doorbell;
	return true;
}

static bool find_ring_layout(struct capture *c)
{
	uint64_t best = UINT64_MAX;
	struct capture trial = *c;

	if (c->b->size < sizeof(struct embeng_ring_header) + sizeof(struct embeng_doorbell) +
				 2 * ENTRY &&
	    c->b->size != sizeof(struct embeng_ring_header) + 2 * ENTRY)
		return false;
	for (int doorbell = 0; doorbell < 2; doorbell++) {
		for (uint64_t sq = 1; sq <= EMBENG_SQ_ENTRIES_MAX; sq *= 2) {
			uint64_t faults;

			if (!try_layout(&trial, sq, doorbell))
				continue;
			faults = count_faults(&trial);
			if (faults < best ||
			    (faults == best &&
			     trial.layout.cq_entries == 2 * trial.layout.sq_entries)) {
				best = faults;
				*c = trial;
			}
		}
	}
	return best != UINT64_MAX;
}

static bool read_ring_header(struct capture *c, const struct bytes *b)
{
	*c = (struct capture){.b = b};
	if (b->size < sizeof(c->indices.header))
		return false;
	memcpy(&c->indices.header, b->data, sizeof(c->indices.header));
	return true;
}

/* No magic says what it is, so nearly all reserved words must be 0 and the small numbers small. */
bool ring_is(const struct bytes *b)
{
	struct capture c;

	return read_ring_header(&c, b) && count_reserved(&c.indices.header) <= 3 &&
	       c.indices.header.dead <= 1 && c.indices.header.report.state < 16 &&
	       c.indices.header.report.wait < 16 && c.indices.header.cq_tail &&
	       find_ring_layout(&c);
}

/* The kind of a queue is that of the commands that no other kind takes. */
static uint32_t guess_kind(const struct capture *c)
{
	uint32_t head = c->indices.header.sq_head, kinds = 0x1e;
	bool trains = false;

	for (uint32_t i = oldest_index(head, c->layout.sq_entries); i != head; i++) {
		struct embeng_cmd cmd = command_at(c, i);

		switch (cmd.opcode) {
#define KINDS(name, value, mask, flags, words) \
	case value: \
		kinds &= (mask) & kinds ? (mask) : ~0u; \
		break;
			EMBENG_OPCODE_TABLE(KINDS)
#undef KINDS
		}
		trains |= cmd.opcode == EMBENG_OP_LOOKUP && cmd.step;
	}
	if (kinds == (1u << EMBENG_QUEUE_INPUT | 1u << EMBENG_QUEUE_INFERENCE))
		return trains ? EMBENG_QUEUE_INPUT : EMBENG_QUEUE_INFERENCE;
	if (kinds == 1u << EMBENG_QUEUE_GRADIENT)
		return EMBENG_QUEUE_GRADIENT;
	return kinds == 1u << EMBENG_QUEUE_TRANSFER ? EMBENG_QUEUE_TRANSFER : KIND_UNKNOWN;
}

#define HEADER_AT(member) offsetof(struct embeng_ring_header, member)

static void show_ring_header(struct sheet *s, const struct capture *c)
{
	const struct embeng_ring_header *h = &c->indices.header;
	uint32_t reserved = count_reserved(h);

	sheet_part(s, 0, "header");
	sheet_says(s, "rings of %u commands and %u completions%s, of kind %s", c->layout.sq_entries,
		   c->layout.cq_entries, c->indices.doorbell ? " with the doorbell" : "",
		   word_or_unknown(word_queue_kind(c->kind)));
	sheet_number(s, HEADER_AT(sq_head), "sq_head", h->sq_head, NULL);
	sheet_number(s, HEADER_AT(heartbeat), "heartbeat", h->heartbeat, NULL);
	sheet_number(s, HEADER_AT(cq_tail), "cq_tail", h->cq_tail, NULL);
	sheet_number(s, HEADER_AT(sent), "sent", h->sent, NULL);
	sheet_number(s, HEADER_AT(done), "done", h->done, NULL);
	sheet_number(s, HEADER_AT(progress), "progress", h->progress, NULL);
	sheet_number(s, HEADER_AT(busy_ns), "busy_ns", h->busy_ns, NULL);
	sheet_number(s, HEADER_AT(ids), "ids", h->ids, NULL);
	sheet_number(s, HEADER_AT(rows), "rows", h->rows, NULL);
	sheet_number(s, HEADER_AT(commands), "commands", h->commands, NULL);
	for (uint32_t i = 0; i < EMBENG_WAITS; i++)
		sheet_number(s, HEADER_AT(waits) + 4 * i, "waits", h->waits[i],
			     word_wait(EMBENG_WAIT_LOOKUP + i));
	sheet_number(s, HEADER_AT(dead), "dead", h->dead,
		     h->dead ? "nothing in the queue will move again" : NULL);
	sheet_number(s, HEADER_AT(report.epoch), "report", h->report.epoch, NULL);
	sheet_number(s, HEADER_AT(report.state), "state", h->report.state,
		     word_queue_state(h->report.state));
	sheet_number(s, HEADER_AT(report.wait), "waits for", h->report.wait,
		     word_wait(h->report.wait));
	sheet_number(s, HEADER_AT(report.step), "report_step", h->report.step, NULL);
	if (reserved)
		sheet_odd(s, 0, "%u of %u reserved words are not 0", reserved, RESERVED_WORDS);
	if (h->dead > 1)
		sheet_odd(s, HEADER_AT(dead), "dead is %u, allowed are 0 and 1", h->dead);
	queue_check_indices(s, 0, &c->indices);
	queue_check_report(s, HEADER_AT(report), &h->report);
}

static void show_doorbell(struct sheet *s, struct capture *c)
{
	struct embeng_doorbell d;

	if (!c->indices.doorbell)
		return;
	memcpy(&d, c->b->data + c->layout.size, sizeof(d));
	c->indices.sq_tail = d.sq_tail;
	c->indices.cq_head = d.cq_head;
	sheet_part(s, c->layout.size, "doorbell");
	sheet_number(s, c->layout.size, "sq_tail", d.sq_tail, NULL);
	sheet_number(s, c->layout.size + offsetof(struct embeng_doorbell, cq_head), "cq_head",
		     d.cq_head, NULL);
	sheet_number(s, c->layout.size + offsetof(struct embeng_doorbell, arm), "arm", d.arm, NULL);
	sheet_number(s, c->layout.size + offsetof(struct embeng_doorbell, armed), "armed", d.armed,
		     NULL);
}

/* One past the newest command: the doorbell's tail where it can be, else the device's head. */
static uint32_t commands_end(const struct capture *c)
{
	uint32_t head = c->indices.header.sq_head;

	if (c->indices.doorbell && c->indices.sq_tail - head <= c->layout.sq_entries)
		return c->indices.sq_tail;
	return head;
}

static void show_commands(struct sheet *s, const struct capture *c)
{
	uint32_t end = commands_end(c);
	uint64_t step = 0;

	for (uint32_t i = oldest_index(end, c->layout.sq_entries); i != end; i++) {
		struct command_place at = {.binary = true, .kind = c->kind};
		struct embeng_cmd cmd = command_at(c, i);
		bool trains = cmd.opcode == EMBENG_OP_UPDATE ||
			      (cmd.opcode == EMBENG_OP_LOOKUP && c->kind == EMBENG_QUEUE_INPUT);

		at.offset = c->layout.sq + (uint64_t)(i & (c->layout.sq_entries - 1)) * ENTRY;
		if (is_blank_entry(&cmd) && (int32_t)i < 0) /* never written: the ring began at 0 */
			continue;
		sheet_part(s, at.offset, "command %u", i);
		command_show(s, &at, &cmd);
		if (trains && cmd.step <= step)
			sheet_odd(s, at.offset + offsetof(struct embeng_cmd, step),
				  "the step goes back, from %" PRIu64 " to %llu", step,
				  (unsigned long long)cmd.step);
		step = trains ? cmd.step : step;
	}
}

static void check_order_of(struct sheet *s, const struct capture *c, uint64_t offset,
			   const struct embeng_cqe *cqe, uint64_t *time)
{
	if (cqe->timestamp < *time)
		sheet_odd(s, offset + offsetof(struct embeng_cqe, timestamp),
			  "the time goes back, from %" PRIu64 " to %llu ns", *time,
			  (unsigned long long)cqe->timestamp);
	*time = cqe->timestamp;
	if ((int32_t)(cqe->index - c->indices.header.sq_head) >= 0)
		sheet_odd(s, offset + offsetof(struct embeng_cqe, index),
			  "it is of command %u, and the device has taken the commands below %u",
			  cqe->index, c->indices.header.sq_head);
}

static void show_completions(struct sheet *s, const struct capture *c)
{
	uint32_t end = c->indices.header.cq_tail;
	uint64_t time = 0;

	for (uint32_t i = oldest_index(end, c->layout.cq_entries); i != end; i++) {
		struct command_place at = {.binary = true, .kind = c->kind};
		struct embeng_cqe cqe = completion_at(c, i);

		at.offset = c->layout.cq + (uint64_t)(i & (c->layout.cq_entries - 1)) * ENTRY;
		if (is_blank_entry(&cqe) && (int32_t)i < 0)
			continue;
		sheet_part(s, at.offset, "completion %u", i);
		completion_show(s, &at, &cqe);
		check_order_of(s, c, at.offset, &cqe, &time);
	}
}

void ring_read(struct sheet *s, const struct bytes *b)
{
	struct capture c;

	if (!read_ring_header(&c, b) || !find_ring_layout(&c)) {
		sheet_part(s, 0, "header");
		sheet_odd(s, b->size,
			  "no rings fill %zu bytes: a header has 256, the rings 64 for each of a "
			  "power of two of entries, a doorbell 192",
			  b->size);
		return;
	}
	c.indices.sq_entries = c.layout.sq_entries;
	c.indices.cq_entries = c.layout.cq_entries;
	c.indices.health = c.indices.header.heartbeat || c.indices.header.sent;
	c.kind = guess_kind(&c);
	show_doorbell(s, &c);
	show_ring_header(s, &c);
	show_commands(s, &c);
	show_completions(s, &c);
	sheet_verdict(
		s,
		"Ring memory of a queue: %u commands were taken, %u are complete, %u completions "
		"were posted.",
		c.indices.header.sq_head, c.indices.header.done, c.indices.header.cq_tail);
}
