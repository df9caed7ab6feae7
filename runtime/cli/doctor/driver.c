// SPDX-License-Identifier: MIT
/*
 * Checks of the kernel and of the driver's module on disk: whether this kernel can have it, whether
 * it was built, and what keeps it from being loaded. driver_load.c has the checks of the module
 * that is loaded.
 *
 * A driver that is loaded answers most of these questions by being there: it may have been loaded
 * by insmod from any place.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"

#define MODULES_DEP ((size_t)16 << 20)
#define FOLDER "/lib/modules"
#define DKMS "/var/lib/dkms/embeng"
#define SIGNATURE "~Module signature appended~\n"
#define OLDEST 612 /* 6.12: the version as major * 100 + minor */
#define NEWEST 703

/* -- the kernel ----------------------------------------------------------- */

static int read_kernel_version(const struct machine *m)
{
	int major, minor;

	return sscanf(m->release, "%3d.%3d", &major, &minor) == 2 ? major * 100 + minor : 0;
}

/* True if the kernel's configuration says that it has no accel subsystem. */
static bool lacks_accel(const struct machine *m)
{
	char path[TREE_PATH];
	char *text = tree_text(m->tree, tree_path(path, "/boot/config-%s", m->release), TREE_TEXT);
	bool lacks = text && strstr(text, "\nCONFIG_DRM=") &&
		     !strstr(text, "\nCONFIG_DRM_ACCEL=y\n");

	free(text);
	return lacks;
}

void check_kernel(const struct machine *m, const struct function *device, struct finding *f)
{
	int version = read_kernel_version(m);

	(void)device;
	if (!version) {
		found_nothing(f, "the kernel's release is not known");
	} else if (is_driver_loaded(m)) {
		found_ok(f, "Linux %s", m->release);
	} else if (version < OLDEST) {
		found_problem(f, CLI_NO_DRIVER, "Linux %s is older than 6.12", m->release);
		found_fix(f, "Install a newer kernel, on Debian 12 linux-image-6.12-amd64 from its "
			     "security suite or backports, and start the machine with it");
	} else if (lacks_accel(m)) {
		found_problem(f, CLI_NO_DRIVER, "Linux %s was built without CONFIG_DRM_ACCEL",
			      m->release);
		found_fix(f,
			  "Debian's cloud kernels lack it: `apt install linux-image-amd64`, then "
			  "start the machine with that kernel");
	} else if (version > NEWEST) {
		found_warning(f, "Linux %s is newer than 7.3, and DKMS builds no driver for it",
			      m->release);
		found_fix(f, "`make kmod KDIR=/lib/modules/%s/build` in the source tree tries it",
			  m->release);
	} else {
		found_ok(f, "Linux %s", m->release);
	}
}

/* -- the module on disk ---------------------------------------------------- */

/* Finds the module's file by what modprobe goes by. False if modprobe knows none for the release. */
static bool find_module(const struct machine *m, const char *release, char path[TREE_PATH])
{
	char *text = tree_text(m->tree, tree_path(path, FOLDER "/%s/modules.dep", release),
			       MODULES_DEP);
	bool found = false;

	for (char *line = text, *end; line && *line && !found; line = end) {
		size_t length = strcspn(line, ":\n");
		const char *name;

		end = line + strcspn(line, "\n");
		end += *end == '\n';
		if (line[length] != ':')
			continue;
		line[length] = '\0';
		name = strrchr(line, '/');
		name = name ? name + 1 : line;
		found = !strncmp(name, "embeng.ko", 9) && (!name[9] || name[9] == '.');
		if (found && *line == '/')
			tree_path(path, "%s", line);
		else if (found)
			tree_path(path, FOLDER "/%s/%s", release, line);
	}
	free(text);
	return found;
}

/* Finds another kernel of the machine for which there is a module. */
static bool find_other_release(const struct machine *m, char *release, size_t size)
{
	struct tree_names names;
	char path[TREE_PATH];
	bool found = false;

	*release = '\0';
	if (tree_list(m->tree, FOLDER, &names))
		return false;
	for (size_t i = 0; i < names.count && i < 16 && !found; i++) {
		found = strcmp(names.list[i], m->release) && strlen(names.list[i]) < size &&
			find_module(m, names.list[i], path);
		if (found)
			strcpy(release, names.list[i]);
	}
	tree_names_free(&names);
	return found;
}

/* Finds the newest version of the driver's source that DKMS has; "" if it has none. */
static void find_dkms_version(const struct machine *m, char *version, size_t size)
{
	struct tree_names names;

	*version = '\0';
	if (tree_list(m->tree, DKMS, &names))
		return;
	for (size_t i = 0; i < names.count; i++) {
		if (*names.list[i] >= '0' && *names.list[i] <= '9' && strlen(names.list[i]) < size)
			strcpy(version, names.list[i]);
	}
	tree_names_free(&names);
}

static void explain_missing_module(const struct machine *m, struct finding *f)
{
	char path[TREE_PATH], version[64], log[32] = "";

	find_dkms_version(m, version, sizeof(version));
	if (!*version) {
		found_fix(f, "Install the driver's source with `make dkms_install` in the source "
			     "tree or as the package embeng-dkms, then `dkms autoinstall` as root");
		return;
	}
	if (tree_kind(m->tree, tree_path(path, FOLDER "/%s/build", m->release)) != TREE_FOLDER) {
		found_fix(f,
			  "As root: `apt install linux-headers-%s`, without which nothing can be "
			  "built, then `dkms install embeng/%s -k %s`",
			  m->release, version, m->release);
		return;
	}
	if (tree_kind(m->tree, tree_path(path, DKMS "/%s/build/make.log", version)) == TREE_FILE)
		snprintf(log, sizeof(log), "; the last build left ");
	found_fix(f, "As root: `dkms install embeng/%s -k %s`%s%.200s", version, m->release, log,
		  *log ? path : "");
}

void check_driver_built(const struct machine *m, const struct function *device, struct finding *f)
{
	char path[TREE_PATH], other[96], version[64];

	(void)device;
	if (find_module(m, m->release, path)) {
		found_ok(f, "%.300s", path);
		return;
	}
	if (is_driver_loaded(m)) {
		found_ok(f, "the driver is loaded, though modprobe knows no module for Linux %s",
			 m->release);
		return;
	}
	find_dkms_version(m, version, sizeof(version));
	if (find_other_release(m, other, sizeof(other)))
		found_problem(f, CLI_NO_DRIVER,
			      "there is a module for Linux %s, but none for %s, which runs", other,
			      m->release);
	else if (*version)
		found_problem(f, CLI_NO_DRIVER,
			      "DKMS has embeng %s, but has not built it for Linux %s", version,
			      m->release);
	else
		found_problem(f, CLI_NO_DRIVER, "there is no module embeng for Linux %s",
			      m->release);
	explain_missing_module(m, f);
}

/* -- the blacklist --------------------------------------------------------- */

/* True if a line of modprobe's configuration keeps the driver from being loaded. */
static bool is_forbidding(const char *line)
{
	char verb[16], module[16], command[32] = "";
	int words = sscanf(line, "%15s %15s %31s", verb, module, command);

	if (words < 2 || strcmp(module, "embeng"))
		return false;
	return !strcmp(verb, "blacklist") ||
	       (!strcmp(verb, "install") &&
		(strstr(command, "false") || strstr(command, "true") || !strcmp(command, ":")));
}

static bool forbids_driver(const struct machine *m, const char *path)
{
	char *text = tree_text(m->tree, path, TREE_TEXT);
	bool forbids = false;

	for (const char *line = text; line && !forbids; line = strchr(line, '\n')) {
		line += *line == '\n';
		forbids = is_forbidding(line);
	}
	free(text);
	return forbids;
}

/* Finds the file of modprobe's configuration that forbids the driver. */
static bool find_blacklist(const struct machine *m, char path[TREE_PATH])
{
	static const char *const folders[] = {"/etc/modprobe.d", "/run/modprobe.d",
					      "/usr/lib/modprobe.d", "/lib/modprobe.d"};
	struct tree_names names;
	bool found = false;

	for (size_t k = 0; k < sizeof(folders) / sizeof(folders[0]) && !found; k++) {
		if (tree_list(m->tree, folders[k], &names))
			continue;
		for (size_t i = 0; i < names.count && !found; i++) {
			const char *end = strrchr(names.list[i], '.');

			found = end && !strcmp(end, ".conf") &&
				forbids_driver(m,
					       tree_path(path, "%s/%s", folders[k], names.list[i]));
		}
		tree_names_free(&names);
	}
	return found;
}

/* Finds the option of the command line that forbids the driver, whose value is a list. */
static const char *find_boot_blacklist(const struct machine *m)
{
	static const char *const names[] = {"module_blacklist", "modprobe.blacklist"};
	char value[256];

	for (size_t i = 0; i < 2; i++) {
		if (!read_boot_option(m, names[i], value, sizeof(value)))
			continue;
		for (char *c = value; *c; c++)
			*c = *c == ',' ? ' ' : *c;
		if (has_word_in(value, "embeng"))
			return names[i];
	}
	return NULL;
}

void check_driver_blacklisted(const struct machine *m, const struct function *device,
			      struct finding *f)
{
	const char *option = find_boot_blacklist(m);
	char path[TREE_PATH] = "";
	bool file = !option && find_blacklist(m, path);

	(void)device;
	if (!option && !file) {
		found_ok(f, "neither modprobe.d nor the kernel's command line forbids it");
		return;
	}
	if (is_driver_loaded(m))
		found_warning(f, "%.300s forbids the driver, which is loaded all the same",
			      option ? option : path);
	else
		found_problem(f, CLI_NO_DRIVER, "%.300s forbids the driver",
			      option ? option : path);
	if (option)
		found_fix(f,
			  "Take embeng out of %s= on the kernel's command line (on Debian: "
			  "/etc/default/grub, then `update-grub`) and start the machine again",
			  option);
	else
		found_fix(f,
			  "Take the line about embeng out of %.300s, then `modprobe embeng`, as "
			  "root",
			  path);
}

/* -- signatures ------------------------------------------------------------ */

/* The word in brackets of "none [integrity] confidentiality". */
static bool is_locked_down(const struct machine *m)
{
	char line[TREE_LINE];

	return !tree_line(m->tree, "/sys/kernel/security/lockdown", line, sizeof(line)) &&
	       (strstr(line, "[integrity]") || strstr(line, "[confidentiality]"));
}

/* Names what makes the kernel refuse modules without a signature; NULL if nothing does. */
static const char *find_enforcement(const struct machine *m)
{
	char line[TREE_LINE], value[8];

	if (!tree_line(m->tree, "/sys/module/module/parameters/sig_enforce", line, sizeof(line)) &&
	    *line == 'Y')
		return "module.sig_enforce";
	if (read_boot_option(m, "module.sig_enforce", value, sizeof(value)) && *value != '0')
		return "module.sig_enforce";
	return is_locked_down(m) ? "lockdown" : NULL;
}

/* The byte behind the variable's four bytes of attributes is 1. */
static bool has_secure_boot(const struct machine *m)
{
	unsigned char state[5];

	return tree_bytes(m->tree,
			  "/sys/firmware/efi/efivars/"
			  "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
			  state, sizeof(state)) == sizeof(state) &&
	       state[4] == 1;
}

static bool is_signed_file(const struct machine *m, const char *path)
{
	char end[sizeof(SIGNATURE) - 1];

	return tree_end(m->tree, path, end, sizeof(end)) == sizeof(end) &&
	       !memcmp(end, SIGNATURE, sizeof(end));
}

void check_driver_signed(const struct machine *m, const struct function *device, struct finding *f)
{
	const char *by = find_enforcement(m), *boot = has_secure_boot(m) ? "on" : "off";
	char path[TREE_PATH];

	(void)device;
	if (is_driver_loaded(m)) {
		found_ok(f, "the kernel has taken the module; Secure Boot is %s", boot);
		return;
	}
	if (!by || !find_module(m, m->release, path)) {
		found_ok(f, "nothing enforces signatures of modules; Secure Boot is %s", boot);
		return;
	}
	found_fix(f,
		  "As root: `mokutil --import /var/lib/dkms/mok.pub`, start the machine again and "
		  "confirm the key, then `dkms install --force embeng`; or switch Secure Boot "
		  "off");
	if (strcmp(path + strlen(path) - 3, ".ko"))
		found_warning(f,
			      "%s enforces signatures (Secure Boot is %s), and a compressed module "
			      "does not show its own: `modinfo -F signer embeng` says it",
			      by, boot);
	else if (is_signed_file(m, path))
		found_ok(f, "%s enforces signatures (Secure Boot is %s), and the module has one",
			 by, boot);
	else
		found_problem(f, CLI_NO_DRIVER,
			      "%s enforces signatures (Secure Boot is %s), and the module has none",
			      by, boot);
}
