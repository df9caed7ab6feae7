// SPDX-License-Identifier: MIT
/*
 * The life of an open engine, apart from its Python object: who uses it, when it is closed, and the
 * numbers by which code without an interpreter finds it. It is a file of its own because it must not
 * need Python: threads of XLA and TensorFlow call it.
 *
 * A handle is closed when close() was called (or the object is freed), no thread is in one of its
 * calls, and no map of a table is left. open->lock guards the counts, the registry's lock the list of
 * numbers; both are held for moments, and never one inside the other.
 */
#include "handles.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "open_group.h"
#include "pending.h"
#include "raw.h"
#include "session.h"

/* Open engines by their numbers, which rise. */
static struct {
	pthread_mutex_t lock;
	struct open_engine **items;
	size_t count, room;
	int64_t last;
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* -- numbers ------------------------------------------------------------------------ */

/* The place of a number, or of the next higher one. Called with the registry's lock. */
static size_t search_registry(int64_t number)
{
	size_t low = 0, high = registry.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (registry.items[middle]->number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool grow_registry(void)
{
	size_t room = registry.room ? 2 * registry.room : 16;
	struct open_engine **items;

	if (registry.count < registry.room)
		return true;
	items = realloc(registry.items, room * sizeof(struct open_engine *));
	if (!items)
		return false;
	registry.items = items;
	registry.room = room;
	return true;
}

static bool give_number(struct open_engine *open)
{
	bool grown;

	pthread_mutex_lock(&registry.lock);
	grown = grow_registry();
	if (grown) {
		open->number = ++registry.last;
		registry.items[registry.count++] = open;
	}
	pthread_mutex_unlock(&registry.lock);
	return grown;
}

static void take_number(struct open_engine *open)
{
	size_t at;

	pthread_mutex_lock(&registry.lock);
	at = search_registry(open->number);
	if (at < registry.count && registry.items[at] == open) {
		registry.count--;
		for (; at < registry.count; at++)
			registry.items[at] = registry.items[at + 1];
	}
	pthread_mutex_unlock(&registry.lock);
}

int open_error_set(struct embeng_error *error, int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	error->code = code;
	error->status = 0;
	vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
	return code;
}

static int refuse_entry(struct open_engine *open, enum open_entry entry, struct embeng_error *error)
{
	if (entry == OPEN_CHANGING)
		return open_error_set(
			error, -EBUSY,
			"another thread adds tables to this engine; call again later");
	return open_error_set(error, -ENODEV, "engine %lld is closed", (long long)open->number);
}

struct open_engine *open_engine_find(int64_t number, struct embeng_error *error)
{
	struct open_engine *open = NULL;
	enum open_entry entry;
	size_t at;

	pthread_mutex_lock(&registry.lock);
	at = search_registry(number);
	if (at < registry.count && registry.items[at]->number == number) {
		open = registry.items[at];
		atomic_fetch_add(&open->references, 1);
	}
	pthread_mutex_unlock(&registry.lock);
	if (!open) {
		open_error_set(
			error, -ENODEV,
			"there is no open engine with the handle %lld: it was closed or freed, "
			"or is "
			"another process'; open it again, and trace the program again",
			(long long)number);
		return NULL;
	}
	if (open_work_is_on(open)) {
		open_error_set(error, -EBUSY, "%s", OPEN_WORK_TEXT);
		open_engine_put(open);
		return NULL;
	}
	entry = open_engine_enter(open);
	if (entry == OPEN_ENTERED)
		return open;
	refuse_entry(open, entry, error);
	open_engine_put(open);
	return NULL;
}

void open_engine_done(struct open_engine *open)
{
	if (open_engine_leave(open))
		open_engine_shut(open);
	open_engine_put(open);
}

/* -- life ------------------------------------------------------------------------------ */

struct open_engine *open_engine_new(struct embeng *handle)
{
	struct open_engine *open = calloc(1, sizeof(*open));

	if (!open)
		return NULL;
	open->handle = handle;
	atomic_init(&open->references, 1);
	pthread_mutex_init(&open->lock, NULL);
	for (size_t i = 0; i < OPEN_TURNS; i++)
		pthread_mutex_init(&open->updates[i], NULL);
	if (give_number(open))
		return open;
	open->is_shut = true;
	open_engine_put(open);
	return NULL;
}

void open_engine_put(struct open_engine *open)
{
	if (atomic_fetch_sub(&open->references, 1) != 1)
		return;
	pthread_mutex_destroy(&open->lock);
	for (size_t i = 0; i < OPEN_TURNS; i++)
		pthread_mutex_destroy(&open->updates[i]);
	free(open);
}

/* Whether nobody uses the handle any more, of an engine that is closed. Called with the lock. */
static bool is_last_use(struct open_engine *open)
{
	bool last = open->closed && !open->is_shut && !open->users && !open->maps;

	open->is_shut |= last;
	return last;
}

enum open_entry open_engine_enter(struct open_engine *open)
{
	enum open_entry entry = OPEN_ENTERED;

	pthread_mutex_lock(&open->lock);
	if (open->closed)
		entry = OPEN_CLOSED;
	else if (open->changing)
		entry = OPEN_CHANGING;
	open->users += entry == OPEN_ENTERED;
	pthread_mutex_unlock(&open->lock);
	return entry;
}

bool open_engine_leave(struct open_engine *open)
{
	bool last;

	pthread_mutex_lock(&open->lock);
	open->users--;
	last = is_last_use(open);
	pthread_mutex_unlock(&open->lock);
	return last;
}

void open_engine_keep(struct open_engine *open)
{
	pthread_mutex_lock(&open->lock);
	open->maps++;
	pthread_mutex_unlock(&open->lock);
}

bool open_engine_let_go(struct open_engine *open)
{
	bool last;

	pthread_mutex_lock(&open->lock);
	open->maps--;
	last = is_last_use(open);
	pthread_mutex_unlock(&open->lock);
	return last;
}

bool open_engine_close(struct open_engine *open)
{
	bool last;

	take_number(open);
	pthread_mutex_lock(&open->lock);
	open->closed = true;
	if (open->users)
		embeng_interrupt(open->handle, 1);
	last = is_last_use(open);
	pthread_mutex_unlock(&open->lock);
	return last;
}

/* Another thread's update could stand between the two halves of this one otherwise. */
int open_update(struct open_engine *open, struct embeng_batch *batch,
		const struct embeng_gradients *gradients, int64_t timeout_ns)
{
	pthread_mutex_t *turn = &open->updates[gradients->replica % OPEN_TURNS];
	int ret;

	pthread_mutex_lock(turn);
	ret = embeng_update(open->handle, batch, gradients, timeout_ns);
	pthread_mutex_unlock(turn);
	return ret;
}

void open_engine_shut(struct open_engine *open)
{
	pending_free(open);
	raw_calls_free(open);
	raw_session_free(open);
	embeng_close(open->handle);
	if (open->group)
		open_group_return(open->group);
}

bool open_engine_begin_change(struct open_engine *open)
{
	bool alone;

	pthread_mutex_lock(&open->lock);
	alone = open->users == 1;
	open->changing = alone;
	pthread_mutex_unlock(&open->lock);
	return alone;
}

void open_engine_end_change(struct open_engine *open)
{
	pthread_mutex_lock(&open->lock);
	open->changing = false;
	pthread_mutex_unlock(&open->lock);
}

/* -- works ------------------------------------------------------------------------------ */

/* Works of the calling thread, the last one first. */
static _Thread_local struct open_work *works;

void open_work_begin(struct open_work *work, const struct open_engine *open)
{
	work->open = open;
	work->outer = works;
	works = work;
}

void open_work_end(const struct open_work *work)
{
	works = work->outer;
}

bool open_work_is_on(const struct open_engine *open)
{
	for (const struct open_work *work = works; work; work = work->outer)
		if (work->open == open)
			return true;
	return false;
}
