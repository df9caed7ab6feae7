// SPDX-License-Identifier: MIT
/*
 * A program with a library that has the soft device alone: each part that was left out is still
 * called, and says that it was left out and how to get it. The program's own functions have names
 * that the library uses inside, too. soft_only.sh compiles and runs it.
 */
#include <embeng.h>
#include "embeng/tpu.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

int copy_bytes(void);
int device_open(void);
int error_set(void);

int copy_bytes(void)
{
	return 1;
}

int device_open(void)
{
	return 2;
}

int error_set(void)
{
	return 4;
}

static int failures;

static void expect_error(const char *call, int got, int want, const char *words)
{
	struct embeng_error error = {.size = sizeof(error)};

	embeng_last_error(&error);
	if (got == want && strstr(error.text, words))
		return;
	printf("%s: %d, \"%s\"; %d and \"%s\" are expected\n", call, got, error.text, want, words);
	failures++;
}

static void try_devices(void)
{
	const char *build = "`meson setup -Daccel=enabled`";
	struct embeng_device_info info = {.size = sizeof(info)};
	struct embeng_model *model = embeng_model_new();
	struct embeng *e = NULL;

	expect_error("a node", embeng_device_info("/dev/accel/accel0", &info), -ENOTSUP,
		     "/dev/accel/accel0: this libembeng was built without devices");
	expect_error("a node", embeng_device_info("/dev/accel/accel0", &info), -ENOTSUP, build);
	expect_error("an address", embeng_device_info("pci:0000:01:00.0", &info), -ENOTSUP,
		     "pci:0000:01:00.0: this libembeng was built without devices");
	expect_error("a bare name", embeng_device_info("accel0", &info), -ENODEV, build);
	expect_error("embeng_attach", embeng_attach(0, model, &e, NULL), -ENOTSUP, build);
	expect_error("embeng_device_reset", embeng_device_reset(NULL, EMBENG_RESET_ENGINE),
		     -ENOTSUP, build);
	if (embeng_device_info(NULL, &info) || strcmp(info.kind, "soft")) {
		printf("any device is not the soft one\n");
		failures++;
	}
	embeng_model_free(model);
}

static void try_protobufs(void)
{
	struct embeng_layouts *layouts = NULL;
	struct embeng_tpu *tpu = NULL;
	void *bytes = NULL;
	size_t length = 0;

	expect_error("import", embeng_tpu_import("", 0, NULL, &tpu), -ENOTSUP,
		     "embeng_tpu_import: this libembeng was built without protobufs");
	expect_error("export", embeng_tpu_export(NULL, NULL, &bytes, &length), -ENOTSUP,
		     "`meson setup -Dprotobuf=enabled`");
	expect_error("layouts", embeng_tpu_import_layouts("", 0, &layouts), -ENOTSUP,
		     "embeng_tpu_import_layouts: ");
	embeng_tpu_free(tpu);
	embeng_layouts_free(layouts);
}

int main(void)
{
	try_devices();
	try_protobufs();
	return failures || copy_bytes() + device_open() + error_set() != 7;
}
