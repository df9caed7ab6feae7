// SPDX-License-Identifier: MIT
/*
 * Files of tensors: .npy, .safetensors and the zips of torch. The first byte says which allocation
 * fails (0: none), the rest is the file. A file is refused with a sentence, or the first and the last
 * row of each of its matrices can be read.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../runtime/cli/tensors/tensor.h"
#include "../unit/support/failing_alloc.h"
#include "fuzz.h"

#define DIM_MOST 4096

static void read_row(struct tensor_file *f, const struct tensor *t, uint64_t row)
{
	static float values[DIM_MOST];
	int rc = tensor_rows(f, t, row, 1, values);

	fuzz_check(!rc || rc == -ERANGE, "row %llu: %d, %s", (unsigned long long)row, rc, f->why);
	for (uint64_t i = 0; !rc && i < t->shape[1]; i++)
		fuzz_check(isfinite(values[i]), "column %llu", (unsigned long long)i);
}

static void check_opened(struct tensor_file *f, int rc, bool failed)
{
	if (rc) {
		fuzz_check(rc == -EBADMSG || rc == -ENOTSUP || (failed && rc == -ENOMEM), "%d: %s",
			   rc, f->why);
		fuzz_check(!strncmp(f->why, f->path, strlen(f->path)), "'%s'", f->why);
		return;
	}
	for (size_t i = 0; i < f->count; i++) {
		const struct tensor *t = &f->list[i];

		if (!tensor_is_table(t) || t->shape[1] > DIM_MOST)
			continue;
		read_row(f, t, 0);
		read_row(f, t, t->shape[0] - 1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tensor_file f;
	char path[40];
	bool failed;
	int fd, rc;

	if (!size)
		return 0;
	fd = memfd_create("tensors", MFD_CLOEXEC);
	fuzz_check(fd >= 0 && write(fd, data + 1, size - 1) == (ssize_t)size - 1, "no file");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	scarce_begin(data[0]);
	rc = tensor_file_open(&f, path);
	failed = scarce_end();
	check_opened(&f, rc, failed);
	tensor_file_close(&f);
	close(fd);
	return 0;
}
