// SPDX-License-Identifier: MIT
/*
 * The document of a plan of hosts, docs/schemas/embeng.plan-1.json. It is a file because it has more than
 * the report in words: every part of every table, and every host.
 *
 * The document is freed when it is printed.
 */
#include "plan.h"

static const char *const names[] = {
	[EMBENG_EXCHANGE_NONE] = "none",
	[EMBENG_EXCHANGE_TABLE] = "table",
	[EMBENG_EXCHANGE_COLUMN] = "column",
	[EMBENG_EXCHANGE_ROWS] = "rows",
	[EMBENG_EXCHANGE_ROWS_GRADIENTS] = "rows_gradients",
};

static struct json_object *link_document(const struct embeng_hosts_plan *p)
{
	struct json_object *o = json_object_new_object();

	json_add_float(o, "bits_per_second", p->link_bits);
	json_add_float(o, "share", p->link_share);
	json_add_float(o, "message_us", 1e6 * p->message_seconds);
	json_add_float(o, "exchange_us", 1e6 * p->exchange_seconds);
	return o;
}

static struct json_object *cost_document(const struct plan_report *r,
					 const struct embeng_exchange_cost *c)
{
	struct json_object *o = json_object_new_object();

	json_add_text(o, "exchange", names[c->kind]);
	json_object_object_add(o, "allowed", json_object_new_boolean(c->allowed));
	json_add_text(o, "why_not", c->why_not);
	json_add_number(o, "ids_bytes", c->ids);
	json_add_number(o, "forward_bytes", c->forward);
	json_add_number(o, "backward_bytes", c->backward);
	json_add_number(o, "sent_bytes", (c->ids + c->forward + c->backward) / r->hosts->hosts);
	json_add_number(o, "link_bytes", c->link_bytes);
	json_add_float(o, "most_over_mean", c->balance);
	json_add_float(o, "ms", 1e3 * c->seconds);
	return o;
}

static struct json_object *part_document(const struct embeng_hosts_part *part)
{
	struct json_object *o = json_object_new_object();

	json_add_number(o, "host", part->host);
	json_add_number(o, "first_column", part->first_column);
	json_add_number(o, "columns", part->columns);
	return o;
}

static struct json_object *table_document(const struct plan_report *r, size_t table)
{
	const struct embeng_hosts_table *t = &r->hosts->tables[table];
	struct json_object *o = json_object_new_object(), *costs = json_object_new_array(),
			   *parts = json_object_new_array();

	json_add_text(o, "table", embeng_model_table_name(r->model, table));
	json_add_number(o, "ids", t->ids);
	json_add_number(o, "rows", t->rows);
	json_add_text(o, "popularity", t->counted ? "profile" : t->zipf > 0 ? "zipf" : "uniform");
	json_add_float(o, "zipf", t->zipf);
	json_add_number(o, "counted_rows", t->counted);
	json_add_text(o, "chosen", names[t->costs[t->chosen].kind]);
	json_add_text(o, "whole_because", t->whole_because);
	json_object_object_add(o, "too_large", json_object_new_boolean(t->too_large));
	json_add_float(o, "most_over_mean_div", t->balance_div);
	for (unsigned int i = 0; i < EMBENG_EXCHANGE_CHOICES; i++)
		json_object_array_add(costs, cost_document(r, &t->costs[i]));
	json_object_object_add(o, "exchanges", costs);
	for (size_t i = 0; i < t->part_count; i++)
		json_object_array_add(parts, part_document(&r->hosts->parts[t->first_part + i]));
	json_object_object_add(o, "parts", parts);
	return o;
}

static struct json_object *host_document(const struct embeng_hosts_host *h)
{
	struct json_object *o = json_object_new_object();

	json_add_number(o, "replicas", h->replicas);
	json_add_number(o, "table_bytes", h->table_bytes);
	json_add_number(o, "batch_bytes", h->batch_bytes);
	json_add_number(o, "row_bytes", h->row_bytes);
	json_add_number(o, "message_bytes", h->message_bytes);
	json_add_number(o, "sent_bytes", h->sent);
	json_add_number(o, "received_bytes", h->received);
	json_add_number(o, "messages", h->messages);
	return o;
}

int plan_emit_hosts(const struct plan_report *r, const struct output *out)
{
	struct json_object *document = json_document(out), *tables = json_object_new_array(),
			   *hosts = json_object_new_array();
	const struct embeng_hosts_plan *p = r->hosts;

	json_add_number(document, "hosts", p->hosts);
	json_add_number(document, "replicas", p->replicas);
	json_object_object_add(document, "link", link_document(p));
	for (size_t t = 0; t < p->table_count; t++)
		json_object_array_add(tables, table_document(r, t));
	json_object_object_add(document, "tables", tables);
	for (uint32_t h = 0; h < p->hosts; h++)
		json_object_array_add(hosts, host_document(&p->each[h]));
	json_object_object_add(document, "each_host", hosts);
	json_add_number(document, "sent_bytes", p->sent);
	json_add_number(document, "messages", p->messages);
	json_add_float(document, "most_over_mean", p->balance);
	json_add_float(document, "ms", 1e3 * p->seconds);
	json_add_number(document, "fullest_host", p->fullest);
	json_add_number(document, "most_bytes", p->most_bytes);
	json_add_number(document, "mean_bytes", p->mean_bytes);
	plan_add_fit(document, r, plan_most_tables(p), p->most_bytes);
	return json_emit(document);
}
