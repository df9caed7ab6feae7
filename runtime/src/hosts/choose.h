/* SPDX-License-Identifier: MIT */
/* The choice of the exchange that each table has. */
#ifndef EMBENG_HOSTS_CHOOSE_H
#define EMBENG_HOSTS_CHOOSE_H

#include "device/name.h"
#include "hosts.h"

/*
 * choose_exchanges() - fill @place and @choices of the handle
 * @name: the name of the device, whose options may ask for exchanges
 *
 * Return: 0; -EINVAL if no table, or one that is named, can have what is asked for; -ENOENT if there is no
 * such table; -ERANGE; -ENOMEM.
 */
int choose_exchanges(struct hosts *h, const struct name *name);

/* Numbers that differ where the parts of tables do, and where a name asks for other exchanges of tables. */
uint64_t choose_digest(const struct hosts *h);
uint64_t choose_named_digest(const struct name *name);

/* A model has more than its hash tells; all hosts must have it alike. */
enum { MODEL_STARTS, MODEL_FROZEN, MODEL_SCHEDULES, MODEL_DIGESTS };
void choose_model_digests(const struct embeng_model *model, uint64_t digests[MODEL_DIGESTS]);

/* Tells the log which exchange each table has, and why. */
void choose_say(const struct hosts *h);

#endif
