/* SPDX-License-Identifier: MIT */
/* Calls of a handle over all hosts that all hosts make together: rows, what tables count, checkpoints. */
#ifndef EMBENG_HOSTS_COLLECTIVE_H
#define EMBENG_HOSTS_COLLECTIVE_H

#include "base/clock.h"
#include "hosts.h"
#include "session/rows.h"

/* rows.c: embeng_rows_read(), embeng_rows_write() and embeng_rows_fill(). */
int hosts_rows(struct embeng *e, const struct rows_asked *asked);
/* rows.c: reads and writes, between hosts_enter() and hosts_leave(). */
int move_hosts_rows(struct embeng *e, const struct rows_asked *asked);
/* rows_together.c: rows of several tables as they are at one moment. */
int hosts_read_together(struct embeng *e, const char *what, const struct rows_reading *readings,
			size_t count, int status);
/* norm.c: embeng_gradient_norm(). @squares: out: [tables], which may be NULL if there is a @status. */
int hosts_norm(const struct norm_call *call, int status, double *squares, struct norm_fault *fault);
/* rows_fill.c: fills. */
int fill_hosts_rows(struct embeng *e, const struct rows_asked *asked);

/* state.c: enters with the sentence that the thread has, which the first exchange tells. */
int hosts_enter_with(struct embeng *e, int status);
/* One exchange of a few bytes, which must be the same on all hosts: @what says what they are. */
int hosts_agree_on(struct embeng *e, const char *phase, int status, const void *own, size_t bytes,
		   const char *what);
int hosts_step(struct embeng *e, uint64_t *step);
int hosts_set_step(struct embeng *e, uint64_t step, int status);
int hosts_freeze(struct embeng *e, int table, int frozen, int status);
/* stats.c */
int hosts_stats(struct embeng *e, int table, int clear, struct embeng_table_stats *stats,
		int status);

/* save.c, restore.c */
int hosts_save(struct embeng *e, const char *dir, const struct embeng_save_options *options);
int hosts_restore(struct embeng *e, const char *dir, const struct embeng_restore_options *options);

/*
 * While hosts write or read a checkpoint, each takes part in an exchange of no bytes every so often: those that
 * are done wait there, with a byte at least, and see that the others are alive. Tests make it shorter.
 */
extern uint64_t hosts_beat_ns;
/* Whether it is time for one; @last: when the last was. */
static inline bool hosts_beat_is_due(uint64_t *last)
{
	const uint64_t now = now_ns();

	if (now - *last < hosts_beat_ns)
		return false;
	*last = now;
	return true;
}
/* Whether each host is done, by what came of them. */
static inline bool hosts_are_done(const struct hosts *h, const struct embeng_bytes *received)
{
	for (uint32_t i = 0; i < h->hosts; i++)
		if (!received[i].bytes)
			return false;
	return true;
}

/* state.c: schedules of this host's replicas go on from a number of steps. */
void hosts_count_from(struct hosts *h, uint64_t step);

/* Floats of a row of this part, of parameters or of a slot, which is one number wide only in a whole table. */
static inline uint64_t part_width(const struct hosts *h, const struct place_part *part,
				  size_t array)
{
	const struct table *t = &h->e->model->tables[part->table];

	return part->columns == (uint64_t)t->dim ? model_width(t, array) : part->columns;
}

/* The name of a slot, or NULL for parameters. */
static inline const char *slot_name_of(const struct hosts *h, int table, size_t array)
{
	return array ? model_slot_name(h->e->model, table, array) : NULL;
}

#endif
