// SPDX-License-Identifier: MIT
/*
 * Files, objects and mappings that the threads of a fuzzed program share, and the signals that
 * touching a mapping may raise.
 */
#define _GNU_SOURCE /* MAP_FIXED_NOREPLACE */
#include "world.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

struct file world_files[WORLD_FILES];
struct held world_primes;
_Thread_local struct actor actor;

static char node[64];
static _Thread_local sigjmp_buf elsewhere;
static _Thread_local volatile sig_atomic_t touching;

void world_begin(void)
{
	uint64_t length = (uint64_t)(WORLD_SLOTS + WORLD_GAP + WORLD_THREADS) * WORLD_SLOT;
	void *at = mmap((void *)WORLD_BASE, length, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (at != (void *)WORLD_BASE)
		world_die("no memory at %#llx", WORLD_BASE);
	for (uint32_t i = 0; i < WORLD_FILES; i++)
		world_files[i].fd = -1;
	close(accel_open_path(node, sizeof(node)));
}

int world_open(void)
{
	return open(node, O_RDWR | O_CLOEXEC);
}

void world_die(const char *format, ...)
{
	struct verdict *v = actor.verdict;
	va_list list;

	if (!atomic_exchange(&v->said, true)) {
		va_start(list, format);
		vsnprintf(v->words, sizeof(v->words), format, list);
		va_end(list);
	}
	signal(SIGABRT, SIG_DFL);
	abort();
}

static void on_fault(int number, siginfo_t *info, void *context)
{
	(void)context;
	if (number == SIGBUS)
		world_die("SIGBUS at %p", info->si_addr);
	if (!touching)
		world_die("SIGSEGV at %p", info->si_addr);
	siglongjmp(elsewhere, 1);
}

void world_signals(void)
{
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};

	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
}

void held_add(struct held *h, uint64_t value)
{
	h->values[h->count++ % WORLD_HELD] = value;
}

uint64_t held_any(struct held *h, struct fuzz *f)
{
	uint32_t count = h->count < WORLD_HELD ? h->count : WORLD_HELD;

	if (!count || fuzz_rarely(f, 16))
		return fuzz_near(f, 1);
	return h->values[fuzz_below(f, count)];
}

struct file *world_file(struct fuzz *f)
{
	return &world_files[fuzz_below(f, WORLD_FILES)];
}

uint8_t *world_slot(struct fuzz *f)
{
	return (uint8_t *)WORLD_BASE + (uint64_t)fuzz_below(f, WORLD_SLOTS) * WORLD_SLOT;
}

uint64_t world_address(struct fuzz *f)
{
	static const uint64_t corners[] = {0,
					   1,
					   4095,
					   4096,
					   0x7ffffffff000,
					   0x7fffffffffff,
					   0x800000000000,
					   0xffff800000000000,
					   0xffffffff81000000,
					   UINT64_MAX - 4095,
					   UINT64_MAX};
	uint64_t slot = (uintptr_t)world_slot(f);

	switch (fuzz_below(f, 8)) {
	case 0:
		return corners[fuzz_below(f, sizeof(corners) / sizeof(corners[0]))];
	case 1:
		return slot + WORLD_SLOT - fuzz_below(f, 64);
	case 2:
		return slot + fuzz_take(f, 2);
	}
	return slot + fuzz_below(f, 16) * 4096;
}

static _Thread_local struct {
	uint32_t *at;
	uint32_t value;
	bool write;
} wanted;

static void touch(void)
{
	if (wanted.write)
		__atomic_store_n(wanted.at, wanted.value, __ATOMIC_RELAXED);
	else
		wanted.value = __atomic_load_n(wanted.at, __ATOMIC_RELAXED);
}

void world_touch(struct fuzz *f, uint32_t *at)
{
	/* Numbers that were read somewhere are written elsewhere. */
	wanted.write = fuzz_rarely(f, 2);
	wanted.value = (uint32_t)fuzz_near(f, wanted.value);
	wanted.at = at;
	touching = 1;
	if (!sigsetjmp(elsewhere, 0))
		touch();
	touching = 0;
}

/* EBADF is of descriptors, EBADMSG of blobs: the rest is the contract of embeng_accel.h. */
static const int contract[] = {
	ENOTTY, E2BIG,	EOPNOTSUPP, EINVAL, EFAULT, ENOENT,    EOVERFLOW, ENOSPC, EBUSY,   EAGAIN,
	EACCES, EDQUOT, ENOMEM,	    ETIME,  EINTR,  ECANCELED, ESHUTDOWN, ENODEV, EBADMSG, EBADF,
};

static bool in_contract(int error)
{
	for (size_t i = 0; i < sizeof(contract) / sizeof(contract[0]); i++) {
		if (contract[i] == error)
			return true;
	}
	return false;
}

static bool is_ours(unsigned long request)
{
	return _IOC_TYPE(request) == DRM_IOCTL_BASE && _IOC_NR(request) >= DRM_COMMAND_BASE &&
	       _IOC_NR(request) < DRM_COMMAND_END;
}

/* These say in a failure what there is. */
static bool may_write(unsigned long request, int error)
{
	uint32_t nr = _IOC_NR(request) - DRM_COMMAND_BASE;

	return (nr == DRM_EMBENG_WAIT && error == ETIME) ||
	       (nr == DRM_EMBENG_QUERY && error == ENOSPC);
}

/* Another size or direction, or another call altogether, with the same argument. */
static unsigned long change_request(struct fuzz *f, unsigned long request)
{
	uint32_t nr = _IOC_NR(request), dir = _IOC_DIR(request), size = _IOC_SIZE(request);

	switch (fuzz_below(f, 4)) {
	case 0:
		size = (uint32_t)fuzz_near(f, fuzz_take(f, 1)) & _IOC_SIZEMASK;
		break;
	case 1:
		dir = fuzz_below(f, 4);
		break;
	case 2:
		nr = DRM_COMMAND_BASE + fuzz_below(f, 16);
		break;
	case 3:
		size += fuzz_below(f, 64);
		break;
	}
	return _IOC(dir, DRM_IOCTL_BASE, nr, size);
}

static int run(int fd, unsigned long request, void *arg)
{
	int error;

	actor.noted->request = request;
	actor.noted->since = accel_now();
	error = ioctl(fd, request, arg) < 0 ? errno : 0;
	actor.noted->since = 0;
	actor.noted->calls++;
	actor.noted->failed += error != 0;
	return error;
}

/* Where an ioctl of the core's counts the syncobjs of its array; 0: it takes none. */
static uint32_t syncobj_count_at(unsigned long request)
{
	switch (_IOC_NR(request)) {
	case _IOC_NR(DRM_IOCTL_SYNCOBJ_WAIT):
		return offsetof(struct drm_syncobj_wait, count_handles);
	case _IOC_NR(DRM_IOCTL_SYNCOBJ_RESET):
	case _IOC_NR(DRM_IOCTL_SYNCOBJ_SIGNAL):
		return offsetof(struct drm_syncobj_array, count_handles);
	case _IOC_NR(DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT):
		return offsetof(struct drm_syncobj_timeline_wait, count_handles);
	case _IOC_NR(DRM_IOCTL_SYNCOBJ_QUERY):
	case _IOC_NR(DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL):
		return offsetof(struct drm_syncobj_timeline_array, count_handles);
	}
	return 0;
}

/*
 * Memory for all processes of the machine must be left; and the core of Linux 6.12 warns in the
 * log of an array of syncobjs that is too large, in drm_syncobj_array_find().
 */
static void keep_small(unsigned long request, uint8_t *arg)
{
	struct embeng_accel_bo_create *bo = (struct embeng_accel_bo_create *)arg;

	if (_IOC_NR(request) == DRM_COMMAND_BASE + DRM_EMBENG_BO_CREATE && bo->size < 1ull << 40)
		bo->size %= 8 << 20;
	if (syncobj_count_at(request))
		arg[syncobj_count_at(request) + 3] = arg[syncobj_count_at(request) + 2] = 0;
}

/* An ioctl's argument is smaller. */
#define ROOM (1u << 14)

/*
 * The argument of a thread's call, and a copy of what it was before. Both are far from all memory that
 * calls name. Where a fuzzed address is near the one that was meant, the kernel answers there, and that
 * must not look like a failed call that writes its argument.
 */
static _Thread_local struct {
	_Alignas(8) uint8_t own[ROOM];
	uint8_t before[ROOM];
} argument;

static size_t find_difference(const uint8_t *a, const uint8_t *b)
{
	size_t i = 0;

	while (a[i] == b[i])
		i++;
	return i;
}

int world_call(struct fuzz *f, struct file *file, unsigned long request, void *arg, size_t size)
{
	uint8_t *own = argument.own, *at = own;
	int fd = file->fd, error;

	memset(own, 0, ROOM);
	memcpy(own, arg, size);
	if (fuzz_rarely(f, 4))
		fuzz_edit(f, own, size, 2);
	if (fuzz_rarely(f, 24))
		request = change_request(f, request);
	if (fuzz_rarely(f, 64))
		fuzz_edit(f, own + size, 256, 1);
	if (fuzz_rarely(f, 24) && !syncobj_count_at(request))
		at = (uint8_t *)world_address(f);
	keep_small(request, own);
	memcpy(argument.before, own, ROOM);
	error = run(fd, request, at);
	if (error && is_ours(request)) {
		if (!in_contract(error))
			world_die("ioctl %#lx fails with errno %d", request, error);
		if (!may_write(request, error) && memcmp(own, argument.before, ROOM))
			world_die("ioctl %#lx fails with errno %d and writes byte %zu", request,
				  error, find_difference(own, argument.before));
	}
	memcpy(arg, own, size);
	return error || at == own ? -error : -EFAULT;
}
