/* SPDX-License-Identifier: MIT */
/*
 * The device node without the library's sessions: a context, queues and memory of the caller's own.
 * Only in builds that have devices of the kernel driver.
 */
#ifndef CLI_BOARD_BOARD_H
#define CLI_BOARD_BOARD_H

#include "embeng_accel.h"

#include "finding.h"

#define BOARD_DIM 16u
#define BOARD_ROWS 16384u
#define BOARD_SECOND 1000000000ll

struct board_memory;

/**
 * struct board - an open node with a context
 * @device: the driver's description of the device
 * @descriptors: memory for descriptors, made when it is first needed
 */
struct board {
	int fd;
	struct embeng_accel_device device;
	struct board_memory *descriptors;
};

/**
 * struct board_memory - memory that the device reaches
 * @data: where the program has it
 * @key: its key, with offset 0 and all of it as length
 * @owned: @data was mapped by board_memory_new()
 */
struct board_memory {
	void *data;
	uint64_t bytes;
	uint32_t handle;
	struct embeng_mem key;
	bool owned;
};

/**
 * struct board_queue - a queue that is mapped into the process
 * @made: as the driver made it
 * @doorbell: NULL for a validated queue
 */
struct board_queue {
	struct embeng_accel_queue_create made;
	char *ring;
	struct embeng_doorbell *doorbell;
	uint32_t sq_tail, cq_head;
};

/* Makes an ioctl that is repeated after signals, but not when it says EAGAIN. 0 or a negative errno. */
int board_call(const struct board *b, unsigned long request, void *arg);

int64_t board_now_ns(void);

/* These fail @f and return false when the driver refuses. The context ends with the board. */
bool board_open(const char *node, struct board *b, struct finding *f);
void board_close(struct board *b);

/* The states of the device and of this context. Return: false, with @f failed. */
bool board_resets(const struct board *b, struct embeng_accel_resets *out, struct finding *f);
bool board_context(const struct board *b, struct embeng_accel_context_state *out,
		   struct finding *f);
/* The limits and capabilities of the device. Return: false, with @f failed. */
bool board_caps(const struct board *b, struct embeng_caps *out, struct finding *f);

/* Room of @bytes that the driver allocates, bound with both rights. */
bool board_memory_new(const struct board *b, uint64_t bytes, struct board_memory *out,
		      struct finding *f);
/* Pages of the program, pinned and bound with both rights. */
bool board_memory_pin(const struct board *b, void *data, uint64_t bytes, struct board_memory *out,
		      struct finding *f);
/* Makes a region of a handle from @offset on. Return: 0 or a negative errno. */
int board_bind(const struct board *b, uint32_t handle, uint32_t rights, uint64_t offset,
	       uint64_t bytes, struct embeng_mem *key);
int board_unbind(const struct board *b, const struct embeng_mem *key);
void board_memory_free(const struct board *b, struct board_memory *m);

/* @kind: enum embeng_queue_kind; @mapped: the program writes its rings. */
bool board_queue_open(const struct board *b, uint32_t kind, bool mapped, struct board_queue *q,
		      struct finding *f);
void board_queue_close(const struct board *b, struct board_queue *q);

/* Room for fences of a submit to a validated queue; NULL: none. */
struct board_syncs {
	const struct embeng_accel_sync *in, *out;
};

/* Hands a command to a queue of either kind. Return: 0 or a negative errno. */
int board_submit(const struct board *b, struct board_queue *q, const struct embeng_cmd *cmd,
		 const struct board_syncs *syncs);

/* Asks for one interrupt when completion @index of a mapped queue is there. */
void board_arm(struct board_queue *q, uint32_t index);

/* Whether a completion that was not taken is in the ring. */
bool board_ready(const struct board_queue *q);

/*
 * Takes the next completion, by looking at the ring and never by sleeping in the driver, so that no
 * interrupt is needed. Return: 0, -ETIME after @timeout_ns, or -ESHUTDOWN if the ring is dead.
 */
int board_take(struct board_queue *q, int64_t timeout_ns, struct embeng_cqe *out);

/* Submits a command and takes its completion within ten seconds; fails @f if it does not come. */
bool board_run(const struct board *b, struct board_queue *q, const struct embeng_cmd *cmd,
	       struct embeng_cqe *out, struct finding *f);

static inline struct embeng_cmd board_nop(uint64_t cookie, uint32_t delay_us)
{
	return (struct embeng_cmd){.opcode = EMBENG_OP_NOP,
				   .cookie = cookie,
				   .arg = (uint64_t)delay_us << EMBENG_NOP_DELAY_SHIFT};
}

/* The library's sentence for a status. */
const char *board_status_text(uint32_t status);

/* Loads a model of one table, BOARD_ROWS x BOARD_DIM, on a validated TRANSFER queue. */
bool board_load(struct board *b, struct board_queue *q, struct finding *f);

/*
 * Moves @count rows from row @first on between the table and memory.
 * @opcode: EMBENG_OP_ROWS_WRITE or EMBENG_OP_ROWS_READ
 * @data: memory of exactly that length
 *
 * Return: the status that the command completed with, or -1 with @f failed.
 */
int board_rows(struct board *b, struct board_queue *q, uint16_t opcode, uint64_t first,
	       uint64_t count, const struct embeng_mem *data, struct finding *f);

#endif
