// SPDX-License-Identifier: MIT
/*
 * embeng_gradient_norm() over hosts, with the bits of one process that has the parts of all of them.
 *
 * A norm adds up squares of sums of rows, and the order of additions is the order of parts, which are on all
 * hosts. So each host sends its touches to all others, but of the gradients each gets some columns alone: host h
 * of H the columns from h * dim / H on, of every table. It sums their squares over all rows. The sums come back to
 * all hosts, which add up the columns in their order. The gradients of a host so travel once.
 *
 * hosts_enter() lets one call in at a time. All memory but h->answer lives for one call.
 */
#include <stdlib.h>
#include <string.h>

#include "collective.h"
#include "segment.h"
#include "session/norm.h"

#define PHASE "gradient norm"

/* Begins the touches of one feature of a part; touches, gradients and holders follow. */
struct norm_head {
	uint64_t touches, samples;
	uint32_t feature, given, held, unused;
};

/* A touch of another host: @sample counts rows of its gradients. */
struct norm_touch {
	uint64_t row, place, sample;
	double gain;
};

/* Touches of this host, of one feature of a part. */
struct norm_list {
	uint32_t feature;
	size_t count, samples;
	struct touch *touches;
	const float *gradient;
	const uint32_t *holders;
};

/**
 * struct norming - a call
 * @lists: [@list_count], by table, then by part and feature
 * @squares: [columns of all tables]: sums of squares
 */
struct norming {
	struct hosts *h;
	const struct norm_call *call;
	struct norm_list *lists;
	size_t list_count;
	double *squares;
};

static uint64_t norm_first_column(const struct hosts *h, const struct table *t, uint32_t host)
{
	return (uint64_t)t->dim * host / h->hosts;
}

static uint64_t norm_columns_of(const struct hosts *h, const struct table *t, uint32_t host)
{
	return norm_first_column(h, t, host + 1) - norm_first_column(h, t, host);
}

/* -- what this host sends -- */

static int list_touches(struct norming *n, size_t part, uint32_t f)
{
	const struct embeng *e = n->h->e;
	const struct given_gradients *given = &n->call->parts[part];
	const size_t most = touches_most(given->b, f);
	struct norm_list *list = &n->lists[n->list_count++];

	*list = (struct norm_list){
		.feature = f,
		.samples = (size_t)(given->elements[f] /
				    (uint64_t)e->model->tables[e->model->features[f].table].dim),
		.touches = reallocarray(NULL, most + 1, sizeof(*list->touches)),
		.gradient = session_gradient(e, given->g, f),
		.holders = norm_holders(n->call, part, f),
	};
	if (!list->touches)
		return fail(-ENOMEM, "embeng_gradient_norm: no memory for %zu ids", most);
	return touches_list(given->b, f, list->gradient, list->holders, list->touches,
			    &list->count);
}

static int list_parts(struct norming *n)
{
	const struct embeng_model *m = n->h->e->model;
	int ret = 0;

	n->lists = calloc(n->call->count * m->feature_count + 1, sizeof(*n->lists));
	if (!n->lists)
		return fail(-ENOMEM, "embeng_gradient_norm: no memory for %zu batches",
			    n->call->count);
	for (size_t t = 0; t < m->table_count; t++)
		for (size_t k = 0; k < n->call->count; k++)
			for (uint32_t f = 0; !ret && f < m->feature_count; f++)
				if (norm_touches(n->call, k, f, t))
					ret = list_touches(n, k, f);
	return ret;
}

static const struct table *table_of_norm(const struct norming *n, uint32_t feature)
{
	const struct embeng_model *m = n->h->e->model;

	return &m->tables[m->features[feature].table];
}

static uint64_t bytes_of_list(const struct norming *n, const struct norm_list *list, uint32_t host)
{
	const uint64_t columns = norm_columns_of(n->h, table_of_norm(n, list->feature), host);
	const uint64_t numbers = segment_pad(4 * list->samples * columns);

	if (!columns)
		return 0;
	return sizeof(struct norm_head) + list->count * sizeof(struct norm_touch) +
	       (list->gradient ? numbers : 0) + (list->holders ? numbers : 0);
}

/* Some columns of rows of numbers of four bytes. Return: behind them. */
static char *put_columns(char *to, const void *from, uint64_t rows, uint64_t dim, uint64_t first,
			 uint64_t columns)
{
	const char *at = from;

	for (uint64_t k = 0; k < rows; k++)
		memcpy(to + 4 * k * columns, at + 4 * (k * dim + first), 4 * columns);
	memset(to + 4 * rows * columns, 0, segment_pad(4 * rows * columns) - 4 * rows * columns);
	return to + segment_pad(4 * rows * columns);
}

static char *put_list(const struct norming *n, const struct norm_list *list, uint32_t host,
		      char *to)
{
	const struct table *t = table_of_norm(n, list->feature);
	const uint64_t dim = (uint64_t)t->dim, first = norm_first_column(n->h, t, host);
	const uint64_t columns = norm_columns_of(n->h, t, host);
	const struct norm_head head = {.touches = list->count,
				       .samples = list->samples,
				       .feature = list->feature,
				       .given = list->gradient != NULL,
				       .held = list->holders != NULL};

	if (!columns)
		return to;
	memcpy(to, &head, sizeof(head));
	to += sizeof(head);
	for (size_t i = 0; i < list->count; i++, to += sizeof(struct norm_touch)) {
		const struct touch *touch = &list->touches[i];
		const struct norm_touch sent = {
			.row = touch->row,
			.place = touch->place,
			.sample = list->gradient
					  ? (uint64_t)(touch->gradient - list->gradient) / dim
					  : 0,
			.gain = touch->gain};

		memcpy(to, &sent, sizeof(sent));
	}
	if (list->gradient)
		to = put_columns(to, list->gradient, list->samples, dim, first, columns);
	if (list->holders)
		to = put_columns(to, list->holders, list->samples, dim, first, columns);
	return to;
}

static int pack_lists(struct norming *n)
{
	struct hosts *h = n->h;
	struct embeng_bytes *send = h->send[CHANNEL_CONTROL];
	uint64_t all = 0;
	char *to;
	int ret;

	for (uint32_t i = 0; i < h->hosts; i++) {
		send[i].bytes = 0;
		for (size_t k = 0; k < n->list_count; k++)
			send[i].bytes += bytes_of_list(n, &n->lists[k], i);
		all += send[i].bytes;
	}
	ret = memory_need(&h->answer, all);
	if (ret)
		return ret;
	to = h->answer.data;
	for (uint32_t i = 0; i < h->hosts; i++) {
		send[i].data = to;
		for (size_t k = 0; k < n->list_count; k++)
			to = put_list(n, &n->lists[k], i, to);
	}
	return 0;
}

/* -- what came, of one table -- */

/* Touches of a feature of another host's part, and its numbers, in this host's columns. */
struct norm_part {
	struct norm_head head;
	const struct norm_touch *touches;
	const float *gradient;
	const uint32_t *holders;
};

/* The next feature of a message, if it is of @table. Return: 1, 0: there is none, -EBADMSG. */
static int next_part(const struct norming *n, struct reading *message, size_t table, uint32_t host,
		     struct norm_part *part)
{
	const struct embeng_model *m = n->h->e->model;
	const uint64_t columns = norm_columns_of(n->h, &m->tables[table], n->h->rank);
	struct reading rest = *message;
	const struct norm_head *head = rest.left ? read_next(&rest, sizeof(*head)) : NULL;
	uint64_t touches, numbers;

	if (!message->left)
		return 0;
	if (!head || head->feature >= m->feature_count)
		return segment_bad(n->h, host, "gradients for a norm");
	if ((size_t)m->features[head->feature].table != table)
		return 0;
	if (__builtin_mul_overflow(head->touches, sizeof(struct norm_touch), &touches) ||
	    __builtin_mul_overflow(head->samples, 4 * columns, &numbers))
		return segment_bad(n->h, host, "gradients for a norm");
	*part = (struct norm_part){.head = *head, .touches = read_next(&rest, touches)};
	part->gradient = head->given ? read_next(&rest, numbers) : NULL;
	part->holders = head->held ? read_next(&rest, numbers) : NULL;
	if (!part->touches || (head->given && !part->gradient) || (head->held && !part->holders))
		return segment_bad(n->h, host, "gradients for a norm");
	*message = rest;
	return 1;
}

static int take_touches(const struct norming *n, const struct norm_part *part, size_t table,
			uint32_t host, struct touch *to)
{
	const struct table *t = &n->h->e->model->tables[table];
	const uint64_t columns = norm_columns_of(n->h, t, n->h->rank);

	for (uint64_t i = 0; i < part->head.touches; i++) {
		const struct norm_touch *from = &part->touches[i];

		if (from->row >= (uint64_t)t->rows ||
		    ((part->gradient || part->holders) && from->sample >= part->head.samples))
			return segment_bad(n->h, host, "gradients for a norm");
		to[i] = (struct touch){
			.row = from->row,
			.place = from->place,
			.gain = from->gain,
			.gradient = part->gradient ? part->gradient + from->sample * columns : NULL,
			.holders = part->holders ? part->holders + from->sample * columns : NULL,
		};
	}
	return 0;
}

/* Counts the touches of a table with @to NULL, which moves no message on; or takes them. */
static int walk_table(const struct norming *n, struct reading *messages, size_t table,
		      struct touch *to, size_t *count)
{
	struct norm_part part = {0};
	int ret = 0;

	*count = 0;
	for (uint32_t i = 0; ret >= 0 && i < n->h->hosts; i++) {
		struct reading message = messages[i];

		while ((ret = next_part(n, &message, table, i, &part)) > 0) {
			if (to && take_touches(n, &part, table, i, to + *count))
				return -EBADMSG;
			*count += part.head.touches;
		}
		if (to)
			messages[i] = message;
	}
	return ret < 0 ? ret : 0;
}

/* @squares: out: [columns of this host] */
static int square_columns(const struct norming *n, struct reading *messages, size_t table,
			  double *squares)
{
	const struct table *t = &n->h->e->model->tables[table];
	const size_t columns = (size_t)norm_columns_of(n->h, t, n->h->rank);
	struct touch *touches;
	double *sums;
	size_t count;
	int ret = walk_table(n, messages, table, NULL, &count);

	if (ret)
		return ret;
	touches = reallocarray(NULL, count + 1, 2 * sizeof(*touches));
	sums = reallocarray(NULL, columns + 1, 2 * sizeof(*sums));
	if (!touches || !sums)
		ret = fail(-ENOMEM, "embeng_gradient_norm: no memory for the %zu ids of table %s",
			   count, t->name);
	ret = ret ? ret : walk_table(n, messages, table, touches, &count);
	ret = ret ? ret : norm_add_columns(t, touches, count, columns, sums);
	if (!ret)
		memcpy(squares, sums + columns, columns * sizeof(*squares));
	free(touches);
	free(sums);
	return ret;
}

/* Sums of this host's columns, of all tables behind each other. */
static int square_received(struct norming *n, size_t *count)
{
	const struct embeng_model *m = n->h->e->model;
	struct reading *messages = calloc(n->h->hosts, sizeof(*messages));
	int ret = messages ? 0 : fail(-ENOMEM, "embeng_gradient_norm: no memory");

	*count = 0;
	for (uint32_t i = 0; !ret && i < n->h->hosts; i++)
		messages[i] = (struct reading){n->h->received[CHANNEL_CONTROL][i].data,
					       n->h->received[CHANNEL_CONTROL][i].bytes};
	for (size_t t = 0; !ret && t < m->table_count; t++) {
		const size_t columns = (size_t)norm_columns_of(n->h, &m->tables[t], n->h->rank);

		ret = columns ? square_columns(n, messages, t, n->squares + *count) : 0;
		*count += columns;
	}
	free(messages);
	return ret;
}

/* -- all hosts' columns -- */

/* A host's faults and number of parts; sums of its columns follow. */
struct norm_result {
	uint64_t parts;
	struct norm_fault fault;
};

static int take_results(const struct norming *n, struct norm_fault *fault)
{
	uint64_t before = 0;

	*fault = (struct norm_fault){0};
	for (uint32_t i = 0; i < n->h->hosts; i++) {
		const struct embeng_bytes *came = &n->h->received[CHANNEL_CONTROL][i];
		struct norm_result result;

		if (came->bytes < sizeof(result))
			return segment_bad(n->h, i, "norms");
		memcpy(&result, came->data, sizeof(result));
		if (result.fault.found && !fault->found) {
			*fault = result.fault;
			fault->part += before;
		}
		before += result.parts;
	}
	return 0;
}

/* Adds up the columns of each table, in their order. */
static int sum_results(const struct norming *n, double *squares)
{
	const struct embeng_model *m = n->h->e->model;
	uint64_t *at = calloc(n->h->hosts, sizeof(*at));
	int ret = at ? 0 : fail(-ENOMEM, "embeng_gradient_norm: no memory");

	for (size_t t = 0; !ret && t < m->table_count; t++) {
		double *to = n->squares;

		for (uint32_t i = 0; !ret && i < n->h->hosts; i++) {
			const struct embeng_bytes *came = &n->h->received[CHANNEL_CONTROL][i];
			const uint64_t bytes = norm_columns_of(n->h, &m->tables[t], i) *
					       sizeof(*to);
			const uint64_t from = sizeof(struct norm_result) + at[i];

			if (came->bytes < from + bytes)
				ret = segment_bad(n->h, i, "norms");
			else if (bytes)
				memcpy(to, (const char *)came->data + from, bytes);
			at[i] += bytes;
			to += bytes / sizeof(*to);
		}
		squares[t] = ret ? 0 : norm_sum_columns(n->squares, (size_t)m->tables[t].dim);
	}
	free(at);
	return ret;
}

static int tell_results(struct norming *n, int status, size_t count)
{
	struct hosts *h = n->h;
	const struct norm_result own = {.parts = n->call->count, .fault = norm_find_fault(n->call)};
	const uint64_t bytes = sizeof(own) + count * sizeof(*n->squares);
	int ret = status ? status : memory_need(&h->answer, bytes);

	for (uint32_t i = 0; !ret && i < h->hosts; i++)
		h->send[CHANNEL_CONTROL][i] = (struct embeng_bytes){h->answer.data, bytes};
	if (!ret) {
		memcpy(h->answer.data, &own, sizeof(own));
		memcpy(h->answer.data + sizeof(own), n->squares, count * sizeof(*n->squares));
	}
	return hosts_control(h->e, PHASE, ret, h->send[CHANNEL_CONTROL],
			     h->received[CHANNEL_CONTROL]);
}

static int run_norm(struct norming *n, int status, double *squares, struct norm_fault *fault)
{
	const struct embeng_model *m = n->h->e->model;
	size_t floats = 1, count = 0;
	int ret = status;

	for (size_t t = 0; t < m->table_count; t++)
		floats += (size_t)m->tables[t].dim;
	n->squares = calloc(floats, sizeof(*n->squares));
	if (!ret && !n->squares)
		ret = fail(-ENOMEM, "embeng_gradient_norm: no memory for %zu columns", floats);
	ret = ret ? ret : list_parts(n);
	ret = ret ? ret : pack_lists(n);
	ret = hosts_control(n->h->e, PHASE, ret, n->h->send[CHANNEL_CONTROL],
			    n->h->received[CHANNEL_CONTROL]);
	if (ret)
		return ret;
	ret = square_received(n, &count);
	ret = tell_results(n, ret, count);
	ret = ret ? ret : take_results(n, fault);
	return ret ? ret : sum_results(n, squares);
}

int hosts_norm(const struct norm_call *call, int status, double *squares, struct norm_fault *fault)
{
	struct norming n = {.h = call->e->hosts, .call = call};
	int ret = hosts_enter_with(call->e, status);

	if (ret)
		return ret;
	ret = run_norm(&n, status, squares, fault);
	hosts_leave(call->e);
	for (size_t i = 0; i < n.list_count; i++)
		free(n.lists[i].touches);
	free(n.lists);
	free(n.squares);
	return ret;
}
