// SPDX-License-Identifier: MIT
/*
 * Writes the image of text sources as a file, for a driver that loads it by name, and as a C
 * header, for the soft device. usage: mkimage HEADER FILE SOURCE...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "source.h"

#define BYTES_PER_LINE 12

static int write_header(FILE *out, const unsigned char *image, size_t length)
{
	size_t i;

	fprintf(out, "/* SPDX-License-Identifier: MIT */\n"
		     "/* Made by mkimage from the sources in firmware-loader/embeng/. */\n"
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
	FILE *out = fopen(path, "we");
	int failed = 1;

	if (out)
		failed = write(out, image, length);
	if (!out || fclose(out) || failed) {
		perror(path);
		return 1;
	}
	return 0;
}

static int read_source(struct fw_source *s, const char *path)
{
	static char text[1 << 20];
	FILE *in = fopen(path, "re");
	size_t length;

	if (!in) {
		perror(path);
		return 1;
	}
	length = fread(text, 1, sizeof(text), in);
	if (ferror(in) || fclose(in) || length == sizeof(text)) {
		fprintf(stderr, "%s: not read to its end\n", path);
		return 1;
	}
	if (fw_source_read(s, path, text, length)) {
		fprintf(stderr, "%s\n", s->error);
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct fw_source source = {0};
	void *image = NULL;
	size_t length;
	int failed = 0;

	if (argc < 4) {
		fprintf(stderr, "usage: mkimage HEADER FILE SOURCE...\n");
		return 2;
	}
	for (int i = 3; !failed && i < argc; i++)
		failed = read_source(&source, argv[i]);
	if (!failed && fw_source_pack(&source, &image, &length)) {
		fprintf(stderr, "%s\n", source.error);
		failed = 1;
	}
	failed = failed || write_file(argv[1], image, length, write_header) ||
		 write_file(argv[2], image, length, write_plain);
	free(image);
	fw_source_free(&source);
	return failed;
}
