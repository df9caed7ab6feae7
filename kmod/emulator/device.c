// SPDX-License-Identifier: GPL-2.0-only
/*
 * An emulated device as a whole: the order in which its parts are made and removed. A platform
 * device is the parent of the host bridge; window, config space, interrupts, engine thread and
 * bridge follow, because the function must answer before the kernel sees it.
 *
 * emu_create() and emu_destroy() hold `creation`, so that no two devices choose the same PCI
 * domain. The creator owns the device: main.c for those of the module's parameters, a folder of
 * configfs.c for the others.
 */
#include <linux/cleanup.h>
#include <linux/idr.h>
#include <linux/slab.h>

#include "emu.h"

static DEFINE_IDA(numbers);
static DEFINE_MUTEX(creation); /* keeps two devices from choosing one PCI domain */

static int check_limit(const char *what, u32 value, u32 least, u32 most)
{
	if (value >= least && value <= most)
		return 0;
	pr_err(EMU_NAME ": %s=%u is not between %u and %u\n", what, value, least, most);
	return -EINVAL;
}

int emu_options_check(const struct emu_options *options)
{
	if (options->record > EMU_RECORD_MAX) {
		pr_err(EMU_NAME ": record=%llu is more than %llu\n", options->record,
		       EMU_RECORD_MAX);
		return -EINVAL;
	}
	if (!options->memory) {
		pr_err(EMU_NAME ": memory=0 leaves no room for tables\n");
		return -EINVAL;
	}
	return check_limit("cores", options->cores, 1, EMU_CORES_MAX) ?:
	       check_limit("queues", options->queues, 2, EMU_QUEUES_MAX) ?:
	       check_limit("vectors", options->vectors, 1, EMU_VECTORS_MAX);
}

static int power_up_device(struct emu *emu)
{
	int ret = emu_window_claim(emu);

	if (ret)
		return ret;
	emu_config_init(emu);
	ret = emu_msix_init(emu);
	if (ret)
		goto release_window;
	ret = emu_serve_start(emu);
	if (ret)
		goto exit_msix;
	ret = emu_bridge_add(emu);
	if (ret)
		goto stop;
	emu_bus_error_add(emu);
	return 0;
stop:
	emu_serve_stop(emu);
exit_msix:
	emu_msix_exit(emu);
release_window:
	emu_window_release(emu);
	return ret;
}

static int register_platform(struct emu *emu)
{
	emu->platform = platform_device_register_simple(EMU_NAME, emu->number, NULL, 0);
	return PTR_ERR_OR_ZERO(emu->platform);
}

/**
 * emu_create() - make a device with a PCI function
 * @options: options that emu_options_check() has accepted
 *
 * Return: the device or an ERR_PTR().
 */
struct emu *emu_create(const struct emu_options *options)
{
	struct emu *emu __free(kvfree) = kvzalloc(sizeof(*emu), GFP_KERNEL);
	int number, ret;

	if (!emu)
		return ERR_PTR(-ENOMEM);
	guard(mutex)(&creation);
	number = ida_alloc(&numbers, GFP_KERNEL);
	if (number < 0)
		return ERR_PTR(number);
	emu->number = number;
	emu->options = *options;
	xa_init_flags(&emu->pages, XA_FLAGS_LOCK_IRQ);
	ret = emu_record_init(emu);
	if (ret)
		goto free_number;
	emu_debugfs_add(emu);
	ret = register_platform(emu);
	if (ret)
		goto remove_debugfs;
	ret = power_up_device(emu);
	if (ret)
		goto unregister;
	return no_free_ptr(emu);
unregister:
	platform_device_unregister(emu->platform);
remove_debugfs:
	emu_debugfs_remove(emu);
	emu_record_exit(emu);
free_number:
	ida_free(&numbers, number);
	return ERR_PTR(ret);
}

void emu_destroy(struct emu *emu)
{
	guard(mutex)(&creation);
	emu_bus_error_remove(emu);
	emu_bridge_remove(emu);
	emu_debugfs_remove(emu);
	emu_serve_stop(emu);
	emu_msix_exit(emu);
	emu_window_release(emu);
	platform_device_unregister(emu->platform);
	ida_free(&numbers, emu->number);
	emu_record_exit(emu);
	xa_destroy(&emu->pages);
	kvfree(emu);
}
