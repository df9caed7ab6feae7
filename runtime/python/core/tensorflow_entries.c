// SPDX-License-Identifier: MIT
/*
 * The kernels of TensorFlow's operators for lists of entries, which TPUEmbeddingV2 has: they list the
 * entries of features by table, look lists up, and update tables by them. They are a file of their own
 * because their inputs are lists, where those of lookups and updates are features (tensorflow_kernels.c).
 *
 * They run on TensorFlow's threads, without Python; entries.c has the arithmetic. A kernel holds nothing
 * between its runs, and one may run on several threads at once. There are no locks here.
 */
#include <errno.h>
#include <stdlib.h>

#include "entries.h"
#include "tensorflow.h"

/* -- settings -------------------------------------------------------------------------- */

/* Samples have numbers of 32 bits. */
static int check_samples(const struct tf_kernel *kernel, struct tf_status *status)
{
	int64_t all = 0;

	for (size_t k = 0; k < kernel->count; k++) {
		int64_t samples = kernel->step.samples[k];

		if (samples < 0 || samples > INT32_MAX - all)
			return tf_refuse(status, "there are too many samples, or fewer than none");
		all += samples;
	}
	return 0;
}

static int read_samples(struct tf_kernel *kernel, struct tf_construction *made,
			struct tf_status *status)
{
	int32_t count = (int32_t)kernel->count;

	kernel->step.samples = tf_read_numbers(made, "sample_counts", &count, status);
	if (!kernel->step.samples || tf_read_texts(made, "names", &kernel->lists.names, status))
		return -1;
	if (kernel->lists.names.count != kernel->count)
		return tf_refuse(status, "there is not one name for each input");
	return check_samples(kernel, status);
}

/* Features stand in the order of their tables, each of which has one. */
static int check_tables(const struct tf_kernel *kernel, struct tf_status *status)
{
	const struct tf_lists *lists = &kernel->lists;
	int last = -1;

	for (size_t k = 0; k < kernel->count; k++) {
		int table = kernel->features[k].index;

		if (kernel->features[k].form == FORM_EVEN ||
		    kernel->features[k].form == FORM_LENGTHS || kernel->features[k].sequence)
			return tf_refuse(status, "no list is made of this form of an input");
		if (table < last || table > last + 1)
			return tf_refuse(status, "features are not in the order of their tables");
		last = table;
	}
	if ((size_t)last + 1 != lists->tables.count)
		return tf_refuse(status, "a table has no name or no feature");
	for (size_t k = 0; k < lists->tables.count; k++)
		if (lists->rows[k] < 1 || lists->rows[k] > (int64_t)INT32_MAX + 1 ||
		    lists->combiners[k] < EMBENG_MEAN || lists->combiners[k] > EMBENG_SQRTN)
			return tf_refuse(status, "a table has too many rows, or no combiner");
	return 0;
}

static int read_list_entries(struct tf_kernel *kernel, struct tf_construction *made,
			     struct tf_status *status)
{
	struct tf_lists *lists = &kernel->lists;
	int64_t outputs = 0;
	int32_t count;

	if (tf_read_forms(kernel, made, status) || read_samples(kernel, made, status) ||
	    tf_read_texts(made, "table_names", &lists->tables, status))
		return -1;
	count = (int32_t)lists->tables.count;
	lists->rows = tf_read_numbers(made, "rows", &count, status);
	if (lists->rows)
		lists->combiners = tf_read_numbers(made, "combiners", &count, status);
	if (!lists->combiners)
		return -1;
	tf.get_attr_int(made, "N", &outputs, status);
	if (tf_failed(status))
		return -1;
	if (outputs != count)
		return tf_refuse(status, "there is not one list for each table");
	return check_tables(kernel, status) || tf_refuse_padding(kernel, status) ? -1 : 0;
}

/* A list stands for each feature of the engine; there are three inputs for each, and no forms. */
static int read_lookup_entries(struct tf_kernel *kernel, struct tf_construction *made,
			       struct tf_status *status)
{
	if (tf_read_indices(kernel, made, status) || read_samples(kernel, made, status))
		return -1;
	kernel->gradients_at = 3 * (int)kernel->count;
	for (size_t k = 0; k < kernel->count; k++)
		if (tf_measure_feature(&kernel->features[k], kernel->handle, status))
			return -1;
	return 0;
}

static int read_update_entries(struct tf_kernel *kernel, struct tf_construction *made,
			       struct tf_status *status)
{
	if (read_lookup_entries(kernel, made, status) || tf_read_replica(kernel, made, status))
		return -1;
	return tf_read_rates(kernel, made, status);
}

void *tf_make_list_entries(struct tf_construction *made)
{
	return tf_kernel_make(made, read_list_entries);
}

void *tf_make_lookup_entries(struct tf_construction *made)
{
	return tf_kernel_make(made, read_lookup_entries);
}

void *tf_make_update_entries(struct tf_construction *made)
{
	return tf_kernel_make(made, read_update_entries);
}

/* -- lists of features ------------------------------------------------------------------- */

/* Outputs are those of all tables, one kind after another. */
static int place_list(struct tf_run *run, size_t table, const struct entry *entries, size_t count)
{
	int at = (int)table, tables = (int)run->kernel->lists.tables.count;
	int64_t one = 1, length = (int64_t)count;
	int32_t *end = tf_place_numbers(run, at, TF_TYPE_INT32, &one, 1, 1);
	int32_t *samples = NULL, *ids = NULL;
	float *gains = NULL;

	if (end)
		samples = tf_place_numbers(run, at + tables, TF_TYPE_INT32, &length, 1, count);
	if (!tf_failed(run->status))
		ids = tf_place_numbers(run, at + 2 * tables, TF_TYPE_INT32, &length, 1, count);
	if (!tf_failed(run->status))
		gains = tf_place_output(run, at + 3 * tables, &length, 1, count);
	if (tf_failed(run->status))
		return -1;
	*end = (int32_t)count;
	for (size_t k = 0; k < count; k++) {
		samples[k] = entry_sample(&entries[k]);
		ids[k] = entry_id(&entries[k]);
		gains[k] = entries[k].gain;
	}
	return 0;
}

/* TensorFlow's shape of the indices is no part of the input that the engine reads. */
static int check_index_count(const struct tf_run *run, size_t at, struct embeng_error *error)
{
	const struct tf_feature *feature = &run->kernel->features[at];
	int64_t indices, ids = (int64_t)run->features[at].bags.id_count;

	if (feature->form != FORM_SPARSE)
		return 0;
	indices = tf.dim(run->inputs[feature->bounds_at], 0);
	if (indices == ids)
		return 0;
	return open_error_set(
		error, -EINVAL, "feature %s: its sparse tensor has %lld indices for %lld ids",
		run->kernel->lists.names.items[at], (long long)indices, (long long)ids);
}

static int list_feature(const struct tf_run *run, size_t at, int64_t first, struct entry *to)
{
	const struct tf_kernel *kernel = run->kernel;
	const struct tf_lists *lists = &kernel->lists;
	struct embeng_error error = EMBENG_INIT(embeng_error);
	int table = kernel->features[at].index;
	struct entry_feature feature = {
		.input = &run->features[at],
		.name = lists->names.items[at],
		.table = lists->tables.items[table],
		.rows = lists->rows[table],
		.samples = kernel->step.samples[at],
		.first = first,
		.combiner = (enum embeng_combiner_name)lists->combiners[table],
		.weighted = kernel->features[at].weighted,
	};

	if (check_index_count(run, at, &error) || entries_list(&feature, to, &error))
		return tf_report_step(run->status, &error);
	return 0;
}

/* Lists the features of a table, the first of which is @from. Return: the one behind them, or -1. */
static int64_t list_table(struct tf_run *run, size_t table, size_t from)
{
	const struct tf_kernel *kernel = run->kernel;
	size_t end = from, room = 0, count = 0;
	struct entry *entries, *spare;
	int64_t first = 0;
	int ret;

	for (; end < kernel->count && (size_t)kernel->features[end].index == table; end++)
		room += run->features[end].bags.id_count;
	entries = malloc((room + 1) * sizeof(*entries));
	spare = malloc((room + 1) * sizeof(*spare));
	ret = entries && spare ? 0 : tf_report_no_memory(run->status);
	if (!ret && room > INT32_MAX)
		ret = tf_refuse(run->status, "a table has more than 2^31 entries");
	for (size_t k = from; !ret && k < end; k++) {
		ret = list_feature(run, k, first, entries + count);
		first += kernel->step.samples[k];
		count += run->features[k].bags.id_count;
	}
	if (!ret) {
		struct entry *joined = entries_join(entries, spare, &count);

		ret = place_list(run, table, joined, count);
	}
	free(entries);
	free(spare);
	return ret ? -1 : (int64_t)end;
}

void tf_compute_list_entries(void *made, struct tf_context *context)
{
	struct tf_run run = {.kernel = made, .context = context, .status = tf.new_status()};
	size_t tables = run.kernel->lists.tables.count;
	int64_t from = 0;

	if (!tf_take_forms(&run, 1, 0, 4 * tables))
		for (size_t k = 0; from >= 0 && k < tables; k++)
			from = list_table(&run, k, (size_t)from);
	tf_run_end(&run);
}

/* -- lookups and updates by lists ---------------------------------------------------------- */

/* Takes the list of a table and makes bags of it. Lists are samples, ids and gains of all tables. */
static int take_entry_list(struct tf_run *run, size_t at, struct entry_bags *bags)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);
	const struct tf_kernel *kernel = run->kernel;
	const struct tf_tensor *samples = run->inputs[at];
	const struct tf_tensor *ids = run->inputs[at + kernel->count];
	const struct tf_tensor *gains = run->inputs[at + 2 * kernel->count];
	struct entry_list list = {
		.table = kernel->lists.names.items[at],
		.samples = tf.tensor_data(samples),
		.ids = tf.tensor_data(ids),
		.gains = tf.tensor_data(gains),
		.count = (size_t)tf.element_count(ids),
		.sample_count = kernel->step.samples[at],
	};
	long long given[] = {tf.element_count(samples), tf.element_count(ids),
			     tf.element_count(gains)};

	run->features[at].feature = kernel->features[at].index;
	if (given[0] != given[1] || given[2] != given[1])
		open_error_set(
			&error, -EINVAL,
			"table %s: there are %lld samples, %lld ids and %lld gains of entries; "
			"give what preprocess_features() returned",
			list.table, given[0], given[1], given[2]);
	else
		entries_bag(&list, bags, &run->features[at].bags, &error);
	return error.code ? tf_report_step(run->status, &error) : 0;
}

/* Takes the inputs of all lists, behind which are @given and the token. Return: bags, or NULL. */
static struct entry_bags *take_entry_lists(struct tf_run *run, size_t given, size_t outputs)
{
	size_t count = run->kernel->count, inputs = 3 * count + given;
	struct entry_bags *bags = NULL;

	if (tf.num_inputs(run->context) != (int)inputs + 1)
		tf_refuse(run->status, "the operator's inputs are not those of its attributes");
	else if (!tf_run_begin(run, (int)inputs, (int)outputs))
		bags = calloc(count + 1, sizeof(*bags));
	if (!bags && !tf_failed(run->status))
		tf_report_no_memory(run->status);
	for (size_t k = 0; bags && !tf_failed(run->status) && k < count; k++)
		take_entry_list(run, k, &bags[k]);
	return bags;
}

static void put_entry_lists(const struct tf_run *run, struct entry_bags *bags)
{
	for (size_t k = 0; bags && k < run->kernel->count; k++)
		entry_bags_put(&bags[k]);
	free(bags);
}

static int place_rows(struct tf_run *run, size_t at)
{
	int64_t shape[] = {run->kernel->step.samples[at], run->kernel->features[at].dim};
	size_t elements = (size_t)shape[0] * (size_t)shape[1];
	float *data = tf_place_output(run, (int)at, shape, 2, elements);

	if (tf_failed(run->status))
		return -1;
	run->features[at].output.data = elements ? data : NULL;
	run->features[at].output.elements = elements;
	return 0;
}

void tf_compute_lookup_entries(void *made, struct tf_context *context)
{
	struct tf_run run = {.kernel = made, .context = context, .status = tf.new_status()};
	struct embeng_error error = EMBENG_INIT(embeng_error);
	size_t count = run.kernel->count;
	struct entry_bags *bags = take_entry_lists(&run, 0, count);

	for (size_t k = 0; !tf_failed(run.status) && k < count; k++)
		place_rows(&run, k);
	if (!tf_failed(run.status) && raw_lookup(run.kernel->handle, run.features, count, &error))
		tf_report_step(run.status, &error);
	put_entry_lists(&run, bags);
	tf_run_end(&run);
}

void tf_compute_update_entries(void *made, struct tf_context *context)
{
	struct tf_run run = {.kernel = made, .context = context, .status = tf.new_status()};
	struct embeng_error error = EMBENG_INIT(embeng_error);
	size_t count = run.kernel->count, rate_count = run.kernel->rates.count;
	struct embeng_rate *rates = calloc(rate_count + 1, sizeof(*rates));
	struct raw_step step = {
		.replica = run.kernel->replica, .rates = rates, .rate_count = rate_count};
	struct entry_bags *bags = NULL;

	if (!rates)
		tf_report_no_memory(run.status);
	else
		bags = take_entry_lists(&run, count + rate_count, 0);
	if (!tf_failed(run.status)) {
		tf_take_gradients(&run);
		tf_take_rates(&run, run.kernel->gradients_at + (int)count, rates);
	}
	if (!tf_failed(run.status) &&
	    raw_update(run.kernel->handle, run.features, count, &step, &error))
		tf_report_step(run.status, &error);
	put_entry_lists(&run, bags);
	tf_run_end(&run);
	free(rates);
}
