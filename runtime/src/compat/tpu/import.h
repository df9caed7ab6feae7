/* SPDX-License-Identifier: MIT */
#ifndef EMBENG_TPU_IMPORT_H
#define EMBENG_TPU_IMPORT_H

#include "model/shape.h"
#include "optimizer.h"
#include "embeng/tpu.h"

/**
 * struct importing - a configuration that is being turned into a model
 * @from: the message that protobuf-c read
 * @hooks: the caller's hooks; all members are NULL if there are none
 * @model: empty at first, then filled
 * @settings: filled, except for the hot ids
 * @hot_ids: [tables] zeroed at first, then filled
 * @tags: [tables] tags of the dynamic values of each optimizer
 * @counted: features are given as counts for each table, too
 * @names: names of the rates of the table that is being read
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

/* Return: 0, or a negative errno with a sentence that starts with the path of the field. */
int tpu_model_read(struct importing *im);

#endif
