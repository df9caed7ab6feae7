// SPDX-License-Identifier: MIT
/*
 * Reads the name of a device, such as "soft:cores=4" or "/dev/accel/accel0,path=mapped", and the
 * environment variables that stand in for parts of it.
 *
 * The result is a structure of the caller that points nowhere. No lock is needed.
 */
#define _GNU_SOURCE /* secure_getenv */
#include "name.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../text/number.h"
#include "accel.h"
#include "base/error.h"
#include "embeng.h"
#include "host/tune_file.h"

#define CORES_MAX 64
#define DEADLINE_MOST (7 * 24 * 3600)

#ifdef EMBENG_HAVE_ACCEL
#define NAMES_THERE_ARE \
	"open \"soft\", \"soft:cores=4\", a node like \"/dev/accel/accel0\" or an address " \
	"like \"pci:0000:01:00.0\""
#else
#define NAMES_THERE_ARE "open \"soft\" or \"soft:cores=4\"; " ACCEL_MISSING
#endif

/* Digits and a suffix for a power of 1024; false for anything else, or overflow. */
static bool parse_number(const char *text, bool suffix, uint64_t *out)
{
	static const char suffixes[] = "KMG";
	size_t length = strlen(text);
	const char *which = suffix && length ? strchr(suffixes, text[length - 1]) : NULL;
	unsigned int shift = which ? 10 * (unsigned int)(which - suffixes + 1) : 0;
	uint64_t value;

	if (number_read(text, length - !!which, 10, &value) || value > UINT64_MAX >> shift)
		return false;
	*out = value << shift;
	return true;
}

static int parse_variant(const char *value, const char *from, struct name *out)
{
	if (!*value || strlen(value) >= sizeof(out->variant))
		return fail(-EINVAL,
			    "%s: \"%s\" is not a kernel variant; \"portable\" always works", from,
			    value);
	strcpy(out->variant, value);
	return 0;
}

static int parse_cores(const char *value, const char *from, struct name *out)
{
	uint64_t number;

	if (!parse_number(value, false, &number) || !number || number > CORES_MAX)
		return fail(-EINVAL, "%s: cores=%s must be 1 to %d", from, value, CORES_MAX);
	out->cores = (uint32_t)number;
	return 0;
}

static int parse_memory(const char *value, const char *from, struct name *out)
{
	uint64_t number;

	if (!parse_number(value, true, &number) || !number)
		return fail(-EINVAL,
			    "%s: memory=%s must be bytes from 1, or a number with K, M or G", from,
			    value);
	out->memory = number;
	return 0;
}

static int parse_prefetch(const char *value, const char *from, struct name *out)
{
	struct fetch_way way = {0};

	out->fetch_default = !strcmp(value, "default");
	if (!out->fetch_default && !fetch_lookup_parse(value, &way))
		return fail(-EINVAL,
			    "%s: prefetch=%s must be default or 1 to %u rows; after the "
			    "rows may stand :l1 (into the first cache), :touch (the first "
			    "line of each row sooner) or :burst (many rows at once). "
			    "`embeng tune` finds what is best",
			    from, value, FETCH_ROWS_MOST);
	out->fetch_rows = way.rows;
	out->fetch_form = way.form;
	return 0;
}

static int parse_record(const char *value, const char *from, struct name *out)
{
	if (!*value || strlen(value) >= sizeof(out->record))
		return fail(-EINVAL,
			    "%s: record=%s must be the path of a file, of at most %zu bytes", from,
			    value, sizeof(out->record) - 1);
	strcpy(out->record, value);
	return 0;
}

static int parse_path(const char *value, const char *from, struct name *out)
{
	if (!strcmp(value, "mapped"))
		out->path = NAME_PATH_MAPPED;
	else if (!strcmp(value, "validated"))
		out->path = NAME_PATH_VALIDATED;
	else
		return fail(-EINVAL, "%s: path=%s must be mapped or validated", from, value);
	return 0;
}

struct option {
	const char *name;
	int (*parse)(const char *value, const char *from, struct name *out);
};

static const struct option soft_options[] = {
	{"cores", parse_cores},	      {"memory", parse_memory}, {"variant", parse_variant},
	{"prefetch", parse_prefetch}, {"record", parse_record}, {0}};
static const struct option accel_options[] = {{"path", parse_path}, {0}};

/* Options of a group are taken out before those of a device are looked at. So this is one too many, or misplaced. */
static int refuse_group_option(const char *text, bool has_value, const char *from)
{
	if (!has_value)
		return fail(-EINVAL, "%s: option \"%s\" has no value; write %s=...", from, text,
			    text);
	if (strcmp(text, "deadline"))
		return fail(-EINVAL, "%s: option \"%s\" is there twice; write it once", from, text);
	return fail(-EINVAL,
		    "%s: option \"deadline\" is there once at most, and in a name that begins with "
		    "\"mpi:\"; a group that the program opens has deadline_ns",
		    from);
}

static bool is_group_option(const char *text)
{
	return !strcmp(text, "deadline") || !strcmp(text, "exchange") || !strcmp(text, "sharding");
}

static int parse_option(char *text, const char *from, const struct option *options,
			struct name *out)
{
	char *value = strchr(text, '=');
	char known[96] = "";

	if (value)
		*value++ = 0;
	for (; options->name; options++) {
		if (!strcmp(text, options->name) && value)
			return options->parse(value, from, out);
		if (!strcmp(text, options->name))
			return fail(-EINVAL, "%s: option \"%s\" has no value; write %s=...", from,
				    text, text);
		snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s",
			 *known ? ", " : "", options->name);
	}
	if (is_group_option(text))
		return refuse_group_option(text, value != NULL, from);
	return fail(-EINVAL, "%s: option \"%s\" is not known; the options are %s", from, text,
		    known);
}

static int parse_options(const char *text, const char *from, const struct option *options,
			 struct name *out)
{
	char *copy, *option, *rest;
	int ret = 0;

	copy = strdup(text);
	if (!copy)
		return fail(-ENOMEM, "%s: there is no memory for the name of a device", from);
	for (option = strtok_r(copy, ",", &rest); option && !ret;
	     option = strtok_r(NULL, ",", &rest))
		ret = parse_option(option, from, options, out);
	free(copy);
	return ret;
}

/* A node or an address, up to the options. */
static int parse_accel(const char *text, const char *from, struct name *out)
{
	size_t length = strcspn(text, ",");

	if (!length || length >= sizeof(out->where))
		return fail(-ENODEV, "%s: \"%s\" is no device node and no PCI address", from, text);
	memcpy(out->where, text, length);
	out->where[length] = 0;
	return parse_options(text + length, from, accel_options, out);
}

static bool is_address(const char *text)
{
	static const char form[] = "hhhh:hh:hh.o"; /* h: hexadecimal digit, o: octal one */
	uint64_t digit;

	for (size_t i = 0; form[i]; i++) {
		if (form[i] != 'h' && form[i] != 'o'
			    ? text[i] != form[i]
			    : number_read(&text[i], 1, 16, &digit) || (form[i] == 'o' && digit > 7))
			return false;
	}
	return !text[sizeof(form) - 1] || text[sizeof(form) - 1] == ',';
}

static int parse_address(const char *text, const char *from, struct name *out)
{
	out->kind = NAME_PCI;
	if (!is_address(text))
		return fail(-EINVAL,
			    "%s: \"pci:%s\" is no complete address; write it like pci:0000:01:00.0",
			    from, text);
	return parse_accel(text, from, out);
}

/* @from: the source of the name, for error sentences */
static int parse_text(const char *text, const char *from, struct name *out)
{
	if (!text || !*text)
		return 0;
	if (!strncmp(text, "pci:", 4))
		return parse_address(text + 4, from, out);
	if (!strncmp(text, "/dev/", 5)) {
		out->kind = NAME_NODE;
		return parse_accel(text, from, out);
	}
	out->kind = NAME_SOFT;
	if (!strncmp(text, "soft:", 5))
		return parse_options(text + 5, from, soft_options, out);
	if (!strcmp(text, "soft"))
		return 0;
	return fail(-ENODEV, "%s: \"%s\" is not known; " NAMES_THERE_ARE, from, text);
}

static int parse_deadline(const char *value, const char *from, struct name *out)
{
	uint64_t seconds;

	if (!parse_number(value, false, &seconds) || !seconds || seconds > DEADLINE_MOST)
		return fail(-EINVAL,
			    "%s: deadline=%s must be whole seconds, 1 to %d, that an exchange "
			    "between the hosts may take",
			    from, value, DEADLINE_MOST);
	out->deadline = (uint32_t)seconds;
	return 0;
}

/* @option: the text before the value, for the sentence */
static int parse_exchange_kind(const char *option, const char *value, const char *from,
			       enum embeng_exchange_kind *out)
{
	static const char *const names[] = {[EMBENG_EXCHANGE_TABLE] = "table",
					    [EMBENG_EXCHANGE_COLUMN] = "columns",
					    [EMBENG_EXCHANGE_ROWS] = "rows",
					    [EMBENG_EXCHANGE_ROWS_GRADIENTS] = "rows+grads"};

	for (size_t i = 1; i < sizeof(names) / sizeof(*names); i++) {
		if (strcmp(value, names[i]))
			continue;
		*out = (enum embeng_exchange_kind)i;
		return 0;
	}
	return fail(-EINVAL, "%s: %s=%s must be table, columns, rows or rows+grads", from, option,
		    value);
}

static int parse_group_exchange(const char *value, const char *from, struct name *out)
{
	return parse_exchange_kind("exchange", value, from, &out->exchange);
}

static int parse_group_sharding(const char *value, const char *from, struct name *out)
{
	if (strcmp(value, "mod") && strcmp(value, "div"))
		return fail(-EINVAL, "%s: sharding=%s must be mod or div", from, value);
	out->sharding = *value == 'm' ? EMBENG_SHARDING_MOD : EMBENG_SHARDING_DIV;
	return 0;
}

/* Options of a group, which stand among those of any kind of device. */
static const struct option group_options[] = {{"deadline", parse_deadline},
					      {"exchange", parse_group_exchange},
					      {"sharding", parse_group_sharding},
					      {0}};
/* Those that a group which the program has opened may have, too. */
static const struct option *const place_options = &group_options[1];

/* Where an option begins whose name ends with @last, or NULL. */
static char *find_option(char *text, const char *name, char last)
{
	const size_t length = strlen(name);
	char *at = strstr(text, name);

	while (at && (at[length] != last || (at != text && !strchr(":,", at[-1]))))
		at = strstr(at + 1, name);
	return at;
}

/* Takes one option out of @text, with a separator. */
static int take_option(char *text, const char *from, const char *name, char separator,
		       int (*parse)(const char *value, const char *from, struct name *out),
		       struct name *out)
{
	char *at = find_option(text, name, separator), *value, *end;
	char last;
	int ret;

	if (!at)
		return 0;
	value = at + strlen(name) + 1;
	end = value + strcspn(value, ",");
	last = *end;
	*end = 0;
	ret = parse(value, from, out);
	*end = last;
	/* The separator before it goes too, unless options follow that need it. */
	if (last)
		memmove(at, end + 1, strlen(end + 1) + 1);
	else
		at[at == text ? 0 : -1] = 0;
	return ret;
}

/* "items=rows": the exchange of one table. */
static int parse_table_exchange(const char *value, const char *from, struct name *out)
{
	const char *equals = strrchr(value, '=');
	const size_t length = equals ? (size_t)(equals - value) : 0;
	struct name_exchange *each = &out->exchanges[out->exchange_count];
	char option[NAME_TABLE + 16];

	if (!length)
		return fail(-EINVAL,
			    "%s: exchange:%s names no exchange of a table; write it like "
			    "exchange:items=rows",
			    from, value);
	if (length >= NAME_TABLE)
		return fail(-EINVAL, "%s: exchange: the name of a table has up to %d bytes", from,
			    NAME_TABLE - 1);
	if (out->exchange_count == NAME_EXCHANGES)
		return fail(-EINVAL, "%s: exchange: of more than %d tables", from, NAME_EXCHANGES);
	memcpy(each->table, value, length);
	each->table[length] = 0;
	for (size_t i = 0; i < out->exchange_count; i++)
		if (!strcmp(out->exchanges[i].table, each->table))
			return fail(-EINVAL,
				    "%s: option \"exchange:%s\" is there twice; write it once",
				    from, each->table);
	out->exchange_count++;
	snprintf(option, sizeof(option), "exchange:%s", each->table);
	return parse_exchange_kind(option, equals + 1, from, &each->kind);
}

static bool spreads_rows(const struct name *name)
{
	bool spreads = name->exchange >= EMBENG_EXCHANGE_ROWS;

	for (size_t i = 0; i < name->exchange_count; i++)
		spreads |= name->exchanges[i].kind >= EMBENG_EXCHANGE_ROWS;
	return spreads;
}

/* @text: behind the prefix of a group, or without one, for a group that the program has */
static int parse_grouped(const char *text, const char *from, const struct option *options,
			 struct name *out)
{
	char *copy = strdup(text);
	int ret = 0;

	if (!copy)
		return fail(-ENOMEM, "%s: there is no memory for the name of a device", from);
	while (!ret && find_option(copy, "exchange", ':'))
		ret = take_option(copy, from, "exchange", ':', parse_table_exchange, out);
	for (; !ret && options->name; options++)
		ret = take_option(copy, from, options->name, '=', options->parse, out);
	if (!ret && out->sharding != EMBENG_SHARDING_MOD && !spreads_rows(out))
		ret = fail(-EINVAL, "%s: sharding=div is for exchange=rows", from);
	ret = ret ? ret : parse_text(copy, from, out);
	free(copy);
	return ret;
}

static int parse_any(const char *text, const char *from, struct name *out)
{
	static const char *const groups[] = {"mpi", "openmpi", "mpich"};
	const size_t length = text ? strcspn(text, ":") : 0;

	for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++) {
		if (length != strlen(groups[i]) || strncmp(text, groups[i], length))
			continue;
		strcpy(out->group, groups[i]);
		return parse_grouped(text + length + (text[length] == ':'), from, group_options,
				     out);
	}
	return text ? parse_grouped(text, from, place_options, out) : 0;
}

static const char *read_environment(const char *name)
{
	const char *value = secure_getenv(name);

	return value && *value ? value : NULL;
}

const char *name_kernel(void)
{
	return read_environment("EMBENG_KERNEL");
}

int name_take_prefetch(struct name *name)
{
	const char *prefetch = read_environment("EMBENG_PREFETCH");

	if (name->fetch_rows || name->fetch_default || !prefetch)
		return 0;
	name->fetch_source = "EMBENG_PREFETCH";
	return parse_prefetch(prefetch, "EMBENG_PREFETCH", name);
}

static int parse_name(const char *text, struct name *out)
{
	*out = (struct name){
		.kind = NAME_ANY, .fetch_source = "device name", .sharding = EMBENG_SHARDING_MOD};
	return text ? parse_any(text, "device name", out)
		    : parse_any(read_environment("EMBENG_DEVICE"), "EMBENG_DEVICE", out);
}

/* The environment stands in for what neither name nor options say. */
static int add_environment(struct name *name)
{
	const char *variant = name_kernel(), *path = read_environment("EMBENG_PATH");
	const char *record = read_environment("EMBENG_RECORD");
	int ret = 0;

	if (!name->variant[0] && variant)
		ret = parse_variant(variant, "EMBENG_KERNEL", name);
	ret = ret ? ret : name_take_prefetch(name);
	if (!ret && name->path == NAME_PATH_ANY && path)
		ret = parse_path(path, "EMBENG_PATH", name);
	if (!ret && !name->record[0] && record)
		ret = parse_record(record, "EMBENG_RECORD", name);
	return ret;
}

int name_parse(const char *text, struct name *out)
{
	struct name name;
	int ret = parse_name(text, &name);

	ret = ret ? ret : add_environment(&name);
	if (!ret)
		*out = name;
	return ret;
}

#define FROM_OPTIONS "open options"

static int check_option_kinds(const struct embeng_open_options *o, const struct name *name)
{
	const char *soft = o->cores	 ? "cores"
			   : o->memory	 ? "memory"
			   : o->variant	 ? "variant"
			   : o->prefetch ? "prefetch"
					 : NULL;

	if (soft && (name->kind == NAME_NODE || name->kind == NAME_PCI))
		return fail(-EINVAL,
			    FROM_OPTIONS
			    ": %s is an option of the soft device, and %s%s is a device "
			    "behind the driver",
			    soft, name->kind == NAME_PCI ? "pci:" : "", name->where);
	if (o->path && name->kind == NAME_SOFT)
		return fail(-EINVAL,
			    FROM_OPTIONS ": path is an option of devices behind the driver, "
					 "and the device is soft");
	if (o->cores > CORES_MAX)
		return fail(-ERANGE, FROM_OPTIONS ": cores %u is more than %d", o->cores,
			    CORES_MAX);
	return 0;
}

static int add_options(const struct embeng_open_options *o, struct name *name)
{
	int ret = check_option_kinds(o, name);

	if (!ret && o->cores)
		name->cores = o->cores;
	if (!ret && o->memory)
		name->memory = o->memory;
	if (!ret && o->variant)
		ret = parse_variant(o->variant, FROM_OPTIONS, name);
	if (!ret && o->prefetch) {
		name->fetch_source = FROM_OPTIONS;
		ret = parse_prefetch(o->prefetch, FROM_OPTIONS, name);
	}
	if (!ret && o->path)
		ret = parse_path(o->path, FROM_OPTIONS, name);
	return ret;
}

int name_of_options(const struct embeng_open_options *options, struct name *out)
{
	struct name name;
	int ret = parse_name(options->device, &name);

	ret = ret ? ret : add_options(options, &name);
	ret = ret ? ret : add_environment(&name);
	if (!ret)
		*out = name;
	return ret;
}
