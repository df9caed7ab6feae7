// SPDX-License-Identifier: MIT
/*
 * Writes what the device is given and what it does as entries of a recording, for a host that asked
 * for one. Only the form of the entries is known here; where they go is the recorder's business.
 *
 * Called with engine->lock held, which makes the order of the entries the order of events. A
 * command keeps a list of the memory that it used, so that what it reads is recorded once, and what
 * it wrote can be summed up at its end; record_done() frees the list. If the recorder refuses an
 * entry, or memory for a list lacks, nothing more is recorded, and the host tells the user.
 */
#include "record.h"

#include "../../uapi/embeng_recording.h"
#include "../hash/crc32c.h"
#include "../kernels/kernels.h"

/* The faults of the port have the numbers of the form. */
#define SAME_NUMBER(name, value, target, words) \
	_Static_assert(PORT_FAULT_##name == (value), "a fault has another number in recordings");
EMBENG_RECORDING_FAULT_TABLE(SAME_NUMBER)
#undef SAME_NUMBER

/* A part of memory that a command has used. */
struct used_part {
	struct embeng_mem where;
	bool read, written;
};

struct used_parts {
	u32 count, room;
	struct used_part part[];
};

static void give_up_recording(struct engine *e)
{
	e->recording = false;
	e->config.recorder->write(e->config.host, NULL, 0);
}

static bool write_piece(struct engine *e, const void *data, u64 length)
{
	return !length || e->config.recorder->write(e->config.host, data, length);
}

/*
 * @fixed: the structure of the type; @length: its bytes, a multiple of 8
 * @bytes: bytes that follow it; @count: their number
 */
static void write_entry(struct engine *e, u16 type, const void *fixed, u64 length,
			const void *bytes, u64 count)
{
	static const u8 zeros[8];
	u64 pad = -count % 8;
	struct embeng_recording_entry head = {
		.magic = EMBENG_RECORDING_MAGIC,
		.type = type,
		.length = sizeof(head) + length + count + pad,
		.time_ns = port_now_ns(),
		.number = e->recorded,
	};

	head.crc = crc32c(0, &head, sizeof(head));
	head.crc = crc32c(head.crc, fixed, length);
	head.crc = crc32c(head.crc, bytes, count);
	head.crc = crc32c(head.crc, zeros, pad);
	if (write_piece(e, &head, sizeof(head)) && write_piece(e, fixed, length) &&
	    write_piece(e, bytes, count) && write_piece(e, zeros, pad))
		e->recorded++;
	else
		give_up_recording(e);
}

void record_power_on(struct engine *e)
{
	struct embeng_recording_power_on on = {
		.version = EMBENG_RECORDING_VERSION,
		.cores = e->config.cores,
		.queues = e->config.queues,
		.vectors = e->config.vectors,
		.table_memory = e->config.table_memory,
		.firmware_minimum = e->firmware_minimum,
	};
	const char *name = e->kernels->name;
	u32 i;

	if (!e->config.recorder || !e->config.recorder->write)
		return;
	for (i = 0; name[i] && i + 1 < sizeof(on.variant); i++)
		on.variant[i] = name[i];
	e->recording = true;
	write_entry(e, EMBENG_RECORDING_POWER_ON, &on, sizeof(on), NULL, 0);
}

void record_power_off(struct engine *e)
{
	if (e->recording)
		write_entry(e, EMBENG_RECORDING_POWER_OFF, NULL, 0, NULL, 0);
	e->recording = false;
}

void record_boot(struct engine *e, const void *image, u64 length)
{
	struct embeng_recording_boot boot = {
		.raise = reg_read64(e, EMBENG_REG_BOOT_RAISE),
		.length = image ? length : 0,
	};

	if (e->recording)
		write_entry(e, EMBENG_RECORDING_BOOT, &boot, sizeof(boot), image, boot.length);
}

void record_booted(struct engine *e, u32 error)
{
	const struct embeng_recording_booted booted = { .error = error };

	if (e->recording)
		write_entry(e, EMBENG_RECORDING_BOOTED, &booted, sizeof(booted), NULL, 0);
}

void record_reset(struct engine *e)
{
	if (e->recording)
		write_entry(e, EMBENG_RECORDING_RESET, NULL, 0, NULL, 0);
}

void record_admin(struct engine *e, const struct embeng_admin_cmd *cmd, u16 status)
{
	const struct embeng_recording_admin admin = { .command = *cmd, .status = status };

	if (e->recording)
		write_entry(e, EMBENG_RECORDING_ADMIN, &admin, sizeof(admin), NULL, 0);
}

void record_region(struct context *c, u32 index)
{
	const struct region *r = &c->regions[index];
	const struct embeng_recording_region region = {
		.context = c->number,
		.index = index,
		.generation = r->generation,
		.rights = r->rights,
		.length = r->length,
	};

	if (c->engine->recording)
		write_entry(c->engine, EMBENG_RECORDING_REGION, &region, sizeof(region), NULL, 0);
}

static bool is_same_part(const struct embeng_mem *a, const struct embeng_mem *b)
{
	return a->index == b->index && a->generation == b->generation && a->offset == b->offset &&
	       a->length == b->length;
}

/* The list with room for one more, or NULL without memory. */
static struct used_parts *room_for_part(struct command *command)
{
	struct used_parts *parts = command->used, *larger;
	u32 room = parts ? 2 * parts->room : 16;

	if (parts && parts->count < parts->room)
		return parts;
	larger = port_alloc(sizeof(*larger) + room * sizeof(larger->part[0]));
	if (!larger)
		return NULL;
	if (parts)
		memcpy(larger, parts, sizeof(*parts) + parts->count * sizeof(parts->part[0]));
	larger->room = room;
	port_free(parts);
	command->used = larger;
	return larger;
}

static struct used_part *find_part(struct command *command, const struct embeng_mem *mem)
{
	struct used_parts *parts = command->used;
	u32 i;

	for (i = 0; parts && i < parts->count; i++) {
		if (is_same_part(&parts->part[i].where, mem))
			return &parts->part[i];
	}
	parts = room_for_part(command);
	if (!parts)
		return NULL;
	parts->part[parts->count].where = *mem;
	return &parts->part[parts->count++];
}

void record_access(struct command *command, const struct embeng_mem *mem, u32 rights,
		   const void *data)
{
	struct context *c = command->context;
	struct engine *e = c->engine;
	const struct embeng_recording_memory memory = {
		.context = c->number,
		.queue = command->queue ? command->queue->number : 0,
		.where = *mem,
	};
	struct used_part *part;

	if (!e->recording)
		return;
	part = find_part(command, mem);
	if (!part) {
		give_up_recording(e);
		return;
	}
	if (rights & EMBENG_REGION_DEVICE_READ && !part->read)
		write_entry(e, EMBENG_RECORDING_MEMORY, &memory, sizeof(memory), data, mem->length);
	part->read |= !!(rights & EMBENG_REGION_DEVICE_READ);
	part->written |= !!(rights & EMBENG_REGION_DEVICE_WRITE);
}

void record_before(struct command *command, const struct embeng_mem *mem, const void *data)
{
	record_access(command, mem, EMBENG_REGION_DEVICE_READ, data);
}

void record_command(struct command *command, u16 status)
{
	struct engine *e = command->queue->engine;
	const struct embeng_recording_command entry = {
		.context = command->context->number,
		.queue = command->queue->number,
		.index = command->index,
		.status = status,
		.command = command->cmd,
	};

	if (e->recording)
		write_entry(e, EMBENG_RECORDING_COMMAND, &entry, sizeof(entry), NULL, 0);
}

void record_run(struct command *command)
{
	struct engine *e = command->queue->engine;
	const struct embeng_recording_run entry = {
		.context = command->context->number,
		.queue = command->queue->number,
		.index = command->index,
		.opcode = command->cmd.opcode,
	};

	if (e->recording)
		write_entry(e, EMBENG_RECORDING_RUN, &entry, sizeof(entry), NULL, 0);
}

/* The region of a part, as long as it is the one that the command used. */
static const struct region *region_of_part(const struct context *c, const struct embeng_mem *mem)
{
	const struct region *r = &c->regions[mem->index];

	return r->generation == mem->generation ? r : NULL;
}

/* Return: the number of outputs. */
static u32 sum_outputs(const struct command *command, struct embeng_recording_output *out)
{
	const struct used_parts *parts = command->used;
	u32 count = 0, i;

	for (i = 0; parts && !command->fault.status && i < parts->count; i++) {
		const struct embeng_mem *where = &parts->part[i].where;
		const struct region *r = region_of_part(command->context, where);

		if (!parts->part[i].written || !r)
			continue;
		if (out) {
			out[count].where = *where;
			out[count].crc = crc32c(0, (const u8 *)r->data + where->offset,
						where->length);
		}
		count++;
	}
	return count;
}

static void record_outputs(struct command *command)
{
	struct engine *e = command->queue->engine;
	const struct fault *fault = &command->fault;
	struct embeng_recording_done done = {
		.context = command->context->number,
		.queue = command->queue->number,
		.index = command->index,
		.status = fault->status,
		.field = fault->status ? fault->field : 0,
		.feature = fault->status ? fault->feature : EMBENG_NO_INDEX,
		.element = fault->status ? fault->element : 0,
		.value = fault->status ? fault->value : command->result,
		.limit = fault->status ? fault->limit : 0,
		.outputs = sum_outputs(command, NULL),
	};
	struct embeng_recording_output *outputs = NULL;
	u64 bytes = done.outputs * sizeof(*outputs);

	if (bytes) {
		outputs = port_alloc(bytes);
		if (!outputs) {
			give_up_recording(e);
			return;
		}
		sum_outputs(command, outputs);
	}
	write_entry(e, EMBENG_RECORDING_DONE, &done, sizeof(done), outputs, bytes);
	if (outputs)
		port_free(outputs);
}

void record_done(struct command *command)
{
	if (command->queue->engine->recording)
		record_outputs(command);
	if (command->used)
		port_free(command->used);
	command->used = NULL;
}

u64 fault_strikes(struct engine *e, enum port_fault fault, u32 target)
{
	u64 value = port_fault(e->config.host, fault, target);
	const struct embeng_recording_fault entry = {
		.fault = fault,
		.target = target,
		.value = value,
	};

	if (value && e->recording)
		write_entry(e, EMBENG_RECORDING_FAULT, &entry, sizeof(entry), NULL, 0);
	return value;
}

bool record_turn(const struct queue *q)
{
	const struct engine_recorder *recorder = q->engine->config.recorder;

	return !recorder || !recorder->turn ||
	       recorder->turn(q->engine->config.host, q->number, q->oldest->index);
}
