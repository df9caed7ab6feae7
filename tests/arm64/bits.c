// SPDX-License-Identifier: MIT
/* usage: bits VARIANT. Exit status 3 where the processor lacks it. */
#include "bits.h"

int main(int argc, char **argv)
{
	const struct kernel_ops *ops = argc == 2 ? kernel_select(argv[1]) : NULL;

	if (!ops) {
		fprintf(stderr, "bits: no kernel variant %s here\n", argc == 2 ? argv[1] : "given");
		return argc == 2 ? 3 : 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0); /* results before a crash are still printed */
	bits_of_numbers();
	bits_of_rows(ops);
	bits_of_updates(ops);
	bits_of_engine(ops->name);
	return 0;
}
