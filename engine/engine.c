// SPDX-License-Identifier: MIT
/*
 * The engine as its host sees it: creating and destroying a device, and engine_run(), which looks
 * once at everything that may have work. The steps of such a look are in the files of control/ and
 * queue/.
 *
 * Everything that engine_create() makes belongs to the engine and lives until engine_destroy(). The
 * functions take engine->lock. It is released inside while commands are accepted and run.
 */
#include "queue/internal.h"
#include "device/pool.h"
#include "kernels/kernels.h"
#include "kernels/variants.h"

#define THREADS_LEAST 4u

static bool config_fits(const struct engine_config *c)
{
	return c->registers && c->doorbells && !((u64)(size_t)c->registers & 4095) &&
	       c->doorbell_stride >= 4096 && !(c->doorbell_stride & (c->doorbell_stride - 1)) &&
	       c->queues >= 2 && c->queues <= 1024 && c->vectors && c->cores &&
	       c->cores <= EMBENG_CORES_MAX;
}

static void take_config(struct engine *e, const struct engine_config *config)
{
	static const struct fetch_machine unknown = { .vendor = FETCH_VENDOR_OTHER };

	e->config = *config;
	if (config->fetch)
		e->fetch = *config->fetch;
	else
		fetch_plan_fill(&e->fetch, &unknown);
	e->config.fetch = &e->fetch;
}

/*
 * Threads that wait for each other's processor make a job slower. Up to four of them cost nothing
 * that could be measured on one processor, and let small machines meet what large ones do.
 */
static u32 choose_threads(const struct engine_config *config)
{
	u32 most = config->processors > THREADS_LEAST ? config->processors : THREADS_LEAST;

	return config->processors && config->cores > most ? most : config->cores;
}

static bool allocate_parts(struct engine *e)
{
	e->lock = port_mutex_new();
	e->bell = port_event_new();
	e->pool = e->config.pool;
	e->queues = port_alloc(e->config.queues * sizeof(struct queue *));
	e->order = port_alloc(e->config.queues * sizeof(struct queue *));
	e->workers = workers_new(e, choose_threads(&e->config), heartbeat_piece);
	return e->lock && e->bell && e->queues && e->order && e->workers;
}

/*
 * A command runs: an administrator is served all the same, and so are others who come first by now.
 * Where the host has taken the device's
 * power meanwhile, nothing is worth finishing.
 */
static void attend_requests(struct engine *e, struct command *command)
{
	if (reg_read32(e, EMBENG_REG_BOOT_STATE) == EMBENG_BOOT_RESET) {
		boot_stop_all(e);
		return;
	}
	requests_step(e);
	if (e->cut_off)
		return;
	admin_step(e);
	if (command && !e->resetting)
		serve_between(e, command);
}

int engine_create(const struct engine_config *config, struct engine **out)
{
	const struct kernel_ops *kernels = kernel_select(config->variant);
	struct engine *e;

	if (!config_fits(config))
		return -EINVAL;
	if (!kernels)
		return kernel_variant_exists(config->variant) ? -EOPNOTSUPP : -EINVAL;
	e = port_alloc(sizeof(*e));
	if (!e)
		return -ENOMEM;
	take_config(e, config);
	e->kernels = kernels;
	e->beat = heartbeat_now;
	e->attend = attend_requests;
	e->wake_ns = U64_MAX;
	if (!allocate_parts(e)) {
		engine_destroy(e);
		return -ENOMEM;
	}
	e->firmware_minimum = config->firmware_minimum;
	registers_reset(e);
	event_open(e);
	event_of_device(e, EMBENG_EVENT_POWER_ON, 0, 0);
	record_power_on(e);
	reg_write64(e, EMBENG_REG_FIRMWARE_MINIMUM, e->firmware_minimum);
	if (config->service && service_start(e, engine_run)) {
		engine_destroy(e);
		return -ENOMEM;
	}
	*out = e;
	return 0;
}

void engine_destroy(struct engine *engine)
{
	if (!engine)
		return;
	service_stop(engine);
	if (engine->lock && engine->queues) {
		port_lock(engine->lock);
		record_power_off(engine);
		boot_power_off(engine);
		port_unlock(engine->lock);
	}
	workers_free(engine->workers);
	port_free(engine->order);
	port_free(engine->queues);
	if (engine->bell)
		port_event_free(engine->bell);
	if (engine->lock)
		port_mutex_free(engine->lock);
	port_free(engine);
}

u64 engine_firmware_minimum(struct engine *engine)
{
	u64 minimum;

	port_lock(engine->lock);
	minimum = engine->firmware_minimum;
	port_unlock(engine->lock);
	return minimum;
}

const char *engine_variant(const struct engine *engine)
{
	return engine->kernels->name;
}

/* A program that floods its queue must not delay the reports of others or the host's own work. */
#define STEPS_MOST 1024

static int step_engine(struct engine *e, enum engine_run_mode mode, u64 *away_ns)
{
	int moved = requests_step(e);

	if (e->cut_off)
		return moved;
	heartbeat(e);
	moved |= admin_step(e);
	moved |= accept_step(e, away_ns);
	return moved | execute_step(e, mode, away_ns);
}

/* Threads that serve other devices, too, go to the next one. */
static bool gives_way(const struct engine *e, enum engine_run_mode mode)
{
	return mode == ENGINE_RUN_ALL && e->served.serve && pool_is_wanted(e->pool);
}

static int run_engine_steps(struct engine *engine, enum engine_run_mode mode)
{
	u64 began = clock_read(engine), now, away_ns = 0;
	int moved = 0;
	bool goes_on;

	do {
		goes_on = step_engine(engine, mode, &away_ns);
		moved += goes_on;
	} while (goes_on && moved < STEPS_MOST && !gives_way(engine, mode));
	if (!engine->cut_off && (mode != ENGINE_RUN_SMALL || report_wanted(engine)))
		report_all(engine, goes_on);
	/* A look that finds nothing takes no time. */
	now = moved ? clock_read(engine) : began;
	heartbeat(engine);
	thermal_step(engine);
	if (moved)
		reg_count(engine, EMBENG_REG_TIME_RING, now - began - away_ns);
	return !!moved;
}

int engine_run(struct engine *engine, enum engine_run_mode mode)
{
	bool left;
	int moved;

	port_lock(engine->lock);
	engine->left = false;
	moved = run_engine_steps(engine, mode);
	left = engine->left;
	port_unlock(engine->lock);
	/* The service thread may have gone to sleep before this thread made the command ready. */
	if (left && mode == ENGINE_RUN_SHORT)
		engine_kick(engine);
	return moved;
}

void engine_bus(struct engine *engine, bool there)
{
	port_lock(engine->lock);
	engine->cut_off = !there;
	port_unlock(engine->lock);
}

/* True if no queue has work left. Safe because each queue was looked at after its doorbell rang. */
static bool is_engine_done(const struct engine *e)
{
	u32 i;

	for (i = 0; i < e->order_count; i++) {
		if (queue_has_work(e->order[i]))
			return false;
	}
	return true;
}

void engine_give(struct engine *engine)
{
	bool done;

	port_lock(engine->lock);
	run_engine_steps(engine, ENGINE_RUN_SMALL);
	done = is_engine_done(engine);
	port_unlock(engine->lock);
	if (!done)
		engine_kick(engine);
}
