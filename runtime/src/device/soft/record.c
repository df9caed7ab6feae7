// SPDX-License-Identifier: MIT
/*
 * Records what the soft device is given and does in a file, if its name or the environment asks for
 * that. The engine makes the entries; here they are written.
 *
 * The file belongs to the struct soft until soft_record_close(). The engine writes with its lock
 * held, one thread at a time. Each entry is handed to the system when it is complete, so that the
 * recording of a program that dies has all but its last entry. A file that another handle writes, of
 * this process or of another one, is left alone: the next number is taken.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/error.h"
#include "soft.h"

#include "../../../../engine/engine.h"
#include "../../../../uapi/embeng_recording.h"

#define FILES_MOST 10000u
#define BUFFER_BYTES (1u << 20)

/* Files that this process has begun. */
static uint32_t files_begun;

static void warn_of_end(struct soft *s, const char *why)
{
	char text[192];

	snprintf(text, sizeof(text), "the recording of this device ends early: %s", why);
	s->host.log(s, PORT_LOG_WARNING, text);
}

static bool write_recording(void *host, const void *data, u64 length)
{
	struct soft *s = ((struct port_host *)host)->arg;

	if (!data) {
		if (s->record_left != UINT64_MAX)
			warn_of_end(s, "there is no memory for it");
		return false;
	}
	if (!s->record_left)
		s->record_left = ((const struct embeng_recording_entry *)data)->length;
	s->record_left -= length;
	if (fwrite(data, 1, length, s->record) == length && (s->record_left || !fflush(s->record)))
		return true;
	warn_of_end(s, strerror(errno));
	s->record_left = UINT64_MAX;
	return false;
}

const struct engine_recorder soft_recorder = {.write = write_recording};

/* Return: the file, locked and empty; -EWOULDBLOCK if another handle has it, or another -errno. */
static int begin_recording(const char *path, FILE **out)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666), error;
	FILE *f = NULL;

	if (fd < 0)
		return -errno;
	if (!flock(fd, LOCK_EX | LOCK_NB) && !ftruncate(fd, 0))
		f = fdopen(fd, "w");
	if (f) {
		setvbuf(f, NULL, _IOFBF, BUFFER_BYTES);
		*out = f;
		return 0;
	}
	error = errno;
	close(fd);
	return -error;
}

int soft_record_open(struct soft *s, const char *path)
{
	char numbered[NAME_RECORD + 16];
	uint32_t number = __atomic_add_fetch(&files_begun, 1, __ATOMIC_RELAXED);
	int ret = -EWOULDBLOCK;

	for (; ret == -EWOULDBLOCK && number <= FILES_MOST; number++) {
		if (number == 1)
			snprintf(numbered, sizeof(numbered), "%s", path);
		else
			snprintf(numbered, sizeof(numbered), "%s.%u", path, number);
		ret = begin_recording(numbered, &s->record);
	}
	if (ret)
		return fail(ret, "soft device: the recording %s cannot be written: %s", numbered,
			    strerror(-ret));
	return 0;
}

void soft_record_close(struct soft *s)
{
	if (s->record && fclose(s->record) && s->record_left != UINT64_MAX)
		warn_of_end(s, strerror(errno));
}
