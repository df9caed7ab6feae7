// SPDX-License-Identifier: MIT
/*
 * The threads of the soft devices of this process: one pool for all of them, which is made with the
 * first device and ended with the last one.
 *
 * A copy of the process (fork) has the pool's memory and none of its threads, and its lock may be
 * held by a thread that is not there. So each process has a holder of its own, which it finds by
 * fork_generation(). Those of the processes that it was forked from are left as they are.
 */
#include <pthread.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/fork.h"
#include "soft.h"

#include "../../../../engine/engine.h"

struct holder {
	struct holder *inherited; /* so that tools that look for leaks find it */
	uint32_t generation;
	pthread_mutex_t lock; /* guards what follows */
	struct pool *pool;
	size_t devices;
};

static struct holder *current;

static struct holder *find_holder(void)
{
	struct holder *made, *found = __atomic_load_n(&current, __ATOMIC_ACQUIRE);
	uint32_t generation = fork_generation();

	if (found && found->generation == generation)
		return found;
	made = calloc(1, sizeof(*made));
	if (!made)
		return NULL;
	made->inherited = found;
	made->generation = generation;
	pthread_mutex_init(&made->lock, NULL);
	if (__atomic_compare_exchange_n(&current, &found, made, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return made;
	/* Another thread of this process was first. */
	pthread_mutex_destroy(&made->lock);
	free(made);
	return found;
}

int soft_pool_get(struct pool **out)
{
	struct holder *h = find_holder();

	*out = NULL;
	if (h) {
		pthread_mutex_lock(&h->lock);
		if (!h->pool)
			h->pool = pool_new();
		h->devices += h->pool != NULL;
		*out = h->pool;
		pthread_mutex_unlock(&h->lock);
	}
	return *out ? 0 : fail(-ENOMEM, "soft device: no memory for its threads");
}

void soft_pool_put(void)
{
	struct holder *h = find_holder();

	pthread_mutex_lock(&h->lock);
	if (!--h->devices) {
		pool_free(h->pool);
		h->pool = NULL;
	}
	pthread_mutex_unlock(&h->lock);
}
