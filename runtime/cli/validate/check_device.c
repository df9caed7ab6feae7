// SPDX-License-Identifier: MIT
/*
 * Suite device, as far as it needs no context of its own: the firmware runs, its heartbeat grows,
 * and small lookups come back in order.
 *
 * Registers are read by embeng_registers_read(), which opens and closes the device each time.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "../frame/random.h"
#include "bed.h"
#include "checks.h"
#include "registers.h"

enum { LOOKUPS = 200, LOOKUP_ROWS = 256, LOOKUP_DIM = 4, BEATS = 4 };

bool registers_copy(const struct subject *s, struct registers *r, struct finding *f)
{
	int err = embeng_registers_read(s->device, r->page);

	if (err == -EPERM)
		finding_skip(f, "reading registers needs CAP_SYS_RAWIO");
	else
		finding_library(f, err, "the registers cannot be read");
	return !err;
}

uint32_t registers_word(const struct registers *r, enum embeng_register which)
{
	uint32_t value;

	memcpy(&value, r->page + which, sizeof(value));
	return value;
}

static void judge_status(const struct subject *s, struct finding *f)
{
	struct finding rights = {0};
	struct registers r;
	uint32_t status;

	if (!registers_copy(s, &r, &rights)) {
		if (rights.outcome == OUTCOME_FAILED)
			finding_fail(f, "%s", rights.text);
		return;
	}
	status = registers_word(&r, EMBENG_REG_STATUS);
	if (status != EMBENG_DEVICE_OK)
		finding_fail(f, "register STATUS is %u, the device asks for a reset", status);
}

void check_device_state(const struct subject *s, struct finding *f)
{
	struct embeng_device_info info = EMBENG_INIT(embeng_device_info);
	int err = embeng_device_info(s->device, &info);

	if (finding_library(f, err, "the device does not answer"))
		return;
	if (*info.state && strcmp(info.state, "running") != 0)
		finding_fail(f, "its firmware is not running but in state \"%s\"", info.state);
	if (!s->soft)
		judge_status(s, f);
}

void check_device_heartbeat(const struct subject *s, struct finding *f)
{
	struct registers before, after;
	uint32_t beats, period;

	if (!registers_copy(s, &before, f))
		return;
	period = registers_word(&before, EMBENG_REG_HEARTBEAT_MS);
	if (!period || period > 10000) {
		finding_fail(f, "register HEARTBEAT_MS is %u, which is no period", period);
		return;
	}
	usleep(BEATS * period * 1000);
	if (!registers_copy(s, &after, f))
		return;
	beats = registers_word(&after, EMBENG_REG_HEARTBEAT) -
		registers_word(&before, EMBENG_REG_HEARTBEAT);
	finding_figure(f, beats, 1, "beats");
	if (!beats)
		finding_fail(f,
			     "register HEARTBEAT stood still for %u ms; it must grow every %u ms",
			     BEATS * period, period);
}

void check_device_lookups(const struct subject *s, struct finding *f)
{
	const struct bed_config config = {.rows = LOOKUP_ROWS, .dim = LOOKUP_DIM};
	struct random draw = random_seeded(s->seed + s->round, RANDOM_SAMPLES);
	float rows[LOOKUP_ROWS * LOOKUP_DIM], got[LOOKUP_DIM];
	struct bed bed;

	for (size_t i = 0; i < LOOKUP_ROWS * LOOKUP_DIM; i++)
		rows[i] = (float)i;
	if (!bed_open(s, &config, &bed, f))
		return;
	if (finding_library(f, embeng_rows_write(bed.e, 0, NULL, NULL, LOOKUP_ROWS, rows),
			    "writing rows"))
		goto close;
	for (int k = 0; k < LOOKUPS && finding_good(f); k++) {
		int64_t id = random_below(&draw, LOOKUP_ROWS), bounds[] = {0, 1};

		if (bed_lookup(&bed, &(struct bed_bags){&id, NULL, bounds, 1}, got, f) &&
		    memcmp(got, rows + id * LOOKUP_DIM, sizeof(got)) != 0)
			finding_fail(f,
				     "lookup %d of row %lld gave another row: it begins with %g, "
				     "not %g",
				     k, (long long)id, got[0], rows[id * LOOKUP_DIM]);
	}
close:
	bed_close(&bed);
}
