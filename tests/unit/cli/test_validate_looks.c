// SPDX-License-Identifier: MIT
/*
 * embeng validate judges words in memory, and files of the kernel: link, errors of the bus,
 * temperature, other programs, interrupts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cli/validate/checks.h"
#include "runtime/cli/validate/errors.h"
#include "runtime/cli/validate/harm.h"
#include "runtime/cli/validate/patterns.h"
#include "runtime/cli/validate/vectors.h"
#include "scratch_help.h"
#include "suite.h"

#define ADDRESS "0000:01:00.0"
#define FUNCTION "sys/bus/pci/devices/" ADDRESS

static char root[32];
static struct subject s;
static struct finding f;

static void put_file(const char *name, const char *text)
{
	char path[192], command[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	snprintf(command, sizeof(command), "mkdir -p $(dirname %s)", path);
	ck_assert_int_eq(system(command), 0);
	file = fopen(path, "we");
	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	fclose(file);
}

static void setup(void)
{
	scratch_folder_make(root);
	put_file(FUNCTION "/counters/ecc_uncorrectable", "3\n");
	put_file(FUNCTION "/aer_dev_correctable",
		 "RxErr 1\nBadTLP 0\nTimeout 2\nTOTAL_ERR_COR 3\n");
	put_file(FUNCTION "/aer_dev_fatal", "DLP 0\nTOTAL_ERR_FATAL 0\n");
	memset(&f, 0, sizeof(f));
	s = (struct subject){0};
	strcpy(s.info.name, "/dev/accel/accel0,path=mapped");
	strcpy(s.info.kind, "accel");
	strcpy(s.info.address, "pci:" ADDRESS);
	subject_begin(&s, root);
}

static void teardown(void)
{
	scratch_folder_remove(root);
}

START_TEST(the_subject_is_found)
{
	ck_assert_str_eq(s.node, "/dev/accel/accel0");
	ck_assert_str_eq(s.address, ADDRESS);
	ck_assert_uint_eq(s.lost_data, 3);
	ck_assert_uint_eq(s.bus_errors, 3);
	ck_assert_uint_eq(subject_lost_data(&s), 0);
	put_file(FUNCTION "/counters/ecc_uncorrectable", "5\n");
	ck_assert_uint_eq(subject_lost_data(&s), 2);
}
END_TEST

START_TEST(a_narrow_link_is_named)
{
	check_link_width(&s, &f);
	ck_assert_int_eq(f.outcome, OUTCOME_SKIPPED);
	put_file(FUNCTION "/current_link_width", "16\n");
	put_file(FUNCTION "/max_link_width", "16\n");
	f = (struct finding){0};
	check_link_width(&s, &f);
	ck_assert_int_eq(f.outcome, OUTCOME_PASSED);
	put_file(FUNCTION "/current_link_width", "8\n");
	check_link_width(&s, &f);
	ck_assert_int_eq(f.outcome, OUTCOME_FAILED);
	ck_assert_double_eq(f.measured, 8);
	ck_assert_double_eq(f.limit, 16);
	ck_assert_ptr_nonnull(strstr(f.text, "8 lanes of 16"));
}
END_TEST

START_TEST(a_slow_link_is_named)
{
	put_file(FUNCTION "/max_link_speed", "Unknown\n");
	put_file(FUNCTION "/current_link_speed", "Unknown\n");
	check_link_speed(&s, &f);
	ck_assert_int_eq(f.outcome, OUTCOME_SKIPPED);
	put_file(FUNCTION "/max_link_speed", "16.0 GT/s PCIe\n");
	put_file(FUNCTION "/current_link_speed", "16.0 GT/s PCIe\n");
	f = (struct finding){0};
	check_link_speed(&s, &f);
	ck_assert_int_eq(f.outcome, OUTCOME_PASSED);
	put_file(FUNCTION "/current_link_speed", "2.5 GT/s PCIe\n");
	check_link_speed(&s, &f);
	ck_assert_int_eq(f.outcome, OUTCOME_FAILED);
	ck_assert_double_eq(f.measured, 2.5);
}
END_TEST

START_TEST(errors_of_the_bus_are_named)
{
	ck_assert(bus_errors_known(&s));
	bus_errors_check(&s, &f);
	ck_assert_int_eq(f.outcome, OUTCOME_PASSED);
	put_file(FUNCTION "/aer_dev_correctable",
		 "RxErr 1\nBadTLP 0\nTimeout 4\nTOTAL_ERR_COR 5\n");
	bus_errors_check(&s, &f);
	ck_assert_int_eq(f.outcome, OUTCOME_FAILED);
	ck_assert_double_eq(f.measured, 2);
	ck_assert_ptr_nonnull(strstr(f.text, "RxErr 1, Timeout 4"));
	strcpy(s.function, "/nowhere");
	ck_assert(!bus_errors_known(&s));
}
END_TEST

START_TEST(a_function_that_is_gone_is_named)
{
	put_file(FUNCTION "/config", "\xff\xff\xff\xff");
	check_link_present(&s, &f);
	ck_assert_int_eq(f.outcome, OUTCOME_FAILED);
	ck_assert_ptr_nonnull(strstr(f.text, "all ones"));
	put_file(FUNCTION "/vendor", "0x0eb0\n");
	put_file(FUNCTION "/device", "0x0001\n");
	put_file(FUNCTION "/config", "\xf4\x1a\x04\x10");
	f = (struct finding){0};
	check_link_present(&s, &f);
	ck_assert_ptr_nonnull(strstr(f.text, "1af4:1004, not 0eb0:0001"));
}
END_TEST

START_TEST(the_temperature_has_a_margin)
{
	double celsius, limit;

	ck_assert(!harm_temperature(&s, &celsius, &limit));
	put_file(FUNCTION "/hwmon/hwmon3/temp1_input", "71500\n");
	put_file(FUNCTION "/hwmon/hwmon3/temp1_crit", "95000\n");
	ck_assert(harm_temperature(&s, &celsius, &limit));
	ck_assert_double_eq(celsius, 71.5);
	ck_assert_double_eq(limit, 85);
	put_file(FUNCTION "/hwmon/hwmon3/temp1_crit", "0\n");
	ck_assert(!harm_temperature(&s, &celsius, &limit));
}
END_TEST

#define FDINFO(address, memory, busy) \
	"pos:\t0\ndrm-driver:\tembeng\ndrm-pdev:\t" address "\ndrm-total-memory:\t" memory \
	" KiB\ndrm-engine-compute:\t" busy " ns\n"

START_TEST(other_programs_are_named)
{
	char text[128];

	put_file("proc/99/fdinfo/3", FDINFO("0000:02:00.0", "64", "5"));
	put_file("proc/98/fdinfo/3", FDINFO(ADDRESS, "0", "0"));
	put_file("proc/self/fdinfo/3", FDINFO(ADDRESS, "64", "0"));
	ck_assert(!harm_find_program(&s, root, text, sizeof(text)));
	put_file(FUNCTION "/table_memory_used", "4096\n");
	ck_assert(harm_find_program(&s, root, text, sizeof(text)));
	ck_assert_str_eq(text, "tables of another program take 4096 bytes of its memory");
	put_file("proc/97/fdinfo/4", FDINFO(ADDRESS, "0", "1000"));
	put_file("proc/97/comm", "trainer\n");
	ck_assert(harm_find_program(&s, root, text, sizeof(text)));
	ck_assert_str_eq(text, "trainer (process 97) uses it");
}
END_TEST

START_TEST(interrupts_are_summed_by_vector)
{
	static const char text[] =
		"            CPU0       CPU1\n"
		"  24:         10          5  PCI-MSIX-0000:01:00.0 0-edge  embeng-0000:01:00.0-0\n"
		"  25:          0          7  PCI-MSIX-0000:01:00.0 1-edge  embeng-0000:01:00.0-1\n"
		"  26:          9          9  PCI-MSIX-0000:02:00.0 1-edge  embeng-0000:02:00.0-1\n"
		" NMI:          1          1  Non-maskable interrupts\n";
	FILE *file = fmemopen((void *)text, sizeof(text) - 1, "r");
	struct vectors v;

	vectors_parse(file, ADDRESS, &v);
	fclose(file);
	ck_assert_uint_eq(v.count, 2);
	ck_assert_uint_eq(v.fired[0], 15);
	ck_assert_uint_eq(v.fired[1], 7);
}
END_TEST

static const pattern_fn patterns[] = {pattern_same, pattern_walking, pattern_address,
				      pattern_random};

START_TEST(a_word_that_changed_is_found)
{
	uint32_t words[256];

	pattern_fill(words, 256, 1024, patterns[_i], 5);
	pattern_compare(words, 256, 1024, patterns[_i], 5, "it", 16, &f);
	ck_assert_int_eq(f.outcome, OUTCOME_PASSED);
	words[35] ^= 0x10;
	words[70] ^= 0x400;
	pattern_compare(words, 256, 1024, patterns[_i], 5, "it", 16, &f);
	ck_assert_int_eq(f.outcome, OUTCOME_FAILED);
	ck_assert_ptr_nonnull(strstr(f.text, "it: row 66 column 3 reads 0x"));
	ck_assert_ptr_nonnull(strstr(f.text, "2 of 256 words are wrong, in bits 0x00000410"));
}
END_TEST

/* A row that lands at another address, or is lost, cannot look right. */
START_TEST(addresses_have_words_of_their_own)
{
	for (uint64_t a = 0; a < 64; a++) {
		ck_assert_uint_ne(pattern_address(7, 0),
				  pattern_address(7 ^ (1ull << (a & 31)), 0));
		ck_assert_uint_eq(pattern_address(a, 0), ~pattern_address(a, UINT32_MAX));
	}
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, the_subject_is_found);
	tcase_add_test(tcase, a_narrow_link_is_named);
	tcase_add_test(tcase, a_slow_link_is_named);
	tcase_add_test(tcase, errors_of_the_bus_are_named);
	tcase_add_test(tcase, a_function_that_is_gone_is_named);
	tcase_add_test(tcase, the_temperature_has_a_margin);
	tcase_add_test(tcase, other_programs_are_named);
	tcase_add_test(tcase, interrupts_are_summed_by_vector);
	tcase_add_loop_test(tcase, a_word_that_changed_is_found, 0, 4);
	tcase_add_test(tcase, addresses_have_words_of_their_own);
}

int main(void)
{
	return suite_main("validate_looks", add);
}
