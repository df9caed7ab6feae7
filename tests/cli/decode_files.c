// SPDX-License-Identifier: MIT
/*
 * Writes a good file of each format for decode.sh, made from the structures of the uapi.
 * usage: decode_files FOLDER
 */
#include "../unit/support/decode_help.h"

int main(int argc, char **argv)
{
	char path[4096];

	for (size_t i = 0; argc == 2 && i < DECODE_MAKERS; i++) {
		struct decode_file f = decode_make(i);
		FILE *to;

		snprintf(path, sizeof(path), "%s/%s", argv[1], f.format);
		to = fopen(path, "w");
		if (!to || fwrite(f.data, 1, f.size, to) != f.size || fclose(to))
			return 1;
		free(f.data);
	}
	return argc != 2;
}
