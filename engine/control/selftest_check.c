// SPDX-License-Identifier: MIT
/*
 * Checks the test vectors of a firmware image before they run. They come from a file, so everything
 * that will index memory is checked here: sizes, lengths, offsets and ids. It is apart from
 * selftest.c because an image is checked where no vector is run, too.
 *
 * The functions look only at their arguments and allocate nothing.
 */
#include "../blob/blob.h"
#include "../kernels/optimizers.h"
#include "selftest.h"

#include "../../uapi/embeng_regs.h"
#include "../f32.h"

#define AT(member) offsetof(struct embeng_fw_self_test, member)

static u32 refuse_content(u64 *offset, u64 at)
{
	*offset = at;
	return EMBENG_BOOT_ERROR_CONTENT;
}

static u32 check_test_sizes(const struct embeng_fw_self_test *t, u64 *offset)
{
	if (t->kind != EMBENG_FW_TEST_STEP)
		return refuse_content(offset, AT(kind));
	if (t->flags & ~EMBENG_FW_TEST_WEIGHTS)
		return refuse_content(offset, AT(flags));
	if (!t->rows)
		return refuse_content(offset, AT(rows));
	if (!t->dim || (u64)t->rows * t->dim > EMBENG_FW_TEST_VALUES_MAX)
		return refuse_content(offset, AT(dim));
	if (!t->samples || (u64)t->samples * t->dim > EMBENG_FW_TEST_VALUES_MAX)
		return refuse_content(offset, AT(samples));
	if ((u64)t->ids * t->dim > EMBENG_FW_TEST_VALUES_MAX)
		return refuse_content(offset, AT(ids));
	return EMBENG_BOOT_ERROR_NONE;
}

static u32 check_test_optimizer(const struct embeng_fw_self_test *t, u64 *offset)
{
	u32 kernel = optimizer_kernel(t->optimizer), i;

	if (t->combiner > EMBENG_COMBINER_SQRTN)
		return refuse_content(offset, AT(combiner));
	if (kernel == U32_MAX)
		return refuse_content(offset, AT(optimizer));
	if (t->slot_count != kernel_optimizers[kernel].slot_count)
		return refuse_content(offset, AT(slot_count));
	if (!f32_finite(t->learning_rate))
		return refuse_content(offset, AT(learning_rate));
	if (!t->step)
		return refuse_content(offset, AT(step));
	for (i = 0; i < EMBENG_HYPERPARAMETERS_MAX; i++) {
		if (!optimizer_number_ok(kernel, i, t->hyperparameter[i]))
			return refuse_content(offset, AT(hyperparameter) + 4 * i);
	}
	for (i = 0; i < sizeof(t->reserved) / sizeof(t->reserved[0]); i++) {
		if (t->reserved[i])
			return refuse_content(offset, AT(reserved) + 4 * i);
	}
	return EMBENG_BOOT_ERROR_NONE;
}

/* Offsets rise from 0 to the count of ids, ids are rows. */
static u32 check_test_ids(const u8 *vector, const struct embeng_fw_self_test *t, u64 *offset)
{
	u64 at = embeng_fw_test_offset(t, EMBENG_FW_TEST_OFFSETS);
	u32 i, value, before = 0;

	for (i = 0; i <= t->samples; i++, at += 4) {
		memcpy(&value, vector + at, sizeof(value));
		if (value < before || (i == 0 && value) || (i == t->samples && value != t->ids))
			return refuse_content(offset, at);
		before = value;
	}
	for (i = 0; i < t->ids; i++, at += 4) {
		memcpy(&value, vector + at, sizeof(value));
		if (value >= t->rows)
			return refuse_content(offset, at);
	}
	return EMBENG_BOOT_ERROR_NONE;
}

static u32 check_test_length(const u8 *vector, const struct embeng_fw_self_test *t, u64 room,
			     u64 *offset)
{
	u64 end = embeng_fw_test_offset(t, EMBENG_FW_TEST_ARRAYS);
	u64 length = (end + EMBENG_FW_ALIGN - 1) & ~(u64)(EMBENG_FW_ALIGN - 1);

	if (t->length != length || length > room)
		return refuse_content(offset, AT(length));
	for (; end < length; end++) {
		if (vector[end])
			return refuse_content(offset, end);
	}
	return EMBENG_BOOT_ERROR_NONE;
}

static u32 check_test_vector(const u8 *vector, u64 room, u64 *length, u64 *offset)
{
	struct embeng_fw_self_test t;
	u32 error;

	if (room < sizeof(t))
		return refuse_content(offset, 0);
	memcpy(&t, vector, sizeof(t));
	error = check_test_sizes(&t, offset);
	if (!error)
		error = check_test_optimizer(&t, offset);
	if (!error)
		error = check_test_length(vector, &t, room, offset);
	if (!error)
		error = check_test_ids(vector, &t, offset);
	*length = t.length;
	return error;
}

u32 selftest_check(const u8 *tests, u64 length, u32 *count, u64 *offset)
{
	u64 at = 0, vector, within = 0;
	u32 found = 0, error;

	do {
		error = check_test_vector(tests + at, length - at, &vector, &within);
		if (error) {
			*offset = at + within;
			return error;
		}
		at += vector;
		found++;
	} while (at < length);
	*count = found;
	return EMBENG_BOOT_ERROR_NONE;
}
