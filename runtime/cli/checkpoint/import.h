/* SPDX-License-Identifier: MIT */
/* Tensors that become the tables of a checkpoint. */
#ifndef CLI_IMPORT_H
#define CLI_IMPORT_H

#include "../tensors/tensor.h"
#include "commands.h"
#include "edit.h"

/**
 * struct import_table - a table, and the tensor that its rows come from
 * @name: name of the table, or TABLE/SLOT where rows are replaced; the caller's or the tensor's
 */
struct import_table {
	const char *name;
	struct tensor_file *file;
	const struct tensor *tensor;
};

/**
 * import_save() - write a checkpoint of tables without optimizers
 * @dir: folder, which is made if it is not there
 * @tables: [count] tables in their order
 *
 * Return: 0, or an exit code after the failure was reported.
 */
int import_save(const struct output *out, const char *dir, const struct import_table *tables,
		size_t count);

/**
 * import_rows() - write a checkpoint again with rows from tensors
 * @edit: the old checkpoint, open, and the folder of the new one
 * @tables: [count] the tensors, by the names of the tables or slots that they go into
 * @first: row that the first row of each tensor replaces; negative: a tensor has all rows
 *
 * Return: 0, or an exit code after the failure was reported.
 */
int import_rows(struct edit *edit, const struct import_table *tables, size_t count, int64_t first);

/* Whether a model has a table NAME, or a slot TABLE/SLOT. */
bool import_has_array(const struct embeng_model *model, const char *name);

#endif
