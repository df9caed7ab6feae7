/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * embeng: the firmware image.
 *
 * Unstable until the driver has lived on it.
 *
 * DOC: Layout
 *
 *   struct embeng_fw_header
 *   struct embeng_fw_section [section_count]
 *   the sections, in table order, each at a multiple of EMBENG_FW_ALIGN, filled
 *   up with zeros to the next (the last one too), no other gap, no overlap
 *
 * Sizes and offsets are 64-bit little-endian. The header says how long the whole
 * image is; bytes beyond that belong to nobody and are refused. A detached
 * Ed25519 signature covers header and section table, which hold the SHA-256 of
 * every section, so it covers all. Tools check it, and a hardware ROM would; the
 * device model checks structure, hashes, versions and rollback, and says
 * EMBENG_CAP_SIGNATURE_UNCHECKED.
 *
 * A device refuses an image as a whole, with an &enum embeng_boot_error and the
 * byte at fault, and is then as it was before, without firmware.
 */
#ifndef _EMBENG_FIRMWARE_H_
#define _EMBENG_FIRMWARE_H_

#include <linux/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EMBENG_FW_MAGIC 0x57464245u /* "EBFW" */
#define EMBENG_FW_FORMAT 1u
#define EMBENG_FW_ALIGN 64u
#define EMBENG_FW_SECTIONS_MAX 64u
#define EMBENG_FW_LENGTH_MAX (16ull << 20)

/**
 * struct embeng_fw_header - start of an image, 128 bytes
 * @magic: EMBENG_FW_MAGIC
 * @format: EMBENG_FW_FORMAT
 * @interface_major: EMBENG_INTERFACE_MAJOR it was made for
 * @interface_minor: lowest minor it needs
 * @version: major << 48 | minor << 32 | patch << 16 | build, grows
 * @length: bytes of the whole image
 * @section_count: 1 .. EMBENG_FW_SECTIONS_MAX
 * @section_stride: bytes of a table entry, at least sizeof(struct embeng_fw_section)
 * @build_id: identifies the build, any bytes
 * @reserved: 0
 */
struct embeng_fw_header {
	__u32 magic;
	__u32 format;
	__u32 interface_major;
	__u32 interface_minor;
	__u64 version;
	__u64 length;
	__u32 section_count;
	__u32 section_stride;
	__u8 build_id[32];
	__u8 reserved[56];
};

enum embeng_fw_section_type {
	EMBENG_FW_PARAMETERS = 1, /* &struct embeng_fw_parameters, once, mandatory */
	EMBENG_FW_SELF_TEST = 2,  /* vectors that the device runs at boot */
	EMBENG_FW_STRINGS = 3,	  /* zero-ended UTF-8 strings, for people */
	EMBENG_FW_PROGRAMS = 4,	  /* optimizer programs */
};

#define EMBENG_FW_SECTION_MANDATORY (1u << 0)

/**
 * struct embeng_fw_section - entry of the section table, 64 bytes
 * @type: enum embeng_fw_section_type
 * @flags: EMBENG_FW_SECTION_MANDATORY: who does not know the type refuses the
 *	image
 * @offset: from the start of the image, a multiple of EMBENG_FW_ALIGN
 * @length: bytes, without the filling
 * @reserved: 0
 * @sha256: of those bytes
 */
struct embeng_fw_section {
	__u32 type;
	__u32 flags;
	__u64 offset;
	__u64 length;
	__u64 reserved;
	__u8 sha256[32];
};

/**
 * struct embeng_fw_parameters - boot parameters, they change behaviour
 * @step_depth: training steps ahead, 4 .. 64
 * @contexts: contexts at once, 1 .. 256
 * @queues: queues, 2 .. 1024
 * @regions: entries of a region table, 16 .. 65536
 * @features: capability bits that the image switches on; the device takes those
 *	it can do
 * @inline_bytes: work below this is done by the thread that fetched it
 * @minimum_version: from now on the device refuses images below this
 * @heartbeat_ms: how often HEARTBEAT grows when idle, 1 .. 10000
 * @reserved: 0
 */
struct embeng_fw_parameters {
	__u32 step_depth;
	__u32 contexts;
	__u32 queues;
	__u32 regions;
	__u32 features;
	__u32 inline_bytes;
	__u64 minimum_version;
	__u32 heartbeat_ms;
	__u32 reserved[7];
};

#ifdef __cplusplus
}
#define EMBENG_FW_ASSERT(cond) static_assert(cond, #cond)
#else
#define EMBENG_FW_ASSERT(cond) _Static_assert(cond, #cond)
#endif

EMBENG_FW_ASSERT(sizeof(struct embeng_fw_header) == 128);
EMBENG_FW_ASSERT(__builtin_offsetof(struct embeng_fw_header, version) == 16);
EMBENG_FW_ASSERT(__builtin_offsetof(struct embeng_fw_header, length) == 24);
EMBENG_FW_ASSERT(__builtin_offsetof(struct embeng_fw_header, build_id) == 40);
EMBENG_FW_ASSERT(sizeof(struct embeng_fw_section) == 64);
EMBENG_FW_ASSERT(__builtin_offsetof(struct embeng_fw_section, offset) == 8);
EMBENG_FW_ASSERT(__builtin_offsetof(struct embeng_fw_section, sha256) == 32);
EMBENG_FW_ASSERT(sizeof(struct embeng_fw_parameters) == 64);
EMBENG_FW_ASSERT(__builtin_offsetof(struct embeng_fw_parameters, minimum_version) == 24);

#endif
