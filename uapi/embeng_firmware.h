/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * embeng: the firmware image.
 *
 * The interface is unstable until the driver has been used with it for some time.
 *
 * DOC: Layout
 *
 * An image consists of these parts, one after another:
 *
 *   struct embeng_fw_header
 *   struct embeng_fw_section [section_count], section_stride bytes apart
 *   zeros up to a multiple of EMBENG_FW_ALIGN
 *   the sections in the order of the table, each at a multiple of EMBENG_FW_ALIGN and followed
 *   by zeros up to the next multiple, the last one too; there are no other gaps and no overlaps
 *
 * Sizes and offsets have 64 bits, and all numbers are little-endian. The header says how long
 * the whole image is. A device refuses an image that it is given with bytes beyond that; in a file
 * a signature may follow (see below). It refuses an image with two sections of one of the types
 * below, or with a section whose content does not fit its type. A section of a type that the device
 * does not know is refused with EMBENG_FW_SECTION_MANDATORY and otherwise skipped, however often
 * the type occurs. The place and the hash of a skipped
 * section are checked all the same.
 *
 * A device accepts or refuses an image as a whole. When it refuses, it reports an
 * &enum embeng_boot_error and the byte at fault, and it stays without firmware.
 *
 * DOC: Signature
 *
 * A file may have a signature behind the image: &struct embeng_fw_signature, a PKCS #7 message
 * (CMS, RFC 5652, DER) that is detached, and zeros up to a multiple of EMBENG_FW_ALIGN, where the
 * file ends. The message signs the image, which is the first &embeng_fw_header.length bytes of the
 * file: everything in front of the signature, and nothing else. Both together have at most
 * EMBENG_FW_LENGTH_MAX bytes. A file without anything behind the image is unsigned.
 *
 * The signer is found among the keys of the one who checks, by what the message says of it.
 * The message need not contain a certificate, and one that it contains is not trusted for that.
 *
 * Drivers, tools and devices check signatures. A driver with keys loads no other image than one
 * that a key of its own has signed. It hands the signature to the device with the image, and a
 * device that has keys checks it again, by itself. A device without keys takes the driver's word,
 * and says so by EMBENG_CAP_SIGNATURE_UNCHECKED.
 *
 * DOC: Rollback
 *
 * A device remembers FIRMWARE_MINIMUM, also over warm resets, and refuses images whose version is
 * below it. An image raises it to its minimum_version, but not above BOOT_RAISE. A driver sets
 * BOOT_RAISE to 0 unless it has checked the image's signature, and never above the version of an
 * image that can be booted without it: the one that stands beside for recovery. So no image
 * can shut out the image that is booted when everything else fails. A device also refuses an image
 * whose own version is below its minimum_version, because that image could not be booted a second
 * time.
 */
#ifndef _EMBENG_FIRMWARE_H_
#define _EMBENG_FIRMWARE_H_

#include <linux/types.h>

#include "embeng_engine.h"

#ifdef __cplusplus
extern "C" {
#endif

#define EMBENG_FW_MAGIC 0x57464245u /* "EBFW" */
#define EMBENG_FW_FORMAT 1u
#define EMBENG_FW_ALIGN 64u
#define EMBENG_FW_SECTIONS_MAX 64u
/* A device is given one DMA address, and kernels do not allocate more than this in one piece. */
#define EMBENG_FW_LENGTH_MAX (4ull << 20)

/**
 * struct embeng_fw_header - head of an image, 128 bytes
 * @magic: EMBENG_FW_MAGIC
 * @format: EMBENG_FW_FORMAT
 * @interface_major: EMBENG_INTERFACE_MAJOR for which the image was made
 * @interface_minor: lowest EMBENG_INTERFACE_MINOR that the image needs
 * @version: version of the image, major << 48 | minor << 32 | patch << 16 | build; it grows from
 *	release to release
 * @length: bytes of the whole image
 * @section_count: number of sections, 1 to EMBENG_FW_SECTIONS_MAX
 * @section_stride: bytes from one entry of the section table to the next: a multiple of 8, at
 *	least sizeof(struct embeng_fw_section)
 * @build_id: any bytes that identify the build; tools show them as text if they are text
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
	EMBENG_FW_SELF_TEST = 2,  /* at least one &struct embeng_fw_self_test, without gaps */
	EMBENG_FW_STRINGS = 3,	  /* "NAME=VALUE", UTF-8, each ended by a zero byte; for people */
	EMBENG_FW_PROGRAMS = 4,	  /* optimizer programs; no device knows this type yet */
};

#define EMBENG_FW_SIGNATURE_MAGIC 0x47534245u /* "EBSG" */
/* A message has a few hundred bytes, with certificates a few thousand. */
#define EMBENG_FW_SIGNATURE_MAX 65536u

enum embeng_fw_signature_kind {
	EMBENG_FW_SIGNATURE_PKCS7 = 1, /* PKCS #7 or CMS SignedData, detached, DER */
};

/**
 * struct embeng_fw_signature - head of a signature behind an image, 64 bytes
 * @magic: EMBENG_FW_SIGNATURE_MAGIC
 * @kind: enum embeng_fw_signature_kind
 * @length: bytes of the message that follows, from 1; head, message and zeros have at most
 *	EMBENG_FW_SIGNATURE_MAX bytes
 * @key_id_length: bytes of @key_id, 0: it is not said
 * @key_id: subject key identifier of the signer's certificate, for messages to people; the rest
 *	is 0. Nobody trusts it
 * @reserved: 0
 */
struct embeng_fw_signature {
	__u32 magic;
	__u32 kind;
	__u64 length;
	__u32 key_id_length;
	__u8 key_id[32];
	__u8 reserved[12];
};

#define EMBENG_FW_SECTION_MANDATORY (1u << 0)

/**
 * struct embeng_fw_section - an entry of the section table, 64 bytes
 * @type: enum embeng_fw_section_type
 * @flags: EMBENG_FW_SECTION_MANDATORY or 0. A device that does not know the type of a mandatory
 *	section refuses the image
 * @offset: bytes from the start of the image, a multiple of EMBENG_FW_ALIGN
 * @length: bytes of the section without the zeros that follow it
 * @reserved: 0
 * @sha256: SHA-256 of the section's @length bytes
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
 * X(name, bytes, lowest value, highest value, words), in the order of
 * &struct embeng_fw_parameters. A device refuses a value outside these limits.
 */
#define EMBENG_FW_PARAMETER_TABLE(X)                                                      \
	X(step_depth, 4, 4, 64, "training steps ahead")                                   \
	X(contexts, 4, 1, 256, "most contexts at one time")                               \
	X(queues, 4, 2, 1024, "most queues, with the admin queue; a device may have fewer") \
	X(regions, 4, 16, 65536, "most entries of a region table")                        \
	X(features, 4, 0, 0xffffffff, "capability bits to switch on, if the device has them") \
	X(inline_bytes, 4, 0, 0xffffffff, "work on fewer bytes stays on one core")                \
	X(minimum_version, 8, 0, 0xffffffffffffffff, "lowest version booted from now on") \
	X(heartbeat_ms, 4, 1, 10000, "milliseconds between two growths of HEARTBEAT")

/**
 * struct embeng_fw_parameters - the boot parameters, which set how the device behaves
 * @step_depth: training steps that may be ahead of the last applied update
 * @contexts: most contexts at one time
 * @queues: most queues, counted with the admin queue; a device may have fewer
 * @regions: most entries of a context's region table
 * @features: capability bits (EMBENG_CAP_*) that the image switches on; the device ignores those
 *	that it does not have
 * @inline_bytes: work on fewer bytes than this stays on the core that fetched the command
 * @minimum_version: lowest version that the device boots from now on
 * @heartbeat_ms: milliseconds from one growth of HEARTBEAT to the next
 * @reserved: 0
 *
 * A section may be longer than this structure; a device ignores the rest.
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

/* The limit of a self-test's arrays lets a device handle all rows and samples in one pass. */
#define EMBENG_FW_TEST_VALUES_MAX 8192u

#define EMBENG_FW_TEST_WEIGHTS (1u << 0) /* ids have weights; without it each weight is 1 */

enum embeng_fw_test_kind {
	EMBENG_FW_TEST_STEP = 1, /* one training step on one table: lookup, then update */
};

/**
 * enum embeng_fw_test_array - the arrays of a self-test, of 4-byte words, in this order
 * @EMBENG_FW_TEST_OFFSETS: u32 [samples + 1]; sample s has the ids [offset[s], offset[s + 1])
 * @EMBENG_FW_TEST_IDS: u32 [ids], rows of the table
 * @EMBENG_FW_TEST_WEIGHT: f32 [ids]; absent without EMBENG_FW_TEST_WEIGHTS
 * @EMBENG_FW_TEST_TABLE: f32 [rows][dim], the table before the step
 * @EMBENG_FW_TEST_SLOTS: f32 [slot_count][rows][width], the slots before the step, each of the
 *	width that embeng_slot_width() tells
 * @EMBENG_FW_TEST_GRADIENTS: f32 [samples][dim], the gradients of the activations
 * @EMBENG_FW_TEST_ACTIVATIONS: f32 [samples][dim], the expected result of the lookup
 * @EMBENG_FW_TEST_TABLE_AFTER: f32 [rows][dim], the expected table after the update
 * @EMBENG_FW_TEST_SLOTS_AFTER: f32 [slot_count][rows][width], the expected slots after the update
 * @EMBENG_FW_TEST_ARRAYS: number of arrays
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
 * struct embeng_fw_self_test - head of a vector that the device runs at boot, 128 bytes
 * @length: bytes of the whole vector: this head, its arrays, and zeros up to a multiple of
 *	EMBENG_FW_ALIGN
 * @kind: enum embeng_fw_test_kind
 * @flags: EMBENG_FW_TEST_WEIGHTS or 0
 * @rows: rows of the table, from 1
 * @dim: columns of the table, from 1
 * @samples: number of samples, from 1
 * @ids: ids of all samples together
 * @combiner: enum embeng_combiner, not MAX
 * @optimizer: enum embeng_optimizer_kind, except NONE
 * @slot_count: number of slots; must be the optimizer's
 * @learning_rate: f32 bits, finite
 * @step: the optimizer's step count + 1, from 1
 * @hyperparameter: f32 bits, as in &struct embeng_record_table
 * @reserved: 0
 *
 * rows * dim, samples * dim and ids * dim are at most EMBENG_FW_TEST_VALUES_MAX. The table has
 * gradient accumulation and neither clipping nor decay.
 *
 * The device runs every vector on every kernel variant that its processor has. Each result must
 * equal the expected one to the bit, except that any NaN equals any NaN. A vector that differs
 * gives the boot error SELF_TEST with the vector's offset in the image; BOOT_ERROR_INDEX holds
 * its index, from 0.
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
 * embeng_fw_test_words() - compute the length of an array of a self-test
 * @test: head of the self-test, within its limits
 * @array: enum embeng_fw_test_array
 *
 * Return: number of 4-byte words, 0 for an array that is absent.
 */
static inline __u64 embeng_fw_test_words(const struct embeng_fw_self_test *test, __u32 array)
{
	__u64 values = (__u64)test->rows * test->dim, slots = 0;
	__u32 slot;

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
		for (slot = 1; slot <= test->slot_count && slot <= EMBENG_SLOTS_MAX; slot++)
			slots += (__u64)test->rows *
				 embeng_slot_width(test->optimizer, slot, test->dim);
		return slots;
	case EMBENG_FW_TEST_GRADIENTS:
	case EMBENG_FW_TEST_ACTIVATIONS:
		return (__u64)test->samples * test->dim;
	default:
		return 0;
	}
}

/**
 * embeng_fw_test_offset() - compute where an array of a self-test begins
 * @test: head of the self-test, within its limits
 * @array: enum embeng_fw_test_array; EMBENG_FW_TEST_ARRAYS gives the end of the last array
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
EMBENG_FW_ASSERT(sizeof(struct embeng_fw_signature) == 64);
EMBENG_FW_ASSERT(__builtin_offsetof(struct embeng_fw_signature, length) == 8);
EMBENG_FW_ASSERT(__builtin_offsetof(struct embeng_fw_signature, key_id) == 20);
EMBENG_FW_ASSERT(sizeof(struct embeng_fw_parameters) == 64);
EMBENG_FW_ASSERT(__builtin_offsetof(struct embeng_fw_parameters, minimum_version) == 24);
EMBENG_FW_ASSERT(sizeof(struct embeng_fw_self_test) == 128);
EMBENG_FW_ASSERT(__builtin_offsetof(struct embeng_fw_self_test, combiner) == 32);
EMBENG_FW_ASSERT(__builtin_offsetof(struct embeng_fw_self_test, step) == 48);
EMBENG_FW_ASSERT(__builtin_offsetof(struct embeng_fw_self_test, hyperparameter) == 56);

#endif
