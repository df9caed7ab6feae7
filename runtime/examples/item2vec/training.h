/* SPDX-License-Identifier: MIT */
/* The program state of a checkpoint: everything about a training except its tables, as text. */
#ifndef ITEM2VEC_TRAINING_H
#define ITEM2VEC_TRAINING_H

#include "../../cli/lookup/row_names.h"
#include "trainer.h"

/**
 * struct training - state of a training between two steps
 * @settings: settings that a resumed run must share
 * @data: dataset_hash() of the data
 * @last_epoch: number of epochs after which the training is at its end; 0: the settings say it
 * @names: mark of the names of the items, which are the rows
 */
struct training {
	struct settings settings;
	uint64_t data;
	int64_t last_epoch;
	struct row_names_mark names;
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
