/* SPDX-License-Identifier: MIT */
/*
 * The device model as its hosts see it: memory to map as BARs, and calls that
 * make it run. All contracts with drivers and programs are in uapi/.
 */
#ifndef EMBENG_ENGINE_ENGINE_H
#define EMBENG_ENGINE_ENGINE_H

#include "../uapi/embeng_regs.h"
#include "kernels/fetch_plan.h"
#include "port.h"

struct engine;
struct pool;

/**
 * struct engine_recorder - a host that records what happens, or that repeats a recording
 * @write: takes the next bytes of the recording (uapi/embeng_recording.h), with the engine's lock
 *	held. Return: false: they are lost, and so nothing more is recorded. Called with NULL when
 *	the engine itself could not go on recording. NULL: nothing is recorded
 * @turn: whether this command of a queue, which could run, may run now; with the engine's lock
 *	held. NULL: all may
 */
struct engine_recorder {
	bool (*write)(void *host, const void *data, u64 length);
	bool (*turn)(void *host, u32 queue, u32 index);
};

/**
 * struct engine_config - a host's choices for its device
 * @host: handed back to the port's calls
 * @registers: EMBENG_REGISTERS_SIZE bytes, zeroed, 4 KiB aligned; BAR 0
 * @doorbells: @queues strides of @doorbell_stride bytes, zeroed; BAR 2
 * @doorbell_stride: at least the host's page size
 * @queues: most queues there can be, the admin queue too
 * @vectors: interrupt vectors
 * @cores: 1 .. 64; rows are spread over them
 * @processors: how many processors the host may keep busy, 0 if that is not known. No more threads
 *	start than can work at a time, whatever @cores is; no result depends on their number
 * @roam: 1: the host's scheduler places the threads; 0: each prefers a processor of its own
 * @table_memory: bytes for tables and slots
 * @firmware_minimum: lowest firmware version that it boots; what a device keeps when it is
 *	off, see engine_firmware_minimum()
 * @variant: name of the kernel variant to force, or NULL
 * @fetch: how rows are fetched ahead; NULL: as fetch_plan_fill() says for a processor of which
 *	nothing is known. Copied
 * @service: 1: a thread of the pool serves the queues; 0: the host calls engine_run()
 * @pool: the threads, which it may share with other devices; NULL: it has a pool of its own
 * @recorder: takes what happens on the device; NULL: nobody does
 */
struct engine_config {
	void *host;
	void *registers;
	void *doorbells;
	u32 doorbell_stride;
	u32 queues;
	u32 vectors;
	u32 cores;
	u32 processors;
	u32 roam;
	u64 table_memory;
	u64 firmware_minimum;
	const char *variant;
	const struct fetch_plan *fetch;
	u32 service;
	struct pool *pool;
	const struct engine_recorder *recorder;
};

/**
 * pool_new() - threads for the devices of a host, which start when the first device needs them
 *
 * The pool has one thread that serves queues and as many helpers as the largest device of it asked
 * for (@cores less one). A device has at most its @cores threads at work on a command. The helpers go from
 * one device to the next, and small commands are done between the pieces of long ones of other
 * devices, so that none waits for another's long command to end. Return: NULL without memory.
 */
struct pool *pool_new(void);

/** pool_free() - joins its threads. No device has it any more. NULL is fine. */
void pool_free(struct pool *pool);

/**
 * engine_create() - a device in ROM, waiting for firmware
 *
 * Return: 0, -ENOMEM, -EOPNOTSUPP for a @variant that the processor lacks, or -EINVAL for
 * an unknown one or a config outside its limits. Threads that the pool lacks start with it.
 */
int engine_create(const struct engine_config *config, struct engine **out);

/** engine_destroy() - power off: waits until no thread works for it, frees all. NULL is fine. */
void engine_destroy(struct engine *engine);

/**
 * enum engine_run_mode - how far one call goes
 * @ENGINE_RUN_ACCEPT: registers, admin, and fetching, checking and copying
 *	commands; nothing that computes. A submitter runs it to learn at once
 *	whether its batch was accepted
 * @ENGINE_RUN_SMALL: and what one core does sooner than another wakes up
 * @ENGINE_RUN_BETWEEN: and what takes a millisecond or so, by a thread that is at work for another
 *	device
 * @ENGINE_RUN_SHORT: and what takes some 20 ms, for a thread that has something else to look
 *	at; what takes longer is left to the service thread, if there is one
 * @ENGINE_RUN_ALL: everything that can go on
 */
enum engine_run_mode {
	ENGINE_RUN_ACCEPT,
	ENGINE_RUN_SMALL,
	ENGINE_RUN_BETWEEN,
	ENGINE_RUN_SHORT,
	ENGINE_RUN_ALL
};

/**
 * engine_run() - do what there is to do, on the calling thread
 *
 * Any number of threads may call it, at the same time as the service thread.
 * They leave alone what one of them has taken on. Returns when there is
 * nothing left for this thread, and for the host's own sake after a bounded while:
 * then reports are written, of each context that stands still.
 * After ENGINE_RUN_ACCEPT the host kicks, or comes back with ENGINE_RUN_ALL: nobody
 * else may have seen what was accepted.
 *
 * Return: 1 when something moved, else 0.
 */
int engine_run(struct engine *engine, enum engine_run_mode mode);

/**
 * engine_bus() - the host takes its memory from the device, or gives it back
 * @there: it is reached; so it begins
 *
 * Without it registers are answered, resets included, and nothing else goes on: commands, life
 * signs in rings and completions of what a reset aborts stay away. Between calls of
 * engine_run(), of which there is one at a time.
 */
void engine_bus(struct engine *engine, bool there);

/**
 * engine_give() - a doorbell was written by this thread
 *
 * Takes what was submitted, runs what is small, and wakes the service thread for the rest.
 */
void engine_give(struct engine *engine);

/**
 * engine_kick() - wake the service thread after a doorbell or register write
 *
 * Costs a load when it is awake.
 */
void engine_kick(struct engine *engine);

/**
 * struct engine_table - a table or slot of a loaded model
 * @context: number of the context
 * @table: index of the table
 * @slot: 0: the parameters; otherwise 1 plus the index of the slot
 * @map: 1: its rows are to stay where they are until as many calls had -1 as had 1
 */
struct engine_table {
	u32 context, table, slot;
	s32 map;
};

/**
 * engine_table() - find the rows of a table or slot in the host's own address space
 * @rows: out: row 0
 *
 * Rows that are not mapped stay there until the next command that puts staged copies in place.
 * The host sees to it that no such command runs now. Return: 0, -ENOENT (no model, table or slot),
 * -EINVAL for a -1 without a 1, -EAGAIN while a command of a context with pipelining runs.
 */
int engine_table(struct engine *engine, const struct engine_table *asked, void **rows);

/** engine_firmware_minimum() - lowest version that it boots, raised by images so far */
u64 engine_firmware_minimum(struct engine *engine);

/** engine_variant() - name of the kernel variant in use */
const char *engine_variant(const struct engine *engine);

#endif
