// SPDX-License-Identifier: MIT
/* One context under several handles, and memory under several names. */
#include <sys/mman.h>
#include <unistd.h>

#include "accel_help.h"

static struct embeng *attach_to(struct embeng *e, uint32_t replicas)
{
	struct embeng_model *m = small_model(replicas);
	struct embeng *other = NULL;
	int fd = embeng_export(e);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(embeng_attach(fd, m, &other, NULL), 0);
	fake_close_descriptor(fd);
	embeng_model_free(m);
	return other;
}

static void look_up(struct embeng *e, uint32_t replica)
{
	struct embeng_activations a = {.size = sizeof(a)};

	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, replica, -1), 0);
	ck_assert_int_eq(embeng_dequeue(e, replica, -1, &a), 0);
}

static void train_two(struct embeng *first, struct embeng *second, float rows[8])
{
	for (int step = 0; step < STEPS; step++) {
		look_up(first, 0);
		look_up(second, 1);
		ck_assert_int_eq(apply_ones(first, 0), 0);
		ck_assert_int_eq(apply_ones(second, 1), 0);
	}
	ck_assert_int_eq(embeng_flush(first, -1), 0);
	ck_assert_int_eq(embeng_rows_read(first, 0, NULL, NULL, 4, rows), 0);
}

static void share_on(const char *name, const float want[8])
{
	struct embeng *first, *second;
	float rows[8];

	fake_install();
	first = open_on(name, 2);
	second = attach_to(first, 2);
	ck_assert_int_eq(fake.files, 1);
	train_two(first, second, rows);
	ck_assert_mem_eq(rows, want, sizeof(rows));
	ck_assert_int_eq(embeng_flush(second, -1), 0);
	ck_assert_int_eq(embeng_rows_read(second, 0, NULL, NULL, 4, rows), 0);
	ck_assert_mem_eq(rows, want, sizeof(rows));
	/* The context outlives who made it. */
	embeng_close(first);
	ck_assert_int_eq(embeng_rows_read(second, 0, NULL, NULL, 4, rows), 0);
	embeng_close(second);
	nothing_left();
}

START_TEST(two_handles_give_the_bits_of_one)
{
	struct embeng *soft = open_on("soft:cores=1", 2);
	float want[8];

	train_two(soft, soft, want);
	embeng_close(soft);
	ck_assert(want[2] != 10);
	share_on(FAKE_NODE, want);
	share_on(FAKE_NODE ",path=validated", want);
}
END_TEST

static struct {
	struct embeng *e;
	int fd;
} shared;

static void share_meanwhile(unsigned long request, const void *arg)
{
	(void)arg;
	fake.before = NULL;
	ck_assert_uint_eq(request, DRM_IOCTL_EMBENG_BO_CREATE);
	shared.fd = embeng_export(shared.e);
}

/* The memory of a replica's first batch is being made when the context is shared. */
START_TEST(a_first_batch_keeps_its_replica)
{
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng *other;

	fake_install();
	shared.e = open_on(FAKE_NODE, 2);
	fake.before = share_meanwhile;
	ck_assert_int_eq(enqueue_bags(shared.e, EMBENG_TRAIN, 0, -1), 0);
	ck_assert_ptr_null(fake.before);
	ck_assert_int_ge(shared.fd, 0);
	fake_close_descriptor(shared.fd);
	other = attach_to(shared.e, 2);
	look_up(other, 1);
	ck_assert_int_eq(embeng_dequeue(shared.e, 0, -1, &a), 0);
	ck_assert_int_eq(apply_ones(shared.e, 0), 0);
	ck_assert_int_eq(apply_ones(other, 1), 0);
	ck_assert_int_eq(embeng_flush(shared.e, -1), 0);
	embeng_close(other);
	embeng_close(shared.e);
	nothing_left();
}
END_TEST

START_TEST(names_the_missing_part)
{
	struct embeng *first, *second;
	float rows[8];

	fake_install();
	first = open_on(FAKE_NODE, 2);
	second = attach_to(first, 2);
	look_up(first, 0);
	ck_assert_int_eq(apply_ones(first, 0), 0);
	ck_assert_int_eq(embeng_flush(first, 0), -ETIME);
	expect_text("of replica 1");
	ck_assert_int_eq(embeng_rows_read(first, 0, NULL, NULL, 4, rows), -ETIME);
	expect_text("of replica 1");
	look_up(second, 1);
	ck_assert_int_eq(embeng_flush(first, 0), -ETIME);
	expect_text("gradients of replica 1");
	ck_assert_int_eq(apply_ones(second, 1), 0);
	ck_assert_int_eq(embeng_flush(first, -1), 0);
	/* A replica is one handle's. */
	ck_assert_int_eq(enqueue_bags(second, EMBENG_TRAIN, 0, -1), -EPROTO);
	embeng_close(second);
	embeng_close(first);
	nothing_left();
}
END_TEST

START_TEST(a_loss_names_the_device)
{
	struct embeng *first, *second;
	float rows[8];

	fake_install();
	first = open_on(FAKE_NODE, 2);
	second = attach_to(first, 2);
	fake_lose(-ESHUTDOWN);
	ck_assert_int_eq(embeng_rows_read(second, 0, NULL, NULL, 4, rows), -ESHUTDOWN);
	expect_text("pci:" FAKE_ADDRESS ": the device was reset");
	embeng_close(second);
	embeng_close(first);
}
END_TEST

START_TEST(refuses_what_cannot_be_shared)
{
	struct embeng_engine_config c = {.size = sizeof(c), .replicas = 2, .pipelining = 1};
	struct embeng_model *m = small_model(2);
	struct embeng *e = open_on("soft:cores=1", 2), *other = NULL;
	int fd;

	fake_install();
	ck_assert_int_eq(embeng_export(e), -ENOTSUP);
	embeng_close(e);
	e = open_on(FAKE_NODE, 2);
	ck_assert_int_ge(embeng_fd(e), 0);
	ck_assert_int_eq(embeng_export(e), -EBUSY);
	embeng_close(e);
	e = open_on(FAKE_NODE, 2);
	fd = embeng_export(e);
	ck_assert_int_eq(embeng_fd(e), -ENOTSUP);
	ck_assert_int_eq(embeng_attach(fd, NULL, &other, NULL), -EINVAL);
	ck_assert_int_eq(embeng_attach(77, m, &other, NULL), -EBADF);
	fake_close_descriptor(fd);
	embeng_close(e);
	ck_assert_int_eq(embeng_model_set_engine(m, &c), 0);
	ck_assert_int_eq(embeng_attach(0, m, &other, NULL), -ENOTSUP);
	expect_text("pipelined");
	ck_assert_int_eq(embeng_open(FAKE_NODE, m, &e, NULL), 0);
	ck_assert_int_eq(embeng_export(e), -ENOTSUP);
	embeng_close(e);
	embeng_model_free(m);
	ck_assert_ptr_null(other);
	nothing_left();
}
END_TEST

START_TEST(attaches_only_to_a_live_context)
{
	struct embeng_model *m = small_model(2);
	struct embeng *e, *other = NULL;
	int fd;

	fake_install();
	fd = accel_system->open(FAKE_NODE);
	ck_assert_int_eq(embeng_attach(fd, m, &other, NULL), -EINVAL);
	expect_text("embeng_export()");
	fake_close_descriptor(fd);
	e = open_on(FAKE_NODE, 2);
	fd = embeng_export(e);
	fake_lose_context();
	ck_assert_int_eq(embeng_attach(fd, m, &other, NULL), -ESHUTDOWN);
	fake_close_descriptor(fd);
	ck_assert_ptr_null(other);
	fake_lose(-ESHUTDOWN);
	embeng_close(e);
	embeng_model_free(m);
	nothing_left();
}
END_TEST

START_TEST(exports_what_it_gave_out)
{
	struct embeng *e;
	struct embeng_activations a = {.size = sizeof(a)};
	size_t offset = 99, start;
	float *gradients;
	char *buffer;
	int fd;

	fake_install();
	e = open_on(FAKE_NODE, 1);
	buffer = embeng_buffer_alloc(e, 8192);
	fd = embeng_memory_export(e, buffer + 5000, &offset);
	ck_assert_int_ge(fd, 0);
	ck_assert_uint_eq(offset, 5000);
	close(fd);
	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, -1), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
	fd = embeng_memory_export(e, a.features[0].data + 1, &offset);
	ck_assert_int_ge(fd, 0);
	ck_assert_uint_eq(offset, 4);
	close(fd);
	gradients = embeng_gradient_buffer(e, 0, 0);
	fd = embeng_memory_export(e, gradients, &start);
	ck_assert_int_ge(fd, 0);
	close(fd);
	fd = embeng_memory_export(e, gradients + 2, &offset);
	ck_assert_int_ge(fd, 0);
	ck_assert_uint_eq(offset, start + 8);
	close(fd);
	ck_assert_int_eq(embeng_memory_export(e, &offset, &offset), -EINVAL);
	ck_assert_int_eq(embeng_memory_export(e, buffer, NULL), -EINVAL);
	ck_assert_uint_eq(offset, start + 8);
	fake.fails = DRM_IOCTL_PRIME_HANDLE_TO_FD;
	fake.error = -ENOSYS;
	ck_assert_int_eq(embeng_memory_export(e, buffer, &offset), -ENOSYS);
	fake.fails = 0;
	embeng_close(e);
	nothing_left();
}
END_TEST

/* The same memory under two names: gradients written through one are used through the other. */
static void import_on(struct embeng *exporter, struct embeng *importer)
{
	size_t offset, bytes = 0;
	char *buffer = embeng_buffer_alloc(exporter, 8192), *imported;
	int fd = embeng_memory_export(exporter, buffer, &offset);

	imported = embeng_buffer_import(importer, fd, &bytes);
	ck_assert_ptr_nonnull(imported);
	ck_assert_uint_eq(bytes, 8192);
	buffer[100] = 42;
	ck_assert_int_eq(imported[100], 42);
	if (importer != exporter) {
		ck_assert_int_eq(embeng_memory_export(importer, imported, &offset), -EINVAL);
		expect_text("pass on the descriptor");
	}
	ck_assert_int_eq(embeng_buffer_free(importer, imported), 0);
	/* Still the exporter's. */
	close(fd);
	fd = embeng_memory_export(exporter, buffer, &offset);
	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(embeng_buffer_free(exporter, buffer), 0);
}

START_TEST(imports_what_was_exported)
{
	struct embeng *first, *second;
	size_t bytes = 7;

	fake_install();
	first = open_on(FAKE_NODE, 2);
	ck_assert_ptr_null(embeng_buffer_import(first, -1, &bytes));
	expect_text("no dma-buf");
	ck_assert_uint_eq(bytes, 7);
	second = attach_to(first, 2);
	import_on(first, second);
	embeng_close(second);
	embeng_close(first);
	nothing_left();
}
END_TEST

START_TEST(undoes_an_import)
{
	struct embeng *e;
	size_t offset;
	char *buffer;
	int fd, before;

	fake_install();
	e = open_on(FAKE_NODE, 2);
	buffer = embeng_buffer_alloc(e, 4096);
	fd = embeng_memory_export(e, buffer, &offset);
	before = fake.mappings;
	fake.fails = DRM_IOCTL_EMBENG_BO_INFO;
	fake.error = -ENOENT;
	ck_assert_ptr_null(embeng_buffer_import(e, fd, NULL));
	fake.fails = DRM_IOCTL_EMBENG_BIND;
	fake.error = -ENOSPC;
	ck_assert_ptr_null(embeng_buffer_import(e, fd, NULL));
	fake.fails = 0;
	ck_assert_int_eq(fake.mappings, before);
	close(fd);
	ck_assert_int_eq(embeng_buffer_free(e, buffer), 0);
	embeng_close(e);
	nothing_left();
}
END_TEST

RUN_SUITE("accel_share", two_handles_give_the_bits_of_one, a_first_batch_keeps_its_replica,
	  names_the_missing_part, a_loss_names_the_device, refuses_what_cannot_be_shared,
	  attaches_only_to_a_live_context, exports_what_it_gave_out, imports_what_was_exported,
	  undoes_an_import)
