// SPDX-License-Identifier: MIT
/* Buffers of embeng_buffer_alloc(): ids and gradients in them are used in place and not copied. */
#include "device/buffer.h"
#include "session_help.h"

static uint64_t copied(struct embeng *e)
{
	struct embeng_counter_values v = {.size = sizeof(v)};

	ck_assert_int_eq(embeng_counters(e, &v), 0);
	return v.bytes_copied;
}

START_TEST(ids_in_a_buffer_are_not_copied)
{
	const float want[] = {30, 31, 0, 1};
	const int64_t shape[] = {2};
	struct embeng *e = open_small(&(struct shape){0});
	int32_t *ids = embeng_buffer_alloc(e, 4096);
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_INFERENCE, 0);
	struct embeng_activations a = {.size = sizeof(a)};
	uint64_t before = copied(e);

	ids[1] = 3;
	ck_assert_int_eq(embeng_batch_dense(b, 0, EMBENG_I32, ids + 1, 2, shape, 1), 0);
	ck_assert_int_eq(embeng_enqueue(e, b, 0), 0);
	ck_assert_uint_eq(copied(e), before);
	ck_assert_int_eq(embeng_dequeue(e, 0, 0, &a), 0);
	expect_floats(a.features[0].data, want, 4);
	ck_assert_int_eq(embeng_release(e, &a), 0);
	embeng_batch_free(b);
	ck_assert_int_eq(embeng_buffer_free(e, ids + 1), -EINVAL);
	ck_assert_int_eq(embeng_buffer_free(e, ids), 0);
	embeng_close(e);
}
END_TEST

START_TEST(gradients_keep_their_buffer)
{
	struct embeng *e = open_small(&(struct shape){.optimizer = embeng_sgd(1), .replicas = 2});
	float *data = embeng_buffer_alloc(e, 24);
	const float *features[] = {data};
	struct embeng_gradients g = {.size = sizeof(g), .count = 1, .features = features};
	struct embeng_activations a = {.size = sizeof(a)};

	for (uint32_t r = 0; r < 2; r++) {
		ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, r, 0), 0);
		ck_assert_int_eq(embeng_dequeue(e, r, 0, &a), 0);
	}
	ck_assert_int_eq(embeng_apply_gradients(e, &g, 0), 0);
	ck_assert_int_eq(embeng_buffer_free(e, data), -EBUSY);
	ck_assert_int_eq(apply_ones(e, 1), 0);
	ck_assert_int_eq(embeng_flush(e, -1), 0);
	ck_assert_int_eq(embeng_buffer_free(e, data), 0);
	embeng_close(e);
}
END_TEST

START_TEST(inference_views_run_out)
{
	struct embeng *e = open_small(&(struct shape){.depth = 2});
	struct embeng_activations a = {.size = sizeof(a)};

	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(enqueue_bags(e, EMBENG_INFERENCE, 0, 0), 0);
	ck_assert_int_eq(enqueue_bags(e, EMBENG_INFERENCE, 0, 0), -EBUSY);
	ck_assert_int_eq(embeng_dequeue(e, 0, 0, &a), 0);
	ck_assert_int_eq(embeng_release(e, &a), 0);
	ck_assert_int_eq(enqueue_bags(e, EMBENG_INFERENCE, 0, 0), 0);
	embeng_close(e);
}
END_TEST

/* Three of 64 bytes, the second right behind the first: whose is an array? */
START_TEST(an_array_lies_in_one_buffer)
{
	static char memory[256] __attribute__((aligned(64)));
	struct buffer made[3] = {{.region = {.data = memory, .length = 64}},
				 {.region = {.data = memory + 64, .length = 64}},
				 {.region = {.data = memory + 192, .length = 64}}};
	struct buffers buffers = {0};
	struct embeng_mem mem;

	for (int i = 2; i >= 0; i--)
		ck_assert_int_eq(buffers_add(&buffers, &made[i]), 0);
	ck_assert_ptr_eq(buffers_find(&buffers, memory, 64, 8, &mem), &made[0]);
	ck_assert_ptr_eq(buffers_find(&buffers, memory + 64, 8, 8, &mem), &made[1]);
	ck_assert_ptr_eq(buffers_find(&buffers, memory + 120, 8, 8, &mem), &made[1]);
	ck_assert_uint_eq(mem.offset, 56);
	ck_assert_uint_eq(mem.length, 8);
	ck_assert_ptr_null(buffers_find(&buffers, memory + 120, 9, 8, &mem));
	ck_assert_ptr_null(buffers_find(&buffers, memory, 65, 8, &mem));
	ck_assert_ptr_null(buffers_find(&buffers, memory + 128, 8, 8, &mem));
	ck_assert_ptr_null(buffers_find(&buffers, memory + 4, 8, 8, &mem));
	ck_assert_ptr_eq(buffers_find(&buffers, memory + 4, 8, 4, &mem), &made[0]);
	buffers_remove(&buffers, 0);
	ck_assert_ptr_null(buffers_find(&buffers, memory, 8, 8, &mem));
	ck_assert_ptr_eq(buffers_find(&buffers, memory + 64, 8, 8, &mem), &made[1]);
	ck_assert_ptr_eq(buffers_find(&buffers, memory + 192, 8, 8, &mem), &made[2]);
	free(buffers.list);
}
END_TEST

RUN_SUITE("buffer", an_array_lies_in_one_buffer, ids_in_a_buffer_are_not_copied,
	  gradients_keep_their_buffer, inference_views_run_out)
