// SPDX-License-Identifier: GPL-2.0-only
/*
 * The PCI driver and the device node: what is called when a function is bound and let go of, and
 * the table of ioctls with the filter in front of it.
 *
 * The device structure belongs to the DRM core and outlives the driver's hold of the function,
 * because files may stay open longer. Letting go therefore goes in steps: the device is silenced,
 * the node is unplugged, calls that are inside are waited for (`users`, an SRCU), and only then is
 * memory freed that the device could reach. Each call that talks to the device or gives it memory
 * is inside `users` while it does (CLASS(embeng_use)), also while it sleeps, but not while memory
 * of the program is read, written or pinned, which may take for ever. No other lock is taken here.
 */
#include <linux/cleanup.h>
#include <linux/uaccess.h>

#include <drm/drm_accel.h>
#include <drm/drm_gem.h>
#include <drm/drm_ioctl.h>
#include <drm/drm_managed.h>

#include "compat/v6.12_oldest.h"
#include "compat/v6.14_driver_date.h"
#include "context.h"
#include "refusals.h"

#define IOCTL(name, fn) DRM_IOCTL_DEF_DRV(EMBENG_##name, fn, 0)

static const struct drm_ioctl_desc ioctls[] = {
	IOCTL(QUERY, embeng_query_ioctl),
	IOCTL(BO_CREATE, embeng_bo_create_ioctl),
	IOCTL(BO_INFO, embeng_bo_info_ioctl),
	IOCTL(USERPTR, embeng_userptr_ioctl),
	IOCTL(CONTEXT_CREATE, embeng_context_create_ioctl),
	IOCTL(BIND, embeng_region_bind_ioctl),
	IOCTL(UNBIND, embeng_region_unbind_ioctl),
	IOCTL(QUEUE_CREATE, embeng_queue_create_ioctl),
	IOCTL(QUEUE_DESTROY, embeng_queue_destroy_ioctl),
	IOCTL(SUBMIT, embeng_submit_ioctl),
	IOCTL(WAIT, embeng_wait_ioctl),
	IOCTL(MODEL_LOAD, embeng_model_load_ioctl),
	IOCTL(RESET, embeng_reset_ioctl),
};

/* Bytes beyond the structure that this kernel knows must be zero; the core would ignore them. */
static int check_ioctl_tail(unsigned int cmd, unsigned long arg)
{
	unsigned int nr = _IOC_NR(cmd) - DRM_COMMAND_BASE, known;
	int zero;

	if (nr >= ARRAY_SIZE(ioctls) || !ioctls[nr].func)
		return -ENOTTY;
	/* With another direction the core would skip the copy in or out. */
	if (_IOC_DIR(cmd) != _IOC_DIR(ioctls[nr].cmd))
		return -ENOTTY;
	known = _IOC_SIZE(ioctls[nr].cmd);
	if (_IOC_SIZE(cmd) <= known)
		return 0;
	zero = check_zeroed_user((void __user *)arg + known, _IOC_SIZE(cmd) - known);
	if (zero < 0)
		return zero;
	return zero ? 0 : -E2BIG;
}

/*
 * Ioctls of the core that are refused. GET_UNIQUE and GET_MAGIC want a master, which accel files do
 * not have, and would oops. FLINK and OPEN pass any buffer on, even a program's own pages, by a
 * number that is easily guessed.
 */
static bool is_refused_ioctl(unsigned int nr)
{
	return nr == _IOC_NR(DRM_IOCTL_GET_UNIQUE) || nr == _IOC_NR(DRM_IOCTL_GET_MAGIC) ||
	       nr == _IOC_NR(DRM_IOCTL_GEM_FLINK) || nr == _IOC_NR(DRM_IOCTL_GEM_OPEN);
}

static bool is_own_ioctl(unsigned int nr)
{
	return nr >= DRM_COMMAND_BASE && nr < DRM_COMMAND_END;
}

static int filter_ioctl(unsigned int cmd, unsigned long arg)
{
	unsigned int nr = _IOC_NR(cmd);

	if (_IOC_TYPE(cmd) != DRM_IOCTL_BASE)
		return -ENOTTY;
	if (is_refused_ioctl(nr))
		return -EOPNOTSUPP;
	return is_own_ioctl(nr) ? check_ioctl_tail(cmd, arg) : 0;
}

/* The core copies the structure of a call in and out, and calls the driver in between. */
static long embeng_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	return filter_ioctl(cmd, arg) ?: drm_ioctl(file, cmd, arg);
}

#ifdef CONFIG_COMPAT
static long embeng_compat_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	return filter_ioctl(cmd, arg) ?: drm_compat_ioctl(file, cmd, arg);
}
#else
#define embeng_compat_ioctl NULL
#endif

static const struct file_operations fops = {
	.owner = THIS_MODULE,
	.open = accel_open,
	.release = drm_release,
	.unlocked_ioctl = embeng_ioctl,
	.compat_ioctl = embeng_compat_ioctl,
	.poll = embeng_wait_poll,
	.llseek = noop_llseek,
	.mmap = embeng_mmap,
	.show_fdinfo = drm_show_fdinfo,
	.fop_flags = FOP_UNSIGNED_OFFSET,
};

static const struct drm_driver driver = {
	.driver_features = DRIVER_COMPUTE_ACCEL | DRIVER_GEM | DRIVER_SYNCOBJ |
			   DRIVER_SYNCOBJ_TIMELINE,
	.fops = &fops,
	.open = embeng_context_open,
	.postclose = embeng_context_close,
	.show_fdinfo = embeng_usage_show,
	.gem_prime_import = embeng_import,
	.gem_prime_import_sg_table = embeng_import_table,
	.ioctls = ioctls,
	.num_ioctls = ARRAY_SIZE(ioctls),
	.name = EMBENG_NAME,
	.desc = "embedding-table training engine",
	EMBENG_DRIVER_DATE("20261121")
	.major = EMBENG_ACCEL_MAJOR,
	.minor = EMBENG_ACCEL_MINOR,
};

static void free_lists(struct drm_device *drm, void *arg)
{
	struct embeng_device *ed = arg;

	xa_destroy(&ed->numbers);
	xa_destroy(&ed->queues);
	if (ed->work)
		destroy_workqueue(ed->work);
	cleanup_srcu_struct(&ed->users);
}

static int init_lists(struct embeng_device *ed)
{
	int ret;

	init_rwsem(&ed->reset_lock);
	embeng_watchdog_init(ed);
	embeng_recovery_init(ed);
	embeng_users_init(ed);
	INIT_LIST_HEAD(&ed->bos);
	INIT_LIST_HEAD(&ed->contexts);
	xa_init_flags(&ed->numbers, XA_FLAGS_ALLOC);
	xa_init_flags(&ed->queues, XA_FLAGS_ALLOC1);
	ret = init_srcu_struct(&ed->users) ?:
	      drmm_add_action_or_reset(&ed->drm, free_lists, ed) ?:
	      drmm_mutex_init(&ed->drm, &ed->bo_lock) ?:
	      drmm_mutex_init(&ed->drm, &ed->readings.lock) ?:
	      drmm_mutex_init(&ed->drm, &ed->contexts_lock);
	if (ret)
		return ret;
	/* Fences depend on this queue, hence MEM_RECLAIM. It stops while the system sleeps. */
	ed->work = alloc_workqueue("embeng-%s", WQ_UNBOUND | WQ_MEM_RECLAIM | WQ_FREEZABLE, 0,
				   dev_name(&ed->pci->dev));
	return ed->work ? 0 : -ENOMEM;
}

static int bring_up_device(struct embeng_device *ed)
{
	int ret = embeng_device_map(ed);

	if (ret)
		return ret;
	ret = embeng_import_init(ed);
	if (ret)
		return ret;
	ret = embeng_admin_init(ed);
	if (ret)
		return ret;
	ret = embeng_irq_init(ed);
	if (ret)
		return ret;
	ret = embeng_reset_save(ed);
	if (ret)
		return ret;
	ret = embeng_boot_request(ed);
	if (ret)
		return ret;
	return embeng_boot(ed);
}

static void let_go_of_device(struct embeng_device *ed)
{
	embeng_upload_exit(ed);
	/* The device is silenced first, so that the contents of rings can be kept for mappings. */
	embeng_reset_give_up(ed);
	drm_dev_unplug(&ed->drm);
	synchronize_srcu(&ed->users);
	embeng_watchdog_stop(ed);
	embeng_recovery_stop(ed);
	embeng_context_release_all(ed);
	embeng_bo_release_all(ed);
}

static int bind_device(struct pci_dev *pci)
{
	struct embeng_device *ed;
	int ret;

	ed = devm_drm_dev_alloc(&pci->dev, &driver, struct embeng_device, drm);
	if (IS_ERR(ed))
		return PTR_ERR(ed);
	ed->pci = pci;
	pci_set_drvdata(pci, ed);
	ret = init_lists(ed);
	if (!ret)
		ret = bring_up_device(ed);
	if (ret)
		return ret;
	embeng_debugfs_init(ed);
	ret = drm_dev_register(&ed->drm, 0);
	if (ret) {
		embeng_device_silence(ed);
		return ret;
	}
	ret = embeng_upload_init(ed);
	if (!ret)
		ret = embeng_hwmon_init(ed);
	if (ret) {
		let_go_of_device(ed);
		return ret;
	}
	drm_info(&ed->drm, "interface %u.%u, %llu MiB for tables\n", ed->caps.interface_major,
		 ed->caps.interface_minor, ed->caps.table_memory >> 20);
	return 0;
}

static int embeng_probe(struct pci_dev *pci, const struct pci_device_id *id)
{
	int ret = bind_device(pci);

	embeng_refusals_note(pci, ret);
	return ret;
}

static void embeng_remove(struct pci_dev *pci)
{
	struct embeng_device *ed = pci_get_drvdata(pci);

	let_go_of_device(ed);
}

static const struct pci_device_id ids[] = {
#define PCI_ID(name, id, words) { PCI_DEVICE(EMBENG_PCI_VENDOR, id) },
	EMBENG_PCI_DEVICE_TABLE(PCI_ID)
	{ }
};
MODULE_DEVICE_TABLE(pci, ids);

static struct pci_driver pci_driver = {
	.name = EMBENG_NAME,
	.id_table = ids,
	.probe = embeng_probe,
	.remove = embeng_remove,
	.err_handler = &embeng_error_handlers,
	.driver.pm = pm_sleep_ptr(&embeng_pm_ops),
	.groups = embeng_refusals_groups,
	.dev_groups = embeng_sysfs_groups,
};

static int __init embeng_init(void)
{
	int ret = embeng_keys_init();

	if (ret)
		return ret;
	ret = embeng_closing_init();
	if (ret)
		goto exit_keys;
	ret = pci_register_driver(&pci_driver);
	if (ret)
		goto exit_closing;
	return 0;
exit_closing:
	embeng_closing_exit();
exit_keys:
	embeng_keys_exit();
	return ret;
}
module_init(embeng_init);

static void __exit embeng_exit(void)
{
	pci_unregister_driver(&pci_driver);
	/* Contexts of files that were closed may still be ending. */
	embeng_closing_exit();
	embeng_keys_exit();
	/* The last fence may still wait for its grace period. */
	rcu_barrier();
}
module_exit(embeng_exit);

MODULE_DESCRIPTION("Embedding-table training engine");
MODULE_LICENSE("GPL");
