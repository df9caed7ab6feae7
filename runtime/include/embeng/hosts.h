/* SPDX-License-Identifier: MIT */
/*
 * The costs of a model whose tables lie on several hosts: bytes and messages of a step, the memory
 * of a host, and which exchange each table is best served by. Programs that need it include it by
 * itself; the rules of embeng.h hold.
 *
 * A plan is computed, and nothing is opened, sent or allocated for it. Where a table has an owner,
 * the owner is the one that a group of hosts would choose. All exchanges keep the bits of one
 * process; partial sums of bags, which do not, are no choice.
 *
 * Formulas, for a table with dim columns, and for one replica of R on H hosts. n is the number of its
 * ids in a batch, v the number of vectors that its lookups return, U_o the number of
 * different rows among the n ids that host o owns, N_o the number of ids that are of these rows, and
 * B_o the number of bags with at least one of them.
 *
 *   exchange           ids                        forward        backward
 *   table, column      32 + w n [+ 8 s] [+ 4 n]   4 v columns    8 + 4 v columns
 *   rows               4 U_o                      4 dim U_o      4 dim U_o
 *   rows + gradients   4 U_o                      4 dim U_o      24 + 4 N_o + 4 dim B_o [+ c_o]
 *
 * w is 4 or 8 by the type of the ids, s is one more than the number of samples, for offsets, which
 * are not sent if each sample has one id, and 4 n are the weights, if there are any. 32 bytes
 * describe a feature, and each array is rounded up to 8 bytes. Gradients of bags of several ids have c_o
 * more: 4 B_o for the numbers of ids, and the coefficients, which are 4 N_o with weights, else 4 B_o with
 * the combiners mean and sqrtn. An optimizer that takes each gradient by itself has 4 N_o in place of 4 U_o. A table that no optimizer changes
 * has no backward bytes. The formulas give the bytes between a host that has one replica and an
 * owner that is another host; a host sends itself nothing. A place of a row among the rows of
 * its owner takes 8 bytes in place of 4 if the owner has more than 2^31. To the sums over all
 * tables each replica adds 24 bytes for each host and exchange, and the dynamic learning rates and
 * hyperparameters of the step, of 4 bytes each, go with the gradients. Each message has a header of
 * 128 bytes.
 * With p(r), the probability that an id is row r, the expected U_o is the sum of 1 - (1 - p(r))^n over
 * the rows of o, N_o is n times the sum of p(r), and B_o is the sum of 1 - (1 - N_o / n)^k over
 * bags of k ids. Ids are supposed to be independent of each other. Source of the expectations: the
 * number of different outcomes in n independent draws (Feller, An Introduction to Probability Theory
 * and Its Applications, volume 1, IV.2).
 */
#ifndef EMBENG_HOSTS_API_H
#define EMBENG_HOSTS_API_H

#include "plan.h"
#include "profile.h"

#ifdef __cplusplus
extern "C" {
#endif

#define EMBENG_HOSTS_MOST 4096

/* The messages that keep a table's bits, whatever the number of hosts. */
enum embeng_exchange_kind {
	EMBENG_EXCHANGE_NONE,  /* one host: nothing travels */
	EMBENG_EXCHANGE_TABLE, /* the table is whole on one host, which looks up and updates */
	EMBENG_EXCHANGE_COLUMN, /* each of several hosts has some columns of the table, and does so */
	EMBENG_EXCHANGE_ROWS, /* rows are spread over all hosts: rows come, sums of gradients go */
	EMBENG_EXCHANGE_ROWS_GRADIENTS, /* rows come, gradients of samples go */
};

#define EMBENG_EXCHANGE_CHOICES 3 /* one of table and column, and both kinds of rows */

/**
 * struct embeng_hosts_options - assumptions of a plan; all zero but the size and @hosts: defaults
 * @size: sizeof(struct embeng_hosts_options)
 * @hosts: from 1 to EMBENG_HOSTS_MOST. Replicas are the model's; hosts have them in blocks
 * @plan: sizes of batches, as for embeng_model_plan(); NULL: its defaults. Its members @buffers,
 *	@inference, @cores and @splits are not looked at
 * @link_bits: bits a second that one host sends, while it gets as many; 0: 100e9
 * @link_share: share of that which large messages reach, up to 1; 0: 0.8
 * @message_seconds: time of one core for a message: post, match, complete; 0: 1.5e-6. Measured
 *	figures of others are from 0.5e-6 to 3e-6
 * @exchange_seconds: time that an exchange takes beside its messages and bytes; 0: 10e-6
 * @zipf: the rank-th most frequent row of a table is asked for in proportion to
 *	rank^-zipf, and rows are numbered by rank; 0: each row equally often. Up to 8
 * @profile: NULL, or counts of this model. A table that has counts goes by them instead of by @zipf:
 *	rows that were counted as they were, the others by the exponent that gives the counted ones the
 *	share that they have
 * @exchange: enum embeng_exchange_kind that each table takes which allows it, TABLE and COLUMN alike;
 *	0: the cheapest, but rows for a table that is @too_large
 *
 * The defaults of the link are assumptions, and none of them is measured by the library.
 */
struct embeng_hosts_options {
	size_t size;
	uint32_t hosts;
	const struct embeng_plan_options *plan;
	double link_bits, link_share;
	double message_seconds, exchange_seconds;
	double zipf;
	const struct embeng_profile *profile;
	enum embeng_exchange_kind exchange;
};

/**
 * struct embeng_exchange_cost - the costs of a table with one kind of exchange
 * @kind: enum embeng_exchange_kind
 * @allowed: it keeps the bits of one process for this table
 * @why_not: NULL, or the reason if it is not allowed, to be read after "not allowed: "
 * @ids: bytes of a step, on the links of all hosts together: ids, places of rows, weights
 * @forward: as many, rows or pooled vectors
 * @backward: as many, gradients or sums of them
 * @link_bytes: bytes that go through the link of each host that serves something, if tables share
 *	these hosts evenly. The cheapest exchange has the fewest
 * @balance: the most that a host serves of this table over the mean of all hosts
 * @seconds: time of @link_bytes on the link
 */
struct embeng_exchange_cost {
	enum embeng_exchange_kind kind;
	int allowed;
	const char *why_not;
	uint64_t ids, forward, backward;
	uint64_t link_bytes;
	double balance;
	double seconds;
};

/**
 * struct embeng_hosts_table - a table in a plan
 * @ids: ids in the batches of one replica in a step, of all features
 * @rows: different rows among them, expected
 * @zipf: exponent that rows without a count of their own go by
 * @counted: rows that go by a count of the profile
 * @balance_div: @balance of exchanges of rows if a host had a run of successive rows
 *	(EMBENG_SHARDING_DIV); without it each has every hosts-th row (EMBENG_SHARDING_MOD)
 * @whole_because: NULL, or why the table cannot be cut by columns, to be read after "whole: "
 * @too_large: it has more bytes than a host's share and cannot be cut by columns, so that its rows are spread unless
 *	another exchange is asked for
 * @first_part: index of its first part among the parts of the plan
 * @part_count: number of its parts
 * @chosen: index of the cheapest of @costs that is allowed, of rows if the table is @too_large, or of the one that
 *	the options ask for
 * @costs: table or column, rows, rows and gradients
 */
struct embeng_hosts_table {
	uint64_t ids, rows;
	double zipf;
	size_t counted;
	double balance_div;
	const char *whole_because;
	int too_large;
	size_t first_part, part_count;
	unsigned int chosen;
	struct embeng_exchange_cost costs[EMBENG_EXCHANGE_CHOICES];
};

/**
 * struct embeng_hosts_part - a table, or columns of a table, that have an owner
 * @host: the owner
 * @table: index
 * @first_column: first column that it has
 * @columns: how many
 */
struct embeng_hosts_part {
	uint32_t host;
	int table;
	uint32_t first_column, columns;
};

/**
 * struct embeng_hosts_host - a host in a plan, with the exchange of each table that was chosen
 * @replicas: replicas that it has
 * @table_bytes: tables, columns or rows that it owns, with their slots
 * @batch_bytes: ids, activations and gradients of all steps that may be in flight, where it owns the
 *	table, and of its own replicas
 * @row_bytes: rows in flight for its own replicas, and their sums
 * @message_bytes: messages of a step, those that it sends and those that it gets
 * @sent: bytes that it sends in a step, with the headers of messages
 * @received: bytes that it gets
 * @messages: messages that it sends
 */
struct embeng_hosts_host {
	uint32_t replicas;
	uint64_t table_bytes, batch_bytes, row_bytes, message_bytes;
	uint64_t sent, received, messages;
};

/**
 * struct embeng_hosts_plan - the costs of a model on several hosts
 * @hosts: how many
 * @replicas: the model's
 * @table_count: number of @tables
 * @tables: in table order
 * @part_count: number of @parts
 * @parts: in the order of tables, then of columns. Each column of a table is in one part. They are
 *	those of tables that are served whole or by columns; rows of the others are on all hosts
 * @each: [hosts]
 * @sent: bytes that all hosts send in a step
 * @messages: messages that all hosts send
 * @balance: the most bytes that a host sends or gets over the mean
 * @fullest: the host that needs the most memory, the first of those
 * @most_bytes: memory of that host
 * @mean_bytes: memory of a host, the mean
 * @link_bits: as in the options, with defaults filled in
 * @link_share: as in the options, too
 * @message_seconds: as in the options, too
 * @exchange_seconds: as in the options, too
 * @seconds: time of a step's exchanges, one after another, each as long as the busiest link takes
 *
 * Not in it: what an engine needs beside these bytes, which embeng_model_plan() has for one process,
 * and the time of engines and of the rest of the model. Freed by embeng_hosts_plan_free().
 */
struct embeng_hosts_plan {
	uint32_t hosts, replicas;
	size_t table_count;
	struct embeng_hosts_table *tables;
	size_t part_count;
	struct embeng_hosts_part *parts;
	struct embeng_hosts_host *each;
	uint64_t sent, messages;
	double balance;
	uint32_t fullest;
	uint64_t most_bytes, mean_bytes;
	double link_bits, link_share;
	double message_seconds, exchange_seconds;
	double seconds;
};

/**
 * embeng_model_plan_hosts() - compute what a model costs on several hosts
 * @options: its size and hosts must be set
 * @plan: out
 *
 * Any thread may call, while nobody changes the model and the profile.
 *
 * Return: 0; -EINVAL (no model, options or plan; a profile of another model; no such exchange); -ERANGE (hosts, a
 * number of the link, the exponent; more bytes than a uint64_t counts, naming the table);
 * -ENOMEM; as embeng_model_plan() for the sizes of batches.
 */
EMBENG_API int embeng_model_plan_hosts(const struct embeng_model *model,
				       const struct embeng_hosts_options *options,
				       struct embeng_hosts_plan **plan);
EMBENG_API void embeng_hosts_plan_free(struct embeng_hosts_plan *plan);

struct embeng;

/**
 * embeng_table_exchange() - tell which exchange a table of an open handle has
 *
 * A handle over several hosts chooses when it is opened, unless an option of the device's name does
 * (exchange=rows, or exchange:items=rows for the table items). Where the model tells how large the batches
 * of a table's features are (max_samples or a whole shape, and max_ids or a sequence's length), it is the
 * exchange that embeng_model_plan_hosts() chooses with no option but the number of hosts. A table that it
 * does not tell of is whole, or cut by columns. A log that embeng_open_with() is given gets a line for each
 * table, with the reason.
 *
 * Return: enum embeng_exchange_kind, NONE on one host; -EINVAL (no handle), -ENOENT (no such table).
 */
EMBENG_API int embeng_table_exchange(struct embeng *e, int table);

#ifdef __cplusplus
}
#endif

#endif
