// SPDX-License-Identifier: MIT
/*
 * Memory that a check shares with the device, and a table of the check's own whose rows move through
 * it. Each byte goes over the bus twice on its way to the table and back.
 *
 * Memory belongs to the caller, who frees it before the board is closed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xf86drm.h>

#include "embeng.h"

#include "board.h"

#define DESCRIPTOR_BYTES 4096u
#define BOTH_RIGHTS (EMBENG_REGION_DEVICE_READ | EMBENG_REGION_DEVICE_WRITE)

int board_bind(const struct board *b, uint32_t handle, uint32_t rights, uint64_t offset,
	       uint64_t bytes, struct embeng_mem *key)
{
	struct embeng_accel_bind bind = {
		.handle = handle, .rights = rights, .offset = offset, .length = bytes};
	int err = board_call(b, DRM_IOCTL_EMBENG_BIND, &bind);

	if (!err)
		*key = (struct embeng_mem){bind.index, bind.generation, 0, bytes};
	return err;
}

int board_unbind(const struct board *b, const struct embeng_mem *key)
{
	struct embeng_accel_unbind unbind = {key->index, key->generation};

	return board_call(b, DRM_IOCTL_EMBENG_UNBIND, &unbind);
}

static bool bind_memory(const struct board *b, struct board_memory *m, struct finding *f)
{
	int err = board_bind(b, m->handle, BOTH_RIGHTS, 0, m->bytes, &m->key);

	if (err)
		finding_fail(f, "memory cannot be bound for the device: %s", strerror(-err));
	return !err;
}

bool board_memory_new(const struct board *b, uint64_t bytes, struct board_memory *out,
		      struct finding *f)
{
	struct embeng_accel_bo_create create = {.size = bytes};
	int err = board_call(b, DRM_IOCTL_EMBENG_BO_CREATE, &create);

	*out = (struct board_memory){.bytes = bytes, .handle = create.handle, .owned = true};
	if (err) {
		finding_fail(f, "the driver gives no buffer: %s", strerror(-err));
		return false;
	}
	out->data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, b->fd,
			 (off_t)create.offset);
	if (out->data == MAP_FAILED) {
		out->data = NULL;
		finding_fail(f, "a buffer cannot be mapped: %s", strerror(errno));
	} else if (bind_memory(b, out, f)) {
		return true;
	}
	board_memory_free(b, out);
	return false;
}

bool board_memory_pin(const struct board *b, void *data, uint64_t bytes, struct board_memory *out,
		      struct finding *f)
{
	struct embeng_accel_userptr pin = {.address = (uint64_t)(uintptr_t)data, .size = bytes};
	int err = board_call(b, DRM_IOCTL_EMBENG_USERPTR, &pin);

	*out = (struct board_memory){.data = data, .bytes = bytes, .handle = pin.handle};
	if (err) {
		finding_fail(f, "the driver does not pin memory: %s", strerror(-err));
		return false;
	}
	if (bind_memory(b, out, f))
		return true;
	board_memory_free(b, out);
	return false;
}

void board_memory_free(const struct board *b, struct board_memory *m)
{
	if (m->key.generation)
		board_unbind(b, &m->key);
	if (m->owned && m->data)
		munmap(m->data, m->bytes);
	if (m->handle)
		drmCloseBufferHandle(b->fd, m->handle);
	*m = (struct board_memory){0};
}

void board_close(struct board *b)
{
	if (b->descriptors)
		board_memory_free(b, b->descriptors);
	free(b->descriptors);
	close(b->fd);
	*b = (struct board){.fd = -1};
}

static int make_board_blob(void **blob, size_t *length)
{
	struct embeng_model *model = embeng_model_new();
	struct embeng_engine_config engine = EMBENG_INIT(embeng_engine_config,
							 .non_finite = EMBENG_NON_FINITE_ALLOW);
	struct embeng_table_config table = EMBENG_INIT(
		embeng_table_config, .vocabulary_size = BOARD_ROWS, .dim = BOARD_DIM);
	struct embeng_feature_config feature = EMBENG_INIT(embeng_feature_config, .table = 0);
	int err;

	if (!model)
		return -ENOMEM;
	err = embeng_model_add_table(model, &table);
	err = err < 0 ? err : embeng_model_add_feature(model, &feature);
	err = err < 0 ? err : embeng_model_set_engine(model, &engine);
	err = err < 0 ? err : embeng_model_blob(model, blob, length);
	embeng_model_free(model);
	return err;
}

bool board_load(struct board *b, struct board_queue *q, struct finding *f)
{
	struct embeng_accel_model_load load = {.queue = q->made.queue};
	struct embeng_cqe cqe;
	size_t length;
	void *blob;
	int err;

	if (finding_library(f, make_board_blob(&blob, &length), "a model"))
		return false;
	load.blob = (uint64_t)(uintptr_t)blob;
	load.length = length;
	err = board_call(b, DRM_IOCTL_EMBENG_MODEL_LOAD, &load);
	free(blob);
	err = err ? err : board_take(q, 10 * BOARD_SECOND, &cqe);
	if (err)
		finding_fail(f, "a model cannot be loaded: %s", strerror(-err));
	else if (cqe.status)
		finding_fail(f, "the device refuses a model: %s", board_status_text(cqe.status));
	return !err && !cqe.status;
}

static bool make_descriptors(struct board *b, struct finding *f)
{
	struct board_memory *m = calloc(1, sizeof(*m));

	if (!m) {
		finding_fail(f, "out of memory");
		return false;
	}
	if (!board_memory_new(b, DESCRIPTOR_BYTES, m, f)) {
		free(m);
		return false;
	}
	b->descriptors = m;
	return true;
}

int board_rows(struct board *b, struct board_queue *q, uint16_t opcode, uint64_t first,
	       uint64_t count, const struct embeng_mem *data, struct finding *f)
{
	struct embeng_rows rows = {.first = first, .count = count, .data = *data};
	struct embeng_cmd cmd = {.opcode = opcode};
	struct embeng_cqe cqe;

	if (!b->descriptors && !make_descriptors(b, f))
		return -1;
	memcpy(b->descriptors->data, &rows, sizeof(rows));
	cmd.desc = b->descriptors->key;
	cmd.desc.length = sizeof(rows);
	return board_run(b, q, &cmd, &cqe, f) ? cqe.status : -1;
}
