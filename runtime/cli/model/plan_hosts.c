// SPDX-License-Identifier: MIT
/*
 * Says what a model costs on several hosts: a block for each table with the exchanges that keep the bits,
 * then a step of all tables, and the memory of the host that needs the most. It is apart from
 * plan_report.c, which reports the bytes of one process.
 *
 * Nothing is kept; only stdout is written.
 */
#include <inttypes.h>
#include <stdio.h>

#include "../frame/exit.h"
#include "../frame/terminal.h"
#include "../frame/transfer.h"
#include "plan.h"

#define PARTS_SHOWN 8

static const char *const exchanges[] = {
	[EMBENG_EXCHANGE_NONE] = "none",
	[EMBENG_EXCHANGE_TABLE] = "whole table",
	[EMBENG_EXCHANGE_COLUMN] = "columns",
	[EMBENG_EXCHANGE_ROWS] = "rows",
	[EMBENG_EXCHANGE_ROWS_GRADIENTS] = "rows + gradients",
};

static const char *plural_ending(uint64_t count)
{
	return count == 1 ? "" : "s";
}

/* -- tables -------------------------------------------------------------- */

static void print_popularity(const struct embeng_hosts_table *t)
{
	if (t->counted)
		printf("%zu rows as the profile counts them, the others by a Zipf law of %.2f",
		       t->counted, t->zipf);
	else if (t->zipf > 0)
		printf("rows asked for by a Zipf law of %.2f", t->zipf);
	else
		printf("rows asked for equally often");
}

static void print_heading(const struct plan_report *r, size_t table)
{
	struct embeng_table_config c = EMBENG_INIT(embeng_table_config);
	const struct embeng_hosts_table *t = &r->hosts->tables[table];

	embeng_model_get_table(r->model, table, &c);
	terminal_put(c.name);
	printf(": %" PRId64 " x %" PRId64 "\n", c.vocabulary_size, c.dim);
	printf("  a replica's batches have %" PRIu64 " id%s, of about %" PRIu64
	       " different rows\n  (",
	       t->ids, plural_ending(t->ids), t->rows);
	print_popularity(t);
	printf(")\n");
}

static void print_cost(const struct plan_report *r, const struct embeng_exchange_cost *c,
		       const struct embeng_hosts_table *t)
{
	const uint64_t all = c->ids + c->forward + c->backward;
	char sent[BYTES_TEXT], link[BYTES_TEXT];

	if (!c->allowed) {
		printf("  %-16s  not allowed: %s\n", exchanges[c->kind], c->why_not);
		return;
	}
	printf("  %-16s  %12s  %12s  %9.3f  %9.2f%s\n", exchanges[c->kind],
	       bytes_text(all / r->hosts->hosts, sent), bytes_text(c->link_bytes, link),
	       1e3 * c->seconds, c->balance, c == &t->costs[t->chosen] ? "  chosen" : "");
}

/* The next best, for the reason of a choice; NULL: no other is allowed. */
static const struct embeng_exchange_cost *find_next(const struct embeng_hosts_table *t)
{
	const struct embeng_exchange_cost *next = NULL;

	for (unsigned int i = 0; i < EMBENG_EXCHANGE_CHOICES; i++) {
		const struct embeng_exchange_cost *c = &t->costs[i];

		if (i != t->chosen && c->allowed && (!next || c->link_bytes < next->link_bytes))
			next = c;
	}
	return next;
}

static void print_choice_reason(const struct plan_report *r, const struct embeng_hosts_table *t)
{
	const struct embeng_exchange_cost *c = &t->costs[t->chosen], *next = find_next(t);
	const char *words = exchanges[c->kind];

	if (r->call->hosts.exchange)
		printf("  chosen: %s, %s --exchange\n", words,
		       c->kind == r->call->hosts.exchange || c->kind == EMBENG_EXCHANGE_COLUMN
			       ? "by"
			       : "since it does not allow that of");
	else if (t->too_large)
		printf("  chosen: %s, since the table is larger than a host's share and cannot be "
		       "cut\n"
		       "  by columns: %s\n",
		       words, t->whole_because);
	else if (!next)
		printf("  chosen: %s, since no other exchange keeps the bits of one process\n",
		       words);
	else if (next->link_bytes == c->link_bytes)
		printf("  chosen: %s; %s has as many bytes on a link\n", words,
		       exchanges[next->kind]);
	else
		printf("  chosen: %s, by bytes on a link; %s has %.1f times as many\n", words,
		       exchanges[next->kind], (double)next->link_bytes / (double)c->link_bytes);
}

static void print_owners(const struct plan_report *r, const struct embeng_hosts_table *t)
{
	const struct embeng_hosts_part *parts = &r->hosts->parts[t->first_part];

	if (t->chosen) {
		printf("  most over mean of rows: %.2f if host h has rows h, h + %" PRIu32
		       ", ... (MOD),\n  %.2f if it has successive rows (DIV)\n",
		       t->costs[t->chosen].balance, r->hosts->hosts, t->balance_div);
		return;
	}
	if (t->part_count == 1) {
		printf("  owner: host %" PRIu32 "\n", parts->host);
		if (t->whole_because)
			printf("  it stays whole: %s\n", t->whole_because);
		return;
	}
	for (size_t i = 0; i < t->part_count && i < PARTS_SHOWN; i++)
		printf("  columns %" PRIu32 " to %" PRIu32 ": host %" PRIu32 "\n",
		       parts[i].first_column, parts[i].first_column + parts[i].columns - 1,
		       parts[i].host);
	if (t->part_count > PARTS_SHOWN)
		printf("  and %zu parts more; --json lists all\n", t->part_count - PARTS_SHOWN);
}

static void print_table_costs(const struct plan_report *r, size_t table)
{
	const struct embeng_hosts_table *t = &r->hosts->tables[table];

	print_heading(r, table);
	printf("  %-16s  %12s  %12s  %9s  %9s\n", "EXCHANGE", "A HOST SENDS", "ON A LINK", "MS",
	       "MOST/MEAN");
	for (unsigned int i = 0; i < EMBENG_EXCHANGE_CHOICES; i++)
		print_cost(r, &t->costs[i], t);
	print_choice_reason(r, t);
	print_owners(r, t);
	printf("\n");
}

/* -- all tables ---------------------------------------------------------- */

static void print_whole_step(const struct embeng_hosts_plan *p)
{
	char all[BYTES_TEXT], mean[BYTES_TEXT];

	printf("All hosts send %s in %" PRIu64 " messages a step; the mean is %s in %" PRIu64 ".\n"
	       "The most over the mean of the bytes on a link is %.2f.\n",
	       bytes_text(p->sent, all), p->messages, bytes_text(p->sent / p->hosts, mean),
	       p->messages / p->hosts, p->balance);
	printf("The exchanges of a step take %.3f ms, one after another. The engines and the\n"
	       "rest of the model are not in it.\n",
	       1e3 * p->seconds);
	printf("Assumptions: links of %g Gb/s each way, of which large messages reach %.0f %%;\n"
	       "%.1f us for a message and %.0f us for an exchange. None of them was measured.\n",
	       p->link_bits / 1e9, 100 * p->link_share, 1e6 * p->message_seconds,
	       1e6 * p->exchange_seconds);
}

static void print_bytes_of(const char *what, uint64_t bytes)
{
	char text[BYTES_TEXT];

	printf("  %-40s  %20" PRIu64 "  %10s\n", what, bytes, bytes_text(bytes, text));
}

static void print_memory(const struct plan_report *r)
{
	const struct embeng_hosts_plan *p = r->hosts;
	const struct embeng_hosts_host *h = &p->each[p->fullest];

	printf("\nMemory of host %" PRIu32 ", which needs the most (most/mean %.2f):\n", p->fullest,
	       p->mean_bytes ? (double)p->most_bytes / (double)p->mean_bytes : 1.0);
	print_bytes_of("tables and slots", h->table_bytes);
	print_bytes_of("batches, activations, gradients", h->batch_bytes);
	print_bytes_of("rows in flight", h->row_bytes);
	print_bytes_of("messages", h->message_bytes);
	print_bytes_of("total, without the engine's own", p->most_bytes);
	printf("\n");
	plan_say_limits(r);
	plan_say_fit("table memory of the device", plan_most_tables(p), r->device->table_memory);
	plan_say_fit("available memory of the machine", p->most_bytes, r->available);
}

static void print_hosts(const struct plan_report *r)
{
	const struct embeng_hosts_plan *p = r->hosts;

	printf("%" PRIu32 " host%s, %" PRIu32 " replica%s, %" PRId64
	       " samples in a replica's batch\n\n",
	       p->hosts, plural_ending(p->hosts), p->replicas, plural_ending(p->replicas),
	       r->call->options.batch_size ? r->call->options.batch_size : 1024);
	for (size_t t = 0; t < p->table_count && p->hosts > 1; t++)
		print_table_costs(r, t);
	if (p->hosts > 1)
		print_whole_step(p);
	else
		printf("One host has all tables: nothing travels.\n");
	print_memory(r);
}

int plan_say_hosts(const struct plan_report *r, const struct output *out)
{
	const bool fits = plan_keeps_limits(r) &&
			  plan_most_tables(r->hosts) <= r->device->table_memory &&
			  r->hosts->most_bytes <= r->available;
	int code = CLI_OK;

	if (out->json)
		code = plan_emit_hosts(r, out);
	else
		print_hosts(r);
	return code ? code : fits ? CLI_OK : CLI_CHECK;
}
