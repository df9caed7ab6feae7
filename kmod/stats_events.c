// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device's own log of what happened to it, which is in its register space and outlives its
 * resets. debugfs shows it as text, oldest event first.
 *
 * The device may write while the log is read, and takes the number of an event away before it
 * writes over it. So each event is copied between two reads of its number, and left out if they
 * differ. Size and place of the records are checked before they are used, since a later device may
 * have larger ones and a broken one nonsense. There is no lock, and reading does not disturb the
 * device.
 */
#include <linux/seq_file.h>

#include "driver.h"

static const char *const kinds[] = {
#define KIND(name, value, words) \
	[value] = #name,
	EMBENG_EVENT_TABLE(KIND)
#undef KIND
};

/* The log as the device describes it: a later device may have more or larger records. */
struct log {
	u32 record_bytes;
	u32 capacity;
	u32 next;
};

static u32 read_log_word(struct embeng_device *ed, size_t offset)
{
	return readl(ed->registers + EMBENG_EVENT_LOG + offset);
}

static bool find_event_log(struct embeng_device *ed, struct log *log)
{
	const size_t records = offsetof(struct embeng_event_log, events);
	const size_t room = EMBENG_REGISTERS_SIZE - EMBENG_EVENT_LOG - records;

	log->record_bytes = read_log_word(ed, offsetof(struct embeng_event_log, record_bytes));
	log->capacity = read_log_word(ed, offsetof(struct embeng_event_log, capacity));
	log->next = read_log_word(ed, offsetof(struct embeng_event_log, next));
	return read_log_word(ed, offsetof(struct embeng_event_log, magic)) == EMBENG_EVENT_MAGIC &&
	       log->record_bytes >= sizeof(struct embeng_event) && !(log->record_bytes % 8) &&
	       log->record_bytes <= room && log->capacity &&
	       log->capacity <= room / log->record_bytes;
}

/* Return: false if the event was overwritten, or is being written. */
static bool read_event(struct embeng_device *ed, const struct log *log, u32 number,
		       struct embeng_event *event)
{
	void __iomem *at = ed->registers + EMBENG_EVENT_LOG +
			   offsetof(struct embeng_event_log, events) +
			   (size_t)(number % log->capacity) * log->record_bytes;

	if (readl(at) != number)
		return false;
	memcpy_fromio(event, at, sizeof(*event));
	/* Read after all of it: a device that began to write took the number away first. */
	return number && readl(at) == number;
}

static void print_event(struct seq_file *m, const struct embeng_event *event)
{
	const char *kind = event->kind < ARRAY_SIZE(kinds) ? kinds[event->kind] : NULL;

	seq_printf(m, "%u %llu ", event->number, event->time_ns);
	if (kind)
		seq_puts(m, kind);
	else
		seq_printf(m, "%u", event->kind);
	if (event->context != U32_MAX)
		seq_printf(m, " context %u", event->context);
	if (event->queue != EMBENG_EVENT_NO_QUEUE)
		seq_printf(m, " queue %u", event->queue);
	seq_printf(m, " detail %u value %llu\n", event->detail, event->value);
}

/**
 * embeng_events_show() - print the event log, oldest first
 * @ed: device, which may be gone
 * @m: file to print to
 */
void embeng_events_show(struct embeng_device *ed, struct seq_file *m)
{
	struct embeng_event event;
	struct log log;
	u32 i;

	if (!find_event_log(ed, &log))
		return;
	for (i = log.next - log.capacity; i != log.next; i++) {
		if (read_event(ed, &log, i, &event))
			print_event(m, &event);
	}
}
