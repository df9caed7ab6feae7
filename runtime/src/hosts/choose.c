// SPDX-License-Identifier: MIT
/*
 * Chooses the exchange of each table when a handle over hosts is opened. An option of the device's name comes
 * first. Without one the bytes of a step decide, as embeng_model_plan_hosts() counts them, so that plan and
 * handle agree. They are known only where the model tells how large the batches of a table are; other
 * tables are whole, or cut by columns.
 *
 * Each host chooses alone, and the hosts compare what came out. One thread opens the handle; no lock is needed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "choose.h"
#include "model/shape.h"

static const char *const exchange_names[] = {
	[EMBENG_EXCHANGE_TABLE] = "table",
	[EMBENG_EXCHANGE_COLUMN] = "columns",
	[EMBENG_EXCHANGE_ROWS] = "rows",
	[EMBENG_EXCHANGE_ROWS_GRADIENTS] = "rows+grads",
};

/* -- by name ------------------------------------------------------------- */

static int refuse_named(const struct hosts *h, size_t table, enum embeng_exchange_kind kind)
{
	const struct table *t = &h->e->model->tables[table];
	const char *why = place_refuse_replicas(h->e->model, kind);

	if (kind == EMBENG_EXCHANGE_ROWS)
		why = place_refuse_sums(h->e->model, table);
	if (kind == EMBENG_EXCHANGE_ROWS_GRADIENTS)
		why = place_refuse_gradients(h->e->model, table);
	if (!why && kind == EMBENG_EXCHANGE_COLUMN &&
	    place_is_elementwise(h->e->model, (int)table, &why) && t->dim < 2 * PLACE_COLUMNS_LEAST)
		why = "it has fewer than 32 columns, and a part has at least 16";
	if (!why)
		return 0;
	return fail(-EINVAL, "table %s: the option exchange:%s=%s of the device is not allowed: %s",
		    t->name, t->name, exchange_names[kind], why);
}

static int take_named(struct hosts *h, const struct name *name, enum embeng_exchange_kind *each)
{
	const struct embeng_model *m = h->e->model;
	int ret = 0;

	for (size_t t = 0; t < m->table_count; t++) {
		each[t] = name->exchange;
		h->choices[t].named = name->exchange != 0;
		h->choices[t].refused = name->exchange &&
					(place_refuse_replicas(m, name->exchange) ||
					 (name->exchange >= EMBENG_EXCHANGE_ROWS &&
					  !place_can_spread(m, t, name->exchange)));
	}
	for (size_t i = 0; !ret && i < name->exchange_count; i++) {
		const struct name_exchange *named = &name->exchanges[i];
		size_t t = 0;

		while (t < m->table_count && strcmp(m->tables[t].name, named->table))
			t++;
		if (t == m->table_count)
			return fail(-ENOENT,
				    "the device's option exchange:%s=%s names a table that the "
				    "model does not have",
				    named->table, exchange_names[named->kind]);
		each[t] = named->kind;
		h->choices[t] = (struct host_choice){.named = true};
		ret = refuse_named(h, t, named->kind);
	}
	return ret;
}

/* -- by bytes ------------------------------------------------------------ */

static bool tells_batches(const struct feature *f)
{
	const struct embeng_shape known = shape_known(f);
	bool samples = f->max_samples || known.rank;

	for (size_t i = 0; !f->max_samples && i < known.rank; i++)
		samples &= known.dims[i] > 0;
	return samples && (f->max_ids || f->max_sequence_length);
}

/* The model says how large the batches of all features of the table are. */
static bool tells_table(const struct embeng_model *m, size_t table)
{
	size_t count = 0;

	for (size_t f = 0; f < m->feature_count; f++) {
		if (m->features[f].table != (int)table)
			continue;
		if (!tells_batches(&m->features[f]))
			return false;
		count++;
	}
	return count > 0;
}

static void note_costs(const struct embeng_hosts_table *planned, struct host_choice *choice)
{
	const struct embeng_exchange_cost *chosen = &planned->costs[planned->chosen];

	choice->planned = true;
	choice->bytes = chosen->link_bytes;
	choice->next = 0;
	for (unsigned int i = 0; i < EMBENG_EXCHANGE_CHOICES; i++) {
		const struct embeng_exchange_cost *c = &planned->costs[i];

		if (c != chosen && c->allowed && (!choice->next || c->link_bytes < choice->next))
			choice->next = c->link_bytes;
	}
}

static void take_planned(struct hosts *h, const struct embeng_hosts_plan *plan,
			 enum embeng_exchange_kind *each)
{
	for (size_t t = 0; t < plan->table_count; t++) {
		const struct embeng_hosts_table *planned = &plan->tables[t];

		if (h->choices[t].named || !tells_table(h->e->model, t))
			continue;
		if (!planned->too_large)
			note_costs(planned, &h->choices[t]);
		each[t] = planned->costs[planned->chosen].kind;
	}
}

/* Batches so large that no plan counts their bytes leave tables as they are without one. */
static int plan_exchanges(struct hosts *h, enum embeng_exchange_kind *each)
{
	struct embeng_hosts_plan *plan = NULL;
	int ret = embeng_model_plan_hosts(
		h->e->model, &EMBENG_INIT(embeng_hosts_options, .hosts = h->hosts), &plan);

	if (!ret)
		take_planned(h, plan, each);
	embeng_hosts_plan_free(plan);
	return ret == -ERANGE ? 0 : ret;
}

/* -- both ---------------------------------------------------------------- */

static bool lacks_choice(const struct hosts *h)
{
	for (size_t t = 0; t < h->e->model->table_count; t++)
		if (!h->choices[t].named && tells_table(h->e->model, t))
			return true;
	return false;
}

/* First the parts of tables as in a plan; then those are spread for which rows cost less. */
static int place_chosen(struct hosts *h, const struct name *name, enum embeng_exchange_kind *each)
{
	struct place_wish wish = h->wish;
	int ret = take_named(h, name, each);

	if (name->exchange_count)
		wish.each = each;
	ret = ret ? ret : place_model(h->e->model, h->hosts, &wish, &h->place);
	if (ret || !lacks_choice(h))
		return ret;
	ret = plan_exchanges(h, each);
	return ret ? ret : placement_spread(&h->place, h->e->model, each, h->wish.sharding);
}

int choose_exchanges(struct hosts *h, const struct name *name)
{
	const size_t tables = h->e->model->table_count;
	enum embeng_exchange_kind *each = calloc(tables + 1, sizeof(*each));
	int ret;

	h->choices = calloc(tables + 1, sizeof(*h->choices));
	ret = each && h->choices ? place_chosen(h, name, each)
				 : fail(-ENOMEM, "no memory to distribute tables");
	free(each);
	return ret;
}

/* -- for others ---------------------------------------------------------- */

static uint64_t digest_number(uint64_t digest, uint64_t number)
{
	for (int i = 0; i < 8; i++)
		digest = (digest ^ (number >> 8 * i & 255)) * 0x100000001b3u;
	return digest;
}

#define DIGEST_OF_NOTHING 0xcbf29ce484222325u

static uint64_t digest_float(uint64_t digest, float number)
{
	return digest_number(digest, bits(number));
}

static uint64_t digest_text(uint64_t digest, const char *text)
{
	for (; *text; text++)
		digest = digest_number(digest, (unsigned char)*text);
	return digest_number(digest, 256);
}

static uint64_t digest_initializer(uint64_t digest, const struct embeng_initializer *i)
{
	digest = digest_number(digest, (uint64_t)i->kind);
	digest = digest_float(digest_float(digest, i->a), i->b);
	return digest_number(digest, i->seed);
}

static uint64_t digest_schedule(uint64_t digest, const struct model_schedule *m)
{
	const struct embeng_schedule *s = &m->schedule;
	const uint64_t numbers[] = {
		m->rate,  s->kind,	     s->decay_steps,  s->staircase,
		s->cycle, s->boundary_count, s->warmup_steps, s->starts_after_warmup};
	const float floats[] = {s->learning_rate, s->decay_rate, s->end_learning_rate,
				s->power,	  s->alpha,	 s->warmup_learning_rate};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		digest = digest_number(digest, numbers[i]);
	for (size_t i = 0; i < sizeof(floats) / sizeof(*floats); i++)
		digest = digest_float(digest, floats[i]);
	for (size_t i = 0; i < s->boundary_count; i++)
		digest = digest_number(digest, s->boundaries[i]);
	for (size_t i = 0; s->boundary_count && i <= s->boundary_count; i++)
		digest = digest_float(digest, s->values[i]);
	return digest;
}

void choose_model_digests(const struct embeng_model *model, uint64_t digests[MODEL_DIGESTS])
{
	for (size_t i = 0; i < MODEL_DIGESTS; i++)
		digests[i] = DIGEST_OF_NOTHING;
	for (size_t t = 0; t < model->table_count; t++) {
		const struct table *table = &model->tables[t];
		uint64_t starts = digest_initializer(digests[MODEL_STARTS], &table->initializer);

		for (size_t s = 0; s < table->slot_start_count; s++) {
			starts = digest_text(starts, table->slot_starts[s].slot);
			starts = digest_initializer(starts, &table->slot_starts[s].initializer);
		}
		digests[MODEL_STARTS] = digest_number(starts, table->slot_start_count);
		digests[MODEL_FROZEN] = digest_number(digests[MODEL_FROZEN], table->frozen);
	}
	for (size_t s = 0; s < model->schedule_count; s++)
		digests[MODEL_SCHEDULES] = digest_schedule(digests[MODEL_SCHEDULES],
							   &model->schedules[s]);
}

uint64_t choose_digest(const struct hosts *h)
{
	uint64_t digest = DIGEST_OF_NOTHING;

	for (size_t i = 0; i < h->place.part_count; i++) {
		const struct place_part *part = &h->place.parts[i];

		digest = digest_number(digest, (uint64_t)part->table);
		digest = digest_number(digest, part->kind + (part->gradients ? 16 : 0));
		digest = digest_number(digest, part->host);
		digest = digest_number(digest, part->first_column);
		digest = digest_number(digest, (uint64_t)part->rows.first);
		digest = digest_number(digest, (uint64_t)part->rows.stride);
	}
	return digest;
}

uint64_t choose_named_digest(const struct name *name)
{
	uint64_t digest = DIGEST_OF_NOTHING;

	for (size_t i = 0; i < name->exchange_count; i++) {
		digest = digest_text(digest, name->exchanges[i].table);
		digest = digest_number(digest, name->exchanges[i].kind);
	}
	return digest;
}

static enum embeng_exchange_kind exchange_of(const struct hosts *h, size_t table)
{
	const struct place_part *part = &h->place.parts[h->place.first[table]];

	switch (part->kind) {
	case PLACE_ROWS:
		return part->gradients ? EMBENG_EXCHANGE_ROWS_GRADIENTS : EMBENG_EXCHANGE_ROWS;
	case PLACE_COLUMN:
		return EMBENG_EXCHANGE_COLUMN;
	case PLACE_TABLE:
		break;
	}
	return EMBENG_EXCHANGE_TABLE;
}

int embeng_table_exchange(struct embeng *e, int table)
{
	int ret = session_check(e, "embeng_table_exchange");

	if (ret)
		return ret;
	if (table < 0 || (size_t)table >= e->model->table_count)
		return fail(-ENOENT, "embeng_table_exchange: table %d of %zu", table,
			    e->model->table_count);
	return e->hosts ? exchange_of(e->hosts, (size_t)table) : EMBENG_EXCHANGE_NONE;
}

static void describe_choice(const struct host_choice *c, enum embeng_exchange_kind kind,
			    bool must_spread, char text[static 128])
{
	if (c->refused)
		snprintf(text, 128, "it does not allow the one that an option asks for");
	else if (c->named)
		snprintf(text, 128, "an option asks for it");
	else if (!c->planned && must_spread)
		snprintf(text, 128, "the model has more replicas than a device");
	else if (!c->planned && kind == EMBENG_EXCHANGE_ROWS)
		snprintf(text, 128, "it is larger than a host's share, and columns cannot be cut");
	else if (!c->planned)
		snprintf(text, 128, "the model does not tell how large its batches are");
	else if (!c->next)
		snprintf(text, 128, "the table allows no other");
	else
		snprintf(text, 128,
			 "%" PRIu64 " bytes a step on a link, with the next best %" PRIu64,
			 c->bytes, c->next);
}

void choose_say(const struct hosts *h)
{
	struct embeng *e = h->e;

	for (size_t t = 0; t < e->model->table_count; t++) {
		const size_t first = h->place.first[t], parts = h->place.first[t + 1] - first;
		const enum embeng_exchange_kind kind = exchange_of(h, t);
		char where[64], why[128];

		if (parts > 1)
			snprintf(where, sizeof(where), "on %zu hosts", parts);
		else
			snprintf(where, sizeof(where), "on host %" PRIu32,
				 h->place.parts[first].host);
		describe_choice(&h->choices[t], kind, place_must_spread(e->model), why);
		log_say(&e->log, EMBENG_LOG_INFO, "table %s: exchange=%s, %s: %s",
			e->model->tables[t].name, exchange_names[kind], where, why);
	}
}
