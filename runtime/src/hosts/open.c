// SPDX-License-Identifier: MIT
/*
 * Opens and closes handles: embeng_open(), which looks whether the name of the device asks for a group,
 * and handles over all hosts of a group. A group of one host gives an ordinary handle, unless the model has more
 * replicas than a device.
 *
 * Opening and closing are done by one thread. All that a group's handle owns lives until embeng_close(); a
 * group that the program opened stays the program's.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "choose.h"
#include "collective.h"
#include "list_stats.h"
#include "part.h"
#include "steps.h"

#define SECOND 1000000000ull

/* Hosts tell each other this before the first step. */
struct greeting {
	uint32_t depth, exchange, sharding, unused;
	uint64_t named; /* digest of the exchanges of tables that the device's name has */
	uint64_t parts; /* choose_digest() */
	uint64_t model[MODEL_DIGESTS];
};

static void free_hosts(struct hosts *h)
{
	if (!h)
		return;
	for (uint32_t i = 0; i <= HOSTS_THREADS; i++) {
		free(h->send[i]);
		free(h->received[i]);
	}
	if (h->event >= 0)
		close(h->event);
	placement_free(&h->place);
	free(h->tables);
	free(h->features);
	list_stats_free(h);
	free(h->lists);
	free(h->readers);
	free(h->choices);
	pthread_cond_destroy(&h->changed);
	pthread_mutex_destroy(&h->turn);
	free(h);
}

static struct hosts *new_hosts(struct embeng *e, struct embeng_group *group)
{
	struct hosts *h = calloc(1, sizeof(*h));
	pthread_condattr_t monotonic;

	if (!h) {
		fail(-ENOMEM, "there is no memory for a handle over a group");
		return NULL;
	}
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&h->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_mutex_init(&h->turn, NULL);
	h->event = -1;
	h->e = e;
	h->group = group;
	h->rank = embeng_group_rank(group);
	h->hosts = embeng_group_ranks(group);
	for (uint32_t i = 0; i <= HOSTS_THREADS; i++) {
		h->send[i] = calloc(h->hosts, sizeof(*h->send[i]));
		h->received[i] = calloc(h->hosts, sizeof(*h->received[i]));
		if (h->send[i] && h->received[i])
			continue;
		free_hosts(h);
		return NULL;
	}
	return h;
}

/* The owner handle gets sums for tables that are spread, and gradients for the others. */
static int mark_sums(struct hosts *h)
{
	const uint64_t needed = EMBENG_CAP_EXCHANGE | EMBENG_CAP_SUMS;

	if ((h->owner->device->info.features & needed) != needed)
		return fail(-ENOTSUP,
			    "%s exchanges no rows between hosts, so tables cannot be spread by "
			    "rows; its firmware may be an older one. exchange=table places them "
			    "whole",
			    h->owner->device->info.name);
	h->owner->takes_sums = calloc(h->owner->model->feature_count + 1,
				      sizeof(*h->owner->takes_sums));
	if (!h->owner->takes_sums)
		return fail(-ENOMEM, "there is no memory for the model");
	for (size_t i = 0; i < h->trained_lists; i++)
		if (h->lists[i].served >= 0)
			h->owner->takes_sums[h->lists[i].served] = true;
	return 0;
}

static int open_owner(struct hosts *h, const struct embeng_open_options *options)
{
	struct embeng_model *part = NULL;
	int ret = part_model(h, &part);

	ret = ret ? ret : session_open(options, part, &h->owner);
	embeng_model_free(part);
	if (ret)
		return ret;
	h->e->device = h->owner->device;
	return h->list_count ? mark_sums(h) : 0;
}

static int check_models(const struct hosts *h, uint32_t host, const struct greeting *first,
			const struct greeting *other)
{
	static const char *const words[MODEL_DIGESTS] = {
		[MODEL_STARTS] = "initializers or slot starts",
		[MODEL_FROZEN] = "frozen tables",
		[MODEL_SCHEDULES] = "schedules of learning rates",
	};

	for (size_t i = 0; i < MODEL_DIGESTS; i++)
		if (other->model[i] != first->model[i])
			return fail(
				-EPROTO,
				"embeng_open_group: the model of host %u (%s) has other %s than "
				"that of host 0 (%s); all hosts open the same model",
				host, embeng_group_host(h->group, host), words[i],
				embeng_group_host(h->group, 0));
	return 0;
}

/* All hosts look at all greetings, and so say the same. */
static int check_wishes(const struct hosts *h, uint32_t host, const struct greeting *first,
			const struct greeting *other)
{
	if (other->exchange != first->exchange || other->sharding != first->sharding ||
	    other->named != first->named)
		return fail(-EPROTO,
			    "embeng_open_group: host %u (%s) names its device with another "
			    "exchange= or sharding= than host 0 (%s)",
			    host, embeng_group_host(h->group, host),
			    embeng_group_host(h->group, 0));
	if (other->parts == first->parts)
		return 0;
	return fail(
		-EPROTO,
		"embeng_open_group: host %u (%s) places tables otherwise than host 0 (%s) does; "
		"do both run the same version? exchange= on all hosts makes them agree",
		host, embeng_group_host(h->group, host), embeng_group_host(h->group, 0));
}

/* Adds the tables that are spread and looked up, those that @trains or the others, and send @gradients. */
static void list_spread_tables(struct hosts *h, bool trains, bool gradients)
{
	const struct embeng_model *m = h->e->model;

	for (size_t t = 0; t < m->table_count; t++) {
		const size_t before = h->reader_count;

		const struct place_part *part = &h->place.parts[h->place.first[t]];

		if (part->kind != PLACE_ROWS || part->gradients != gradients ||
		    table_has_optimizer(&m->tables[t]) != trains)
			continue;
		for (size_t f = 0; f < m->feature_count; f++)
			if (m->features[f].table == (int)t)
				h->readers[h->reader_count++] = (int)f;
		if (h->reader_count > before)
			h->lists[h->list_count++] = (struct row_list){
				.table = (int)t,
				.served = -1,
				.width = place_row_width((uint64_t)m->tables[t].rows, h->hosts),
				.trains = trains,
				.repeats = gradients &&
					   m->tables[t].optimizer.use_gradient_accumulation !=
						   EMBENG_ON,
			};
	}
}

static int make_row_lists(struct hosts *h)
{
	const struct embeng_model *m = h->e->model;

	h->tables = calloc(m->table_count + 1, sizeof(*h->tables));
	h->features = calloc(m->feature_count + 1, sizeof(*h->features));
	h->lists = calloc(m->table_count + 1, sizeof(*h->lists));
	h->readers = calloc(m->feature_count + 1, sizeof(*h->readers));
	if (!h->tables || !h->features || !h->lists || !h->readers)
		return fail(-ENOMEM, "there is no memory for the model");
	list_spread_tables(h, true, false);
	h->summed_lists = h->list_count;
	h->summed_readers = h->reader_count;
	list_spread_tables(h, true, true);
	h->trained_lists = h->list_count;
	h->trained_readers = h->reader_count;
	list_spread_tables(h, false, false);
	if (list_stats_new(h))
		return fail(-ENOMEM, "there is no memory for the model");
	if (h->reader_count <= EMBENG_EXCHANGE_FEATURES_MAX)
		return 0;
	return fail(-ERANGE, "%zu features read tables that are spread by rows; there may be %u",
		    h->reader_count, EMBENG_EXCHANGE_FEATURES_MAX);
}

/*
 * Each host tells whether it could open its part, and how many steps its device takes ahead; the least
 * counts. This is also where a host with another model is found.
 */
static int greet_hosts(struct hosts *h, const struct name *name, int ret, uint32_t *depth)
{
	struct greeting own = {.depth = ret ? 0 : h->owner->depth,
			       .exchange = name->exchange,
			       .sharding = name->sharding,
			       .named = choose_named_digest(name),
			       .parts = ret ? 0 : choose_digest(h)};
	struct embeng_bytes *send = h->send[CHANNEL_CONTROL];
	struct embeng_bytes *received = h->received[CHANNEL_CONTROL];
	struct greeting first = {0};

	choose_model_digests(h->e->model, own.model);
	for (uint32_t i = 0; i < h->hosts; i++)
		send[i] = (struct embeng_bytes){&own, sizeof(own)};
	ret = hosts_control(h->e, "open", ret, send, received);
	*depth = own.depth;
	for (uint32_t i = 0; !ret && i < h->hosts; i++) {
		struct greeting other;

		if (received[i].bytes != sizeof(other))
			return fail(-EPROTO, "embeng_open_group: host %u runs another version", i);
		memcpy(&other, received[i].data, sizeof(other));
		*depth = other.depth < *depth ? other.depth : *depth;
		ret = i ? check_wishes(h, i, &first, &other) : 0;
		ret = i && !ret ? check_models(h, i, &first, &other) : ret;
		first = i ? first : other;
	}
	return ret;
}

static int check_replica_count(const struct embeng_model *model)
{
	if (model->engine.replicas <= EMBENG_GROUP_REPLICAS_MOST)
		return 0;
	return fail(-ERANGE, "embeng_open_group: the model has %u replicas; allowed are 1 to %d",
		    model->engine.replicas, EMBENG_GROUP_REPLICAS_MOST);
}

/* @status: why this host cannot open its part, which the others are told. */
static int build_hosts(struct embeng *e, const struct embeng_open_options *options,
		       const struct name *name, int status)
{
	struct hosts *h = e->hosts;
	uint32_t depth;
	int ret = status ? status : check_replica_count(e->model);

	ret = ret ? ret : choose_exchanges(h, name);
	ret = ret ? ret : make_row_lists(h);
	e->first_replica = hosts_first_replica(h, h->rank);
	e->local_replicas = hosts_first_replica(h, h->rank + 1) - e->first_replica;
	ret = ret ? ret : open_owner(h, options);
	ret = greet_hosts(h, name, ret, &depth);
	ret = ret ? ret : session_start_local(e, depth);
	for (size_t t = 0; !ret && t < e->model->table_count; t++)
		e->frozen[t] = e->model->tables[t].frozen;
	return ret ? ret : steps_start(h);
}

static void close_hosts(struct embeng *e)
{
	struct embeng_group *group = e->group;
	struct hosts *h = e->hosts;

	steps_stop(h);
	steps_free(h);
	session_destroy(e);
	embeng_close(h->owner);
	free_hosts(h);
	embeng_group_close(group);
}

static void tell_info(struct embeng *e, struct embeng_device_info *info)
{
	info->first_replica = e->first_replica;
	info->host = e->hosts->rank;
	info->hosts = e->hosts->hosts;
}

static const struct calls hosts_calls = {
	.enqueue = hosts_enqueue,
	.dequeue = hosts_dequeue,
	.lookup = hosts_lookup,
	.apply = hosts_apply,
	.update = hosts_update,
	.discard = hosts_discard,
	.gradient_buffer = hosts_gradient_buffer,
	.flush = hosts_flush,
	.fd = hosts_fd,
	.rows = hosts_rows,
	.read_together = hosts_read_together,
	.norm = hosts_norm,
	.step = hosts_step,
	.set_step = hosts_set_step,
	.freeze = hosts_freeze,
	.stats = hosts_stats,
	.save = hosts_save,
	.restore = hosts_restore,
	.info = tell_info,
	.close = close_hosts,
};

static int open_over(const struct embeng_open_options *options, const struct name *name,
		     const struct embeng_model *model, struct embeng_group *group, int status,
		     struct embeng **out)
{
	struct embeng *e = session_new();
	int ret;

	if (!e)
		return -ENOMEM;
	e->calls = &hosts_calls;
	e->model = model_copy(model);
	e->hosts = e->model ? new_hosts(e, group) : NULL;
	if (!e->hosts) {
		session_destroy(e);
		return fail(-ENOMEM, "there is no memory for a handle over a group");
	}
	e->hosts->wish = (struct place_wish){.exchange = name->exchange,
					     .sharding = name->sharding};
	e->replica_count = e->model->engine.replicas;
	e->model_hash = embeng_model_hash(e->model);
	embeng_log(e, options->log, options->log_arg, options->log_level);
	ret = build_hosts(e, options, name, status);
	if (ret) {
		close_hosts(e);
		return ret;
	}
	choose_say(e->hosts);
	*out = e;
	return 0;
}

/* The handle closes a group of the name, also after a failure. @status: as build_hosts() */
static int open_group(const struct embeng_open_options *options, const struct name *name,
		      const struct embeng_model *model, struct embeng_group *group, int status,
		      struct embeng **out)
{
	const bool own = name->group[0];
	struct embeng *e;
	int ret;

	if (embeng_group_ranks(group) == 1 && !place_must_spread(model))
		ret = status ? status : session_open(options, model, &e);
	else
		ret = open_over(options, name, model, group, status, &e);
	if (ret && own)
		embeng_group_close(group);
	if (ret)
		return ret;
	e->group = own ? group : NULL;
	*out = e;
	return 0;
}

/* A name as "mpi:soft" has the plug-in loaded, and all hosts waited for. */
static int open_by_prefix(const struct embeng_open_options *options, const struct name *name,
			  const struct embeng_model *model, struct embeng **out)
{
	const struct embeng_group_options group_options = EMBENG_INIT(
		embeng_group_options, .deadline_ns = name->deadline * SECOND);
	struct embeng_transport transport;
	struct embeng_group *group;
	int ret = embeng_group_transport(name->group, &transport, NULL);

	ret = ret ? ret : embeng_group_open(&transport, &group_options, &group, NULL);
	return ret ? ret : open_group(options, name, model, group, 0, out);
}

int embeng_open_with(const struct embeng_open_options *options, const struct embeng_model *model,
		     struct embeng **out, struct embeng_error *error)
{
	struct embeng_open_options taken;
	struct name name;
	int ret = config_take(&taken, options, sizeof(taken), "embeng_open_options");

	if (!ret && (!model || !out))
		ret = fail(-EINVAL, "embeng_open: model and out must be given");
	ret = ret ? ret : name_of_options(&taken, &name);
	if (!ret && (name.exchange || name.exchange_count) && !name.group[0])
		ret = fail(-EINVAL, "embeng_open: exchange= is for tables on several hosts; name "
				    "the device with \"mpi:\" before it");
	if (!ret)
		ret = name.group[0] ? open_by_prefix(&taken, &name, model, out)
				    : session_open(&taken, model, out);
	if (ret)
		give_error(error);
	return ret;
}

int embeng_open(const char *name, const struct embeng_model *model, struct embeng **out,
		struct embeng_error *error)
{
	const struct embeng_open_options options = EMBENG_INIT(embeng_open_options, .device = name);

	return embeng_open_with(&options, model, out, error);
}

int embeng_open_group(const char *device, const struct embeng_model *model,
		      struct embeng_group *group, struct embeng **out, struct embeng_error *error)
{
	const struct embeng_open_options options = EMBENG_INIT(embeng_open_options,
							       .device = device);
	struct name name = {0};
	int ret;

	if (!model || !group || !out) {
		ret = fail(-EINVAL, "embeng_open_group: model, group and out must be given");
		give_error(error);
		return ret;
	}
	ret = name_of_options(&options, &name);
	if (!ret && name.group[0])
		ret = fail(-EINVAL,
			   "embeng_open_group: the group is given, so the device is named without "
			   "\"%s:\"",
			   name.group);
	name.group[0] = 0;
	ret = open_group(&options, &name, model, group, ret, out);
	if (ret)
		give_error(error);
	return ret;
}
