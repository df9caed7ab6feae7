// SPDX-License-Identifier: MIT
/*
 * Rows of tables that lie on several hosts: each host asks for rows of its own, or for none, and the owners
 * of the table, of its columns, or of its rows (rows_spread.c), read or write them.
 *
 * Rows move in rounds. Imagine the rows that the hosts ask for in one list, those of host 0 first: a round
 * takes the next ROUND_BYTES of it, so that no host needs more memory, and rows are written in the order of
 * hosts. All hosts know all counts, so all make the same rounds.
 *
 * hosts_enter() lets one call in at a time, which has h->answer and what else is used here. No lock is held.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "moving.h"
#include "segment.h"

#define ROUND_BYTES (16u << 20)

static bool is_write(const struct rows_asked *asked)
{
	return asked->op == EMBENG_OP_ROWS_WRITE;
}

static int refuse_wish(const struct moving *m, uint32_t host)
{
	const struct wish *first = &m->wishes[0], *other = &m->wishes[host];
	const struct embeng_model *model = m->e->model;

	return fail(-EINVAL,
		    "%s: host %" PRIu32
		    " (%s) names table %s, %s, and host 0 (%s) table %s, %s; all "
		    "hosts must name the same",
		    m->asked->what, host, embeng_group_host(m->h->group, host),
		    model->tables[other->table].name,
		    model_slot_name(model, (int)other->table, other->slot),
		    embeng_group_host(m->h->group, 0), model->tables[first->table].name,
		    model_slot_name(model, (int)first->table, first->slot));
}

static int add_wishes(struct moving *m, const struct embeng_bytes *received)
{
	for (uint32_t i = 0; i < m->h->hosts; i++) {
		struct wish *wish = &m->wishes[i];

		if (received[i].bytes != sizeof(*wish))
			return segment_bad(m->h, i, "a call on rows");
		memcpy(wish, received[i].data, sizeof(*wish));
		if (__builtin_add_overflow(m->before[i], wish->count, &m->before[i + 1]))
			return fail(-ERANGE, "%s: more rows than 64 bits count", m->asked->what);
	}
	for (uint32_t i = 1; i < m->h->hosts; i++)
		if (m->wishes[i].table != m->wishes[0].table ||
		    m->wishes[i].slot != m->wishes[0].slot)
			return refuse_wish(m, i);
	return 0;
}

/* All hosts learn what the others ask for. */
static int tell_wishes(struct moving *m)
{
	const struct rows_asked *asked = m->asked;
	const struct wish own = {.count = asked->count,
				 .table = (uint32_t)asked->table,
				 .slot = (uint32_t)asked->slot,
				 .listed = asked->ids != NULL};
	struct embeng_bytes *send = m->h->send[CHANNEL_CONTROL];
	struct embeng_bytes *received = m->h->received[CHANNEL_CONTROL];
	int ret;

	for (uint32_t i = 0; i < m->h->hosts; i++)
		send[i] = (struct embeng_bytes){&own, sizeof(own)};
	ret = hosts_control(m->e, m->phase, asked->status, send, received);
	return ret ? ret : add_wishes(m, received);
}

/* The numbers of a host's rows in the round, of its message or counted up, and how many. */
static int take_numbers(struct moving *m, uint32_t host, struct reading *message, uint64_t *count)
{
	const struct window w = window_of(m, host);
	const void *numbers;
	int ret = 0;

	*count = w.count;
	if (m->spread)
		ret = spread_take_count(m, host, message, count);
	if (ret)
		return ret;
	if (m->spread || m->wishes[host].listed) {
		numbers = read_next(message, *count * sizeof(int64_t));
		if (!numbers)
			return segment_bad(m->h, host, "row numbers");
		memcpy(m->numbers, numbers, *count * sizeof(int64_t));
		return 0;
	}
	for (uint64_t k = 0; k < w.count; k++)
		m->numbers[k] = (int64_t)(w.first + k);
	return 0;
}

static struct reading message_of(const struct moving *m, uint32_t host)
{
	const struct embeng_bytes *came = &m->h->received[CHANNEL_CONTROL][host];

	return (struct reading){came->data, came->bytes};
}

/* -- reading -- */

/* The owner handle's rows for each host, one behind the other. */
static int read_for_hosts(struct moving *m, const struct place_part *part)
{
	struct hosts *h = m->h;
	const uint64_t row = part ? 4 * part_width(h, part, (size_t)m->asked->slot) : 0;
	struct embeng_bytes *send = h->send[CHANNEL_CONTROL];
	char *to;
	int ret = memory_need(&h->answer, m->most * row);

	to = h->answer.data;
	for (uint32_t i = 0; !ret && i < h->hosts; i++) {
		struct reading message = message_of(m, i);
		uint64_t count = 0;

		if (part)
			ret = take_numbers(m, i, &message, &count);
		send[i] = (struct embeng_bytes){to, count * row};
		if (ret || !count)
			continue;
		ret = embeng_rows_read(h->owner, h->tables[part->table],
				       slot_name_of(h, part->table, (size_t)m->asked->slot),
				       m->numbers, count, (float *)(void *)to);
		to += count * row;
	}
	return ret;
}

/* A part's columns to their place in the rows of the program. */
static int place_columns(const struct moving *m, const struct place_part *part)
{
	const struct window w = window_of(m, m->h->rank);
	const uint64_t width = part_width(m->h, part, (size_t)m->asked->slot);
	const struct embeng_bytes *came = &m->h->received[CHANNEL_CONTROL][part->host];
	const float *from = came->data;
	float *to = m->asked->data + w.first * m->width + part->first_column;

	if (came->bytes != w.count * width * sizeof(*from))
		return segment_bad(m->h, part->host, "rows");
	for (uint64_t k = 0; k < w.count; k++)
		memcpy(to + k * m->width, from + k * width, width * sizeof(*from));
	return 0;
}

static int ask_owners(struct moving *m)
{
	const struct window w = window_of(m, m->h->rank);
	struct embeng_bytes *send = m->h->send[CHANNEL_CONTROL];

	if (m->spread)
		return spread_pack_rows(m, false);
	for (uint32_t i = 0; i < m->h->hosts; i++)
		send[i] = m->asked->ids && hosts_part(m->h, m->asked->table, i)
				  ? (struct embeng_bytes){m->asked->ids + w.first, 8 * w.count}
				  : (struct embeng_bytes){0};
	return 0;
}

/* The rows that came, in the program's memory. */
static int place_rows(const struct moving *m)
{
	const size_t *first = &m->h->place.first[m->asked->table];
	int ret = 0;

	if (m->spread)
		return spread_place_rows(m);
	for (size_t i = first[0]; !ret && i < first[1]; i++)
		ret = window_of(m, m->h->rank).count ? place_columns(m, &m->h->place.parts[i]) : 0;
	return ret;
}

static int read_round(struct moving *m)
{
	struct hosts *h = m->h;
	int ret = ask_owners(m);

	ret = hosts_control(m->e, m->phase, ret, h->send[CHANNEL_CONTROL],
			    h->received[CHANNEL_CONTROL]);
	if (ret)
		return ret;
	ret = read_for_hosts(m, hosts_part(h, m->asked->table, h->rank));
	ret = hosts_control(m->e, m->phase, ret, h->send[CHANNEL_CONTROL],
			    h->received[CHANNEL_CONTROL]);
	return ret ? ret : place_rows(m);
}

static int read_rounds(struct moving *m)
{
	int ret = 0;

	for (; !ret && m->at < m->before[m->h->hosts]; m->at += m->most)
		ret = read_round(m);
	return ret;
}

/* -- writing -- */

/* Row numbers, where there is a list, and columns for one owner. Return: where the next message goes. */
static char *pack_columns(const struct moving *m, const struct place_part *part, char *to)
{
	const struct window w = window_of(m, m->h->rank);
	const uint64_t width = part_width(m->h, part, (size_t)m->asked->slot);
	const float *from = m->asked->data + w.first * m->width + part->first_column;

	if (m->asked->ids) {
		memcpy(to, m->asked->ids + w.first, w.count * sizeof(int64_t));
		to += w.count * sizeof(int64_t);
	}
	for (uint64_t k = 0; k < w.count; k++)
		memcpy(to + k * width * sizeof(*from), from + k * m->width, width * sizeof(*from));
	return to + segment_pad(w.count * width * sizeof(*from));
}

static int pack_rows(struct moving *m)
{
	struct hosts *h = m->h;
	const int table = m->asked->table;
	const size_t first = h->place.first[table], end = h->place.first[table + 1];
	const uint64_t count = window_of(m, h->rank).count;
	char *to, *next;
	int ret;

	if (m->spread)
		return spread_pack_rows(m, true);
	ret = memory_need(&h->answer, count * m->width * 4 + (end - first) * (8 * count + 8));
	to = h->answer.data;
	memset(h->send[CHANNEL_CONTROL], 0, h->hosts * sizeof(struct embeng_bytes));
	for (size_t i = first; !ret && count && i < end; i++, to = next) {
		next = pack_columns(m, &h->place.parts[i], to);
		h->send[CHANNEL_CONTROL][h->place.parts[i].host] = (struct embeng_bytes){
			to, (uint64_t)(next - to)};
	}
	return ret;
}

/* In the order of hosts, so that of two that write a row the higher one's stays. */
static int write_for_hosts(struct moving *m, const struct place_part *part)
{
	struct hosts *h = m->h;
	int ret = 0;

	for (uint32_t i = 0; !ret && part && i < h->hosts; i++) {
		struct reading message = message_of(m, i);
		const float *rows;
		uint64_t count;

		ret = take_numbers(m, i, &message, &count);
		if (ret || !count)
			continue;
		rows = read_next(&message, 4 * count * part_width(h, part, (size_t)m->asked->slot));
		if (!rows)
			return segment_bad(h, i, "rows");
		ret = embeng_rows_write(h->owner, h->tables[part->table],
					slot_name_of(h, part->table, (size_t)m->asked->slot),
					m->numbers, count, rows);
	}
	return ret;
}

/*
 * The next exchange says if an owner failed; the last one is empty. Rows that are on other hosts end the delay of
 * pipelining here, too.
 */
static int write_rounds(struct moving *m)
{
	struct hosts *h = m->h;
	int ret = 0, told;

	for (; m->at < m->before[h->hosts]; m->at += m->most) {
		ret = ret ? ret : pack_rows(m);
		told = hosts_control(m->e, m->phase, ret, h->send[CHANNEL_CONTROL],
				     h->received[CHANNEL_CONTROL]);
		if (told)
			return told;
		ret = write_for_hosts(m, hosts_part(h, m->asked->table, h->rank));
	}
	if (!ret && m->before[h->hosts])
		ret = steps_see_updates(h->owner);
	return hosts_control(m->e, m->phase, ret, NULL, NULL);
}

static int move_with_memory(struct moving *m)
{
	int ret = tell_wishes(m);

	if (ret)
		return ret;
	m->width = model_width(&m->e->model->tables[m->asked->table], (size_t)m->asked->slot);
	m->most = ROUND_BYTES / (8 + 4 * m->width) + 1;
	if (m->most > m->before[m->h->hosts])
		m->most = m->before[m->h->hosts];
	m->spread = hosts_is_spread(m->h, m->asked->table);
	m->numbers = malloc(m->most * sizeof(*m->numbers) + 1);
	if (m->spread)
		ret = spread_make(m);
	if (!ret && !m->numbers)
		ret = fail(-ENOMEM, "%s: there is no memory for row numbers", m->asked->what);
	ret = hosts_control(m->e, m->phase, ret, NULL, NULL);
	return ret ? ret : is_write(m->asked) ? write_rounds(m) : read_rounds(m);
}

int move_hosts_rows(struct embeng *e, const struct rows_asked *asked)
{
	struct hosts *h = e->hosts;
	struct rows_asked told = *asked;
	struct moving m = {.e = e,
			   .h = h,
			   .asked = &told,
			   .phase = is_write(asked) ? "rows write" : "rows read"};
	int ret;

	m.wishes = calloc(h->hosts, sizeof(*m.wishes));
	m.before = calloc(h->hosts + 1, sizeof(*m.before));
	if (!told.status && (!m.wishes || !m.before))
		told.status = fail(-ENOMEM, "%s: there is no memory", asked->what);
	ret = move_with_memory(&m);
	free(m.wishes);
	free(m.before);
	free(m.numbers);
	spread_free(&m);
	return ret;
}

int hosts_rows(struct embeng *e, const struct rows_asked *asked)
{
	/* The sentence of a refusal is the thread's last one. */
	struct embeng_error error = {.size = sizeof(error)};
	struct rows_asked told = *asked;
	int ret;

	embeng_last_error(&error);
	ret = hosts_enter(e);
	if (ret)
		return ret;
	if (asked->status)
		error_set(asked->status, error.status, "%s", error.text);
	ret = told.op == EMBENG_OP_ROWS_FILL ? fill_hosts_rows(e, &told)
					     : move_hosts_rows(e, &told);
	hosts_leave(e);
	return ret;
}
