// SPDX-License-Identifier: MIT
/* Writes the built-in image as a C header and as a file. usage: mkimage HEADER FILE */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "builtin/parameters.h"
#include "image.h"

#define BYTES_PER_LINE 12

static int write_header(FILE *out, const unsigned char *image, size_t length)
{
	size_t i;

	fprintf(out, "/* SPDX-License-Identifier: MIT */\n"
		     "/* Made by mkimage from firmware-loader/builtin/. */\n"
		     "static const unsigned char embeng_builtin_image[] "
		     "__attribute__((aligned(64))) = {");
	for (i = 0; i < length; i++)
		fprintf(out, "%s0x%02x,", i % BYTES_PER_LINE ? " " : "\n\t", image[i]);
	fprintf(out, "\n};\n");
	return ferror(out);
}

static int write_plain(FILE *out, const unsigned char *image, size_t length)
{
	return fwrite(image, 1, length, out) != length;
}

static int write_file(const char *path, const unsigned char *image, size_t length,
		      int (*write)(FILE *out, const unsigned char *image, size_t length))
{
	FILE *out = fopen(path, "w");
	int failed = 1;

	if (out)
		failed = write(out, image, length);
	if (!out || fclose(out) || failed) {
		perror(path);
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct image_section sections[] = {
		{EMBENG_FW_PARAMETERS, EMBENG_FW_SECTION_MANDATORY, &builtin_parameters,
		 sizeof(builtin_parameters)},
		{EMBENG_FW_STRINGS, 0, builtin_strings, sizeof(builtin_strings)},
	};
	void *image;
	size_t length;
	int failed;

	if (argc != 3) {
		fprintf(stderr, "usage: mkimage HEADER FILE\n");
		return 2;
	}
	if (image_pack(BUILTIN_VERSION, BUILTIN_BUILD_ID, sections,
		       sizeof(sections) / sizeof(sections[0]), &image, &length)) {
		fprintf(stderr, "mkimage: out of memory\n");
		return 1;
	}
	failed = write_file(argv[1], image, length, write_header) ||
		 write_file(argv[2], image, length, write_plain);
	free(image);
	return failed;
}
