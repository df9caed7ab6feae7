// SPDX-License-Identifier: MIT
/*
 * Plans a model over several hosts: takes the options, has each table's costs computed, and adds up
 * what each owner serves. The costs of a table are in hosts_cost.c, the sums of a host in
 * hosts_sum.c.
 *
 * A plan belongs to the caller until embeng_hosts_plan_free(). The model and the profile are only
 * read; no lock is needed.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/error.h"
#include "embeng/shard.h"
#include "hosts_cost.h"
#include "profile/open.h"

#define LINK_BITS 100e9
#define LINK_SHARE 0.8
#define MESSAGE_SECONDS 1.5e-6
#define EXCHANGE_SECONDS 10e-6

/* -- options ------------------------------------------------------------- */

static int check_link(const struct embeng_hosts_options *o)
{
	if (!(o->link_bits >= 0 && o->link_bits <= 1e18))
		return fail(-ERANGE, "hosts: a link of %g bits a second; allowed are 1 to 1e18",
			    o->link_bits);
	if (!(o->link_share >= 0 && o->link_share <= 1))
		return fail(-ERANGE,
			    "hosts: large messages reach %g of the link; allowed is up to 1",
			    o->link_share);
	if (!(o->message_seconds >= 0 && o->message_seconds <= 1) ||
	    !(o->exchange_seconds >= 0 && o->exchange_seconds <= 1))
		return fail(-ERANGE,
			    "hosts: a message takes %g s and an exchange %g s; allowed is up to 1",
			    o->message_seconds, o->exchange_seconds);
	if (!(o->zipf >= 0 && o->zipf <= POPULARITY_ZIPF_MOST))
		return fail(-ERANGE, "hosts: the exponent %g of a Zipf law; allowed are 0 to %g",
			    o->zipf, POPULARITY_ZIPF_MOST);
	return 0;
}

static int take_hosts_options(struct host_costs *c, const struct embeng_hosts_options *options)
{
	struct embeng_hosts_options *o = &c->options;
	int ret = config_take(o, options, sizeof(*o), "embeng_hosts_options");

	ret = ret ? ret : suppose_options(c->model, o->plan, &c->batches);
	ret = ret ? ret : check_link(o);
	if (ret)
		return ret;
	if (!o->hosts || o->hosts > EMBENG_HOSTS_MOST)
		return fail(-ERANGE, "hosts: %" PRIu32 "; allowed are 1 to %d", o->hosts,
			    EMBENG_HOSTS_MOST);
	if (o->profile && embeng_model_hash(o->profile->model) != embeng_model_hash(c->model))
		return fail(-EINVAL, "hosts: the profile is of another model");
	if ((unsigned int)o->exchange > EMBENG_EXCHANGE_ROWS_GRADIENTS)
		return fail(-EINVAL, "hosts: exchange %u is no enum embeng_exchange_kind",
			    (unsigned int)o->exchange);
	o->link_bits = o->link_bits > 0 ? o->link_bits : LINK_BITS;
	o->link_share = o->link_share > 0 ? o->link_share : LINK_SHARE;
	o->message_seconds = o->message_seconds > 0 ? o->message_seconds : MESSAGE_SECONDS;
	o->exchange_seconds = o->exchange_seconds > 0 ? o->exchange_seconds : EXCHANGE_SECONDS;
	return 0;
}

/* -- tables -------------------------------------------------------------- */

/* Adds each host's rows of a table whose rows are spread over all. */
static bool add_shards(struct host_sums *s, const struct table *t)
{
	struct embeng_shard shard = EMBENG_INIT(embeng_shard, .sharding = EMBENG_SHARDING_MOD,
						.hosts = s->costs.options.hosts);
	bool over = false;

	for (shard.host = 0; shard.host < shard.hosts; shard.host++) {
		struct embeng_shard_rows rows = {0};

		embeng_shard_rows(&shard, t->rows, &rows);
		over |= add_product(&s->plan->each[shard.host].table_bytes, (uint64_t)rows.count,
				    model_whole_row_bytes(t));
	}
	return over;
}

/* Bytes of a batch that stay while its step is in flight. */
static bool add_batches(struct host_sums *s, size_t table, const struct table_batch *batch,
			enum embeng_exchange_kind kind)
{
	const struct host_costs *c = &s->costs;
	const struct table *t = &c->model->tables[table];
	const uint64_t row = sizeof(float) * (uint64_t)t->dim;
	const uint64_t ways = table_has_optimizer(t) ? 2 : 1;
	bool over = add_product(&s->home, batch->positions, ways * row);

	if (kind == EMBENG_EXCHANGE_ROWS || kind == EMBENG_EXCHANGE_ROWS_GRADIENTS) {
		over |= add_product(&s->home, batch->id_bytes, 1);
		over |= add_product(&s->home_rows, s->plan->tables[table].rows, ways * row);
		over |= add_shards(s, t);
		return over;
	}
	for (size_t i = c->placement.first[table]; i < c->placement.first[table + 1]; i++) {
		const struct place_part *part = &c->placement.parts[i];

		over |= add_product(&s->served[part->host], batch->id_bytes, 1);
		over |= add_product(&s->served[part->host], batch->positions,
				    ways * sizeof(float) * part->columns);
		over |= add_product(&s->plan->each[part->host].table_bytes,
				    place_part_bytes(c->model, part), 1);
	}
	return over;
}

static int plan_hosts_table(struct host_sums *s, size_t table)
{
	struct host_costs *c = &s->costs;
	struct embeng_hosts_table *out = &s->plan->tables[table];
	const struct owner_bytes *chosen;
	struct table_batch batch;
	bool over = false;
	int ret = hosts_table_batch(c, table, &batch);

	ret = ret ? ret : hosts_cost_table(c, table, &batch, out);
	if (ret)
		return ret;
	out->first_part = c->placement.first[table];
	out->part_count = c->placement.first[table + 1] - out->first_part;
	s->trains |= batch.positions && table_has_optimizer(&c->model->tables[table]);
	chosen = &c->own[(size_t)out->chosen * c->options.hosts];
	for (uint32_t o = 0; o < c->options.hosts; o++) {
		for (int p = 0; p < PHASES; p++)
			over |= add_product(&s->own[o].phase[p], chosen[o].phase[p], 1);
	}
	over |= add_batches(s, table, &batch, out->costs[out->chosen].kind);
	return over ? hosts_refuse_bytes(c, table) : 0;
}

/* -- all ----------------------------------------------------------------- */

static int suppose_batches(struct host_costs *c)
{
	struct output output = {0};
	int ret = 0;

	for (size_t f = 0; !ret && f < c->model->feature_count; f++)
		ret = suppose_feature(c->model, &c->batches, f, &output, &c->inputs[f]);
	return ret;
}

/* Replicas are housed in blocks, which differ by one replica at most. */
static void house_replicas(struct host_sums *s)
{
	struct embeng_hosts_plan *plan = s->plan;
	const uint64_t all = plan->replicas;

	for (uint32_t h = 0; h < plan->hosts; h++) {
		plan->each[h].replicas = (uint32_t)((h + 1) * all / plan->hosts -
						    h * all / plan->hosts);
		s->costs.house[h] = plan->each[h].replicas;
	}
	s->costs.askers = all < plan->hosts ? (uint32_t)all : plan->hosts;
}

static int copy_parts(struct host_sums *s)
{
	const struct placement *placement = &s->costs.placement;
	struct embeng_hosts_plan *plan = s->plan;

	plan->parts = calloc(placement->part_count + 1, sizeof(*plan->parts));
	if (!plan->parts)
		return fail(-ENOMEM, "no memory for a plan of hosts");
	plan->part_count = placement->part_count;
	for (size_t i = 0; i < placement->part_count; i++) {
		const struct place_part *part = &placement->parts[i];

		plan->parts[i] = (struct embeng_hosts_part){.host = part->host,
							    .table = part->table,
							    .first_column = part->first_column,
							    .columns = part->columns};
	}
	for (uint32_t h = 0; h < plan->hosts; h++)
		s->costs.owners += placement->bytes[h] > 0;
	s->costs.owners = s->costs.owners ? s->costs.owners : 1;
	return 0;
}

static int allocate_sums(struct host_sums *s)
{
	struct host_costs *c = &s->costs;
	const size_t hosts = c->options.hosts;

	s->plan = calloc(1, sizeof(*s->plan));
	if (s->plan) {
		s->plan->tables = calloc(c->model->table_count + 1, sizeof(*s->plan->tables));
		s->plan->each = calloc(hosts, sizeof(*s->plan->each));
	}
	s->own = calloc(hosts, sizeof(*s->own));
	s->served = calloc(hosts, sizeof(*s->served));
	c->house = calloc(hosts, sizeof(*c->house));
	c->inputs = calloc(c->model->feature_count + 1, sizeof(*c->inputs));
	c->spread = (struct spread){.hosts = c->options.hosts,
				    .unique = calloc(hosts, sizeof(double)),
				    .ids = calloc(hosts, sizeof(double))};
	c->unique = calloc(hosts, sizeof(*c->unique));
	c->owned = calloc(hosts, sizeof(*c->owned));
	c->own = calloc(hosts * EMBENG_EXCHANGE_CHOICES, sizeof(*c->own));
	if (!s->plan || !s->plan->tables || !s->plan->each || !s->own || !s->served || !c->house ||
	    !c->inputs || !c->spread.unique || !c->spread.ids || !c->unique || !c->owned || !c->own)
		return fail(-ENOMEM, "no memory for a plan of hosts");
	return 0;
}

static void free_sums(struct host_sums *s)
{
	struct host_costs *c = &s->costs;

	placement_free(&c->placement);
	free(s->own);
	free(s->served);
	free(c->house);
	free(c->inputs);
	free(c->spread.unique);
	free(c->spread.ids);
	free(c->unique);
	free(c->owned);
	free(c->own);
}

static int plan_hosts(struct host_sums *s)
{
	const struct embeng_hosts_options *o = &s->costs.options;
	struct embeng_hosts_plan *plan = s->plan;
	int ret = suppose_batches(&s->costs);

	plan->hosts = o->hosts;
	plan->replicas = s->costs.model->engine.replicas;
	plan->table_count = s->costs.model->table_count;
	plan->link_bits = o->link_bits;
	plan->link_share = o->link_share;
	plan->message_seconds = o->message_seconds;
	plan->exchange_seconds = o->exchange_seconds;
	house_replicas(s);
	ret = ret ? ret
		  : place_model(s->costs.model, o->hosts, &(struct place_wish){.plans = true},
				&s->costs.placement);
	ret = ret ? ret : copy_parts(s);
	for (size_t t = 0; !ret && t < plan->table_count; t++)
		ret = plan_hosts_table(s, t);
	for (uint32_t h = 0; !ret && h < plan->hosts; h++) {
		bool over = add_product(&s->own[h].phase[PHASE_BACKWARD],
					(s->costs.model->rate_count + 1) / 2, 8);

		for (int p = 0; p < PHASES; p++)
			over |= add_product(&s->own[h].phase[p], HOSTS_SEGMENT_BYTES, 1);
		ret = over ? hosts_refuse_sum(s) : ret;
	}
	return ret ? ret : hosts_sum(s);
}

int embeng_model_plan_hosts(const struct embeng_model *model,
			    const struct embeng_hosts_options *options,
			    struct embeng_hosts_plan **plan)
{
	struct host_sums s = {.costs.model = model};
	int ret;

	if (!model || !options || !plan)
		return fail(-EINVAL,
			    "embeng_model_plan_hosts: model, options and plan must be given");
	ret = take_hosts_options(&s.costs, options);
	if (ret)
		return ret;
	ret = allocate_sums(&s);
	ret = ret ? ret : plan_hosts(&s);
	free_sums(&s);
	if (ret)
		embeng_hosts_plan_free(s.plan);
	else
		*plan = s.plan;
	return ret;
}

void embeng_hosts_plan_free(struct embeng_hosts_plan *plan)
{
	if (!plan)
		return;
	free(plan->tables);
	free(plan->parts);
	free(plan->each);
	free(plan);
}
