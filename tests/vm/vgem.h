/* SPDX-License-Identifier: MIT */
/* Copied from the header of another driver, vgem, which not every system has. */
#ifndef EMBENG_TESTS_VM_VGEM_H
#define EMBENG_TESTS_VM_VGEM_H

#include <drm.h>
#include <stdint.h>

struct vgem_fence_attach {
	uint32_t handle, flags, out_fence, pad;
};
struct vgem_fence_signal {
	uint32_t fence, flags;
};
#define VGEM_FENCE_ATTACH DRM_IOWR(DRM_COMMAND_BASE + 1, struct vgem_fence_attach)
#define VGEM_FENCE_SIGNAL DRM_IOW(DRM_COMMAND_BASE + 2, struct vgem_fence_signal)
#define VGEM_FENCE_WRITE 1u

#endif
