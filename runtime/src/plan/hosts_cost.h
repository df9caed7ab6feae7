/* SPDX-License-Identifier: MIT */
/* The parts of a plan of hosts: the costs of a table, and the sums over tables and hosts. */
#ifndef EMBENG_PLAN_HOSTS_COST_H
#define EMBENG_PLAN_HOSTS_COST_H

#include "embeng/hosts.h"
#include "hosts/place.h"
#include "popularity.h"
#include "suppose.h"

/* Bytes that one replica's part of a message begins with, for each host and phase. */
#define HOSTS_SEGMENT_BYTES 24u

/* The exchanges of a step, one after another; the last one only if a table trains. */
enum phase { PHASE_IDS, PHASE_FORWARD, PHASE_BACKWARD, PHASES };

/* Bytes between an owner and a host that has one replica. */
struct owner_bytes {
	uint64_t phase[PHASES];
};

/*
 * struct table_batch - one replica's batches of a table, all features together
 * @id_bytes: ids, offsets and weights as they are sent to the owner of a whole table
 * @positions: pooled vectors and positions of sequences
 */
struct table_batch {
	uint64_t ids, id_bytes, positions;
};

/*
 * struct host_costs - the input and the working memory of a plan of hosts; hosts.c fills it
 * @owners: hosts that own a part by @placement
 * @askers: hosts that have a replica
 * @house: [hosts] replicas of each
 * @inputs: [features] batch of one replica
 * @spread: the rows and ids of each host in the table that is looked at, by MOD
 * @unique: [hosts] its rows as whole numbers, and @owned its ids
 * @own: [EMBENG_EXCHANGE_CHOICES * hosts] bytes of the table that is looked at
 */
struct host_costs {
	const struct embeng_model *model;
	struct embeng_hosts_options options;
	struct embeng_plan_options batches;
	struct placement placement;
	uint32_t owners, askers;
	uint32_t *house;
	struct plan_input *inputs;
	struct spread spread;
	uint64_t *unique, *owned;
	struct owner_bytes *own;
};

/* The sums over tables that the hosts' figures are made of. All are bytes of one replica. */
struct host_sums {
	struct host_costs costs;
	struct owner_bytes *own; /* [hosts] with the exchanges that were chosen */
	uint64_t *served;	 /* [hosts] batches at an owner */
	uint64_t home,
		home_rows; /* batches, and rows in flight, at the host that has the replica */
	bool trains;
	struct embeng_hosts_plan *plan;
};

/* Adds @a * @b to @sum. Return: whether 64 bits do not hold it. */
static inline bool add_product(uint64_t *sum, uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) || __builtin_add_overflow(*sum, product, sum);
}

/* The failure of a table whose bytes 64 bits do not count. */
int hosts_refuse_bytes(const struct host_costs *c, size_t table);

/* Adds up the batches of a table. Return: 0, or -ERANGE. */
int hosts_table_batch(const struct host_costs *c, size_t table, struct table_batch *batch);

/*
 * hosts_cost_table() - the costs of a table, and the cheapest exchange
 * @out: filled, but for its parts
 *
 * Leaves the bytes of each choice in @c->own. Return: 0, -ERANGE, -ENOMEM.
 */
int hosts_cost_table(struct host_costs *c, size_t table, const struct table_batch *batch,
		     struct embeng_hosts_table *out);

/* hosts_sum.c: the failure of sums over tables that 64 bits do not count. */
int hosts_refuse_sum(const struct host_sums *s);

/* hosts_sum.c: fills what the plan has of hosts. Return: 0, or -ERANGE. */
int hosts_sum(struct host_sums *s);

#endif
