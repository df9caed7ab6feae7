/* SPDX-License-Identifier: MIT */
/* Counts of ids and rows of tables that are spread by rows, on the host that asked for them. */
#ifndef EMBENG_HOSTS_LIST_STATS_H
#define EMBENG_HOSTS_LIST_STATS_H

#include "../../../engine/update/hot_rows.h"
#include "hosts.h"

/**
 * struct list_stats - counts of a table on this host since they were last cleared
 * @hot: the hottest rows, each by the number host * rows of a host + number there
 */
struct list_stats {
	struct list_counts counts;
	struct hot hot;
};

/* A host tells this of a table. @hot_count struct embeng_hot_row follow, with rows of the whole table. */
struct list_told {
	struct list_counts counts;
	uint64_t hot_error, hot_count;
};

int list_stats_new(struct hosts *h);
void list_stats_free(struct hosts *h);
/* Looks at the ids of a batch, whose lists were made; nothing is counted yet. */
void list_stats_note(const struct hosts *h, struct cargo *cargo);
/* Counts such a batch, unless that was done. @trains: it is of a step of training */
void list_stats_count(struct hosts *h, struct cargo *cargo, bool trains);
void list_stats_count_looked(struct hosts *h);
/* Counts activations that are not finite. */
void list_stats_look(struct hosts *h, const struct cargo *cargo);
/* Bytes that a host tells of a table at most; tells, and clears the counts if @clear. Return: bytes. */
size_t list_stats_bytes(void);
size_t list_stats_tell(struct hosts *h, size_t list, bool clear, struct list_told *to);

#endif
