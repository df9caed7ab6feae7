// SPDX-License-Identifier: MIT
/*
 * The calls of a fuzzed program about devices, contexts, queues and fences. Arguments are drawn at
 * random, and are valid as far as they can be.
 */
#include "acts.h"

#include "trainer.h"

#define OUTPUT 0x80000u /* in the actor's area: where queries are answered */
#define INPUT 0xc0000u	/* and where commands stand */
#define MS 1000000ll

static _Thread_local struct trainer trainer;
static _Thread_local struct file *trained;

static void act_query(struct fuzz *f)
{
	struct embeng_accel_query arg = {
		.what = fuzz_below(f, 8),
		.size = 256,
		.data = fuzz_rarely(f, 4) ? world_address(f) : (uintptr_t)actor.area + OUTPUT,
	};

	CALL(f, world_file(f), EMBENG_QUERY, &arg);
}

static void act_bo_create(struct fuzz *f)
{
	struct file *file = world_file(f);
	struct embeng_accel_bo_create arg = {.size = 1 + fuzz_take(f, 2) * 16};

	if (CALL(f, file, EMBENG_BO_CREATE, &arg))
		return;
	held_add(&file->things[THING_HANDLE], arg.handle);
	held_add(&file->things[THING_OFFSET], arg.offset);
}

static void act_bo_info(struct fuzz *f)
{
	struct file *file = world_file(f);
	struct embeng_accel_bo_info arg = {
		.handle = (uint32_t)held_any(&file->things[THING_HANDLE], f)};

	if (!CALL(f, file, EMBENG_BO_INFO, &arg) && arg.offset)
		held_add(&file->things[THING_OFFSET], arg.offset);
}

static void act_userptr(struct fuzz *f)
{
	struct file *file = world_file(f);
	struct embeng_accel_userptr arg = {
		.address = world_address(f) & ~4095ull,
		.size = (1 + fuzz_below(f, 32)) * 4096,
		.flags = fuzz_below(f, 2),
	};

	if (!CALL(f, file, EMBENG_USERPTR, &arg))
		held_add(&file->things[THING_HANDLE], arg.handle);
}

static void act_gem_close(struct fuzz *f)
{
	struct file *file = world_file(f);
	struct drm_gem_close arg = {.handle = (uint32_t)held_any(&file->things[THING_HANDLE], f)};

	CALL(f, file, GEM_CLOSE, &arg);
}

static void act_context_create(struct fuzz *f)
{
	struct embeng_accel_context_create arg = {.regions = fuzz_below(f, 64)};

	CALL(f, world_file(f), EMBENG_CONTEXT_CREATE, &arg);
}

static void act_bind(struct fuzz *f)
{
	struct file *file = world_file(f);
	struct embeng_accel_bind arg = {
		.handle = (uint32_t)held_any(&file->things[THING_HANDLE], f),
		.rights = 1 + fuzz_below(f, 3),
		.offset = fuzz_rarely(f, 4) ? 4096 : 0,
	};

	if (!CALL(f, file, EMBENG_BIND, &arg))
		held_add(&file->things[THING_KEY], arg.index | (uint64_t)arg.generation << 32);
}

static void act_unbind(struct fuzz *f)
{
	struct file *file = world_file(f);
	uint64_t key = held_any(&file->things[THING_KEY], f);
	struct embeng_accel_unbind arg = {.index = (uint32_t)key, .generation = key >> 32};

	CALL(f, file, EMBENG_UNBIND, &arg);
}

static void act_queue_create(struct fuzz *f)
{
	struct file *file = world_file(f);
	uint32_t flags = fuzz_below(f, 2), sq = 1u << fuzz_below(f, 6);
	struct embeng_accel_queue_create arg = {
		.kind = 1 + fuzz_below(f, 4),
		.flags = flags,
		.sq_entries = sq,
		.cq_entries = 2 * sq,
		.first = fuzz_rarely(f, 2) ? 0 : -fuzz_below(f, 64),
		.coalesce_count = flags || !fuzz_rarely(f, 4) ? 0 : 2,
	};

	arg.coalesce_us = arg.coalesce_count ? 100 : 0;
	if (CALL(f, file, EMBENG_QUEUE_CREATE, &arg))
		return;
	held_add(&file->things[THING_QUEUE], arg.queue);
	held_add(&file->things[THING_OFFSET], arg.ring);
	if (arg.doorbell)
		held_add(&file->things[THING_OFFSET], arg.doorbell);
}

static void act_queue_destroy(struct fuzz *f)
{
	struct file *file = world_file(f);
	struct embeng_accel_queue_destroy arg = {
		.queue = (uint32_t)held_any(&file->things[THING_QUEUE], f)};

	CALL(f, file, EMBENG_QUEUE_DESTROY, &arg);
}

static struct embeng_cmd command(struct fuzz *f, struct file *file)
{
	uint64_t key = held_any(&file->things[THING_KEY], f);
	struct embeng_cmd cmd = {.opcode = (uint16_t)fuzz_below(f, 16), .cookie = fuzz_take(f, 1)};

	if (cmd.opcode)
		cmd.desc = (struct embeng_mem){(uint32_t)key, key >> 32, fuzz_near(f, 0),
					       fuzz_near(f, 96)};
	else
		cmd.arg = fuzz_take(f, 2) << EMBENG_NOP_DELAY_SHIFT | fuzz_below(f, 64);
	if (fuzz_rarely(f, 8))
		fuzz_edit(f, &cmd, sizeof(cmd), 2);
	return cmd;
}

static void act_submit(struct fuzz *f)
{
	struct file *file = world_file(f);
	struct embeng_cmd *commands = (struct embeng_cmd *)(actor.area + INPUT);
	struct embeng_accel_submit arg = {
		.queue = (uint32_t)held_any(&file->things[THING_QUEUE], f),
		.count = 1 + fuzz_below(f, 4),
		.stride = sizeof(*commands),
		.commands = fuzz_rarely(f, 16) ? world_address(f) : (uintptr_t)commands,
		.cq_head = fuzz_below(f, 16),
	};
	struct embeng_accel_sync *sync = (struct embeng_accel_sync *)(actor.area + OUTPUT);

	for (uint32_t i = 0; i < arg.count; i++)
		commands[i] = command(f, file);
	*sync = (struct embeng_accel_sync){
		.handle = (uint32_t)held_any(&file->things[THING_SYNCOBJ], f),
		.point = fuzz_below(f, 4)};
	if (fuzz_rarely(f, 4)) {
		arg.out_count = 1;
		arg.out_syncs = (uintptr_t)sync;
	} else if (fuzz_rarely(f, 4)) {
		arg.in_count = 1;
		arg.in_syncs = (uintptr_t)sync;
	}
	CALL(f, file, EMBENG_SUBMIT, &arg);
}

static void act_wait(struct fuzz *f)
{
	struct file *file = world_file(f);
	struct embeng_accel_wait arg = {.queue = EMBENG_ACCEL_ANY_QUEUE};
	int64_t now = accel_now();

	if (fuzz_rarely(f, 4)) {
		arg.events = fuzz_take(f, 1);
	} else {
		arg.queue = (uint32_t)held_any(&file->things[THING_QUEUE], f);
		arg.cq_head = fuzz_below(f, 16);
		arg.count = 1 + fuzz_below(f, 4);
		if (fuzz_rarely(f, 4)) {
			arg.least = 1;
			arg.least_ns = now + MS;
		}
	}
	arg.deadline_ns = fuzz_rarely(f, 64) ? INT64_MAX : now + fuzz_below(f, 5) * MS;
	CALL(f, file, EMBENG_WAIT, &arg);
}

static void act_model_load(struct fuzz *f)
{
	struct file *file = world_file(f);
	struct embeng_blob_header *blob = (struct embeng_blob_header *)(actor.area + INPUT);
	struct embeng_accel_model_load arg = {
		.queue = (uint32_t)held_any(&file->things[THING_QUEUE], f),
		.blob = (uintptr_t)blob,
		.length = sizeof(*blob) + fuzz_take(f, 2) * 8,
	};

	*blob = (struct embeng_blob_header){
		.magic = EMBENG_BLOB_MAGIC, .version = EMBENG_BLOB_VERSION, .length = arg.length};
	if (trainer.memory && fuzz_rarely(f, 2)) {
		memcpy(blob, trainer.memory, trainer.blob_length);
		arg.length = trainer.blob_length;
	}
	CALL(f, file, EMBENG_MODEL_LOAD, &arg);
}

static void act_reset(struct fuzz *f)
{
	struct file *file = world_file(f);
	struct embeng_accel_reset arg = {.rung = EMBENG_ACCEL_RESET_QUEUE};

	if (fuzz_rarely(f, 16))
		arg.rung = fuzz_below(f, 5);
	if (arg.rung == EMBENG_ACCEL_RESET_QUEUE)
		arg.queue = (uint32_t)held_any(&file->things[THING_QUEUE], f);
	CALL(f, file, EMBENG_RESET, &arg);
}

static void act_syncobj(struct fuzz *f)
{
	struct file *file = world_file(f);
	struct drm_syncobj_create make = {.flags = fuzz_below(f, 2)};
	uint32_t handle = (uint32_t)held_any(&file->things[THING_SYNCOBJ], f);
	struct drm_syncobj_destroy end = {.handle = handle};
	uint32_t *handles = (uint32_t *)(actor.area + INPUT);
	struct drm_syncobj_wait wait = {.handles = (uintptr_t)handles,
					.count_handles = 1,
					.timeout_nsec = accel_now() + MS,
					.flags = fuzz_below(f, 4)};

	*handles = handle;
	switch (fuzz_below(f, 3)) {
	case 0:
		if (!CALL(f, file, SYNCOBJ_CREATE, &make))
			held_add(&file->things[THING_SYNCOBJ], make.handle);
		break;
	case 1:
		CALL(f, file, SYNCOBJ_DESTROY, &end);
		break;
	case 2:
		CALL(f, file, SYNCOBJ_WAIT, &wait);
		break;
	}
}

/* Any number, any size, whatever the core knows too. */
static void act_raw(struct fuzz *f)
{
	unsigned long request = _IOC(fuzz_below(f, 4), fuzz_rarely(f, 16) ? 0 : DRM_IOCTL_BASE,
				     fuzz_take(f, 1), fuzz_take(f, 1));
	uint64_t words[8] = {0};

	for (uint32_t i = 0; i < 8 && fuzz_rarely(f, 2); i++)
		words[i] = fuzz_near(f, fuzz_below(f, 8));
	world_call(f, world_file(f), request, words, sizeof(words));
}

static void hold(struct file *file, const struct ring *ring)
{
	held_add(&file->things[THING_QUEUE], ring->made.queue);
	held_add(&file->things[THING_OFFSET], ring->made.ring);
	if (ring->made.doorbell)
		held_add(&file->things[THING_OFFSET], ring->made.doorbell);
}

static void settle(struct file *file, uint32_t flags, uint64_t seed)
{
	struct drm_syncobj_create sync = {.flags = seed % 2 ? DRM_SYNCOBJ_CREATE_SIGNALED : 0};

	trainer_unmap(&trainer);
	trained = file;
	if (trainer_open(&trainer, trained->fd, flags, SECOND / 2, seed))
		return;
	held_add(&trained->things[THING_HANDLE], trainer.bo.handle);
	held_add(&trained->things[THING_OFFSET], trainer.bo.offset);
	held_add(&trained->things[THING_KEY],
		 trainer.key.index | (uint64_t)trainer.key.generation << 32);
	hold(trained, &trainer.transfer);
	hold(trained, &trainer.input);
	hold(trained, &trainer.gradient);
	if (!accel_call(trained->fd, DRM_IOCTL_SYNCOBJ_CREATE, &sync))
		held_add(&trained->things[THING_SYNCOBJ], sync.handle);
}

void act_settle(struct fuzz *f)
{
	uint32_t flags = fuzz_below(f, 2) ? EMBENG_ACCEL_QUEUE_MAPPED : 0;

	settle(world_file(f), flags, fuzz_take(f, 1));
}

void acts_begin(uint32_t number)
{
	struct file *file = &world_files[number % WORLD_FILES];

	file->fd = world_open();
	settle(file, number % 2 ? EMBENG_ACCEL_QUEUE_MAPPED : 0, number);
}

void acts_forget(void)
{
	trainer = (struct trainer){0};
}

/* Others may have destroyed what it works with: it fails then, and that is all. */
void act_train(struct fuzz *f)
{
	if (!trainer.memory || !trainer.gradient.memory) {
		act_settle(f);
	} else if (trainer_step(&trainer)) {
		trainer_unmap(&trainer);
		acts_forget();
	}
}

static void (*const acts[])(struct fuzz *f) = {
	act_open,
	act_open,
	act_close,
	act_pass,
	act_fork,
	act_map,
	act_map,
	act_map,
	act_remap,
	act_touch,
	act_touch,
	act_touch,
	act_share,
	act_import,
	act_look,
	act_query,
	act_bo_create,
	act_bo_create,
	act_bo_info,
	act_userptr,
	act_gem_close,
	act_context_create,
	act_context_create,
	act_bind,
	act_bind,
	act_bind,
	act_unbind,
	act_queue_create,
	act_queue_create,
	act_queue_create,
	act_queue_destroy,
	act_submit,
	act_submit,
	act_submit,
	act_submit,
	act_wait,
	act_wait,
	act_model_load,
	act_reset,
	act_reset,
	act_syncobj,
	act_raw,
	act_settle,
	act_settle,
	act_train,
	act_train,
	act_train,
	act_train,
};

void acts_run(struct fuzz *f)
{
	while (f->left)
		acts[fuzz_below(f, sizeof(acts) / sizeof(acts[0]))](f);
}
