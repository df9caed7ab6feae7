// SPDX-License-Identifier: MIT
/*
 * Passes lines of the library and of the device to the log function of the program.
 *
 * The log belongs to a handle and has a lock of its own, because the device's threads write to it
 * too. The program's function is called without the lock.
 */
#include <stdarg.h>
#include <stdio.h>

#include "log.h"

void log_init(struct log *log)
{
	pthread_mutex_init(&log->lock, NULL);
}

void log_end(struct log *log)
{
	pthread_mutex_destroy(&log->lock);
}

void log_line(void *arg, enum embeng_log_level level, const char *text)
{
	struct log *log = arg;
	embeng_log_fn fn;
	void *fn_arg;

	pthread_mutex_lock(&log->lock);
	fn = level <= log->most ? log->fn : NULL;
	fn_arg = log->arg;
	pthread_mutex_unlock(&log->lock);
	if (fn)
		fn(fn_arg, level, text);
}

void log_say(struct log *log, enum embeng_log_level level, const char *fmt, ...)
{
	char text[EMBENG_ERROR_TEXT];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	log_line(log, level, text);
}
