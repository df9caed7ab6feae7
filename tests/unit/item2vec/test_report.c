// SPDX-License-Identifier: MIT
/* Reports of trainings, letter by letter. */
#include "cli_baskets.h"
#include "cli_capture.h"
#include "runtime/cli/frame/exit.h"
#include "runtime/examples/item2vec/report.h"
#include "json_help.h"
#include "suite.h"

static float in[] = {1, 0, 0, 1, 1, 1}, out_rows[] = {1, 2, 3, 4, 5, 6};
static float other_in[] = {-1, 0, 0, -1, -1, -1};

static struct dataset data;
static struct settings settings;
static const struct output text = {.verb = "train"}, json = {.verb = "train", .json = true};

static void setup(void)
{
	data = baskets(basket_read, "a b c\nc b a\n", 1, 3);
	settings = settings_default;
}

static void teardown(void)
{
	dataset_free(&data);
}

static struct learned example(void)
{
	struct learned l = {
		.source = "orders.txt",
		.data = &data,
		.settings = &settings,
		.vectors = {.dim = 2, .in = in, .out = out_rows},
		.epochs = 6,
		.steps = 90,
		.epoch_steps = 15,
		.place = {.epoch = 6},
		.loss = 0.5,
		.hit_at_10 = 0.75,
		.popularity_hit_at_10 = 0.25,
		.seconds = 1.5,
		.dense_ns = 2000000,
		.examples = 4,
		.counters = {.lookups = 90,
			     .updates = 90,
			     .bytes_copied = 17,
			     .time_lookup_ns = 1500000},
		.stats = {.hot_count = 1, .hot = {{1, 5}}},
		.device = {.name = "soft", .cores = 2},
	};

	return l;
}

START_TEST(data_as_text)
{
	struct learned l = example();
	struct capture c;

	l.note = "little";
	capture_start(&c);
	report_data(&text, &l);
	report_data(&json, &l);
	capture_expect(&c, "Data: orders.txt\n      little\n      2 baskets, 3 items, 6 uses\n",
		       "");
}
END_TEST

START_TEST(result_as_text)
{
	struct learned l = example();
	const uint32_t query = 1;
	struct capture c;

	capture_start(&c);
	ck_assert_int_eq(report_result(&text, &l, &query, 1), CLI_OK);
	capture_expect(
		&c,
		"\nhit@10     0.750  share of baskets whose held-out item ranks in the first "
		"10 of 100\n"
		"popularity 0.250  that share when items are ranked by popularity alone\n\n"
		"Hottest rows: b (5)\n"
		"Time per stage, ms: check 0.0, lookup 1.5, partition 0.0, update 0.0, "
		"rings 0.0, copies 0.0, dense 2.0 (in the program)\n"
		"1.50 s on soft, 2 cores: 90 lookups, 90 updates, 17 bytes copied\n\n"
		"b goes with: c, a\n",
		"");
}
END_TEST

START_TEST(no_better_than_popularity)
{
	struct learned l = example();
	struct capture c;

	l.hit_at_10 = 0.25;
	l.steps = 0;
	capture_start(&c);
	ck_assert_int_eq(report_result(&text, &l, NULL, 0), CLI_CHECK);
	capture_expect(
		&c,
		"\nhit@10     0.250  share of baskets whose held-out item ranks in the first "
		"10 of 100\n"
		"popularity 0.250  that share when items are ranked by popularity alone\n\n"
		"1.50 s on soft, 2 cores: 90 lookups, 90 updates, 17 bytes copied\n\n"
		"Nothing was learned: hit@10 is not above popularity.\n",
		"");
}
END_TEST

START_TEST(saved)
{
	struct learned l = example();
	struct capture c;

	l.saves = 2;
	l.checkpoint = "orders.ckpt";
	l.checkpoint_bytes = 3 << 19;
	capture_start(&c);
	report_result(&text, &l, NULL, 0);
	capture_expect_in(&c, "\nSaved in orders.ckpt, 1.5 MiB: embeng checkpoint ls shows it", "");
}
END_TEST

/* A line for each save, where deltas are asked for. */
START_TEST(deltas_as_text)
{
	struct learned l = example();
	struct capture c;

	l.delta = true;
	capture_start(&c);
	l.last_save = (struct embeng_save_report){
		.delta = 2, .base_step = 40, .rows = 3, .bytes = 3 << 19};
	report_save(&text, &l);
	report_save(&json, &l);
	l.last_save = (struct embeng_save_report){
		.rows = 7, .bytes = 100, .why_full = "the folder has no checkpoint"};
	report_save(&text, &l);
	l.delta = false;
	report_save(&text, &l);
	capture_expect(&c,
		       "Saved delta 2 on the full checkpoint of step 40: 3 rows, 1.5 MiB\n"
		       "Saved in full: 7 rows, 100 B; no delta, since the folder has no "
		       "checkpoint\n",
		       "");
}
END_TEST

/* The answers are the checkpoint's, not those of the tables beside it. */
START_TEST(served)
{
	struct learned l = example();
	const uint32_t query = 1;
	struct capture c;

	l.served = (struct vectors){.dim = 2, .in = other_in, .out = out_rows};
	l.serves = true;
	l.temporary = true;
	l.saves = 1;
	l.checkpoint = "/scratch";
	l.checkpoint_bytes = 100;
	l.save_ns = 12000000;
	l.serve_ns = 3000000;
	capture_start(&c);
	report_result(&text, &l, &query, 1);
	capture_expect_in(&c,
			  "Saved in a temporary folder, 100 B in 12 ms (--save DIR keeps "
			  "it).\nThe engine is closed; the answers are looked up in that "
			  "checkpoint, 3 ms:\n\nb goes with: a, c\n",
			  "");
}
END_TEST

START_TEST(resumed_as_text)
{
	struct learned l = example();
	struct capture c;

	capture_start(&c);
	report_start(&text, &l);
	l.resumed = true;
	l.from = (struct place){.epoch = 2, .step = 7};
	report_start(&json, &l);
	report_start(&text, &l);
	l.from.step = 0;
	report_start(&text, &l);
	l.from.epoch = 6;
	report_start(&text, &l);
	capture_expect(&c,
		       "Resumed after epoch 3 of 6, step 7 of 15\nResumed after epoch 2 of 6\n"
		       "Resumed after epoch 6 of 6, the last epoch\n",
		       "");
}
END_TEST

START_TEST(stopped_as_text)
{
	struct learned l = example();
	struct capture c;

	l.stopped = STOP_SIGNAL;
	l.place = (struct place){.epoch = 1, .step = 4};
	capture_start(&c);
	ck_assert_int_eq(report_stopped(&text, &l), CLI_OK);
	l.stopped = STOP_STEPS;
	l.place.step = 0;
	l.checkpoint = "orders.ckpt";
	ck_assert_int_eq(report_stopped(&text, &l), CLI_OK);
	capture_expect(&c,
		       "Stopped by a signal after epoch 2 of 6, step 4 of 15; nothing is saved\n"
		       "Stopped by --max-steps after epoch 1 of 6\n"
		       "Saved in orders.ckpt; to go on: embeng train orders.txt --resume "
		       "orders.ckpt\n",
		       "");
}
END_TEST

static const struct json *member_of(const struct json *object, const char *key)
{
	const struct json *found = json_get(object, key);

	ck_assert_msg(found != NULL, "no %s", key);
	return found;
}

static void expect_member(const struct json *object, const char *key, const char *expected)
{
	char *found = written(member_of(object, key), JSON_COMPACT);

	ck_assert_str_eq(found, expected);
	free(found);
}

START_TEST(result_as_document)
{
	struct learned l = example();
	const uint32_t query = 1;
	const struct json *d;
	struct capture c;

	l.resumed = true;
	l.from = (struct place){.epoch = 2, .step = 7};
	l.saves = 3;
	l.checkpoint = "orders.ckpt";
	l.checkpoint_bytes = 77;
	l.save_ns = 500000000;
	l.deltas = 2;
	l.last_save = (struct embeng_save_report){
		.delta = 1, .base_step = 40, .rows = 3, .bytes = 900};
	capture_start(&c);
	ck_assert_int_eq(report_result(&json, &l, &query, 1), CLI_OK);
	capture_stop(&c);
	d = must_read(c.out_text);
	ck_assert_ptr_nonnull(d);
	expect_member(d, "steps", "90");
	expect_member(d, "loss", "0.5");
	expect_member(d, "note", "null");
	expect_member(d, "resumed", "{\"epoch\":2,\"step\":7}");
	expect_member(d, "stopped", "null");
	expect_member(d, "checkpoint",
		      "{\"dir\":\"orders.ckpt\",\"temporary\":false,\"bytes\":77,"
		      "\"saves\":3,\"save_seconds\":0.5,\"deltas\":2,"
		      "\"last_save\":{\"delta\":1,\"rows\":3,\"bytes\":900,\"base_step\":40},"
		      "\"answers\":false}");
	expect_member(d, "hit_at_10", "0.75");
	expect_member(d, "popularity_hit_at_10", "0.25");
	expect_member(member_of(d, "stage_seconds"), "dense", "0.002");
	expect_member(d, "hot_rows", "[{\"item\":\"b\",\"row\":1,\"count\":5}]");
	expect_member(d, "goes_with",
		      "{\"b\":[{\"item\":\"c\",\"score\":6},{\"item\":\"a\",\"score\":2}]}");
	json_free(d);
	free(c.out_text);
	free(c.err_text);
}
END_TEST

START_TEST(stopped_as_document)
{
	struct learned l = example();
	const struct json *d;
	struct capture c;

	l.stopped = STOP_SIGNAL;
	l.place = (struct place){.epoch = 1, .step = 4};
	capture_start(&c);
	ck_assert_int_eq(report_stopped(&json, &l), CLI_OK);
	capture_stop(&c);
	d = must_read(c.out_text);
	ck_assert_ptr_nonnull(d);
	expect_member(d, "schema", "\"embeng.train/1\"");
	expect_member(d, "stopped", "{\"epoch\":1,\"step\":4,\"by\":\"signal\"}");
	expect_member(d, "resumed", "null");
	expect_member(d, "checkpoint", "null");
	ck_assert(!json_get(d, "hit_at_10"));
	json_free(d);
	free(c.out_text);
	free(c.err_text);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, data_as_text);
	tcase_add_test(tcase, result_as_text);
	tcase_add_test(tcase, no_better_than_popularity);
	tcase_add_test(tcase, saved);
	tcase_add_test(tcase, deltas_as_text);
	tcase_add_test(tcase, served);
	tcase_add_test(tcase, resumed_as_text);
	tcase_add_test(tcase, stopped_as_text);
	tcase_add_test(tcase, result_as_document);
	tcase_add_test(tcase, stopped_as_document);
}

int main(void)
{
	return suite_main("report", add);
}
