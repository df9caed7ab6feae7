// SPDX-License-Identifier: MIT
/*
 * The table of TensorFlow's operators of this package: their names, attributes, inputs and outputs, and
 * the kernels of each. It is a file of its own because all files of kernels meet in it, and tensorflow.c,
 * which registers the operators, knows none by name.
 *
 * All of it is constant.
 */
#include "tensorflow.h"

/* All operators have these. Features are indices in the engine, each with a form. */
#define FEATURE_ATTRS \
	"handle: int", "features: list(int) >= 1", "forms: list(int) >= 1", \
		"Tids: list({int32, int64}) >= 1", "Tbounds: list({int32, int64}) >= 0", \
		"W: int >= 0", "N: int >= 1"
#define FEATURE_INPUTS "ids: Tids", "bounds: Tbounds", "weights: W * float"

static const char *const reader_attrs[] = {FEATURE_ATTRS, "paddings: list(int) >= 1", NULL};
static const char *const updater_attrs[] = {
	FEATURE_ATTRS,	    "paddings: list(int) >= 1",	     "R: int >= 0",
	"replica: int = 0", "rate_names: list(string) >= 0", NULL};
static const char *const lookup_inputs[] = {FEATURE_INPUTS, NULL};
static const char *const lookup_outputs[] = {"activations: N * float", NULL};
static const char *const update_inputs[] = {FEATURE_INPUTS, "gradients: N * float",
					    "rates: R * float", "multiplier: float", NULL};
static const char *const weight_inputs[] = {FEATURE_INPUTS, "gradients: N * float", NULL};
static const char *const weight_outputs[] = {"weight_gradients: W * float", NULL};
static const char *const norm_outputs[] = {"norm: double", NULL};
static const char *const no_outputs[] = {NULL};

/* Operators of steps have the resource that orders them as their last input. */
#define STEP_ATTRS "handle: int", "timeout_ms: int >= 0"
static const char *const enqueue_attrs[] = {STEP_ATTRS,
					    "mode: int",
					    "replicas: list(int) >= 1",
					    "features: list(int) >= 1",
					    "forms: list(int) >= 1",
					    "samples: list(int) >= 1",
					    "Tids: list({int32, int64}) >= 1",
					    "Tbounds: list({int32, int64}) >= 0",
					    "W: int >= 0",
					    NULL};
static const char *const enqueue_inputs[] = {FEATURE_INPUTS, "token: resource", NULL};
static const char *const dequeue_attrs[] = {
	STEP_ATTRS, "replica: int", "ranks: list(int) >= 1", "dims: list(int) >= 1", "N: int >= 1",
	NULL};
static const char *const dequeue_inputs[] = {"token: resource", NULL};
static const char *const apply_attrs[] = {
	STEP_ATTRS,    "replica: int", "features: list(int) >= 0",
	"N: int >= 0", "R: int >= 0",  "rate_names: list(string) >= 0",
	NULL};
static const char *const apply_inputs[] = {"gradients: N * float", "rates: R * float",
					   "token: resource", NULL};

/* Operators of entries have their lists as [tables] of each kind, with that resource behind them. */
static const char *const list_attrs[] = {FEATURE_ATTRS,
					 "sample_counts: list(int) >= 1",
					 "names: list(string) >= 1",
					 "table_names: list(string) >= 1",
					 "rows: list(int) >= 1",
					 "combiners: list(int) >= 1",
					 NULL};
static const char *const list_inputs[] = {FEATURE_INPUTS, "token: resource", NULL};
static const char *const list_outputs[] = {"row_pointers: N * int32", "sample_ids: N * int32",
					   "token_ids: N * int32", "gains: N * float", NULL};
#define ENTRY_ATTRS \
	"handle: int", "features: list(int) >= 1", "sample_counts: list(int) >= 1", \
		"names: list(string) >= 1", "N: int >= 1"
#define ENTRY_INPUTS "sample_ids: N * int32", "token_ids: N * int32", "gains: N * float"
static const char *const entry_lookup_attrs[] = {ENTRY_ATTRS, NULL};
static const char *const entry_lookup_inputs[] = {ENTRY_INPUTS, "token: resource", NULL};
static const char *const entry_update_attrs[] = {ENTRY_ATTRS, "replica: int", "R: int >= 0",
						 "rate_names: list(string) >= 0", NULL};
static const char *const entry_update_inputs[] = {ENTRY_INPUTS, "gradients: N * float",
						  "rates: R * float", "token: resource", NULL};

const struct tf_operator tf_operators[] = {
	{"EmbengLookup", reader_attrs, lookup_inputs, lookup_outputs, tf_make_reader,
	 tf_compute_lookup},
	{"EmbengUpdate", updater_attrs, update_inputs, no_outputs, tf_make_updater,
	 tf_compute_update},
	{"EmbengWeightGradients", reader_attrs, weight_inputs, weight_outputs, tf_make_reader,
	 tf_compute_weight_gradients},
	{"EmbengGradientNorm", reader_attrs, weight_inputs, norm_outputs, tf_make_reader,
	 tf_compute_gradient_norm},
	{"EmbengEnqueue", enqueue_attrs, enqueue_inputs, no_outputs, tf_make_enqueue,
	 tf_compute_enqueue},
	{"EmbengDequeue", dequeue_attrs, dequeue_inputs, lookup_outputs, tf_make_dequeue,
	 tf_compute_dequeue},
	{"EmbengApplyGradients", apply_attrs, apply_inputs, no_outputs, tf_make_apply,
	 tf_compute_apply},
	{"EmbengListEntries", list_attrs, list_inputs, list_outputs, tf_make_list_entries,
	 tf_compute_list_entries},
	{"EmbengLookupEntries", entry_lookup_attrs, entry_lookup_inputs, lookup_outputs,
	 tf_make_lookup_entries, tf_compute_lookup_entries},
	{"EmbengUpdateEntries", entry_update_attrs, entry_update_inputs, no_outputs,
	 tf_make_update_entries, tf_compute_update_entries},
};
const size_t tf_operator_count = sizeof(tf_operators) / sizeof(*tf_operators);
