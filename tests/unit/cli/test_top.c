// SPDX-License-Identifier: MIT
/*
 * The numbers of `embeng top`: fdinfo, contexts made of descriptors, the driver's list of queues,
 * rates, orders and tables. tests/cli/top.sh runs the command itself.
 */
#include <math.h>
#include <string.h>

#include "runtime/cli/top/lines.h"
#include "runtime/cli/top/order.h"
#include "runtime/cli/top/rates.h"
#include "suite.h"

static const char one[] = "pos:\t0\nflags:\t02100002\ndrm-driver:\tembeng\ndrm-client-id:\t17\n"
			  "drm-pdev:\t0000:01:00.0\ndrm-total-memory:\t5 MiB\n"
			  "drm-resident-memory:\t12 KiB\ndrm-engine-compute:\t123456789 ns\n"
			  "embeng-ids:\t18446744073709551615\n";

START_TEST(keys_and_units_are_read)
{
	struct fdinfo info;

	fdinfo_read(one, &info);
	ck_assert_str_eq(info.driver, "embeng");
	ck_assert_str_eq(info.address, "0000:01:00.0");
	ck_assert(info.has_client);
	ck_assert_uint_eq(info.client, 17);
	ck_assert_uint_eq(info.known, FDINFO_BIT(MEMORY) | FDINFO_BIT(RESIDENT) |
					      FDINFO_BIT(BUSY_NS) | FDINFO_BIT(IDS));
	ck_assert_uint_eq(info.numbers[FDINFO_MEMORY], 5 << 20);
	ck_assert_uint_eq(info.numbers[FDINFO_RESIDENT], 12 << 10);
	ck_assert_uint_eq(info.numbers[FDINFO_BUSY_NS], 123456789);
	ck_assert_uint_eq(info.numbers[FDINFO_IDS], UINT64_MAX);
}
END_TEST

/* Each line is wrong in one way, and says nothing then. */
START_TEST(lines_that_are_not_understood)
{
	static const char *const wrong[] = {
		"drm-client-id:\t18446744073709551616\n", /* more than 64 bits */
		"drm-client-id:\t-1\n",
		"drm-client-id:\n",
		"drm-client-id 17\n",
		"xdrm-client-id:\t17\n",
		"drm-client-idx:\t17\n",
		"drm-client-id:\t17 parsecs\n",
		"drm-client-id:\t0x11\n",
		"drm-total-memory:\t18446744073709551615 KiB\n", /* more than 64 bits in bytes */
		"drm-driver:\ta-name-that-is-longer-than-any-driver-has\n",
		":\t17\n",
		"",
	};
	struct fdinfo info, none = {0};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		fdinfo_read(wrong[i], &info);
		ck_assert_mem_eq(&info, &none, sizeof(info));
	}
	fdinfo_read("drm-client-id:\t1\ndrm-client-id:\t2", &info);
	ck_assert_uint_eq(info.client, 2);
}
END_TEST

static struct fdinfo made_info(const char *address, uint64_t client)
{
	struct fdinfo info = {.client = client, .has_client = true};

	strcpy(info.address, address);
	return info;
}

static void take(struct sample *sample, const char *address, uint64_t client, uint32_t pid,
		 uint32_t fd, const char *program)
{
	struct fdinfo info = made_info(address, client);

	ck_assert_int_eq(sample_take_descriptor(sample, &info, pid, fd, program), 0);
}

START_TEST(descriptors_of_a_file_are_a_context)
{
	struct sample sample = {0};
	struct fdinfo without = {0};

	take(&sample, "a", 1, 30, 3, "child");
	take(&sample, "a", 1, 20, 7, "parent");
	take(&sample, "a", 1, 20, 9, "parent");
	take(&sample, "a", 2, 20, 8, "parent");
	take(&sample, "b", 1, 40, 3, "other");
	ck_assert_uint_eq(sample.context_count, 3);
	ck_assert_uint_eq(sample.contexts[0].pid, 20);
	ck_assert_uint_eq(sample.contexts[0].fd, 7);
	ck_assert_str_eq(sample.contexts[0].program, "parent");
	ck_assert_uint_eq(sample.contexts[0].processes, 2);
	ck_assert_uint_eq(sample.contexts[0].descriptors, 3);
	ck_assert_uint_eq(sample.contexts[1].descriptors, 1);
	ck_assert_str_eq(sample.contexts[2].info.address, "b");
	/* Without the number of the file nothing says that two are the same. */
	ck_assert_int_eq(sample_take_descriptor(&sample, &without, 50, 3, "x"), 0);
	ck_assert_int_eq(sample_take_descriptor(&sample, &without, 50, 3, "x"), 0);
	ck_assert_uint_eq(sample.context_count, 5);
	sample_free(&sample);
}
END_TEST

START_TEST(queues_of_contexts)
{
	static const char text[] =
		"# the device cannot be read now, this was 12 ms ago\n"
		"  queue 9 kind 1 mapped sq_tail 1 sq_head 1 cq_head 1 cq_tail 1 report 2 state 0 "
		"wait 0 replica 0 step 0\n"
		"context 3 lost program ] regions [9[812] regions 4 memory 1 of 2 events 3\n"
		"  queue 5 kind 1 mapped sq_tail 2 sq_head 4294967295 cq_head 0 cq_tail 28 report "
		"6 "
		"state 1 wait 2 replica 3 step 18446744073709551615\n"
		"  queue 6 kind 77 validated sq_tail 0 sq_head 0 cq_head 0 cq_tail 0 report 6 "
		"state 2 wait 4 replica 0 step 0\n"
		"  queue 7 kind 3 validated sq_tail 0\n"
		"context 4 program cut[\n"
		"  queue 8 kind 1 mapped sq_tail 1 sq_head 1 cq_head 1 cq_tail 1 report 2 state 0 "
		"wait 0 replica 0 step 0";
	struct sample sample = {0};

	ck_assert_int_eq(sample_take_queues(&sample, "0000:01:00.0", text), 0);
	ck_assert_uint_eq(sample.queue_count, 2);
	ck_assert_uint_eq(sample.queues[0].context, 3);
	ck_assert_uint_eq(sample.queues[0].pid, 812);
	ck_assert_uint_eq(sample.queues[0].number, 5);
	ck_assert(sample.queues[0].mapped);
	ck_assert_uint_eq(sample.queues[0].tail - sample.queues[0].head, 3);
	ck_assert_uint_eq(sample.queues[0].step, UINT64_MAX);
	ck_assert_str_eq(sample_queue_kind(&sample.queues[0]), "input");
	ck_assert_str_eq(sample_queue_wait(&sample.queues[0]), "update");
	ck_assert_str_eq(sample_queue_kind(&sample.queues[1]), "unknown");
	ck_assert_str_eq(sample_queue_wait(&sample.queues[1]), "space");
	ck_assert_str_eq(sample.queues[1].address, "0000:01:00.0");
	sample.queues[1].state = 3;
	ck_assert_str_eq(sample_queue_wait(&sample.queues[1]), "reset");
	sample_free(&sample);
}
END_TEST

START_TEST(counts_that_wrap_and_begin_anew)
{
	ck_assert_double_eq(rate_of(100, 400, 2), 150);
	ck_assert_double_eq(rate_of(7, 7, 0.5), 0);
	/* Past 2^64 it goes on from 0. */
	ck_assert_double_eq(rate_of(UINT64_MAX - 1, 2, 2), 2);
	/* Smaller than before: it began anew, and nobody knows how far it had come. */
	ck_assert(isnan(rate_of(400, 100, 2)));
	ck_assert(isnan(rate_of(100, 400, 0)));
}
END_TEST

static struct sample_device *add_device(struct sample *sample, uint64_t ids)
{
	struct sample_device *device = sample_add_device(sample);

	strcpy(device->address, "a");
	device->known = 1u << COUNT_IDS;
	device->counts[COUNT_IDS] = ids;
	device->cores = 2;
	device->core_ns[0] = ids * 1000000;
	return device;
}

START_TEST(rates_of_devices)
{
	struct sample before = {0}, now = {0};
	struct rates rates;

	add_device(&before, 100);
	add_device(&now, 500);
	ck_assert_int_eq(rates_make(&before, &now, 2, &rates), 0);
	ck_assert_double_eq(rates.devices[0].rates[COUNT_IDS], 200);
	ck_assert(isnan(rates.devices[0].rates[COUNT_ROWS]));
	ck_assert_double_eq_tol(rates.devices[0].busy, 0.1, 1e-9);
	rates_free(&rates);
	now.devices[0].gauges[GAUGE_AGE] = 1;
	ck_assert_int_eq(rates_make(&before, &now, 2, &rates), 0);
	ck_assert(isnan(rates.devices[0].rates[COUNT_IDS]));
	ck_assert(isnan(rates.devices[0].busy));
	rates_free(&rates);
	now.devices[0].gauges[GAUGE_AGE] = 0;
	now.devices[0].core_ns[0] = 900000000000; /* more than there is time */
	ck_assert_int_eq(rates_make(&before, &now, 2, &rates), 0);
	ck_assert_double_eq(rates.devices[0].busy, 1);
	rates_free(&rates);
	ck_assert_int_eq(rates_make(NULL, &now, 2, &rates), 0);
	ck_assert(isnan(rates.devices[0].rates[COUNT_IDS]));
	ck_assert_double_eq(rates.seconds, 0);
	rates_free(&rates);
	sample_free(&before);
	sample_free(&now);
}
END_TEST

static void add_context(struct sample *sample, uint64_t client, uint32_t pid, uint64_t ids)
{
	struct sample_context *context = sample_add_context(sample);

	context->info = made_info("a", client);
	context->info.known = ids == UINT64_MAX ? 0 : FDINFO_BIT(IDS) | FDINFO_BIT(WAITS_SPACE);
	context->info.numbers[FDINFO_IDS] = ids;
	context->info.numbers[FDINFO_WAITS_SPACE] = 1000 - ids;
	context->pid = pid;
}

static void check_order(struct rates *rates, enum order order, const uint32_t pids[4])
{
	order_contexts(rates, order);
	for (size_t i = 0; i < 4; i++)
		ck_assert_uint_eq(rates->contexts[i].now->pid, pids[i]);
}

START_TEST(orders_of_contexts)
{
	struct sample before = {0}, now = {0};
	struct rates rates;

	for (uint32_t i = 0; i < 3; i++)
		add_context(&before, i, 0, 0);
	for (uint32_t i = 0; i < 3; i++)
		before.contexts[i].info.numbers[FDINFO_WAITS_SPACE] = 0;
	add_context(&now, 0, 7, 100);
	add_context(&now, 1, 5, 300);
	add_context(&now, 2, 6, 100);
	add_context(&now, 3, 4, UINT64_MAX);
	ck_assert_int_eq(rates_make(&before, &now, 1, &rates), 0);
	check_order(&rates, ORDER_IDS, (uint32_t[]){5, 6, 7, 4});
	check_order(&rates, ORDER_STALLS, (uint32_t[]){6, 7, 5, 4});
	check_order(&rates, ORDER_PID, (uint32_t[]){4, 5, 6, 7});
	check_order(&rates, ORDER_MEMORY, (uint32_t[]){4, 5, 6, 7});
	ck_assert_double_eq(rates_context_waits(&rates.contexts[1]), 700);
	ck_assert(isnan(rates_context_waits(&rates.contexts[0])));
	rates_free(&rates);
	sample_free(&before);
	sample_free(&now);
	for (enum order order = 0; order < ORDERS; order++)
		ck_assert_int_eq(order_named(order_word(order)), order);
	ck_assert_int_eq(order_named("heat"), ORDERS);
}
END_TEST

static void put_text(const void *row, char cell[CELL_BYTES])
{
	strcpy(cell, row);
}

START_TEST(tables_fit)
{
	static const struct column columns[] = {
		{"A", 3, true, 0, put_text},
		{"B", 4, false, 2, put_text},
		{"C", 2, false, 1, put_text},
		{"D", 2, true, 2, put_text},
	};
	static const struct table table = {columns, 4};
	struct lines lines = {0};
	bool shown[4];

	table_fit(&table, 0, shown);
	table_header(&table, shown, &lines);
	table_fit(&table, 17, shown);
	table_header(&table, shown, &lines);
	table_fit(&table, 16, shown);
	table_header(&table, shown, &lines);
	table_row(&table, shown, LINE_ROW, 5, "x", &lines);
	table_fit(&table, 12, shown);
	table_header(&table, shown, &lines);
	table_fit(&table, 1, shown);
	table_header(&table, shown, &lines);
	ck_assert(!lines.failed);
	ck_assert_uint_eq(lines.count, 6);
	ck_assert_str_eq(lines.list[0].text, "A       B   C  D");
	ck_assert_str_eq(lines.list[1].text, "A       B   C  D");
	ck_assert_str_eq(lines.list[2].text, "A       B   C");
	ck_assert_str_eq(lines.list[3].text, "x       x   x");
	ck_assert_uint_eq(lines.list[3].row, 5);
	ck_assert_str_eq(lines.list[4].text, "A     C");
	ck_assert_str_eq(lines.list[5].text, "A");
	lines_free(&lines);
}
END_TEST

START_TEST(numbers_in_three_digits)
{
	static const struct {
		double count;
		const char *text;
	} cases[] = {
		{0, "0"},	    {7, "7"},		{0.25, "0.25"},	 {9.994, "9.99"},
		{9.995, "10.0"},    {17.25, "17.2"},	{99.96, "100"},	 {999, "999"},
		{999.4, "999"},	    {999.5, "1.00k"},	{1234, "1.23k"}, {45678901, "45.7M"},
		{123456e6, "123G"}, {18.4e18, "18.4E"}, {NAN, "-"},
	};
	char cell[CELL_BYTES];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_str_eq(count_text(cases[i].count, cell), cases[i].text);
	ck_assert_str_eq(share_text(0.374, cell), "37 %");
	ck_assert_str_eq(share_text(NAN, cell), "-");
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_add_test(tcase, keys_and_units_are_read);
	tcase_add_test(tcase, lines_that_are_not_understood);
	tcase_add_test(tcase, descriptors_of_a_file_are_a_context);
	tcase_add_test(tcase, queues_of_contexts);
	tcase_add_test(tcase, counts_that_wrap_and_begin_anew);
	tcase_add_test(tcase, rates_of_devices);
	tcase_add_test(tcase, orders_of_contexts);
	tcase_add_test(tcase, tables_fit);
	tcase_add_test(tcase, numbers_in_three_digits);
}

int main(void)
{
	return suite_main("top", add_tests);
}
