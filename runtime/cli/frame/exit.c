// SPDX-License-Identifier: MIT
/*
 * Errnos by name, and the exit code of the command for each. The codes are frozen, because scripts
 * depend on them.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "embeng_engine.h"

#include "exit.h"

struct errno_row {
	int err;
	const char *name;
	int exit_code; /* where the status table has none: the library's and the system's own */
};

static const struct errno_row errnos[] = {
	{EACCES, "EACCES", CLI_PERMISSION},
	{EAGAIN, "EAGAIN", CLI_BUSY},
	{EBADMSG, "EBADMSG", CLI_CORRUPT},
	{EBUSY, "EBUSY", CLI_BUSY},
	{ECANCELED, "ECANCELED", CLI_DEVICE},
	{EDQUOT, "EDQUOT", CLI_BUSY},
	{EEXIST, "EEXIST", CLI_USAGE},
	{EFBIG, "EFBIG", CLI_BUSY},
	{EHOSTDOWN, "EHOSTDOWN", CLI_FIRMWARE},
	{EINTR, "EINTR", CLI_DEVICE},
	{EINVAL, "EINVAL", CLI_USAGE},
	{EIO, "EIO", CLI_DEVICE},
	{EISDIR, "EISDIR", CLI_USAGE},
	{ELOOP, "ELOOP", CLI_USAGE},
	{ENAMETOOLONG, "ENAMETOOLONG", CLI_USAGE},
	{ENODATA, "ENODATA", CLI_USAGE},
	{ENODEV, "ENODEV", CLI_NO_DEVICE},
	{ENOENT, "ENOENT", CLI_USAGE},
	{ENOMEM, "ENOMEM", CLI_DEVICE},
	{ENOSPC, "ENOSPC", CLI_BUSY},
	{ENOTDIR, "ENOTDIR", CLI_USAGE},
	{ENOTEMPTY, "ENOTEMPTY", CLI_USAGE},
	{ENOTSUP, "ENOTSUP", CLI_UNSUPPORTED},
	{ENXIO, "ENXIO", CLI_NO_DRIVER},
	{EPERM, "EPERM", CLI_PERMISSION},
	{EPIPE, "EPIPE", CLI_DEVICE},
	{EPROTO, "EPROTO", CLI_USAGE},
	{ERANGE, "ERANGE", CLI_USAGE},
	{EROFS, "EROFS", CLI_PERMISSION},
	{ESHUTDOWN, "ESHUTDOWN", CLI_DEVICE},
	{ESTALE, "ESTALE", CLI_BUSY},
	{ETIME, "ETIME", CLI_TIMEOUT},
	{ETIMEDOUT, "ETIMEDOUT", CLI_TIMEOUT},
};

static const struct errno_row *find_errno(int err)
{
	for (size_t i = 0; i < sizeof(errnos) / sizeof(errnos[0]); i++) {
		if (errnos[i].err == abs(err))
			return &errnos[i];
	}
	return NULL;
}

int exit_of_errno(int err)
{
	static const struct {
		int err, exit_code;
	} statuses[] = {
#define ROW(name, value, cls, err, exit_code, text) {err, exit_code},
		EMBENG_STATUS_TABLE(ROW)
#undef ROW
	};
	const struct errno_row *row;

	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		if (statuses[i].err == abs(err))
			return statuses[i].exit_code;
	}
	row = find_errno(err);
	return row ? row->exit_code : CLI_DEVICE;
}

const char *errno_name(int err)
{
	const struct errno_row *row = find_errno(err);

	return row ? row->name : "EIO";
}

int errno_by_name(const char *name)
{
	for (size_t i = 0; i < sizeof(errnos) / sizeof(errnos[0]); i++) {
		if (!strcmp(errnos[i].name, name))
			return errnos[i].err;
	}
	return 0;
}
