/* SPDX-License-Identifier: MIT */
/* Tensors that become the tables of a checkpoint. */
#ifndef CLI_IMPORT_H
#define CLI_IMPORT_H

#include "../tensors/tensor.h"
#include "commands.h"

/**
 * struct import_table - a table, and the tensor that its rows come from
 * @name: name of the table; the caller's or the tensor's
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

#endif
