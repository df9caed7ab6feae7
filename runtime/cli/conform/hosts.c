// SPDX-License-Identifier: MIT
/*
 * Vectors over a group of hosts. It is a file because it is all that a runner of several processes needs
 * beside one of one: who makes which call, and how they agree on the outcome.
 *
 * All hosts read the same vectors. A call that all hosts make is made by each; one that is about a replica is made
 * by the host that has it, and the others go on to their next step, as programs do. A step that went wrong
 * ends the vector nowhere, so that no host waits for another; the first one counts. The group is the
 * runner's own, and used between vectors alone. Each handle opens one for itself, so that one that failed takes
 * no other vector with it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../frame/scratch.h"
#include "hosts.h"
#include "value.h"

#define SECOND_NS 1000000000ull
#define DEADLINE_SECONDS 300 /* seconds, where the name has none */
#define CALL_MORE 2	     /* a call of a handle ends soon after its group's deadline */
#define DEADLINE_MORE 5	     /* another host may be in such a call */
#define REPLICAS_MOST 64
#define SHORT_WAIT_NS (SECOND_NS / 2) /* for a call that is to find nothing */

size_t vector_hosts_prefix(const char *device)
{
	static const char *const prefixes[] = {"mpi:", "openmpi:", "mpich:"};

	for (size_t i = 0; device && i < sizeof(prefixes) / sizeof(*prefixes); i++) {
		if (!strncmp(device, prefixes[i], strlen(prefixes[i])))
			return strlen(prefixes[i]);
	}
	return 0;
}

static uint64_t read_deadline(const char *device)
{
	const char *at = strstr(device, "deadline=");
	const uint64_t given = at ? strtoull(at + strlen("deadline="), NULL, 10) : 0;

	return (given ? given : DEADLINE_SECONDS) * SECOND_NS;
}

static int say_no_memory(struct embeng_error *error)
{
	snprintf(error->text, sizeof(error->text), "there is no memory for messages to the hosts");
	return -ENOMEM;
}

/* Each host gives all others the same bytes. */
static int tell_all(struct vector_hosts *hosts, const char *phase, int status, const char *text,
		    struct embeng_bytes *received, struct embeng_error *error)
{
	struct embeng_bytes *send = calloc(hosts->ranks, sizeof(*send));
	struct embeng_exchange x = EMBENG_INIT(embeng_exchange, .phase = phase, .status = status,
					       .text = text, .send = send);
	int ret;

	if (!send)
		return say_no_memory(error);
	for (uint32_t rank = 0; rank < hosts->ranks; rank++)
		send[rank] = (struct embeng_bytes){text, strlen(text) + 1};
	ret = embeng_group_exchange(hosts->group, &x, received, error);
	free(send);
	return ret;
}

/* All have read as many vectors as this host, and so the same files. */
static int compare_counts(const struct vector_hosts *hosts, const struct embeng_bytes *received,
			  const char *own, struct embeng_error *error)
{
	for (uint32_t rank = 0; rank < hosts->ranks; rank++) {
		const char *theirs = received[rank].data;

		if (!strcmp(theirs, own))
			continue;
		snprintf(
			error->text, sizeof(error->text),
			"host %u (%s) has read %s vectors, and host %u has read %s; give all hosts "
			"the same files",
			rank, embeng_group_host(hosts->group, rank), theirs, hosts->rank, own);
		return -EINVAL;
	}
	return 0;
}

static int agree_on_vectors(struct vector_hosts *hosts, size_t vectors, int code,
			    struct embeng_error *error)
{
	struct embeng_bytes *received = calloc(hosts->ranks, sizeof(*received));
	char own[32];
	int ret;

	snprintf(own, sizeof(own), "%zu", vectors);
	ret = received ? tell_all(hosts, "vectors", code, code ? "it cannot begin" : own, received,
				  error)
		       : say_no_memory(error);
	ret = ret ? ret : compare_counts(hosts, received, own, error);
	free(received);
	return ret;
}

int vector_hosts_join(struct vector_hosts *hosts, const char *device, size_t vectors, int code,
		      struct embeng_error *error)
{
	const struct embeng_group_options options = EMBENG_INIT(
		embeng_group_options,
		.deadline_ns = read_deadline(device) + DEADLINE_MORE * SECOND_NS);
	struct embeng_transport transport;
	char name[16];
	int ret;

	snprintf(name, sizeof(name), "%.*s", (int)vector_hosts_prefix(device) - 1, device);
	ret = embeng_group_transport(name, &transport, error);
	if (ret)
		return ret;
	hosts->wait_ns = read_deadline(device) + CALL_MORE * SECOND_NS;
	hosts->rank = transport.rank;
	hosts->ranks = transport.ranks;
	ret = embeng_group_open(&transport, &options, &hosts->group, error);
	if (ret)
		return ret;
	ret = agree_on_vectors(hosts, vectors, code, error);
	if (ret)
		vector_hosts_leave(hosts);
	return ret;
}

void vector_hosts_leave(struct vector_hosts *hosts)
{
	embeng_group_close(hosts->group);
	hosts->group = NULL;
}

/* -- which vectors, and which steps -- */

static bool has_several_replicas(const struct json *vector)
{
	const struct json *steps = member(vector, "steps");
	bool several = integer_member(member(vector, "engine"), "replicas", 1) > 1;

	for (size_t i = 0; i < list_length(steps); i++) {
		const struct json *engine = member(member(json_at(steps, i), "reopen"), "engine");

		several |= integer_member(engine, "replicas", 1) > 1;
	}
	return several;
}

/* A call of one replica is to fail, or to find that another replica is behind. */
static bool fails_for_a_replica(const struct json *vector)
{
	static const char *const verbs[] = {"enqueue", "dequeue", "apply_gradients", "update",
					    "discard"};
	const struct json *steps = member(vector, "steps");

	for (size_t i = 0; i < list_length(steps); i++) {
		const struct json *step = json_at(steps, i);

		for (size_t v = 0; v < sizeof(verbs) / sizeof(*verbs); v++) {
			if (member(step, "error") && member(step, verbs[v]))
				return true;
		}
	}
	return false;
}

/* Batches that each replica has been given, and its activations that were taken. */
struct replica_counts {
	int64_t given[REPLICAS_MOST], taken[REPLICAS_MOST];
};

static int64_t host_of(int64_t replica, int64_t replicas, uint32_t hosts)
{
	return ((replica + 1) * hosts - 1) / replicas;
}

/* Counts a step. Returns true if a replica is dequeued before its host has given all its replicas a batch. */
static bool count_step(struct replica_counts *c, const struct json *step, int64_t replicas,
		       uint32_t hosts)
{
	const struct json *given = member(step, "enqueue"), *taken = member(step, "dequeue");
	const int64_t replica = integer_member(given ? given : taken, "replica", 0);

	if (replica < 0 || replica >= replicas)
		return false;
	c->given[replica] += given && bool_member(given, "training", true);
	if (!taken)
		return false;
	c->taken[replica]++;
	for (int64_t r = 0; r < replicas; r++) {
		if (host_of(r, replicas, hosts) == host_of(replica, replicas, hosts) &&
		    c->given[r] < c->taken[replica])
			return true;
	}
	return false;
}

static bool dequeues_early(const struct json *vector, uint32_t hosts)
{
	const int64_t replicas = integer_member(member(vector, "engine"), "replicas", 1);
	const struct json *steps = member(vector, "steps");
	struct replica_counts counts = {0};

	for (size_t i = 0; replicas > 1 && i < list_length(steps); i++) {
		if (replicas > REPLICAS_MOST ||
		    count_step(&counts, json_at(steps, i), replicas, hosts))
			return true;
	}
	return false;
}

/* An inference is every host's, and here those without the replica have no sample for it. */
static bool infers_fixed_shapes(const struct json *vector)
{
	const struct json *steps = member(vector, "steps");

	if (!bool_member(member(vector, "engine"), "fixed_shapes", false))
		return false;
	for (size_t i = 0; i < list_length(steps); i++) {
		const struct json *given = member(json_at(steps, i), "enqueue");

		if (given && !bool_member(given, "training", true))
			return true;
	}
	return false;
}

struct json_object *vector_hosts_refuse(const struct vector_hosts *hosts, const struct json *vector)
{
	struct json_object *list;
	const char *why = NULL;

	if (hosts->ranks == 1)
		return NULL;
	if (has_several_replicas(vector) && fails_for_a_replica(vector))
		why = "over hosts: a call of one replica fails for all replicas, or waits for them";
	else if (dequeues_early(vector, hosts->ranks))
		why = "over hosts: activations come once a host has enqueued all its replicas";
	else if (infers_fixed_shapes(vector))
		why = "over hosts: with fixed_shapes each host gives samples to an inference";
	if (!why)
		return NULL;
	list = json_object_new_array();
	json_object_array_add(list, json_object_new_string(why));
	return list;
}

bool vector_hosts_elsewhere(const struct run *r, uint32_t replica)
{
	const int64_t replicas = integer_member(r->opened, "replicas", 1);

	return r->options->hosts && replica < replicas &&
	       (replica < r->first_replica || replica >= r->first_replica + r->replica_count);
}

int64_t vector_hosts_wait(const struct run *r, const struct json *error)
{
	const char *name = text_member(error, "errno", NULL);

	if (!r->options->hosts)
		return 0;
	return (int64_t)(error && (!name || !strcmp(name, "ETIME")) ? SHORT_WAIT_NS
								    : r->options->hosts->wait_ns);
}

/* A batch without samples. An error is that of the host with the samples, which tells it, here and below. */
int vector_hosts_look(struct run *r)
{
	const size_t features = embeng_model_feature_count(r->model);
	struct embeng_output *outputs = calloc(features + 1, sizeof(*outputs));
	struct embeng_batch *b = embeng_batch_new(r->e, EMBENG_INFERENCE, 0);
	const int64_t none = 0;
	float unused = 0;
	int err = outputs && b ? 0 : -ENOMEM;

	for (size_t f = 0; !err && f < features; f++) {
		outputs[f].data = &unused;
		err = embeng_batch_ragged(b, (int)f, EMBENG_I64, &none, 0, &none, 0, NULL, 0);
	}
	if (!err)
		embeng_lookup(r->e, b, outputs, features, -1);
	embeng_batch_free(b);
	free(outputs);
	return err ? run_library(r, err) : STEP_ELSEWHERE;
}

/* Without a part, and with a batch without samples for each feature whose weights are compared. */
int vector_hosts_tell(struct run *r, const struct json *body)
{
	const size_t features = embeng_model_feature_count(r->model);
	const struct json *wanted = member(body, "weights");
	struct embeng_gradient_norms norms = EMBENG_INIT(embeng_gradient_norms);
	struct embeng_gradients g = EMBENG_INIT(embeng_gradients, .count = features);
	const float **given = calloc(features + 1, sizeof(*given));
	float **weights = calloc(features + 1, sizeof(*weights));
	size_t *counts = calloc(features + 1, sizeof(*counts));
	struct embeng_batch *b = embeng_batch_new(r->e, EMBENG_INFERENCE, 0);
	const int64_t none = 0;
	int err = given && weights && counts && b ? 0 : -ENOMEM, told;

	for (size_t f = 0; !err && f < features; f++)
		err = embeng_batch_ragged(b, (int)f, EMBENG_I64, &none, 0, &none, 0, NULL, 0);
	g.features = given;
	told = err ? err : embeng_gradient_norm(r->e, NULL, NULL, 0, &norms);
	for (size_t i = 0; !told && i < json_length(wanted); i++)
		told = embeng_weight_gradients(r->e, b, &g, weights, counts, features);
	embeng_batch_free(b);
	free(given);
	free(weights);
	free(counts);
	return err ? run_library(r, err) : STEP_ELSEWHERE;
}

/* -- before and after a vector -- */

static bool has_checkpoints(const struct json *vector)
{
	const struct json *steps = member(vector, "steps");

	for (size_t i = 0; i < list_length(steps); i++) {
		if (member(json_at(steps, i), "save") || member(json_at(steps, i), "restore"))
			return true;
	}
	return false;
}

int vector_hosts_enter(struct vector_hosts *hosts, const struct json *vector,
		       struct embeng_error *error)
{
	struct embeng_bytes *received;
	char *made = NULL;
	int ret = 0;

	hosts->scratch[0] = '\0';
	if (!has_checkpoints(vector))
		return 0;
	if (!hosts->rank)
		ret = scratch_make(&made);
	received = calloc(hosts->ranks, sizeof(*received));
	if (!received)
		ret = say_no_memory(error);
	else
		ret = tell_all(hosts, "folder", ret,
			       ret    ? "there is no temporary folder"
			       : made ? made
				      : "",
			       received, error);
	if (!ret)
		snprintf(hosts->scratch, sizeof(hosts->scratch), "%s",
			 (const char *)received[0].data);
	free(received);
	free(made);
	return ret;
}

/* A host tells the others its failures, and where it was refused a call. */
static struct json_object *describe_outcome(const struct vector_outcome *o)
{
	struct json_object *told = json_object_new_object();

	json_object_object_add(told, "refused", json_object_new_int64(o->refused_step));
	json_object_object_add(told, "why", json_object_new_string(o->refused));
	json_object_object_add(told, "failures", json_object_get(o->failures));
	return told;
}

static int64_t step_of(struct json_object *failure)
{
	return json_object_get_int64(json_object_object_get(failure, "step"));
}

/* Adds the outcome of a host to that of all. */
static void join_outcome(struct vector_outcome *all, struct json_object *told, const char *host,
			 int64_t *first)
{
	struct json_object *failures = json_object_object_get(told, "failures");
	const int64_t refused = json_object_get_int64(json_object_object_get(told, "refused"));

	if (refused >= 0 && (all->refused_step < 0 || refused < all->refused_step)) {
		all->refused_step = refused;
		snprintf(all->refused, sizeof(all->refused), "%s",
			 json_object_get_string(json_object_object_get(told, "why")));
	}
	for (size_t i = 0; i < json_object_array_length(failures); i++) {
		struct json_object *failure = json_object_array_get_idx(failures, i);

		json_object_object_add(failure, "host", json_object_new_string(host));
		json_object_array_add(all->failures, json_object_get(failure));
		if (*first < 0 || step_of(failure) < *first)
			*first = step_of(failure);
	}
}

/* Keeps the failures of the first step that had any. */
static void keep_first_failures(struct vector_outcome *all, int64_t first)
{
	struct json_object *kept = json_object_new_array();

	for (size_t i = 0; i < json_object_array_length(all->failures); i++) {
		struct json_object *failure = json_object_array_get_idx(all->failures, i);

		if (step_of(failure) == first)
			json_object_array_add(kept, json_object_get(failure));
	}
	json_object_put(all->failures);
	all->failures = kept;
}

/* A call that was refused before any step failed is why the vector was not run to its end. */
static int join_outcomes(struct vector_hosts *hosts, const struct embeng_bytes *received,
			 struct vector_outcome *all, bool keep_going)
{
	int64_t first = -1;

	for (uint32_t rank = 0; rank < hosts->ranks; rank++) {
		struct json_object *told = json_tokener_parse(received[rank].data);
		char host[EMBENG_HOST_TEXT + 16];

		if (!told)
			return -ENOMEM;
		snprintf(host, sizeof(host), "%u (%s)", rank,
			 embeng_group_host(hosts->group, rank));
		join_outcome(all, told, host, &first);
		json_object_put(told);
	}
	if (first >= 0 && all->refused_step >= first)
		all->refused_step = -1;
	if (all->refused_step >= 0 || !keep_going)
		keep_first_failures(all, all->refused_step >= 0 ? -1 : first);
	return 0;
}

int vector_hosts_settle(struct vector_hosts *hosts, struct vector_outcome *outcome, bool keep_going,
			struct embeng_error *error)
{
	struct embeng_bytes *received = calloc(hosts->ranks, sizeof(*received));
	struct json_object *told = describe_outcome(outcome);
	struct vector_outcome all = {.failures = json_object_new_array(), .refused_step = -1};
	int ret = received ? tell_all(hosts, "outcome", 0, json_object_to_json_string(told),
				      received, error)
			   : say_no_memory(error);

	if (!ret && join_outcomes(hosts, received, &all, keep_going))
		ret = say_no_memory(error);
	json_object_put(told);
	free(received);
	json_object_put(outcome->failures);
	*outcome = all;
	/* All hosts have closed the vector's handle. */
	if (!hosts->rank && hosts->scratch[0])
		scratch_remove(strdup(hosts->scratch));
	return ret;
}

bool vector_hosts_refused(const struct run *r, int result, const struct json *error, int64_t step,
			  struct vector_outcome *outcome)
{
	if (!r->options->hosts || result != -ENOTSUP ||
	    !strcmp(text_member(error, "errno", ""), "ENOTSUP"))
		return false;
	if (outcome->refused_step < 0) {
		outcome->refused_step = step;
		snprintf(outcome->refused, sizeof(outcome->refused), "over hosts: %s", r->text);
	}
	return true;
}
