// SPDX-License-Identifier: MIT
/* Reading an event log again and again, and events in words. */
#include <string.h>

#include "embeng.h"
#include "embeng_engine.h"

#include "runtime/cli/device/events.h"
#include "suite.h"

static char page[EMBENG_REGISTERS_BYTES];
static struct embeng_event_log *const device_log = (void *)(page + EMBENG_EVENT_LOG);

static uint32_t first, last, count;

static void note_event(void *arg, const struct embeng_event *event)
{
	(void)arg;
	if (!count++)
		first = event->number;
	else
		ck_assert_uint_eq(event->number, last + 1);
	last = event->number;
}

static void start_log(uint32_t next)
{
	memset(page, 0, sizeof(page));
	device_log->magic = EMBENG_EVENT_MAGIC;
	device_log->next = next;
}

/* The device writes @events more. */
static void write_events(uint32_t events)
{
	for (uint32_t i = 0; i < events; i++, device_log->next++)
		device_log->events[device_log->next % EMBENG_EVENTS] = (struct embeng_event){
			.number = device_log->next};
}

static uint32_t read_events(struct events_place *place)
{
	count = 0;
	events_each(page, place, note_event, NULL);
	return count;
}

START_TEST(each_event_is_read_once)
{
	struct events_place place = {0};

	start_log(1);
	ck_assert_uint_eq(read_events(&place), 0);
	write_events(3);
	ck_assert_uint_eq(read_events(&place), 3);
	ck_assert_uint_eq(first, 1);
	ck_assert_uint_eq(read_events(&place), 0);
	write_events(EMBENG_EVENTS);
	ck_assert_uint_eq(read_events(&place), EMBENG_EVENTS);
	ck_assert_uint_eq(first, 4);
	ck_assert_uint_eq(place.lost, 0);
	write_events(EMBENG_EVENTS + 5);
	ck_assert_uint_eq(read_events(&place), EMBENG_EVENTS);
	ck_assert_uint_eq(place.lost, 5);
	ck_assert_uint_eq(first, 4 + EMBENG_EVENTS + 5);
}
END_TEST

START_TEST(a_log_that_is_not_there)
{
	struct events_place place = {0};

	start_log(1);
	write_events(2);
	ck_assert_uint_eq(read_events(&place), 2);
	/* As while the device is being reset: nothing is new, and nothing is forgotten. */
	device_log->magic = 0;
	ck_assert_uint_eq(read_events(&place), 0);
	device_log->magic = EMBENG_EVENT_MAGIC;
	write_events(1);
	ck_assert_uint_eq(read_events(&place), 1);
	ck_assert_uint_eq(first, 3);
	/* An event that is being written has no number. */
	write_events(2);
	device_log->events[4 % EMBENG_EVENTS].number = 0;
	ck_assert_uint_eq(read_events(&place), 1);
	ck_assert_uint_eq(first, 5);
	/* The device lost its power, and began anew. */
	start_log(1);
	write_events(2);
	ck_assert_uint_eq(read_events(&place), 2);
	ck_assert_uint_eq(first, 1);
	ck_assert_uint_eq(place.lost, 0);
}
END_TEST

START_TEST(numbers_that_wrap)
{
	struct events_place place = {0};

	start_log(UINT32_MAX - 1);
	write_events(2);
	ck_assert_uint_eq(read_events(&place), 2);
	ck_assert_uint_eq(last, UINT32_MAX);
	/* 0 is no number of an event. */
	device_log->next = 1;
	write_events(2);
	ck_assert_uint_eq(read_events(&place), 2);
	ck_assert_uint_eq(first, 1);
	ck_assert_uint_eq(place.lost, 0);
}
END_TEST

START_TEST(events_in_words)
{
	static const struct {
		struct embeng_event event;
		const char *words;
	} cases[] = {
		{{.kind = EMBENG_EVENT_BOOT, .value = 0x0001000200030004},
		 "the firmware runs, version 1.2.3 build 4"},
		{{.kind = EMBENG_EVENT_BOOT_REFUSED, .detail = 9, .value = 64},
		 "the firmware was refused at byte 64: a section does not match its hash"},
		{{.kind = EMBENG_EVENT_BOOT_REFUSED, .detail = 99},
		 "the firmware was refused at byte 0: for a reason that this version does not "
		 "know"},
		{{.kind = EMBENG_EVENT_ECC_CORRECTABLE, .value = 3},
		 "an error of the table memory was corrected; it is number 3 since the boot"},
		{{.kind = EMBENG_EVENT_QUEUE_STOPPED, .detail = 7, .value = 9},
		 "the queue stopped at a wrong index: submission tail 7, completion head 9"},
		{{.kind = EMBENG_EVENT_COMMAND_FAILED,
		  .detail = EMBENG_STATUS_SNAPSHOT,
		  .value = 5},
		 "the device failed the command at index 5: the snapshot ended, was replaced, or "
		 "outgrew the memory; begin another"},
		{{.kind = EMBENG_EVENT_MODEL_LOADED, .value = 4096},
		 "a model was loaded; tables take 4096 bytes now"},
		{{.kind = 999, .detail = 1, .value = 2},
		 "an event that this version does not know: detail 1, value 2"},
	};
	char words[EVENT_WORDS];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_str_eq(event_words(&cases[i].event, words), cases[i].words);
	ck_assert_str_eq(event_name(&cases[0].event), "BOOT");
	ck_assert_ptr_null(event_name(&cases[7].event));
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_add_test(tcase, each_event_is_read_once);
	tcase_add_test(tcase, a_log_that_is_not_there);
	tcase_add_test(tcase, numbers_that_wrap);
	tcase_add_test(tcase, events_in_words);
}

int main(void)
{
	return suite_main("event_log", add_tests);
}
