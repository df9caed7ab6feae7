// SPDX-License-Identifier: MIT
/*
 * Files of tensors: each format's numbers, what is refused in which words, and files that are cut
 * off or changed at each of their bytes, which must be read or refused and nothing else.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/cli/tensors/pickle.h"
#include "runtime/cli/tensors/tensor.h"
#include "suite.h"

struct bytes {
	unsigned char data[8192];
	size_t length;
};

static void put(struct bytes *b, const void *data, size_t length)
{
	ck_assert_uint_le(b->length + length, sizeof(b->data));
	memcpy(b->data + b->length, data, length);
	b->length += length;
}

static void put_number(struct bytes *b, uint64_t number, unsigned int bytes)
{
	for (unsigned int i = 0; i < bytes; i++) {
		unsigned char byte = i < 8 ? (unsigned char)(number >> (8 * i)) : 0;

		put(b, &byte, 1);
	}
}

#define PUT(b, text) put(b, text, sizeof(text) - 1)

/* -- opening bytes --------------------------------------------------------- */

struct opened {
	struct tensor_file f;
	char path[40];
	int fd, rc;
};

static void open_bytes(struct opened *o, const void *data, size_t length)
{
	o->fd = memfd_create("tensors", 0);
	ck_assert_int_ge(o->fd, 0);
	ck_assert_int_eq(write(o->fd, data, length), (ssize_t)length);
	snprintf(o->path, sizeof(o->path), "/proc/self/fd/%d", o->fd);
	o->rc = tensor_file_open(&o->f, o->path);
}

static void close_bytes(struct opened *o)
{
	tensor_file_close(&o->f);
	close(o->fd);
}

static void expect_refused(const struct bytes *b, int rc, const char *words)
{
	struct opened o;

	open_bytes(&o, b->data, b->length);
	ck_assert_msg(o.rc == rc && strstr(o.f.why, words), "%d: %s, and not: %s", o.rc, o.f.why,
		      words);
	close_bytes(&o);
}

static void expect_rows(const struct bytes *b, size_t tensor, const char *name, size_t rows,
			size_t dim, const float *want)
{
	float got[64];
	struct opened o;

	open_bytes(&o, b->data, b->length);
	ck_assert_msg(!o.rc, "%s", o.f.why);
	ck_assert_uint_gt(o.f.count, tensor);
	ck_assert_str_eq(o.f.list[tensor].name, name);
	ck_assert(tensor_is_table(&o.f.list[tensor]));
	ck_assert_uint_eq(o.f.list[tensor].shape[0], rows);
	ck_assert_uint_eq(o.f.list[tensor].shape[1], dim);
	ck_assert_int_eq(tensor_rows(&o.f, &o.f.list[tensor], 0, rows, got), 0);
	ck_assert_mem_eq(got, want, rows * dim * sizeof(*got));
	/* The last row alone is the end of all. */
	ck_assert_int_eq(tensor_rows(&o.f, &o.f.list[tensor], rows - 1, 1, got), 0);
	ck_assert_mem_eq(got, want + (rows - 1) * dim, dim * sizeof(*got));
	close_bytes(&o);
}

/* -- files ----------------------------------------------------------------- */

static const float counted[] = {1, 2, 3, 4, 5, 6};

static void put_floats(struct bytes *b)
{
	for (size_t i = 0; i < 6; i++) {
		uint32_t bits;

		memcpy(&bits, &counted[i], 4);
		put_number(b, bits, 4);
	}
}

static void make_npy(struct bytes *b, const char *header)
{
	b->length = 0;
	PUT(b, "\x93NUMPY\1\0");
	put_number(b, strlen(header), 2);
	put(b, header, strlen(header));
}

static void make_counted_npy(struct bytes *b, const char *header)
{
	make_npy(b, header);
	put_floats(b);
}

#define NPY "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n"

static void make_safetensors(struct bytes *b, const char *header)
{
	b->length = 0;
	put_number(b, strlen(header), 8);
	put(b, header, strlen(header));
	put_floats(b);
}

#define SAFETENSORS \
	"{\"__metadata__\": {\"format\": \"pt\"}, \"a\": {\"dtype\": \"F32\", \"shape\": [3, 2], " \
	"\"data_offsets\": [0, 24]}}"

/* A zip of stored members, of which the sizes may be written as zip64 has them. */
struct zip_maker {
	struct bytes *b, directory;
	size_t count;
	bool large;
};

static void add_member(struct zip_maker *z, const char *name, const void *data, size_t length)
{
	size_t local = z->b->length, name_length = strlen(name);

	PUT(z->b, "PK\3\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
	put_number(z->b, length, 4);
	put_number(z->b, length, 4);
	put_number(z->b, name_length, 2);
	put_number(z->b, 3, 2);
	put(z->b, name, name_length);
	put(z->b, "pad", 3);
	put(z->b, data, length);
	PUT(&z->directory, "PK\1\2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
	put_number(&z->directory, z->large ? UINT32_MAX : length, 4);
	put_number(&z->directory, z->large ? UINT32_MAX : length, 4);
	put_number(&z->directory, name_length, 2);
	put_number(&z->directory, z->large ? 28 : 0, 2);
	put_number(&z->directory, 0, 10);
	put_number(&z->directory, z->large ? UINT32_MAX : local, 4);
	put(&z->directory, name, name_length);
	if (z->large) {
		put_number(&z->directory, 1, 2);
		put_number(&z->directory, 24, 2);
		put_number(&z->directory, length, 8);
		put_number(&z->directory, length, 8);
		put_number(&z->directory, local, 8);
	}
	z->count++;
}

static void end_zip(struct zip_maker *z)
{
	size_t at = z->b->length, end;

	put(z->b, z->directory.data, z->directory.length);
	end = z->b->length;
	if (z->large) {
		PUT(z->b, "PK\6\6");
		put_number(z->b, 44, 8);
		put_number(z->b, 0, 12);
		put_number(z->b, z->count, 8);
		put_number(z->b, z->count, 8);
		put_number(z->b, z->directory.length, 8);
		put_number(z->b, at, 8);
		PUT(z->b, "PK\6\7\0\0\0\0");
		put_number(z->b, end, 8);
		put_number(z->b, 1, 4);
	}
	PUT(z->b, "PK\5\6\0\0\0\0");
	put_number(z->b, z->large ? 0xffff : z->count, 2);
	put_number(z->b, z->large ? 0xffff : z->count, 2);
	put_number(z->b, z->large ? UINT32_MAX : z->directory.length, 4);
	put_number(z->b, z->large ? UINT32_MAX : at, 4);
	put_number(z->b, 0, 2);
}

/* A tensor of torch: offset, shape and strides are operations of a pickle. */
#define TENSOR(type, offset, shape, stride) \
	"ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\n" type \
	"\nX\1\0\0\0000X\3\0\0\0cpuK\6tQ" offset shape stride "\x89" \
	"ccollections\nOrderedDict\n)RtR"
#define STATE(tensor) "\x80\2}q\0(X\1\0\0\0wq\1" tensor "X\1\0\0\0nK\7u."
#define WHOLE STATE(TENSOR("FloatStorage", "K\0", "K\2K\3\x86", "K\3K\1\x86"))

static void make_torch(struct bytes *b, const void *pickle, size_t length, bool large)
{
	struct zip_maker z = {.b = b, .large = large};
	struct bytes numbers = {.length = 0};

	b->length = 0;
	put_floats(&numbers);
	add_member(&z, "m/data.pkl", pickle, length);
	add_member(&z, "m/byteorder", "little", 6);
	add_member(&z, "m/data/0", numbers.data, numbers.length);
	end_zip(&z);
}

#define MAKE_TORCH(b, pickle) make_torch(b, pickle, sizeof(pickle) - 1, false)

/* -- tests ----------------------------------------------------------------- */

START_TEST(npy_forms)
{
	static const float turned[] = {1, 3, 5, 2, 4, 6};
	struct bytes b;

	make_counted_npy(&b, NPY);
	expect_rows(&b, 0, "", 2, 3, counted);
	make_counted_npy(&b,
			 "{\"shape\":(6,1),\"fortran_order\":False , \"descr\" : \"<f4\"}   \n");
	expect_rows(&b, 0, "", 6, 1, counted);
	make_counted_npy(&b, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}");
	expect_rows(&b, 0, "", 2, 3, turned);
}
END_TEST

START_TEST(npy_refused)
{
	static const char *const headers[] = {
		"",
		"{",
		"{}",
		"[]",
		"{'descr': '<f4', 'fortran_order': False}",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} x",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'shape': (2, 3)}",
		"{'descr': '<f4', 'fortran_order': None, 'shape': (2, 3)}",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (2, -3)}",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 99999999999999999999)}",
		"{'descr': __import__('os'), 'fortran_order': False, 'shape': (2, 3)}",
	};
	struct bytes b;

	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
		make_counted_npy(&b, headers[i]);
		expect_refused(&b, -EBADMSG, "its header does not say");
	}
	make_counted_npy(&b, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4)}");
	expect_refused(&b, -EBADMSG, "has 24 bytes of numbers, which are not 2 x 4 of type <f4");
	make_counted_npy(&b, "{'descr': '<f4', 'fortran_order': False, "
			     "'shape': (4611686018427387904, 4)}");
	expect_refused(&b, -EBADMSG, "which are not");
	make_counted_npy(&b, NPY);
	b.data[6] = 4;
	expect_refused(&b, -ENOTSUP, "version 4; 1 to 3 are read");
}
END_TEST

START_TEST(safetensors_forms)
{
	struct bytes b;

	make_safetensors(&b, SAFETENSORS);
	expect_rows(&b, 0, "a", 3, 2, counted);
	make_safetensors(&b, "{\"i\": {\"dtype\": \"I64\", \"shape\": [1], \"data_offsets\": [0, "
			     "8]}, \"b\": {\"dtype\": \"F32\", \"shape\": [2, 2], "
			     "\"data_offsets\": [8, 24]}}");
	expect_rows(&b, 1, "b", 2, 2, counted + 2);
}
END_TEST

START_TEST(safetensors_refused)
{
	static const char overflows[] = "{\"a\": {\"dtype\": \"F32\", \"data_offsets\": [0, 0], "
					"\"shape\": [4611686018427387904, 4]}}";
	static const char *const members[] = {
		"{\"a\": 1}",
		"{\"a\": {\"dtype\": \"F32\", \"shape\": [3, 2], \"data_offsets\": [0, 20]}}",
		"{\"a\": {\"dtype\": \"F32\", \"shape\": [3, 2], \"data_offsets\": [4, 28]}}",
		"{\"a\": {\"dtype\": \"F32\", \"shape\": [3, 2], \"data_offsets\": [24, 0]}}",
		"{\"a\": {\"dtype\": \"F32\", \"shape\": [3, -2], \"data_offsets\": [0, 24]}}",
		overflows,
		"{\"a\": {\"dtype\": 7, \"shape\": [3, 2], \"data_offsets\": [0, 24]}}",
	};
	struct bytes b;

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		make_safetensors(&b, members[i]);
		expect_refused(&b, -EBADMSG, "tensor 'a': dtype, shape and data_offsets");
	}
	make_safetensors(&b, "{\"a\": }");
	expect_refused(&b, -EBADMSG, "its header cannot be read");
	make_safetensors(&b, SAFETENSORS);
	b.data[7] = 1;
	expect_refused(&b, -EBADMSG, "says that its header has");
}
END_TEST

START_TEST(torch_forms)
{
	static const float turned[] = {1, 4, 2, 5, 3, 6}, part[] = {2, 3, 5, 6};
	struct bytes b;

	MAKE_TORCH(&b, WHOLE);
	expect_rows(&b, 0, "w", 2, 3, counted);
	make_torch(&b, WHOLE, sizeof(WHOLE) - 1, true);
	expect_rows(&b, 0, "w", 2, 3, counted);
	MAKE_TORCH(&b, STATE(TENSOR("FloatStorage", "K\0", "K\3K\2\x86", "K\1K\3\x86")));
	expect_rows(&b, 0, "w", 3, 2, turned);
	MAKE_TORCH(&b, STATE(TENSOR("FloatStorage", "K\1", "K\2K\2\x86", "K\3K\1\x86")));
	expect_rows(&b, 0, "w", 2, 2, part);
	MAKE_TORCH(&b, "\x80\2" TENSOR("FloatStorage", "K\0", "K\1K\6\x86", "K\6K\1\x86") ".");
	expect_rows(&b, 0, "", 1, 6, counted);
	/* The rows of an expanded tensor are one. */
	MAKE_TORCH(&b, STATE(TENSOR("FloatStorage", "K\0", "K\2K\2\x86", "K\0K\1\x86")));
	expect_rows(&b, 0, "w", 2, 2, (const float[]){1, 2, 1, 2});
}
END_TEST

START_TEST(torch_refused)
{
	struct bytes b;

	MAKE_TORCH(&b, STATE(TENSOR("FloatStorage", "K\0", "K\3K\3\x86", "K\3K\1\x86")));
	expect_refused(&b, -EBADMSG, "'w' of 3 x 3 does not fit the bytes");
	MAKE_TORCH(&b, STATE(TENSOR("FloatStorage", "K\1", "K\2K\3\x86", "K\3K\1\x86")));
	expect_refused(&b, -EBADMSG, "'w' of 2 x 3 does not fit the bytes");
	MAKE_TORCH(&b, STATE(TENSOR("FloatStorage", "K\7", "K\2K\3\x86", "K\3K\1\x86")));
	expect_refused(&b, -EBADMSG, "begins behind the end");
	MAKE_TORCH(&b, STATE(TENSOR("FloatStorage", "K\0", "K\2K\3\x86",
				    "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7fK\1\x86")));
	expect_refused(&b, -EBADMSG, "does not fit the bytes");
	MAKE_TORCH(&b,
		   STATE(TENSOR("FloatStorage", "J\xff\xff\xff\xff", "K\2K\3\x86", "K\3K\1\x86")));
	expect_refused(&b, -EBADMSG, "not described as torch describes");
	/* A pickle that would run a command is data: the call is neither made nor a tensor. */
	MAKE_TORCH(&b, "\x80\2cos\nsystem\nX\4\0\0\0true\x85R.");
	{
		struct opened o;

		open_bytes(&o, b.data, b.length);
		ck_assert_int_eq(o.rc, 0);
		ck_assert_uint_eq(o.f.count, 0);
		close_bytes(&o);
	}
	MAKE_TORCH(&b, "\x80\2\x82\1.");
	expect_refused(&b, -ENOTSUP, "operation 0x82 is none that torch.save() uses");
	/* A list that contains itself. */
	MAKE_TORCH(&b, "\x80\2]q\0h\0a.");
	expect_refused(&b, -ENOTSUP, "nested more than 64 deep");
	b.length = 0;
	PUT(&b, "PK\3\4 and nothing else of a zip");
	expect_refused(&b, -EBADMSG, "no zip directory at its end");
}
END_TEST

/* Each level has the one below it ten times: few bytes, and very many values. */
START_TEST(a_bomb)
{
	struct bytes pickle = {.length = 0}, b;

	PUT(&pickle, "\x80\2]q\0");
	for (char level = 1; level < 20; level++) {
		PUT(&pickle, "](");
		for (int i = 0; i < 10; i++) {
			PUT(&pickle, "h");
			put_number(&pickle, (uint64_t)level - 1, 1);
		}
		PUT(&pickle, "eq");
		put_number(&pickle, (uint64_t)level, 1);
	}
	PUT(&pickle, ".");
	make_torch(&b, pickle.data, pickle.length, false);
	expect_refused(&b, -ENOTSUP, "more than 1000000 values");
}
END_TEST

START_TEST(halves)
{
	static const struct {
		uint16_t bits;
		float value;
	} cases[] = {{0, 0},
		     {0x8000, -0.0f},
		     {1, 0x1p-24f},
		     {0x83ff, -0x1.ff8p-15f},
		     {0x400, 0x1p-14f},
		     {0x3c00, 1},
		     {0xc000, -2},
		     {0x7bff, 65504},
		     {0x3555, 0x1.554p-2f}};
	struct bytes b;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		make_npy(&b, "{'descr': '<f2', 'fortran_order': False, 'shape': (1, 1)}");
		put_number(&b, cases[i].bits, 2);
		expect_rows(&b, 0, "", 1, 1, &cases[i].value);
		make_npy(&b, "{'descr': '>f2', 'fortran_order': False, 'shape': (1, 1)}");
		put_number(&b, (uint16_t)(cases[i].bits << 8 | cases[i].bits >> 8), 2);
		expect_rows(&b, 0, "", 1, 1, &cases[i].value);
	}
}
END_TEST

static void expect_not_finite(uint64_t bits, const char *words)
{
	struct bytes b;
	struct opened o;
	float got[2];

	make_npy(&b, "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 1)}");
	put_number(&b, 0x3ff0000000000000, 8);
	put_number(&b, bits, 8);
	open_bytes(&o, b.data, b.length);
	ck_assert_int_eq(o.rc, 0);
	ck_assert_int_eq(tensor_rows(&o.f, o.f.list, 0, 2, got), -ERANGE);
	ck_assert_msg(strstr(o.f.why, words) != NULL, "%s", o.f.why);
	ck_assert_int_eq(tensor_rows(&o.f, o.f.list, 0, 1, got), 0);
	ck_assert(got[0] == 1);
	close_bytes(&o);
}

START_TEST(values_that_are_not_finite)
{
	expect_not_finite(0x7ff0000000000000, "the array: row 1, column 0 is inf as f32");
	expect_not_finite(0xfff0000000000000, "row 1, column 0 is -inf as f32");
	expect_not_finite(0x7ff8000000000000, "row 1, column 0 is nan as f32");
	/* The least f64 that rounds to no finite f32. */
	expect_not_finite(0x47effffff0000000, "is inf as f32");
}
END_TEST

START_TEST(the_largest_f32)
{
	static const float most = 0x1.fffffep127f;
	struct bytes b;

	make_npy(&b, "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1)}");
	put_number(&b, 0x47efffffefffffff, 8);
	expect_rows(&b, 0, "", 1, 1, &most);
}
END_TEST

/* Reads what can be read; a sanitized build sees what it must not touch. */
static void try_bytes(const void *data, size_t length)
{
	struct opened o;
	float rows[64];

	open_bytes(&o, data, length);
	ck_assert_int_le(o.rc, 0);
	ck_assert(!o.rc || strstr(o.f.why, o.path));
	for (size_t i = 0; !o.rc && i < o.f.count; i++) {
		const struct tensor *t = &o.f.list[i];

		if (tensor_is_table(t) && t->shape[1] <= 64)
			tensor_rows(&o.f, t, t->shape[0] - 1, 1, rows);
	}
	close_bytes(&o);
}

static void damage(struct bytes *b)
{
	static const unsigned char changes[] = {0x01, 0x80, 0xff, 0x20};

	for (size_t length = 0; length < b->length; length++)
		try_bytes(b->data, length);
	for (size_t i = 0; i < b->length; i++) {
		for (size_t k = 0; k < sizeof(changes); k++) {
			b->data[i] ^= changes[k];
			try_bytes(b->data, b->length);
			b->data[i] ^= changes[k];
		}
	}
}

START_TEST(damaged_files)
{
	struct bytes b;

	make_counted_npy(&b, NPY);
	damage(&b);
	make_safetensors(&b, SAFETENSORS);
	damage(&b);
	MAKE_TORCH(&b, WHOLE);
	damage(&b);
	make_torch(&b, WHOLE, sizeof(WHOLE) - 1, true);
	damage(&b);
}
END_TEST

/* Operations in any order, few of which make sense. */
START_TEST(random_pickles)
{
	static const char operations[] = "(}])t\x85\x86\x87suaecR\x81"
					 "bQKMJ\x8aGN\x88X\x8c\x8dUCTBqr\x94hj\x93\x95\n\1\0";
	uint32_t state = 20261127;
	char why[PICKLE_WHY];

	for (int round = 0; round < 200000; round++) {
		char bytes[40] = "\x80\2";
		struct pickle pickle;

		for (size_t i = 2; i < sizeof(bytes); i++) {
			state = state * 1664525u + 1013904223u;
			bytes[i] = operations[(state >> 16) % (sizeof(operations) - 1)];
		}
		bytes[sizeof(bytes) - 1 - (state >> 28)] = '.';
		ck_assert_int_le(pickle_read(&pickle, bytes, sizeof(bytes), why), 0);
		pickle_free(&pickle);
	}
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, npy_forms);
	tcase_add_test(tcase, npy_refused);
	tcase_add_test(tcase, safetensors_forms);
	tcase_add_test(tcase, safetensors_refused);
	tcase_add_test(tcase, torch_forms);
	tcase_add_test(tcase, torch_refused);
	tcase_add_test(tcase, a_bomb);
	tcase_add_test(tcase, halves);
	tcase_add_test(tcase, values_that_are_not_finite);
	tcase_add_test(tcase, the_largest_f32);
	tcase_add_test(tcase, damaged_files);
	tcase_add_test(tcase, random_pickles);
}

int main(void)
{
	return suite_main("tensors", add);
}
