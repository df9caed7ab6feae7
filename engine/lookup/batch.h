/* SPDX-License-Identifier: MIT */
/* The private copy of a LOOKUP's input: what UPDATE uses later, too. */
#ifndef EMBENG_ENGINE_BATCH_H
#define EMBENG_ENGINE_BATCH_H

#include "../model/model.h"

/* Memory that is kept from batch to batch. */
struct buffer {
	void *data;
	u64 bytes;
};

/* The arrays of a feature, in views that are open from before it is copied until all are. */
enum batch_view {
	BATCH_VIEW_OFFSETS,
	BATCH_VIEW_IDS,
	BATCH_VIEW_WEIGHTS,
	BATCH_VIEW_ACTIVATIONS,
	BATCH_VIEWS,
};

/**
 * struct batch_feature - one feature's checked input
 * @given: private copy of the descriptor
 * @outputs: rows of the activations: samples, or samples * max_sequence_length
 * @occurrences: rows that are read
 * @asked: ids that count as asked for: not those beyond a sequence's length
 * @rows: [occurrences] u64, KERNEL_ROW_ZERO by policy; u32 when they are @narrow
 * @bag: [outputs + 1] u64, into @rows
 * @outputs_of: [occurrences] u32, gradient row; training, unless it is the identity; an update makes
 *	it where it needs it
 * @weights: [occurrences] f32, when given
 * @scales: [outputs] f32, unless they are all 1
 * @coef: [occurrences] f32, training, unless they are @weights or all 1
 * @offsets: [samples + 1] u64, where @bag is made from them
 * @holders: [outputs][dim] u32, training, with the combiner max: the first occurrence that holds the
 *	largest number of a column. A LOOKUP writes them, and for one that takes ids alone the step
 * @views: batch_open()
 * @fault: set if @status is not 0
 * @status: the copy's
 */
struct batch_feature {
	struct embeng_lookup_feature given;
	u64 outputs, occurrences, asked;
	u64 dropped, clamped, zeroed;
	bool weighted, scaled, identity, narrow;
	bool placed;  /* a stack has it as a member */
	bool largest; /* outputs are the largest numbers of the rows, not sums */
	struct buffer rows, bag, outputs_of, weights, scales, coef, offsets, holders;
	struct view views[BATCH_VIEWS];
	struct fault fault;
	u16 status;
};

/* A stretch of outputs of one feature, so that one call does bounded work. */
struct batch_task {
	u32 feature;
	u64 first, last;
};

/**
 * struct stacks - memory for taking the stacks of a LOOKUP apart, kept from one to the next
 * @header: private copy
 * @stacks: [stack_count] struct embeng_lookup_stack, private copies
 * @members: [member_count] struct stack_member
 * @bounds: [2][device_cores] u64, of one stack
 * @items: struct stack_item, of one stack
 */
struct stacks {
	struct embeng_lookup header;
	struct buffer stacks, members, bounds, items;
};

struct batch {
	struct batch *next;
	struct batch_feature *features;
	u32 feature_count;
	struct stacks stacks; /* used while one is accepted */
	struct buffer tasks;  /* [task_count] struct batch_task */
	u64 task_count;
	u64 occurrences, bytes;
	bool ids_only; /* no row is looked up before the step is applied */
};

/* Each sample has one id, and no offsets. */
static inline bool form_is_dense(u32 form)
{
	return form == EMBENG_FORM_DENSE || form == EMBENG_FORM_ROWS;
}

/* Positions that each sample keeps in order, 0: its ids are combined. */
static inline u64 batch_sequence(const struct model *model, u32 feature,
				 const struct batch_feature *f)
{
	return f->given.form == EMBENG_FORM_CSR ?
		       model->blob.features[feature].max_sequence_length :
		       0;
}

/* Ids outside a table are kept as they were given until its policy says what they mean. */
static inline bool batch_narrow(const struct embeng_record_table *table)
{
	return table->out_of_range == EMBENG_OUT_OF_RANGE_ERROR && table->rows <= U32_MAX;
}

/* Rows of a feature are in one of two widths; NULL in the other. */
static inline const u64 *batch_wide_rows(const struct batch_feature *f)
{
	return f->narrow ? NULL : f->rows.data;
}

static inline const u32 *batch_narrow_rows(const struct batch_feature *f)
{
	return f->narrow ? f->rows.data : NULL;
}

static inline u64 batch_row(const struct batch_feature *f, u64 k)
{
	return f->narrow ? batch_narrow_rows(f)[k] : batch_wide_rows(f)[k];
}

static inline void batch_put_row(struct batch_feature *f, u64 k, u64 row)
{
	if (f->narrow)
		((u32 *)f->rows.data)[k] = (u32)row;
	else
		((u64 *)f->rows.data)[k] = row;
}

/* Buffers of a feature, in the order of its members. */
enum batch_buffer {
	BATCH_ROWS,
	BATCH_BAG,
	BATCH_OUTPUTS_OF,
	BATCH_WEIGHTS,
	BATCH_SCALES,
	BATCH_COEF,
	BATCH_OFFSETS,
	BATCH_HOLDERS,
	BATCH_BUFFERS,
};

/**
 * struct batch_size - how large one feature's input is
 * @samples: as given
 * @ids: as given
 * @length: positions kept of each sample, 0: its ids are combined
 * @weighted: with weights
 * @scaled: outputs have scales
 * @identity: id k is output k
 * @narrow: rows are kept in 32 bits
 * @training: gradients will come
 * @held: batch_held()
 */
struct batch_size {
	u64 samples, ids, length;
	bool weighted, scaled, identity, narrow, training;
	u32 held;
};

/* Bytes of each buffer that such an input needs; 0: none. -1 when no number says it. */
int batch_needs(const struct batch_size *size, u64 bytes[BATCH_BUFFERS]);

/* The scales that the combiner of @feature's table asks for, if its ids are combined. */
static inline bool batch_scaled(u32 combiner, u32 form, u64 length)
{
	return combiner != EMBENG_COMBINER_SUM && combiner != EMBENG_COMBINER_MAX &&
	       !form_is_dense(form) && !length;
}

/* Columns of each output whose largest number has a holder; 0: sums have none, nor has one id. */
static inline u32 batch_held(const struct embeng_record_table *table, u32 form, u64 length)
{
	if (table->combiner != EMBENG_COMBINER_MAX || form_is_dense(form) || length)
		return 0;
	return table->dim;
}

/* Memory for such an input. 0, or -1 without memory. */
int batch_fit(struct model *model, struct batch_feature *f, const struct batch_size *size);

/* The largest input that the model allows a feature, where it says. */
struct batch_size batch_largest(const struct blob *blob, u32 feature, bool training);

/*
 * The model that a command's batch is of: the loaded one, or one that an exchange of rows brings with it
 * (exchange/exchange.h).
 */
static inline struct model *command_model(const struct command *command)
{
	return command->brought ? command->brought : command->context->model;
}

struct batch *batch_new(struct model *model);
void batch_free(struct batch *batch);
/* The memory of a batch that is part of something else. */
void batch_release(struct batch *batch);

/* Memory for the largest batches that the model allows, where it says. */
int batch_reserve(struct model *model, struct batch *batch, bool training);

/* Whether a LOOKUP is one of training, whose batch is its step's. */
static inline bool lookup_trains(const struct command *command)
{
	return command->queue->kind == EMBENG_QUEUE_INPUT;
}

/* The batch of a LOOKUP or UPDATE; an inference has one of its own. */
static inline struct batch *batch_of(const struct command *command)
{
	const struct queue *q = command->queue;

	if (q->kind == EMBENG_QUEUE_INFERENCE)
		return command->state;
	return model_part(command->context->model, command->cmd.step, q->replica)->batch;
}

/**
 * batch_take() - check and copy what the features of a batch name
 * @command: it brings or uses the model
 * @batch: each feature has its descriptor; no activations are asked for if it has ids alone
 * @training: keep what gradients will need
 *
 * Return: 0 or the status of the first feature that has a mistake, with command->fault.
 */
u16 batch_take(struct command *command, struct batch *batch, bool training);

/* Occurrences of a step are numbered in 32 bits, those of all replicas together. 0 or a status. */
u16 batch_check_total(const struct model *model, const struct batch *batch, struct fault *fault);

/* The outputs of a batch, which is cut: 0 or a status with command->fault. */
u16 lookup_outputs(struct command *command, const struct batch *batch);

/* Phases of LOOKUP: accepting checks and copies all that it names into its batch. */
u16 lookup_accept(struct command *command);
u64 lookup_touched(const struct command *command);
u16 lookup_run(struct command *command);

/**
 * lookup_holders() - find the holders of a batch's largest numbers, where no lookup did
 * @command: it runs
 * @batch: a LOOKUP's that took ids alone; those of tables that the update changes are found
 *
 * Return: as workers_run().
 */
bool lookup_holders(struct command *command, const struct batch *batch);

/**
 * batch_open() - map the arrays that a checked descriptor names
 * @f: its views; batch_close() them, whatever is returned
 * @index: the feature's
 *
 * Return: 0 or a status with command->fault.
 */
u16 batch_open(struct command *command, struct batch_feature *f, u32 index);
void batch_close(struct context *context, struct batch_feature *f);

/**
 * batch_copy() - check and copy the arrays of the first @count features
 * @batch: its features are open, with memory by ids_fit()
 * @count: how many of these
 * @training: keep what gradients will need
 *
 * Return: 0 or the status of the first feature that has a mistake, with command->fault.
 */
u16 batch_copy(struct command *command, struct batch *batch, u32 count, bool training);

/* ids.c: one feature's ids, offsets and weights, resolved. */
struct batch_input {
	const void *ids, *offsets, *weights;
	bool stream; /* narrow ids past the caches */
};

/* Memory for the copy. */
u16 ids_fit(struct model *model, u32 feature, struct batch_feature *f, bool training,
	    struct fault *fault);

/* Into memory that ids_fit() got: touches nothing but @f and @fault. */
u16 ids_copy(struct command *command, u32 feature, struct batch_feature *f,
	     const struct batch_input *in, struct fault *fault);

/* Ids of a feature where others may write, and how many rows there are. */
struct given_ids {
	const void *from;
	u64 limit;
	u32 width;
};

/*
 * Ids [@first, @last) copied to @to, all below the limit of at most 2^32; what is kept of each is
 * what was looked at. @stream: past the caches. Return: 0, or a status with the fault of one. Where
 * @command, which may be NULL, is to stop, some are missing.
 */
u16 ids_take(struct command *command, const struct kernel_ops *kernels, u32 *to,
	     const struct given_ids *ids, u64 first, u64 last, bool stream, u32 feature,
	     struct fault *fault);

/*
 * Copies @count numbers of @width bytes, signed, that others may write; each is read once. Return: as
 * piece_over().
 */
bool ids_widen_all(struct command *command, u64 *to, const void *from, u64 count, u32 width);

/* Whether [@samples + 1] @offsets run from 0 up to @ids; true if @command is to stop. */
u16 ids_check_offsets(struct command *command, const u64 *offsets, u64 samples, u64 ids,
		      u32 feature, struct fault *fault);

/* scales.c: what weights and combiner mean for outputs and gradients. */
void scales_make(struct command *command, u32 feature, struct batch_feature *f, bool training);

/* Scales of samples [@first, @last), in calls of bounded work; some where @command is to stop. */
void scales_run(struct command *command, const struct kernel_scale_work *work, u64 first, u64 last);

/* Cuts the work of a batch into tasks. Return: 0, or -1 without memory or where it is to stop. */
int batch_cut(struct command *command, struct batch *batch);

/* Room in the list of tasks after it had @room. */
static inline u64 batch_task_room(u64 room)
{
	return room * 2 + 64;
}

/* Coefficients of gradients: f32 per occurrence, or NULL for all 1. */
const void *batch_coef(const struct batch_feature *f);

#endif
