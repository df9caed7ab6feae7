// SPDX-License-Identifier: MIT
/*
 * Suite link: the function answers on the bus, its link is as wide and as fast as both ends can be,
 * and reads over it cause no errors.
 *
 * The kernel's attributes of the function are read, and registers are read many times. No command is
 * submitted, so that a device whose engine is broken passes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "errors.h"
#include "registers.h"

/* Copies of the register page, each of which is several hundred reads. */
enum { COPIES_QUICK = 50, COPIES_FULL = 1000 };
#define WIDTH_UNKNOWN 255

static uint32_t read_function_id(const struct subject *s)
{
	char path[2 * SUBJECT_PATH];
	uint32_t id = UINT32_MAX;
	FILE *file;

	snprintf(path, sizeof(path), "%s/config", s->function);
	file = fopen(path, "re");
	if (!file)
		return id;
	if (fread(&id, sizeof(id), 1, file) != 1)
		id = UINT32_MAX;
	fclose(file);
	return id;
}

/* Device and vendor as the kernel found them when it found the function. */
static uint32_t read_known_id(const struct subject *s)
{
	char vendor[16] = "", device[16] = "";

	subject_text(s, "vendor", vendor, sizeof(vendor));
	subject_text(s, "device", device, sizeof(device));
	return (uint32_t)(strtoul(device, NULL, 16) << 16 | strtoul(vendor, NULL, 16));
}

void check_link_present(const struct subject *s, struct finding *f)
{
	uint32_t known = read_known_id(s), id = read_function_id(s);
	struct finding rights = {0};
	struct registers r;

	if (id == UINT32_MAX)
		finding_fail(f, "%s does not answer: its configuration reads all ones", s->address);
	else if (id != known)
		finding_fail(f,
			     "%s is another function now: vendor and device are %04x:%04x, not "
			     "%04x:%04x",
			     s->address, id & 0xffff, id >> 16, known & 0xffff, known >> 16);
	else if (registers_copy(s, &r, &rights) &&
		 registers_word(&r, EMBENG_REG_MAGIC) == UINT32_MAX)
		finding_fail(f, "%s does not answer: its registers read all ones", s->address);
}

static void skip_without_link(struct finding *f)
{
	finding_skip(f, "the function has no link of its own: it is part of the root complex");
}

void check_link_width(const struct subject *s, struct finding *f)
{
	uint64_t now, most;

	if (!subject_number(s, "current_link_width", &now) ||
	    !subject_number(s, "max_link_width", &most) || !most || most == WIDTH_UNKNOWN) {
		skip_without_link(f);
		return;
	}
	finding_figure(f, (double)now, (double)most, "lanes");
	if (now < most)
		finding_fail(f,
			     "the link has %" PRIu64 " lanes of %" PRIu64 ": see how the board "
			     "sits in its slot, and how many lanes the slot has",
			     now, most);
}

void check_link_speed(const struct subject *s, struct finding *f)
{
	char now[64], most[64];
	double is, can;

	if (!subject_text(s, "current_link_speed", now, sizeof(now)) ||
	    !subject_text(s, "max_link_speed", most, sizeof(most)) || !(can = strtod(most, NULL))) {
		skip_without_link(f);
		return;
	}
	is = strtod(now, NULL);
	finding_figure(f, is, can, "GT/s");
	if (is < can)
		finding_fail(f,
			     "the link runs at %s of %s: see what the slot can do, and the "
			     "setting of its speed",
			     now, most);
}

void check_link_errors(const struct subject *s, struct finding *f)
{
	int copies = s->full ? COPIES_FULL : COPIES_QUICK;
	struct registers r;

	for (int k = 0; k < copies && !finding_interrupted(f); k++) {
		uint32_t magic;

		if (!registers_copy(s, &r, f))
			return;
		magic = registers_word(&r, EMBENG_REG_MAGIC);
		if (magic != EMBENG_DEVICE_MAGIC) {
			finding_fail(f, "copy %d of the registers has 0x%08x as MAGIC, not 0x%08x",
				     k, magic, EMBENG_DEVICE_MAGIC);
			return;
		}
	}
	if (bus_errors_known(s))
		bus_errors_check(s, f);
	else
		finding_note(f,
			     "%d copies of the registers are right; the function does not report "
			     "errors to the bus (no AER)",
			     copies);
}
