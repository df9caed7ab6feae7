/* SPDX-License-Identifier: MIT */
/*
 * Gradients of samples on their way to the hosts of rows, for tables that are spread and whose owner makes the
 * sums (exchange=rows+grads). A reader's part for a host has, behind its head, the number of ids of each bag, the
 * place of each id among the rows that the host was asked for, coefficients, and a gradient for each bag. A bag
 * without rows of the host is left out. A single id, or a position of a sequence, counts as a bag.
 */
#ifndef EMBENG_HOSTS_SAMPLES_H
#define EMBENG_HOSTS_SAMPLES_H

#include "segment.h"

#define SAMPLES_BAGS 1u	   /* numbers of ids follow; without it each bag has one */
#define SAMPLES_SCALES 2u  /* a coefficient for each bag */
#define SAMPLES_WEIGHTS 4u /* a coefficient for each id */

/**
 * struct samples_head - begins the part of a reader
 * @form: SAMPLES_*
 * @given: there are gradients; without them all are zero
 */
struct samples_head {
	uint32_t form, given;
	uint64_t bags, ids;
};

/* Ids and bags of a reader that a host gets. */
struct picked {
	uint64_t bags, ids;
};

/* Where the next numbers for a host go, and the bag that the last one was of. */
struct sample_cursor {
	uint32_t *ids, *places;
	float *coefficients, *gradients;
	uint64_t bag;
};

/**
 * struct occurrences - the ids of lists that send gradients, in a slot's cargo
 * @again: [lists][hosts]: rows that a host is asked for once more, for tables that take each gradient by itself
 * @repeated: [lists]: these rows, those of each host together
 * @owners: [lists]: the host of each row of a list
 * @places: [readers]: of each id among the rows that its host is asked for, or -1
 * @picked: [readers][hosts]
 * @cursors: [hosts]
 * @memory: has what these point to; @work: coefficients of one reader
 */
struct occurrences {
	size_t *again;
	int64_t **repeated;
	uint32_t **owners;
	int32_t **places;
	struct picked *picked;
	struct sample_cursor *cursors;
	struct hosts_memory memory, work;
};

/*
 * The ids of a reader that have a row, one after another, with the row of gradients of each. Ids of a sequence
 * that the policy leaves out take no position.
 */
struct sample_walk {
	const struct embeng_spread_feature *reader;
	bool drops;
	size_t next, sample, out;
};

/* Return: whether there is another id; @at: its number, @bag: the number of its bag */
static inline bool sample_next(struct sample_walk *w, size_t *at, uint64_t *bag)
{
	const struct embeng_spread_feature *r = w->reader;

	for (; w->next < r->id_count; w->next++) {
		for (; r->offsets && (size_t)r->offsets[w->sample + 1] <= w->next; w->sample++)
			w->out = 0;
		if (r->places[w->next] >= 0)
			break;
		w->out += w->drops;
	}
	if (w->next == r->id_count)
		return false;
	*at = *bag = w->next++;
	if (r->offsets)
		*bag = w->sample;
	if (r->offsets && r->max_sequence_length)
		*bag = w->sample * (uint64_t)r->max_sequence_length + *at -
		       (uint64_t)r->offsets[w->sample] - w->out;
	return true;
}

/* occurrences.c: memory of a cargo, and what a batch needs once its rows are listed. Return: 0, -ENOMEM. */
int occurrences_new(const struct hosts *h, struct cargo *cargo);
void occurrences_free(struct cargo *cargo);
int occurrences_make(const struct hosts *h, struct cargo *cargo);
/* Nothing is asked for twice: a batch of inference. */
void occurrences_clear(const struct hosts *h, struct cargo *cargo);

/* samples.c: counts what each host gets, tells its bytes, and writes it to cargo->at, which moves on. */
void samples_count(const struct hosts *h, struct cargo *cargo);
uint64_t samples_bytes(const struct hosts *h, const struct cargo *cargo, uint32_t host);
int samples_put(const struct hosts *h, struct cargo *cargo);

/*
 * samples_take.c: makes the sums of a replica whose gradients came from @host.
 * @elements: floats of each feature of the owner handle; @features: out: the sums of those that are summed
 *
 * Return: 0, -EBADMSG, -ENOMEM.
 */
int samples_take(struct hosts *h, uint32_t host, struct reading *segment, const size_t *elements,
		 const float **features);

#endif
