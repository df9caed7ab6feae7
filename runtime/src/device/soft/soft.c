// SPDX-License-Identifier: MIT
/*
 * The soft device: the engine as a part of this process. This file powers it on and off and has its
 * table of operations; boot, admin commands, memory and registers have files of their own.
 *
 * The struct soft belongs to the handle until soft_close(). The operations may be called by any
 * thread; the engine's own locks guard them.
 */
#include "soft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../../../engine/engine.h"
#include "../../../../engine/kernels/variants.h"
#include "base/error.h"
#include "fetch.h"
#include "host/blocks.h"
#include "host/limits.h"

#define QUEUES_LEAST 64u
#define VECTORS 2u
#define CORES_MAX 64

static struct soft *soft_of(struct device *d)
{
	return (struct soft *)d;
}

static void on_interrupt(void *arg, uint32_t vector)
{
	struct soft *s = arg;
	const uint64_t one = 1;

	port_event_signal(s->event);
	/* A full counter is readable already, which is all that a poller asks. */
	if (vector && write(s->fd, &one, sizeof(one)) < 0)
		return;
}

static void on_log(void *arg, int level, const char *text)
{
	struct soft *s = arg;

	if (s->log.fn)
		s->log.fn(s->log.arg, (enum embeng_log_level)level, text);
}

static void soft_close(struct device *d)
{
	struct soft *s = soft_of(d);

	engine_destroy(s->engine);
	soft_record_close(s);
	if (s->pool)
		soft_pool_put();
	soft_admin_free(s);
	if (s->event)
		port_event_free(s->event);
	if (s->fd >= 0)
		close(s->fd);
	if (s->doorbells)
		munmap(s->doorbells, s->doorbell_bytes);
	if (s->registers)
		munmap(s->registers, EMBENG_REGISTERS_SIZE);
	free(s->grants.list);
	pthread_mutex_destroy(&s->grants.lock);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* Queues end with the engine. */
static void soft_queue_destroy(struct device *d, const struct device_queue *queue)
{
	(void)d;
	(void)queue;
}

static bool soft_run(struct device *d, bool all)
{
	return engine_run(soft_of(d)->engine, all ? ENGINE_RUN_SHORT : ENGINE_RUN_ACCEPT) != 0;
}

static void soft_kick(struct device *d)
{
	engine_kick(soft_of(d)->engine);
}

static void soft_give(struct device *d)
{
	engine_give(soft_of(d)->engine);
}

static int soft_lost(struct device *d, bool dead)
{
	(void)d;
	return dead ? fail(-ENODEV, "the device is gone") : 0;
}

static uint32_t soft_event_read(struct device *d)
{
	return port_event_read(soft_of(d)->event);
}

static void soft_event_wait(struct device *d, uint32_t seen, uint64_t timeout_ns)
{
	port_event_wait(soft_of(d)->event, seen, timeout_ns);
}

static void soft_event_signal(struct device *d)
{
	port_event_signal(soft_of(d)->event);
}

static int soft_fd(struct device *d)
{
	return soft_of(d)->fd;
}

static void soft_fd_clear(struct device *d)
{
	uint64_t count;

	/* Nothing to read is the common case, not a failure. */
	if (read(soft_of(d)->fd, &count, sizeof(count)) < 0)
		return;
}

static uint64_t soft_room(struct device *d)
{
	struct host_limits limits;

	(void)d;
	return host_limits_read("", &limits) ? 0 : limits.available;
}

static uint64_t soft_most(struct device *d, char by[256])
{
	struct host_limits limits;

	(void)d;
	if (host_limits_read("", &limits))
		return UINT64_MAX;
	memcpy(by, limits.most_by, sizeof(limits.most_by));
	return limits.most;
}

/* It is a wish: half of the memory that the process can still have is left alone. */
static void soft_prepare(struct device *d, uint64_t bytes)
{
	uint64_t half = soft_room(d) / 2;

	bytes = bytes < half ? bytes : half;
	if (bytes)
		host_blocks_prepare(bytes);
	else
		host_blocks_drop();
}

static uint64_t soft_read_register(struct device *d, enum embeng_register reg)
{
	switch (reg) {
#define WIDTH(name, offset, bytes, writer, reset, words) \
	case offset: \
		return (bytes) == 4 ? soft_read32(soft_of(d), reg) : soft_read64(soft_of(d), reg);
		EMBENG_REGISTER_TABLE(WIDTH)
#undef WIDTH
	}
	/* The arrays behind the registers are read in words of 8 bytes. */
	return reg >= EMBENG_CORE_BUSY(0) ? soft_read64(soft_of(d), reg) : 0;
}

static int soft_table_rows(struct device *d, uint32_t table, uint32_t slot, int map, void **rows)
{
	const struct engine_table asked = {
		.context = SOFT_CONTEXT, .table = table, .slot = slot, .map = map};

	return engine_table(soft_of(d)->engine, &asked, rows);
}

static const struct device_ops soft_ops = {
	.close = soft_close,
	.region_alloc = soft_region_alloc,
	.region_register = soft_region_register,
	.region_free = soft_region_free,
	.queue_create = soft_queue_create,
	.queue_destroy = soft_queue_destroy,
	.run = soft_run,
	.kick = soft_kick,
	.give = soft_give,
	.lost = soft_lost,
	.event_read = soft_event_read,
	.event_wait = soft_event_wait,
	.event_signal = soft_event_signal,
	.fd = soft_fd,
	.fd_clear = soft_fd_clear,
	.room = soft_room,
	.most = soft_most,
	.prepare = soft_prepare,
	.table_rows = soft_table_rows,
	.read_register = soft_read_register,
};

static uint32_t default_cores(const struct host_limits *limits)
{
	return limits->cores > CORES_MAX ? CORES_MAX : limits->cores;
}

/* The program itself needs some of its memory, and what others have is not there to be taken. */
static uint64_t default_memory(const struct host_limits *limits)
{
	uint64_t share = limits->memory / 10 * 8, left = limits->available / 20 * 19;

	return share < left ? share : left;
}

static int make_host(struct soft *s, uint32_t queues)
{
	s->host = (struct port_host){
		.dma_ok = soft_dma_ok, .interrupt = on_interrupt, .log = on_log, .arg = s};
	s->registers = soft_map(EMBENG_REGISTERS_SIZE);
	s->doorbell_bytes = (uint64_t)queues * DOORBELL_STRIDE;
	s->doorbells = soft_map(s->doorbell_bytes);
	s->event = port_event_new();
	s->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	s->ring_memory = calloc(queues, sizeof(*s->ring_memory));
	if (!s->registers || !s->doorbells || !s->event || !s->ring_memory)
		return fail(-ENOMEM, "soft device: no memory for its registers");
	if (s->fd < 0)
		return fail(-errno, "soft device: no descriptor: %s", strerror(errno));
	return 0;
}

static int no_such_variant(const char *name)
{
	char known[64] = "";

	for (uint32_t i = 0; kernel_variant(i); i++)
		snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s\"%s\"",
			 i ? ", " : "", kernel_variant(i));
	return fail(-EINVAL,
		    "soft device: \"%s\" is not a kernel variant; there are %s. Without variant= "
		    "and EMBENG_KERNEL it is the best that this processor runs",
		    name, known);
}

static int make_engine(struct soft *s, const struct name *name, uint32_t queues)
{
	struct host_limits limits;
	struct engine_config config = {
		.host = &s->host,
		.registers = s->registers,
		.doorbells = s->doorbells,
		.doorbell_stride = DOORBELL_STRIDE,
		.queues = queues,
		.vectors = VECTORS,
		.variant = name->variant[0] ? name->variant : NULL,
		.fetch = &s->fetch,
		.service = 1,
		.pool = s->pool,
		.recorder = s->record ? &soft_recorder : NULL,
	};
	int ret = host_limits_read("", &limits);

	if (ret)
		return fail(
			ret,
			"soft device: what memory and processors this process may use cannot be "
			"read: %s",
			strerror(-ret));
	config.cores = name->cores ? name->cores : default_cores(&limits);
	config.processors = limits.cores;
	/* Only threads that fill all processors are better off with one each. */
	config.roam = config.cores < limits.allowed;
	config.table_memory = name->memory ? name->memory : default_memory(&limits);
	ret = engine_create(&config, &s->engine);
	if (ret == -ENOTSUP)
		return fail(
			ret,
			"soft device: this processor lacks what the kernel variant \"%s\" needs; "
			"leave variant= and EMBENG_KERNEL out for the best that it runs, \"%s\"",
			config.variant, kernel_select(NULL)->name);
	if (ret == -ENOMEM)
		return fail(ret,
			    "soft device: the engine did not start: no memory or no thread for its "
			    "cores; this process may take %llu bytes more (control groups, ulimit "
			    "-v and -d; ulimit -u limits threads)",
			    (unsigned long long)limits.available);
	if (ret == -EINVAL && config.variant)
		return no_such_variant(config.variant);
	if (ret)
		return fail(ret, "soft device: the engine did not start: %s", strerror(-ret));
	return 0;
}

static void describe_soft(struct soft *s, const struct name *name)
{
	struct embeng_device_info *info = &s->device.info;
	char way[FETCH_WORD] = "default";

	info->size = sizeof(*info);
	strcpy(info->kind, "soft");
	strcpy(info->state, "running");
	snprintf(info->name, sizeof(info->name), "soft:cores=%u,memory=%llu%s%s", info->cores,
		 (unsigned long long)info->table_memory, name->variant[0] ? ",variant=" : "",
		 name->variant);
	if (!name->fetch_rows && !name->fetch_default)
		return;
	if (name->fetch_rows)
		fetch_way_text((struct fetch_way){name->fetch_rows, name->fetch_form}, way);
	snprintf(info->name + strlen(info->name), sizeof(info->name) - strlen(info->name),
		 ",prefetch=%s", way);
}

static int power_on(struct soft *s, const struct name *name, uint32_t replicas)
{
	uint32_t wanted = 2 + 3 * replicas; /* three per replica, admin and transfer */
	uint32_t queues = wanted > QUEUES_LEAST ? wanted : QUEUES_LEAST;
	const struct kernel_ops *kernels = kernel_select(name->variant[0] ? name->variant : NULL);
	int ret = soft_pool_get(&s->pool);

	ret = ret ? ret : make_host(s, queues);
	/* A variant that there is not is refused with the engine. */
	if (kernels)
		fetch_choose(name, kernels->name, &s->fetch, &s->device.info);
	if (!ret && name->record[0])
		ret = soft_record_open(s, name->record);
	if (!ret)
		ret = make_engine(s, name, queues);
	if (!ret)
		ret = soft_admin_memory(s);
	if (!ret)
		ret = soft_boot(s);
	if (!ret && (s->device.queues < wanted || s->device.info.replicas < replicas))
		ret = fail(-ENOTSUP,
			   "soft device: the model wants %u replicas, it has %u; behind \"mpi:\" a "
			   "model may have more",
			   replicas, s->device.info.replicas);
	return ret ? ret : soft_context_create(s);
}

int soft_open(const struct name *name, uint32_t replicas, const struct device_log *log,
	      struct device **out)
{
	struct soft *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return fail(-ENOMEM, "no memory for the soft device");
	s->device.ops = &soft_ops;
	s->log = *log;
	s->fd = -1;
	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->grants.lock, NULL);
	ret = power_on(s, name, replicas);
	if (ret) {
		soft_close(&s->device);
		return ret;
	}
	describe_soft(s, name);
	*out = &s->device;
	return 0;
}
