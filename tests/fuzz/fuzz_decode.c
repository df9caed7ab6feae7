// SPDX-License-Identifier: MIT
/*
 * Files for `embeng decode`: a good file of a format with bytes changed and its end cut, or the bytes of
 * the input alone. Every reader that works in memory takes it, whatever it holds; what it found has its
 * form, as text and as JSON.
 */
#include "../../runtime/cli/decode/readers.h"
#include "../../runtime/cli/recording/recording.h"
#include "../unit/support/decode_help.h"
#include "fuzz.h"

static void check_sheet(struct sheet *s)
{
	size_t parts = json_object_array_length(s->parts), odd = json_object_array_length(s->odd);
	struct json_object *document = json_object_new_object();
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	fuzz_check(parts <= SHEET_PARTS_MAX && parts <= s->part_count, "%zu parts", parts);
	fuzz_check(odd <= SHEET_ODD_MAX && odd <= s->odd_count, "%zu are odd", odd);
	sheet_print(s, f);
	fclose(f);
	for (size_t i = 0; i < size; i++)
		fuzz_check((unsigned char)text[i] >= ' ' || text[i] == '\n', "a control character");
	free(text);
	sheet_document(s, document);
	fuzz_check(json_object_to_json_string(document) != NULL, "no document");
	json_object_put(document);
}

/* These open the file by its name; fuzz_checkpoint and fuzz_tensors are about them. */
static bool opens_file(const struct reader *reader)
{
	return !strcmp(reader->name, "index") || !strcmp(reader->name, "shard");
}

static void read_as(const struct reader *reader, const struct bytes *b)
{
	struct sheet s;

	sheet_begin(&s);
	reader->read(&s, b);
	check_sheet(&s);
	sheet_end(&s);
}

/* No edit would get past the checksum of an entry, so in half of the files all of them are made right. */
static void mend_sums(struct fuzz *f, struct decode_file *file)
{
	if (recording_is(file->data, file->size) && fuzz_rarely(f, 2))
		decode_mend_entries(file);
}

/* The number 0 is the bytes of the input, so that a corpus of files stays one when a maker is added. */
static struct decode_file take_file(struct fuzz *f)
{
	uint32_t maker = (uint32_t)fuzz_take(f, 1);
	struct decode_file file = {0};

	if (!maker || maker > DECODE_MAKERS) {
		decode_put(&file, f->data, f->left);
		return file;
	}
	file = decode_make(maker - 1);
	fuzz_edit(f, file.data, file.size, 6);
	mend_sums(f, &file);
	if (fuzz_rarely(f, 3))
		file.size = (size_t)fuzz_take(f, 2) % (file.size + 1);
	return file;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = {data, size};
	struct decode_file file = take_file(&f);
	unsigned char *copy = fuzz_memory(file.size);
	struct bytes b = {.path = "nowhere", .data = copy, .size = file.size};

	if (file.size)
		memcpy(copy, file.data, file.size);
	(void)reader_find(&b);
	for (size_t i = 0; i < reader_count; i++) {
		if (!opens_file(&readers[i]))
			read_as(&readers[i], &b);
	}
	free(copy);
	free(file.data);
	return 0;
}
