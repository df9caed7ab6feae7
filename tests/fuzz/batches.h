/* SPDX-License-Identifier: MIT */
/* A context with a model, its queues and memory, and descriptors made of an input's bytes. */
#ifndef EMBENG_FUZZ_BATCHES_H
#define EMBENG_FUZZ_BATCHES_H

#include "arena.h"
#include "model.h"
#include "watch.h"

#define REPLICAS 2u
#define QUEUES (2 * REPLICAS + 2)

struct session {
	struct rig *rig;
	struct fuzz_model model;
	u64 hash;
	struct arena in, out, both, small;
	struct direct_blob blob;
	union {
		struct watch queues[QUEUES];
		struct {
			struct watch input[REPLICAS], gradient[REPLICAS], inference, transfer;
		};
	};
	u64 looked[REPLICAS], updated[REPLICAS]; /* last step that was tried */
	u32 loads;				 /* that were tried */
	bool ids_only;				 /* lookups have no activations */
	bool stacked;				 /* most lookups have partitioned CSR as input */
};

/* Makes a device and loads a model that the input's bytes choose. */
struct session *session_new(struct fuzz *f);

/* Ends the context and checks that the device still works. */
void session_free(struct session *s);

void session_settle(struct session *s);

/* Last step in the tables, 0 without a model. */
u64 session_applied(const struct session *s);

struct watch *session_any(struct session *s, struct fuzz *f);

/* Takes a key or a queue away while commands may use it. */
void session_change(struct session *s, struct fuzz *f);

/* Puts data that the device reads somewhere; now and then where it should not be. */
struct embeng_mem session_put(struct session *s, struct fuzz *f, const void *data, u64 bytes);

/* Stacks of the features that are of form PARTITIONED. */
struct session_stacks {
	struct embeng_lookup_stack stacks[2];
	struct embeng_lookup_member members[MODEL_FEATURES + 2];
	u32 stack_count, member_count;
};
void session_stacks(struct session *s, struct fuzz *f, const struct embeng_lookup_feature *features,
		    struct session_stacks *out);

struct embeng_mem session_blob(struct session *s);
struct embeng_mem session_lookup(struct session *s, struct fuzz *f);
struct embeng_mem session_update(struct session *s, struct fuzz *f, u32 replica, u64 step);
struct embeng_mem session_rows(struct session *s, struct fuzz *f, u16 opcode);

#endif
