// SPDX-License-Identifier: MIT
/*
 * The bytes that a table costs in each exact exchange between hosts, by the formulas of embeng/hosts.h,
 * and the choice of the cheapest. Expected numbers of rows are made whole first. From then on
 * everything is counted in whole bytes, so that what hosts send is what hosts get.
 *
 * All memory is the plan's, which hosts.c makes; no lock is needed.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "hosts_cost.h"

#define F32_BYTES sizeof(float)
#define INPUT_BYTES 32u	  /* a feature begins with its form and numbers */
#define GIVEN_BYTES 8u	  /* a feature's gradients begin with whether there are any */
#define OFFSET_BYTES 8u	  /* where the ids of a sample begin */
#define SAMPLES_BYTES 24u /* gradients of a feature's samples begin with their form and numbers */
#define PLACE_BYTES 4u	  /* place of an id's row among those that its owner was asked for */
#define COUNT_BYTES 4u	  /* number of a bag's ids beside its gradient */

int hosts_refuse_bytes(const struct host_costs *c, size_t table)
{
	return fail(-ERANGE,
		    "table %s: a step over %" PRIu32 " hosts moves more bytes than 64 "
		    "bits count",
		    c->model->tables[table].name, c->options.hosts);
}

/* Arrays in a message begin at multiples of 8 bytes. */
static bool add_array(uint64_t *sum, uint64_t count, uint64_t each)
{
	uint64_t bytes = 7;

	return add_product(&bytes, count, each) || add_product(sum, bytes / 8, 8);
}

/* Offsets go along unless each sample has one id. */
static bool add_feature(uint64_t *sum, const struct plan_input *in, uint64_t width)
{
	const bool dense = in->ids == in->samples && !in->length;
	bool over = add_product(sum, 1, INPUT_BYTES) || add_array(sum, in->ids, width);

	if (!dense)
		over |= add_array(sum, in->samples + 1, OFFSET_BYTES);
	if (in->weighted)
		over |= add_array(sum, in->ids, F32_BYTES);
	return over;
}

int hosts_table_batch(const struct host_costs *c, size_t table, struct table_batch *batch)
{
	const uint64_t width = c->batches.id_type == EMBENG_I32 ? 4 : 8;
	bool over = false;

	*batch = (struct table_batch){0};
	for (size_t f = 0; f < c->model->feature_count; f++) {
		const struct plan_input *in = &c->inputs[f];

		if ((size_t)c->model->features[f].table != table)
			continue;
		over |= add_product(&batch->ids, in->ids, 1);
		over |= add_feature(&batch->id_bytes, in, width);
		over |= add_product(&batch->positions, in->samples, in->length ? in->length : 1);
	}
	return over ? hosts_refuse_bytes(c, table) : 0;
}

static bool table_updates(const struct host_costs *c, size_t table)
{
	return table_has_optimizer(&c->model->tables[table]);
}

/* -- bytes by owner ------------------------------------------------------ */

/* Pooled vectors of all features of the table, or their gradients. */
static bool add_pooled(const struct host_costs *c, const struct place_part *part, uint64_t head,
		       uint64_t *sum)
{
	bool over = false;

	for (size_t f = 0; f < c->model->feature_count; f++) {
		const struct plan_input *in = &c->inputs[f];
		const uint64_t positions = in->samples * (in->length ? in->length : 1);

		if (c->model->features[f].table == part->table)
			over |= add_array(sum, positions, F32_BYTES * (uint64_t)part->columns) ||
				add_product(sum, 1, head);
	}
	return over;
}

static bool fill_parts(const struct host_costs *c, size_t table, const struct table_batch *batch,
		       struct owner_bytes *own)
{
	bool over = false;

	for (size_t i = c->placement.first[table]; i < c->placement.first[table + 1]; i++) {
		const struct place_part *part = &c->placement.parts[i];
		uint64_t *phase = own[part->host].phase;

		phase[PHASE_IDS] = batch->id_bytes;
		over |= add_pooled(c, part, 0, &phase[PHASE_FORWARD]);
		if (table_updates(c, table))
			over |= add_pooled(c, part, GIVEN_BYTES, &phase[PHASE_BACKWARD]);
	}
	return over;
}

static uint64_t place_bytes(const struct host_costs *c, size_t table)
{
	return place_row_width((uint64_t)c->model->tables[table].rows, c->options.hosts);
}

static bool fill_rows(const struct host_costs *c, size_t table, struct owner_bytes *own)
{
	const uint64_t row = F32_BYTES * (uint64_t)c->model->tables[table].dim;
	bool over = false;

	for (uint32_t o = 0; o < c->options.hosts; o++) {
		over |= add_product(&own[o].phase[PHASE_IDS], c->unique[o], place_bytes(c, table));
		over |= add_product(&own[o].phase[PHASE_FORWARD], c->unique[o], row);
		if (table_updates(c, table))
			own[o].phase[PHASE_BACKWARD] = own[o].phase[PHASE_FORWARD];
	}
	return over;
}

/* Bags of a feature that have an id of the owner, expected. */
static uint64_t expect_bags(const struct plan_input *in, double share)
{
	const double samples = (double)in->samples;

	if (!in->samples)
		return 0;
	if (in->length) /* each position is a bag of one id */
		return (uint64_t)llround((double)in->ids * share);
	return (uint64_t)llround(samples * (1.0 - pow(1.0 - share, (double)in->ids / samples)));
}

/* Places of ids, and the gradient of each bag; a bag of several ids has their number and coefficients. */
static bool add_sample_gradients(const struct host_costs *c, const struct table *t, size_t feature,
				 double share, uint64_t *sum)
{
	const struct plan_input *in = &c->inputs[feature];
	const uint64_t bags = expect_bags(in, share);
	const uint64_t ids = (uint64_t)llround((double)in->ids * share);
	bool over = add_product(sum, 1, SAMPLES_BYTES) || add_product(sum, ids, PLACE_BYTES);

	over |= add_product(sum, bags, F32_BYTES * (uint64_t)t->dim);
	if (in->length || in->ids == in->samples)
		return over;
	over |= add_product(sum, bags, COUNT_BYTES);
	if (in->weighted)
		over |= add_product(sum, ids, F32_BYTES);
	else if (t->combiner != EMBENG_SUM)
		over |= add_product(sum, bags, F32_BYTES);
	return over;
}

static bool fill_row_gradients(const struct host_costs *c, size_t table,
			       const struct table_batch *batch, struct owner_bytes *own)
{
	const struct table *t = &c->model->tables[table];
	const bool repeats = t->optimizer.use_gradient_accumulation == EMBENG_OFF;
	bool over = false;

	for (uint32_t o = 0; o < c->options.hosts; o++) {
		const double share = batch->ids ? (double)c->owned[o] / (double)batch->ids : 0.0;

		over |= add_product(&own[o].phase[PHASE_IDS], repeats ? c->owned[o] : c->unique[o],
				    place_bytes(c, table));
		over |= add_product(&own[o].phase[PHASE_FORWARD], c->unique[o],
				    F32_BYTES * (uint64_t)t->dim);
		for (size_t f = 0; f < c->model->feature_count; f++)
			if ((size_t)c->model->features[f].table == table)
				over |= add_sample_gradients(c, t, f, share,
							     &own[o].phase[PHASE_BACKWARD]);
	}
	return over;
}

/* -- costs --------------------------------------------------------------- */

static double bytes_of_owner(const struct owner_bytes *own)
{
	return (double)own->phase[PHASE_IDS] + (double)own->phase[PHASE_FORWARD] +
	       (double)own->phase[PHASE_BACKWARD];
}

/* The most that a host serves over the mean; 1 if nobody serves anything. */
static double find_balance(const struct owner_bytes *own, uint32_t hosts)
{
	double sum = 0.0, most = 0.0;

	for (uint32_t o = 0; o < hosts; o++) {
		const double bytes = bytes_of_owner(&own[o]);

		sum += bytes;
		most = bytes > most ? bytes : most;
	}
	return sum > 0.0 ? most * hosts / sum : 1.0;
}

/* Bytes on all links: every replica that is not the owner's own asks each owner. */
static bool sum_links(const struct host_costs *c, const struct owner_bytes *own,
		      struct embeng_exchange_cost *cost)
{
	bool over = false;

	for (uint32_t o = 0; o < c->options.hosts; o++) {
		const uint64_t others = c->model->engine.replicas - c->house[o];

		over |= add_product(&cost->ids, others, own[o].phase[PHASE_IDS]);
		over |= add_product(&cost->forward, others, own[o].phase[PHASE_FORWARD]);
		over |= add_product(&cost->backward, others, own[o].phase[PHASE_BACKWARD]);
	}
	return over;
}

/* Owners that share their tables evenly have as much each, and so have the hosts that ask. */
static bool find_link_bytes(const struct host_costs *c, struct embeng_exchange_cost *cost)
{
	const bool rows = cost->kind == EMBENG_EXCHANGE_ROWS ||
			  cost->kind == EMBENG_EXCHANGE_ROWS_GRADIENTS;
	uint64_t all = cost->ids;
	double owner, asker;

	if (__builtin_add_overflow(all, cost->forward, &all) ||
	    __builtin_add_overflow(all, cost->backward, &all))
		return true;
	owner = rows ? (double)all * cost->balance / c->options.hosts : (double)all / c->owners;
	asker = (double)all / c->askers;
	cost->link_bytes = (uint64_t)ceil(owner > asker ? owner : asker);
	cost->seconds = 8.0 * (double)cost->link_bytes /
			(c->options.link_bits * c->options.link_share);
	return false;
}

static int cost_kind(struct host_costs *c, size_t table, const struct table_batch *batch,
		     unsigned int choice, struct embeng_exchange_cost *cost)
{
	struct owner_bytes *own = &c->own[(size_t)choice * c->options.hosts];
	bool over;

	memset(own, 0, c->options.hosts * sizeof(*own));
	over = choice == 0   ? fill_parts(c, table, batch, own)
	       : choice == 1 ? fill_rows(c, table, own)
			     : fill_row_gradients(c, table, batch, own);
	over |= sum_links(c, own, cost);
	cost->balance = find_balance(own, c->options.hosts);
	cost->allowed = !cost->why_not;
	return over || find_link_bytes(c, cost) ? hosts_refuse_bytes(c, table) : 0;
}

/* Whole numbers whose partial sums are those of @from, rounded. */
static void round_sums(const double *from, uint32_t hosts, double scale, uint64_t *to)
{
	uint64_t before = 0;
	double sum = 0.0;

	for (uint32_t o = 0; o < hosts; o++) {
		uint64_t now;

		sum += from[o];
		now = (uint64_t)llround(sum * scale);
		to[o] = now - before;
		before = now;
	}
}

static double most_over_mean(const double *load, uint32_t hosts)
{
	double sum = 0.0, most = 0.0;

	for (uint32_t o = 0; o < hosts; o++) {
		sum += load[o];
		most = load[o] > most ? load[o] : most;
	}
	return sum > 0.0 ? most * hosts / sum : 1.0;
}

static int spread_table(struct host_costs *c, size_t table, const struct table_batch *batch,
			struct embeng_hosts_table *out)
{
	struct embeng_profile_counts counts = EMBENG_INIT(embeng_profile_counts);
	struct popularity law = {.rows = (uint64_t)c->model->tables[table].rows,
				 .zipf = c->options.zipf};
	int ret = c->options.profile ? embeng_profile_counts(c->options.profile, table, &counts)
				     : 0;

	if (ret)
		return ret;
	if (counts.ids) {
		law.counts = &counts;
		law.zipf = popularity_fit(law.rows, &counts);
	}
	out->zipf = law.zipf;
	out->counted = counts.ids ? counts.hot_count : 0;
	ret = popularity_spread(&law, batch->ids, EMBENG_SHARDING_DIV, &c->spread);
	if (ret)
		return ret;
	out->balance_div = most_over_mean(c->spread.unique, c->options.hosts);
	ret = popularity_spread(&law, batch->ids, EMBENG_SHARDING_MOD, &c->spread);
	if (ret)
		return ret;
	round_sums(c->spread.unique, c->options.hosts, 1.0, c->unique);
	round_sums(c->spread.ids, c->options.hosts, (double)batch->ids, c->owned);
	return 0;
}

/* The first of equal ones is taken: it needs no more messages, and less work of the engine. */
static unsigned int choose_exchange(const struct embeng_exchange_cost *costs,
				    enum embeng_exchange_kind wanted, bool too_large)
{
	unsigned int chosen = costs[0].allowed ? 0 : costs[1].allowed ? 1 : 2;

	if (costs[0].allowed &&
	    (wanted == EMBENG_EXCHANGE_TABLE || wanted == EMBENG_EXCHANGE_COLUMN))
		return 0;
	for (unsigned int i = 1; i < EMBENG_EXCHANGE_CHOICES; i++) {
		if (costs[i].kind == wanted && costs[i].allowed)
			return i;
	}
	if (too_large)
		return 1;
	for (unsigned int i = 1; i < EMBENG_EXCHANGE_CHOICES; i++) {
		if (costs[i].allowed && costs[i].link_bytes < costs[chosen].link_bytes)
			chosen = i;
	}
	return chosen;
}

int hosts_cost_table(struct host_costs *c, size_t table, const struct table_batch *batch,
		     struct embeng_hosts_table *out)
{
	const size_t parts = c->placement.first[table + 1] - c->placement.first[table];
	int ret = spread_table(c, table, batch, out);

	out->ids = batch->ids;
	for (uint32_t o = 0; !ret && o < c->options.hosts; o++)
		out->rows += c->unique[o];
	out->costs[0].kind = c->options.hosts == 1 ? EMBENG_EXCHANGE_NONE
			     : parts > 1	   ? EMBENG_EXCHANGE_COLUMN
						   : EMBENG_EXCHANGE_TABLE;
	out->costs[0].why_not = place_refuse_replicas(c->model, out->costs[0].kind);
	out->costs[1].kind = EMBENG_EXCHANGE_ROWS;
	out->costs[1].why_not = place_refuse_sums(c->model, table);
	out->costs[2].kind = EMBENG_EXCHANGE_ROWS_GRADIENTS;
	out->costs[2].why_not = place_refuse_gradients(c->model, table);
	place_is_elementwise(c->model, (int)table, &out->whole_because);
	out->too_large = c->placement.parts[c->placement.first[table]].kind == PLACE_ROWS &&
			 !place_must_spread(c->model);
	for (unsigned int i = 0; !ret && i < EMBENG_EXCHANGE_CHOICES; i++)
		ret = cost_kind(c, table, batch, i, &out->costs[i]);
	out->chosen = ret || c->options.hosts == 1
			      ? 0
			      : choose_exchange(out->costs, c->options.exchange, out->too_large);
	return ret;
}
