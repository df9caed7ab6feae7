/* SPDX-License-Identifier: MIT */
/* A UNIQUE, POOL or SUM by hand: descriptor, inputs and outputs in one arena. */
#ifndef EMBENG_TESTS_EXCHANGE_HELP_H
#define EMBENG_TESTS_EXCHANGE_HELP_H

#include "direct.h"

/* A descriptor of one table and some features, all of whose arrays the test makes. */
struct swap {
	struct direct *d;
	u16 opcode;
	struct embeng_mem desc;
	struct embeng_row_exchange *head;
	struct embeng_exchange_table *table;
	struct embeng_exchange_feature *features;
};

/* @hosts: 0 for POOL and SUM; @dim: 0 for UNIQUE */
static inline struct swap swap_new(struct direct *d, u16 opcode, u32 features, u32 hosts, u64 rows,
				   u32 dim)
{
	struct swap s = {.d = d, .opcode = opcode};

	s.head = direct_memory(
		d, sizeof(*s.head) + sizeof(*s.table) + features * sizeof(*s.features), &s.desc);
	s.table = (struct embeng_exchange_table *)(s.head + 1);
	s.features = (struct embeng_exchange_feature *)(s.table + 1);
	*s.head = (struct embeng_row_exchange){.table_count = 1,
					       .table_stride = sizeof(*s.table),
					       .feature_count = features,
					       .feature_stride = sizeof(*s.features),
					       .hosts = hosts};
	s.table->row_count = rows;
	s.table->dim = dim;
	return s;
}

/* Ids of @samples samples that end at @ends; @ends NULL: one each. */
static inline void swap_ids(struct swap *s, u32 feature, const s64 *ids, u64 samples,
			    const s64 *ends)
{
	struct embeng_exchange_feature *f = &s->features[feature];
	s64 *to;

	f->sample_count = samples;
	f->id_count = ends ? (u64)ends[samples - 1] : samples;
	f->form = ends ? EMBENG_FORM_CSR : EMBENG_FORM_DENSE;
	f->id_width = 8;
	to = direct_memory(s->d, 8 * f->id_count, &f->ids);
	if (ids)
		memcpy(to, ids, 8 * f->id_count);
	if (!ends)
		return;
	f->offset_width = 8;
	to = direct_memory(s->d, 8 * (samples + 1), &f->offsets);
	memcpy(to + 1, ends, 8 * samples);
}

/* Return: the command's status; *fault: what was wrong. */
static inline u16 swap_run(struct swap *s, struct fault *fault, u64 *result)
{
	struct command *command = direct_command(&s->d->transfer, s->opcode);
	u16 status;

	command->cmd.desc = s->desc;
	if (direct_submit(s->d, command) == VERDICT_READY)
		ck_assert_int_ne(direct_try(s->d, command), VERDICT_WAIT);
	status = command->fault.status;
	*fault = command->fault;
	if (result)
		*result = command->result;
	free(command);
	return status;
}

#endif
