/* SPDX-License-Identifier: MIT */
/*
 * Vectors over a group of hosts: each host runs the same command, makes the calls that all hosts make, and feeds
 * the replicas that it has.
 */
#ifndef CLI_VECTOR_HOSTS_H
#define CLI_VECTOR_HOSTS_H

#include "embeng/group.h"
#include "run.h"

/**
 * struct vector_hosts - the hosts that run vectors together
 * @group: the runner's own, beside those of the handles that vectors open
 * @rank: number of this host; @ranks: how many there are
 * @wait_ns: time that a call of a handle may take, which is longer than its group's deadline
 * @scratch: folder of the vector that is run, which host 0 made, or ""
 */
struct vector_hosts {
	struct embeng_group *group;
	uint32_t rank, ranks;
	uint64_t wait_ns;
	char scratch[4096];
};

/* Length of "mpi:" or the like that a device's name begins with; 0: the device is this process's alone. */
size_t vector_hosts_prefix(const char *device);

/*
 * vector_hosts_join() - wait for all hosts
 * @vectors: how many vectors this host has read; they must be as many on all
 * @code: 0, or a negative errno: this host cannot run any, and no host does then
 *
 * Return: 0, or a negative errno with the sentence in @error.
 */
int vector_hosts_join(struct vector_hosts *hosts, const char *device, size_t vectors, int code,
		      struct embeng_error *error);
void vector_hosts_leave(struct vector_hosts *hosts);

/*
 * Why a vector cannot be run over these hosts: a list of one sentence, owned by the caller; NULL: it can, unless
 * a call is refused.
 */
struct json_object *vector_hosts_refuse(const struct vector_hosts *hosts,
					const struct json *vector);

/* Before and after a vector: has all hosts know one folder, if it has checkpoints, and removes it. */
int vector_hosts_enter(struct vector_hosts *hosts, const struct json *vector,
		       struct embeng_error *error);

/**
 * vector_hosts_settle() - agree on how a vector ended
 * @outcome: this host's; then that of all hosts
 * @keep_going: all failures are kept, and not only those of the first step
 *
 * Return: 0, or a negative errno with the sentence in @error: a host has failed.
 */
int vector_hosts_settle(struct vector_hosts *hosts, struct vector_outcome *outcome, bool keep_going,
			struct embeng_error *error);

/*
 * A group of hosts refuses the call, and the vector does not ask for that: it is noted, as the first one.
 * @step: from 1; 0: the model
 */
bool vector_hosts_refused(const struct run *r, int result, const struct json *error, int64_t step,
			  struct vector_outcome *outcome);
/* The step is about a replica that another host has. */
bool vector_hosts_elsewhere(const struct run *r, uint32_t replica);
/* Takes part in an inference of another host. */
int vector_hosts_look(struct run *r);
/* The same for embeng_gradient_norm() and embeng_weight_gradients(). */
int vector_hosts_tell(struct run *r, const struct json *body);
/* Time that a call of a step may take: none without hosts, or until they have answered. */
int64_t vector_hosts_wait(const struct run *r, const struct json *error);

#endif
