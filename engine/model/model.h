/* SPDX-License-Identifier: MIT */
/*
 * Inside the model layer: a loaded model, its tables, its steps.
 *
 * Each part says what engine->lock guards of it and what belongs to the running command.
 * One command of a device runs at a time, so what only running commands touch needs no lock.
 */
#ifndef EMBENG_ENGINE_MODEL_H
#define EMBENG_ENGINE_MODEL_H

#include "../../uapi/embeng_steps.h"
#include "../device/pieces.h"
#include "../blob/blob.h"
#include "../update/hot_rows.h"
#include "../update/kept_rows.h"
#include "../kernels/kernels.h"
#include "../memory/operand.h"
#include "../update/row_sort.h"
#include "../memory/snapshot.h"

struct batch;
struct lane;
struct update;

/*
 * struct table_stats - the sums behind struct embeng_stats
 *
 * Written by running commands, but for the counts of policies and of what is not finite, to which
 * several threads add: engine->lock.
 */
struct table_stats {
	u64 ids, unique_ids, steps, updated_rows, untouched_rows;
	u64 nonfinite_gradient_rows; /* atomic while rows are updated */
	u64 dropped, clamped, zeroed;
	u64 nonfinite_activations, nonfinite_rows;
	u64 core_ids[EMBENG_STATS_CORES];
	struct hot hot;
};

/*
 * struct stale_rows - parameters as they were before an update that came early
 *
 * They are those of the rows @rows, [@count][dim] in @data, or of the whole table in @whole; see
 * lookup/stale.h.
 */
struct stale_rows {
	u64 *rows;
	u32 *data;
	u64 count, rows_bytes, data_bytes;
	u32 *whole;
};

struct table {
	struct embeng_record_table record;
	u32 index;
	u32 first_part; /* the first part of its features, for all replicas, among the model's */
	u32 kernel;	/* enum kernel_optimizer_kind, U32_MAX: no optimizer */
	bool quantized;
	struct kernel_quantization quantization; /* for lookups, when @quantized */
	u64 bytes;				 /* size of data; see table_array_bytes() */
	struct fetch_way lookup, update;	 /* how their kernels fetch its rows ahead */
	u32 *data;
	u32 *slots[EMBENG_SLOTS_MAX];
	u32 *staged[1 + EMBENG_SLOTS_MAX]; /* by slot as rows name it, or NULL */
	struct kept_rows kept;		   /* its old rows, for a snapshot */
	struct table_stats stats;
	u64 counted;  /* training steps up to here are in the statistics */
	u64 due;      /* occurrences of the step that is applied */
	bool suspect; /* some gradient of that step is not finite */
	u64 idle;     /* optimizer steps of the model that the table was frozen for */
	u64 added;    /* the last applied step when the table came, 0: before any */
	u32 mapped;   /* maps of a host that has its address: its arrays stay where they are */
	bool frozen;  /* updates leave it alone; only for a table with an optimizer */
	struct stale_rows stale;
};

/* The part that one replica gave to one step; engine->lock until the step is applied. */
struct part {
	struct command *lookup; /* accepted */
	struct command *update;
	struct batch *batch; /* private copies of the lookup's ids */
	struct update *gradients;
};

struct step {
	u64 number;
	u64 unique_rows; /* in the applied update */
	u32 rates_given; /* parts whose rates were taken: all have these bits */
	u32 multiplier;
	u32 *rates;
	struct part *parts; /* [replicas] */
};

/* Commands of a replica that are being checked and copied; engine->lock. */
struct accepting {
	bool lookup, update;
};

enum model_state { MODEL_LOADING, MODEL_READY, MODEL_CHANGING };

struct model {
	struct engine *engine;
	struct context *context;
	struct blob blob;
	u32 state;		/* enum model_state; engine->lock, as all up to @steps */
	u64 users;		/* commands with holds_model */
	struct command *change; /* unloads or extends it; accepted and not finished */
	u64 applied;		/* last step whose update is in the tables */
	u64 optimizer_steps;
	struct embeng_replica_steps *replicas; /* [replicas], as @accepting */
	struct accepting *accepting;
	struct step *steps;  /* [depth], step n at n % depth */
	struct batch *spare; /* for inference, linked by next */
	u32 depth;
	bool pipelining;
	bool trains;	/* the table of some feature has an optimizer, or there are no features */
	u64 stale_step; /* update that LOOKUPs of the next step do not see, 0: none */
	struct table *tables;
	u64 table_bytes; /* taken of the engine's table memory */
	u64 memory;	 /* bytes of all that model_alloc() and grow() gave; atomic */
	u32 snapshot;	 /* number of the one that exists, or 0; the running command's */
	u32 snapshots;	 /* number of the last one that began */
	u32 *zeros;	 /* a row of zeros, of the largest dim */
	u32 largest_dim;
	/* The running command's. */
	struct command *command;
	struct lane *lanes;		  /* [cores] */
	struct partition_source *sources; /* [replicas * features], by table */
	struct kernel_segment *segments;  /* [replicas * features], by table */
	struct view *gradients;		  /* [replicas * features]; activations, too */
	u8 *scratch;			  /* [cores][scratch_stride], for the update kernels */
	u64 scratch_stride;
};

static inline struct step *model_step(struct model *model, u64 number)
{
	return &model->steps[number % model->depth];
}

static inline struct part *model_part(struct model *model, u64 number, u32 replica)
{
	return &model_step(model, number)->parts[replica];
}

/* Whether an update changes the table at all. */
static inline bool table_trains(const struct table *table)
{
	return table->kernel != U32_MAX && !table->frozen;
}

/* For lookups of the table. */
static inline const struct kernel_quantization *table_quantization(const struct table *table)
{
	return table->quantized ? &table->quantization : NULL;
}

/* Where a table or slot lies; @slot as rows name it. */
static inline u32 **table_array(struct table *table, u32 slot)
{
	return slot ? &table->slots[slot - 1] : &table->data;
}

/* Whether the replica has said that it gives its part of a step no gradients. */
static inline bool part_is_discarded(const struct part *part)
{
	return part->update && part->update->cmd.flags & EMBENG_CMD_DISCARD;
}

/* Numbers that a row has in a table or slot; @slot as rows name it. */
static inline u32 table_width(const struct table *table, u32 slot)
{
	return embeng_slot_width(table->record.optimizer, slot, table->record.dim);
}

static inline u64 table_row_bytes(const struct table *table, u32 slot)
{
	return 4ull * table_width(table, slot);
}

static inline u64 table_array_bytes(const struct table *table, u32 slot)
{
	return table->record.rows * table_row_bytes(table, slot);
}

/* Bytes of a row with its slots. */
static inline u64 table_whole_row_bytes(const struct table *table)
{
	u64 bytes = 0;

	for (u32 slot = 0; slot <= table->record.slot_count; slot++)
		bytes += table_row_bytes(table, slot);
	return bytes;
}

static inline u32 model_replicas(const struct model *model)
{
	return model->blob.engine.replicas;
}

/* Whether a feature's weights and gains must be finite. */
static inline bool model_checks_weights(const struct model *model, u32 feature)
{
	return model->blob.features[feature].flags & EMBENG_FEATURE_FINITE_WEIGHTS ||
	       !(model->blob.engine.flags & EMBENG_ENGINE_GRADIENTS_ALLOW);
}

/* The counts that the rules of steps are asked with; engine->lock. */
static inline struct embeng_steps model_steps(const struct model *model)
{
	return (struct embeng_steps){
		.replicas = model->replicas,
		.replica_count = model_replicas(model),
		.depth = model->depth,
		.applied = model->applied,
		.pipelining = model->pipelining,
	};
}

/* load.c: phases of MODEL_LOAD, and what frees a model. */
u16 load_accept(struct command *command);
u16 load_run(struct command *command);
/*
 * Fills a model, whose blob is parsed, with memory; tables before @first get none. @bytes: out, taken of
 * the table memory for the model that the context has.
 */
u16 load_make(struct command *command, struct model *model, u32 first, u64 *bytes);
/* @beat: called after each table, with whatever locks the caller holds. */
void model_free_tables(struct model *model, void (*beat)(struct engine *engine));
void model_free(struct model *model);
/* Numbers the parts of a step: those of a table follow each other. */
void model_number_parts(struct model *model);

/* table_memory.c */
/* Takes some of the engine's table memory; NO_SPACE with @field at fault. */
u16 table_memory_take(struct command *command, u64 bytes, u32 field);
void table_memory_give(struct model *model, u64 bytes);
/* @bytes more, or less; engine->lock held. */
void table_memory_change(struct model *model, u64 bytes);

/* Bytes of a row of zeros, for rows of up to @dim. */
static inline u64 model_zeros_bytes(u32 dim)
{
	return 4ull * dim + 4;
}

/* fill_rows.c */
struct kernel_fill;
/* Return: false where the running command is to stop. */
bool fill_range(struct model *model, const struct kernel_fill *fill, u64 rows);

/* rows.c, stage.c, stats.c, freeze.c: phases of their verbs. */
u16 rows_accept(struct command *command);
u64 rows_touched(const struct command *command);
u16 rows_run(struct command *command);
void rows_release(struct command *command);
u16 stage_accept(struct command *command);
u16 stage_run(struct command *command);
bool stats_is_now(const struct command *command);
u16 stats_accept(struct command *command);
enum verdict stats_ready(struct command *command, struct wait *wait);
u64 stats_touched(const struct command *command);
u16 stats_run(struct command *command);
u16 state_accept(struct command *command);
u16 state_run(struct command *command);
u16 freeze_accept(struct command *command);
u16 freeze_run(struct command *command);

/* table_snapshot.c: phases of its verbs. */
u16 snapshot_run(struct command *command);
u16 snapshot_end_run(struct command *command);
/* 0 when the snapshot that a command names exists, and @table, where given, is in it. */
u16 snapshot_find(struct command *command, const struct table *table);

/* Samples, rows or groups of one kernel call: bounds the time without preemption. */
static inline u64 chunk_rows(u32 dim)
{
	u64 rows = CHUNK_NUMBERS / dim;

	return rows > CHUNK_ROWS ? CHUNK_ROWS : rows ? rows : 1;
}

static inline u64 model_core(u64 row, u32 table, u32 cores)
{
	u64 core = (row <= U32_MAX ? (u32)row % cores : row % cores) + table % cores;

	return core < cores ? core : core - cores;
}

/* grow.c: memory that may be large is cleared in pieces. @engine: NULL: none waits for signs of life */
void *alloc_large(struct engine *engine, u64 bytes);
void *alloc_table(struct engine *engine, u64 bytes);

/* Memory that a model holds beside its tables. It is counted until model_free(). */

/* Zeroed memory that stays as long as the model; engine->lock may be held. */
void *model_alloc(struct model *model, u64 bytes);
/* @bytes more, or less, that are the model's. */
void model_count(struct model *model, u64 bytes);
/*
 * Memory of at least @bytes in *p; what it held is lost when it has to grow.
 * @model: its owner; NULL: nobody counts it
 */
int grow(struct model *model, void **p, u64 *have, u64 bytes);
/* The same for memory that is no model's. */
int grow_uncounted(struct engine *engine, void **p, u64 *have, u64 bytes);
/* The bytes that grow() makes of @have bytes. */
u64 grow_to(u64 have, u64 bytes);

#endif
