// SPDX-License-Identifier: MIT
/*
 * Boot and reset of the device. A boot copies the firmware image, checks it, runs its self-tests,
 * publishes the capabilities in BAR 0 and makes the admin queue. A reset kills every context and
 * the admin queue, and is over when the last of them is gone, which may take many looks at the
 * device. When either begins is decided in requests.c.
 *
 * Called with engine->lock held. The copy of the image lives as long as the checks. The table of
 * contexts and the admin queue live until the next reset or until the engine is destroyed.
 */
#include "firmware.h"
#include "../queue/internal.h"
#include "selftest.h"
#include "signature.h"

#define FEATURES_KNOWN \
	(EMBENG_CAP_MAPPED_QUEUES | EMBENG_CAP_PIPELINING | EMBENG_CAP_STATISTICS | \
	 EMBENG_CAP_MINIBATCHING | EMBENG_CAP_QUANTIZATION | EMBENG_CAP_PARTITIONED | \
	 EMBENG_CAP_SUMS | EMBENG_CAP_STATS_NOW | EMBENG_CAP_EXCHANGE | EMBENG_CAP_SHARDS)

/* Seconds of a device's time, and minutes of an emulator's: nobody's turn is longer. */
#define COMMAND_BYTES (64ull << 30)

static u64 lesser_of(u64 a, u64 b)
{
	return a < b ? a : b;
}

/* A private copy, so that nobody changes the bytes between check and use. */
static u32 copy_from_host(struct engine *e, u64 address, u64 length, void **copy)
{
	struct embeng_segment segment = { address, length };
	void *view = port_dma_map(e->config.host, &segment, 1, length);

	if (!view)
		return EMBENG_BOOT_ERROR_ADDRESS;
	*copy = port_alloc(length);
	if (*copy)
		memcpy(*copy, view, length);
	port_dma_unmap(e->config.host, view, length);
	return *copy ? EMBENG_BOOT_ERROR_NONE : EMBENG_BOOT_ERROR_MEMORY;
}

static u32 copy_image(struct engine *e, u64 length, void **image)
{
	if (length < sizeof(struct embeng_fw_header) || length > EMBENG_FW_LENGTH_MAX)
		return EMBENG_BOOT_ERROR_LENGTH;
	return copy_from_host(e, reg_read64(e, EMBENG_REG_BOOT_ADDRESS), length, image);
}

/* A device that has keys asks this. @offset: out on failure, the byte behind the image at fault */
static u32 check_boot_signature(struct engine *e, const void *image, u64 length, u64 *offset)
{
	u32 bytes = reg_read32(e, EMBENG_REG_BOOT_SIGNATURE_LENGTH), error;
	struct embeng_fw_signature head;
	void *block = NULL;

	*offset = 0;
	if (!bytes)
		return EMBENG_BOOT_ERROR_SIGNATURE_MISSING;
	if (bytes > EMBENG_FW_SIGNATURE_MAX)
		return EMBENG_BOOT_ERROR_SIGNATURE;
	error = copy_from_host(e, reg_read64(e, EMBENG_REG_BOOT_SIGNATURE), bytes, &block);
	if (!error)
		error = signature_check(block, bytes, &head, offset);
	if (!error)
		error = port_signature(e->config.host, image, length,
				       (const u8 *)block + sizeof(head), head.length);
	port_free(block);
	return error;
}

static void set_caps(struct engine *e, const struct embeng_fw_parameters *p, bool signer_known)
{
	struct embeng_caps *caps = &e->caps;

	memset(caps, 0, sizeof(*caps));
	caps->interface_major = EMBENG_INTERFACE_MAJOR;
	caps->interface_minor = EMBENG_INTERFACE_MINOR;
	caps->features = p->features & FEATURES_KNOWN;
	if (!signer_known)
		caps->features |= EMBENG_CAP_SIGNATURE_UNCHECKED;
	caps->cores = e->config.cores;
	caps->queues = (u32)lesser_of(p->queues, e->config.queues);
	caps->vectors = e->config.vectors;
	caps->contexts = p->contexts;
	caps->regions = p->regions;
	caps->table_memory = e->config.table_memory;
	caps->dim = 4096;
	caps->tables = 4096;
	caps->model_features = 4096;
	caps->replicas = 64;
	caps->step_depth = p->step_depth;
	caps->row_dtypes = 1;
	caps->ids = 1ull << 31;
	caps->samples = 1ull << 31;
	caps->combiners = 1u << EMBENG_COMBINER_SUM | 1u << EMBENG_COMBINER_MEAN |
			  1u << EMBENG_COMBINER_SQRTN | 1u << EMBENG_COMBINER_MAX;
	caps->command_bytes = COMMAND_BYTES;
	caps->optimizers = 1u << EMBENG_OPTIMIZER_NONE;
#define OPTIMIZER_BIT(name, value) caps->optimizers |= 1u << (value);
	EMBENG_OPTIMIZER_TABLE(OPTIMIZER_BIT)
#undef OPTIMIZER_BIT
}

static void publish_caps(struct engine *e)
{
	const struct embeng_caps *caps = &e->caps;

	reg_write32(e, EMBENG_REG_FEATURES, caps->features);
	reg_write32(e, EMBENG_REG_CORES, caps->cores);
	reg_write32(e, EMBENG_REG_QUEUES, caps->queues);
	reg_write32(e, EMBENG_REG_VECTORS, caps->vectors);
	reg_write32(e, EMBENG_REG_CONTEXTS, caps->contexts);
	reg_write32(e, EMBENG_REG_REGIONS, caps->regions);
	reg_write64(e, EMBENG_REG_TABLE_MEMORY, caps->table_memory);
	reg_write32(e, EMBENG_REG_DIM, caps->dim);
	reg_write32(e, EMBENG_REG_TABLES, caps->tables);
	reg_write32(e, EMBENG_REG_MODEL_FEATURES, caps->model_features);
	reg_write32(e, EMBENG_REG_REPLICAS, caps->replicas);
	reg_write32(e, EMBENG_REG_STEP_DEPTH, caps->step_depth);
	reg_write32(e, EMBENG_REG_ROW_DTYPES, caps->row_dtypes);
	reg_write64(e, EMBENG_REG_IDS, caps->ids);
	reg_write64(e, EMBENG_REG_SAMPLES, caps->samples);
	reg_write32(e, EMBENG_REG_COMBINERS, caps->combiners);
	reg_write32(e, EMBENG_REG_OPTIMIZERS, caps->optimizers);
	reg_write64(e, EMBENG_REG_COMMAND_BYTES, caps->command_bytes);
	reg_write32(e, EMBENG_REG_HEARTBEAT_MS, e->heartbeat_ms);
}

/* As far as the driver lets the image, which looks that another stays to be booted. */
static void raise_minimum(struct engine *e, u64 wanted)
{
	u64 minimum = lesser_of(wanted, reg_read64(e, EMBENG_REG_BOOT_RAISE));

	if (minimum > e->firmware_minimum)
		e->firmware_minimum = minimum;
}

/* The admin ring is the driver's, not the image's: faults of it have offset 0. */
static u32 start_firmware(struct engine *e, const struct firmware *firmware, bool signer_known)
{
	const struct embeng_fw_parameters *p = &firmware->parameters;
	u32 sq = reg_read32(e, EMBENG_REG_ADMIN_SQ_ENTRIES);
	u32 cq = reg_read32(e, EMBENG_REG_ADMIN_CQ_ENTRIES);
	struct embeng_admin_cmd admin = { .queue = 0 };
	u16 status;

	if (!sq || sq & (sq - 1) || sq > EMBENG_SQ_ENTRIES_MAX || !cq || cq & (cq - 1) ||
	    cq > 2 * EMBENG_SQ_ENTRIES_MAX)
		return EMBENG_BOOT_ERROR_PARAMETER;
	set_caps(e, p, signer_known);
	e->contexts = port_alloc(p->contexts * sizeof(struct context *));
	if (!e->contexts)
		return EMBENG_BOOT_ERROR_MEMORY;
	admin.address = reg_read64(e, EMBENG_REG_ADMIN_RING);
	admin.sq_entries = sq;
	admin.cq_entries = cq;
	status = queue_new(e, &admin, &e->queues[0]);
	if (status) {
		port_free(e->contexts);
		e->contexts = NULL;
		memset(&e->caps, 0, sizeof(e->caps));
		return status == EMBENG_STATUS_KEY ? EMBENG_BOOT_ERROR_ADDRESS :
						     EMBENG_BOOT_ERROR_MEMORY;
	}
	e->inline_bytes = p->inline_bytes;
	e->heartbeat_ms = p->heartbeat_ms;
	raise_minimum(e, p->minimum_version);
	return EMBENG_BOOT_ERROR_NONE;
}

static u32 self_test(struct engine *e, const u8 *image, const struct firmware *firmware,
		     u64 *offset)
{
	struct selftest_failure failure;
	u32 error = selftest_run(image + firmware->tests, firmware->tests_length, &failure);

	if (error != EMBENG_BOOT_ERROR_SELF_TEST)
		return error;
	*offset = firmware->tests + failure.offset;
	reg_write32(e, EMBENG_REG_BOOT_ERROR_INDEX, failure.index);
	port_log(e->config.host, PORT_LOG_ERROR, "self-test %u failed on the %s kernels",
		 failure.index, failure.variant);
	return error;
}

static u32 load_firmware(struct engine *e, struct firmware *firmware, u64 *offset)
{
	u64 length = reg_read64(e, EMBENG_REG_BOOT_LENGTH);
	bool has_keys = port_has_keys(e->config.host);
	void *image = NULL;
	u32 error = (u32)fault_strikes(e, PORT_FAULT_FIRMWARE_REFUSES, 0);

	if (!error)
		error = copy_image(e, length, &image);
	record_boot(e, image, length);
	if (error == EMBENG_BOOT_ERROR_LENGTH)
		*offset = lesser_of(length, EMBENG_FW_LENGTH_MAX);
	if (!error)
		error = firmware_check(image, length, e->firmware_minimum, firmware, offset);
	if (!error && has_keys) {
		error = check_boot_signature(e, image, length, offset);
		*offset = error ? length + *offset : 0;
	}
	if (!error)
		error = self_test(e, image, firmware, offset);
	port_free(image);
	return error ? error : start_firmware(e, firmware, has_keys);
}

void boot_load(struct engine *e)
{
	struct firmware firmware;
	u64 offset = 0;
	u32 error;

	reg_write32(e, EMBENG_REG_BOOT_STATE, EMBENG_BOOT_LOADING);
	reg_write32(e, EMBENG_REG_BOOT_ERROR_INDEX, 0);
	error = load_firmware(e, &firmware, &offset);
	record_booted(e, error);
	reg_write32(e, EMBENG_REG_BOOT_ERROR, error);
	reg_write64(e, EMBENG_REG_BOOT_ERROR_OFFSET, offset);
	if (error) {
		port_log(e->config.host, PORT_LOG_WARNING,
			 "firmware refused: boot error %u at byte %llu of the image", error,
			 offset);
		event_of_device(e, EMBENG_EVENT_BOOT_REFUSED, error, offset);
		reg_write32(e, EMBENG_REG_BOOT_STATE, EMBENG_BOOT_FAILED);
		return;
	}
	publish_caps(e);
	reg_write64(e, EMBENG_REG_FIRMWARE_VERSION, firmware.version);
	reg_write64(e, EMBENG_REG_FIRMWARE_MINIMUM, e->firmware_minimum);
	thermal_begin(e);
	event_of_device(e, EMBENG_EVENT_BOOT, 0, firmware.version);
	e->heartbeat_ns = clock_read(e);
	reg_write32(e, EMBENG_REG_BOOT_STATE, EMBENG_BOOT_RUNNING);
}

static void drop_pending(struct engine *e)
{
	struct pending *p;

	while ((p = e->pending)) {
		e->pending = p->next;
		port_free(p);
	}
	e->pending_count = 0;
}

void boot_stop_all(struct engine *e)
{
	u32 i;

	for (i = 0; e->contexts && i < e->caps.contexts; i++) {
		if (e->contexts[i])
			context_kill(e->contexts[i]);
	}
}

void boot_reset_begin(struct engine *e)
{
	record_reset(e);
	e->resetting = true;
	drop_pending(e);
	boot_stop_all(e);
	if (e->queues[0])
		queue_kill(e->queues[0], true);
}

/* True when nothing of any context is left. */
static bool reap_all(struct engine *e)
{
	bool gone = true;
	u32 i;

	for (i = 0; e->contexts && i < e->caps.contexts; i++) {
		if (e->contexts[i] && !context_reap(e->contexts[i]))
			gone = false;
	}
	return gone;
}

static void forget_all(struct engine *e)
{
	if (e->queues[0])
		queue_free(e->queues[0]);
	e->queues[0] = NULL;
	port_free(e->contexts);
	e->contexts = NULL;
	memset(&e->caps, 0, sizeof(e->caps));
}

int boot_reset_step(struct engine *e)
{
	if (!reap_all(e))
		return 0;
	forget_all(e);
	e->resetting = false;
	registers_reset(e);
	event_of_device(e, EMBENG_EVENT_RESET, 0, 0);
	reg_write32(e, EMBENG_REG_CONTROL_DONE, e->control_sequence);
	return 1;
}

void boot_power_off(struct engine *e)
{
	boot_reset_begin(e);
	reap_all(e);
	forget_all(e);
}
