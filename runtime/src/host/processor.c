// SPDX-License-Identifier: MIT
/*
 * Tells the processor's name and the sizes of its caches. It is apart because the library and the
 * command both compile it: the one to choose a plan of fetching ahead, the other to write down what
 * it was measured on.
 *
 * On x86-64 the sizes come from the processor, which takes a third of the time that sysfs takes,
 * and from sysfs elsewhere. sysconf() is no source: in a virtual machine it multiplies the third
 * cache by the processors of the host. Nothing is kept; any thread may call.
 */
#include "processor.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __x86_64__
#include <cpuid.h>
#endif

#define CPU_FOLDER "/sys/devices/system/cpu/cpu0"
#define CACHES_MOST 16

/* The first line of a small file; false if there is none. */
static bool read_line(const char *path, char *line, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, line, size - 1);

	if (fd >= 0)
		close(fd);
	if (length <= 0)
		return false;
	line[length] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return true;
}

static bool read_property(const char *folder, unsigned int index, const char *name, char *line,
			  size_t size)
{
	char path[256];
	int length = snprintf(path, sizeof(path), "%s/index%u/%s", folder, index, name);

	return length < (int)sizeof(path) && read_line(path, line, size);
}

/* "48K" or "32M"; 0 for anything else. */
static u64 parse_size(const char *text)
{
	char *end;
	unsigned long long number = strtoull(text, &end, 10);

	if (number > 1u << 20 || (strcmp(end, "K") && strcmp(end, "M")))
		return 0;
	return number << (*end == 'K' ? 10 : 20);
}

static void set_size(u64 *to, u64 bytes)
{
	if (bytes)
		*to = bytes;
}

void processor_caches(const char *folder, struct fetch_machine *out)
{
	char level[16], type[16], size[16];

	for (unsigned int i = 0; i < CACHES_MOST; i++) {
		if (!read_property(folder, i, "level", level, sizeof(level)) ||
		    !read_property(folder, i, "type", type, sizeof(type)) ||
		    !read_property(folder, i, "size", size, sizeof(size)))
			return;
		if (!strcmp(type, "Instruction"))
			continue;
		if (!strcmp(level, "1"))
			set_size(&out->first_bytes, parse_size(size));
		else if (!strcmp(level, "2"))
			set_size(&out->second_bytes, parse_size(size));
		else if (!strcmp(level, "3"))
			set_size(&out->third_bytes, parse_size(size));
	}
}

#ifdef __x86_64__

static enum fetch_vendor ask_vendor(void)
{
	unsigned int leaves, words[3];
	char vendor[13] = "";

	__cpuid(0, leaves, words[0], words[2], words[1]);
	memcpy(vendor, words, 12);
	if (!strcmp(vendor, "AuthenticAMD") || !strcmp(vendor, "HygonGenuine"))
		return FETCH_VENDOR_AMD;
	return strcmp(vendor, "GenuineIntel") ? FETCH_VENDOR_OTHER : FETCH_VENDOR_INTEL;
}

#define LEAF_CACHES 4u
#define LEAF_CACHES_AMD 0x8000001du
#define TYPE_INSTRUCTION 2u

/* One cache of a leaf in which processors describe theirs; false behind the last. */
static bool take_cache(unsigned int leaf, unsigned int index, struct fetch_machine *out)
{
	unsigned int eax, ebx, ecx, edx;
	u64 bytes;

	__cpuid_count(leaf, index, eax, ebx, ecx, edx);
	if (!(eax & 31))
		return false;
	/* ways, partitions, bytes of a line, sets; each is one less than it is */
	bytes = ((ebx >> 22) + 1ull) * ((ebx >> 12 & 1023) + 1) * ((ebx & 4095) + 1) * (ecx + 1ull);
	if ((eax & 31) == TYPE_INSTRUCTION)
		return true;
	if ((eax >> 5 & 7) == 1)
		out->first_bytes = bytes;
	else if ((eax >> 5 & 7) == 2)
		out->second_bytes = bytes;
	else if ((eax >> 5 & 7) == 3)
		out->third_bytes = bytes;
	return true;
}

static void ask_caches(struct fetch_machine *out)
{
	const unsigned int leaf = out->vendor == FETCH_VENDOR_AMD ? LEAF_CACHES_AMD : LEAF_CACHES;
	unsigned int most, ebx, ecx, edx;

	__cpuid(leaf & 1u << 31, most, ebx, ecx, edx);
	for (unsigned int i = 0; most >= leaf && i < CACHES_MOST; i++)
		if (!take_cache(leaf, i, out))
			break;
	if (!out->second_bytes)
		processor_caches(CPU_FOLDER "/cache", out);
}

void processor_brand(char brand[PROCESSOR_BRAND])
{
	unsigned int words[12] = {0}, *w = words;
	char text[49] = "", *from = text;

	for (unsigned int leaf = 0x80000002; leaf <= 0x80000004; leaf++, w += 4) {
		if (!__get_cpuid(leaf, &w[0], &w[1], &w[2], &w[3]))
			break;
	}
	memcpy(text, words, 48);
	from += strspn(text, " ");
	snprintf(brand, PROCESSOR_BRAND, "%s", from);
	for (size_t end = strlen(brand); end && brand[end - 1] == ' '; end--)
		brand[end - 1] = '\0';
}

/* Family, model and stepping, which tell apart what a virtual machine gives one brand. */
static void describe_model(char *text, size_t size)
{
	unsigned int eax = 0, ebx, ecx, edx, family, model;

	__get_cpuid(1, &eax, &ebx, &ecx, &edx);
	family = eax >> 8 & 15;
	model = eax >> 4 & 15;
	if (family == 6 || family == 15)
		model |= eax >> 12 & 0xf0;
	if (family == 15)
		family += eax >> 20 & 0xff;
	snprintf(text, size, "family %u model %u stepping %u", family, model, eax & 15);
}

#else

static enum fetch_vendor ask_vendor(void)
{
	return FETCH_VENDOR_OTHER;
}

static void ask_caches(struct fetch_machine *out)
{
	processor_caches(CPU_FOLDER "/cache", out);
}

void processor_brand(char brand[PROCESSOR_BRAND])
{
	*brand = '\0';
}

static void describe_model(char *text, size_t size)
{
	char line[32];

	if (read_line(CPU_FOLDER "/regs/identification/midr_el1", line, sizeof(line)))
		snprintf(text, size, "MIDR %s", line);
	else
		snprintf(text, size, "an unknown model");
}

#endif

void processor_machine(struct fetch_machine *out)
{
	*out = (struct fetch_machine){.vendor = ask_vendor()};
	ask_caches(out);
}

void processor_name(char name[PROCESSOR_NAME])
{
	struct fetch_machine machine;
	char brand[PROCESSOR_BRAND], model[64];

	processor_machine(&machine);
	processor_brand(brand);
	describe_model(model, sizeof(model));
	snprintf(name, PROCESSOR_NAME, "%s%s%s, caches %llu KiB %llu KiB %llu KiB", brand,
		 *brand ? ", " : "", model, machine.first_bytes >> 10, machine.second_bytes >> 10,
		 machine.third_bytes >> 10);
}
