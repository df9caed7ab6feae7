// SPDX-License-Identifier: MIT
/*
 * Updates without a lookup of their own, and views that are discarded: rows and slots have the bits
 * of the same steps in the strict order, whatever the optimizer, the size of the batches and the
 * number of replicas. Refused calls leave no trace, and a wait that only its own thread could end is
 * refused.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "runtime/cli/frame/random.h"
#include "session_help.h"

#define ROWS 40
#define DIM 5
#define MOST 24u
#define BAG 4u
#define STEPS 40u
#define REPLICAS 2u

static struct random random_state = {20261129};

/* Samples of feature "f" with weights, and single ids of the sequence feature "s". */
struct part {
	uint32_t samples, ids;
	int64_t lengths[MOST], row_ids[MOST * BAG];
	float weights[MOST * BAG], gradients[MOST * DIM], sequence[MOST * 2 * DIM];
};

static struct part make_part(void)
{
	struct part p = {.samples = random_below(&random_state, MOST + 1)};

	for (uint32_t i = 0; i < p.samples; i++) {
		p.lengths[i] = random_below(&random_state, BAG + 1);
		for (int64_t k = 0; k < p.lengths[i]; k++) {
			p.weights[p.ids] = (float)random_below(&random_state, 100) / 50;
			p.row_ids[p.ids++] = random_below(&random_state, ROWS);
		}
	}
	for (uint32_t i = 0; i < MOST * DIM; i++)
		p.gradients[i] = (float)random_below(&random_state, 1000) / 500 - 1;
	for (uint32_t i = 0; i < MOST * 2 * DIM; i++)
		p.sequence[i] = (float)random_below(&random_state, 1000) / 500 - 1;
	return p;
}

static struct embeng *open_replicas(struct embeng_optimizer optimizer, int pipelining, int non_lazy)
{
	struct embeng_table_config t = {.size = sizeof(t),
					.name = "t",
					.vocabulary_size = ROWS,
					.dim = DIM,
					.optimizer = optimizer};
	struct embeng_feature_config f = {.size = sizeof(f), .name = "f"};
	struct embeng_feature_config s = {.size = sizeof(s), .name = "s", .max_sequence_length = 2};
	struct embeng_engine_config c = {
		.size = sizeof(c), .replicas = REPLICAS, .pipelining = pipelining};
	struct embeng_model *m = embeng_model_new();
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng *e = NULL;

	t.optimizer.lazy_adam = non_lazy ? EMBENG_OFF : t.optimizer.lazy_adam;
	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	ck_assert_int_eq(embeng_model_add_feature(m, &f), 0);
	ck_assert_int_eq(embeng_model_add_feature(m, &s), 1);
	ck_assert_int_eq(embeng_model_set_engine(m, &c), 0);
	ck_assert_msg(!embeng_open(SMALL, m, &e, &error), "%s", error.text);
	embeng_model_free(m);
	return e;
}

static struct embeng_batch *fill(struct embeng *e, enum embeng_mode mode, uint32_t replica,
				 const struct part *p)
{
	struct embeng_batch *b = embeng_batch_new(e, mode, replica);

	ck_assert_int_eq(embeng_batch_ragged(b, 0, EMBENG_I64, p->row_ids, p->ids, p->lengths,
					     p->samples, p->weights, p->ids),
			 0);
	ck_assert_int_eq(embeng_batch_ragged(b, 1, EMBENG_I64, p->row_ids, p->ids, p->lengths,
					     p->samples, NULL, 0),
			 0);
	return b;
}

static int look_up(struct embeng *e, uint32_t replica, const struct part *p,
		   struct embeng_activations *a)
{
	struct embeng_batch *b = fill(e, EMBENG_TRAIN, replica, p);
	int ret = embeng_enqueue(e, b, 0);

	embeng_batch_free(b);
	return ret ? ret : embeng_dequeue(e, replica, 0, a);
}

static int give(struct embeng *e, uint32_t replica, const struct part *p, bool update)
{
	const float *features[] = {p->gradients, p->sequence};
	const size_t elements[] = {(size_t)p->samples * DIM, (size_t)p->samples * 2 * DIM};
	struct embeng_gradients g = {.size = sizeof(g),
				     .replica = replica,
				     .count = 2,
				     .features = features,
				     .elements = elements};
	struct embeng_batch *b;
	int ret;

	if (!update)
		return embeng_apply_gradients(e, &g, 0);
	b = fill(e, EMBENG_TRAIN, replica, p);
	ret = embeng_update(e, b, &g, 0);
	embeng_batch_free(b);
	return ret;
}

static void expect_equal_tables(struct embeng *a, struct embeng *b)
{
	float rows[2][ROWS * DIM];

	for (size_t s = 0; s <= embeng_model_slot_count(embeng_get_model(a), 0); s++) {
		const char *slot = s ? embeng_model_slot_name(embeng_get_model(a), 0, s - 1)
				     : "parameters";

		ck_assert_int_eq(embeng_rows_read(a, 0, slot, NULL, ROWS, rows[0]), 0);
		ck_assert_int_eq(embeng_rows_read(b, 0, slot, NULL, ROWS, rows[1]), 0);
		ck_assert_msg(!memcmp(rows[0], rows[1], sizeof(rows[0])), "slot %s", slot);
	}
}

/* The strict one never sees what the free one looks up and discards. */
static void train_both(struct embeng_optimizer optimizer, int pipelining, int non_lazy)
{
	struct embeng *strict = open_replicas(optimizer, pipelining, non_lazy);
	struct embeng *free_order = open_replicas(optimizer, pipelining, non_lazy);
	struct embeng_activations a = {.size = sizeof(a)};

	for (uint32_t n = 0; n < STEPS; n++) {
		struct part p[REPLICAS] = {make_part(), make_part()}, other = make_part();
		bool abandon = !pipelining && !random_below(&random_state, 4);

		for (uint32_t r = 0; r < REPLICAS; r++)
			ck_assert_int_eq(look_up(strict, r, &p[r], &a), 0);
		for (uint32_t r = 0; abandon && r < REPLICAS; r++)
			ck_assert_int_eq(look_up(free_order, r, &other, &a), 0);
		for (uint32_t r = 0; abandon && r < REPLICAS; r++)
			ck_assert_int_eq(embeng_discard(free_order, r, 0), 0);
		for (uint32_t r = 0; r < REPLICAS; r++) {
			ck_assert_int_eq(give(strict, r, &p[r], false), 0);
			ck_assert_int_eq(give(free_order, r, &p[r], true), 0);
		}
	}
	ck_assert_int_eq(embeng_flush(strict, 0), 0);
	ck_assert_int_eq(embeng_flush(free_order, 0), 0);
	expect_equal_tables(strict, free_order);
	embeng_close(strict);
	embeng_close(free_order);
}

static void *apply_later(void *e)
{
	const struct timespec wait = {.tv_nsec = 50000000};

	nanosleep(&wait, NULL);
	ck_assert_int_eq(apply_ones(e, 0), 0);
	return NULL;
}

static void *dequeue_one(void *e)
{
	struct embeng_activations a = {.size = sizeof(a)};

	ck_assert_int_eq(embeng_dequeue(e, 0, 0, &a), 0);
	return NULL;
}

/* Another thread has the view, and with a limit its own may wait, too. */
START_TEST(a_wait_for_another_thread)
{
	struct embeng *e = open_small(&(struct shape){.optimizer = embeng_sgd(1)});
	struct embeng_activations a = {.size = sizeof(a)};
	pthread_t thread;

	for (size_t i = 0; i < 2; i++) {
		ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, 0), 0);
		ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, 0), 0);
		ck_assert_int_eq(pthread_create(&thread, NULL, dequeue_one, e), 0);
		ck_assert_int_eq(pthread_join(thread, NULL), 0);
		if (i) {
			ck_assert_int_eq(apply_ones(e, 0), 0);
			ck_assert_int_eq(embeng_dequeue(e, 0, 0, &a), 0);
			ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, 0), 0);
		}
		ck_assert_int_eq(pthread_create(&thread, NULL, apply_later, e), 0);
		ck_assert_int_eq(embeng_dequeue(e, 0, i ? 60000000000 : -1, &a), 0);
		ck_assert_int_eq(pthread_join(thread, NULL), 0);
		ck_assert_int_eq(apply_ones(e, 0), 0);
	}
	embeng_close(e);
}
END_TEST

static struct embeng *open_with_schedule(uint32_t replicas)
{
	const uint64_t boundaries[] = {0, 1};
	const float values[] = {1, 2, 4};
	struct embeng_optimizer sgd = embeng_sgd(0);
	struct embeng_schedule schedule = embeng_schedule_piecewise(boundaries, values, 2);
	struct embeng_table_config t = {
		.size = sizeof(t), .name = "t", .vocabulary_size = 4, .dim = 2};
	struct embeng_feature_config f = {.size = sizeof(f), .name = "f"};
	struct embeng_engine_config c = {.size = sizeof(c), .replicas = replicas};
	struct embeng_model *m = embeng_model_new();
	struct embeng *e = NULL;

	sgd.rate_name = "r";
	t.optimizer = sgd;
	t.combiner = EMBENG_SUM;
	t.initializer.kind = EMBENG_INIT_CONSTANT;
	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	ck_assert_int_eq(embeng_model_add_feature(m, &f), 0);
	ck_assert_int_eq(embeng_model_set_engine(m, &c), 0);
	ck_assert_int_eq(embeng_model_set_schedule(m, "r", &schedule), 0);
	ck_assert_int_eq(embeng_open(SMALL, m, &e, NULL), 0);
	embeng_model_free(m);
	return e;
}

/* Rates of 1, 2 and 4 follow the steps that count; a step counts if one replica gives gradients. */
START_TEST(schedules_do_not_count_discards)
{
	struct embeng *e = open_with_schedule(2);
	const float want[] = {0, 0, -7, -7, -7, -7, -7, -7};
	/* By step, whether each replica discards it. */
	const int gone[][2] = {{1, 1}, {1, 0}, {1, 1}, {1, 0}, {0, 1}};
	struct embeng_activations a = {.size = sizeof(a)};
	float rows[8];

	for (size_t n = 0; n < sizeof(gone) / sizeof(*gone); n++) {
		for (uint32_t r = 0; r < 2; r++) {
			ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, r, 0), 0);
			ck_assert_int_eq(embeng_dequeue(e, r, 0, &a), 0);
		}
		for (uint32_t r = 0; r < 2; r++)
			ck_assert_int_eq(gone[n][r] ? embeng_discard(e, r, 0) : apply_ones(e, r),
					 0);
	}
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, NULL, 4, rows), 0);
	expect_floats(rows, want, 8);
	embeng_close(e);
}
END_TEST

START_TEST(tells_its_seed)
{
	printf("seed %llu\n", (unsigned long long)random_state.state);
}
END_TEST

START_TEST(updates_have_the_bits_of_steps)
{
	train_both(embeng_sgd(0.5f), 0, 0);
	train_both(embeng_adagrad(0.1f), 0, 0);
}
END_TEST

/* Adam's correction counts steps, and without lazy_adam each of them changes all rows. */
START_TEST(discards_count_no_step)
{
	train_both(embeng_adam(0.1f), 0, 0);
	train_both(embeng_adam(0.1f), 0, 1);
}
END_TEST

/* Lookups see no update of these, so that the order of both is the same. */
START_TEST(updates_with_pipelining)
{
	train_both(embeng_adagrad(0.1f), 1, 0);
}
END_TEST

/* A replica that discards touches no row; the other's gradients are applied, and the step counts. */
START_TEST(one_replica_discards)
{
	struct embeng *both = open_replicas(embeng_adam(0.1f), 0, 0);
	struct embeng *empty = open_replicas(embeng_adam(0.1f), 0, 0);
	struct embeng_activations a = {.size = sizeof(a)};
	const struct part nothing = {.samples = 0};

	for (uint32_t n = 0; n < STEPS; n++) {
		struct part p[REPLICAS] = {make_part(), make_part()};
		uint32_t gone = random_below(&random_state, REPLICAS);

		for (uint32_t r = 0; r < REPLICAS; r++) {
			ck_assert_int_eq(look_up(both, r, &p[r], &a), 0);
			ck_assert_int_eq(look_up(empty, r, r == gone ? &nothing : &p[r], &a), 0);
		}
		for (uint32_t r = 0; r < REPLICAS; r++) {
			ck_assert_int_eq(give(empty, r, r == gone ? &nothing : &p[r], false), 0);
			ck_assert_int_eq(r == gone ? embeng_discard(both, r, 0)
						   : give(both, r, &p[r], false),
					 0);
		}
	}
	expect_equal_tables(both, empty);
	embeng_close(both);
	embeng_close(empty);
}
END_TEST

/* Statistics that were asked for between lookup and discard have counted the ids; rows change not. */
START_TEST(statistics_between_lookup_and_discard)
{
	struct embeng *e = open_small(&(struct shape){.optimizer = embeng_sgd(1)});
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng_table_stats s = {.size = sizeof(s)};
	const float want[] = {0, 1, 10, 11, 20, 21, 30, 31};
	float rows[8];

	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, 0), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, 0, &a), 0);
	ck_assert_int_eq(embeng_stats(e, 0, 0, &s), 0);
	ck_assert_uint_eq(s.ids, 3);
	ck_assert_int_eq(embeng_discard(e, 0, 0), 0);
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, NULL, 4, rows), 0);
	expect_floats(rows, want, 8);
	ck_assert_int_eq(embeng_stats(e, 0, 0, &s), 0);
	ck_assert_uint_eq(s.ids, 3);
	ck_assert_uint_eq(s.updated_rows, 0);
	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, 0), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, 0, &a), 0);
	ck_assert_int_eq(apply_ones(e, 0), 0);
	ck_assert_int_eq(embeng_stats(e, 0, 0, &s), 0);
	ck_assert_uint_eq(s.ids, 6);
	ck_assert_uint_eq(s.updated_rows, 3);
	embeng_close(e);
}
END_TEST

/* {1, 2}, {} and {3} of "t" with gradients of ones. */
static int update_ones(struct embeng *e, enum embeng_mode mode, uint32_t replica, size_t elements,
		       int64_t last, int64_t timeout)
{
	const int64_t ids[] = {1, 2, last}, lengths[] = {2, 0, 1};
	const float ones[] = {1, 1, 1, 1, 1, 1};
	const float *features[] = {ones};
	struct embeng_gradients g = {.size = sizeof(g),
				     .replica = replica,
				     .count = 1,
				     .features = features,
				     .elements = &elements,
				     /* A refused one leaves no multiplier behind. */
				     .multiplier = last > 3 ? 2 : 1};
	struct embeng_batch *b = embeng_batch_new(e, mode, 0);
	int ret = embeng_batch_ragged(b, 0, EMBENG_I64, ids, 3, lengths, 3, NULL, 0);

	ck_assert_int_eq(ret, 0);
	ret = embeng_update(e, b, &g, timeout);
	embeng_batch_free(b);
	return ret;
}

/* The refused are no steps: then comes the same update as if they had not been. */
START_TEST(refused_updates_leave_no_trace)
{
	struct embeng *e = open_small(&(struct shape){.optimizer = embeng_adam(1)});
	struct embeng *once = open_small(&(struct shape){.optimizer = embeng_adam(1)});
	float rows[2][8];

	for (int i = 0; i < 20; i++)
		ck_assert_int_eq(update_ones(e, EMBENG_TRAIN, 0, 6, 4, 0), -ERANGE);
	expect_text("feature f, sample 2: id 4");
	ck_assert_int_eq(update_ones(e, EMBENG_TRAIN, 0, 5, 3, 0), -EINVAL);
	expect_text("feature f has gradients of 5 elements, its activations have 6");
	ck_assert_int_eq(update_ones(e, EMBENG_TRAIN, 1, 6, 3, 0), -EINVAL);
	expect_text("the batch is of replica 0, the gradients are of replica 1");
	ck_assert_int_eq(update_ones(e, EMBENG_INFERENCE, 0, 6, 3, 0), -EINVAL);
	expect_text("the batch is for inference");
	ck_assert_int_eq(embeng_discard(e, 0, 0), -EPROTO);
	ck_assert_int_eq(embeng_discard(e, 1, 0), -ERANGE);
	ck_assert_int_eq(update_ones(e, EMBENG_TRAIN, 0, 6, 3, 0), 0);
	ck_assert_int_eq(update_ones(once, EMBENG_TRAIN, 0, 6, 3, 0), 0);
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, NULL, 4, rows[0]), 0);
	ck_assert_int_eq(embeng_rows_read(once, 0, NULL, NULL, 4, rows[1]), 0);
	expect_floats(rows[0], rows[1], 8);
	embeng_close(e);
	embeng_close(once);
}
END_TEST

/* An update comes behind the views of its replica, in the order of steps. */
START_TEST(update_waits_for_a_view)
{
	struct embeng *e = open_small(&(struct shape){.optimizer = embeng_sgd(1)});
	struct embeng_activations a = {.size = sizeof(a)};

	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, 0), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, 0, &a), 0);
	ck_assert_int_eq(update_ones(e, EMBENG_TRAIN, 0, 6, 3, 0), -ETIME);
	expect_text("replica 0 still has to be given gradients of step 1");
	ck_assert_int_eq(update_ones(e, EMBENG_TRAIN, 0, 6, 3, -1), -EDEADLK);
	expect_text("replica 0 still has to be given gradients of step 1");
	ck_assert_int_eq(embeng_discard(e, 0, 0), 0);
	ck_assert_int_eq(update_ones(e, EMBENG_TRAIN, 0, 6, 3, -1), 0);
	ck_assert_int_eq(embeng_discard(e, 0, 0), -EPROTO);
	embeng_close(e);
}
END_TEST

START_TEST(a_wait_for_itself_is_refused)
{
	struct embeng *e = open_small(&(struct shape){.optimizer = embeng_sgd(1), .depth = 2});
	struct embeng_activations a = {.size = sizeof(a)};

	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, -1), 0);
	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, -1), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), -EDEADLK);
	expect_text("step 1: gradients of replica 0; this thread has its view");
	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, -1), -EDEADLK);
	expect_text("step 1: gradients of replica 0; this thread has its view");
	ck_assert_int_eq(embeng_discard(e, 0, 0), 0);
	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, -1), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
	ck_assert_uint_eq(a.step, 2);
	embeng_close(e);
}
END_TEST

/* Any number of forwards before a backward, and one that nobody takes back. */
START_TEST(forwards_of_any_number)
{
	struct embeng *e = open_small(&(struct shape){.optimizer = embeng_sgd(1)});
	struct embeng_activations a[3];
	const float before[] = {15, 16, 0, 0, 30, 31}, after[] = {14, 15, 0, 0, 28, 29};

	for (size_t i = 0; i < 3; i++) {
		a[i].size = sizeof(a[i]);
		ck_assert_int_eq(enqueue_bags(e, EMBENG_INFERENCE, 0, -1), 0);
		ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a[i]), 0);
		expect_floats(a[i].features[0].data, before, 6);
		ck_assert_int_eq(embeng_release(e, &a[i]), 0);
	}
	ck_assert_int_eq(update_ones(e, EMBENG_TRAIN, 0, 6, 3, -1), 0);
	ck_assert_int_eq(update_ones(e, EMBENG_TRAIN, 0, 6, 3, -1), 0);
	ck_assert_int_eq(enqueue_bags(e, EMBENG_INFERENCE, 0, -1), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a[0]), 0);
	expect_floats(a[0].features[0].data, after, 6);
	embeng_close(e);
}
END_TEST

/* Adam corrected by a step that is set goes on as the one that took that many. */
START_TEST(steps_are_told_and_set)
{
	struct embeng_optimizer adam = embeng_adam(0.5f);
	struct embeng *e[2];
	float rows[2][8], m[8], v[8];
	uint64_t step = 77;

	adam.bias_correction = EMBENG_ON;
	for (size_t i = 0; i < 2; i++)
		e[i] = open_small(&(struct shape){.optimizer = adam});
	ck_assert_int_eq(embeng_step(e[0], &step), 0);
	ck_assert_uint_eq(step, 0);
	for (size_t i = 0; i < 3; i++)
		ck_assert_int_eq(update_ones(e[0], EMBENG_TRAIN, 0, 6, 3, 0), 0);
	ck_assert_int_eq(embeng_step(e[0], &step), 0);
	ck_assert_uint_eq(step, 3);
	ck_assert_int_eq(embeng_rows_read(e[0], 0, NULL, NULL, 4, rows[0]), 0);
	ck_assert_int_eq(embeng_rows_read(e[0], 0, "momenta", NULL, 4, m), 0);
	ck_assert_int_eq(embeng_rows_read(e[0], 0, "velocities", NULL, 4, v), 0);
	ck_assert_int_eq(embeng_rows_write(e[1], 0, NULL, NULL, 4, rows[0]), 0);
	ck_assert_int_eq(embeng_rows_write(e[1], 0, "momenta", NULL, 4, m), 0);
	ck_assert_int_eq(embeng_rows_write(e[1], 0, "velocities", NULL, 4, v), 0);
	ck_assert_int_eq(embeng_set_step(e[1], step), 0);
	for (size_t i = 0; i < 2; i++) {
		ck_assert_int_eq(update_ones(e[i], EMBENG_TRAIN, 0, 6, 3, 0), 0);
		ck_assert_int_eq(embeng_rows_read(e[i], 0, NULL, NULL, 4, rows[i]), 0);
		ck_assert_int_eq(embeng_step(e[i], &step), 0);
		ck_assert_uint_eq(step, 4);
	}
	expect_floats(rows[0], rows[1], 8);
	ck_assert_int_eq(embeng_set_step(e[0], (1ull << 62) + 1), -ERANGE);
	expect_text("the largest is 4611686018427387904");
	ck_assert_int_eq(embeng_step(e[0], NULL), -EINVAL);
	embeng_close(e[0]);
	embeng_close(e[1]);
}
END_TEST

/* The schedule goes on from the step that is set. */
START_TEST(a_step_that_is_set_moves_the_schedule)
{
	struct embeng *e = open_with_schedule(1);
	const float want[] = {0, 0, -4, -4};
	float rows[4];

	ck_assert_int_eq(embeng_set_step(e, 2), 0);
	ck_assert_int_eq(update_ones(e, EMBENG_TRAIN, 0, 6, 3, 0), 0);
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, NULL, 2, rows), 0);
	expect_floats(rows, want, 4);
	embeng_close(e);
}
END_TEST

/*
 * Gradients that were used in place may be freed behind a flush. The updates are so large that another
 * thread than the caller's may work at them, which sees each end at another moment.
 */
START_TEST(a_flush_lets_go_of_gradients)
{
	enum { SAMPLES = 2048, IDS = SAMPLES * 8, WIDTH = 64, TURNS = 60 };
	struct embeng_table_config t = {.size = sizeof(t),
					.vocabulary_size = 20000,
					.dim = WIDTH,
					.optimizer = embeng_sgd(0.01f)};
	struct embeng_feature_config f = {.size = sizeof(f)};
	struct embeng_model *m = embeng_model_new();
	static int64_t ids[IDS], splits[SAMPLES + 1];
	struct embeng *e = NULL;

	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	ck_assert_int_eq(embeng_model_add_feature(m, &f), 0);
	ck_assert_int_eq(embeng_open("soft:cores=1,memory=64M", m, &e, NULL), 0);
	embeng_model_free(m);
	for (int64_t s = 0; s <= SAMPLES; s++)
		splits[s] = s * 8;
	for (size_t k = 0; k < IDS; k++)
		ids[k] = random_below(&random_state, 20000);
	for (size_t i = 0; i < TURNS; i++) {
		float *gradients = embeng_buffer_alloc(e, SAMPLES * WIDTH * sizeof(float));
		const float *const features[] = {gradients};
		const struct embeng_gradients g = {
			.size = sizeof(g), .count = 1, .features = features};
		struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, 0);

		ck_assert_ptr_nonnull(gradients);
		ck_assert_int_eq(embeng_batch_ragged_splits(b, 0, EMBENG_I64, ids, IDS, splits,
							    SAMPLES + 1, NULL, 0),
				 0);
		ck_assert_int_eq(embeng_update(e, b, &g, -1), 0);
		ck_assert_int_eq(embeng_flush(e, -1), 0);
		embeng_batch_free(b);
		ck_assert_int_eq(embeng_buffer_free(e, gradients), 0);
	}
	embeng_close(e);
}
END_TEST

RUN_SUITE("free order", tells_its_seed, updates_have_the_bits_of_steps, discards_count_no_step,
	  updates_with_pipelining, one_replica_discards, statistics_between_lookup_and_discard,
	  refused_updates_leave_no_trace, update_waits_for_a_view, a_wait_for_itself_is_refused,
	  forwards_of_any_number, a_wait_for_another_thread, schedules_do_not_count_discards,
	  steps_are_told_and_set, a_step_that_is_set_moves_the_schedule,
	  a_flush_lets_go_of_gradients)
