/* SPDX-License-Identifier: MIT */
/* The screen of `embeng top`. */
#ifndef CLI_TOP_TOP_H
#define CLI_TOP_TOP_H

#include "../frame/output.h"
#include "order.h"
#include "sampler.h"

/**
 * screen_run() - show samples on the terminal until the user quits
 * @sampler: has its first sample
 * @order: order of the contexts at the beginning
 *
 * Return: 0 or a negative errno; -ENOTTY if this terminal cannot show a screen.
 */
int screen_run(struct sampler *sampler, enum order order);

#endif
