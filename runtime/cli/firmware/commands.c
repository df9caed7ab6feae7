// SPDX-License-Identifier: MIT
/*
 * The verb `embeng fw`: finds its command. The commands are in pack.c, inspect.c, sign.c,
 * verify.c and show.c.
 */
#include "../frame/group.h"
#include "commands.h"

static const struct group_command list[] = {
	{"pack", "pack SOURCE... -o IMAGE", "make an image from text sources", fw_pack},
	{"inspect", "inspect IMAGE", "show header, sections, parameters, strings, self-tests",
	 fw_inspect},
	{"verify", "verify IMAGE", "check everything that a device checks, and the signature",
	 fw_verify},
	{"sign", "sign IMAGE", "put a signature behind the image", fw_sign},
	{"show", "show", "show which firmware a device runs, and who signed it", fw_show},
};

static const struct group group = {
	.verb = "fw",
	.list = list,
	.count = sizeof(list) / sizeof(list[0]),
	.column = 25,
	.intro = "Usage: embeng fw COMMAND [OPTION...]\n"
		 "Make and check firmware images, which embeng-firmware(5) describes. Only show\n"
		 "needs a device.\n",
	.end = "\nExamples:\n"
	       "  embeng fw inspect /lib/firmware/embeng/embeng.fw\n"
	       "  embeng fw pack firmware.txt self-tests.txt -o embeng.fw\n"
	       "  embeng fw sign embeng.fw --key key.pem --certificate cert.pem\n"
	       "  embeng fw verify embeng.fw --certificate cert.pem\n"
	       "  embeng fw pack --help                  show the options of a command\n\n"
	       "Exit status: 0 ok, 2 usage or a source is wrong, 4 permission, 7 read or write "
	       "error,\n"
	       "10 a device would refuse the image, or it is not signed by the certificate.\n",
};

int cmd_fw(int argc, char **argv)
{
	return group_run(&group, argc, argv);
}
