/* SPDX-License-Identifier: MIT */
/* Ranges of numbers that tables, slots and hyperparameters may have. */
#ifndef EMBENG_ENGINE_RANGES_H
#define EMBENG_ENGINE_RANGES_H

#include "../types.h"

/**
 * number_in_range() - whether a number is one of a range
 * @range: enum kernel_range
 * @bits: f32 bits
 *
 * Return: true when it is; false for what is not finite.
 */
bool number_in_range(u32 range, u32 bits);

/* f32 bits of the bound that a number broke. */
u32 number_bound(u32 range, u32 bits);

/* The range of a table's numbers, enum kernel_range; @slot as rows name it. */
u32 slot_range(u32 kernel, u32 slot);

/**
 * numbers_until() - look for a number that rows of a table or slot cannot have
 * @from: f32 bits
 * @count: how many
 * @range: enum kernel_range, slot_range()
 * @any: numbers that are not finite are allowed, too, unless their sign is not
 *
 * Return: index of the first such number, or @count.
 */
u64 numbers_until(const u32 *from, u64 count, u32 range, bool any);

#endif
