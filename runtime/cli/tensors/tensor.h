/* SPDX-License-Identifier: MIT */
/*
 * Reads tensors from the files of other programs: .npy, .safetensors, and the zip of tensors that
 * torch.save() writes. A file may come from anywhere, so nothing in it is trusted or run.
 */
#ifndef CLI_TENSOR_H
#define CLI_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TENSOR_WHY 512

enum tensor_type { TENSOR_OTHER, TENSOR_F16, TENSOR_BF16, TENSOR_F32, TENSOR_F64 };

/**
 * struct tensor - one tensor of a file
 * @name: UTF-8; "" for the only one of a file that does not name it
 * @type: type of the elements; only floats can be read
 * @rank: number of dimensions; only two can be read
 * @shape: rows and columns, if @rank is 2
 * @stride: elements from one row to the next, and from one column to the next
 * @at: offset of the first element in the file
 */
struct tensor {
	char *name;
	enum tensor_type type;
	size_t rank;
	uint64_t shape[2], stride[2];
	uint64_t at;
};

/**
 * struct tensor_file - a file that is open
 * @big_endian: order of the bytes of its elements
 * @list: [count] its tensors, in the order of the file
 * @why: after a failure, a sentence that begins with the path
 */
struct tensor_file {
	const char *path;
	int fd;
	uint64_t bytes;
	bool big_endian;
	struct tensor *list;
	size_t count, capacity;
	char why[TENSOR_WHY];
};

/**
 * tensor_file_open() - open a file, whose first bytes tell its format, and list its tensors
 * @path: stays the caller's, and is used until the file is closed
 *
 * Return: 0; -EBADMSG if the file is malformed; -ENOTSUP if no tensors are read from such a file;
 * -ENOMEM; or the errno of a failed read. The caller calls tensor_file_close(), also then.
 */
int tensor_file_open(struct tensor_file *f, const char *path);
void tensor_file_close(struct tensor_file *f);

/* Whether the tensor is a matrix of floats. */
bool tensor_is_table(const struct tensor *t);

/**
 * tensor_rows() - read rows [first, first + count) as f32
 * @t: a tensor for which tensor_is_table() holds
 *
 * Values of f64 are rounded to the nearest f32. Return: 0; -ERANGE if a value is not finite as f32,
 * with its row and column in @f->why; -EBADMSG if the file ends early; or the errno of a read.
 */
int tensor_rows(struct tensor_file *f, const struct tensor *t, uint64_t first, size_t count,
		float *out);

/* -- for the readers of the formats ---------------------------------------- */

int tensor_fail(struct tensor_file *f, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Reads all of @bytes at an offset. Return: 0, -EBADMSG if the file ends before, or an errno. */
int tensor_bytes(struct tensor_file *f, uint64_t at, void *to, size_t bytes);

/* As tensor_bytes(), into memory that the caller frees; a zero byte follows. */
int tensor_text(struct tensor_file *f, uint64_t at, uint64_t bytes, char **text);

/**
 * tensor_add() - append a tensor to the list
 * @t: the tensor; its name is not used
 * @room: bytes of the file that it may use, from @t->at on; only a matrix of floats is checked
 */
int tensor_add(struct tensor_file *f, const char *name, size_t name_length, struct tensor t,
	       uint64_t room);

/* Words for reports: "f32" and the like, and the tensor's name, or "the array" if it has none. */
static inline const char *tensor_type_text(enum tensor_type type)
{
	static const char *const names[] = {"other", "f16", "bf16", "f32", "f64"};

	return names[type];
}

static inline const char *tensor_label(const struct tensor *t)
{
	return *t->name ? t->name : "the array";
}

/* Size of an element, 0 for TENSOR_OTHER. */
unsigned int tensor_size(enum tensor_type type);

int npy_list(struct tensor_file *f);
int safetensors_list(struct tensor_file *f);
int torch_list(struct tensor_file *f);

#endif
