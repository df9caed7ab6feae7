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

/*
 * True if the kernel's configuration says that it has no accel subsystem. Distributions keep it in
 * different places; the first that tells of DRM counts.
 */
static bool lacks_accel(const struct machine *m)
{
	static const struct {
		const char *before, *after;
	} places[] = {
		{"/boot/config-", ""}, {FOLDER "/", "/config"}, {FOLDER "/", "/build/.config"}};
	bool told = false, lacks = false;
	char path[TREE_PATH], *text;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !told; i++) {
		tree_path(path, "%s%s%s", places[i].before, m->release, places[i].after);
		text = tree_text(m->tree, path, TREE_TEXT);
		told = text && strstr(text, "\nCONFIG_DRM=");
		lacks = told && !strstr(text, "\nCONFIG_DRM_ACCEL=y\n");
		free(text);
	}
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
			  "start the machine with that kernel; elsewhere, take a kernel with "
			  "CONFIG_DRM_ACCEL=y");
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

bool find_driver_module(const struct machine *m, const char *release, char path[TREE_PATH])
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
			find_driver_module(m, names.list[i], path);
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

/* Finds a module in one folder, compressed or not. */
static bool has_module_in(const struct machine *m, const char *folder, char path[TREE_PATH])
{
	static const char *const endings[] = {"", ".xz", ".zst", ".gz"};

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		tree_path(path, "%s/embeng.ko%s", folder, endings[i]);
		if (tree_kind(m->tree, path) == TREE_FILE)
			return true;
	}
	return false;
}

/* Finds a module that was copied into one of the usual places without a call of depmod. */
static bool find_unlisted_module(const struct machine *m, char path[TREE_PATH])
{
	static const char *const places[] = {
		"updates",	"updates/dkms", "updates/kmod",		"extra",
		"extra/embeng", "extra/kmod",	"kernel/drivers/accel", "misc"};
	char folder[TREE_PATH];

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		tree_path(folder, FOLDER "/%s/%s", m->release, places[i]);
		if (has_module_in(m, folder, path))
			return true;
	}
	return false;
}

/* True if DKMS has built the module for the kernel that runs: "installed" is a step of its own. */
static bool is_built_by_dkms(const struct machine *m, const char *version)
{
	char folder[TREE_PATH], path[TREE_PATH];
	struct tree_names names;
	bool built = false;

	tree_path(path, DKMS "/%s/%s", version, m->release);
	if (!*version || tree_list(m->tree, path, &names))
		return false;
	for (size_t i = 0; i < names.count && !built; i++) {
		tree_path(folder, DKMS "/%s/%s/%s/module", version, m->release, names.list[i]);
		built = has_module_in(m, folder, path);
	}
	tree_names_free(&names);
	return built;
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
	if (!is_built_by_dkms(m, version) &&
	    tree_kind(m->tree, tree_path(path, FOLDER "/%s/build", m->release)) != TREE_FOLDER) {
		found_fix(f,
			  "As root: `apt install linux-headers-%s` (Fedora: kernel-devel-%s), "
			  "without which nothing can be built, then `dkms install embeng/%s -k %s`",
			  m->release, m->release, version, m->release);
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
	if (find_driver_module(m, m->release, path)) {
		found_ok(f, "%.300s", path);
		return;
	}
	if (is_driver_loaded(m)) {
		found_ok(f, "the driver is loaded, though modprobe knows no module for Linux %s",
			 m->release);
		return;
	}
	if (find_unlisted_module(m, path)) {
		found_problem(f, CLI_NO_DRIVER, "%.300s is there, but modprobe does not know it",
			      path);
		found_fix(f, "As root: `depmod -a %s`, then `modprobe embeng`", m->release);
		return;
	}
	find_dkms_version(m, version, sizeof(version));
	if (is_built_by_dkms(m, version))
		found_problem(f, CLI_NO_DRIVER,
			      "DKMS has built embeng %s for Linux %s, but not installed it",
			      version, m->release);
	else if (find_other_release(m, other, sizeof(other)))
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

/* -- signatures ------------------------------------------------------------ */

#define LOCKDOWN "/sys/kernel/security/lockdown"
#define EFI "/sys/firmware/efi"

/* The word in brackets of "none [integrity] confidentiality". */
static bool is_locked_down(const struct machine *m)
{
	char line[TREE_LINE];

	return !tree_line(m->tree, LOCKDOWN, line, sizeof(line)) &&
	       (strstr(line, "[integrity]") || strstr(line, "[confidentiality]"));
}

/* Names what makes the kernel refuse modules without a signature; NULL if nothing does. */
static const char *find_enforcement(const struct machine *m)
{
	char line[TREE_LINE], value[8];

	if (!tree_line(m->tree, "/sys/module/module/parameters/sig_enforce", line, sizeof(line)) &&
	    *line == 'Y')
		return "module.sig_enforce";
	/* The word alone says yes, too. */
	if (read_boot_option(m, "module.sig_enforce", value, sizeof(value)) &&
	    (!*value || strchr("yYtT1", *value) || !strcmp(value, "on")))
		return "module.sig_enforce";
	return is_locked_down(m) ? "lockdown" : NULL;
}

/* The byte behind the variable's four bytes of attributes is 1. A machine without EFI has none. */
static const char *read_secure_boot(const struct machine *m)
{
	unsigned char state[5];

	if (tree_bytes(m->tree, EFI "/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
		       state, sizeof(state)) == sizeof(state))
		return state[4] == 1 ? "on" : "off";
	return tree_kind(m->tree, EFI) == TREE_FOLDER ? "not known" : "off";
}

static bool is_signed_file(const struct machine *m, const char *path)
{
	char end[sizeof(SIGNATURE) - 1];

	return tree_end(m->tree, path, end, sizeof(end)) == sizeof(end) &&
	       !memcmp(end, SIGNATURE, sizeof(end));
}

static void explain_signature(struct finding *f)
{
	found_fix(f,
		  "As root: `mokutil --import /var/lib/dkms/mok.pub`, start the machine again and "
		  "confirm the key, then `dkms install --force embeng`; or switch Secure Boot "
		  "off");
}

/*
 * Most distributions' kernels lock themselves down where Secure Boot is on. One that does not tell,
 * because securityfs is not mounted, may do so.
 */
static bool may_be_locked_down(const struct machine *m, const char *boot)
{
	char line[TREE_LINE];

	return !strcmp(boot, "on") && tree_line(m->tree, LOCKDOWN, line, sizeof(line));
}

static bool is_plain_module(const char *path)
{
	const char *ending = strrchr(path, '.');

	return ending && !strcmp(ending, ".ko");
}

void check_driver_signed(const struct machine *m, const struct function *device, struct finding *f)
{
	const char *by = find_enforcement(m), *boot = read_secure_boot(m);
	bool may_enforce = !by && may_be_locked_down(m, boot);
	char path[TREE_PATH];

	(void)device;
	if (is_driver_loaded(m)) {
		found_ok(f, "the kernel has taken the module; Secure Boot is %s", boot);
	} else if ((!by && !may_enforce) || !find_driver_module(m, m->release, path)) {
		found_ok(f, "nothing enforces signatures of modules; Secure Boot is %s", boot);
	} else if (is_plain_module(path) && is_signed_file(m, path)) {
		found_ok(f, "%s%s (Secure Boot is %s), and the module has one",
			 by ? by : "the kernel may enforce signatures",
			 by ? " enforces signatures" : "", boot);
	} else if (may_enforce) {
		found_warning(f, "Secure Boot is on, so that the kernel may refuse the module%s",
			      is_plain_module(path) ? ", which has no signature"
						    : ", whose signature a compressed file does "
						      "not show");
		explain_signature(f);
	} else if (!is_plain_module(path)) {
		found_warning(f,
			      "%s enforces signatures (Secure Boot is %s), and a compressed module "
			      "does not show its own: `modinfo -F signer embeng` says it",
			      by, boot);
		explain_signature(f);
	} else {
		found_problem(f, CLI_NO_DRIVER,
			      "%s enforces signatures (Secure Boot is %s), and the module has none",
			      by, boot);
		explain_signature(f);
	}
}
