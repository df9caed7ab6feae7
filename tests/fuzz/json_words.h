/* SPDX-License-Identifier: MIT */
/* Keys and texts that mean something in a vector or in a checkpoint's index. */
#ifndef EMBENG_FUZZ_JSON_WORDS_H
#define EMBENG_FUZZ_JSON_WORDS_H

/* clang-format off */
static const char *const json_words[] = {
	"schema", "name", "about", "source", "requires", "engine", "replicas", "cores", "hosts",
	"sharding", "div", "mod", "pipelining", "tables", "vocabulary_size", "dim", "combiner", "mean",
	"sum", "sqrtn", "initial", "slots", "accumulators", "out_of_range", "error", "clamp", "drop",
	"zero", "optimizer", "kind", "sgd", "adagrad", "adam", "ftrl", "learning_rate", "dynamic",
	"clipvalue", "clip_weight_min", "clip_weight_max", "weight_decay_factor",
	"multiply_weight_decay_factor_by_learning_rate", "use_gradient_accumulation", "features",
	"table", "max_sequence_length", "output_shape", "validate_weights_and_indices",
	"model_error", "steps", "errno", "ERANGE", "EINVAL", "contains", "enqueue", "training",
	"replica", "dense", "shape", "weights", "sparse", "indices", "values", "ragged", "rows",
	"row_splits", "dequeue", "expect", "atol", "rtol", "apply_gradients", "gradients",
	"learning_rates", "expect_table", "slot", "parameters", "expect_stats", "ids", "unique_ids",
	"dropped_ids", "clamped_ids", "zeroed_ids", "fill", "arange", "row_id", "reopen", "lookup",
	"config", "save", "restore", "dir", "expect_config", "hex", "import_hex", "stacking",
	"partition", "flavour", "tf", "jax", "quantization", "num_buckets", "program",
	"embeng.vector/1", "embeng.checkpoint.index/1", "embeng.checkpoint.index/2", "step", "model_hash",
	"program_state", "files", "bytes", "first", "chunks", "crc32c", "chunks_sha256", "F32",
	"dtype", "data_offsets", "__metadata__", "non_finite", "allow", "multiplier",
	"part", "first_row", "row_step", "first_column", "initializer", "uniform", "seed",
};
/* clang-format on */

#define JSON_WORDS (uint32_t)(sizeof(json_words) / sizeof(json_words[0]))

#endif
