// SPDX-License-Identifier: MIT
/* embeng fw COMMAND: finds the command. */
#include <errno.h>
#include <string.h>

#include "fw.h"

static const struct {
	const char *name, *usage, *summary;
	int (*run)(int argc, char **argv);
} verbs[] = {
	{"pack", "pack SOURCE... -o IMAGE", "make an image of text sources", fw_pack},
	{"inspect", "inspect IMAGE", "header, sections, parameters, strings, self-tests", fw_inspect},
	{"verify", "verify IMAGE", "check all that a device checks, and the signature", fw_verify},
	{"sign", "sign IMAGE --key KEY", "write the detached signature", fw_sign},
};

#define COUNT (sizeof(verbs) / sizeof(verbs[0]))

static void print_help(void)
{
	fputs("Usage: embeng fw COMMAND [OPTION...]\n"
	      "Firmware images: what they are, embeng-firmware(5) says. No device is opened.\n\n"
	      "Commands:\n", stdout);
	for (size_t k = 0; k < COUNT; k++)
		printf("  %-25s %s\n", verbs[k].usage, verbs[k].summary);
	fputs("\nExamples:\n"
	      "  embeng fw inspect /lib/firmware/embeng/embeng.fw\n"
	      "  embeng fw pack firmware.txt self-tests.txt -o embeng.fw\n"
	      "  embeng fw sign embeng.fw --key private.pem\n"
	      "  embeng fw verify embeng.fw --key public.pem\n"
	      "  embeng fw pack --help                  a command's options\n\n"
	      "Exit status: 0 ok, 2 usage or a source is wrong, 4 permission, 7 read or write error,\n"
	      "10 a device would refuse the image, or the signature is not good.\n", stdout);
}

static int refuse(const struct output *out, const char *name)
{
	const char *hint = "embeng fw --help lists the commands";

	if (!name)
		return output_fail(out, CLI_USAGE, EINVAL, hint,
				   "which command? pack, inspect, verify or sign");
	if (*name == '-')
		return output_fail(out, CLI_USAGE, EINVAL, hint,
				   "the command goes before '%s': pack, inspect, verify or sign",
				   name);
	return output_fail(out, CLI_USAGE, EINVAL, hint, "there is no command '%s'", name);
}

int cmd_fw(int argc, char **argv)
{
	struct output out = {.verb = "fw"};
	const char *name = argc > 1 ? argv[1] : NULL;
	char title[64];

	for (int i = 1; i < argc; i++)
		out.json |= !strcmp(argv[i], "--json") || !strcmp(argv[i], "-j");
	if (name && (!strcmp(name, "--help") || !strcmp(name, "-h"))) {
		print_help();
		return CLI_OK;
	}
	for (size_t k = 0; name && k < COUNT; k++) {
		if (strcmp(verbs[k].name, name) != 0)
			continue;
		snprintf(title, sizeof(title), "embeng fw %s", name);
		argv[1] = title;
		return verbs[k].run(argc - 1, argv + 1);
	}
	return refuse(&out, name);
}
