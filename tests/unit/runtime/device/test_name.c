// SPDX-License-Identifier: MIT
/* Names of devices: their options, the environment, and what the error says about a wrong name. */
#include <stdio.h>
#include <stdlib.h>

#include "engine/kernels/kernels.h"
#include "runtime/src/device/name.h"
#include "session_help.h"

START_TEST(parses_options)
{
	struct name n;

	ck_assert_int_eq(name_parse("soft:cores=4,memory=2G,variant=portable", &n), 0);
	ck_assert_uint_eq(n.cores, 4);
	ck_assert_uint_eq(n.memory, 2ull << 30);
	ck_assert_str_eq(n.variant, "portable");
	ck_assert_int_eq(name_parse("soft:memory=4097", &n), 0);
	ck_assert_uint_eq(n.memory, 4097);
	ck_assert_uint_eq(n.cores, 0);
}
END_TEST

START_TEST(knows_devices_behind_the_driver)
{
	struct name n;

	ck_assert_int_eq(name_parse(NULL, &n), 0);
	ck_assert_int_eq(n.kind, NAME_ANY);
	ck_assert_int_eq(name_parse("", &n), 0);
	ck_assert_int_eq(n.kind, NAME_ANY);
	ck_assert_int_eq(name_parse("soft", &n), 0);
	ck_assert_int_eq(n.kind, NAME_SOFT);
	ck_assert_int_eq(name_parse("/dev/accel/accel0", &n), 0);
	ck_assert_int_eq(n.kind, NAME_NODE);
	ck_assert_str_eq(n.where, "/dev/accel/accel0");
	ck_assert_int_eq(n.path, NAME_PATH_ANY);
	ck_assert_int_eq(name_parse("pci:0000:01:00.0,path=validated", &n), 0);
	ck_assert_int_eq(n.kind, NAME_PCI);
	ck_assert_str_eq(n.where, "0000:01:00.0");
	ck_assert_int_eq(n.path, NAME_PATH_VALIDATED);
	setenv("EMBENG_PATH", "validated", 1);
	ck_assert_int_eq(name_parse("/dev/accel/accel0", &n), 0);
	ck_assert_int_eq(n.path, NAME_PATH_VALIDATED);
	ck_assert_int_eq(name_parse("/dev/accel/accel0,path=mapped", &n), 0);
	ck_assert_int_eq(n.path, NAME_PATH_MAPPED);
	setenv("EMBENG_PATH", "both", 1);
	ck_assert_int_eq(name_parse("soft", &n), -EINVAL);
	expect_text("EMBENG_PATH: path=both must be mapped or validated");
	unsetenv("EMBENG_PATH");
}
END_TEST

START_TEST(takes_the_environment)
{
	struct name n;

	setenv("EMBENG_DEVICE", "soft:cores=3", 1);
	setenv("EMBENG_KERNEL", "portable", 1);
	ck_assert_int_eq(name_parse(NULL, &n), 0);
	ck_assert_uint_eq(n.cores, 3);
	ck_assert_str_eq(n.variant, "portable");
	ck_assert_int_eq(name_parse("soft:variant=avx2", &n), 0);
	ck_assert_str_eq(n.variant, "avx2");
	unsetenv("EMBENG_DEVICE");
	unsetenv("EMBENG_KERNEL");
}
END_TEST

/* The error about a wrong name that came from the environment says so, and names the variable. */
START_TEST(says_that_the_environment_is_wrong)
{
	static const struct {
		const char *value, *text;
		int code;
	} cases[] = {
		{"bogus", "EMBENG_DEVICE: \"bogus\" is not known", -ENODEV},
		{"soft:cores=0", "EMBENG_DEVICE: cores=0", -EINVAL},
		{"soft:frob=1", "EMBENG_DEVICE: option \"frob\"", -EINVAL},
		{"/dev/accel/accel0,path", "EMBENG_DEVICE: option \"path\" has no value", -EINVAL},
		{"pci:1", "EMBENG_DEVICE: \"pci:1\" is no complete address", -EINVAL},
	};
	struct name n;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		setenv("EMBENG_DEVICE", cases[i].value, 1);
		ck_assert_int_eq(name_parse(NULL, &n), cases[i].code);
		expect_text(cases[i].text);
		ck_assert_int_eq(name_parse("hard", &n), -ENODEV);
		expect_text("device name: \"hard\"");
	}
	unsetenv("EMBENG_DEVICE");
}
END_TEST

START_TEST(takes_rows_to_fetch_ahead)
{
	struct name n;

	ck_assert_int_eq(name_parse("soft:prefetch=256", &n), 0);
	ck_assert_uint_eq(n.fetch_rows, 256);
	ck_assert_uint_eq(n.fetch_form, KERNEL_FETCH_SECOND);
	ck_assert_int_eq(name_parse("soft:prefetch=24:l1", &n), 0);
	ck_assert_uint_eq(n.fetch_rows, 24);
	ck_assert_uint_eq(n.fetch_form, KERNEL_FETCH_FIRST);
	ck_assert_int_eq(name_parse("soft:cores=2,prefetch=1:l1,memory=1M", &n), 0);
	ck_assert_uint_eq(n.fetch_rows, 1);
	ck_assert_uint_eq(n.fetch_form, KERNEL_FETCH_FIRST);
	ck_assert_uint_eq(n.memory, 1 << 20);
	ck_assert_int_eq(name_parse("soft:prefetch=32:touch", &n), 0);
	ck_assert_uint_eq(n.fetch_rows, 32);
	ck_assert_uint_eq(n.fetch_form, KERNEL_FETCH_TOUCH);
	ck_assert_int_eq(name_parse("soft:prefetch=48:burst", &n), 0);
	ck_assert_uint_eq(n.fetch_rows, 48);
	ck_assert_uint_eq(n.fetch_form, KERNEL_FETCH_BURST);
	ck_assert_int_eq(name_parse("soft:prefetch=256", &n), 0);
	ck_assert(!n.fetch_default);
	setenv("EMBENG_PREFETCH", "24", 1);
	ck_assert_int_eq(name_parse("soft", &n), 0);
	ck_assert_uint_eq(n.fetch_rows, 24);
	ck_assert_str_eq(n.fetch_source, "EMBENG_PREFETCH");
	ck_assert_int_eq(name_parse("soft:prefetch=32", &n), 0);
	ck_assert_uint_eq(n.fetch_rows, 32);
	ck_assert_str_eq(n.fetch_source, "device name");
	ck_assert_int_eq(name_parse("soft:prefetch=default", &n), 0);
	ck_assert_uint_eq(n.fetch_rows, 0);
	ck_assert(n.fetch_default);
	setenv("EMBENG_PREFETCH", "near", 1);
	ck_assert_int_eq(name_parse("soft", &n), -EINVAL);
	expect_text("EMBENG_PREFETCH: prefetch=near");
	unsetenv("EMBENG_PREFETCH");
}
END_TEST

START_TEST(refuses_groups)
{
	static const struct {
		const char *name;
		int code;
		const char *text;
	} cases[] = {
		{"mpi:hard", -ENODEV, "\"hard\" is not known"},
		{"mpix:soft", -ENODEV, "\"mpix:soft\" is not known"},
		{"mpi:mpi:soft", -ENODEV, "\"mpi:soft\" is not known"},
		{"mpi:soft:deadline=0", -EINVAL, "deadline=0 must be whole seconds, 1 to 604800"},
		{"mpi:soft,deadline=604801", -EINVAL, "deadline=604801"},
		{"mpi:soft,deadline=", -EINVAL, "deadline= must be"},
		{"mpi:soft,deadline=5s", -EINVAL, "deadline=5s"},
		{"mpi:soft,exchange=", -EINVAL,
		 "exchange= must be table, columns, rows or rows+grads"},
		{"soft:exchange=row", -EINVAL, "exchange=row must be"},
		{"mpi:soft,exchange=rows,sharding=3", -EINVAL, "sharding=3 must be mod or div"},
		{"mpi:soft,sharding=div", -EINVAL, "sharding=div is for exchange=rows"},
		{"mpi:soft,exchange:items", -EINVAL, "exchange:items names no exchange of a table"},
		{"mpi:soft,exchange:=rows", -EINVAL, "exchange:=rows names no exchange of a table"},
		{"mpi:soft,exchange:items=row", -EINVAL, "exchange:items=row must be table"},
		{"mpi:soft,exchange:items=table,sharding=div", -EINVAL, "sharding=div is for"},
	};
	struct name n = {.cores = 77};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		ck_assert_int_eq(name_parse(cases[i].name, &n), cases[i].code);
		expect_text(cases[i].text);
		ck_assert_uint_eq(n.cores, 77);
	}
}
END_TEST

START_TEST(refuses)
{
	static const struct {
		const char *name;
		int code;
		const char *text;
	} cases[] = {
		{"soft:cores=0", -EINVAL, "1 to 64"},
		{"soft:cores=65", -EINVAL, "1 to 64"},
		{"soft:cores=-1", -EINVAL, "cores=-1"},
		{"soft:cores", -EINVAL, "\"cores\" has no value; write cores=..."},
		{"soft:variant", -EINVAL, "\"variant\" has no value; write variant=..."},
		{"soft:speed", -EINVAL, "\"speed\" is not known"},
		{"soft:memory=0", -EINVAL, "memory=0"},
		{"soft:memory=1T", -EINVAL, "memory=1T"},
		{"soft:memory=99999999999999999999", -EINVAL, "memory="},
		{"soft:memory=18446744073709551615K", -EINVAL, "memory="},
		{"soft:variant=", -EINVAL, "kernel variant"},
		{"soft:prefetch=0", -EINVAL,
		 "default or 1 to 256 rows; after the rows may stand :l1"},
		{"soft:prefetch=257", -EINVAL, "prefetch=257"},
		{"soft:prefetch=far", -EINVAL, "prefetch=far"},
		{"soft:prefetch=", -EINVAL, "prefetch= must be"},
		{"soft:prefetch=:l1", -EINVAL, "prefetch=:l1"},
		{"soft:prefetch=24:l2", -EINVAL, "prefetch=24:l2"},
		{"soft:prefetch=24:l1x", -EINVAL, "prefetch=24:l1x"},
		{"soft:prefetch=00000024", -EINVAL, "prefetch=00000024"},
		{"soft:prefetch=measure", -EINVAL, "`embeng tune` finds what is best"},
		{"soft:prefetch=32:again", -EINVAL, "prefetch=32:again"},
		{"soft:prefetch=default:l1", -EINVAL, "prefetch=default:l1"},
		{"soft:speed=1", -EINVAL, "\"speed\" is not known"},
		{"hard", -ENODEV, "\"hard\" is not known"},
		{"soft:deadline=5", -EINVAL, "in a name that begins with \"mpi:\""},
		{"mpi:soft:deadline=5,deadline=6", -EINVAL, "\"deadline\" is there once at most"},
		{"mpi:soft:deadline", -EINVAL, "\"deadline\" has no value; write deadline=..."},
		{"mpi:soft:exchange=rows,exchange=table", -EINVAL, "\"exchange\" is there twice"},
		{"mpi:soft:exchange:a=rows,exchange:a=table", -EINVAL,
		 "\"exchange:a\" is there twice"},
		{"/dev/accel/accel0,cores=2", -EINVAL,
		 "\"cores\" is not known; the options are path"},
		{"/dev/accel/accel0,path=fast", -EINVAL, "path=fast must be mapped or validated"},
		{"pci:01:00.0", -EINVAL, "pci:0000:01:00.0"},
		{"pci:0000:01:00.0x", -EINVAL, "pci:0000:01:00.0"},
		{"pci:0000:01:00.8", -EINVAL, "pci:0000:01:00.0"},
		{"pci:0x01:01:00.0", -EINVAL, "pci:0000:01:00.0"},
		{"pci:+001:01:00.0", -EINVAL, "pci:0000:01:00.0"},
		{"pci:0000: 1:00.0", -EINVAL, "pci:0000:01:00.0"},
		{"/dev/0123456789012345678901234567890123456789012345678901234567890", -ENODEV,
		 "is no device node"},
	};
	struct name n = {.cores = 77};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		ck_assert_int_eq(name_parse(cases[i].name, &n), cases[i].code);
		expect_text(cases[i].text);
		ck_assert_uint_eq(n.cores, 77);
	}
}
END_TEST

/* The exchange of tables, wherever it stands, also for a group that the program has opened. */
START_TEST(names_exchanges)
{
	static const struct {
		const char *text;
		enum embeng_exchange_kind exchange;
		enum embeng_sharding sharding;
		uint32_t cores;
	} cases[] = {
		{"mpi:soft", 0, EMBENG_SHARDING_MOD, 0},
		{"mpi:exchange=table", EMBENG_EXCHANGE_TABLE, EMBENG_SHARDING_MOD, 0},
		{"mpi:soft:exchange=columns,deadline=3,cores=2", EMBENG_EXCHANGE_COLUMN,
		 EMBENG_SHARDING_MOD, 2},
		{"soft:cores=3,exchange=rows", EMBENG_EXCHANGE_ROWS, EMBENG_SHARDING_MOD, 3},
		{"mpi:soft:exchange=rows+grads,sharding=div", EMBENG_EXCHANGE_ROWS_GRADIENTS,
		 EMBENG_SHARDING_DIV, 0},
		{"soft:sharding=div,exchange=rows", EMBENG_EXCHANGE_ROWS, EMBENG_SHARDING_DIV, 0},
		{"/dev/accel/accel0,exchange=rows,sharding=mod", EMBENG_EXCHANGE_ROWS,
		 EMBENG_SHARDING_MOD, 0},
	};
	struct name n;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		ck_assert_int_eq(name_parse(cases[i].text, &n), 0);
		ck_assert_int_eq(n.exchange, cases[i].exchange);
		ck_assert_int_eq(n.sharding, cases[i].sharding);
		ck_assert_uint_eq(n.cores, cases[i].cores);
	}
}
END_TEST

/* Exchanges of tables by their names, which may have most characters. */
START_TEST(names_exchanges_of_tables)
{
	char many[1024] = "mpi:soft:cores=1";
	struct name n;

	ck_assert_int_eq(name_parse("mpi:soft:exchange:a b:c=rows,cores=2,exchange=table,"
				    "exchange:x=y=columns,sharding=div",
				    &n),
			 0);
	ck_assert_uint_eq(n.exchange_count, 2);
	ck_assert_str_eq(n.exchanges[0].table, "a b:c");
	ck_assert_int_eq(n.exchanges[0].kind, EMBENG_EXCHANGE_ROWS);
	ck_assert_str_eq(n.exchanges[1].table, "x=y");
	ck_assert_int_eq(n.exchanges[1].kind, EMBENG_EXCHANGE_COLUMN);
	ck_assert_int_eq(n.exchange, EMBENG_EXCHANGE_TABLE);
	ck_assert_int_eq(n.sharding, EMBENG_SHARDING_DIV);
	ck_assert_uint_eq(n.cores, 2);
	for (int i = 0; i < NAME_EXCHANGES + 1; i++)
		snprintf(many + strlen(many), 32, ",exchange:a%d=rows", i);
	ck_assert_int_eq(name_parse(many, &n), -EINVAL);
	expect_text("of more than 32 tables");
}
END_TEST

/* The prefix of a group, and its deadline wherever that stands among the options. */
START_TEST(takes_groups)
{
	static const struct {
		const char *name, *group;
		enum name_kind kind;
		uint32_t cores, deadline;
	} cases[] = {
		{"mpi:soft", "mpi", NAME_SOFT, 0, 0},
		{"openmpi:soft:cores=2", "openmpi", NAME_SOFT, 2, 0},
		{"mpich:soft:cores=2,deadline=30", "mpich", NAME_SOFT, 2, 30},
		{"mpi:soft:deadline=30,cores=3", "mpi", NAME_SOFT, 3, 30},
		{"mpi:soft:deadline=30", "mpi", NAME_SOFT, 0, 30},
		{"mpi:soft,deadline=604800", "mpi", NAME_SOFT, 0, 604800},
		{"mpi:/dev/accel/accel0,deadline=1", "mpi", NAME_NODE, 0, 1},
		{"mpi:pci:0000:01:00.0", "mpi", NAME_PCI, 0, 0},
		{"mpi:", "mpi", NAME_ANY, 0, 0},
		{"mpi", "mpi", NAME_ANY, 0, 0},
		{"mpi:deadline=7", "mpi", NAME_ANY, 0, 7},
		{"soft", "", NAME_SOFT, 0, 0},
	};
	struct name n;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		ck_assert_msg(!name_parse(cases[i].name, &n), "%s", cases[i].name);
		ck_assert_str_eq(n.group, cases[i].group);
		ck_assert_int_eq(n.kind, cases[i].kind);
		ck_assert_uint_eq(n.cores, cases[i].cores);
		ck_assert_uint_eq(n.deadline, cases[i].deadline);
	}
	setenv("EMBENG_DEVICE", "mpi:soft:cores=5,deadline=9", 1);
	ck_assert_int_eq(name_parse(NULL, &n), 0);
	ck_assert_str_eq(n.group, "mpi");
	ck_assert_uint_eq(n.cores, 5);
	ck_assert_uint_eq(n.deadline, 9);
	unsetenv("EMBENG_DEVICE");
}
END_TEST

START_TEST(takes_open_options)
{
	struct embeng_open_options o = EMBENG_INIT(embeng_open_options, .cores = 2, .memory = 4096,
						   .variant = "portable", .prefetch = "24:l1",
						   .path = "validated");
	struct name n;

	setenv("EMBENG_KERNEL", "avx2", 1);
	setenv("EMBENG_PREFETCH", "default", 1);
	setenv("EMBENG_PATH", "mapped", 1);
	ck_assert_int_eq(name_of_options(&o, &n), 0);
	ck_assert_int_eq(n.kind, NAME_ANY);
	ck_assert_uint_eq(n.cores, 2);
	ck_assert_uint_eq(n.memory, 4096);
	ck_assert_str_eq(n.variant, "portable");
	ck_assert_uint_eq(n.fetch_rows, 24);
	ck_assert(!n.fetch_default);
	ck_assert_str_eq(n.fetch_source, "open options");
	ck_assert_int_eq(n.path, NAME_PATH_VALIDATED);

	o = EMBENG_INIT(embeng_open_options, .device = "soft:cores=3,memory=1M", .cores = 2);
	ck_assert_int_eq(name_of_options(&o, &n), 0);
	ck_assert_int_eq(n.kind, NAME_SOFT);
	ck_assert_uint_eq(n.cores, 2);
	ck_assert_uint_eq(n.memory, 1 << 20);
	ck_assert_str_eq(n.variant, "avx2");
	ck_assert(n.fetch_default);
	unsetenv("EMBENG_KERNEL");
	unsetenv("EMBENG_PREFETCH");
	unsetenv("EMBENG_PATH");
	o = EMBENG_INIT(embeng_open_options);
	setenv("EMBENG_DEVICE", "/dev/accel/accel1,path=mapped", 1);
	ck_assert_int_eq(name_of_options(&o, &n), 0);
	ck_assert_str_eq(n.where, "/dev/accel/accel1");
	ck_assert_int_eq(n.path, NAME_PATH_MAPPED);
	unsetenv("EMBENG_DEVICE");
}
END_TEST

START_TEST(refuses_open_options)
{
	static const struct {
		struct embeng_open_options options;
		int code;
		const char *text;
	} cases[] = {
		{{.device = "soft", .cores = 65},
		 -ERANGE,
		 "open options: cores 65 is more than 64"},
		{{.device = "soft", .variant = ""},
		 -EINVAL,
		 "open options: \"\" is not a kernel variant"},
		{{.device = "soft", .prefetch = "far"}, -EINVAL, "open options: prefetch=far"},
		{{.path = "fast"}, -EINVAL, "open options: path=fast must be mapped or validated"},
		{{.device = "soft", .path = "mapped"},
		 -EINVAL,
		 "path is an option of devices behind"},
		{{.device = "/dev/accel/accel0", .cores = 1},
		 -EINVAL,
		 "cores is an option of the soft device, and /dev/accel/accel0 is"},
		{{.device = "/dev/accel/accel0", .memory = 1}, -EINVAL, "memory is an option"},
		{{.device = "pci:0000:01:00.0", .variant = "portable"},
		 -EINVAL,
		 "variant is an option of the soft device, and pci:0000:01:00.0 is"},
		{{.device = "pci:0000:01:00.0", .prefetch = "8"}, -EINVAL, "prefetch is an option"},
		{{.device = "hard", .cores = 1}, -ENODEV, "\"hard\" is not known"},
	};
	struct name n = {.cores = 77};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		ck_assert_int_eq(name_of_options(&cases[i].options, &n), cases[i].code);
		expect_text(cases[i].text);
		ck_assert_uint_eq(n.cores, 77);
	}
}
END_TEST

RUN_SUITE("name", takes_open_options, takes_groups, names_exchanges, names_exchanges_of_tables,
	  refuses_groups, refuses_open_options, parses_options, knows_devices_behind_the_driver,
	  takes_the_environment, says_that_the_environment_is_wrong, takes_rows_to_fetch_ahead,
	  refuses)
