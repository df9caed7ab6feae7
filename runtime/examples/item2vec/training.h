/* SPDX-License-Identifier: MIT */
/* What a checkpoint says of a training beside its tables: the text of its program state. */
#ifndef ITEM2VEC_TRAINING_H
#define ITEM2VEC_TRAINING_H

#include "trainer.h"

/**
 * struct training - a training between two steps
 * @settings: that a later run must share
 * @data: dataset_hash() of what is learnt from
 */
struct training {
	struct settings settings;
	uint64_t data;
	struct place place;
};

#define TRAINING_ERROR 256

/* The text, malloc'd, the same bits back from training_read(); NULL: out of memory. */
char *training_text(const struct training *training);

/* 0, or with a sentence in @error -EBADMSG: not what embeng train wrote, or -ENOMEM. */
int training_read(const char *text, struct training *training, char error[TRAINING_ERROR]);

#endif
