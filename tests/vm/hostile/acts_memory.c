// SPDX-License-Identifier: MIT
/* The calls of a fuzzed program about files, mappings and processes. */
#define _GNU_SOURCE /* mremap, mlock2 */
#include "acts.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* The threads race for it: who replaces a descriptor closes it. */
static void replace(struct file *file, int fd)
{
	int old = atomic_exchange(&file->fd, fd);

	if (old >= 0)
		close(old);
}

void act_open(struct fuzz *f)
{
	struct file *file = world_file(f);

	if (file->fd < 0 || fuzz_rarely(f, 16))
		replace(file, world_open());
}

void act_close(struct fuzz *f)
{
	struct file *file = world_file(f);

	if (fuzz_rarely(f, 4))
		replace(file, -1);
}

static int send_fd(int to, int fd)
{
	char byte = 0, space[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec data = {&byte, 1};
	struct msghdr message = {.msg_iov = &data,
				 .msg_iovlen = 1,
				 .msg_control = space,
				 .msg_controllen = sizeof(space)};
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(head), &fd, sizeof(int));
	return sendmsg(to, &message, MSG_DONTWAIT) == 1 ? 0 : -1;
}

static int receive_fd(int from)
{
	char byte, space[CMSG_SPACE(sizeof(int))];
	struct iovec data = {&byte, 1};
	struct msghdr message = {.msg_iov = &data,
				 .msg_iovlen = 1,
				 .msg_control = space,
				 .msg_controllen = sizeof(space)};
	struct cmsghdr *head;
	int fd = -1;

	if (recvmsg(from, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != 1)
		return -1;
	head = CMSG_FIRSTHDR(&message);
	if (head && head->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(head), sizeof(int));
	return fd;
}

/* A descriptor goes through a socket, or stays in it when that is closed. */
void act_pass(struct fuzz *f)
{
	struct file *from = world_file(f), *to = world_file(f);
	int pair[2], fd = from->fd;

	if (fd < 0)
		return;
	if (fuzz_rarely(f, 2)) {
		replace(to, dup(fd));
		return;
	}
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair))
		return;
	if (!send_fd(pair[0], fd) && !fuzz_rarely(f, 4)) {
		fd = receive_fd(pair[1]);
		if (fd >= 0)
			replace(to, fd);
	}
	close(pair[0]);
	close(pair[1]);
}

/* The child has the files, not the mappings; it goes on alone with what is left to do. */
void act_fork(struct fuzz *f)
{
	static struct noted alone;

	if (!fuzz_rarely(f, 8) || fork())
		return;
	actor.noted = &alone;
	acts_forget();
	acts_run(f);
	_exit(0);
}

static int descriptor(struct fuzz *f, uint64_t *offset)
{
	struct file *file = world_file(f);

	if (fuzz_rarely(f, 8)) {
		*offset = fuzz_near(f, 0) & ~4095ull;
		return (int)held_any(&world_primes, f);
	}
	*offset = held_any(&file->things[THING_OFFSET], f);
	return file->fd;
}

/* No hole stays where somebody else's memory could come to be. */
static void fill(uint8_t *at, size_t length)
{
	mmap(at, length, PROT_READ | PROT_WRITE,
	     MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

/* Into a slot. */
void act_map(struct fuzz *f)
{
	static const int protections[] = {PROT_READ | PROT_WRITE, PROT_READ, PROT_WRITE, PROT_NONE,
					  PROT_READ | PROT_EXEC};
	static const size_t lengths[] = {4096, 8192, 65536, WORLD_SLOT};
	uint8_t *slot = world_slot(f);
	size_t length = lengths[fuzz_below(f, 4)];
	int protection = protections[fuzz_rarely(f, 4) ? fuzz_below(f, 5) : fuzz_below(f, 2)];
	int kind = fuzz_rarely(f, 8) ? MAP_PRIVATE : MAP_SHARED;
	uint64_t offset;
	int fd = descriptor(f, &offset);

	if (fuzz_rarely(f, 8))
		mmap(slot, WORLD_SLOT, protection,
		     MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	else
		mmap(slot, length, protection,
		     MAP_FIXED | kind | (fuzz_rarely(f, 8) ? MAP_POPULATE : 0), fd, (off_t)offset);
}

void act_remap(struct fuzz *f)
{
	static const int advice[] = {MADV_DONTNEED, MADV_WILLNEED,	MADV_DOFORK,
				     MADV_DONTFORK, MADV_REMOVE,	MADV_FREE,
				     MADV_HUGEPAGE, MADV_MERGEABLE,	MADV_COLD,
				     MADV_PAGEOUT,  MADV_POPULATE_READ, MADV_POPULATE_WRITE};
	uint8_t *slot = world_slot(f), *to = world_slot(f);
	size_t length = (size_t)4096 << fuzz_below(f, 6);

	switch (fuzz_below(f, 5)) {
	case 0:
		madvise(slot, length, advice[fuzz_below(f, 12)]);
		break;
	case 1:
		mprotect(slot, length, (int)fuzz_below(f, 8));
		break;
	case 2:
		if (to == slot)
			mremap(slot, length, 4096, 0), fill(slot, WORLD_SLOT);
		else
			mremap(slot, 4096, length, 0);
		break;
	case 3:
		if (mremap(slot, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, to) != MAP_FAILED)
			fill(slot, length);
		break;
	case 4:
		if (fuzz_below(f, 2))
			mlock2(slot, length, MLOCK_ONFAULT);
		else
			munlock(slot, length);
		break;
	}
}

void act_touch(struct fuzz *f)
{
	uint8_t *slot = world_slot(f);
	uint32_t count = 1 + fuzz_below(f, 8);

	for (uint32_t i = 0; i < count; i++) {
		uint64_t page = fuzz_rarely(f, 2) ? fuzz_below(f, 16) * 4096 : 0;

		world_touch(f, (uint32_t *)(slot + page + fuzz_below(f, 64) * 4));
	}
}

void act_share(struct fuzz *f)
{
	struct file *file = world_file(f);
	struct drm_prime_handle arg = {
		.handle = (uint32_t)held_any(&file->things[THING_HANDLE], f),
		.flags = DRM_CLOEXEC | (fuzz_below(f, 2) ? DRM_RDWR : 0),
	};

	if (!CALL(f, file, PRIME_HANDLE_TO_FD, &arg))
		held_add(&world_primes, (uint64_t)arg.fd);
	if (world_primes.count > WORLD_HELD)
		close((int)atomic_exchange(&world_primes.values[fuzz_below(f, WORLD_HELD)],
					   (uint64_t)-1));
}

void act_import(struct fuzz *f)
{
	struct file *file = world_file(f);
	struct drm_prime_handle arg = {.fd = (int)held_any(&world_primes, f)};

	if (!CALL(f, file, PRIME_FD_TO_HANDLE, &arg))
		held_add(&file->things[THING_HANDLE], arg.handle);
}

/* poll(), read() and what /proc tells of a descriptor. */
void act_look(struct fuzz *f)
{
	struct file *file = world_file(f);
	struct pollfd entry = {file->fd, (short)fuzz_take(f, 2), 0};
	char path[64];
	int fd;

	switch (fuzz_below(f, 4)) {
	case 0:
	case 1:
		poll(&entry, 1, (int)fuzz_below(f, 3));
		break;
	case 2:
		fd = file->fd;
		/* A dma-buf or socket in its place would not be waited for either. */
		if (fcntl(fd, F_SETFL, O_NONBLOCK) || read(fd, actor.area, 4096) > 0 ||
		    lseek(fd, 1, SEEK_SET) > 0)
			return;
		break;
	case 3:
		snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", file->fd);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return;
		while (read(fd, actor.area, 4096) > 0)
			;
		close(fd);
		break;
	}
}
