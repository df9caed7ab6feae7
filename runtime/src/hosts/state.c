// SPDX-License-Identifier: MIT
/*
 * Tells the state of tables that lie on several hosts, and changes it: the number of steps, and frozen tables. Each
 * owner asks its own handle, and all hosts return the same.
 *
 * hosts_enter() lets one call in at a time. e->lock is taken for a moment where the session's numbers change.
 */
#include <inttypes.h>
#include <string.h>

#include "collective.h"
#include "segment.h"

int hosts_enter_with(struct embeng *e, int status)
{
	struct embeng_error error = {.size = sizeof(error)};
	int ret;

	embeng_last_error(&error);
	ret = hosts_enter(e);
	if (!ret && status)
		error_set(status, error.status, "%s", error.text);
	return ret;
}

int hosts_agree_on(struct embeng *e, const char *phase, int status, const void *own, size_t bytes,
		   const char *what)
{
	struct hosts *h = e->hosts;
	struct embeng_bytes *send = h->send[CHANNEL_CONTROL];
	struct embeng_bytes *received = h->received[CHANNEL_CONTROL];
	int ret;

	for (uint32_t i = 0; i < h->hosts; i++)
		send[i] = (struct embeng_bytes){own, bytes};
	ret = hosts_control(e, phase, status, send, received);
	for (uint32_t i = 0; !ret && i < h->hosts; i++) {
		if (received[i].bytes == received[0].bytes &&
		    !memcmp(received[i].data, received[0].data, received[0].bytes))
			continue;
		ret = fail(-EINVAL, "%s: host %" PRIu32 " (%s) has %s than host 0 (%s)", phase, i,
			   embeng_group_host(h->group, i), what, embeng_group_host(h->group, 0));
	}
	return ret;
}

int hosts_step(struct embeng *e, uint64_t *step)
{
	uint64_t own = 0;
	int ret = hosts_enter(e);

	if (ret)
		return ret;
	ret = embeng_step(e->hosts->owner, &own);
	ret = hosts_agree_on(e, "step", ret, &own, sizeof(own), "made another number of steps");
	hosts_leave(e);
	if (!ret)
		*step = own;
	return ret;
}

/*
 * Comes before the last exchange of a call: a host without replicas serves the next steps of the others while its own
 * program is still in the call.
 */
void hosts_count_from(struct hosts *h, uint64_t step)
{
	pthread_mutex_lock(&h->e->lock);
	step_set(h->e, h->call_step, step);
	pthread_mutex_unlock(&h->e->lock);
}

int hosts_set_step(struct embeng *e, uint64_t step, int status)
{
	int ret = hosts_enter_with(e, status);

	if (ret)
		return ret;
	ret = hosts_agree_on(e, "set step", status, &step, sizeof(step), "another number of steps");
	if (!ret) {
		ret = embeng_set_step(e->hosts->owner, step);
		if (!ret)
			hosts_count_from(e->hosts, step);
		ret = hosts_control(e, "set step", ret, NULL, NULL);
	}
	hosts_leave(e);
	return ret;
}

int hosts_freeze(struct embeng *e, int table, int frozen, int status)
{
	const int32_t own[] = {table, frozen != 0};
	struct hosts *h = e->hosts;
	int ret = hosts_enter_with(e, status);

	if (ret)
		return ret;
	ret = hosts_agree_on(e, "freeze", status, own, sizeof(own), "another table or switch");
	if (!ret) {
		if (h->tables[table] >= 0)
			ret = embeng_table_freeze(h->owner, h->tables[table], frozen);
		ret = hosts_control(e, "freeze", ret, NULL, NULL);
	}
	hosts_leave(e);
	return ret;
}
