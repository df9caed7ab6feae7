// SPDX-License-Identifier: MIT
/*
 * Messages of a call on rows, for tables whose rows are spread over the hosts: the rows of a round are sorted by
 * their hosts, which are told the numbers that the rows have there. Rows that came are put back in the order of the
 * request. rows.c makes the rounds, and reads and writes at the hosts of the rows.
 *
 * The numbers are copied once in each round, because the program's array may change meanwhile. A struct moving
 * is of one call, and no lock is needed.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "moving.h"

int spread_make(struct moving *m)
{
	m->wanted = malloc(m->most * sizeof(*m->wanted) + 1);
	m->counts = calloc(m->h->hosts, sizeof(*m->counts));
	m->placed = calloc(m->h->hosts, sizeof(*m->placed));
	if (m->wanted && m->counts && m->placed)
		return 0;
	return fail(-ENOMEM, "%s: there is no memory for row numbers", m->asked->what);
}

void spread_free(struct moving *m)
{
	free(m->wanted);
	free(m->counts);
	free(m->placed);
}

static void clear_host_counts(const struct moving *m, uint64_t *counts)
{
	memset(counts, 0, m->h->hosts * sizeof(*counts));
}

/* Copies the numbers of the round, and counts the rows of each host. */
static int list_wanted(struct moving *m, struct window w)
{
	const int table = m->asked->table;
	uint32_t host;
	int64_t local;

	clear_host_counts(m, m->counts);
	for (uint64_t k = 0; k < w.count; k++) {
		m->wanted[k] = m->asked->ids ? m->asked->ids[w.first + k] : (int64_t)(w.first + k);
		if (hosts_locate(m->h, table, m->wanted[k], &host, &local))
			return fail(-ERANGE, "%s: row %" PRId64 " is outside table %s",
				    m->asked->what, m->wanted[k], m->e->model->tables[table].name);
		m->counts[host]++;
	}
	return 0;
}

/* Where each host's message begins in the memory of all. */
static int begin_messages(struct moving *m, struct window w, uint64_t row)
{
	struct hosts *h = m->h;
	struct embeng_bytes *send = h->send[CHANNEL_CONTROL];
	int ret = memory_need(&h->answer, 16 * (uint64_t)h->hosts + w.count * (8 + row) + 8);
	char *to = h->answer.data;

	for (uint32_t i = 0; !ret && i < h->hosts; i++) {
		const uint64_t count = m->counts[i];

		send[i] = (struct embeng_bytes){0};
		if (!count)
			continue;
		send[i] = (struct embeng_bytes){to, 8 + 8 * count + segment_pad(row * count)};
		memcpy(to, &count, sizeof(count));
		to += send[i].bytes;
	}
	return ret;
}

int spread_pack_rows(struct moving *m, bool write)
{
	const struct window w = window_of(m, m->h->rank);
	const uint64_t row = write ? m->width * sizeof(float) : 0;
	int ret = list_wanted(m, w);

	ret = ret ? ret : begin_messages(m, w, row);
	clear_host_counts(m, m->placed);
	for (uint64_t k = 0; !ret && k < w.count; k++) {
		int64_t local;
		uint32_t host;
		char *numbers;

		hosts_locate(m->h, m->asked->table, m->wanted[k], &host, &local);
		numbers = (char *)(uintptr_t)m->h->send[CHANNEL_CONTROL][host].data + 8;
		memcpy(numbers + 8 * m->placed[host], &local, sizeof(local));
		if (write)
			memcpy(numbers + 8 * m->counts[host] + row * m->placed[host],
			       m->asked->data + (w.first + k) * m->width, row);
		m->placed[host]++;
	}
	return ret;
}

int spread_take_count(const struct moving *m, uint32_t host, struct reading *message,
		      uint64_t *count)
{
	const uint64_t most = window_of(m, host).count;
	const void *from;

	*count = 0;
	if (!message->left)
		return 0;
	from = read_next(message, sizeof(*count));
	if (from)
		memcpy(count, from, sizeof(*count));
	return from && *count <= most ? 0 : segment_bad(m->h, host, "a number of rows");
}

int spread_place_rows(const struct moving *m)
{
	const struct window w = window_of(m, m->h->rank);
	const struct embeng_bytes *came = m->h->received[CHANNEL_CONTROL];
	const uint64_t row = m->width * sizeof(float);

	for (uint32_t i = 0; i < m->h->hosts; i++)
		if (came[i].bytes != m->counts[i] * row)
			return segment_bad(m->h, i, "rows");
	clear_host_counts(m, m->placed);
	for (uint64_t k = 0; k < w.count; k++) {
		int64_t local;
		uint32_t host;

		hosts_locate(m->h, m->asked->table, m->wanted[k], &host, &local);
		memcpy(m->asked->data + (w.first + k) * m->width,
		       (const char *)came[host].data + row * m->placed[host]++, row);
	}
	return 0;
}
