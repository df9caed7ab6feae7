// SPDX-License-Identifier: MIT
/*
 * Turns the ids of one core of the grid into words of token, row and gain, ordered by partition or
 * by the first digit of the whole key. Ids are copied first, keys are made of the copies and
 * counted, and then each word is put where it belongs.
 *
 * The program may change its ids meanwhile, so each is read once. Several cores of the grid run at
 * the same time, each with memory of its own (struct pcsr_words); no lock is needed.
 */
#include "partition.h"

/*
 * Words of a partition follow each other: stores, which wait for their lines one after another, find
 * those fetched that lie two further on. Words by digit lie in the second cache as it is.
 */
#define PUT_AHEAD 16u

/* The numbers by which ids of a feature become keys. */
struct keys {
	u32 cores, rotation, token_bits, first_token, core_bits;
	bool power;
	const struct pcsr_digit *digits;
	u32 *counts; /* a set for each digit, PCSR_DIGIT_MAX bits apart */
};

/* The ids of one feature and core: [first, last), of samples from @begin on. */
struct share {
	const struct pcsr_feature *f;
	u64 first, last, begin;
	u32 *keys;
};

/* Where words go to. */
struct target {
	u64 *words, *payload;
	u32 *places;	 /* one for each partition, or for each value of the first digit */
	u64 count;	 /* words so far */
	u32 shift, mask; /* where in a key that stands */
	u32 token_mask, row_bits;
	u32 ahead; /* words from a place to the one that is fetched, 0: none is */
	struct command *command;
};

static struct keys keys_of(const struct pcsr_job *job, const struct pcsr_feature *f,
			   const struct pcsr_words *words)
{
	struct keys k = {
		.cores = job->given->cores,
		.rotation = f->given->rotation,
		.token_bits = job->token_bits,
		.first_token = (u32)(f->given->column_offset / job->given->cores),
		.power = !(job->given->cores & (job->given->cores - 1)),
		.core_bits = job->part_bits,
		.digits = job->digits,
		.counts = job->flat ? words->places : words->starts + 1,
	};

	return k;
}

/* In place: of ids that are checked. */
INLINE void make_keys(u32 *keys, u64 count, const struct keys *keys_of, const bool power)
{
	const struct keys k = *keys_of; /* so that stores change none of it */

	for (u64 i = 0; i < count; i++) {
		u32 id = keys[i];
		u32 part = power ? (id + k.rotation) & (k.cores - 1) :
				   (u32)(((u64)id + k.rotation) % k.cores);
		u32 token = (power ? id >> k.core_bits : id / k.cores) + k.first_token;

		keys[i] = part << k.token_bits | token;
	}
}

INLINE u32 digit_of_key(u32 key, const struct pcsr_digit *digit)
{
	return key >> digit->shift & ((1u << digit->bits) - 1);
}

INLINE void count_key_passes(const u32 *keys, u64 count, const struct keys *k, const u32 passes)
{
	struct pcsr_digit digits[PCSR_PASSES_MAX];
	u32 *restrict counts = k->counts;

	memcpy(digits, k->digits, passes * sizeof(*digits));
	for (u64 i = 0; i < count; i++) {
		for (u32 d = 0; d < passes; d++)
			counts[(d << PCSR_DIGIT_MAX) + digit_of_key(keys[i], &digits[d])]++;
	}
}

static void count_keys(const u32 *keys, u64 count, const struct keys *k, u32 passes)
{
	switch (passes) {
	case 1:
		return count_key_passes(keys, count, k, 1);
	case 2:
		return count_key_passes(keys, count, k, 2);
	case 3:
		return count_key_passes(keys, count, k, 3);
	}
	count_key_passes(keys, count, k, passes);
}

/* Each id is read from shared memory once; what is checked is what is used. */
static u16 keys_of_share(struct pcsr_job *job, u32 core, u32 feature, const struct share *share,
			 const struct pcsr_words *words)
{
	const struct embeng_partition_feature *g = share->f->given;
	const struct given_ids ids = { share->f->ids_view.data, g->rows, g->id_width };
	const struct keys k = keys_of(job, share->f, words);
	u64 count = share->last - share->first;
	u16 status = ids_take(job->command, job->engine->kernels, share->keys, &ids, share->first,
			      share->last, false, feature, &job->cores[core].fault);

	for (u64 at = 0, end; !status && at < count && !command_is_cut(job->command); at = end) {
		end = piece_end(at, count);
		if (k.power)
			make_keys(share->keys + at, end - at, &k, true);
		else
			make_keys(share->keys + at, end - at, &k, false);
		count_keys(share->keys + at, end - at, &k, job->passes);
		piece_over(job->command);
	}
	return status;
}

INLINE void put_word(struct target *t, u32 key, u64 row, u32 gain, const enum kernel_words form)
{
	u64 *restrict to = &t->words[t->places[key >> t->shift & t->mask]++];
	u64 token = key & t->token_mask;

	if (t->ahead)
		__builtin_prefetch(to + t->ahead, 1);
	if (form == KERNEL_WORDS_ONES) {
		*to = token << t->row_bits | row;
	} else if (form == KERNEL_WORDS_PACKED) {
		*to = (token << t->row_bits | row) << 32 | gain;
	} else {
		*to = token << 32 | t->count;
		t->payload[t->count++] = row << 32 | gain;
	}
}

enum gains { GAINS_ONE, GAINS_SAMPLE, GAINS_EACH };

INLINE u32 gain_of(const struct pcsr_feature *f, u64 sample, u64 k, const enum gains gains)
{
	return gains == GAINS_ONE ? F32_ONE : f->gains[gains == GAINS_EACH ? k : sample];
}

INLINE void put_dense(struct target *target, const struct share *s, const enum gains gains,
		      const enum kernel_words form)
{
	const struct pcsr_feature f = *s->f;
	const u32 *keys = s->keys - s->first;
	struct target t = *target; /* so that stores through it change none of it */

	for (u64 k = s->first; k < s->last;) {
		for (u64 end = piece_end(k, s->last); k < end; k++)
			put_word(&t, keys[k], f.row + k - s->begin, gain_of(&f, k, k, gains), form);
		if (k < s->last && piece_over(t.command))
			return;
	}
	target->count = t.count;
}

INLINE void put_bags(struct target *target, const struct share *s, const enum gains gains,
		     const enum kernel_words form)
{
	const struct pcsr_feature f = *s->f;
	const u32 *key = s->keys;
	struct target t = *target;
	u64 k = s->first, last = s->last, row = f.row, left = PIECE_ROWS;

	for (u64 sample = s->begin; k < last; sample++, row++) {
		u64 end = f.offsets[sample + 1];

		/* A sample counts as one more, since it may be empty. */
		while (end - k >= left) {
			for (u64 stop = k + left - 1; k < stop; k++)
				put_word(&t, *key++, row, gain_of(&f, sample, k, gains), form);
			left = PIECE_ROWS;
			if (piece_over(t.command))
				return;
		}
		left -= end - k + 1;
		left += !left;
		for (; k < end; k++)
			put_word(&t, *key++, row, gain_of(&f, sample, k, gains), form);
	}
	target->count = t.count;
}

INLINE void put_share(struct target *t, const struct share *s, const enum kernel_words form)
{
	if (!s->f->offsets && !s->f->gains)
		put_dense(t, s, GAINS_ONE, form);
	else if (!s->f->offsets)
		put_dense(t, s, GAINS_EACH, form);
	else if (!s->f->gains)
		put_bags(t, s, GAINS_ONE, form);
	else if (s->f->each)
		put_bags(t, s, GAINS_EACH, form);
	else
		put_bags(t, s, GAINS_SAMPLE, form);
}

static void put_words(struct target *t, const struct share *s, enum kernel_words form)
{
	switch (form) {
	case KERNEL_WORDS_PAIRED:
		return put_share(t, s, KERNEL_WORDS_PAIRED);
	case KERNEL_WORDS_PACKED:
		return put_share(t, s, KERNEL_WORDS_PACKED);
	case KERNEL_WORDS_ONES:
		return put_share(t, s, KERNEL_WORDS_ONES);
	}
}

static void make_gains(struct pcsr_job *job, const struct share *s)
{
	const struct pcsr_feature *f = s->f;
	struct kernel_scale_work work = {
		.combiner = f->given->combiner,
		.weights = f->weights_view.data,
		.bag = f->offsets,
		.scales = f->each ? NULL : (float *)f->gains,
		.coef = f->each ? (float *)f->gains : NULL,
	};

	if (f->given->combiner != EMBENG_COMBINER_SUM && f->offsets && f->gains)
		scales_run(job->command, &work, s->begin, s->begin + f->samples);
}

static struct share share_of_core(const struct pcsr_job *job, u32 core, u32 feature, u32 *keys)
{
	const struct pcsr_feature *f = &job->features[feature];
	u64 begin = core * f->samples, end = begin + f->samples;

	return (struct share){
		.f = f,
		.begin = begin,
		.first = f->offsets ? f->offsets[begin] : begin,
		.last = f->offsets ? f->offsets[end] : end,
		.keys = keys,
	};
}

static void clear_counts(const struct pcsr_job *job, const struct pcsr_words *words)
{
	if (!job->flat)
		memset(words->starts, 0, (job->given->cores + 1ull) * sizeof(*words->starts));
	for (u32 d = 0; job->flat && d < job->passes; d++)
		memset(words->places + (d << PCSR_DIGIT_MAX), 0,
		       sizeof(u32) << job->digits[d].bits);
}

static u16 count_all(struct pcsr_job *job, u32 core, const struct pcsr_words *words)
{
	u32 *keys = words->keys;
	u16 status = 0;

	clear_counts(job, words);
	for (u32 i = 0; !status && i < job->given->feature_count; i++) {
		struct share s = share_of_core(job, core, i, keys);

		status = keys_of_share(job, core, i, &s, words);
		keys += s.last - s.first;
	}
	return status;
}

/* Counts, one entry up, become where each partition begins; a second row is used up. */
static u32 *places_by_partition(const struct pcsr_job *job, const struct pcsr_words *words)
{
	u32 *starts = words->starts, *places = starts + job->given->cores + 1;

	for (u32 p = 0; p < job->given->cores; p++) {
		starts[p + 1] += starts[p];
		places[p] = starts[p];
	}
	return places;
}

/* The last digit has all of the partition, which begins where its first token would. */
static u32 *places_by_digit(const struct pcsr_job *job, u64 count, const struct pcsr_words *words)
{
	const u32 *last = words->places + ((job->passes - 1) << PCSR_DIGIT_MAX);
	u32 token_bits = job->digits[job->passes - 1].bits - job->part_bits;

	for (u32 d = 0; d < job->passes; d++)
		pcsr_sum_up(words->places + (d << PCSR_DIGIT_MAX), job->digits[d].bits);
	for (u32 p = 0; p < job->given->cores; p++)
		words->starts[p] = last[p << token_bits];
	words->starts[job->given->cores] = (u32)count;
	return words->places;
}

static struct target target_of(const struct pcsr_job *job, u64 count,
			       const struct pcsr_words *words)
{
	return (struct target){
		.command = job->command,
		.words = words->words,
		.payload = words->payload,
		.places = job->flat ? places_by_digit(job, count, words) :
				      places_by_partition(job, words),
		.shift = job->digits[0].shift,
		.mask = (1u << job->digits[0].bits) - 1,
		.token_mask = job->flat ? U32_MAX : (u32)((1ull << job->token_bits) - 1),
		.row_bits = job->row_bits,
		.ahead = job->flat ? 0 : PUT_AHEAD,
	};
}

u16 pcsr_collect(struct pcsr_job *job, u32 core, const struct pcsr_words *words)
{
	u16 status = count_all(job, core, words);
	u32 *keys = words->keys;
	struct target t;

	if (status || command_is_cut(job->command))
		return status;
	t = target_of(job, job->cores[core].words, words);
	for (u32 i = 0; i < job->given->feature_count && !command_is_cut(job->command); i++) {
		struct share s = share_of_core(job, core, i, keys);

		make_gains(job, &s);
		if (command_is_cut(job->command))
			break;
		put_words(&t, &s, job->form);
		keys += s.last - s.first;
	}
	return 0;
}
