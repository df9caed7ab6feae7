// SPDX-License-Identifier: MIT
/*
 * The settings of a kernel of TensorFlow: the attributes of its operator, read once, and the errors of
 * operators. It is a file of its own because the runs of a kernel (tensorflow_kernels.c) read it only.
 *
 * A kernel lives as long as TensorFlow keeps it, does not change, and holds no engine: it knows the number
 * of one. There are no locks.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "raw.h"
#include "tensorflow.h"

#define MOST_FEATURES 65536
/* Where an error of TensorFlow carries the errno of the library; embeng/tf/ops.py reads it. */
#define PAYLOAD_KEY "embeng.errno"

/* -- errors -------------------------------------------------------------------------- */

/*
 * An id outside of its table is no TF_CODE_OUT_OF_RANGE: loops over a data set take that for the end of
 * their data, and would end in silence.
 */
static int choose_tf_code(int error)
{
	static const struct {
		int error, code;
	} codes[] = {
		{EINVAL, TF_CODE_INVALID_ARGUMENT},
		{ERANGE, TF_CODE_INVALID_ARGUMENT},
		{ENOENT, TF_CODE_NOT_FOUND},
		{EPROTO, TF_CODE_FAILED_PRECONDITION},
		{EDEADLK, TF_CODE_FAILED_PRECONDITION},
		{ENODEV, TF_CODE_FAILED_PRECONDITION},
		{ETIME, TF_CODE_DEADLINE_EXCEEDED},
		{EBUSY, TF_CODE_UNAVAILABLE},
		{EINTR, TF_CODE_CANCELLED},
		{ENOMEM, TF_CODE_RESOURCE_EXHAUSTED},
		{ENOSPC, TF_CODE_RESOURCE_EXHAUSTED},
		{EDQUOT, TF_CODE_RESOURCE_EXHAUSTED},
		{ENOTSUP, TF_CODE_UNIMPLEMENTED},
		{EACCES, TF_CODE_PERMISSION_DENIED},
		{EPERM, TF_CODE_PERMISSION_DENIED},
	};

	for (size_t k = 0; k < sizeof(codes) / sizeof(*codes); k++)
		if (codes[k].error == -error)
			return codes[k].code;
	return TF_CODE_INTERNAL;
}

/* Names of exceptions by errno, filled while the operators are registered, before any kernel is made. */
static struct {
	char text[32];
} error_names[256];

void tf_name_error(int number, const char *name)
{
	if (number >= 0 && (size_t)number < sizeof(error_names) / sizeof(*error_names))
		snprintf(error_names[number].text, sizeof(error_names[number].text), "%s", name);
}

static const char *find_error_name(int number)
{
	bool known = number >= 0 && (size_t)number < sizeof(error_names) / sizeof(*error_names) &&
		     error_names[number].text[0];

	return known ? error_names[number].text : "EmbengError";
}

int tf_refuse(struct tf_status *status, const char *text)
{
	tf.set_status(status, TF_CODE_INVALID_ARGUMENT, text);
	return -1;
}

int tf_report(struct tf_status *status, const struct embeng_error *error)
{
	char number[16];

	tf.set_status(status, choose_tf_code(error->code), error->text);
	snprintf(number, sizeof(number), "%d", -error->code);
	tf.set_payload(status, PAYLOAD_KEY, number);
	return -1;
}

/* TensorFlow takes some codes by their kind, such as the end of a data set; this one suits all. */
int tf_report_step(struct tf_status *status, const struct embeng_error *error)
{
	char text[EMBENG_ERROR_TEXT + sizeof(error_names[0])];

	snprintf(text, sizeof(text), "%s: %s", find_error_name(-error->code), error->text);
	tf.set_status(status, TF_CODE_INVALID_ARGUMENT, text);
	return -1;
}

int tf_report_no_memory(struct tf_status *status)
{
	tf.set_status(status, TF_CODE_RESOURCE_EXHAUSTED,
		      "no memory for the arrays of an operator");
	return -1;
}

/* -- making a kernel ------------------------------------------------------------------- */

static void free_texts(struct tf_texts *texts)
{
	free(texts->storage);
	free(texts->items);
}

void tf_kernel_free(void *made)
{
	struct tf_kernel *kernel = made;

	if (!kernel)
		return;
	free(kernel->features);
	free_texts(&kernel->rates);
	free(kernel->step.replicas);
	free(kernel->step.samples);
	free(kernel->step.ranks);
	free(kernel->step.dims);
	free_texts(&kernel->lists.names);
	free_texts(&kernel->lists.tables);
	free(kernel->lists.rows);
	free(kernel->lists.combiners);
	free(kernel);
}

int64_t *tf_read_numbers(struct tf_construction *made, const char *name, int32_t *count,
			 struct tf_status *status)
{
	int32_t size = 0, bytes = 0;
	int64_t *numbers;

	tf.get_attr_size(made, name, &size, &bytes, status);
	if (tf_failed(status))
		return NULL;
	if (size < 0 || size > MOST_FEATURES || (*count >= 0 && size != *count)) {
		tf_refuse(status, "the operator's lists have not one entry for each feature");
		return NULL;
	}
	numbers = calloc((size_t)size + 1, sizeof(*numbers));
	if (!numbers) {
		tf_report_no_memory(status);
		return NULL;
	}
	*count = size;
	tf.get_attr_ints(made, name, numbers, size, status);
	if (!tf_failed(status))
		return numbers;
	free(numbers);
	return NULL;
}

static int read_form(struct tf_feature *feature, int64_t index, int64_t form,
		     struct tf_status *status)
{
	feature->index = index < 0 || index > INT32_MAX ? -1 : (int)index;
	feature->form = (int)(form & FORM_MASK);
	feature->weighted = form & FORM_WEIGHTED;
	feature->sequence = form & FORM_SEQUENCE;
	feature->padded = form & FORM_PADDED;
	if (form < 0 || form > (FORM_MASK | FORM_WEIGHTED | FORM_SEQUENCE | FORM_PADDED) ||
	    feature->form >= FORM_COUNT)
		return tf_refuse(status, "there is no such form of an input");
	return 0;
}

int tf_refuse_padding(const struct tf_kernel *kernel, struct tf_status *status)
{
	for (size_t k = 0; k < kernel->count; k++)
		if (kernel->features[k].padded)
			return tf_refuse(status, "ids have no padding here");
	return 0;
}

int tf_check_positions(const struct tf_kernel *kernel, struct tf_status *status)
{
	for (size_t k = 0; k < kernel->count; k++) {
		const struct tf_feature *feature = &kernel->features[k];

		if (feature->form == FORM_DENSE && (feature->weighted || feature->padded))
			return tf_refuse(status, "ids that are samples of their own take neither "
						 "weights nor padding");
	}
	return 0;
}

/* There is a number for each feature, which counts where its form has the flag. */
static int read_paddings(struct tf_kernel *kernel, struct tf_construction *made,
			 struct tf_status *status)
{
	int32_t count = (int32_t)kernel->count;
	int64_t *paddings = tf_read_numbers(made, "paddings", &count, status);
	int ret = paddings ? 0 : -1;

	for (size_t k = 0; !ret && k < kernel->count; k++) {
		kernel->features[k].padding = paddings[k];
		if (kernel->features[k].padded && kernel->features[k].form == FORM_SPARSE)
			ret = tf_refuse(status, "a sparse tensor has no padding");
	}
	free(paddings);
	return ret;
}

int tf_measure_feature(struct tf_feature *feature, int64_t handle, struct tf_status *status)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);

	if (feature->sequence)
		return tf_refuse(status, "only steps know sequences by their form");
	if (raw_measure(handle, feature->index, &feature->dim, &feature->sequence_length, &error))
		return tf_report(status, &error);
	return 0;
}

/* Says which input of the operator is which: ids of all features, then bounds, then weights. */
static void number_inputs(struct tf_kernel *kernel)
{
	static const int bounds[FORM_COUNT] = {
		[FORM_SPLITS] = 1, [FORM_LENGTHS] = 1, [FORM_SPARSE] = 2};
	int at = (int)kernel->count, number = 0;

	for (size_t k = 0; k < kernel->count; k++) {
		kernel->features[k].bounds_at = at;
		at += bounds[kernel->features[k].form];
	}
	for (size_t k = 0; k < kernel->count; k++) {
		kernel->features[k].weights_at = at;
		kernel->features[k].weight_number = number;
		at += kernel->features[k].weighted;
		number += kernel->features[k].weighted;
	}
	kernel->gradients_at = at;
}

int tf_read_forms(struct tf_kernel *kernel, struct tf_construction *made, struct tf_status *status)
{
	int32_t count = -1;
	int64_t *indices = tf_read_numbers(made, "features", &count, status), *forms = NULL;
	int ret = indices ? 0 : -1;

	if (!ret)
		forms = tf_read_numbers(made, "forms", &count, status);
	if (forms)
		kernel->features = calloc((size_t)count + 1, sizeof(*kernel->features));
	if (forms && !kernel->features)
		tf_report_no_memory(status);
	kernel->count = (size_t)count;
	ret = kernel->features ? 0 : -1;
	for (size_t k = 0; !ret && k < kernel->count; k++)
		ret = read_form(&kernel->features[k], indices[k], forms[k], status);
	free(indices);
	free(forms);
	if (!ret)
		number_inputs(kernel);
	return ret;
}

int tf_read_indices(struct tf_kernel *kernel, struct tf_construction *made,
		    struct tf_status *status)
{
	int32_t count = -1;
	int64_t *indices = tf_read_numbers(made, "features", &count, status);

	if (!indices)
		return -1;
	kernel->features = calloc((size_t)count + 1, sizeof(*kernel->features));
	if (!kernel->features)
		tf_report_no_memory(status);
	else
		kernel->count = (size_t)count;
	for (size_t k = 0; k < kernel->count; k++) {
		bool known = indices[k] >= 0 && indices[k] <= INT32_MAX;

		kernel->features[k].index = known ? (int)indices[k] : -1;
	}
	free(indices);
	return kernel->features ? 0 : -1;
}

int tf_read_features(struct tf_kernel *kernel, struct tf_construction *made,
		     struct tf_status *status)
{
	int ret = tf_read_forms(kernel, made, status);

	ret = ret ? ret : tf_check_positions(kernel, status);
	ret = ret ? ret : read_paddings(kernel, made, status);
	for (size_t k = 0; !ret && k < kernel->count; k++)
		ret = tf_measure_feature(&kernel->features[k], kernel->handle, status);
	return ret;
}

/* TensorFlow gives texts without an end. */
static void copy_texts(struct tf_texts *to, char *const *texts, const size_t *lengths,
		       int32_t count)
{
	char *at = to->storage;

	for (int32_t k = 0; k < count; k++) {
		memcpy(at, texts[k], lengths[k]);
		to->items[k] = at;
		at += lengths[k] + 1;
	}
	to->count = (size_t)count;
}

int tf_read_texts(struct tf_construction *made, const char *name, struct tf_texts *to,
		  struct tf_status *status)
{
	int32_t count = 0, bytes = 0;
	char **texts, *storage;
	size_t *lengths;

	tf.get_attr_size(made, name, &count, &bytes, status);
	if (tf_failed(status) || count <= 0)
		return tf_failed(status) ? -1 : 0;
	texts = calloc((size_t)count, sizeof(*texts));
	lengths = calloc((size_t)count, sizeof(*lengths));
	storage = calloc(1, (size_t)bytes + 1);
	to->items = calloc((size_t)count, sizeof(*to->items));
	to->storage = calloc(1, (size_t)bytes + (size_t)count);
	if (!texts || !lengths || !storage || !to->storage || !to->items)
		tf_report_no_memory(status);
	else
		tf.get_attr_texts(made, name, texts, lengths, count, storage, (size_t)bytes,
				  status);
	if (!tf_failed(status))
		copy_texts(to, texts, lengths, count);
	free(texts);
	free(lengths);
	free(storage);
	return tf_failed(status) ? -1 : 0;
}

int tf_read_rates(struct tf_kernel *kernel, struct tf_construction *made, struct tf_status *status)
{
	return tf_read_texts(made, "rate_names", &kernel->rates, status);
}

int tf_read_replica(struct tf_kernel *kernel, struct tf_construction *made,
		    struct tf_status *status)
{
	int64_t replica = 0;

	tf.get_attr_int(made, "replica", &replica, status);
	if (tf_failed(status))
		return -1;
	if (replica < 0 || replica > UINT32_MAX)
		return tf_refuse(status, "there is no such replica");
	kernel->replica = (uint32_t)replica;
	return 0;
}

int tf_read_update(struct tf_kernel *kernel, struct tf_construction *made, struct tf_status *status)
{
	if (tf_read_features(kernel, made, status) || tf_read_replica(kernel, made, status))
		return -1;
	return tf_read_rates(kernel, made, status);
}

struct tf_kernel *tf_kernel_make(struct tf_construction *made, tf_reader read)
{
	struct tf_status *status = tf.new_status();
	struct tf_kernel *kernel = calloc(1, sizeof(*kernel));
	int ret = kernel ? 0 : tf_report_no_memory(status);

	if (!ret) {
		tf.get_attr_int(made, "handle", &kernel->handle, status);
		ret = tf_failed(status) ? -1 : read(kernel, made, status);
	}
	if (ret) {
		tf.fail_construction(made, status);
		tf_kernel_free(kernel);
		kernel = NULL;
	}
	tf.delete_status(status);
	return kernel;
}
