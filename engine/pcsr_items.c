// SPDX-License-Identifier: MIT
/*
 * Ids of one core of the device as words of token, row and gain, by partition: one pass makes
 * keys of the ids and counts, another puts the words where they belong.
 */
#include "pcsr.h"

#define GAIN_ONE 0x3f800000u

#define INLINE static inline __attribute__((always_inline))

/* Of a feature, what makes keys of ids. */
struct keys {
	u32 cores, rotation, token_bits, first_token, core_bits;
	bool power;
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
	u32 *places; /* of each partition */
	u64 count;   /* words so far */
	u32 token_bits, token_mask, row_bits;
};

static struct keys keys_of(const struct pcsr_job *job, const struct pcsr_feature *f)
{
	struct keys k = {
		.cores = job->given->cores,
		.rotation = f->given->rotation,
		.token_bits = job->token_bits,
		.first_token = (u32)(f->given->column_offset / job->given->cores),
		.power = !(job->given->cores & (job->given->cores - 1)),
		.core_bits = job->part_bits,
	};

	return k;
}

INLINE u32 key_of(const struct keys *k, u32 id, const bool power)
{
	u32 part = power ? (id + k->rotation) & (k->cores - 1) :
			   (u32)(((u64)id + k->rotation) % k->cores);
	u32 token = (power ? id >> k->core_bits : id / k->cores) + k->first_token;

	return part << k->token_bits | token;
}

static u16 bad_id(struct pcsr_core *core, u32 feature, u64 first, s64 id, u64 rows)
{
	return fault_set(&core->fault, EMBENG_STATUS_ID, EMBENG_FIELD_IDS, feature, first, (u64)id,
			 rows);
}

/* Each id is read from shared memory once; what is checked is what is used. */
INLINE u16 make_keys(struct pcsr_core *core, const struct share *share, u32 feature,
		     const struct keys *k, u32 *counts, const bool wide, const bool power)
{
	const volatile s64 *given64 = (const s64 *)share->f->ids_view.data;
	const volatile s32 *given32 = (const s32 *)share->f->ids_view.data;
	u64 rows = share->f->given->rows;

	for (u64 i = share->first; i < share->last; i++) {
		s64 id = wide ? given64[i] : given32[i];
		u32 key;

		if (__builtin_expect((u64)id >= rows, 0))
			return bad_id(core, feature, i, id, rows);
		key = key_of(k, (u32)id, power);
		counts[key >> k->token_bits]++;
		share->keys[i - share->first] = key;
	}
	return 0;
}

static u16 make_keys_of(struct pcsr_job *job, u32 core, u32 feature, const struct share *share,
			u32 *counts)
{
	struct keys k = keys_of(job, share->f);
	struct pcsr_core *c = &job->cores[core];

	if (share->f->given->id_width == 8)
		return k.power ? make_keys(c, share, feature, &k, counts, true, true) :
				 make_keys(c, share, feature, &k, counts, true, false);
	return k.power ? make_keys(c, share, feature, &k, counts, false, true) :
			 make_keys(c, share, feature, &k, counts, false, false);
}

INLINE void put(struct target *t, u32 key, u64 row, u32 gain, const bool packed)
{
	u64 *restrict to = &t->words[t->places[key >> t->token_bits]++];
	u64 token = key & t->token_mask;

	if (packed) {
		*to = (token << t->row_bits | row) << 32 | gain;
	} else {
		*to = token << 32 | t->count;
		t->payload[t->count++] = row << 32 | gain;
	}
}

enum gains { GAINS_ONE, GAINS_SAMPLE, GAINS_EACH };

INLINE u32 gain_of(const struct pcsr_feature *f, u64 sample, u64 k, const enum gains gains)
{
	return gains == GAINS_ONE ? GAIN_ONE : f->gains[gains == GAINS_EACH ? k : sample];
}

INLINE void put_dense(struct target *target, const struct share *s, const bool packed)
{
	struct target t = *target; /* so that stores through it change none of it */

	for (u64 k = s->first; k < s->last; k++)
		put(&t, s->keys[k - s->first], s->f->row + k - s->begin, GAIN_ONE, packed);
	target->count = t.count;
}

INLINE void put_bags(struct target *target, const struct share *s, const enum gains gains,
		     const bool packed)
{
	const struct pcsr_feature f = *s->f;
	const u32 *key = s->keys;
	struct target t = *target;
	u64 k = s->first, last = s->last, row = f.row;

	for (u64 sample = s->begin; k < last; sample++, row++) {
		u64 end = f.offsets[sample + 1];

		for (; k < end; k++)
			put(&t, *key++, row, gain_of(&f, sample, k, gains), packed);
	}
	target->count = t.count;
}

INLINE void put_share(struct target *t, const struct share *s, const bool packed)
{
	if (!s->f->offsets)
		put_dense(t, s, packed);
	else if (!s->f->gains)
		put_bags(t, s, GAINS_ONE, packed);
	else if (s->f->each)
		put_bags(t, s, GAINS_EACH, packed);
	else
		put_bags(t, s, GAINS_SAMPLE, packed);
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
		scales_run(job->engine->kernels, &work, s->begin, s->begin + f->samples);
}

static struct share share_of(const struct pcsr_job *job, u32 core, u32 feature, u32 *keys)
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

static u16 count_all(struct pcsr_job *job, u32 core, const struct pcsr_words *words)
{
	u32 *keys = words->keys, *counts = words->starts + 1;
	u16 status = 0;

	memset(words->starts, 0, (job->given->cores + 1ull) * sizeof(*words->starts));
	for (u32 i = 0; !status && i < job->given->feature_count; i++) {
		struct share s = share_of(job, core, i, keys);

		status = make_keys_of(job, core, i, &s, counts);
		keys += s.last - s.first;
	}
	return status;
}

/* Counts, one entry up, become where each partition begins; a second row is used up. */
static void sum_up(const struct pcsr_job *job, const struct pcsr_words *words)
{
	u32 *starts = words->starts, *places = starts + job->given->cores + 1;

	for (u32 p = 0; p < job->given->cores; p++) {
		starts[p + 1] += starts[p];
		places[p] = starts[p];
	}
}

u16 pcsr_collect(struct pcsr_job *job, u32 core, const struct pcsr_words *words)
{
	struct target t = {
		.words = words->words,
		.payload = words->payload,
		.places = words->starts + job->given->cores + 1,
		.token_bits = job->token_bits,
		.token_mask = (u32)((1ull << job->token_bits) - 1),
		.row_bits = job->row_bits,
	};
	u16 status = count_all(job, core, words);
	u32 *keys = words->keys;

	if (status)
		return status;
	sum_up(job, words);
	for (u32 i = 0; i < job->given->feature_count; i++) {
		struct share s = share_of(job, core, i, keys);

		make_gains(job, &s);
		if (job->packed)
			put_share(&t, &s, true);
		else
			put_share(&t, &s, false);
		keys += s.last - s.first;
	}
	return 0;
}
