// SPDX-License-Identifier: MIT
/* Hosts whose models differ in what no hash has are named when the handle is opened. */
#include "embeng.h"
#include "group_help.h"
#include "suite.h"

#define RANKS 3
#define OTHER 1
#define DEADLINE (20 * 1000 * GROUP_MS)

enum difference { START, FROZEN, SCHEDULE, NONE, DIFFERENCES };

static const char *const words[DIFFERENCES] = {
	[START] = "initializers or slot starts",
	[FROZEN] = "frozen tables",
	[SCHEDULE] = "schedules of learning rates",
};

static enum difference difference;

static struct embeng_model *make_model(bool other)
{
	const struct embeng_schedule schedule = embeng_schedule_exponential(
		0.5f, 10, other && difference == SCHEDULE ? 0.75f : 0.5f);
	struct embeng_optimizer optimizer = embeng_adagrad(0.1f);
	struct embeng_model *model = embeng_model_new();

	optimizer.rate_name = "rate";
	ck_assert_int_eq(
		embeng_model_add_table(
			model, &EMBENG_INIT(embeng_table_config, .vocabulary_size = 50, .dim = 4,
					    .optimizer = optimizer,
					    .frozen = other && difference == FROZEN,
					    .initializer = {.kind = EMBENG_INIT_UNIFORM,
							    .b = 1,
							    .seed = other && difference == START})),
		0);
	ck_assert_int_eq(embeng_model_add_feature(model, &EMBENG_INIT(embeng_feature_config)), 0);
	ck_assert_int_eq(embeng_model_set_schedule(model, "rate", &schedule), 0);
	return model;
}

static void open_handle(struct host *h)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);
	struct embeng_model *model = make_model(h->rank == OTHER);
	struct embeng *e = NULL;

	host_note(h, embeng_open_group("soft:cores=1", model, h->group, &e, &error), &error,
		  now_ns());
	embeng_close(e);
	embeng_model_free(model);
}

START_TEST(other_model_is_named)
{
	struct embeng_transport transports[RANKS];
	struct host hosts[RANKS];

	difference = (enum difference)_i;
	ck_assert_int_eq(embeng_group_threads(RANKS, transports), 0);
	hosts_run_over(hosts, transports, RANKS, open_handle,
		       &EMBENG_INIT(embeng_group_options, .deadline_ns = DEADLINE));
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		ck_assert_msg(hosts[rank].code == (words[_i] ? -EPROTO : 0), "%d: %s",
			      hosts[rank].code, hosts[rank].text);
		if (!words[_i])
			continue;
		ck_assert_msg(strstr(hosts[rank].text, "host 1 (thread1) has other") != NULL, "%s",
			      hosts[rank].text);
		ck_assert_msg(strstr(hosts[rank].text, words[_i]) != NULL, "%s", hosts[rank].text);
	}
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, other_model_is_named, 0, DIFFERENCES);
}

int main(void)
{
	return suite_main("hosts_models", add_tests);
}
