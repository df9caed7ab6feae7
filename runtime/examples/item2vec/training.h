/* SPDX-License-Identifier: MIT */
/* The program state of a checkpoint: everything about a training except its tables, as text. */
#ifndef ITEM2VEC_TRAINING_H
#define ITEM2VEC_TRAINING_H

#include "trainer.h"

/**
 * struct training - state of a training between two steps
 * @settings: settings that a resumed run must share
 * @data: dataset_hash() of the data
 */
struct training {
	struct settings settings;
	uint64_t data;
	struct place place;
};

#define TRAINING_ERROR 256

/*
 * Writes the state as malloc'd text, from which training_read() gets the same bits. NULL without
 * memory.
 */
char *training_text(const struct training *training);

/* Reads the state. Return: 0, or with a sentence in @error -EBADMSG for other text, or -ENOMEM. */
int training_read(const char *text, struct training *training, char error[TRAINING_ERROR]);

#endif
