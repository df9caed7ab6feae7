// SPDX-License-Identifier: MIT
/*
 * A 32-bit program on a 64-bit kernel: structures have one layout, so that its calls do what
 * they do elsewhere. Without a C library, so that none of 32 bits need be there to link.
 * usage: compat NODE; exits with the line of the check that failed, modulo 256, or 0.
 */
#include <asm/unistd_32.h>

#include "embeng_accel.h"
#include "embeng_barrier.h"

#define E2BIG 7
#define EFAULT 14
#define ENOENT 2
#define O_RDWR 2
#define PROT_READ_WRITE 3
#define MAP_SHARED 1

_Static_assert(sizeof(void *) == 4, "built with -m32");

static long call(long number, long a, const void *b, const void *c)
{
	long ret;

	__asm__ volatile("int $0x80" : "=a"(ret) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory");
	return ret;
}

__attribute__((noreturn)) static void end(long status)
{
	for (;;)
		call(__NR_exit, status, 0, 0);
}

#define CHECK(condition) \
	do { \
		if (!(condition)) \
			end(__LINE__ & 0xff); \
	} while (0)

static long ask(long fd, unsigned long request, void *arg)
{
	return call(__NR_ioctl, fd, (void *)request, arg);
}

static void *map(long fd, __u64 offset, __u32 size)
{
	const unsigned long args[6] = {0, size, PROT_READ_WRITE, MAP_SHARED, fd, offset};
	long at = call(__NR_mmap, (long)args, 0, 0);

	CHECK(offset >> 32 == 0 && (unsigned long)at < -4096ul);
	return (void *)at;
}

static __u64 pointer(const void *p)
{
	return (unsigned long)p;
}

static void check_query(long fd)
{
	struct embeng_caps caps;
	struct embeng_accel_query query = {
		.what = EMBENG_ACCEL_QUERY_CAPS, .size = sizeof(caps), .data = pointer(&caps)};
	struct {
		struct embeng_accel_query known;
		__u64 tail;
	} longer = {.known = query, .tail = 1};

	CHECK(!ask(fd, DRM_IOCTL_EMBENG_QUERY, &query));
	CHECK(query.size == sizeof(caps) && caps.interface_major == EMBENG_INTERFACE_MAJOR);
	CHECK(ask(fd, DRM_IOWR(DRM_COMMAND_BASE + DRM_EMBENG_QUERY, longer), &longer) == -E2BIG);
	query.data = 8;
	CHECK(ask(fd, DRM_IOCTL_EMBENG_QUERY, &query) == -EFAULT);
	/* Beyond what a pointer of 32 bits holds: not cut down to one that is there. */
	query.data = pointer(&caps) | 1ull << 40;
	CHECK(ask(fd, DRM_IOCTL_EMBENG_QUERY, &query) == -EFAULT);
}

static void check_region(long fd)
{
	struct embeng_accel_bo_create bo = {.size = 3 * 4096 - 1};
	struct embeng_accel_bo_info info = {0};
	struct embeng_accel_bind bind = {.rights = EMBENG_REGION_DEVICE_READ};
	struct embeng_accel_unbind unbind;

	CHECK(!ask(fd, DRM_IOCTL_EMBENG_BO_CREATE, &bo));
	info.handle = bind.handle = bo.handle;
	CHECK(!ask(fd, DRM_IOCTL_EMBENG_BO_INFO, &info));
	CHECK(info.size == 3 * 4096 && info.offset == bo.offset);
	CHECK(!ask(fd, DRM_IOCTL_EMBENG_BIND, &bind));
	unbind = (struct embeng_accel_unbind){bind.index, bind.generation};
	CHECK(!ask(fd, DRM_IOCTL_EMBENG_UNBIND, &unbind));
	CHECK(ask(fd, DRM_IOCTL_EMBENG_UNBIND, &unbind) == -ENOENT);
}

static struct embeng_accel_queue_create make_queue(long fd, __u32 flags)
{
	struct embeng_accel_queue_create queue = {
		.kind = EMBENG_QUEUE_TRANSFER, .flags = flags, .sq_entries = 4, .cq_entries = 4};

	CHECK(!ask(fd, DRM_IOCTL_EMBENG_QUEUE_CREATE, &queue));
	return queue;
}

static void check_wait(long fd, __u32 queue)
{
	struct embeng_accel_wait wait = {.queue = queue, .count = 1, .deadline_ns = ~0ull >> 1};

	CHECK(!ask(fd, DRM_IOCTL_EMBENG_WAIT, &wait));
	CHECK(wait.cq_tail == 1);
}

static void check_validated(long fd)
{
	struct embeng_accel_queue_create queue = make_queue(fd, 0);
	struct embeng_accel_queue_destroy destroy = {.queue = queue.queue};
	const struct embeng_cmd nop = {.opcode = EMBENG_OP_NOP, .cookie = 1ull << 60};
	struct embeng_accel_submit submit = {
		.queue = queue.queue, .count = 1, .stride = sizeof(nop), .commands = pointer(&nop)};

	CHECK(!ask(fd, DRM_IOCTL_EMBENG_SUBMIT, &submit));
	check_wait(fd, queue.queue);
	CHECK(!ask(fd, DRM_IOCTL_EMBENG_QUEUE_DESTROY, &destroy));
}

static void check_mapped(long fd)
{
	struct embeng_accel_queue_create queue = make_queue(fd, EMBENG_ACCEL_QUEUE_MAPPED);
	char *ring = map(fd, queue.ring, queue.layout.size);
	struct embeng_doorbell *doorbell = map(fd, queue.doorbell, sizeof(*doorbell));
	const struct embeng_cqe *cqe = (void *)(ring + queue.layout.cq);

	*(struct embeng_cmd *)(void *)(ring + queue.layout.sq) = (struct embeng_cmd){
		.opcode = EMBENG_OP_NOP, .cookie = 1ull << 60 | 5};
	EMBENG_STORE_RELEASE(&doorbell->armed, 1);
	embeng_doorbell_tail(&doorbell->sq_tail, 1);
	check_wait(fd, queue.queue);
	CHECK(cqe->cookie == (1ull << 60 | 5));
}

__attribute__((used)) static void run(const long *stack)
{
	struct embeng_accel_context_create context = {0};
	long fd = call(__NR_open, stack[2], (void *)O_RDWR, 0);

	CHECK(stack[0] == 2 && fd >= 0);
	check_query(fd);
	CHECK(!ask(fd, DRM_IOCTL_EMBENG_CONTEXT_CREATE, &context));
	check_region(fd);
	check_validated(fd);
	check_mapped(fd);
	end(0);
}

__asm__(".globl _start\n_start:\n\tmov %esp, %eax\n\tand $-16, %esp\n\tsub $12, %esp\n"
	"\tpush %eax\n\tcall run\n");
