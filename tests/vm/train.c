// SPDX-License-Identifier: MIT
/* Trains a small model on validated queues of the device node, with fences in and out. */
#include "train.h"

#include <linux/sync_file.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xf86drm.h>

#include "../unit/support/direct_model.h"

#define ROWS 4u
#define ROOM 65536u
#define SLOT 512u /* memory of one command: descriptor, ids, numbers */

static struct direct_blob blob;

int train_load(struct train *t, uint32_t replicas, uint32_t flags)
{
	struct small_model model = small_model(ROWS, TRAIN_DIM);
	struct embeng_accel_model_load arg = {.queue = t->transfer.made.queue,
					      .blob = (uintptr_t)blob.data};

	model.engine.replicas = replicas;
	model.engine.flags = flags;
	small_blob(&model, &blob);
	t->hash = blob.header.hash;
	arg.length = blob.length;
	return accel_call(t->fd, DRM_IOCTL_EMBENG_MODEL_LOAD, &arg);
}

struct train train_open(uint32_t replicas, uint32_t flags)
{
	struct train t = {.fd = accel_open()};
	struct embeng_accel_bo_create bo;

	accel_context(t.fd);
	bo = accel_bo(t.fd, ROOM);
	t.key = accel_bind(t.fd, bo.handle, EMBENG_REGION_DEVICE_READ | EMBENG_REGION_DEVICE_WRITE);
	t.data = accel_map(t.fd, bo.offset, ROOM, PROT_READ | PROT_WRITE);
	t.transfer = accel_ring(t.fd, EMBENG_QUEUE_TRANSFER, 0);
	ck_assert_int_eq(train_load(&t, replicas, flags), 0);
	ck_assert_uint_eq(accel_take(t.fd, &t.transfer).status, 0);
	for (uint32_t r = 0; r < replicas; r++) {
		struct embeng_accel_queue_create input = accel_queue(EMBENG_QUEUE_INPUT, 0);
		struct embeng_accel_queue_create gradient = accel_queue(EMBENG_QUEUE_GRADIENT, 0);

		input.replica = gradient.replica = r;
		t.input[r] = accel_ring_of(t.fd, input);
		t.gradient[r] = accel_ring_of(t.fd, gradient);
	}
	return t;
}

void train_close(struct train *t)
{
	munmap(t->data, ROOM);
	close(t->fd);
}

/* The slot of a replica's step, in one half for lookups and one for updates. */
static uint64_t slot(uint32_t half, uint32_t replica, uint64_t step)
{
	return ((half * TRAIN_REPLICAS + replica) * 16 + step % 16) * SLOT;
}

static struct embeng_mem piece(const struct train *t, uint64_t offset, uint64_t length)
{
	return (struct embeng_mem){t->key.index, t->key.generation, offset, length};
}

struct embeng_cmd train_lookup(struct train *t, uint32_t replica, uint64_t step)
{
	uint64_t at = slot(0, replica, step), id = replica;
	struct {
		struct embeng_lookup header;
		struct embeng_lookup_feature feature;
	} desc = {
		.header = {.feature_count = 1,
			   .feature_stride = sizeof(desc.feature),
			   .model_hash = t->hash},
		.feature = {.form = EMBENG_FORM_DENSE,
			    .id_width = 8,
			    .sample_count = 1,
			    .id_count = 1,
			    .ids = piece(t, at + 256, 8),
			    .activations = piece(t, at + 320, 4 * TRAIN_DIM)},
	};

	memcpy(t->data + at, &desc, sizeof(desc));
	memcpy(t->data + at + 256, &id, sizeof(id));
	return (struct embeng_cmd){.opcode = EMBENG_OP_LOOKUP,
				   .cookie = step,
				   .step = step,
				   .desc = piece(t, at, sizeof(desc))};
}

float train_output(const struct train *t, uint32_t replica, uint64_t step)
{
	float first;

	memcpy(&first, t->data + slot(0, replica, step) + 320, sizeof(first));
	return first;
}

struct embeng_cmd train_update(struct train *t, uint32_t replica, uint64_t step)
{
	uint64_t at = slot(1, replica, step);
	const float ones[TRAIN_DIM] = {1, 1};
	struct {
		struct embeng_update header;
		struct embeng_update_feature feature;
	} desc = {
		.header = {.feature_count = 1,
			   .feature_stride = sizeof(desc.feature),
			   .model_hash = t->hash},
		.feature = {.gradients = piece(t, at + 256, sizeof(ones))},
	};

	memcpy(t->data + at, &desc, sizeof(desc));
	memcpy(t->data + at + 256, ones, sizeof(ones));
	return (struct embeng_cmd){.opcode = EMBENG_OP_UPDATE,
				   .cookie = step,
				   .step = step,
				   .desc = piece(t, at, sizeof(desc))};
}

struct embeng_cmd train_read(struct train *t, uint64_t after)
{
	uint64_t at = slot(2, 0, 0);
	struct embeng_rows desc = {.count = ROWS, .data = piece(t, at + 256, ROWS * TRAIN_DIM * 4)};

	memcpy(t->data + at, &desc, sizeof(desc));
	return (struct embeng_cmd){.opcode = EMBENG_OP_ROWS_READ,
				   .cookie = after,
				   .after = after,
				   .desc = piece(t, at, sizeof(desc))};
}

struct embeng_cmd train_nop(uint32_t delay_us)
{
	return (struct embeng_cmd){.opcode = EMBENG_OP_NOP,
				   .arg = (uint64_t)delay_us << EMBENG_NOP_DELAY_SHIFT};
}

int train_submit(int fd, struct ring *ring, const struct embeng_cmd *cmds, uint32_t count,
		 const struct embeng_accel_sync *in, const struct embeng_accel_sync *out)
{
	struct embeng_accel_submit arg = {.queue = ring->made.queue,
					  .count = count,
					  .stride = sizeof(*cmds),
					  .commands = (uintptr_t)cmds,
					  .in_syncs = (uintptr_t)in,
					  .out_syncs = (uintptr_t)out,
					  .in_count = in != NULL,
					  .out_count = out != NULL,
					  .cq_head = ring->cq_head};

	return accel_call(fd, DRM_IOCTL_EMBENG_SUBMIT, &arg);
}

int train_give(struct train *t, struct ring *ring, struct embeng_cmd cmd,
	       const struct embeng_accel_sync *in, const struct embeng_accel_sync *out)
{
	return train_submit(t->fd, ring, &cmd, 1, in, out);
}

struct embeng_accel_sync train_sync(int fd, uint64_t point)
{
	struct embeng_accel_sync sync = {.point = point};

	ck_assert_int_eq(drmSyncobjCreate(fd, 0, &sync.handle), 0);
	return sync;
}

int train_await(int fd, struct embeng_accel_sync sync)
{
	int64_t deadline = accel_now() + 10 * SECOND;
	uint64_t point = sync.point;

	/* It may be asked for before the submit that signals it, from another thread. */
	return drmSyncobjTimelineWait(fd, &sync.handle, &point, 1, deadline,
				      DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT, NULL);
}

int train_sync_file(int fd, struct embeng_accel_sync sync)
{
	int file;

	ck_assert_int_eq(drmSyncobjExportSyncFile(fd, sync.handle, &file), 0);
	return file;
}

int train_file_status(int file)
{
	struct sync_fence_info fence = {0};
	struct sync_file_info info = {.num_fences = 1, .sync_fence_info = (uintptr_t)&fence};

	ck_assert_int_eq(ioctl(file, SYNC_IOC_FILE_INFO, &info), 0);
	/* Linux 7.2 lets a fence go of its driver, and of its name, once it has signaled; 6.12 does not. */
	if (fence.status == 0 || strcmp(fence.driver_name, "detached-driver"))
		ck_assert_str_eq(fence.driver_name, "embeng");
	close(file);
	return fence.status;
}

int train_status(int fd, struct embeng_accel_sync sync)
{
	return train_file_status(train_sync_file(fd, sync));
}
