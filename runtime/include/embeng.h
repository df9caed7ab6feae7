/* SPDX-License-Identifier: MIT */
/*
 * libembeng: embedding tables that train and serve on an embedding engine.
 * One file, though long: programs include what the library is as one.
 *
 * DOC: Rules of this interface
 *
 * - Functions return 0 or a negative errno and leave their outputs untouched on
 *   failure. The sentence that goes with the errno is in the caller's
 *   &struct embeng_error where one is passed, and always in the thread's own,
 *   embeng_last_error().
 *     EINVAL shape, type or combination   ERANGE a number outside its interval
 *     ENOENT unknown name                 EEXIST name used twice
 *     EPROTO steps out of order           ETIME deadline passed
 *     EBUSY all buffers in use            ENOSPC table memory is full
 *     EINTR embeng_interrupt() is on      EDEADLK a wait that only its own thread can end
 *     ENOTSUP not in this device or build, or a call in the child of a fork
 *     ENODEV no such device, or gone      ESHUTDOWN context lost in a reset
 *     ENXIO driver not loaded             EHOSTDOWN the firmware does not run
 *     EACCES, EPERM permission            EDQUOT beyond the memory limit
 * - Structures that callers fill begin with @size = sizeof(struct ...), so that
 *   they can grow; a member that is zero means the default. EMBENG_INIT() of
 *   embeng/error.h sets it.
 * - Arrays come with their count and element type. Shapes exclude the trailing
 *   dim unless said otherwise. Activations, gradients and rows are f32,
 *   row-major.
 * - A timeout is in nanoseconds. A call with a timeout of 0 waits only for work that
 *   the device ends by itself, and returns -ETIME at once where a program has to make
 *   a call first; a negative timeout has no limit.
 * - A &struct embeng may be used from several threads, one thread per replica at
 *   a time; a model or a batch by one thread at a time. Nothing is printed.
 * - After fork() every call in the child fails with ENOTSUP, but for closing and
 *   freeing, which do nothing there.
 *
 * This header is the core: devices, batches and steps are here, and it includes
 * embeng/error.h (errors, log), embeng/model.h (tables, optimizers, features),
 * embeng/schedule.h (learning rates by the step), embeng/plan.h (memory),
 * embeng/checkpoint.h (save, restore, inspect), embeng/stream.h (the same through functions
 * of the program) and embeng/serving.h (lookups without an engine). Programs that need more
 * include these, each by itself: embeng/shard.h (tables over hosts), embeng/spread.h (batches
 * of such tables), embeng/partition.h (batches as SparseCores take them), embeng/stacking.h
 * (tables as SparseCores hold them), embeng/preprocess.h (batches for such tables),
 * embeng/tpu.h (models as the protobuf of TPU embeddings), embeng/classic.h (the first
 * interface of the family), embeng/keras.h (the Keras layer's rules), embeng/profile.h (how
 * often rows are asked for), embeng/group.h (groups of hosts, which exchange bytes),
 * embeng/hosts.h (what tables on several hosts cost).
 *
 * Unstable until its first release: symbols are versioned from then on.
 */
#ifndef EMBENG_H
#define EMBENG_H
#include "embeng/checkpoint.h"
#include "embeng/error.h"
#include "embeng/model.h"
#include "embeng/plan.h"
#include "embeng/schedule.h"
#include "embeng/serving.h"
#include "embeng/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -- devices ------------------------------------------------------------- */

struct embeng;

/**
 * struct embeng_device_info - a device, open or not
 * @size: sizeof(struct embeng_device_info)
 * @name: name for embeng_open()
 * @kind: "soft", or "accel" for a device behind the kernel driver
 * @variant: kernel variant in use, "" if the device does not report it
 * @interface_major: major version of the device's interface
 * @interface_minor: minor version of the device's interface
 * @firmware_version: major << 48 | minor << 32 | patch << 16 | build
 * @cores: rows are spread over them; results never depend on it
 * @step_depth: training steps ahead
 * @replicas: most replicas
 * @dim: largest dim
 * @tables: most tables
 * @features: EMBENG_CAP_* of embeng_engine.h
 * @table_memory: bytes for tables and slots
 * @address: "pci:0000:01:00.0", "" without one
 * @driver: kernel driver, "" without one
 * @description: vendor and device in words, where they are known
 * @state: state of the firmware: "running", "failed", "loading", "rom", "reset", "unknown" to this
 *	library; "" if the device does not report it
 * @problem: in embeng_device_list(): why the device cannot be opened, "" if it can
 * @fetch: how a soft device fetches rows ahead, as embeng(1) explains the words:
 *	"lookups 48:touch, updates 32; tables beyond 32 MiB: lookups 48:burst, updates 32:again"
 * @fetch_source: where @fetch is from: "device name", "open options", "EMBENG_PREFETCH", the path of
 *	a tune file, or "processor's caches"
 * @tune_problem: why the first tune file that was found is ignored, "" if it is not
 * @command_bytes: most bytes of rows that one batch may read and write, 0: no limit
 * @first_replica: in embeng_info(): the first replica that this process feeds; 0 without a group of hosts
 * @replica_count: how many it feeds; all of the model's without a group, and none on a host of a group that
 *	has more hosts than the model has replicas
 * @host: number of this host in its group, from 0; 0 without a group
 * @hosts: hosts of the group; 1 without one
 */
struct embeng_device_info {
	size_t size;
	char name[128];
	char kind[16];
	char variant[16];
	uint32_t interface_major, interface_minor;
	uint64_t firmware_version;
	uint32_t cores, step_depth, replicas, dim, tables, features;
	uint64_t table_memory;
	char address[32];
	char driver[32];
	char description[128];
	char state[16];
	char problem[256];
	char fetch[160];
	char fetch_source[256];
	char tune_problem[512];
	uint64_t command_bytes;
	uint32_t first_replica, replica_count, host, hosts;
};

/**
 * embeng_device_list() - call @fn for each device there is
 *
 * The soft device comes last. Return: 0, -EINVAL, or what @fn returned when that was not 0,
 * which stops.
 */
EMBENG_API int embeng_device_list(int (*fn)(void *arg, const struct embeng_device_info *info),
				  void *arg);

/**
 * embeng_device_info() - ask a device what it is and what it can do
 * @name: name as for embeng_open()
 * @info: out, its size set by the caller; after an error it has what was found out until then, and
 *	zeros
 *
 * No model is opened and no context is made, so that a device whose contexts are all taken answers
 * as well. Any thread may call. Return: 0, -EINVAL, -ENODEV, -ENXIO (no driver is bound to it),
 * -EHOSTDOWN (it runs no firmware), -EACCES (not your device), -ENOTSUP (another version), -ENOMEM.
 */
EMBENG_API int embeng_device_info(const char *name, struct embeng_device_info *info);

/**
 * embeng_registers_read() - copy a device's registers
 * @name: name as for embeng_open(); the firmware of the device need not run
 * @page: out, [EMBENG_REGISTERS_BYTES]; embeng_regs.h says what stands where
 *
 * For bring-up: through the driver, which wants CAP_SYS_RAWIO, or without one through the
 * PCI function's own file. For the soft device, which must be named, it opens a new one. Return: 0,
 * -ENODEV, -ENXIO (no driver, and the name is a node), -EACCES (not your device), -EPERM, -EINVAL.
 */
EMBENG_API int embeng_registers_read(const char *name, void *page);
#define EMBENG_REGISTERS_BYTES 4096

/**
 * embeng_register_write() - write one register behind the driver's back
 * @name: name of a device behind the driver
 * @offset: offset of a register that the driver writes (embeng_regs.h)
 * @value: value that fits the register
 *
 * For bring-up, without a driver: a driver that is bound does not expect it, and a kernel
 * may refuse it then. Return: 0, -EINVAL (no such register, or the device's), -ERANGE (value),
 * -ENOTSUP (soft device, or the kernel refuses), -EPERM.
 */
EMBENG_API int embeng_register_write(const char *name, uint32_t offset, uint64_t value);

enum embeng_reset {
	EMBENG_RESET_ENGINE,   /* firmware boots anew */
	EMBENG_RESET_FUNCTION, /* the PCI function is reset, then firmware boots anew */
};

/**
 * embeng_device_reset() - reset a device; all tables of all programs on it are lost
 * @name: name of a device behind the driver
 *
 * Return: 0, -ENOTSUP (soft device), -EPERM or -EACCES (wants CAP_SYS_ADMIN), -EINVAL,
 * -ENODEV, -ENXIO (no driver).
 */
EMBENG_API int embeng_device_reset(const char *name, enum embeng_reset what);

/**
 * embeng_open() - open a device and load a model
 * @name: "/dev/accel/accel0", "pci:0000:01:00.0", "soft", or with options
 *	"soft:cores=4,memory=1G,variant=portable,prefetch=48", "/dev/accel/accel0,path=validated", which
 *	embeng(1) explains under DEVICES; NULL: the environment's EMBENG_DEVICE, else the first device
 *	behind the kernel driver, else the soft device, unless an engine without a driver is there, which
 *	is an error. Options change no bit of a result
 * @model: copied; may be freed or changed afterwards
 * @out: the handle
 * @error: NULL or where the sentence goes
 *
 * Tables start as their initializers say, slots at their starts.
 *
 * All soft devices of a process share one pool of threads, which starts with the first handle and
 * ends with the last: one thread that serves them, and helpers for cores. A device has at most its
 * cores at work, and the pool is as large as the device with the most of them; handles beyond that cost
 * memory alone, some 0.4 MiB and their tables. memory=, variant= and prefetch= are each handle's own.
 * Small commands of a handle do not wait for the end of another's long one; of the long ones, as many
 * run at a time as the pool has threads, in the order in which they came.
 *
 * Return: 0, or
 * -ENODEV, -EINVAL (name), -ENOSPC (table memory), -ENOTSUP (among others: a kernel
 * variant that the processor lacks), -ENOMEM; of a device behind the driver also -EACCES (not
 * your device), -ENXIO (no driver), -EHOSTDOWN (its firmware does not run).
 */
EMBENG_API int embeng_open(const char *name, const struct embeng_model *model, struct embeng **out,
			   struct embeng_error *error);

/**
 * struct embeng_open_options - the device to open, and how
 * @size: sizeof(struct embeng_open_options)
 * @device: name as for embeng_open(), or NULL
 * @cores: soft device: cores, up to 64; 0: one for each processor that this process may keep busy
 *	(affinity, quota of its control groups)
 * @memory: soft device: bytes that its tables may take, for which the caller answers, and may promise
 *	more than is free now; 0: 80 % of the memory that the process may have (control groups,
 *	RLIMIT_AS, RLIMIT_DATA), and 95 % of what of it is available now
 * @variant: soft device: kernel variant, "portable", on x86-64 also "avx2" and "avx512"; NULL: the
 *	environment's EMBENG_KERNEL, else the best that the processor runs
 * @prefetch: soft device: how rows are fetched ahead, in the words of embeng(1); NULL: the
 *	environment's EMBENG_PREFETCH, else the file that `embeng tune` wrote on this machine, unless it
 *	is broken or another processor's, else the sizes of the processor's caches
 * @path: device behind the driver: "mapped", commands are written to queues that the program shares with
 *	the device, or "validated", the kernel checks each; NULL: the environment's EMBENG_PATH, else
 *	mapped where the driver allows that
 * @log: NULL, or where sentences go from the opening on, as embeng_log() sets it later
 * @log_arg: its first argument
 * @log_level: the least important level that it gets
 *
 * A member takes precedence over the same option in @device. Where @device is NULL, members of both kinds may be
 * set: the device takes those of its own kind. All of them give the same bits.
 */
struct embeng_open_options {
	size_t size;
	const char *device;
	uint32_t cores;
	uint64_t memory;
	const char *variant;
	const char *prefetch;
	const char *path;
	embeng_log_fn log;
	void *log_arg;
	enum embeng_log_level log_level;
};

/**
 * embeng_open_with() - open a device by options and load a model
 * @options: read during the call
 *
 * Otherwise as embeng_open(). Return: as that, -EINVAL also for an option of another kind of device,
 * -ERANGE (cores, log_level).
 */
EMBENG_API int embeng_open_with(const struct embeng_open_options *options,
				const struct embeng_model *model, struct embeng **out,
				struct embeng_error *error);

/**
 * embeng_close() - apply what was handed in, then free all
 *
 * NULL is fine. Waits as embeng_flush() does with a timeout of 0, so for foreign fences, too.
 */
EMBENG_API void embeng_close(struct embeng *e);

/**
 * embeng_info() - the device behind a handle
 * @info: out, its size set by the caller
 *
 * Return: 0, -EINVAL.
 */
EMBENG_API int embeng_info(struct embeng *e, struct embeng_device_info *info);

/**
 * embeng_add_tables() - add tables and features to an open handle
 * @model: all tables and features of the handle, as they are, with new ones behind them: the
 *	program's own model that was opened, to which more was added. Copied
 *
 * Rows, slots, steps, maps and statistics of the tables that the handle has stay as they are. New
 * tables begin as those of a handle that is opened, with no step of their optimizer behind them.
 * Features of new and of old tables may be added. From now on activations, gradients and outputs
 * have an item for each of them. Batches that were made before can be used: they have no samples of
 * the new features, until they are given some; embeng_batch_reset() makes them like new ones. Stackings
 * and profiles (embeng/stacking.h, embeng/profile.h) are of the model of before, and are made anew.
 *
 * As with embeng_close(), no other call on @e may be under way. No step may be, either: views are
 * answered and released, and no batch is enqueued. Checkpoints that were written before lack the new
 * tables, of which embeng_restore() tells. Fails with the handle as it was, but where the first rows
 * of new tables cannot be written, as without memory: then the same call again writes them.
 *
 * Return: 0, -EBUSY (a step or view, which the sentence names), -EINVAL (a table, feature or option
 * that is not the handle's), -ENOTSUP (a shared context, an older device), -ENOSPC, -ENOMEM, as
 * embeng_open() for the new tables.
 */
EMBENG_API int embeng_add_tables(struct embeng *e, const struct embeng_model *model);

/**
 * embeng_get_model() - the handle's own copy of its model, valid until it is closed
 *
 * After embeng_add_tables() it is another one; that of before stays valid.
 */
EMBENG_API const struct embeng_model *embeng_get_model(const struct embeng *e);

/**
 * embeng_interrupt() - end the waits of this handle, in all threads, or let them be
 * @on: 1: embeng_enqueue(), embeng_dequeue(), embeng_dequeue_fence(), embeng_flush() and
 *	embeng_apply_gradients() return -EINTR where they would wait, now and later, until it is 0
 *
 * A wait ends within 50 ms. Nothing is lost by it: the same call goes on once this is off. Calls
 * with a timeout of 0, which wait for no program, and calls that move rows or checkpoints are not
 * ended; the latter have a progress function that can. May be called by any thread and by a signal handler.
 */
EMBENG_API void embeng_interrupt(struct embeng *e, int on);

/**
 * embeng_ask() - have long calls of this thread ask whether they shall end
 * @ask: from now on; NULL: they ask nobody, as when the thread began
 *
 * For programs whose signal handlers only leave a note, such as interpreters. With any handle,
 * embeng_update(), embeng_apply_gradients(), embeng_gradient_norm() and embeng_weight_gradients() ask about
 * every 50 ms, for the first time 50 ms from now, while they copy, compute, or get memory from the
 * system. No lock of the library is held then, but updates may wait until @ask returns. A call that was
 * ended has changed nothing. The search for the holders of a table whose combiner is max does not ask, nor
 * do norms and gradients of weights over a group of hosts, which cannot end on one host alone. Waits do not ask, but
 * for those of embeng_lookup() for other hosts, where @ask may make no call of all hosts: give
 * them a timeout, and call again.
 */
EMBENG_API void embeng_ask(embeng_ask_fn ask, void *arg);

/** embeng_log() - sentences of this handle go to @fn; NULL (the default): nowhere */
EMBENG_API void embeng_log(struct embeng *e, embeng_log_fn fn, void *arg,
			   enum embeng_log_level most);

/**
 * embeng_fd() - readable when a lookup or an update completed since the last wait
 *
 * Owned by @e. For poll(); the calls below say what completed. Return: the
 * descriptor, -EINVAL, -ENOTSUP in the child of a fork and once the context is shared, whose
 * events go to whoever asks first.
 */
EMBENG_API int embeng_fd(struct embeng *e);

/**
 * embeng_export() - a descriptor of the handle's context, for other processes
 *
 * Each process that embeng_attach()es feeds replicas of its own: a replica belongs to the
 * handle that enqueues its first batch, for good. Replicas that this handle has not fed when it is
 * first exported are given up; no other thread may be in a call on it then. From then on
 * embeng_flush() waits for the other processes' parts of the steps that this one handed in, too;
 * calls that read or write rows and inference lookups give -ETIME while such a part is missing,
 * so flush first; what is handed in when a handle is closed is lost with it unless it was
 * flushed; and embeng_fd() is not to be had. A process that dies leaves the others waiting for
 * its part (-ETIME names it).
 *
 * Return: a descriptor of the caller's, close-on-exec, to be sent by SCM_RIGHTS; -ENOTSUP on the
 * soft device and with pipelining; -EBUSY after embeng_fd().
 */
EMBENG_API int embeng_export(struct embeng *e);

/**
 * embeng_attach() - a handle on another process' context
 * @fd: descriptor from embeng_export(), which the caller keeps
 * @model: the same as the other's, else lookups are refused
 *
 * The tables are as they are. Rows can be read and written, and inference looked up, before
 * training starts, or once this handle feeds a replica. Return: 0, -EINVAL (@fd has no context),
 * -ENOTSUP (pipelining), -ESHUTDOWN, -ENODEV.
 */
EMBENG_API int embeng_attach(int fd, const struct embeng_model *model, struct embeng **out,
			     struct embeng_error *error);

/* -- buffers ------------------------------------------------------------- */

/**
 * embeng_buffer_alloc() - memory that the engine reaches without a copy
 * @bytes: at least one
 *
 * Ids, weights, offsets, gradients and rows that lie wholly inside such a
 * buffer, at a multiple of their element width, are used in place; any other
 * pointer is accepted and copied, which embeng_counters() counts. The soft
 * device has huge pages for buffers of 2 MiB and more: ids of all features in
 * one are read faster than out of a small one for each. Thread-safe.
 * Return: zeroed, 4 KiB-aligned memory, or NULL (embeng_last_error()).
 */
EMBENG_API void *embeng_buffer_alloc(struct embeng *e, size_t bytes);

/**
 * embeng_memory_export() - the dma-buf behind a pointer
 * @p: into a buffer, into the activations of a view, or what embeng_gradient_buffer() gave
 * @offset: out: where @p stands in the dma-buf
 *
 * Another process maps it, or imports it with embeng_buffer_import(); so may another device's
 * driver. It remains memory when this handle is closed, but activations and gradients are then
 * written no more, nor are they those of later steps, which may lie elsewhere. The other
 * side's processor sees what is here between DMA_BUF_IOCTL_SYNC, where caches are not coherent.
 * Return: a descriptor of the caller's, close-on-exec; -ENOTSUP on the soft device; -EINVAL for
 * another's memory, and for an imported buffer, whose own descriptor can be passed on.
 */
EMBENG_API int embeng_memory_export(struct embeng *e, const void *p, size_t *offset);

/**
 * embeng_buffer_import() - a dma-buf as a buffer
 * @dmabuf: stays the caller's
 * @bytes: out, or NULL: its length
 *
 * Used in place and freed as what embeng_buffer_alloc() gives. Two processes of one context
 * may keep it in memory until the context ends. Return: the memory, or NULL
 * (embeng_last_error()).
 */
EMBENG_API void *embeng_buffer_import(struct embeng *e, int dmabuf, size_t *bytes);

/**
 * embeng_buffer_free() - give memory back
 *
 * Return: 0, -EBUSY while a batch or an update still uses it, -EINVAL for memory that
 * embeng_buffer_alloc() did not return.
 */
EMBENG_API int embeng_buffer_free(struct embeng *e, void *buffer);

/**
 * embeng_memory_register() - have the device use memory of the program in place
 * @p: [bytes], which stay the program's, and stay there, until embeng_memory_unregister() or until the
 *	handle is closed
 *
 * From then on arrays in it are as arrays in a buffer: ids, weights, offsets and gradients are read
 * in place, also after a call has returned, and outputs are written there. Worth it for memory that
 * many batches use. Thread-safe. Return: 0, -ENOTSUP on a device that reaches buffers alone (arrays
 * are copied there, as before), -EEXIST for what overlaps a buffer or registered memory, -EINVAL,
 * -ENOSPC (regions), -ENOMEM.
 */
EMBENG_API int embeng_memory_register(struct embeng *e, void *p, size_t bytes);

/**
 * embeng_memory_unregister() - use it no more; @p as it was registered
 *
 * Return: 0, -EBUSY while a batch or an update still uses it, -EINVAL.
 */
EMBENG_API int embeng_memory_unregister(struct embeng *e, void *p);

/* -- batches ------------------------------------------------------------- */

struct embeng_batch;

enum embeng_mode { EMBENG_TRAIN, EMBENG_INFERENCE };
enum embeng_id_type { EMBENG_I32, EMBENG_I64 };

/** embeng_batch_new() - an empty batch for @replica; holds pointers, not copies */
EMBENG_API struct embeng_batch *embeng_batch_new(struct embeng *e, enum embeng_mode mode,
						 uint32_t replica);
/** embeng_batch_reset() - forget the inputs, keep the memory */
EMBENG_API void embeng_batch_reset(struct embeng_batch *b, enum embeng_mode mode);
EMBENG_API void embeng_batch_free(struct embeng_batch *b);

/**
 * embeng_batch_dense() - one id per position
 * @ids: [product of shape]
 * @shape: [rank], rank from 1; from rank 2 on the last dimension must be 1 and is
 *	dropped
 *
 * A sequence feature's positions are then single ids, output [shape, dim].
 * Return: 0, -EINVAL, -ENOENT (feature).
 */
EMBENG_API int embeng_batch_dense(struct embeng_batch *b, int feature, enum embeng_id_type type,
				  const void *ids, size_t id_count, const int64_t *shape,
				  size_t rank);

/**
 * embeng_batch_sparse() - COO: value k belongs to the sample at indices[k]
 * @indices: [value_count][rank]; samples (all but the last index) never fall in
 *	row-major order, ids of a bag are summed in the order given
 * @values: [value_count] ids
 * @shape: [rank], rank from 2; the last dimension is the bag, the others are the
 *	output's. From rank 3 on a sequence feature's bags are combined, too
 * @weights: [value_count] or NULL: 1
 * @weight_count: must equal @value_count when @weights is given
 *
 * Return: 0, -EINVAL, -ENOENT (feature).
 */
EMBENG_API int embeng_batch_sparse(struct embeng_batch *b, int feature, enum embeng_id_type type,
				   const int64_t *indices, const void *values, size_t value_count,
				   const int64_t *shape, size_t rank, const float *weights,
				   size_t weight_count);

/**
 * embeng_batch_ragged() - bags one after another, by length
 * @ids: [id_count]
 * @row_lengths: [row_count], none negative, adding up to @id_count
 * @weights: [id_count] or NULL: 1
 *
 * Return: 0, -EINVAL, -ENOENT (feature), -ENOMEM.
 */
EMBENG_API int embeng_batch_ragged(struct embeng_batch *b, int feature, enum embeng_id_type type,
				   const void *ids, size_t id_count, const int64_t *row_lengths,
				   size_t row_count, const float *weights, size_t weight_count);

/**
 * embeng_batch_ragged_splits() - bags one after another, by row splits
 * @row_splits: [split_count], from 0 up to @id_count, never falling;
 *	split_count - 1 samples. Used in place when it lies in a buffer
 *
 * Return: 0, -EINVAL, -ENOENT (feature).
 */
EMBENG_API int embeng_batch_ragged_splits(struct embeng_batch *b, int feature,
					  enum embeng_id_type type, const void *ids,
					  size_t id_count, const int64_t *row_splits,
					  size_t split_count, const float *weights,
					  size_t weight_count);

enum embeng_bags_form {
	EMBENG_BAGS_SPLITS,  /* [samples + 1], from 0 up to id_count, never falling */
	EMBENG_BAGS_STARTS,  /* [samples], splits without the last one */
	EMBENG_BAGS_LENGTHS, /* [samples], adding up to id_count */
	EMBENG_BAGS_EVEN,    /* no bounds: each of the samples has as many ids as @length says */
};

/**
 * struct embeng_bags - bags one after another, in the form in which a framework holds them
 * @size: sizeof(struct embeng_bags)
 * @type: enum embeng_id_type of @ids
 * @ids: [id_count]
 * @id_count: ids
 * @form: enum embeng_bags_form of @bounds
 * @bound_type: enum embeng_id_type of @bounds
 * @bounds: [bound_count]; NULL with EVEN
 * @bound_count: entries of @bounds; with EVEN the samples
 * @length: with EVEN, the ids of a bag: a matrix [samples][length]
 * @weights: [weight_count] or NULL: 1
 * @weight_count: must equal @id_count when @weights is given
 * @has_padding: ids that equal @padding only fill their bag up: they are as if they were not there
 * @padding: any number
 */
struct embeng_bags {
	size_t size;
	enum embeng_id_type type;
	const void *ids;
	size_t id_count;
	enum embeng_bags_form form;
	enum embeng_id_type bound_type;
	const void *bounds;
	size_t bound_count;
	int64_t length;
	const float *weights;
	size_t weight_count;
	int has_padding;
	int64_t padding;
};

/**
 * embeng_batch_bags() - bags of one feature
 *
 * Splits of 64 bits are used in place when they lie in a buffer; what was left out, and bounds of any
 * other kind, are the batch's own memory. Return: 0, -EINVAL, -ENOENT (feature), -ENOMEM.
 */
EMBENG_API int embeng_batch_bags(struct embeng_batch *b, int feature,
				 const struct embeng_bags *bags);

/**
 * embeng_batch_keyed() - bags of several features, one feature after another
 * @features: [count], each once
 * @samples: [count], the samples of each; NULL: all have as many
 * @bags: those of all features together, as a KeyedJaggedTensor has them: lengths are
 *	[count][samples]
 *
 * All of it is checked in one pass. Return: as embeng_batch_bags().
 */
EMBENG_API int embeng_batch_keyed(struct embeng_batch *b, const int *features,
				  const size_t *samples, size_t count,
				  const struct embeng_bags *bags);

/* -- steps --------------------------------------------------------------- */

/**
 * embeng_enqueue() - look a batch up
 * @timeout_ns: how long to wait for a place, beyond the step depth
 *
 * Every feature must have its input. All that is wrong with the batch is
 * reported here, naming feature, sample and id, and the batch is then as if never
 * enqueued. On return the ids may be reused. Return: 0, -EINVAL, -ERANGE,
 * -EPROTO, -ETIME naming what is missing, -EDEADLK as embeng_dequeue(), -EBUSY, -ENODEV.
 */
EMBENG_API int embeng_enqueue(struct embeng *e, struct embeng_batch *b, int64_t timeout_ns);

/**
 * struct embeng_view - one feature's activations
 * @data: f32, row-major, [shape]; of a batch without samples nothing to read
 * @rank: entries of @shape
 * @shape: output shape, then dim
 * @lengths: sequence features: ids per sample, at most max_sequence_length;
 *	[lengths_count], else NULL
 * @lengths_count: samples
 */
struct embeng_view {
	const float *data;
	size_t rank;
	int64_t shape[EMBENG_MAX_RANK + 1];
	const int64_t *lengths;
	size_t lengths_count;
};

/**
 * struct embeng_activations - the result of a lookup
 * @size: sizeof(struct embeng_activations), set by the caller
 * @replica: replica of the batch
 * @mode: enum embeng_mode
 * @step: number of the training batch in its replica, 0 for inference
 * @count: features
 * @features: [count], in feature order; not a copy
 * @token: for embeng_release()
 *
 * A view is valid until the matching embeng_apply_gradients() or embeng_discard() (training), or
 * embeng_release() (inference).
 */
struct embeng_activations {
	size_t size;
	uint32_t replica;
	enum embeng_mode mode;
	uint64_t step;
	size_t count;
	const struct embeng_view *features;
	void *token;
};

/**
 * embeng_dequeue() - the replica's oldest batch that was not dequeued
 *
 * A training lookup that the device fails takes its step back, and those that the replica was
 * given behind it fail with -EPROTO (EMBENG_STATUS_STEP_ORDER): the same batches may be enqueued
 * again.
 *
 * Return: 0, -EPROTO when nothing is enqueued, -ETIME naming what is missing
 * ("step 12: gradients of replica 1"), -EDEADLK for that without a timeout, if this thread has the
 * view whose gradients are missing, -EIO when the device failed it.
 */
EMBENG_API int embeng_dequeue(struct embeng *e, uint32_t replica, int64_t timeout_ns,
			      struct embeng_activations *activations);

/**
 * embeng_dequeue_fence() - embeng_dequeue(), without waiting for the lookup
 * @timeout_ns: where it has to wait after all
 * @activations: shapes and pointers are right at once, what stands there once @fence signalled
 * @fence: out: a sync_file, the caller's, close-on-exec: for poll(), DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE
 *	or another device's driver
 *
 * The next may be enqueued and this one's gradients handed in before it signalled, if they wait
 * for fences themselves (&embeng_gradients.fences); without any, embeng_apply_gradients() waits
 * for the lookup, as embeng_release() does. A lookup that fails has no activations, but signals:
 * the calls that end the view say so.
 *
 * The kernel gives no fence for what waits for a program. So while some replica's gradients of
 * the step before were not handed in, and when another batch was enqueued behind this one before
 * its own gradients were, this call waits for the lookup as embeng_dequeue() does, and @fence
 * has signalled.
 *
 * Thread-safe as embeng_dequeue(). Return: 0, as embeng_dequeue(), -ENOTSUP on the soft device
 * and on mapped queues ("path=mapped"), -EMFILE.
 */
EMBENG_API int embeng_dequeue_fence(struct embeng *e, uint32_t replica, int64_t timeout_ns,
				    struct embeng_activations *activations, int *fence);

/**
 * embeng_release() - give an inference view back
 *
 * Return: 0, -EPROTO for a view that is not out, or how the device was lost.
 */
EMBENG_API int embeng_release(struct embeng *e, struct embeng_activations *activations);

/**
 * struct embeng_output - where a feature's activations go
 * @data: f32, [samples] rows of dim floats, or of max_sequence_length * dim for bags of a sequence
 *	feature; NULL: they are not wanted
 * @stride: floats from the row of one sample to that of the next; 0: they follow each other
 * @elements: floats behind @data, checked
 *
 * With strides the rows of several features may stand in one block, [samples][sum of dims].
 */
struct embeng_output {
	float *data;
	size_t stride;
	size_t elements;
};

/**
 * embeng_lookup() - look a batch up into the caller's memory, in one call
 * @b: made with EMBENG_INFERENCE
 * @outputs: [count], in feature order; written in place where they lie in buffers, copied elsewhere
 * @count: features of the model
 * @timeout_ns: how long to wait where some replicas alone have looked up a pipelined step, and over a group of
 *	hosts for the other hosts
 *
 * Sees every complete update that was handed in. Any number of threads may call at once, also for one
 * replica, each with a batch of its own. Outputs are untouched if the batch is refused.
 *
 * Over a group of hosts all make the call. One that ends by its timeout (-ETIME), embeng_ask() or
 * embeng_interrupt() (-EINTR) cannot be taken back, since the others count on this host: a call with the same ids
 * goes on with it, and any other call of all hosts ends it first. Return: 0,
 * or as embeng_enqueue(); -EBUSY when the program has all inference views of the replica.
 */
EMBENG_API int embeng_lookup(struct embeng *e, struct embeng_batch *b,
			     const struct embeng_output *outputs, size_t count, int64_t timeout_ns);

/**
 * struct embeng_rate - value of a dynamic learning rate or hyperparameter
 */
struct embeng_rate {
	const char *name;
	float value;
};

#define EMBENG_FENCES_MAX 63

/**
 * struct embeng_gradients - the argument of embeng_apply_gradients()
 * @size: sizeof(struct embeng_gradients)
 * @replica: replica; the gradients are for its oldest dequeued training batch without gradients
 * @count: features
 * @features: [count] f32 of the activations' shapes; NULL: zeros, the rows are
 *	touched all the same. Those of features whose table is frozen (embeng_table_freeze()) or
 *	has no optimizer are never read: they may be NULL, or hold anything, and touch no row
 * @elements: [count] floats behind each pointer, checked against the shape; NULL:
 *	not checked
 * @rates: [rate_count], every dynamic rate of the model once; one with a schedule
 *	(embeng_model_set_schedule()) may be left out
 * @rate_count: how many
 * @multiplier: finite; all row sums are multiplied by it before clipping. It counts if it is not
 *	0 or if @has_multiplier is set, so that 0 can be given
 * @fences: [fence_count] sync_files that signal before the gradients are read; they stay the
 *	caller's and may be closed on return. Gradients must stand in buffers then, or where
 *	embeng_gradient_buffer() says. When one signals an error the update fails
 * @fence_count: how many, up to EMBENG_FENCES_MAX
 * @has_multiplier: @multiplier is given, even if it is 0
 * @sums: not 0: the gradients are sums of each row's gradients in this replica, made where its samples
 *	are, for tables that are spread over hosts. The batch names each row once, in order of no
 *	matter, with embeng_batch_dense(). The rows get the bits that the gradients themselves would
 *	have given, signs of zeros too (embeng/spread.h makes such sums). Tables must accumulate
 *	gradients and not scale by frequency. Sums are not looked at for numbers that are not finite:
 *	whoever makes them does that
 */
struct embeng_gradients {
	size_t size;
	uint32_t replica;
	size_t count;
	const float *const *features;
	const size_t *elements;
	const struct embeng_rate *rates;
	size_t rate_count;
	float multiplier;
	const int *fences;
	size_t fence_count;
	int has_multiplier;
	int sums;
};

/**
 * embeng_apply_gradients() - hand in the gradients of a step
 * @timeout_ns: how long to wait for a lookup whose view came with a fence
 *
 * Returns once they are handed in; pointers outside buffers have been copied,
 * those inside are in use until the update completed (embeng_flush()). Replicas
 * must give the same rates, to the bit. Return: 0, -EPROTO (nothing dequeued, or
 * only inference), -EINVAL (rate missing, shape), -ERANGE (a rate that a constant one could
 * not be), -ENOENT (rate unknown), -ETIME; with fences -ENOTSUP on the soft device, on mapped
 * queues and with pipelining, -EINVAL for gradients that would be copied, and for descriptors
 * that are no sync_files.
 */
EMBENG_API int embeng_apply_gradients(struct embeng *e, const struct embeng_gradients *gradients,
				      int64_t timeout_ns);

/**
 * embeng_update() - give the rows of a batch gradients, without an earlier lookup
 * @b: made with EMBENG_TRAIN; any number of samples
 * @gradients: as for embeng_apply_gradients(), of the shapes that the activations of @b would have;
 *	its replica is that of @b
 * @timeout_ns: how long to wait for a place within the step depth, and until the replica has no
 *	training batch that waits for gradients
 *
 * For programs that look up (embeng_enqueue() with EMBENG_INFERENCE) and update in an order of their
 * own. It is a step as that of a lookup and its gradients, with the same bits: each replica gives its
 * part. Returns once the gradients are handed in; ids and pointers are as in embeng_enqueue() and
 * embeng_apply_gradients(). A batch or gradients that are refused leave no trace. Thread-safe as
 * embeng_enqueue(). Return: 0, -EDEADLK (no timeout, and this thread has the view that is waited
 * for), or as those two.
 */
EMBENG_API int embeng_update(struct embeng *e, struct embeng_batch *b,
			     const struct embeng_gradients *gradients, int64_t timeout_ns);

/**
 * struct embeng_gradient_norms - the result of embeng_gradient_norm()
 * @size: sizeof(struct embeng_gradient_norms), set by the caller
 * @norm: out: the norm of all tables together
 * @tables: [table_count] out: that of each table; NULL: not wanted
 * @table_count: tables of the model, when @tables is given
 * @non_finite: out: 1 if a gradient is not finite; the members below then name the first, else they are
 *	0 and @feature is -1
 * @part: out: index of its batch in the call
 * @feature: out: its feature
 * @sample: out: its sample
 * @element: out: its place among the feature's gradients
 */
struct embeng_gradient_norms {
	size_t size;
	double norm;
	double *tables;
	size_t table_count;
	int non_finite;
	size_t part;
	int feature;
	size_t sample;
	size_t element;
};

/**
 * embeng_gradient_norm() - the L2 norm of the gradients that a step gives the tables' rows
 * @batches: [count] the parts of the step, for example one of each replica; their inputs must still be
 *	there, unchanged, also of a batch that was enqueued. Either mode
 * @gradients: [count] those of each, of the shapes that its activations have. Rates and multiplier are
 *	not looked at, and there may be no fences
 * @count: parts; the norm of none is 0
 * @norms: out, its size set by the caller; untouched on error
 *
 * The gradients of a row are first summed over samples, features and parts, each times its factor in the
 * activation (weight, combiner), and divided where scale_by_frequency says so; the norm is the square
 * root of the sum of the squares of all rows. It is that of torch's clip_grad_norm_() over the
 * gradients of the tables: before multiplier, clip and weight decay. All of it is in f64, and
 * has the same bits on every device. Tables that are frozen or have no optimizer count 0.
 *
 * To clip a step by its global norm, ask for the norm of the parts of all replicas, and give each
 * replica's gradients the multiplier min(1, limit / norm): embeng_apply_gradients(), embeng_update().
 * Gradients that carry a factor for their loss have a norm that carries it, too.
 *
 * A gradient that is not finite is no error here: it makes the norm infinite or NaN, if it reaches a row,
 * and is told. Replicas of other processes have norms of their own; where no row is touched by two
 * of them, the squares add up.
 *
 * Only ids and gradients are read, so no step is waited for, but where the combiner of a feature's table
 * is max: there the gradients go to the rows that hold the largest numbers, and these are read, as by
 * embeng_rows_read(), as they are now. Thread-safe, but each batch is one thread's at a time.
 * Return: 0, -EINVAL, -ERANGE (an id or a weight that the engine would refuse), -ENOMEM, where
 * rows are read as embeng_rows_read().
 */
EMBENG_API int embeng_gradient_norm(struct embeng *e, struct embeng_batch *const *batches,
				    const struct embeng_gradients *const *gradients, size_t count,
				    struct embeng_gradient_norms *norms);

/**
 * embeng_weight_gradients() - the gradients of the weights of a batch's ids
 * @b: its inputs must still be there, unchanged, also if it was enqueued. Either mode
 * @gradients: as for embeng_gradient_norm(): the loss by the activations of @b; NULL: zeros. Those of
 *	frozen tables are read, too
 * @weights: [count] out, in feature order: f32, one for each id as it was given, padding included;
 *	NULL: not wanted. Untouched on error
 * @counts: [count] floats behind each of @weights, which must be the feature's ids
 * @count: features of the model
 *
 * With the row r of an id, its weight w, the gradient g of its sample and the activation y of that:
 * with EMBENG_SUM r.g; with EMBENG_MEAN (r.g - y.g) / sum(w); with EMBENG_SQRTN
 * r.g / D - w * y.g / D^2, where D^2 = sum(w^2). They are computed in f64 and rounded once. Where no
 * weights were given they are taken as 1. Ids that their table drops, padding, and bags whose
 * denominator is 0 have gradients of 0; an id that reads zeros by EMBENG_POLICY_ZERO has that of a
 * row of zeros. Dense inputs and sequences take no weights.
 *
 * The rows are those that embeng_rows_read() would read now, so call it before the update of the same
 * gradients; with pipelining, activations were looked up in rows of one update before. Rows of a table
 * with quantization are taken as lookups see them. Over a group of hosts all hosts make the call, since they
 * read rows of each other; one that needs none gives a batch whose inputs have no samples.
 *
 * Thread-safe, but a batch is one thread's at a time. Return: 0, -EINVAL, -ERANGE (an id or a weight that
 * the engine would refuse), -ENOTSUP (partitioned input), -ENOMEM, -ETIME as row access.
 */
EMBENG_API int embeng_weight_gradients(struct embeng *e, struct embeng_batch *b,
				       const struct embeng_gradients *gradients,
				       float *const *weights, const size_t *counts, size_t count);

/**
 * embeng_discard() - take a training view back for which no gradients come
 * @replica: its oldest dequeued training batch without gradients is the one
 * @timeout_ns: how long to wait for a lookup whose view came with a fence
 *
 * The batch touches no row, unlike one whose gradients are NULL. Other replicas' gradients of the
 * step are applied. A step that all replicas discard changes nothing, also where lazy_adam is off,
 * and is none for optimizers, schedules and checkpoints; &embeng_activations.step goes on counting
 * batches. Return: 0, -EPROTO (nothing dequeued, or only inference), -ETIME.
 */
EMBENG_API int embeng_discard(struct embeng *e, uint32_t replica, int64_t timeout_ns);

/**
 * embeng_step() / embeng_set_step() - how many steps the optimizers have counted
 * @step: out: steps of which gradients were applied, also before a restored checkpoint
 *
 * A number that is set holds for all tables, also for those that were frozen for some steps; the next
 * update is the one behind it. A program that writes rows and slots of another system's checkpoint
 * sets it, for Adam's correction and for schedules. See every complete update that was handed in.
 * Return: 0, -EINVAL, -ERANGE (beyond 2^62), -ETIME as row access.
 */
EMBENG_API int embeng_step(struct embeng *e, uint64_t *step);
EMBENG_API int embeng_set_step(struct embeng *e, uint64_t step);

/**
 * embeng_gradient_buffer() - where the oldest dequeued batch's gradients may be written
 *
 * Memory of the activations' shape, in place for embeng_apply_gradients().
 * Return: NULL when nothing is dequeued.
 */
EMBENG_API float *embeng_gradient_buffer(struct embeng *e, uint32_t replica, int feature);

/**
 * embeng_flush() - wait until every complete update that was handed in is applied
 *
 * With pipelining, too; the lookups that follow are stale by exactly one step all the same.
 *
 * In a shared context until every one that this handle handed in is: -ETIME names whose part
 * is missing.
 *
 * With a timeout of 0, too, it waits for updates that run, and for those that wait for a fence
 * (&embeng_gradients.fences), however long another device or program takes to signal it.
 *
 * Return: 0, -ETIME naming what is missing, or what an update failed with.
 */
EMBENG_API int embeng_flush(struct embeng *e, int64_t timeout_ns);

/**
 * embeng_table_freeze() - have updates leave a table alone, or change it again
 * @frozen: 1: leave it alone (requires_grad = False, trainable = False); 0: change it
 *
 * Holds for the steps whose gradients are handed in from now on. A frozen table is looked up,
 * counted and saved as before, but its rows and slots stay as they are: no optimizer, weight decay
 * or clip runs on it, also where lazy_adam is off, and gradients of its features are not read. The
 * optimizer does not count the steps in between, so that it goes on later where it stopped.
 * embeng_rows_write() and embeng_restore() still change it. All handles of a shared context see
 * the same. Freezing what is frozen does nothing.
 *
 * Thread-safe, but embeng_apply_gradients() of another thread at the same time may give the table
 * gradients of zeros when it is thawed. Return: 0, -EINVAL (a table without an optimizer is
 * frozen for good), -ENOENT, -ETIME as row access.
 */
EMBENG_API int embeng_table_freeze(struct embeng *e, int table, int frozen);

/**
 * embeng_table_frozen() - ask whether updates leave a table alone
 *
 * Return: 1 if it is frozen or has no optimizer, 0, or an error as embeng_table_freeze().
 */
EMBENG_API int embeng_table_frozen(struct embeng *e, int table);

/* -- rows ---------------------------------------------------------------- */

/**
 * embeng_rows_read() / embeng_rows_write() - rows of a table or slot
 * @slot: NULL or "parameters", or a slot's name ("accumulators")
 * @ids: [count] row numbers; NULL: rows 0 to count - 1. If a row is written twice,
 *	the later value stays
 * @data: [count][dim]; of a slot [count][embeng_model_slot_width()], here and below
 *
 * Sees every complete update that was handed in. A batch that was enqueued before a write, and whose lookup
 * waits for no gradients, reads the rows that were there before; so it is with all calls that
 * write rows. All rows are checked before any is written. Return: 0, -EINVAL, -ENOENT (table, slot), -ERANGE (row), -ETIME when
 * some replicas alone have looked up a pipelined step, naming what is missing.
 */
EMBENG_API int embeng_rows_read(struct embeng *e, int table, const char *slot, const int64_t *ids,
				size_t count, float *data);
EMBENG_API int embeng_rows_write(struct embeng *e, int table, const char *slot, const int64_t *ids,
				 size_t count, const float *data);

/**
 * embeng_rows_fill() - rows [first, first + count) from an initializer
 *
 * Otherwise as embeng_rows_write(). Return: as that, -EINVAL and -ERANGE for the
 * initializer, too.
 */
EMBENG_API int embeng_rows_fill(struct embeng *e, int table, const char *slot, int64_t first,
				size_t count, const struct embeng_initializer *initializer);

/**
 * embeng_table_map() - the rows of a table or slot as memory, on the soft device
 * @slot: as embeng_rows_read()
 * @rows: out: row 0; the engine's, not a copy
 * @row_stride: out: floats from one row to the next
 *
 * The map lasts until embeng_table_unmap() or until the handle is closed, and holds nothing up: who
 * reads while steps, writes or restores go on may see old rows, new ones, or some of each. After
 * embeng_flush() rows are those of all updates that were handed in, until the next. The program may
 * write, too; what it writes while an update runs may be lost. Restores copy into a mapped table and
 * leave it where it is. Each call counts: a table mapped twice is unmapped twice.
 *
 * Thread-safe. Return: 0, -ENOTSUP where the device has memory of its own, -ENOENT (table, slot),
 * -EINVAL, -ETIME as row access.
 */
EMBENG_API int embeng_table_map(struct embeng *e, int table, const char *slot, float **rows,
				int64_t *row_stride);

/** embeng_table_unmap() - end a map. Return: 0, -EPROTO (not mapped), or as embeng_table_map() */
EMBENG_API int embeng_table_unmap(struct embeng *e, int table, const char *slot);

/* -- statistics ---------------------------------------------------------- */

#define EMBENG_HOT_ROWS 32
#define EMBENG_MAX_CORES 64

/**
 * struct embeng_table_stats - counts since they were last cleared
 *
 * Meaning of the fields: &struct embeng_stats of embeng_engine.h.
 */
struct embeng_table_stats {
	size_t size;
	uint64_t ids, unique_ids, dropped_ids, clamped_ids, zeroed_ids, steps, updated_rows;
	uint64_t untouched_rows, nonfinite_activations, nonfinite_rows;
	uint64_t nonfinite_gradient_rows;
	size_t hot_count;
	uint64_t hot_error;
	struct {
		int64_t row;
		uint64_t count;
	} hot[EMBENG_HOT_ROWS];
	size_t core_count;
	uint64_t core_ids[EMBENG_MAX_CORES];
};

/**
 * embeng_stats() - read a table's counts, and clear them when @clear
 * @stats: out, its size set by the caller
 *
 * Batches that were enqueued before, and whose lookup waits for no gradients, are looked up and counted.
 *
 * Return: 0, -EINVAL, -ENOENT, -ETIME as row access.
 */
EMBENG_API int embeng_stats(struct embeng *e, int table, int clear,
			    struct embeng_table_stats *stats);

/**
 * struct embeng_counter_values - work that a handle did since it was opened
 * @size: sizeof(struct embeng_counter_values)
 * @lookups: batches looked up
 * @updates: updates handed in
 * @bytes_copied: bytes of ids, weights, gradients and rows that lay outside buffers
 * @time_check_ns: engine: checking and copying ids
 * @time_lookup_ns: engine: lookups
 * @time_partition_ns: engine: sorting ids by row
 * @time_update_ns: engine: updates
 * @time_ring_ns: engine: fetching and completing commands
 * @time_copy_ns: library: the copies counted in @bytes_copied
 */
struct embeng_counter_values {
	size_t size;
	uint64_t lookups, updates, bytes_copied;
	uint64_t time_check_ns, time_lookup_ns, time_partition_ns, time_update_ns, time_ring_ns;
	uint64_t time_copy_ns;
};

/**
 * struct embeng_usage - bytes that a handle holds now, as a plan counts them
 * @size: sizeof(struct embeng_usage)
 * @table_bytes: tables and slots
 * @buffer_bytes: shared memory, without the program's own embeng_buffer_alloc()
 * @engine_bytes: the engine's own for the model, beside tables; 0 where the device does
 *	not tell
 *
 * A device that other handles use, too, counts their tables and engine bytes with ours.
 */
struct embeng_usage {
	size_t size;
	uint64_t table_bytes, buffer_bytes, engine_bytes;
};

/**
 * embeng_usage() - read the bytes that a handle holds at this moment
 *
 * Table and engine bytes are the device's: of all its contexts. Thread-safe.
 * Return: 0, -EINVAL.
 */
EMBENG_API int embeng_usage(struct embeng *e, struct embeng_usage *usage);

/**
 * embeng_counters() - read the counts of a handle's work since it was opened
 *
 * Thread-safe. Return: 0, -EINVAL.
 */
EMBENG_API int embeng_counters(struct embeng *e, struct embeng_counter_values *values);

#ifdef __cplusplus
}
#endif

#endif
