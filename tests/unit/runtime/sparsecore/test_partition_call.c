// SPDX-License-Identifier: MIT
/* embeng_partition(): what it takes, what it says otherwise, in place and copied. */
#include "session_help.h"
#include "suite.h"
#include "embeng/partition.h"

#define ITEMS 256
#define POINTERS 64

struct result {
	int32_t row_pointers[POINTERS], tokens[ITEMS], samples[ITEMS];
	float gains[ITEMS];
	uint32_t max_ids[8], max_unique[8];
	uint64_t required[4], first[4], end[4];
	struct embeng_partitioned out;
};

/* Table a of 40 rows with features x and s (a sequence), table b of 100 with feature y. */
static struct embeng *open_stack(void)
{
	struct embeng_table_config a = {.size = sizeof(a),
					.name = "a",
					.vocabulary_size = 40,
					.dim = 1,
					.combiner = EMBENG_SUM};
	struct embeng_table_config t = {.size = sizeof(t),
					.name = "b",
					.vocabulary_size = 100,
					.dim = 1,
					.combiner = EMBENG_MEAN};
	struct embeng_feature_config x = {.size = sizeof(x), .name = "x", .table = 0};
	struct embeng_feature_config s = {
		.size = sizeof(s), .name = "s", .table = 0, .max_sequence_length = 2};
	struct embeng_feature_config y = {.size = sizeof(y), .name = "y", .table = 1};
	struct embeng_model *m = embeng_model_new();
	struct embeng *e = NULL;

	ck_assert_int_eq(embeng_model_add_table(m, &a), 0);
	ck_assert_int_eq(embeng_model_add_table(m, &t), 1);
	ck_assert_int_eq(embeng_model_add_feature(m, &x), 0);
	ck_assert_int_eq(embeng_model_add_feature(m, &s), 1);
	ck_assert_int_eq(embeng_model_add_feature(m, &y), 2);
	ck_assert_int_eq(embeng_open(SMALL, m, &e, NULL), 0);
	embeng_model_free(m);
	return e;
}

static struct embeng_partition_options four_cores(void)
{
	return (struct embeng_partition_options){.size = sizeof(struct embeng_partition_options),
						 .flavour = EMBENG_PARTITION_TF,
						 .sparse_cores = 4,
						 .cores_per_device = 2};
}

static void result_init(struct result *r)
{
	memset(r, 0x5a, sizeof(*r));
	r->out = (struct embeng_partitioned){.size = sizeof(r->out),
					     .row_pointers = r->row_pointers,
					     .row_pointer_capacity = POINTERS,
					     .token_ids = r->tokens,
					     .sample_ids = r->samples,
					     .gains = r->gains,
					     .capacity = ITEMS,
					     .max_ids = r->max_ids,
					     .max_unique_ids = r->max_unique,
					     .required_buffer = r->required,
					     .core_first = r->first,
					     .core_end = r->end};
}

/* x: {5, 1}, {39}; y: {0}, {}, {99, 99}, {1}. */
static struct embeng_batch *good_batch(struct embeng *e)
{
	static const int64_t x[] = {5, 1, 39}, y[] = {0, 99, 99, 1};
	static const int64_t x_lengths[] = {2, 1}, y_lengths[] = {1, 0, 2, 1};
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_INFERENCE, 0);

	ck_assert_int_eq(embeng_batch_ragged(b, 0, EMBENG_I64, x, 3, x_lengths, 2, NULL, 0), 0);
	ck_assert_int_eq(embeng_batch_ragged(b, 2, EMBENG_I64, y, 4, y_lengths, 4, NULL, 0), 0);
	return b;
}

START_TEST(stack_by_hand)
{
	/* b is rotated by 2 and stands behind the 64 padded rows of a. */
	const int32_t pointers[] = {0, 2, 9, 16, 16, 16, 16, 16, 16, 17, 24, 26, 32, 32, 32, 32};
	const uint32_t most[] = {0, 2, 1, 2};
	const uint64_t required[] = {16, 16};
	struct embeng *e = open_stack();
	struct embeng_batch *b = good_batch(e);
	struct embeng_partition_options o = four_cores();
	struct result r;

	result_init(&r);
	ck_assert_int_eq(embeng_partition(e, b, &o, &r.out), 0);
	ck_assert_uint_eq(r.out.row_pointer_count, 16);
	ck_assert_uint_eq(r.out.row_stride, 8);
	ck_assert_uint_eq(r.out.minibatches, 1);
	ck_assert_uint_eq(r.out.buffer_size, 32);
	ck_assert_mem_eq(r.max_ids, most, sizeof(most));
	ck_assert_mem_eq(r.required, required, sizeof(required));
	ck_assert_mem_eq(r.row_pointers, pointers, sizeof(pointers));
	embeng_batch_free(b);
	embeng_close(e);
}
END_TEST

START_TEST(in_place_as_copied)
{
	struct embeng *e = open_stack();
	struct embeng_batch *b = good_batch(e);
	struct embeng_partition_options o = four_cores();
	struct result r, *in = embeng_buffer_alloc(e, sizeof(*in));

	o.flavour = EMBENG_PARTITION_JAX;
	o.max_ids_per_partition = 8;
	result_init(&r);
	result_init(in);
	ck_assert_int_eq(embeng_partition(e, b, &o, &r.out), 0);
	ck_assert_int_eq(embeng_partition(e, b, &o, &in->out), 0);
	ck_assert_uint_eq(r.first[1], 32);
	ck_assert_mem_eq(&r, in, offsetof(struct result, out));
	ck_assert_int_eq(embeng_buffer_free(e, in), 0);
	embeng_batch_free(b);
	embeng_close(e);
}
END_TEST

START_TEST(room_is_enough_and_needed)
{
	struct embeng *e = open_stack();
	struct embeng_batch *b = good_batch(e);
	struct embeng_partition_options o = four_cores();
	size_t pointers, items;
	struct result r;

	ck_assert_int_eq(embeng_partition_room(b, &o, &pointers, &items), 0);
	ck_assert_uint_eq(pointers, 16);
	result_init(&r);
	r.out.row_pointer_capacity = pointers;
	r.out.capacity = items;
	ck_assert_int_eq(embeng_partition(e, b, &o, &r.out), 0);
	result_init(&r);
	r.out.row_pointer_capacity = 15;
	ck_assert_int_eq(embeng_partition(e, b, &o, &r.out), -ERANGE);
	expect_text("row pointers");
	r.out.row_pointer_capacity = 16;
	r.out.capacity = 16;
	ck_assert_int_eq(embeng_partition(e, b, &o, &r.out), -ERANGE);
	expect_text("embeng_partition_room");
	ck_assert_int_eq(r.row_pointers[0], 0x5a5a5a5a);
	ck_assert_int_eq(r.tokens[0], 0x5a5a5a5a);
	ck_assert_int_eq(embeng_partition_room(b, &o, NULL, &items), -EINVAL);
	ck_assert_int_eq(embeng_partition_room(NULL, &o, &pointers, &items), -EINVAL);
	embeng_batch_free(b);
	embeng_close(e);
}
END_TEST

struct refusal {
	const char *text;
	int code;
	void (*make)(struct embeng_partition_options *o);
};

#define REFUSAL(name, change) \
	static void name(struct embeng_partition_options *o) \
	{ \
		change; \
	}

REFUSAL(size, o->size = 8)
REFUSAL(flavour, o->flavour = 2)
REFUSAL(bucket, o->bucket = 4)
REFUSAL(no_cores, o->sparse_cores = 0)
REFUSAL(many_cores, o->sparse_cores = 65538)
REFUSAL(no_device_cores, o->cores_per_device = 0)
REFUSAL(many_device_cores, {
	o->sparse_cores = 130;
	o->cores_per_device = 65;
})
REFUSAL(division, o->cores_per_device = 3)
REFUSAL(power, {
	o->flavour = EMBENG_PARTITION_JAX;
	o->sparse_cores = 6;
})
REFUSAL(device, o->device = 2)
REFUSAL(ids, o->max_ids_per_partition = INT32_MAX)
REFUSAL(unique, o->max_unique_ids_per_partition = INT32_MAX)
REFUSAL(huge_buffer, o->buffer_size = INT32_MAX)
REFUSAL(odd_buffer, o->buffer_size = 12)
REFUSAL(small_buffer, o->buffer_size = 8)
REFUSAL(over_ids, o->max_ids_per_partition = 1)
REFUSAL(over_unique, o->max_unique_ids_per_partition = 1)
REFUSAL(wide_buffer, {
	o->flavour = EMBENG_PARTITION_JAX;
	o->max_ids_per_partition = 8;
	o->buffer_size = 80;
})
REFUSAL(samples, {
	o->sparse_cores = 8;
	o->cores_per_device = 4;
})

static const struct refusal refusals[] = {
	{"another size", -EINVAL, size},
	{"flavour 2", -EINVAL, flavour},
	{"bucket 4", -EINVAL, bucket},
	{"0 sparse_cores", -ERANGE, no_cores},
	{"65538 sparse_cores", -ERANGE, many_cores},
	{"0 cores_per_device", -ERANGE, no_device_cores},
	{"65 cores_per_device", -ERANGE, many_device_cores},
	{"multiple of 3 cores_per_device", -EINVAL, division},
	{"power of two", -EINVAL, power},
	{"device 2", -ERANGE, device},
	{"max_ids_per_partition", -ERANGE, ids},
	{"max_unique_ids_per_partition", -ERANGE, unique},
	{"buffer_size", -ERANGE, huge_buffer},
	{"12 is not a multiple of 8", -EINVAL, odd_buffer},
	{"raise buffer_size", -ERANGE, small_buffer},
	{"has 2 ids in partition 1, max_ids_per_partition allows 1", -ERANGE, over_ids},
	{"has 2 unique ids in partition 1", -ERANGE, over_unique},
	{"larger than 64", -ERANGE, wide_buffer},
	{"feature x: 2 samples are not a multiple of 4", -EINVAL, samples},
};

START_TEST(options_that_cannot_be)
{
	struct embeng *e = open_stack();
	struct embeng_batch *b = good_batch(e);
	struct embeng_partition_options o = four_cores();
	struct result r;

	result_init(&r);
	ck_assert_int_eq(embeng_partition(e, b, &o, &r.out), 0);
	refusals[_i].make(&o);
	result_init(&r);
	ck_assert_msg(embeng_partition(e, b, &o, &r.out) == refusals[_i].code, "%s",
		      refusals[_i].text);
	expect_text(refusals[_i].text);
	ck_assert_int_eq(r.row_pointers[0], 0x5a5a5a5a);
	ck_assert_uint_eq(r.out.row_pointer_count, 0);
	embeng_batch_free(b);
	embeng_close(e);
}
END_TEST

START_TEST(batches_that_cannot_be)
{
	const int64_t ids[] = {1, 40}, lengths[] = {1, 1}, shape[] = {3};
	struct embeng *e = open_stack(), *other = open_stack();
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, 0);
	struct embeng_batch *foreign = good_batch(other);
	struct embeng_partition_options o = four_cores();
	struct result r;

	result_init(&r);
	ck_assert_int_eq(embeng_partition(e, b, &o, &r.out), -EINVAL);
	expect_text("no input");
	ck_assert_int_eq(embeng_partition(e, NULL, &o, &r.out), -EINVAL);
	ck_assert_int_eq(embeng_partition(e, foreign, &o, &r.out), -EINVAL);
	expect_text("not one of this handle");
	ck_assert_int_eq(embeng_partition(NULL, foreign, &o, &r.out), -EINVAL);
	ck_assert_int_eq(embeng_batch_ragged(b, 1, EMBENG_I64, ids, 2, lengths, 2, NULL, 0), 0);
	ck_assert_int_eq(embeng_partition(e, b, &o, &r.out), -EINVAL);
	expect_text("feature s");
	embeng_batch_reset(b, EMBENG_TRAIN);
	ck_assert_int_eq(embeng_batch_ragged(b, 0, EMBENG_I64, ids, 2, lengths, 2, NULL, 0), 0);
	ck_assert_int_eq(embeng_partition(e, b, &o, &r.out), -ERANGE);
	expect_text("feature x, sample 1: id 40 is outside table a, which has rows 0 to 39");
	ck_assert_int_eq(embeng_batch_dense(b, 0, EMBENG_I64, ids, 2, shape, 1), -EINVAL);
	ck_assert_int_eq(embeng_partition(e, b, &o, &r.out), -EINVAL);
	expect_text("feature x");
	embeng_batch_free(foreign);
	embeng_batch_free(b);
	embeng_close(other);
	embeng_close(e);
}
END_TEST

START_TEST(results_that_cannot_be)
{
	struct embeng *e = open_stack();
	struct embeng_batch *b = good_batch(e);
	struct embeng_partition_options o = four_cores();
	struct result r;

	ck_assert_int_eq(embeng_partition(e, b, &o, NULL), -EINVAL);
	ck_assert_int_eq(embeng_partition(e, b, NULL, &r.out), -EINVAL);
	result_init(&r);
	r.out.size = 8;
	ck_assert_int_eq(embeng_partition(e, b, &o, &r.out), -EINVAL);
	expect_text("another size");
	result_init(&r);
	r.out.gains = NULL;
	ck_assert_int_eq(embeng_partition(e, b, &o, &r.out), -EINVAL);
	expect_text("NULL");
	result_init(&r);
	r.out.row_pointers = NULL;
	ck_assert_int_eq(embeng_partition(e, b, &o, &r.out), -EINVAL);
	embeng_batch_free(b);
	embeng_close(e);
}
END_TEST

START_TEST(a_stack_of_too_many_rows)
{
	struct embeng_table_config t = {.size = sizeof(t),
					.vocabulary_size = (1ll << 31) - 64,
					.dim = 1,
					.combiner = EMBENG_SUM,
					.initializer = {.kind = EMBENG_INIT_CONSTANT}};
	struct embeng_feature_config f = {.size = sizeof(f)};
	const int64_t ids[] = {(1ll << 31) - 65, 0}, shape[] = {2};
	struct embeng_partition_options o = four_cores();
	struct embeng_model *m = embeng_model_new();
	struct embeng_batch *b;
	struct embeng *e;
	struct result r;

	for (f.table = 0; f.table < 2; f.table++) {
		ck_assert_int_ge(embeng_model_add_table(m, &t), 0);
		ck_assert_int_ge(embeng_model_add_feature(m, &f), 0);
	}
	ck_assert_int_eq(embeng_open("soft:memory=64G", m, &e, NULL), 0);
	b = embeng_batch_new(e, EMBENG_INFERENCE, 0);
	ck_assert_int_eq(embeng_batch_dense(b, 0, EMBENG_I64, ids, 2, shape, 1), 0);
	result_init(&r);
	ck_assert_int_eq(embeng_partition(e, b, &o, &r.out), 0);
	ck_assert_int_eq(r.tokens[0], (int32_t)(ids[0] / 4));
	ck_assert_int_eq(embeng_batch_dense(b, 1, EMBENG_I64, ids, 2, shape, 1), 0);
	ck_assert_int_eq(embeng_partition(e, b, &o, &r.out), -ERANGE);
	expect_text("2^31");
	embeng_batch_free(b);
	embeng_close(e);
	embeng_model_free(m);
}
END_TEST

START_TEST(the_batch_may_be_enqueued_too)
{
	const int64_t ids[] = {1, 2}, shape[] = {2};
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng *e = open_stack();
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_INFERENCE, 0);
	struct embeng_partition_options o = four_cores();
	struct result r;

	for (int f = 0; f < 3; f++)
		ck_assert_int_eq(embeng_batch_dense(b, f, EMBENG_I64, ids, 2, shape, 1), 0);
	result_init(&r);
	ck_assert_int_eq(embeng_partition(e, b, &o, &r.out), 0);
	ck_assert_int_eq(embeng_enqueue(e, b, -1), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
	ck_assert_int_eq(embeng_release(e, &a), 0);
	embeng_batch_free(b);
	embeng_close(e);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, stack_by_hand);
	tcase_add_test(tcase, in_place_as_copied);
	tcase_add_test(tcase, room_is_enough_and_needed);
	tcase_add_loop_test(tcase, options_that_cannot_be, 0,
			    (int)(sizeof(refusals) / sizeof(refusals[0])));
	tcase_add_test(tcase, batches_that_cannot_be);
	tcase_add_test(tcase, results_that_cannot_be);
	tcase_add_test(tcase, a_stack_of_too_many_rows);
	tcase_add_test(tcase, the_batch_may_be_enqueued_too);
}

int main(void)
{
	return suite_main("embeng_partition", add);
}
