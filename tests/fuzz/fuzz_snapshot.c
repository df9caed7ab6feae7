// SPDX-License-Identifier: MIT
/*
 * Snapshots of registers: any bytes are read as one. A snapshot that is accepted is compared with
 * itself, which gives no change, and with registers that are all zero, as text and as a document.
 */
#include <errno.h>

#include "../../runtime/cli/device/snapshot.h"
#include "../../runtime/cli/frame/exit.h"
#include "fuzz.h"

#define PAGE_BYTES 4096

static char *compare_snapshots(bool json, const struct snapshot *a, const struct snapshot *b)
{
	struct output out = {.verb = "regs", .json = json};
	FILE *saved = stdout;
	char *text = NULL;
	size_t size;
	int code;

	stdout = open_memstream(&text, &size);
	fuzz_check(stdout, "%d", errno);
	code = snapshot_compare(&out, a, b);
	fclose(stdout);
	stdout = saved;
	fuzz_check(code == CLI_OK, "%d", code);
	return text;
}

/* A name may be there twice, with two values; then the first one counts on both sides. */
static void compare_with_itself(const struct snapshot *s)
{
	char expected[64], *text = compare_snapshots(false, s, s);

	snprintf(expected, sizeof(expected), "0 of %zu registers changed\n", s->count);
	fuzz_check(!strcmp(text, expected), "%s", text);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char page[PAGE_BYTES];
	static struct snapshot s, zero;
	char why[SNAPSHOT_WHY] = "";
	int err = snapshot_parse(&s, (const char *)data, size, why);

	fuzz_check(!err == !*why && (!err || err == -EBADMSG), "%d: %s", err, why);
	fuzz_check(s.count <= SNAPSHOT_MOST, "%zu", s.count);
	if (err)
		return 0;
	snapshot_take(&zero, "zero", page);
	compare_with_itself(&s);
	free(compare_snapshots(false, &zero, &s));
	free(compare_snapshots(true, &s, &zero));
	return 0;
}
