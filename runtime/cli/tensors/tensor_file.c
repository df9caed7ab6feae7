// SPDX-License-Identifier: MIT
/*
 * The readers of all formats share this: bytes of the file, the list of its tensors, and sentences
 * about it. tensor_open.c opens a file.
 *
 * A struct tensor_file owns its descriptor and the list of tensors until it is closed. One thread
 * uses it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tensor.h"

int tensor_fail(struct tensor_file *f, int err, const char *format, ...)
{
	int length = snprintf(f->why, sizeof(f->why), "%s: ", f->path);
	va_list args;

	if (length < 0 || (size_t)length >= sizeof(f->why))
		return err;
	va_start(args, format);
	vsnprintf(f->why + length, sizeof(f->why) - (size_t)length, format, args);
	va_end(args);
	return err;
}

int tensor_bytes(struct tensor_file *f, uint64_t at, void *to, size_t bytes)
{
	char *p = to;

	if (at > f->bytes || bytes > f->bytes - at)
		return tensor_fail(f, -EBADMSG,
				   "ends at byte %" PRIu64 ", and %zu bytes from byte %" PRIu64
				   " on are missing; the file is cut off or damaged",
				   f->bytes, bytes, at);
	while (bytes) {
		ssize_t n = pread(f->fd, p, bytes, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return tensor_fail(f, -errno, "cannot be read: %s", strerror(errno));
		if (!n)
			return tensor_fail(f, -EBADMSG, "became shorter while it was read");
		p += n;
		at += (uint64_t)n;
		bytes -= (size_t)n;
	}
	return 0;
}

int tensor_text(struct tensor_file *f, uint64_t at, uint64_t bytes, char **text)
{
	char *made;
	int rc;

	if (at > f->bytes || bytes > f->bytes - at)
		return tensor_fail(f, -EBADMSG,
				   "ends at byte %" PRIu64 ", and %" PRIu64
				   " bytes from byte %" PRIu64
				   " on are missing; the file is cut off or damaged",
				   f->bytes, bytes, at);
	made = malloc((size_t)bytes + 1);
	if (!made)
		return tensor_fail(f, -ENOMEM, "no memory for %" PRIu64 " bytes of it", bytes);
	rc = tensor_bytes(f, at, made, (size_t)bytes);
	if (rc) {
		free(made);
		return rc;
	}
	made[bytes] = '\0';
	*text = made;
	return 0;
}

unsigned int tensor_size(enum tensor_type type)
{
	static const unsigned char sizes[] = {0, 2, 2, 4, 8};

	return sizes[type];
}

bool tensor_is_table(const struct tensor *t)
{
	return t->type != TENSOR_OTHER && t->rank == 2 && t->shape[0] && t->shape[1];
}

/* Bytes from the first element to the end of the last one. Return: whether they can be counted. */
static bool measure_span(const struct tensor *t, uint64_t *bytes)
{
	uint64_t down, across, last;

	return !__builtin_mul_overflow(t->shape[0] - 1, t->stride[0], &down) &&
	       !__builtin_mul_overflow(t->shape[1] - 1, t->stride[1], &across) &&
	       !__builtin_add_overflow(down, across, &last) &&
	       !__builtin_add_overflow(last, 1, &last) &&
	       !__builtin_mul_overflow(last, tensor_size(t->type), bytes);
}

static int check_span(struct tensor_file *f, const char *name, const struct tensor *t,
		      uint64_t room)
{
	uint64_t bytes;

	if (!tensor_is_table(t))
		return 0;
	if (t->shape[0] > INT64_MAX || t->shape[1] > INT64_MAX || !measure_span(t, &bytes) ||
	    bytes > room || t->at > f->bytes || bytes > f->bytes - t->at)
		return tensor_fail(f, -EBADMSG,
				   "tensor '%.100s' of %" PRIu64 " x %" PRIu64
				   " does not fit the bytes that the file has for it; the file is "
				   "cut off or damaged",
				   name, t->shape[0], t->shape[1]);
	return 0;
}

int tensor_add(struct tensor_file *f, const char *name, size_t name_length, struct tensor t,
	       uint64_t room)
{
	int rc;

	if (f->count == f->capacity) {
		size_t wanted = f->capacity ? 2 * f->capacity : 16;
		struct tensor *larger = reallocarray(f->list, wanted, sizeof(*larger));

		if (!larger)
			return tensor_fail(f, -ENOMEM, "no memory for its list of tensors");
		f->list = larger;
		f->capacity = wanted;
	}
	t.name = strndup(name, name_length);
	if (!t.name)
		return tensor_fail(f, -ENOMEM, "no memory for its list of tensors");
	rc = check_span(f, t.name, &t, room);
	if (rc)
		free(t.name);
	else
		f->list[f->count++] = t;
	return rc;
}

void tensor_file_close(struct tensor_file *f)
{
	for (size_t i = 0; i < f->count; i++)
		free(f->list[i].name);
	free(f->list);
	if (f->fd >= 0)
		close(f->fd);
	*f = (struct tensor_file){.fd = -1};
}
