// SPDX-License-Identifier: MIT
/*
 * Checks of the firmware: the files that the driver reads, and how the driver and the device took
 * them. A device that is bound says it in its attributes; one that the driver gave up has a line in
 * the driver's file "refusals", in one of these forms:
 *
 *	0000:01:00.0 firmware -74: refused: error 6, byte 16: the image is older than ...
 *	0000:01:00.0 firmware -2: /lib/firmware/embeng/embeng.fw cannot be read
 *	0000:01:00.0 firmware -110: the kernel's log says why
 *	0000:01:00.0 device -110: the kernel's log says why
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embeng_firmware.h"
#include "embeng_regs.h"

#include "checks.h"

#define REFUSALS "/sys/bus/pci/drivers/embeng/refusals"
#define IMAGE "embeng/embeng.fw"
#define RECOVERY "embeng/recovery.fw"
#define NO_ANSWER " -110: the kernel's log" /* to a reset, or to the boot */
#define ANSWER_TIMEOUT "/sys/module/embeng/parameters/answer_timeout_ms"
#define REBIND "then `echo %s >/sys/bus/pci/drivers/embeng/bind`, as root"

/* -- files ---------------------------------------------------------------- */

/* Finds an image where the kernel looks for it, compressed or not. False if there is none. */
static bool find_image(const struct machine *m, const char *name, char path[TREE_PATH])
{
	static const char *const endings[] = {"", ".zst", ".xz"};
	char custom[TREE_LINE] = "", folders[5][160];

	tree_line(m->tree, "/sys/module/firmware_class/parameters/path", custom, sizeof(custom));
	snprintf(folders[0], sizeof(folders[0]), "%.159s", custom);
	snprintf(folders[1], sizeof(folders[1]), "/lib/firmware/updates/%s", m->release);
	snprintf(folders[2], sizeof(folders[2]), "/lib/firmware/updates");
	snprintf(folders[3], sizeof(folders[3]), "/lib/firmware/%s", m->release);
	snprintf(folders[4], sizeof(folders[4]), "/lib/firmware");
	for (size_t i = 0; i < 5; i++) {
		for (size_t k = 0; *folders[i] && k < 3; k++) {
			tree_path(path, "%s/%s%s", folders[i], name, endings[k]);
			if (tree_kind(m->tree, path) == TREE_FILE)
				return true;
		}
	}
	return false;
}

static bool runs_any(const struct machine *m)
{
	for (size_t i = 0; i < m->count; i++) {
		if (!strcmp(m->devices[i]->driver, "embeng"))
			return true;
	}
	return false;
}

void check_firmware_file(const struct machine *m, const struct function *device, struct finding *f)
{
	char image[TREE_PATH], recovery[TREE_PATH];
	bool has_image = find_image(m, IMAGE, image), has_recovery;

	(void)device;
	has_recovery = find_image(m, RECOVERY, recovery);
	if (has_image) {
		found_ok(f, "%.300s is there%s", image,
			 has_recovery ? ", and a recovery image" : "");
		return;
	}
	if (has_recovery)
		found_warning(f, "/lib/firmware/" IMAGE " is missing; %.300s is there", recovery);
	else if (runs_any(m))
		found_warning(f, "/lib/firmware/" IMAGE " is missing; the driver keeps the image "
				 "that it has read until it is bound anew");
	else
		found_problem(f, CLI_FIRMWARE,
			      "/lib/firmware/" IMAGE " is missing, and so is " RECOVERY);
	found_fix(f, "Install the package embeng-firmware, or copy the board's image to "
		     "/lib/firmware/" IMAGE "; then bind the driver to the device anew");
}

/* -- refusals --------------------------------------------------------------- */

/* Reads why the driver did not take a device, without the address. False if it said nothing. */
static bool read_refusal(const struct machine *m, const struct function *device, char *reason,
			 size_t size)
{
	char *text = tree_text(m->tree, REFUSALS, TREE_TEXT);
	const size_t length = strlen(device->address);
	bool found = false;

	for (const char *line = text; line && !found; line = strchr(line, '\n')) {
		line += *line == '\n';
		found = !strncmp(line, device->address, length) && line[length] == ' ';
		if (found)
			snprintf(reason, size, "%.*s", (int)strcspn(line + length + 1, "\n"),
				 line + length + 1);
	}
	free(text);
	return found;
}

/**
 * struct refused - why an image was refused
 * @error: enum embeng_boot_error
 * @bound: the driver is bound to the device
 * @runs: the device runs another image meanwhile
 * @words: the driver's words
 */
struct refused {
	int error;
	bool bound, runs;
	char words[256];
};

static bool runs_recovery(const struct machine *m, const struct function *device)
{
	char image[64];

	return read_device_line(m, device, "firmware_image", image, sizeof(image)) &&
	       !strcmp(image, RECOVERY);
}

/* A device that was given up after a reset has its attributes, and runs nothing. */
static bool runs_anything(const struct machine *m, const struct function *device)
{
	char version[64];

	return read_device_line(m, device, "firmware_version", version, sizeof(version)) &&
	       strcmp(version, "0.0.0.0");
}

/*
 * Finds the refusal of a device. One that led to the recovery image is left to the check
 * firmware-fallback.
 */
static bool find_refused(const struct machine *m, const struct function *device,
			 struct refused *refused)
{
	const char *error;

	refused->bound = !strcmp(device->driver, "embeng");
	refused->runs = refused->bound && runs_anything(m, device);
	if (refused->runs && runs_recovery(m, device))
		return false;
	if (refused->bound && !read_device_line(m, device, "firmware_refused", refused->words,
						sizeof(refused->words)))
		return false;
	if (!refused->bound && (!read_refusal(m, device, refused->words, sizeof(refused->words)) ||
				strncmp(refused->words, "firmware ", 9)))
		return false;
	error = strstr(refused->words, "error ");
	refused->error = error ? atoi(error + 6) : 0;
	return error != NULL;
}

static bool is_about_signature(int error)
{
	return error >= EMBENG_BOOT_ERROR_SIGNATURE &&
	       error <= EMBENG_BOOT_ERROR_SIGNATURE_MISMATCH;
}

/* A device that runs another image has lost nothing yet. */
static void report_refused(const struct refused *refused, struct finding *f)
{
	if (refused->runs)
		found_warning(f, "an image was refused, and another runs: %.250s", refused->words);
	else
		found_problem(f, CLI_FIRMWARE, "no image is booted: %.250s", refused->words);
	/* The attributes of a device that is bound are there to be looked at. */
	f->stops &= !refused->bound;
}

void check_driver_probe(const struct machine *m, const struct function *device, struct finding *f)
{
	char reason[256];

	if (!*device->driver && read_refusal(m, device, reason, sizeof(reason)) &&
	    (strncmp(reason, "firmware ", 9) || !strstr(reason, "error "))) {
		found_problem(f, strncmp(reason, "firmware ", 9) ? CLI_DEVICE : CLI_FIRMWARE,
			      "the driver did not take it: %.250s", reason);
		if (strstr(reason, NO_ANSWER))
			found_fix(f,
				  "`dmesg | grep %s` says what had no answer; if the board is only "
				  "slow, `echo 120000 >" ANSWER_TIMEOUT
				  "` gives it two minutes, " REBIND,
				  device->address, device->address);
		else
			found_fix(f, "`dmesg | grep %s` says what failed; mend that, " REBIND,
				  device->address, device->address);
		return;
	}
	found_ok(f, "the driver has not given it up");
}

/* The installed image's version, from its header; 0 if there is none or it is compressed. */
static uint64_t read_image_version(const struct machine *m)
{
	struct embeng_fw_header header;
	char path[TREE_PATH];

	if (!find_image(m, IMAGE, path) ||
	    tree_bytes(m->tree, path, &header, sizeof(header)) != sizeof(header) ||
	    header.magic != EMBENG_FW_MAGIC)
		return 0;
	return header.version;
}

/* Reads the text of a version, "1.2.3.4". */
static bool read_dotted_version(const char *text, uint64_t *version)
{
	unsigned int part[4];

	if (sscanf(text, "%5u.%5u.%5u.%5u", &part[0], &part[1], &part[2], &part[3]) != 4)
		return false;
	*version = 0;
	for (int i = 0; i < 4; i++)
		*version = *version << 16 | (part[i] & 0xffff);
	return true;
}

static bool is_installed_too_old(const struct machine *m, const struct function *device,
				 char minimum[64])
{
	uint64_t least, installed = read_image_version(m);

	return installed && read_device_line(m, device, "firmware_minimum", minimum, 64) &&
	       read_dotted_version(minimum, &least) && installed < least;
}

void check_firmware_old(const struct machine *m, const struct function *device, struct finding *f)
{
	struct refused refused;
	char minimum[64];

	if (find_refused(m, device, &refused) && refused.error == EMBENG_BOOT_ERROR_VERSION) {
		report_refused(&refused, f);
	} else if (is_installed_too_old(m, device, minimum)) {
		found_warning(f,
			      "the device boots nothing below version %s, and the installed "
			      "image is older",
			      minimum);
	} else {
		found_ok(f, "no image was refused for its version");
		return;
	}
	found_fix(f,
		  "Install a newer image as /lib/firmware/" IMAGE "; `embeng fw inspect` shows "
		  "an image's version, `embeng fw show` the lowest that the device boots; " REBIND,
		  device->address);
}

void check_firmware_signature(const struct machine *m, const struct function *device,
			      struct finding *f)
{
	struct refused refused;

	if (!find_refused(m, device, &refused) || !is_about_signature(refused.error)) {
		found_ok(f, "no image was refused for its signature");
		return;
	}
	report_refused(&refused, f);
	if (refused.error == EMBENG_BOOT_ERROR_SIGNATURE_KEY)
		found_fix(
			f,
			"`keyctl padd asymmetric '' %%keyring:.embeng <cert.der` as root enrols "
			"the signer's certificate, and `keyctl show %%keyring:.embeng` lists those "
			"there are; " REBIND,
			device->address);
	else
		found_fix(f,
			  "Install the image that its vendor signed, or sign your own with "
			  "`embeng fw sign`; `embeng fw verify` checks a file; " REBIND,
			  device->address);
}

void check_firmware_refused(const struct machine *m, const struct function *device,
			    struct finding *f)
{
	struct refused refused;

	if (!find_refused(m, device, &refused) || is_about_signature(refused.error) ||
	    refused.error == EMBENG_BOOT_ERROR_VERSION) {
		found_ok(f, "no image was refused for its contents");
		return;
	}
	report_refused(&refused, f);
	found_fix(f,
		  "`embeng fw verify /lib/firmware/" IMAGE "` says what is wrong with the file; "
		  "install a good one, " REBIND,
		  device->address);
}

void check_firmware_fallback(const struct machine *m, const struct function *device,
			     struct finding *f)
{
	char image[64], reason[256] = "";

	if (!read_device_line(m, device, "firmware_image", image, sizeof(image))) {
		found_nothing(f, "the driver does not say which image runs");
		return;
	}
	if (strcmp(image, RECOVERY)) {
		found_ok(f, "%s runs", image);
		return;
	}
	read_device_line(m, device, "firmware_refused", reason, sizeof(reason));
	if (*reason && strcmp(reason, "none"))
		found_warning(f, RECOVERY " runs, since another image was refused: %.200s", reason);
	else
		found_warning(f, RECOVERY " runs, since " IMAGE " could not be read");
	found_fix(f,
		  "Install a good image as /lib/firmware/" IMAGE " (`embeng fw verify` checks it), "
		  "then as root `echo %s >/sys/bus/pci/drivers/embeng/unbind` and `echo %s "
		  ">/sys/bus/pci/drivers/embeng/bind`",
		  device->address, device->address);
}
