// SPDX-License-Identifier: MIT
/*
 * Opens a file of tensors: tells its format by its first bytes, and calls the reader of that format.
 *
 * tensor_file_close() closes what was opened, also after a failure.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "tensor.h"

static int open_regular(struct tensor_file *f)
{
	struct stat stat;

	/* A pipe in the file's place must not make the command wait. */
	f->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (f->fd < 0 || fstat(f->fd, &stat))
		return tensor_fail(f, -errno, "cannot be opened: %s", strerror(errno));
	if (!S_ISREG(stat.st_mode))
		return tensor_fail(f, -ENOTSUP, "is not a regular file");
	f->bytes = (uint64_t)stat.st_size;
	return 0;
}

static int list_by_magic(struct tensor_file *f)
{
	unsigned char start[10] = {0};
	int rc = tensor_bytes(f, 0, start,
			      f->bytes < sizeof(start) ? (size_t)f->bytes : sizeof(start));

	if (rc)
		return rc;
	if (!memcmp(start, "\x93NUMPY", 6))
		return npy_list(f);
	if (!memcmp(start, "PK\3\4", 4))
		return torch_list(f);
	if (start[8] == '{')
		return safetensors_list(f);
	if (start[0] == 0x80 && start[1] <= 5)
		return tensor_fail(
			f, -ENOTSUP,
			"is a pickle, which torch wrote before version 1.6; load it with "
			"torch and save it again with torch.save(), which writes a zip");
	return tensor_fail(f, -ENOTSUP,
			   "is no .npy, no .safetensors and no zip of tensors of torch.save()");
}

int tensor_file_open(struct tensor_file *f, const char *path)
{
	int rc;

	*f = (struct tensor_file){.path = path, .fd = -1};
	rc = open_regular(f);
	return rc ? rc : list_by_magic(f);
}
