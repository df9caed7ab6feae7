// SPDX-License-Identifier: MIT
/*
 * Ranks the held-out items of a split among others and counts the hits. The way of scoring is the
 * caller's; scoring by popularity, as a baseline, is here.
 */
#include "evaluate.h"
#include "sampler.h"

static bool is_hit(const struct scorer *scorer, size_t basket, uint32_t held,
		   const uint32_t *others)
{
	unsigned int ahead = 0;
	float score;

	if (scorer->begin)
		scorer->begin(scorer->arg, basket);
	score = scorer->score(scorer->arg, held);
	for (int k = 0; k < EVALUATE_OTHERS; k++)
		ahead += !(scorer->score(scorer->arg, others[k]) < score);
	return ahead < EVALUATE_FIRST;
}

void evaluate(const struct dataset *data, const struct split *split, uint64_t seed,
	      const struct scorer *scorers, size_t count, double *hit_at_10)
{
	struct random random = random_seeded(seed, RANDOM_CANDIDATES);
	uint32_t others[EVALUATE_OTHERS];

	for (size_t s = 0; s < count; s++)
		hit_at_10[s] = 0;
	for (size_t b = 0; b < data->basket_count; b++) {
		for (int k = 0; k < EVALUATE_OTHERS; k++)
			others[k] = sampler_stranger(data, split, b, &random);
		for (size_t s = 0; s < count; s++)
			hit_at_10[s] += is_hit(&scorers[s], b, split->held[b], others);
	}
	for (size_t s = 0; s < count && data->basket_count; s++)
		hit_at_10[s] /= (double)data->basket_count;
}

static float score_by_uses(void *arg, uint32_t item)
{
	const struct split *split = arg;

	return (float)split->uses[item];
}

struct scorer scorer_popularity(const struct split *split)
{
	return (struct scorer){.score = score_by_uses, .arg = (void *)split};
}
