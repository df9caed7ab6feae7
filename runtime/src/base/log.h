/* SPDX-License-Identifier: MIT */
#ifndef EMBENG_LOG_H
#define EMBENG_LOG_H

#include <pthread.h>

#include "embeng.h"

/* The callback that gets the log lines of a handle. */
struct log {
	pthread_mutex_t lock;
	embeng_log_fn fn;
	void *arg;
	enum embeng_log_level most;
};

void log_init(struct log *log);
void log_end(struct log *log);
void log_say(struct log *log, enum embeng_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* log_line() in the form that &struct device_log needs; @arg is the &struct log. */
void log_line(void *arg, enum embeng_log_level level, const char *text);

#endif
