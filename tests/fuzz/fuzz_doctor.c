// SPDX-License-Identifier: MIT
/*
 * A recorded tree that `embeng doctor --root` examines. It begins as that of a machine without a
 * fault. The input is a list of changes, each a letter that names a file of the table below, what is
 * in it from now on, and a zero byte; a change without content removes the file. Whatever files say,
 * each check gives a verdict, and its words can be printed.
 *
 * The tree is a folder in memory, which is made once; a run puts back what it has changed.
 */
#define _GNU_SOURCE
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../runtime/cli/doctor/examine.h"
#include "fuzz.h"

#define DEVICE "/sys/bus/pci/devices/0000:01:00.0/"
#define ZEROS "0x0 0x0 0x0\n"

static const struct {
	const char *path, *content;
	bool link;
} files[] = {
	{"/proc/sys/kernel/osrelease", "6.12.9-amd64\n", false},
	{"/proc/sys/kernel/tainted", "12288\n", false},
	{"/proc/cmdline", "quiet\n", false},
	{"/proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 12000000 kB\n", false},
	{"/proc/self/status", "Uid:\t0\nCapEff:\t00\nCpus_allowed:\tff\n", false},
	{"/proc/self/limits", "Max locked memory unlimited unlimited bytes\n", false},
	{"/proc/self/cgroup", "0::/app\n", false},
	{"/proc/self/mountinfo",
	 "20 1 0:5 / /dev rw - devtmpfs udev rw\n21 1 0:20 / /cg rw - cgroup2 cgroup2 rw\n", false},
	{"/cg/app/memory.max", "max\n", false},
	{"/cg/app/memory.current", "0\n", false},
	{"/cg/app/cpu.max", "max 100000\n", false},
	{"/etc/group", "root:x:0:\nrender:x:106:\n", false},
	{"/etc/modprobe.d/a.conf", "blacklist nouveau\n", false},
	{"/boot/config-6.12.9-amd64", "# Linux\nCONFIG_DRM=m\nCONFIG_DRM_ACCEL=y\n", false},
	{"/lib/modules/6.12.9-amd64/modules.dep", "updates/embeng.ko: drm.ko\n", false},
	{"/lib/modules/6.12.9-amd64/updates/embeng.ko", "~Module signature appended~\n", false},
	{"/lib/modules/6.12.8-amd64/modules.dep", "", false},
	{"/var/lib/dkms/embeng/0.1.0/source", "", false},
	{"/var/lib/dkms/embeng/0.1.0/build/make.log", "", false},
	{"/lib/modules/6.12.9-amd64/build/Makefile", "", false},
	{"/lib/firmware/embeng/embeng.fw", "EBFW", false},
	{"/lib/firmware/embeng/recovery.fw", "EBFW", false},
	{"/sys/module/module/parameters/sig_enforce", "N\n", false},
	{"/sys/kernel/security/lockdown", "[none] integrity\n", false},
	{"/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n", false},
	{"/sys/kernel/iommu_groups/7/type", "DMA-FQ\n", false},
	{"/sys/kernel/iommu_groups/7/devices/0000:01:00.1", "", false},
	{"/sys/bus/pci/devices/0000:01:00.1/driver", "../pcieport", true},
	{"/sys/module/embeng/initstate", "live\n", false},
	{"/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "schedutil\n", false},
	{"/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", "acpi-cpufreq\n", false},
	{"/sys/bus/pci/drivers/embeng/refusals", "", false},
	{DEVICE "vendor", "0x0eb0\n", false},
	{DEVICE "device", "0x0001\n", false},
	{DEVICE "config", "\xb0\x0e\x01\x01", false},
	{DEVICE "resource",
	 "0x4000000000 0x4000000fff 0x140204\n" ZEROS "0x4100000000 0x4100000fff 0x140204\n" ZEROS
	 "0x4200000000 0x4200000fff 0x140204\n" ZEROS,
	 false},
	{DEVICE "power_state", "D0\n", false},
	{DEVICE "power/runtime_status", "active\n", false},
	{DEVICE "current_link_speed", "16.0 GT/s PCIe\n", false},
	{DEVICE "max_link_speed", "16.0 GT/s PCIe\n", false},
	{DEVICE "current_link_width", "16\n", false},
	{DEVICE "max_link_width", "16\n", false},
	{DEVICE "dma_mask_bits", "64\n", false},
	{DEVICE "driver_override", "(null)\n", false},
	{DEVICE "aer_dev_correctable", "TOTAL_ERR_COR 0\n", false},
	{DEVICE "aer_dev_fatal", "TOTAL_ERR_FATAL 0\n", false},
	{DEVICE "driver", "../drivers/embeng", true},
	{DEVICE "iommu_group", "../iommu_groups/7", true},
	{DEVICE "accel/accel0/dev", "261:0\n", false},
	{DEVICE "firmware_version", "0.1.0.0\n", false},
	{DEVICE "firmware_image", "embeng/embeng.fw\n", false},
	{DEVICE "firmware_refused", "none\n", false},
	{DEVICE "firmware_minimum", "0.1.0.0\n", false},
	{DEVICE "readings_age_ms", "0\n", false},
	{DEVICE "resets/wedged", "0\n", false},
	{DEVICE "resets/engines", "0\n", false},
	{DEVICE "devcoredump", "../devcd1", true},
	{DEVICE "counters/ecc_correctable", "0\n", false},
	{DEVICE "counters/ecc_uncorrectable", "0\n", false},
	{DEVICE "hwmon/hwmon0/temp1_input", "50000\n", false},
	{DEVICE "hwmon/hwmon0/temp1_crit", "100000\n", false},
	{"/dev/accel/accel0", "node 0660 owner 0 group 106 number 261:0 opens yes\n", false},
	{"/proc/self/uid_map", "0 0 4294967295\n", false},
	{"/proc/sys/kernel/modules_disabled", "0\n", false},
	{"/lib/modprobe.d/a.conf", "install embeng /bin/x \\\nembeng\n", false},
	{"/var/lib/dkms/embeng/0.1.0/6.12.9-amd64/x86_64/module/embeng.ko", "", false},
};

#define FILES (sizeof(files) / sizeof(files[0]))
/* The table's first file is '!' in an input, the others are the characters behind it. */
#define FIRST '!'

static char root[] = "/dev/shm/embeng-doctor-XXXXXX";

static int remove_path(const char *path, const struct stat *stat, int type, struct FTW *place)
{
	(void)stat;
	(void)type;
	(void)place;
	return remove(path);
}

static void remove_root(void)
{
	nftw(root, remove_path, 16, FTW_DEPTH | FTW_PHYS);
}

/* Puts a file into the tree; a link needs a target, and content that has one is cut. */
static void put_file(size_t file, const char *content, size_t length)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s%s", root, files[file].path);
	for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	unlink(path);
	if (files[file].link) {
		char target[64];

		snprintf(target, sizeof(target), "%.*s", (int)(length < 60 ? length : 60), content);
		fuzz_check(!symlink(target, path), "%s", path);
		return;
	}
	f = fopen(path, "we");
	fuzz_check(f && fwrite(content, 1, length, f) == length, "%s", path);
	fclose(f);
}

/* A folder goes with its last file: a driver that is not loaded has none. */
static void remove_file(size_t file)
{
	char path[256];

	snprintf(path, sizeof(path), "%s%s", root, files[file].path);
	unlink(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
}

static void make_root(void)
{
	static bool made;

	if (made)
		return;
	made = true;
	fuzz_check(mkdtemp(root), "no folder in /dev/shm");
	atexit(remove_root);
	for (size_t i = 0; i < FILES; i++)
		put_file(i, files[i].content, strlen(files[i].content));
}

static void check_text(const char *text)
{
	for (; *text; text++)
		fuzz_check((*text >= ' ' || *text == '\t') && *text < 0x7f, "'%s'", text);
}

static void check_results(const struct results *results)
{
	for (size_t i = 0; i < results->count; i++) {
		const struct finding *f = &results->list[i].finding;

		check_text(f->seen);
		check_text(f->why);
		check_text(f->fix);
		fuzz_check(*f->seen && *f->why, "%s", results->list[i].check->name);
		fuzz_check(f->verdict != VERDICT_PROBLEM || (f->exit_code > 0 && f->exit_code < 12),
			   "%s: %d", results->list[i].check->name, f->exit_code);
	}
}

/* Makes the changes. Return: those that were made, by file. */
static void change_tree(const uint8_t *data, size_t size, bool changed[FILES])
{
	while (size) {
		const uint8_t *end = memchr(data, 0, size);
		size_t length = end ? (size_t)(end - data) : size;
		size_t file = length ? (size_t)(data[0] - FIRST) % FILES : 0;

		if (length == 1)
			remove_file(file);
		else if (length)
			put_file(file, (const char *)data + 1, length - 1);
		if (length)
			changed[file] = true;
		data += length + (end != NULL);
		size -= length + (end != NULL);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool changed[FILES] = {false};
	struct results results;
	struct tree *tree;
	struct machine m;

	make_root();
	change_tree(data, size, changed);
	fuzz_check(!tree_open(root, &tree), "%s", root);
	fuzz_check(!machine_open(tree, NULL, &m), "%s", root);
	fuzz_check(!machine_examine(&m, &results), "%s", root);
	check_results(&results);
	results_free(&results);
	machine_close(&m);
	tree_close(tree);
	for (size_t i = 0; i < FILES; i++) {
		if (changed[i])
			put_file(i, files[i].content, strlen(files[i].content));
	}
	return 0;
}
