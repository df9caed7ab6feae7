/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * embeng: the firmware image.
 *
 * Unstable until the driver has lived on it.
 *
 * DOC: Layout
 *
 *   struct embeng_fw_header
 *   struct embeng_fw_section [section_count], section_stride bytes apart
 *   zeros up to a multiple of EMBENG_FW_ALIGN
 *   the sections, in table order, each at a multiple of EMBENG_FW_ALIGN, filled
 *   up with zeros to the next (the last one too), no other gap, no overlap
 *
 * Sizes and offsets are 64-bit, all numbers little-endian. The header says how long
 * the whole image is; bytes beyond that belong to nobody and are refused. So is a
 * second section of a type below, and a section whose content is not what its type
 * says. A type that a device does not know is refused with
 * EMBENG_FW_SECTION_MANDATORY and skipped without, as often as it occurs; place and
 * hash are checked all the same.
 *
 * A device refuses an image as a whole, with an &enum embeng_boot_error and the
 * byte at fault, and is then as it was before, without firmware.
 *
 * DOC: Signature
 *
 * Detached: a file of 64 bytes, the Ed25519 signature (RFC 8032, no prehash) of the
 * image's first bytes, header and section table:
 * sizeof(struct embeng_fw_header) + section_count * section_stride. The table holds
 * the SHA-256 of every section and what lies between is zero, so it covers all.
 * Tools check it, and a hardware ROM would; the device model checks structure,
 * hashes, versions and rollback, and says EMBENG_CAP_SIGNATURE_UNCHECKED.
 *
 * DOC: Rollback
 *
 * A device remembers the greatest minimum_version that it has run, over warm resets
 * too, and refuses images whose version is below it. An image whose own version is
 * below its minimum is refused, for it could not be booted again.
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
/* A device is given one address, and more in one piece is not what any kernel has. */
#define EMBENG_FW_LENGTH_MAX (4ull << 20)

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
 * @build_id: identifies the build, any bytes; tools show it as text when it is one
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
	EMBENG_FW_PARAMETERS = 1, /* &struct embeng_fw_parameters; must be there */
	EMBENG_FW_SELF_TEST = 2,  /* &struct embeng_fw_self_test, one after another, at least one */
	EMBENG_FW_STRINGS = 3,	  /* "NAME=VALUE", UTF-8, each ended by a zero; for people */
	EMBENG_FW_PROGRAMS = 4,	  /* optimizer programs; not known to any device yet */
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
 * EMBENG_FW_PARAMETER_TABLE - every boot parameter
 *
 * X(name, bytes, lowest, highest, words), in the order of
 * &struct embeng_fw_parameters; a value outside its limits is refused.
 */
#define EMBENG_FW_PARAMETER_TABLE(X)                                                      \
	X(step_depth, 4, 4, 64, "training steps ahead")                                   \
	X(contexts, 4, 1, 256, "contexts at once")                                        \
	X(queues, 4, 2, 1024, "queues, the admin queue too; a device may have fewer")     \
	X(regions, 4, 16, 65536, "entries of a region table")                             \
	X(features, 4, 0, 0xffffffff, "capability bits, of which it takes those it can do") \
	X(inline_bytes, 4, 0, 0xffffffff, "smaller work is done by the core that fetched it") \
	X(minimum_version, 8, 0, 0xffffffffffffffff, "from now on, refuse images below")  \
	X(heartbeat_ms, 4, 1, 10000, "how often HEARTBEAT grows when idle")

/**
 * struct embeng_fw_parameters - boot parameters, they change behaviour
 * @step_depth: training steps ahead
 * @contexts: contexts at once
 * @queues: most queues, the admin queue too
 * @regions: entries of a region table
 * @features: capability bits (EMBENG_CAP_*) that the image switches on; the device takes
 *	those it can do
 * @inline_bytes: work on fewer bytes is done by the core that fetched it
 * @minimum_version: from now on the device refuses images below this
 * @heartbeat_ms: how often HEARTBEAT grows when idle
 * @reserved: 0
 *
 * A longer section is taken, what follows these is ignored.
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

/* Limits of a self-test: a device may run each of its rows and samples in one go. */
#define EMBENG_FW_TEST_VALUES_MAX 8192u

#define EMBENG_FW_TEST_WEIGHTS (1u << 0) /* ids have weights, else each counts 1 */

enum embeng_fw_test_kind {
	EMBENG_FW_TEST_STEP = 1, /* one training step on one table: lookup, then update */
};

/**
 * enum embeng_fw_test_array - the arrays of a self-test, 4-byte words, in this order
 * @EMBENG_FW_TEST_OFFSETS: u32 [samples + 1]; ids of sample s are [offset[s], offset[s + 1])
 * @EMBENG_FW_TEST_IDS: u32 [ids], rows of the table
 * @EMBENG_FW_TEST_WEIGHT: f32 [ids]; not there without EMBENG_FW_TEST_WEIGHTS
 * @EMBENG_FW_TEST_TABLE: f32 [rows][dim], before the step
 * @EMBENG_FW_TEST_SLOTS: f32 [slot_count][rows][dim], before the step
 * @EMBENG_FW_TEST_GRADIENTS: f32 [samples][dim]
 * @EMBENG_FW_TEST_ACTIVATIONS: f32 [samples][dim], what the lookup must give
 * @EMBENG_FW_TEST_TABLE_AFTER: f32 [rows][dim], what the update must leave
 * @EMBENG_FW_TEST_SLOTS_AFTER: f32 [slot_count][rows][dim]
 * @EMBENG_FW_TEST_ARRAYS: how many there are
 */
enum embeng_fw_test_array {
	EMBENG_FW_TEST_OFFSETS,
	EMBENG_FW_TEST_IDS,
	EMBENG_FW_TEST_WEIGHT,
	EMBENG_FW_TEST_TABLE,
	EMBENG_FW_TEST_SLOTS,
	EMBENG_FW_TEST_GRADIENTS,
	EMBENG_FW_TEST_ACTIVATIONS,
	EMBENG_FW_TEST_TABLE_AFTER,
	EMBENG_FW_TEST_SLOTS_AFTER,
	EMBENG_FW_TEST_ARRAYS
};

/**
 * struct embeng_fw_self_test - a vector that the device runs at boot, 128 bytes
 * @length: of the whole vector: this, its arrays, zeros up to a multiple of EMBENG_FW_ALIGN
 * @kind: enum embeng_fw_test_kind
 * @flags: EMBENG_FW_TEST_*
 * @rows: of the table, from 1
 * @dim: columns, from 1
 * @samples: from 1
 * @ids: ids of all samples
 * @combiner: enum embeng_combiner
 * @optimizer: enum embeng_optimizer_kind, not NONE
 * @slot_count: must be the optimizer's
 * @learning_rate: f32 bits, finite
 * @step: the optimizer's step count + 1, from 1
 * @hyperparameter: as in &struct embeng_record_table
 * @reserved: 0
 *
 * rows * dim, samples * dim and ids * dim are at most EMBENG_FW_TEST_VALUES_MAX. The
 * step is that of a table with gradient accumulation, without clipping or decay. The
 * device runs every vector on every kernel variant that its processor has; each result
 * must be there to the bit, but any NaN equals any NaN. One that is not is the boot
 * error SELF_TEST, with the vector's offset, and its index (from 0) in the register
 * BOOT_ERROR_INDEX.
 */
struct embeng_fw_self_test {
	__u64 length;
	__u32 kind;
	__u32 flags;
	__u32 rows;
	__u32 dim;
	__u32 samples;
	__u32 ids;
	__u32 combiner;
	__u32 optimizer;
	__u32 slot_count;
	__u32 learning_rate;
	__u64 step;
	__u32 hyperparameter[16];
	__u32 reserved[2];
};

/**
 * embeng_fw_test_words() - how long an array of a self-test is
 * @test: within its limits
 * @array: enum embeng_fw_test_array
 *
 * Return: 4-byte words; 0 for what is not there.
 */
static inline __u64 embeng_fw_test_words(const struct embeng_fw_self_test *test, __u32 array)
{
	__u64 values = (__u64)test->rows * test->dim;

	switch (array) {
	case EMBENG_FW_TEST_OFFSETS:
		return (__u64)test->samples + 1;
	case EMBENG_FW_TEST_IDS:
		return test->ids;
	case EMBENG_FW_TEST_WEIGHT:
		return test->flags & EMBENG_FW_TEST_WEIGHTS ? test->ids : 0;
	case EMBENG_FW_TEST_TABLE:
	case EMBENG_FW_TEST_TABLE_AFTER:
		return values;
	case EMBENG_FW_TEST_SLOTS:
	case EMBENG_FW_TEST_SLOTS_AFTER:
		return test->slot_count * values;
	case EMBENG_FW_TEST_GRADIENTS:
	case EMBENG_FW_TEST_ACTIVATIONS:
		return (__u64)test->samples * test->dim;
	default:
		return 0;
	}
}

/**
 * embeng_fw_test_offset() - where an array of a self-test begins
 * @test: within its limits
 * @array: enum embeng_fw_test_array; EMBENG_FW_TEST_ARRAYS: where the last one ends
 *
 * Return: bytes from the start of the vector.
 */
static inline __u64 embeng_fw_test_offset(const struct embeng_fw_self_test *test, __u32 array)
{
	__u64 words = 0;
	__u32 i;

	for (i = 0; i < array; i++)
		words += embeng_fw_test_words(test, i);
	return sizeof(*test) + 4 * words;
}

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
EMBENG_FW_ASSERT(sizeof(struct embeng_fw_self_test) == 128);
EMBENG_FW_ASSERT(__builtin_offsetof(struct embeng_fw_self_test, combiner) == 32);
EMBENG_FW_ASSERT(__builtin_offsetof(struct embeng_fw_self_test, step) == 48);
EMBENG_FW_ASSERT(__builtin_offsetof(struct embeng_fw_self_test, hyperparameter) == 56);

#endif
