/* SPDX-License-Identifier: MIT */
#ifndef EMBENG_TPU_IMPORT_H
#define EMBENG_TPU_IMPORT_H

#include "model/shape.h"
#include "optimizer.h"

/**
 * struct importing - a configuration that becomes a model
 * @from: what protobuf-c read
 * @hooks: all NULL: none
 * @model: empty; filled
 * @settings: filled but for the hot ids
 * @hot_ids: [tables], zeroed; filled
 * @tags: [tables]
 * @counted: features are told by counts, too
 * @names: of the rates of the table under way
 */
struct importing {
	const Tpu__Configuration *from;
	struct embeng_tpu_hooks hooks;
	struct embeng_model *model;
	struct embeng_tpu_settings settings;
	enum embeng_tpu_hot_ids *hot_ids;
	struct tpu_tags *tags;
	bool counted;
	char names[2][24];
};

/* 0 or a negative errno with a sentence that starts with a path. */
int tpu_model_read(struct importing *im);

#endif
