// SPDX-License-Identifier: MIT
/*
 * Drives the emulated function without its driver: maps its BARs through sysfs, boots it, and
 * submits commands to its rings.
 */
#define _GNU_SOURCE
#include "raw_function.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "builtin_image.h"
#include "embeng_barrier.h"

#define DEVICES "/sys/bus/pci/devices"
#define PATIENCE_S 60 /* only a hang gets there */
#define COMMAND 4
#define COMMAND_MEMORY_MASTER 6

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY), ret = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

static void path_of(const struct raw_function *b, const char *file, char path[static 128])
{
	snprintf(path, 128, DEVICES "/%s/%s", b->name, file);
}

int raw_sysfs(struct raw_function *b, const char *file, const char *text)
{
	char path[128];

	path_of(b, file, path);
	return write_file(path, text);
}

static bool find(char name[static 32])
{
	DIR *folder = opendir(DEVICES);
	struct dirent *entry;
	bool found = false;

	while (folder && !found && (entry = readdir(folder))) {
		found = !strncmp(entry->d_name, "0eb", 3);
		snprintf(name, 32, "%.31s", entry->d_name);
	}
	if (folder)
		closedir(folder);
	return found;
}

static volatile uint8_t *map_bar(struct raw_function *b, int bar, uint64_t bytes)
{
	char file[16], path[128];
	void *p;
	int fd;

	snprintf(file, sizeof(file), "resource%d", bar);
	path_of(b, file, path);
	fd = open(path, O_RDWR);
	ck_assert_msg(fd >= 0, "%s: %s", path, strerror(errno));
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert_msg(p != MAP_FAILED, "%s: %s", path, strerror(errno));
	close(fd);
	return p;
}

static uint64_t physical(const void *p)
{
	uint64_t entry = 0;
	int fd = open("/proc/self/pagemap", O_RDONLY);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pread(fd, &entry, 8, (off_t)((uintptr_t)p / 4096 * 8)), 8);
	close(fd);
	ck_assert(entry >> 63);
	return (entry & ((1ull << 55) - 1)) * 4096;
}

static void take_memory(struct raw_function *b)
{
	ck_assert_int_eq(write_file("/proc/sys/vm/nr_hugepages", "2"), 0);
	b->memory = mmap(NULL, RAW_MEMORY, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_POPULATE, -1, 0);
	ck_assert_msg(b->memory != MAP_FAILED, "no huge page: %s", strerror(errno));
	memset(b->memory, 0, RAW_MEMORY);
	b->address = physical(b->memory);
}

struct raw_function *raw_open(void)
{
	struct raw_function *b = calloc(1, sizeof(*b));

	ck_assert_ptr_nonnull(b);
	ck_assert_msg(find(b->name), "there is no function of ours");
	ck_assert_int_eq(raw_sysfs(b, "enable", "1"), 0);
	raw_config_write(b, COMMAND, 2, COMMAND_MEMORY_MASTER);
	b->registers = map_bar(b, EMBENG_BAR_REGISTERS, EMBENG_REGISTERS_SIZE);
	b->doorbells = map_bar(b, EMBENG_BAR_DOORBELLS, RAW_QUEUES * 4096);
	b->msix = map_bar(b, EMBENG_BAR_MSIX, 4096);
	take_memory(b);
	return b;
}

void raw_close(struct raw_function *b)
{
	munmap((void *)b->registers, EMBENG_REGISTERS_SIZE);
	munmap((void *)b->doorbells, RAW_QUEUES * 4096);
	munmap((void *)b->msix, 4096);
	raw_sysfs(b, "reset", "1"); /* it lets go of the memory first */
	munmap(b->memory, RAW_MEMORY);
	raw_sysfs(b, "enable", "0");
	free(b);
}

uint32_t raw_read32(struct raw_function *b, uint32_t reg)
{
	return __atomic_load_n((volatile uint32_t *)(b->registers + reg), __ATOMIC_ACQUIRE);
}

uint64_t raw_read64(struct raw_function *b, uint32_t reg)
{
	return __atomic_load_n((volatile uint64_t *)(b->registers + reg), __ATOMIC_ACQUIRE);
}

void raw_write32(struct raw_function *b, uint32_t reg, uint32_t value)
{
	__atomic_store_n((volatile uint32_t *)(b->registers + reg), value, __ATOMIC_RELEASE);
}

void raw_write64(struct raw_function *b, uint32_t reg, uint64_t value)
{
	__atomic_store_n((volatile uint64_t *)(b->registers + reg), value, __ATOMIC_RELEASE);
}

void *raw_alloc(struct raw_function *b, uint64_t bytes)
{
	void *p = b->memory + b->used;

	b->used += (bytes + 4095) / 4096 * 4096;
	ck_assert_uint_le(b->used, RAW_MEMORY);
	return memset(p, 0, bytes);
}

uint64_t raw_address(const struct raw_function *b, const void *p)
{
	return b->address + (uint64_t)((const uint8_t *)p - b->memory);
}

static time_t seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

void raw_await(struct raw_function *b, uint32_t reg, uint32_t value)
{
	time_t end = seconds() + PATIENCE_S;

	while (raw_read32(b, reg) != value)
		ck_assert_msg(seconds() < end, "register %#x is %#x, not %#x", reg,
			      raw_read32(b, reg), value);
}

static struct embeng_queue_layout layout(void)
{
	return embeng_ring_layout(RAW_ENTRIES, RAW_ENTRIES, 0);
}

static void open_queue(struct raw_function *b, uint32_t number)
{
	struct raw_queue *q = &b->queues[number];

	q->ring = raw_alloc(b, layout().size);
	q->doorbell = (struct embeng_doorbell *)(b->doorbells + number * 4096);
	q->sq_tail = q->cq_head = 0;
}

uint32_t raw_boot_from(struct raw_function *b, uint64_t address, uint64_t length)
{
	uint32_t sequence = raw_read32(b, EMBENG_REG_BOOT_SEQUENCE) + 1;

	open_queue(b, 0);
	raw_write64(b, EMBENG_REG_ADMIN_RING, raw_address(b, b->queues[0].ring));
	raw_write32(b, EMBENG_REG_ADMIN_SQ_ENTRIES, RAW_ENTRIES);
	raw_write32(b, EMBENG_REG_ADMIN_CQ_ENTRIES, RAW_ENTRIES);
	raw_write64(b, EMBENG_REG_BOOT_ADDRESS, address);
	raw_write64(b, EMBENG_REG_BOOT_LENGTH, length);
	raw_write32(b, EMBENG_REG_BOOT_SEQUENCE, sequence);
	raw_await(b, EMBENG_REG_BOOT_DONE, sequence);
	return raw_read32(b, EMBENG_REG_BOOT_STATE);
}

uint32_t raw_boot(struct raw_function *b)
{
	uint8_t *image = raw_alloc(b, sizeof(embeng_builtin_image));

	memcpy(image, embeng_builtin_image, sizeof(embeng_builtin_image));
	return raw_boot_from(b, raw_address(b, image), sizeof(embeng_builtin_image));
}

void raw_submit(struct raw_queue *q, const void *cmd)
{
	uint32_t slot = q->sq_tail % RAW_ENTRIES;

	memcpy(q->ring + layout().sq + slot * sizeof(struct embeng_cmd), cmd,
	       sizeof(struct embeng_cmd));
	embeng_doorbell_tail(&q->doorbell->sq_tail, ++q->sq_tail);
}

bool raw_reap(struct raw_queue *q, struct embeng_cqe *cqe)
{
	const struct embeng_ring_header *header = (struct embeng_ring_header *)q->ring;
	const struct embeng_cqe *completions = (struct embeng_cqe *)(q->ring + layout().cq);

	if (embeng_observe_cq_tail(&header->cq_tail) == q->cq_head)
		return false;
	*cqe = completions[q->cq_head % RAW_ENTRIES];
	embeng_doorbell_cq_head(&q->doorbell->cq_head, ++q->cq_head);
	return true;
}

struct embeng_cqe raw_call(struct raw_queue *q, const void *cmd)
{
	time_t end = seconds() + PATIENCE_S;
	struct embeng_cqe cqe;

	raw_submit(q, cmd);
	while (!raw_reap(q, &cqe))
		ck_assert_msg(seconds() < end, "no completion");
	return cqe;
}

struct embeng_cqe raw_admin(struct raw_function *b, struct embeng_admin_cmd cmd)
{
	return raw_call(&b->queues[0], &cmd);
}

static void bind_data(struct raw_function *b)
{
	struct embeng_segment *segment = raw_alloc(b, 4096);

	b->data = raw_alloc(b, RAW_DATA);
	segment->address = raw_address(b, b->data);
	segment->length = RAW_DATA;
	b->regions->rights = EMBENG_REGION_DEVICE_READ | EMBENG_REGION_DEVICE_WRITE;
	b->regions->length = RAW_DATA;
	b->regions->segments = raw_address(b, segment);
	b->regions->segment_count = 1;
	EMBENG_STORE_RELEASE(&b->regions->generation, 1);
}

static void make_queue(struct raw_function *b, uint32_t number, uint8_t kind)
{
	struct embeng_admin_cmd cmd = {
		.opcode = EMBENG_ADMIN_QUEUE_CREATE,
		.kind = kind,
		.queue = number,
		.sq_entries = RAW_ENTRIES,
		.cq_entries = RAW_ENTRIES,
	};

	open_queue(b, number);
	cmd.address = raw_address(b, b->queues[number].ring);
	ck_assert_uint_eq(raw_admin(b, cmd).status, EMBENG_STATUS_OK);
}

void raw_context(struct raw_function *b)
{
	struct embeng_admin_cmd context = {.opcode = EMBENG_ADMIN_CONTEXT_CREATE, .count = 1};

	b->regions = raw_alloc(b, 4096);
	bind_data(b);
	context.address = raw_address(b, b->regions);
	ck_assert_uint_eq(raw_admin(b, context).status, EMBENG_STATUS_OK);
	make_queue(b, 1, EMBENG_QUEUE_TRANSFER);
	make_queue(b, 2, EMBENG_QUEUE_INFERENCE);
}

static int open_config(struct raw_function *b)
{
	char path[128];
	int fd;

	path_of(b, "config", path);
	fd = open(path, O_RDWR);
	ck_assert_msg(fd >= 0, "%s: %s", path, strerror(errno));
	return fd;
}

uint32_t raw_config_read(struct raw_function *b, unsigned where, unsigned size)
{
	uint32_t value = 0;
	int fd = open_config(b);

	ck_assert_int_eq(pread(fd, &value, size, where), size);
	close(fd);
	return value;
}

void raw_config_write(struct raw_function *b, unsigned where, unsigned size, uint32_t value)
{
	int fd = open_config(b);

	ck_assert_int_eq(pwrite(fd, &value, size, where), size);
	close(fd);
}
