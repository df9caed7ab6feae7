/* SPDX-License-Identifier: MIT */
/* Random numbers from a seed. Each purpose has its own stream, so that none affects another. */
#ifndef CLI_RANDOM_H
#define CLI_RANDOM_H

#include <stdint.h>

enum random_purpose { RANDOM_SPLIT = 1, RANDOM_SAMPLES, RANDOM_CANDIDATES, RANDOM_ORDER };

struct random {
	uint64_t state;
};

/* The next number of splitmix64 (Steele, Lea, Flood 2014). */
static inline uint64_t random_next(struct random *r)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static inline struct random random_seeded(uint64_t seed, enum random_purpose purpose)
{
	struct random r = {seed};

	r.state = random_next(&r) ^ (uint64_t)purpose << 56;
	return r;
}

/* A number from 0 to @limit - 1, with a bias below limit / 2^32. */
static inline uint32_t random_below(struct random *r, uint64_t limit)
{
	return (uint32_t)((random_next(r) >> 32) * limit >> 32);
}

#endif
