// SPDX-License-Identifier: MIT
/* Listens for the driver's uevents and reads its devcoredumps, to check how a reset is reported. */
#include "uevents.h"

#include <check.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define DUMPS "/sys/class/devcoredump/devcd*/data"
#define PATIENCE_S 60

static int listener = -1;
static char dump[1 << 20];

/* Reads it, then writes to it, which frees it. */
static bool take_dump(const char *path)
{
	size_t length = 0;
	ssize_t got;
	int fd = open(path, O_RDWR);

	if (fd < 0)
		return false;
	while ((got = read(fd, dump + length, sizeof(dump) - 1 - length)) > 0)
		length += (size_t)got;
	dump[length] = 0;
	got = write(fd, "1", 1);
	close(fd);
	return got == 1 && length;
}

static bool take_any(void)
{
	glob_t found;
	bool any = false;

	if (glob(DUMPS, 0, NULL, &found))
		return false;
	for (size_t i = 0; i < found.gl_pathc; i++)
		any |= take_dump(found.gl_pathv[i]);
	globfree(&found);
	return any;
}

void uevents_start(void)
{
	struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = 1};
	struct timeval patience = {.tv_sec = PATIENCE_S};

	take_any();
	listener = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT);
	ck_assert_int_ge(listener, 0);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
}

void uevents_stop(void)
{
	close(listener);
	listener = -1;
}

/* Strings one after another, each ended by a zero byte. */
static const char *value_of(const char *event, size_t length, const char *name)
{
	for (const char *at = event; at < event + length; at += strlen(at) + 1)
		if (!strncmp(at, name, strlen(name)))
			return at + strlen(name);
	return NULL;
}

void uevents_expect_rung(const char *rung, const char *cause)
{
	char event[4096];
	const char *is;
	ssize_t length;

	for (;;) {
		length = recv(listener, event, sizeof(event) - 1, 0);
		ck_assert_msg(length > 0, "no uevent of %s", rung);
		event[length] = 0;
		is = value_of(event, (size_t)length, "EMBENG_RUNG=");
		if (is)
			break;
	}
	ck_assert_str_eq(is, rung);
	ck_assert_str_eq(value_of(event, (size_t)length, "EMBENG_CAUSE="), cause);
	ck_assert_str_eq(value_of(event, (size_t)length, "SUBSYSTEM="), "accel");
	ck_assert_ptr_nonnull(value_of(event, (size_t)length, "EMBENG_RESET="));
}

int uevents_count(void)
{
	char event[4096];
	ssize_t length;
	int count = 0;

	while ((length = recv(listener, event, sizeof(event) - 1, MSG_DONTWAIT)) > 0) {
		event[length] = 0;
		count += value_of(event, (size_t)length, "EMBENG_RUNG=") != NULL;
	}
	return count;
}

void devcoredump_expect_none(void)
{
	ck_assert_msg(!take_any(), "there is a dump");
}

const char *devcoredump_take(void)
{
	for (int i = 0; i < 100; i++) {
		if (take_any())
			return dump;
		usleep(100000);
	}
	ck_abort_msg("no devcoredump");
}

void devcoredump_expect(const char *text, const char *part)
{
	ck_assert_msg(strstr(text, part) != NULL, "\"%s\" is not in the dump", part);
}
