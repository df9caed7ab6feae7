// SPDX-License-Identifier: MIT
/* Memory of other exporters used in place, and memory of ours given to another device. */
#define _GNU_SOURCE /* memfd_create */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/udmabuf.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../unit/support/suite.h"
#include "bounced.h"
#include "drm.h"
#include "embeng.h"

#define ROWS 16
#define DIM 4
#define SAMPLES 8
#define BYTES 65536

/* Contents of imported memory, which the engine and the program that made it both see. */
struct shared {
	int64_t ids[SAMPLES];
	float gradients[SAMPLES * DIM];
	float rows[ROWS * DIM];
};

/* Another's memory: its dma-buf, and its maker's own view of it. */
struct made {
	int dmabuf;
	struct shared *view;
};

static struct embeng *open_on(const char *name)
{
	struct embeng_table_config t = {
		.size = sizeof(t),
		.name = "t",
		.vocabulary_size = ROWS,
		.dim = DIM,
		.optimizer = embeng_adagrad(0.1f),
		.initializer = {.kind = EMBENG_INIT_UNIFORM, .a = -1, .b = 1, .seed = 3}};
	struct embeng_feature_config f = {.size = sizeof(f), .name = "f"};
	struct embeng_model *m = embeng_model_new();
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng *e = NULL;

	ck_assert_int_ge(embeng_model_add_table(m, &t), 0);
	ck_assert_int_ge(embeng_model_add_feature(m, &f), 0);
	ck_assert_msg(!embeng_open(name, m, &e, &error), "%s", error.text);
	embeng_model_free(m);
	return e;
}

static void *map(int fd, off_t at)
{
	void *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, at);

	ck_assert_msg(p != MAP_FAILED, "mmap: %s", strerror(errno));
	return p;
}

static struct made make_by_udmabuf(void)
{
	int memory = memfd_create("embeng", MFD_CLOEXEC | MFD_ALLOW_SEALING), device;
	struct udmabuf_create create = {
		.memfd = (uint32_t)memory, .flags = UDMABUF_FLAGS_CLOEXEC, .size = BYTES};
	struct made made;

	ck_assert_int_eq(ftruncate(memory, BYTES), 0);
	ck_assert_int_eq(fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	ck_assert_int_ge(device, 0);
	made.dmabuf = ioctl(device, UDMABUF_CREATE, &create);
	ck_assert_msg(made.dmabuf >= 0, "udmabuf: %s", strerror(errno));
	close(device);
	made.view = map(memory, 0);
	close(memory);
	return made;
}

/* The card node of the module vgem. */
static int open_vgem(void)
{
	char name[16];
	struct drm_version version;
	glob_t found;
	int fd = -1;

	ck_assert_int_eq(glob("/dev/dri/card*", 0, NULL, &found), 0);
	for (size_t i = 0; fd < 0 && i < found.gl_pathc; i++) {
		fd = open(found.gl_pathv[i], O_RDWR | O_CLOEXEC);
		version = (struct drm_version){.name = name, .name_len = sizeof(name)};
		if (ioctl(fd, DRM_IOCTL_VERSION, &version) || version.name_len != 4 ||
		    memcmp(name, "vgem", 4)) {
			close(fd);
			fd = -1;
		}
	}
	globfree(&found);
	ck_assert_msg(fd >= 0, "vgem has no node");
	return fd;
}

static struct made make_by_vgem(void)
{
	struct drm_mode_create_dumb create = {.width = BYTES / 64, .height = 16, .bpp = 32};
	struct drm_mode_map_dumb at = {0};
	struct drm_prime_handle prime = {.flags = DRM_CLOEXEC | DRM_RDWR};
	int device = open_vgem();
	struct made made;

	ck_assert_int_eq(ioctl(device, DRM_IOCTL_MODE_CREATE_DUMB, &create), 0);
	ck_assert_uint_eq(create.size, BYTES);
	at.handle = prime.handle = create.handle;
	ck_assert_int_eq(ioctl(device, DRM_IOCTL_MODE_MAP_DUMB, &at), 0);
	ck_assert_int_eq(ioctl(device, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime), 0);
	made.view = map(device, (off_t)at.offset);
	made.dmabuf = prime.fd;
	close(device);
	return made;
}

static struct made (*const makers[])(void) = {make_by_udmabuf, make_by_vgem};

/* A step from and into @at; what it wrote there is seen through @view. */
static void train(struct embeng *e, struct shared *at, struct shared *view)
{
	const int64_t shape[] = {SAMPLES};
	const float *gradients = at->gradients;
	struct embeng_gradients g = {.size = sizeof(g), .count = 1, .features = &gradients};
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, 0);
	struct embeng_activations a = {.size = sizeof(a)};

	for (int i = 0; i < SAMPLES; i++)
		view->ids[i] = (3 * i + i * i) % ROWS;
	ck_assert_int_eq(embeng_batch_dense(b, 0, EMBENG_I64, at->ids, SAMPLES, shape, 1), 0);
	ck_assert_int_eq(embeng_enqueue(e, b, -1), 0);
	embeng_batch_free(b);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
	for (int i = 0; i < SAMPLES * DIM; i++)
		view->gradients[i] = 3 * a.features[0].data[i] - 0.5f;
	ck_assert_int_eq(embeng_apply_gradients(e, &g, -1), 0);
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, NULL, ROWS, at->rows), 0);
}

static void expect_rows_of_soft(const struct shared *view)
{
	struct embeng *e = open_on("soft:cores=1");
	struct shared *want = embeng_buffer_alloc(e, sizeof(*want));

	ck_assert_ptr_nonnull(want);
	train(e, want, want);
	ck_assert_mem_eq(view->rows, want->rows, sizeof(want->rows));
	embeng_close(e);
}

static void expect_refused(struct embeng *e, int dmabuf)
{
	struct embeng_error error = {.size = sizeof(error)};

	ck_assert_ptr_null(embeng_buffer_import(e, dmabuf, NULL));
	embeng_last_error(&error);
	ck_assert_msg(error.code == -EOPNOTSUPP && strstr(error.text, "swiotlb"), "%d, %s",
		      error.code, error.text);
}

START_TEST(test_memory_of_others)
{
	struct embeng_counter_values counters = {.size = sizeof(counters)};
	struct embeng *e = open_on(NULL);
	struct made made = makers[_i]();
	struct shared *at;
	size_t bytes = 0;

	if (bounced()) {
		expect_refused(e, made.dmabuf);
		embeng_close(e);
		return;
	}
	at = embeng_buffer_import(e, made.dmabuf, &bytes);
	close(made.dmabuf);
	ck_assert_ptr_nonnull(at);
	ck_assert_uint_eq(bytes, BYTES);
	train(e, at, made.view);
	ck_assert_int_eq(embeng_counters(e, &counters), 0);
	ck_assert_uint_eq(counters.bytes_copied, 0);
	expect_rows_of_soft(made.view);
	ck_assert_int_eq(embeng_buffer_free(e, at), 0);
	embeng_close(e);
	expect_rows_of_soft(made.view);
}
END_TEST

START_TEST(test_no_dma_buf)
{
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng *e = open_on(NULL);
	int fd = memfd_create("embeng", MFD_CLOEXEC);

	ck_assert_ptr_null(embeng_buffer_import(e, fd, NULL));
	embeng_last_error(&error);
	ck_assert_msg(error.code == -EINVAL && strstr(error.text, "is no dma-buf"), "%s",
		      error.text);
	embeng_close(e);
}
END_TEST

/* The other device holds the memory, also when ours has let go of it. */
START_TEST(test_memory_for_others)
{
	struct embeng *e = open_on(NULL);
	struct shared *at = embeng_buffer_alloc(e, BYTES), *view;
	struct drm_prime_handle prime = {.fd = embeng_memory_export(e, at, &(size_t){0})};
	struct drm_gem_close end;
	int device = open_vgem();

	ck_assert_int_ge(prime.fd, 0);
	ck_assert_int_eq(ioctl(device, DRM_IOCTL_PRIME_FD_TO_HANDLE, &prime), 0);
	close(prime.fd);
	train(e, at, at);
	embeng_close(e);
	prime.flags = DRM_CLOEXEC | DRM_RDWR;
	ck_assert_int_eq(ioctl(device, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime), 0);
	view = map(prime.fd, 0);
	expect_rows_of_soft(view);
	end = (struct drm_gem_close){.handle = prime.handle};
	ck_assert_int_eq(ioctl(device, DRM_IOCTL_GEM_CLOSE, &end), 0);
	close(prime.fd);
	close(device);
	expect_rows_of_soft(view);
}
END_TEST

static void add(TCase *tc)
{
	tcase_add_loop_test(tc, test_memory_of_others, 0, 2);
	tcase_add_test(tc, test_no_dma_buf);
	tcase_add_test(tc, test_memory_for_others);
}

int main(void)
{
	return suite_main("import", add);
}
