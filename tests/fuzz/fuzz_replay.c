// SPDX-License-Identifier: MIT
/*
 * Recordings for `embeng replay`: any bytes, or entries that are given numbers and checksums that are
 * right, alone or behind those of a device that runs. Whatever is recorded, and whichever allocation
 * fails, the replay ends, and it says one thing about how.
 *
 * A replay waits for commands that never end. Time is made to pass while it sleeps, so that it waits
 * as long as ever, and the target does not.
 */
#include <time.h>

#include "../../engine/hash/crc32c.h"
#include "../../runtime/cli/recording/recording.h"
#include "../../runtime/cli/replay/play.h"
#include "../unit/support/decode_help.h"
#include "../unit/support/failing_alloc.h"
#include "builtin_image.h"
#include "fuzz.h"

#define ENTRIES_MOST 512
#define NAP_NS 250000000ull
#define NS_PER_S 1000000000ull

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left);

enum { ANY_BYTES, ANY_DEVICE, RUNNING_DEVICE, FORMS };

static uint64_t slept_ns;

int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left)
{
	(void)wanted;
	(void)left;
	__atomic_fetch_add(&slept_ns, NAP_NS, __ATOMIC_RELAXED);
	return 0;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	int ret = __real_clock_gettime(clock, now);
	uint64_t ns = (uint64_t)now->tv_nsec + __atomic_load_n(&slept_ns, __ATOMIC_RELAXED);

	now->tv_sec += (time_t)(ns / NS_PER_S);
	now->tv_nsec = (long)(ns % NS_PER_S);
	return ret;
}

static void make_running_device(struct decode_file *file)
{
	const struct embeng_recording_power_on on = {.version = EMBENG_RECORDING_VERSION,
						     .cores = 2,
						     .queues = 8,
						     .vectors = 2,
						     .table_memory = 1 << 20};
	const struct embeng_recording_boot boot = {.length = sizeof(embeng_builtin_image)};
	const struct embeng_recording_booted booted = {0};

	decode_put_entry(file, 0, EMBENG_RECORDING_POWER_ON, &on, sizeof(on), "", 0);
	decode_put_entry(file, 1, EMBENG_RECORDING_BOOT, &boot, sizeof(boot), embeng_builtin_image,
			 sizeof(embeng_builtin_image));
	decode_put_entry(file, 2, EMBENG_RECORDING_BOOTED, &booted, sizeof(booted), "", 0);
}

/* Numbers the entries from @at on, as far as they have lengths; a device that is on begins anew. */
static void number_entries(struct decode_file *file, size_t at, uint32_t number)
{
	struct embeng_recording_entry head;

	for (; file->size - at >= sizeof(head); at += head.length) {
		memcpy(&head, file->data + at, sizeof(head));
		if (head.length < sizeof(head) || head.length > file->size - at)
			return;
		head.number = head.type == EMBENG_RECORDING_POWER_ON ? 0 : number;
		number = head.number + 1;
		memcpy(file->data + at, &head, sizeof(head));
	}
}

static struct decode_file take_recording(struct fuzz *f, uint32_t form)
{
	struct decode_file file = {0};
	size_t at;

	if (form == RUNNING_DEVICE)
		make_running_device(&file);
	at = file.size;
	decode_put(&file, f->data, f->left);
	if (form != ANY_BYTES) {
		number_entries(&file, at, at ? 3 : 0);
		decode_mend_entries(&file);
	}
	return file;
}

static size_t read_entries(const struct decode_file *file, struct recording_entry *entries)
{
	struct recording recording;
	size_t count = 0;

	recording_begin(&recording, file->data, file->size);
	while (count < ENTRIES_MOST && recording_next(&recording, &entries[count]))
		count++;
	return count;
}

static void check_played(const struct play_result *r, size_t count)
{
	bool ended = r->differs || r->impossible[0];

	fuzz_check(!r->differs || !r->impossible[0], "%s", r->impossible);
	fuzz_check(r->entries == count - ended || (ended && r->entries < count), "%llu of %zu",
		   (unsigned long long)r->entries, count);
	fuzz_check(ended || r->injected <= r->faults, "%llu of %llu faults",
		   (unsigned long long)r->injected, (unsigned long long)r->faults);
	fuzz_check(r->differs == (*r->difference.what != '\0'), "%s", r->difference.what);
	fuzz_check(!r->differs || *r->difference.command, "%s", r->difference.what);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct recording_entry entries[ENTRIES_MOST];
	static const struct play_options options = {.variant = "portable"};
	struct fuzz f = {data, size};
	uint32_t form = fuzz_below(&f, FORMS), nth = (uint32_t)fuzz_take(&f, 1);
	struct decode_file file = take_recording(&f, form);
	struct play_result result;
	size_t count = read_entries(&file, entries);
	int err;

	scarce_begin(nth);
	err = play(entries, count, &options, &result);
	fuzz_check(scarce_end() || !err, "%zu entries: %d", count, err);
	if (!err)
		check_played(&result, count);
	free(file.data);
	return 0;
}
