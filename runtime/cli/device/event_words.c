// SPDX-License-Identifier: MIT
/*
 * Says in words what an event of the device's log means: which firmware, which error, which command.
 * It is apart from events.c, which reads the log.
 *
 * The words of errors and statuses are the tables of uapi/. Nothing is allocated.
 */
#include <string.h>

#include "embeng_engine.h"

#include "events.h"

static const char *find_boot_words(uint32_t error)
{
	switch (error) {
#define WORDS(name, value, words) \
	case value: \
		return words;
		EMBENG_BOOT_ERROR_TABLE(WORDS)
#undef WORDS
	default:
		return "for a reason that this version does not know";
	}
}

static const char *find_status_words(uint32_t status)
{
	switch (status) {
#define WORDS(name, value, cls, err, exit_code, words) \
	case value: \
		return words;
		EMBENG_STATUS_TABLE(WORDS)
#undef WORDS
	default:
		return "a status that this version does not know";
	}
}

static void put_version(const char *front, uint64_t version, char words[EVENT_WORDS])
{
	snprintf(words, EVENT_WORDS, "%s %u.%u.%u build %u", front, (unsigned int)(version >> 48),
		 (unsigned int)(version >> 32 & 0xffff), (unsigned int)(version >> 16 & 0xffff),
		 (unsigned int)(version & 0xffff));
}

static void put_number_words(const char *front, uint64_t value, const char *back,
			     char words[EVENT_WORDS])
{
	snprintf(words, EVENT_WORDS, "%s %llu %s", front, (unsigned long long)value, back);
}

static void put_memory_event(const struct embeng_event *event, char words[EVENT_WORDS])
{
	bool lost = event->kind == EMBENG_EVENT_ECC_UNCORRECTABLE;

	put_number_words(
		lost ? "an error of the table memory lost data, so that all tables are gone; it is "
		       "number"
		     : "an error of the table memory was corrected; it is number",
		event->value, "since the boot", words);
}

const char *event_words(const struct embeng_event *event, char words[EVENT_WORDS])
{
	switch (event->kind) {
	case EMBENG_EVENT_POWER_ON:
		strcpy(words, "the engine came up");
		break;
	case EMBENG_EVENT_BOOT:
		put_version("the firmware runs, version", event->value, words);
		break;
	case EMBENG_EVENT_BOOT_REFUSED:
		snprintf(words, EVENT_WORDS, "the firmware was refused at byte %llu: %s",
			 (unsigned long long)event->value, find_boot_words(event->detail));
		break;
	case EMBENG_EVENT_RESET:
		strcpy(words, "the device was reset, and all contexts are lost");
		break;
	case EMBENG_EVENT_ECC_CORRECTABLE:
	case EMBENG_EVENT_ECC_UNCORRECTABLE:
		put_memory_event(event, words);
		break;
	case EMBENG_EVENT_QUEUE_STOPPED:
		snprintf(words, EVENT_WORDS,
			 "the queue stopped at a wrong index: submission tail %u, completion head "
			 "%llu",
			 event->detail, (unsigned long long)event->value);
		break;
	case EMBENG_EVENT_COMMAND_FAILED:
		snprintf(words, EVENT_WORDS, "the device failed the command at index %llu: %s",
			 (unsigned long long)event->value, find_status_words(event->detail));
		break;
	case EMBENG_EVENT_CONTEXT_MADE:
		put_number_words("a context was made with room for", event->value, "regions",
				 words);
		break;
	case EMBENG_EVENT_CONTEXT_ENDED:
		strcpy(words, "the context ended");
		break;
	case EMBENG_EVENT_MODEL_LOADED:
		put_number_words("a model was loaded; tables take", event->value, "bytes now",
				 words);
		break;
	case EMBENG_EVENT_MODEL_UNLOADED:
		put_number_words("a model was unloaded; tables take", event->value, "bytes now",
				 words);
		break;
	default:
		snprintf(words, EVENT_WORDS,
			 "an event that this version does not know: detail %u, value %llu",
			 event->detail, (unsigned long long)event->value);
	}
	return words;
}
