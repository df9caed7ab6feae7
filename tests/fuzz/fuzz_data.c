// SPDX-License-Identifier: MIT
/*
 * Baskets, ratings and Debian's package lists. The first byte says which: "b", "c" and "d" in this
 * order, "s" for a format that is to be found out, "r" for ratings of which the separator is, or "t"
 * for a first line with arguments of --separator and of --columns or --format. The second byte says
 * which allocation fails ("0": none) or that the stream fails behind the text ("!"). The rest is the
 * text.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "../../runtime/examples/item2vec/basket.h"
#include "../../runtime/examples/item2vec/debian.h"
#include "../../runtime/examples/item2vec/ratings.h"
#include "../../runtime/examples/item2vec/sniff.h"
#include "../unit/support/failing_alloc.h"
#include "fuzz.h"

typedef int (*reader)(struct source *s, struct collector *c);

static int sniff_and_read(struct source *s, struct collector *c)
{
	char words[SNIFF_TEXT];
	int rc = sniff(s, words);

	if (rc)
		return rc;
	fuzz_check(*words && s->format.kind != FORMAT_UNKNOWN, "kind %d", s->format.kind);
	return s->format.kind == FORMAT_RATINGS ? ratings_read(s, c) : basket_read(s, c);
}

static int sniff_ratings(struct source *s, struct collector *c)
{
	s->format.kind = FORMAT_RATINGS;
	return sniff_and_read(s, c);
}

/* The first line has the options; the format points into the columns. */
static int read_as_told(struct source *s, struct collector *c)
{
	static char line[256];
	char error[FORMAT_ERROR] = "", *columns;
	struct format *f = &s->format;
	int rc = source_line(s);

	if (rc <= 0)
		return rc;
	snprintf(line, sizeof(line), "%s", s->text);
	columns = strchr(line, ' ');
	if (columns)
		*columns++ = '\0';
	if (format_read_separator(f, line, error) && !strstr(error, "--separator takes"))
		fuzz_check(false, "'%s'", error);
	if (!columns)
		return sniff_and_read(s, c);
	if (format_read_kind(f, columns, error) && format_read_columns(f, columns, error))
		fuzz_check(strstr(error, "--columns takes"), "'%s'", error);
	if (format_check(f, error))
		fuzz_check(false, "'%s'", error);
	if (f->kind == FORMAT_BASKETS)
		return basket_read(s, c);
	return ratings_read(s, c);
}

static reader choose(uint8_t first)
{
	switch (first) {
	case 'b':
		return basket_read;
	case 'c':
		return ratings_read;
	case 'd':
		return debian_read;
	case 's':
		return sniff_and_read;
	case 'r':
		return sniff_ratings;
	case 't':
		return read_as_told;
	}
	return first % 2 ? ratings_read : debian_read;
}

/* Says where it stopped, when it is the text that is wrong. */
static void check_result(const struct source *s, int result, bool starved)
{
	char line[32];

	fuzz_check(!result || result == -EBADMSG || (starved && result == -ENOMEM), "result %d",
		   result);
	if (result != -EBADMSG)
		return;
	snprintf(line, sizeof(line), "file:%llu: ", (unsigned long long)s->line);
	fuzz_check(!strncmp(s->error, line, strlen(line)), "'%s'", s->error);
}

static void check_collected(const struct collector *c)
{
	for (size_t i = 0; i < c->use_count; i++)
		fuzz_check(c->uses[i].basket < c->baskets.count && c->uses[i].item < c->items.count,
			   "use %zu", i);
	for (size_t i = 0; i < c->items.count; i++)
		fuzz_check(names_find(&c->items, c->items.text[i], strlen(c->items.text[i])) ==
				   (int64_t)i,
			   "item %zu is not found by its name", i);
}

/* Rising within each basket, no item twice, each as often as it says. */
static void check_dataset(const struct dataset *d)
{
	uint32_t *uses = fuzz_memory((d->items.count + 1) * sizeof(*uses));

	for (size_t b = 0; b < d->basket_count; b++) {
		for (size_t k = d->start[b]; k < d->start[b + 1]; k++) {
			fuzz_check(d->sorted[k] < d->items.count, "item %u", d->sorted[k]);
			fuzz_check(k == d->start[b] || d->sorted[k - 1] < d->sorted[k],
				   "basket %zu", b);
			fuzz_check(dataset_basket_has(d, b, d->item[k]), "basket %zu", b);
			uses[d->sorted[k]]++;
		}
	}
	for (size_t i = 0; i < d->items.count; i++)
		fuzz_check(uses[i] <= d->uses[i], "item %zu", i);
	free(uses);
}

/* Says whether it is the same data: another item is another hash. */
static void check_hash(struct dataset *d)
{
	uint64_t hash = dataset_hash(d);

	if (!d->start[d->basket_count])
		return;
	d->item[0] ^= 1;
	fuzz_check(dataset_hash(d) != hash, "%llx", (unsigned long long)hash);
	d->item[0] ^= 1;
	fuzz_check(dataset_hash(d) == hash, "%llx", (unsigned long long)hash);
}

static void build(struct collector *c, uint32_t scarce, size_t least)
{
	struct dataset d = {0};
	int result;
	bool starved;

	scarce_begin(scarce);
	result = dataset_build(&d, c, 1 + least, 1 + least);
	starved = scarce_end();
	fuzz_check(!result || (starved && result == -ENOMEM), "result %d", result);
	if (result)
		return;
	check_dataset(&d);
	check_hash(&d);
	dataset_free(&d);
}

static ssize_t read_and_fail(void *cookie, char *to, size_t bytes)
{
	struct fuzz *f = cookie;
	size_t n = bytes < f->left ? bytes : f->left;

	if (!n)
		errno = EIO;
	memcpy(to, f->data, n);
	f->data += n;
	f->left -= n;
	return n ? (ssize_t)n : -1;
}

/* A stream that fails is said to have failed, by its name. */
static void read_failing(const uint8_t *data, size_t size)
{
	struct fuzz rest = {data + 2, size - 2};
	struct source s = {.name = "file"};
	struct collector c = {0};
	int result;

	s.stream = fopencookie(&rest, "r", (cookie_io_functions_t){.read = read_and_fail});
	fuzz_check(s.stream, "fopencookie");
	result = choose(data[0])(&s, &c);
	fuzz_check(result == -EIO || result == -EBADMSG, "result %d", result);
	fuzz_check(!strncmp(s.error, "file:", 5), "'%s'", s.error);
	collector_free(&c);
	fclose(s.stream);
	source_free(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t scarce = size > 1 && data[1] > '0' ? (data[1] - (uint32_t)'0') % 32 : 0;
	struct source s = {.name = "file"};
	struct collector c = {0};
	bool starved;
	int result;

	if (size < 3)
		return 0;
	if (data[1] == '!') {
		read_failing(data, size);
		return 0;
	}
	s.stream = fmemopen((void *)(data + 2), size - 2, "r");
	fuzz_check(s.stream, "fmemopen");
	scarce_begin(scarce);
	result = choose(data[0])(&s, &c);
	starved = scarce_end();
	check_result(&s, result, starved);
	check_collected(&c);
	if (!result)
		build(&c, starved ? 0 : scarce, size % 2);
	collector_free(&c);
	fclose(s.stream);
	source_free(&s);
	return 0;
}
