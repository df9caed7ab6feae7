// SPDX-License-Identifier: MIT
/*
 * Chooses the plan by which a soft device fetches rows ahead: from its name or the environment, from
 * a file of `embeng tune`, or from the processor's caches. Opening a device measures nothing.
 *
 * Files are read through file_ops and not by base/file.c, whose sentences would become the thread's
 * last error although nothing failed. Nothing is kept from one device to the next, so that a file
 * counts from the next embeng_open() on. No lock is needed.
 */
#include "fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

static int say_errno(int err, const char *what, char why[TUNE_WHY])
{
	errno = -err;
	snprintf(why, TUNE_WHY, "it cannot be %s: %m", what);
	return err;
}

static int read_bytes(int fd, char *to, uint64_t bytes, char why[TUNE_WHY])
{
	while (bytes) {
		int64_t n = file_ops->read(fd, to, bytes);

		if (n <= 0)
			return say_errno(n ? (int)n : -EIO, "read", why);
		to += n;
		bytes -= (uint64_t)n;
	}
	return 0;
}

static int read_open_file(int fd, struct tune *out, char why[TUNE_WHY])
{
	uint64_t bytes;
	char *text;
	int ret = file_ops->size(fd, &bytes);

	if (ret == -EINVAL || (!ret && bytes > TUNE_BYTES_MOST)) {
		snprintf(why, TUNE_WHY,
			 ret ? "it is not a regular file" : "it has more than 65536 bytes");
		return -EBADMSG;
	}
	if (ret)
		return say_errno(ret, "read", why);
	text = malloc(bytes + 1);
	if (!text)
		return say_errno(-ENOMEM, "read", why);
	ret = read_bytes(fd, text, bytes, why);
	ret = ret ? ret : tune_parse(text, bytes, out, why);
	free(text);
	return ret;
}

int fetch_read_tune(const char *path, struct tune *out, char why[TUNE_WHY])
{
	int fd = file_ops->open(path, O_RDONLY | O_NOCTTY), ret;

	if (fd < 0)
		return say_errno(fd, "opened", why);
	ret = read_open_file(fd, out, why);
	file_ops->close(fd);
	return ret;
}

/* A file that is looked for; @named: by EMBENG_TUNE, so that it has to be there. */
struct lookout {
	const char *path;
	bool named;
};

/* True if the file is this machine's. Else the first problem of all files is kept. */
static bool take_tune(const struct lookout *file, const char *variant, struct fetch_plan *plan,
		      struct embeng_device_info *info)
{
	char processor[PROCESSOR_NAME], why[TUNE_WHY];
	struct tune tune;
	int ret = fetch_read_tune(file->path, &tune, why);

	if (!file->named && (ret == -ENOENT || ret == -ENOTDIR))
		return false;
	if (!ret) {
		processor_name(processor);
		if (tune_fits(&tune, processor, variant, why)) {
			plan->near = tune.near;
			plan->far = tune.far;
			snprintf(info->fetch_source, sizeof(info->fetch_source), "%s", file->path);
			return true;
		}
	}
	if (!*info->tune_problem)
		snprintf(info->tune_problem, sizeof(info->tune_problem), "%s: %s", file->path, why);
	return false;
}

static bool take_tune_files(const char *variant, struct fetch_plan *plan,
			    struct embeng_device_info *info)
{
	const struct lookout named = {tune_named_path(), true};
	const struct lookout system = {TUNE_SYSTEM_PATH, false};
	char path[TUNE_PATH];

	if (named.path)
		return take_tune(&named, variant, plan, info);
	if (tune_user_path(path) && take_tune(&(struct lookout){path, false}, variant, plan, info))
		return true;
	return take_tune(&system, variant, plan, info);
}

/* One number is for lookups and updates of all models; bursts stand for rows fetched again, too. */
static void take_given(struct fetch_way given, struct fetch_plan *plan)
{
	const bool again = given.form == KERNEL_FETCH_BURST;

	plan->far.lookup = given;
	plan->far.update = (struct fetch_way){given.rows,
					      again ? KERNEL_FETCH_AGAIN : KERNEL_FETCH_SECOND};
	plan->near = plan->far;
}

static void describe_ways(const struct fetch_ways *ways, char *text, size_t size)
{
	char lookup[FETCH_WORD], update[FETCH_WORD];

	fetch_way_text(ways->lookup, lookup);
	fetch_way_text(ways->update, update);
	snprintf(text, size, "lookups %s, updates %s", lookup, update);
}

static void describe_plan(const struct fetch_plan *plan, struct embeng_device_info *info)
{
	char near[56], far[56];

	describe_ways(&plan->near, near, sizeof(near));
	describe_ways(&plan->far, far, sizeof(far));
	if (strcmp(near, far))
		snprintf(info->fetch, sizeof(info->fetch), "%s; tables beyond %llu MiB: %s", near,
			 plan->cached_bytes >> 20, far);
	else
		snprintf(info->fetch, sizeof(info->fetch), "%s", far);
}

void fetch_choose(const struct name *name, const char *variant, struct fetch_plan *plan,
		  struct embeng_device_info *info)
{
	const char *source = name->fetch_source;
	struct fetch_machine machine;

	processor_machine(&machine);
	fetch_plan_fill(plan, &machine);
	if (name->fetch_rows)
		take_given((struct fetch_way){name->fetch_rows, name->fetch_form}, plan);
	else if (name->fetch_default || !take_tune_files(variant, plan, info))
		source = "processor's caches";
	else
		source = NULL; /* the file has said so */
	if (source)
		snprintf(info->fetch_source, sizeof(info->fetch_source), "%s", source);
	describe_plan(plan, info);
}
