// SPDX-License-Identifier: MIT
/* Lookups from checkpoints: what they find, what they refuse, what a call costs. */
#include <fcntl.h>
#include <sys/wait.h>

#include "allocations.h"
#include "checkpoint_help.h"
#include "fp_mode.h"
#include "serving_help.h"
#include "suite.h"

#define WIDE_ROWS 40000 /* x 64 floats: many chunks */
#define WIDE_DIM 64

static char folder[HELP_PATH];

static void set_up(void)
{
	folder_new(folder);
}

static void tear_down(void)
{
	folder_remove(folder);
}

static void save(struct embeng *e, uint64_t shard_bytes)
{
	const struct embeng_save_options options = {.size = sizeof(options),
						    .shard_bytes = shard_bytes};

	help_expect_ok(embeng_save(e, folder, &options));
}

static struct embeng_serving *serve(const struct embeng_model *features, uint32_t flags)
{
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng_serving *s = NULL;

	ck_assert_msg(!embeng_serving_open(folder, features, flags, &s, &error), "%s", error.text);
	return s;
}

static void expect_refused_open(const struct embeng_model *features, uint32_t flags, int code,
				const char *words)
{
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng_serving *s = NULL;

	ck_assert_int_eq(embeng_serving_open(folder, features, flags, &s, &error), code);
	ck_assert_ptr_null(s);
	ck_assert_msg(strstr(error.text, words) != NULL, "\"%s\" lacks \"%s\"", error.text, words);
}

/* The saved features are served; in shards of one row each they are the same. */
START_TEST(serves_what_was_saved)
{
	const uint64_t shard_bytes[] = {0, 8, 16, 0, 8, 0, 8};
	const uint32_t flags[] = {0,
				  EMBENG_SERVING_VERIFY,
				  EMBENG_SERVING_VERIFY,
				  EMBENG_SERVING_TRUST,
				  EMBENG_SERVING_TRUST,
				  EMBENG_SERVING_COPY,
				  EMBENG_SERVING_COPY};

	for (size_t i = 0; i < 7; i++) {
		struct embeng *e = open_tables();
		struct embeng_serving *s;

		save(e, shard_bytes[i]);
		embeng_close(e);
		s = serve(NULL, flags[i]);
		ck_assert_uint_eq(embeng_model_feature_count(embeng_serving_model(s)), 8);
		expect_lookup(s, ragged_input(MEAN_BAG, I(1, 3, 2), I(0, 2, 2, 3), 4), SHAPE(3, 2),
			      WANT(20, 21, 0, 0, 20, 21));
		expect_lookup(s, ragged_input(SUM_BAG, I(3, 0, 2), I(0, 2, 3), 3), SHAPE(2, 2),
			      WANT(30, 32, 20, 21));
		expect_lookup(s, ragged_input(SEQUENCE, I(1, 2, 3, 3), I(0, 3, 3, 4), 4),
			      SHAPE(3, 2, 2), WANT(10, 11, 20, 21, 0, 0, 0, 0, 30, 31, 0, 0));
		expect_lookup(s, sparse_input(UNCHECKED, I(1, 3), 2, I(0, 0, 0, 1), I(1, 2), 2),
			      SHAPE(1, 2), WANT(20, 21));
		embeng_serving_close(s);
	}
}
END_TEST

START_TEST(a_later_save_changes_nothing)
{
	const float ones[] = {1, 1, 1, 1, 1, 1, 1, 1};
	struct embeng *e = open_tables();
	struct embeng_serving *before, *after;

	save(e, 8);
	before = serve(NULL, 0);
	ck_assert_int_eq(embeng_rows_write(e, 1, NULL, NULL, 4, ones), 0);
	save(e, 0);
	after = serve(NULL, 0);
	embeng_close(e);
	expect_lookup(before, ragged_input(MEAN_BAG, I(1, 3), I(0, 2), 2), SHAPE(1, 2),
		      WANT(20, 21));
	expect_lookup(after, ragged_input(MEAN_BAG, I(1, 3), I(0, 2), 2), SHAPE(1, 2), WANT(1, 1));
	embeng_serving_close(before);
	embeng_serving_close(after);
}
END_TEST

/* Tables by name, in another order; the combiner is the served model's. */
START_TEST(other_features_over_the_same_tables)
{
	struct embeng_model *m = embeng_model_new();
	struct embeng *e = open_tables();
	struct embeng_serving *s;

	save(e, 0);
	embeng_close(e);
	add_table(m, "sqrtn", EMBENG_MEAN);
	add_table(m, "sum", EMBENG_SUM);
	add_feature(m, (struct embeng_feature_config){.name = "a", .table = 0});
	add_feature(m, (struct embeng_feature_config){
			       .name = "b", .table = 1, .max_sequence_length = 1});
	s = serve(m, 0);
	embeng_model_free(m);
	ck_assert_uint_eq(embeng_model_feature_count(embeng_serving_model(s)), 2);
	expect_lookup(s, ragged_input(0, I(1, 2), I(0, 2), 2), SHAPE(1, 2), WANT(15, 16));
	expect_lookup(s, ragged_input(1, I(1, 2), I(0, 2), 2), SHAPE(1, 1, 2), WANT(10, 11));
	embeng_serving_close(s);
}
END_TEST

START_TEST(refused_opens)
{
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng_serving *s = NULL;
	struct embeng_model *m = embeng_model_new();
	struct embeng_table_config t = {
		.size = sizeof(t), .name = "sum", .vocabulary_size = 4, .dim = 3};
	struct embeng *e = open_tables();

	expect_refused_open(NULL, 0, -ENOENT, folder);
	save(e, 0);
	add_table(m, "elsewhere", EMBENG_SUM);
	expect_refused_open(m, 0, -ENOENT, "table elsewhere is not in");
	embeng_model_free(m);
	m = embeng_model_new();
	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	expect_refused_open(m, 0, -EINVAL,
			    "table sum is 4 x 3 in the features to serve, and 4 x 2");
	ck_assert_int_eq(embeng_serving_live(e, m, &s, &error), -EINVAL);
	embeng_model_free(m);
	m = embeng_model_new();
	t.vocabulary_size = 5;
	t.dim = 2;
	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	expect_refused_open(m, 0, -EINVAL,
			    "table sum is 5 x 2 in the features to serve, and 4 x 2");
	embeng_model_free(m);
	expect_refused_open(NULL, 8, -EINVAL, "flags 0x8");
	expect_refused_open(NULL, EMBENG_SERVING_TRUST | EMBENG_SERVING_COPY, -EINVAL,
			    "give one of them");
	expect_refused_open(NULL, EMBENG_SERVING_VERIFY | EMBENG_SERVING_TRUST, -EINVAL,
			    "give one of them");
	ck_assert_int_eq(embeng_serving_open(NULL, NULL, 0, &s, &error), -EINVAL);
	ck_assert_int_eq(embeng_serving_open(folder, NULL, 0, NULL, NULL), -EINVAL);
	setenv("EMBENG_KERNEL", "punched_cards", 1);
	expect_refused_open(NULL, 0, -EINVAL, "no kernel variant \"punched_cards\"");
	unsetenv("EMBENG_KERNEL");
	ck_assert_ptr_null(s);
	ck_assert_ptr_null(embeng_serving_model(NULL));
	embeng_serving_close(NULL);
	embeng_close(e);
}
END_TEST

static struct embeng *open_wide(void)
{
	const struct help_table table = {.name = "wide", .rows = WIDE_ROWS, .dim = WIDE_DIM};
	struct embeng *e = help_open(SMALL, &table, 1);

	help_fill(e, 7);
	return e;
}

/* One bit of the shard, three quarters into it. */
static void corrupt(void)
{
	char names[8][256], path[2 * HELP_PATH];
	size_t count = folder_files(folder, names, 8);
	struct stat info = {0};
	unsigned char byte;
	int file = -1;

	for (size_t i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		ck_assert_int_eq(stat(path, &info), 0);
		if (info.st_size > WIDE_ROWS * WIDE_DIM)
			file = open(path, O_RDWR);
		if (file >= 0)
			break;
	}
	ck_assert_int_ge(file, 0);
	ck_assert_int_eq(pread(file, &byte, 1, info.st_size / 4 * 3), 1);
	byte ^= 4;
	ck_assert_int_eq(pwrite(file, &byte, 1, info.st_size / 4 * 3), 1);
	close(file);
}

/* Its bytes lie around three quarters of the file, at the end of which is the chunk table. */
#define CORRUPT_ROW (WIDE_ROWS / 4 * 3 + 25)

/* Found on the first use of its chunk, the others stay good; or at open. */
START_TEST(a_corrupt_chunk)
{
	struct embeng *e = open_wide();
	struct embeng_serving *s;
	float out[WIDE_DIM * 2] = {-77}, want[WIDE_DIM];
	struct embeng_serving_input in = ragged_input(0, I(1, WIDE_ROWS - 5), I(0, 1, 2), 3);

	save(e, 0);
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, I(1), 1, want), 0);
	embeng_close(e);
	corrupt();
	s = serve(NULL, 0);
	in.out = out;
	in.out_elements = WIDE_DIM * 2;
	in.ids = I(1, CORRUPT_ROW);
	help_expect(embeng_serving_lookup(s, &in, 1), -EBADMSG, "do not match their checksum");
	ck_assert(out[0] == -77);
	in.ids = I(1, 1);
	help_expect_ok(embeng_serving_lookup(s, &in, 1));
	expect_floats(out, want, WIDE_DIM);
	embeng_serving_close(s);
	expect_refused_open(NULL, EMBENG_SERVING_VERIFY, -EBADMSG, "do not match their checksum");
	expect_refused_open(NULL, EMBENG_SERVING_COPY, -EBADMSG, "do not match their checksum");
	/* Whoever trusts the files gets what is in them. */
	s = serve(NULL, EMBENG_SERVING_TRUST);
	in.ids = I(1, CORRUPT_ROW);
	help_expect_ok(embeng_serving_lookup(s, &in, 1));
	expect_floats(out, want, WIDE_DIM);
	embeng_serving_close(s);
}
END_TEST

/* Looks each row up alone. Return: how many are corrupt, the first and the last of which are set. */
static size_t find_corrupt(const struct embeng_serving *s, const float *want, int64_t *first,
			   int64_t *last)
{
	float out[WIDE_DIM];
	struct embeng_serving_input in = ragged_input(0, I(0), I(0, 1), 2);
	size_t count = 0;

	in.out = out;
	in.out_elements = WIDE_DIM;
	for (int64_t row = 0; row < WIDE_ROWS; row++) {
		int ret;

		in.ids = &row;
		ret = embeng_serving_lookup(s, &in, 1);
		if (!ret) {
			expect_floats(out, want + row * WIDE_DIM, WIDE_DIM);
			continue;
		}
		ck_assert_int_eq(ret, -EBADMSG);
		*first = count++ ? *first : row;
		*last = row;
	}
	return count;
}

/* Over several shards: the rows of a chunk, no other ones, and in a batch whose other rows are good. */
START_TEST(rows_of_a_corrupt_chunk)
{
	enum { IDS = 3000 };
	static float out[IDS * WIDE_DIM], want[WIDE_ROWS * WIDE_DIM];
	static int64_t ids[IDS], splits[IDS + 1];
	struct embeng_serving_input in = ragged_input(0, ids, splits, IDS + 1);
	struct embeng *e = open_wide();
	struct embeng_serving *s;
	int64_t first[2], last[2];

	save(e, 4 << 20);
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, NULL, WIDE_ROWS, want), 0);
	embeng_close(e);
	corrupt();
	s = serve(NULL, 0);
	/* Once while chunks are checked, once when all others are noted as good. */
	for (int i = 0; i < 2; i++) {
		size_t count = find_corrupt(s, want, &first[i], &last[i]);

		ck_assert_uint_ge(count, 4096 / (WIDE_DIM * 4));
		ck_assert_uint_le(count, 4096 / (WIDE_DIM * 4) + 1);
		ck_assert_uint_eq(count, (size_t)(last[i] - first[i] + 1));
		ck_assert_int_eq(first[i], first[0]);
		ck_assert_int_eq(last[i], last[0]);
	}
	in.out = out;
	in.id_count = IDS;
	in.out_elements = IDS * WIDE_DIM;
	for (int i = 0; i < IDS; i++) {
		ids[i] = last[0] + 1 + (int64_t)i * 7919 % (WIDE_ROWS - last[0] - 1);
		splits[i + 1] = i + 1;
	}
	help_expect_ok(embeng_serving_lookup(s, &in, 1));
	for (int i = 0; i < IDS; i++)
		expect_floats(out + i * WIDE_DIM, want + ids[i] * WIDE_DIM, WIDE_DIM);
	for (int64_t row = first[0]; row <= last[0]; row++) {
		ids[IDS / 2] = row;
		help_expect(embeng_serving_lookup(s, &in, 1), -EBADMSG,
			    "do not match their checksum");
	}
	embeng_serving_close(s);
}
END_TEST

/* A copy is served although the files are cut to nothing, which would end a process that maps them. */
START_TEST(a_copy_needs_no_files)
{
	char names[64][256], path[2 * HELP_PATH];
	struct embeng *e = open_tables();
	struct embeng_serving *s;
	size_t count;

	save(e, 8);
	embeng_close(e);
	s = serve(NULL, EMBENG_SERVING_COPY);
	count = folder_files(folder, names, 64);
	ck_assert_uint_gt(count, 1);
	for (size_t i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		ck_assert_int_eq(truncate(path, 0), 0);
	}
	expect_lookup(s, ragged_input(MEAN_BAG, I(1, 3, 2), I(0, 2, 2, 3), 4), SHAPE(3, 2),
		      WANT(20, 21, 0, 0, 20, 21));
	embeng_serving_close(s);
}
END_TEST

/* A bag over all chunks; nothing is allocated, neither the first time nor later. */
START_TEST(a_call_allocates_nothing)
{
	enum { IDS = 5000 };
	static int64_t ids[IDS], indices[2 * IDS];
	static float weights[IDS], out[2 * WIDE_DIM];
	struct embeng *e = open_wide();
	struct embeng_serving_input in[2] = {
		ragged_input(0, ids, I(0, 1, IDS), 3),
		sparse_input(0, ids, IDS, indices, I(2, IDS), 2),
	};
	struct embeng_serving *s;
	size_t before;

	for (int i = 0; i < IDS; i++) {
		ids[i] = (int64_t)i * 7919 % WIDE_ROWS;
		indices[2 * i] = i > IDS / 2;
		weights[i] = (float)(i % 7) - 1;
	}
	save(e, 4 << 20);
	s = serve(NULL, 0);
	for (int k = 0; k < 2; k++) {
		in[k].out = out;
		in[k].out_elements = 2 * WIDE_DIM;
		weigh(&in[k], weights);
	}
	ck_assert_uint_gt(allocations_seen, 0);
	for (int i = 0; i < 3; i++) {
		int64_t shape[3];
		size_t rank;
		int ret;

		before = allocations_seen;
		ret = embeng_serving_shape(s, &in[1], shape, &rank);
		ret = ret ? ret : embeng_serving_lookup(s, in, 2);
		ck_assert_uint_eq(allocations_seen, before);
		ck_assert_int_eq(ret, 0);
	}
	embeng_serving_close(s);
	embeng_close(e);
}
END_TEST

/* The caller's floating-point mode changes no bit of a result, and is kept. */
START_TEST(bits_in_any_mode)
{
	struct embeng *e = open_tables();
	struct embeng_serving *s;
	struct embeng_serving_input in = ragged_input(SQRTN_BAG, I(1, 3, 2, 3, 1), I(0, 2, 5), 3);
	float want[4], out[4];

	save(e, 0);
	embeng_close(e);
	s = serve(NULL, 0);
	weigh(&in, F(0.1f, 1e-41f, 0.7f, -1.3f, 2.9f));
	in.out = want;
	in.out_elements = 4;
	help_expect_ok(embeng_serving_lookup(s, &in, 1));
	in.out = out;
	for (int mode = 0; mode < FP_MODES; mode++) {
		int ret;

		fp_mode_set(mode);
		ret = embeng_serving_lookup(s, &in, 1);
		fp_mode_set(FP_DEFAULT);
		ck_assert_int_eq(ret, 0);
		ck_assert_msg(!memcmp(out, want, sizeof(out)), "%s", fp_mode_names[mode]);
	}
	embeng_serving_close(s);
}
END_TEST

/* A server may open once and fork its workers. */
START_TEST(works_in_the_child_of_a_fork)
{
	struct embeng *e = open_tables();
	struct embeng_serving *s;
	float out[2] = {0};
	struct embeng_serving_input in = ragged_input(MEAN_BAG, I(1, 3), I(0, 2), 2);
	int status;
	pid_t child;

	save(e, 0);
	embeng_close(e);
	s = serve(NULL, 0);
	in.out = out;
	in.out_elements = 2;
	child = fork();
	if (!child)
		_exit(embeng_serving_lookup(s, &in, 1) || out[0] != 20 || out[1] != 21);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	embeng_serving_close(s);
}
END_TEST

static void add(TCase *tcase)
{
	const TTest *const tests[] = {
		serves_what_was_saved,
		a_later_save_changes_nothing,
		other_features_over_the_same_tables,
		refused_opens,
		a_corrupt_chunk,
		rows_of_a_corrupt_chunk,
		a_copy_needs_no_files,
		a_call_allocates_nothing,
		bits_in_any_mode,
		works_in_the_child_of_a_fork,
	};

	allocations_start();
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++)
		tcase_add_test(tcase, tests[i]);
}

int main(void)
{
	return suite_main("serving_open", add);
}
