// SPDX-License-Identifier: MIT
/* Memory of a device behind the driver that other threads or other drivers use, too. */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "runtime/src/session/session.h"
#include "accel_help.h"
#include "suite.h"

#define FEW 100
#define MANY 20000

START_TEST(an_exporter_that_refuses)
{
	struct embeng *e;
	int fd;

	fake_install();
	e = open_on(FAKE_NODE, 1);
	fd = fake_foreign_dmabuf();
	fake.fails = DRM_IOCTL_PRIME_FD_TO_HANDLE;
	fake.error = -ENODEV;
	ck_assert_ptr_null(embeng_buffer_import(e, fd, NULL));
	expect_text("no dma-buf that this device can reach");
	fake.error = -EOPNOTSUPP;
	ck_assert_ptr_null(embeng_buffer_import(e, fd, NULL));
	expect_text("exporter");
	expect_text("swiotlb");
	fake.fails = 0;
	/* Neither was the device's end. */
	train_step(e, 0);
	ck_assert_int_eq(embeng_flush(e, -1), 0);
	fake_lose(-ENODEV);
	ck_assert_ptr_null(embeng_buffer_import(e, fd, NULL));
	expect_text("the device is gone");
	close(fd);
	embeng_close(e);
	nothing_left();
}
END_TEST

/*
 * A lookup of so many samples, whose ids need no copy: of its memory only activations grow. A
 * first one that is refused leaves them, and leaves how many samples there are open.
 */
static int look_up(struct embeng *e, int64_t *ids, int64_t samples)
{
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_INFERENCE, 0);
	int ret;

	ck_assert_int_eq(embeng_batch_dense(b, 0, EMBENG_I64, ids, (size_t)samples, &samples, 1),
			 0);
	ret = embeng_enqueue(e, b, -1);
	embeng_batch_free(b);
	return ret;
}

static const char *activations(const struct embeng *e)
{
	return e->replicas[0].serving[0].activations.data;
}

/* Where there are activations for a few samples. */
static struct embeng *open_small_slot(int64_t **ids)
{
	struct embeng *e;

	fake_install();
	e = open_on(FAKE_NODE, 1);
	*ids = embeng_buffer_alloc(e, MANY * sizeof(**ids));
	**ids = -1;
	ck_assert_int_eq(look_up(e, *ids, FEW), -ERANGE);
	ck_assert_ptr_nonnull(activations(e));
	**ids = 0;
	return e;
}

static int export_of(struct embeng *e, const char *data)
{
	size_t offset;
	int fd = embeng_memory_export(e, data, &offset);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

static struct growing {
	struct embeng *e;
	const char *old;
	int exported; /* when it was taken back */
} growing;

static void export_old(unsigned long request, const void *arg)
{
	(void)arg;
	if (request == DRM_IOCTL_EMBENG_UNBIND)
		growing.exported = export_of(growing.e, growing.old);
}

START_TEST(memory_that_is_taken_back_is_nobodys)
{
	int64_t *ids;
	struct embeng *e = open_small_slot(&ids);

	growing = (struct growing){.e = e, .old = activations(e)};
	ck_assert_int_eq(export_of(e, growing.old), 0);
	fake.before = export_old;
	ck_assert_int_eq(look_up(e, ids, MANY), 0);
	fake.before = NULL;
	ck_assert_ptr_ne(activations(e), growing.old);
	ck_assert_int_eq(growing.exported, -EINVAL);
	ck_assert_int_eq(export_of(e, activations(e)), 0);
	embeng_close(e);
	nothing_left();
}
END_TEST

static uint64_t buffer_bytes(struct embeng *e)
{
	struct embeng_usage usage = {.size = sizeof(usage)};

	ck_assert_int_eq(embeng_usage(e, &usage), 0);
	return usage.buffer_bytes;
}

/* The memory that was to come in its place can. */
static void fail_once(unsigned long request, const void *arg)
{
	static bool failed;

	(void)arg;
	if (request == DRM_IOCTL_EMBENG_UNBIND && failed)
		fake.fails = 0;
	failed |= request == DRM_IOCTL_EMBENG_UNBIND;
}

START_TEST(memory_that_cannot_be_taken_back_stays)
{
	int64_t *ids;
	struct embeng *e = open_small_slot(&ids);
	const char *old = activations(e);
	uint64_t before = buffer_bytes(e);

	fake.fails = DRM_IOCTL_EMBENG_UNBIND;
	fake.error = -EBUSY;
	fake.before = fail_once;
	ck_assert_int_eq(look_up(e, ids, MANY), -EBUSY);
	fake.before = NULL;
	ck_assert_uint_eq(fake.fails, 0);
	ck_assert_uint_eq(buffer_bytes(e), before);
	ck_assert_ptr_eq(activations(e), old);
	ck_assert_int_eq(export_of(e, old), 0);
	ck_assert_int_eq(look_up(e, ids, FEW), 0);
	ck_assert_ptr_eq(activations(e), old);
	embeng_close(e);
	nothing_left();
}
END_TEST

/* An import that another thread begins inside of one call of the driver. */
static struct meddling {
	struct embeng *e;
	unsigned long inside;
	int dmabuf;
	bool begun, done;
	pthread_t thread;
	void *imported;
} meddling;

static void *import_too(void *arg)
{
	(void)arg;
	meddling.imported = embeng_buffer_import(meddling.e, meddling.dmabuf, NULL);
	__atomic_store_n(&meddling.done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Gives the other thread time for all of it, unless it has to wait for this one. */
static void meddle(unsigned long request, const void *arg)
{
	const struct timespec nap = {.tv_nsec = 1000000};

	(void)arg;
	if (request != meddling.inside || meddling.begun)
		return;
	meddling.begun = true;
	ck_assert_int_eq(pthread_create(&meddling.thread, NULL, import_too, NULL), 0);
	for (int i = 0; i < 200 && !__atomic_load_n(&meddling.done, __ATOMIC_ACQUIRE); i++)
		nanosleep(&nap, NULL);
}

static void begin_meddling(struct embeng *e, unsigned long inside, int dmabuf)
{
	meddling = (struct meddling){.e = e, .inside = inside, .dmabuf = dmabuf};
	fake.before = meddle;
}

static void end_meddling(void)
{
	ck_assert(meddling.begun);
	pthread_join(meddling.thread, NULL);
	fake.before = NULL;
	close(meddling.dmabuf);
}

START_TEST(two_imports_at_once)
{
	struct embeng *e;
	void *imported;

	fake_install();
	e = open_on(FAKE_NODE, 1);
	begin_meddling(e, DRM_IOCTL_EMBENG_BO_INFO, fake_foreign_dmabuf());
	imported = embeng_buffer_import(e, meddling.dmabuf, NULL);
	end_meddling();
	ck_assert(imported && meddling.imported && imported != meddling.imported);
	ck_assert_int_eq(embeng_buffer_free(e, imported), 0);
	ck_assert_int_eq(embeng_buffer_free(e, meddling.imported), 0);
	embeng_close(e);
	nothing_left();
}
END_TEST

/* The fake fails what closes a handle twice. Its dma-bufs end with their buffer. */
START_TEST(an_import_while_its_buffer_is_freed)
{
	struct embeng *e;
	size_t offset;
	char *buffer;

	fake_install();
	e = open_on(FAKE_NODE, 1);
	buffer = embeng_buffer_alloc(e, 4096);
	begin_meddling(e, DRM_IOCTL_GEM_CLOSE, embeng_memory_export(e, buffer, &offset));
	ck_assert_int_eq(embeng_buffer_free(e, buffer), 0);
	end_meddling();
	embeng_close(e);
	nothing_left();
}
END_TEST

static void add(TCase *tc)
{
	tcase_add_test(tc, an_exporter_that_refuses);
	tcase_add_test(tc, memory_that_is_taken_back_is_nobodys);
	tcase_add_test(tc, memory_that_cannot_be_taken_back_stays);
	tcase_add_test(tc, two_imports_at_once);
	tcase_add_test(tc, an_import_while_its_buffer_is_freed);
}

int main(void)
{
	return suite_main("accel_memory", add);
}
