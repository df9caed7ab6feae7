/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * embeng: groups of registers, fields inside of registers, and names of their values.
 *
 * Neither driver nor device needs this: it is for programs and pages that show registers to
 * people. Registers themselves are in embeng_regs.h.
 */
#ifndef _EMBENG_FIELDS_H_
#define _EMBENG_FIELDS_H_

#include "embeng_regs.h"

/**
 * EMBENG_REGISTER_GROUP_TABLE - groups of registers, by the places of their registers
 *
 * X(name, first offset, offset behind the last one, words)
 */
#define EMBENG_REGISTER_GROUP_TABLE(X) \
	X(CAPABILITIES, 0x000, 0x080, "what the device is and can do") \
	X(STATE, 0x080, 0x100, "boot, life signs and sensors, written by the device") \
	X(REQUESTS, 0x100, 0x180, "what the driver asks for") \
	X(COUNTERS, 0x180, 0x400, "work and time since the last boot")

/**
 * EMBENG_REGISTER_FIELD_TABLE - every field of a register that is more than one number
 *
 * X(register, name, lowest bit, bits, kind). A NUMBER is a number and a FLAG one bit. Values of any
 * other kind have names, which EMBENG_REGISTER_VALUE_TABLE lists. OPTIMIZERS has a flag for each
 * optimizer of EMBENG_OPTIMIZER_TABLE besides, at the bit of its value.
 */
#define EMBENG_REGISTER_FIELD_TABLE(X) \
	X(INTERFACE, MINOR, 0, 16, NUMBER) \
	X(INTERFACE, MAJOR, 16, 16, NUMBER) \
	X(FEATURES, MAPPED_QUEUES, 0, 1, FLAG) \
	X(FEATURES, VALIDATED_QUEUES, 1, 1, FLAG) \
	X(FEATURES, PIPELINING, 2, 1, FLAG) \
	X(FEATURES, PROGRAMS, 3, 1, FLAG) \
	X(FEATURES, STATISTICS, 4, 1, FLAG) \
	X(FEATURES, MINIBATCHING, 5, 1, FLAG) \
	X(FEATURES, SIGNATURE_UNCHECKED, 6, 1, FLAG) \
	X(FEATURES, QUANTIZATION, 7, 1, FLAG) \
	X(FEATURES, PARTITIONED, 8, 1, FLAG) \
	X(FEATURES, SUMS, 9, 1, FLAG) \
	X(FEATURES, STATS_NOW, 10, 1, FLAG) \
	X(FEATURES, EXCHANGE, 11, 1, FLAG) \
	X(FEATURES, SHARDS, 12, 1, FLAG) \
	X(ROW_DTYPES, F32, 0, 1, FLAG) \
	X(COMBINERS, SUM, 0, 1, FLAG) \
	X(COMBINERS, MEAN, 1, 1, FLAG) \
	X(COMBINERS, SQRTN, 2, 1, FLAG) \
	X(COMBINERS, MAX, 3, 1, FLAG) \
	X(OPTIMIZERS, NONE, 0, 1, FLAG) \
	X(BOOT_STATE, STATE, 0, 32, BOOT_STATE) \
	X(BOOT_ERROR, ERROR, 0, 32, BOOT_ERROR) \
	X(FIRMWARE_VERSION, BUILD, 0, 16, NUMBER) \
	X(FIRMWARE_VERSION, PATCH, 16, 16, NUMBER) \
	X(FIRMWARE_VERSION, MINOR, 32, 16, NUMBER) \
	X(FIRMWARE_VERSION, MAJOR, 48, 16, NUMBER) \
	X(FIRMWARE_MINIMUM, BUILD, 0, 16, NUMBER) \
	X(FIRMWARE_MINIMUM, PATCH, 16, 16, NUMBER) \
	X(FIRMWARE_MINIMUM, MINOR, 32, 16, NUMBER) \
	X(FIRMWARE_MINIMUM, MAJOR, 48, 16, NUMBER) \
	X(STATUS, HEALTH, 0, 32, DEVICE_STATUS) \
	X(CONTROL, REQUEST, 0, 32, CONTROL) \
	X(BOOT_RAISE, BUILD, 0, 16, NUMBER) \
	X(BOOT_RAISE, PATCH, 16, 16, NUMBER) \
	X(BOOT_RAISE, MINOR, 32, 16, NUMBER) \
	X(BOOT_RAISE, MAJOR, 48, 16, NUMBER)

/**
 * EMBENG_REGISTER_VALUE_TABLE - names of values, but for those of EMBENG_BOOT_ERROR_TABLE
 *
 * X(kind of field, name, value, words)
 */
#define EMBENG_REGISTER_VALUE_TABLE(X) \
	X(BOOT_STATE, RESET, EMBENG_BOOT_RESET, "the device does not answer yet") \
	X(BOOT_STATE, ROM, EMBENG_BOOT_ROM, "the device waits for an image") \
	X(BOOT_STATE, LOADING, EMBENG_BOOT_LOADING, "the device checks the image") \
	X(BOOT_STATE, RUNNING, EMBENG_BOOT_RUNNING, "the firmware runs") \
	X(BOOT_STATE, FAILED, EMBENG_BOOT_FAILED, "the image was refused; BOOT_ERROR says why") \
	X(DEVICE_STATUS, OK, EMBENG_DEVICE_OK, "no fault") \
	X(DEVICE_STATUS, FAULT, EMBENG_DEVICE_FAULT, \
	  "the admin ring is broken or tables lost data; the device needs a reset") \
	X(CONTROL, NONE, EMBENG_CONTROL_NONE, "nothing") \
	X(CONTROL, RESET, EMBENG_CONTROL_RESET, "a warm reset, back to ROM")

#define EMBENG_FEATURE_ASSERT(name, bit) EMBENG_REGS_ASSERT(EMBENG_CAP_##name == 1u << (bit))
EMBENG_FEATURE_ASSERT(MAPPED_QUEUES, 0);
EMBENG_FEATURE_ASSERT(VALIDATED_QUEUES, 1);
EMBENG_FEATURE_ASSERT(PIPELINING, 2);
EMBENG_FEATURE_ASSERT(PROGRAMS, 3);
EMBENG_FEATURE_ASSERT(STATISTICS, 4);
EMBENG_FEATURE_ASSERT(MINIBATCHING, 5);
EMBENG_FEATURE_ASSERT(SIGNATURE_UNCHECKED, 6);
EMBENG_FEATURE_ASSERT(QUANTIZATION, 7);
EMBENG_FEATURE_ASSERT(PARTITIONED, 8);
EMBENG_FEATURE_ASSERT(SUMS, 9);
EMBENG_FEATURE_ASSERT(STATS_NOW, 10);
EMBENG_FEATURE_ASSERT(EXCHANGE, 11);
EMBENG_FEATURE_ASSERT(SHARDS, 12);
EMBENG_REGS_ASSERT(EMBENG_COMBINER_SUM == 0 && EMBENG_COMBINER_MEAN == 1 &&
		   EMBENG_COMBINER_SQRTN == 2 && EMBENG_COMBINER_MAX == 3);

#endif
