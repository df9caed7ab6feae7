// SPDX-License-Identifier: MIT
/*
 * Commands of millions of ids work in pieces. The device beats and yields after a bounded number of
 * row operations of its one core, in each stage of each command; a command that is told to
 * stop does so after one piece; and a bag that comes in parts has the bits of one that does not.
 */
#include "suite.h"
#include "direct_model.h"
#include "pcsr_help.h"

#define IDS (1u << 21)
#define DIM 3u
#define ROWS 50000u

static struct {
	u64 rows, most_rows; /* that kernels had since the last piece, and at most */
	u64 pieces;
	struct command *stops; /* ends its context in the piece @stop_at */
	u64 stop_at;
} seen;

static const struct kernel_ops *real;

void __real_port_yield(void);
void __wrap_port_yield(void);

static void end_gap(void)
{
	if (seen.rows > seen.most_rows)
		seen.most_rows = seen.rows;
	seen.rows = 0;
}

void __wrap_port_yield(void)
{
	end_gap();
	seen.pieces++;
	if (seen.stops && seen.pieces >= seen.stop_at)
		seen.stops->context->dying = true;
	__real_port_yield();
}

static void begin(struct command *stops, u64 stop_at)
{
	memset(&seen, 0, sizeof(seen));
	seen.stops = stops;
	seen.stop_at = stop_at;
}

static bool count_lookup(const struct kernel_bag_work *w, u64 first, u64 last)
{
	seen.rows += last - first + w->bag[last] - w->bag[first];
	return real->lookup(w, first, last);
}

static void count_scales(const struct kernel_scale_work *w, u64 first, u64 last)
{
	seen.rows += last - first + w->bag[last] - w->bag[first];
	real->scales(w, first, last);
}

static bool count_update(const struct kernel_update *u, const struct kernel_group *groups, u64 n,
			 u64 ahead, const u32 *occ, void *scratch)
{
	for (u64 i = 0; i < n; i++)
		seen.rows += groups[i].count;
	return real->update_rows(u, groups, n, ahead, occ, scratch);
}

static void count_run(const struct kernel_update *u, float *sum, const u32 *occ, u64 n,
		      void *scratch)
{
	seen.rows += n;
	real->run_gradient(u, sum, occ, n, scratch);
}

static void count_merge(struct kernel_merge *m, u64 first, u64 last)
{
	seen.rows += last - first;
	real->merge(m, first, last);
}

static bool count_ids(u32 *to, const void *from, u64 count, u32 width, u64 limit, bool stream)
{
	seen.rows += count;
	return real->take_ids(to, from, count, width, limit, stream);
}

static bool count_finite(const float *from, u64 count)
{
	seen.rows += count;
	return real->all_finite(from, count);
}

static struct kernel_ops counting;

static struct direct *open_counted(const struct small_model *m)
{
	struct direct *d = small_open(m, 1);

	real = d->engine.kernels;
	counting = *real;
	counting.lookup = count_lookup;
	counting.scales = count_scales;
	counting.update_rows = count_update;
	counting.run_gradient = count_run;
	counting.merge = count_merge;
	counting.take_ids = count_ids;
	counting.all_finite = count_finite;
	d->engine.kernels = &counting;
	return d;
}

/*
 * @least: pieces of all stages of the command. Their number does not depend on the machine: it falls
 * when a stage has lost its pieces.
 */
static void expect_pieces(const char *what, u64 least)
{
	end_gap();
	ck_assert_msg(seen.pieces >= least, "%s: %llu pieces, and not %llu", what, seen.pieces,
		      least);
	ck_assert_msg(seen.most_rows <= PIECE_ROWS, "%s: %llu rows without a piece", what,
		      seen.most_rows);
}

/* One feature of these bags; @weights: of small whole numbers. */
static struct small_lookup bags(struct direct *d, struct queue *q, const u64 *offsets, u64 samples,
				u64 step, bool weights)
{
	u64 ids = offsets[samples];
	struct small_lookup l = {.command = direct_command(q, EMBENG_OP_LOOKUP)};
	float *w;
	u32 *id;

	l.command->cmd.step = step;
	l.header = direct_memory(d, sizeof(*l.header) + sizeof(*l.feature), &l.command->cmd.desc);
	l.feature = (struct embeng_lookup_feature *)(l.header + 1);
	*l.header = (struct embeng_lookup){.feature_count = 1,
					   .feature_stride = sizeof(*l.feature),
					   .model_hash = d->context.model->blob.hash};
	*l.feature = (struct embeng_lookup_feature){
		.id_width = 4, .offset_width = 8, .sample_count = samples, .id_count = ids};
	memcpy(direct_memory(d, (samples + 1) * 8, &l.feature->offsets), offsets,
	       (samples + 1) * 8);
	id = direct_memory(d, ids * 4, &l.feature->ids);
	for (u64 k = 0; k < ids; k++)
		id[k] = (u32)(k * 2654435761u >> 7) % ROWS;
	w = weights ? direct_memory(d, ids * 4, &l.feature->weights) : NULL;
	for (u64 k = 0; weights && k < ids; k++)
		w[k] = (float)(k % 5) + 0.1f;
	l.out = direct_memory(d, samples * d->context.model->tables[0].record.dim * 4,
			      &l.feature->activations);
	return l;
}

static void fill_table(struct direct *d)
{
	const struct table *table = &d->context.model->tables[0];
	float *row = (float *)table->data;

	for (u64 i = 0; i < table->record.rows * table->record.dim; i++)
		row[i] = (float)(i % 1000) / 7.0f - 50.0f;
}

static struct small_model mean_model(u32 dim)
{
	struct small_model m = small_model(ROWS, dim);

	m.table.combiner = EMBENG_COMBINER_MEAN;
	return m;
}

/* Sums a bag by one call of the kernels, all at once. */
static void whole_bag(const struct direct *d, const struct small_lookup *l, float *out)
{
	u64 bag[2] = {0, l->feature->id_count};
	u64 *rows = malloc(bag[1] * sizeof(*rows));
	float scale, *weights = malloc(bag[1] * sizeof(*weights));
	struct kernel_scale_work scales = {
		.combiner = KERNEL_MEAN, .weights = weights, .bag = bag, .scales = &scale};
	struct kernel_bag_work work = {.table = (const float *)d->context.model->tables[0].data,
				       .stride = DIM,
				       .dim = DIM,
				       .rows = rows,
				       .rows_count = bag[1],
				       .weights = weights,
				       .scales = &scale,
				       .bag = bag,
				       .out = out,
				       .out_stride = DIM};

	for (u64 k = 0; k < bag[1]; k++)
		rows[k] = ((u32 *)(d->arena + l->feature->ids.offset))[k];
	memcpy(weights, d->arena + l->feature->weights.offset, bag[1] * sizeof(*weights));
	real->scales(&scales, 0, 1);
	real->lookup(&work, 0, 1);
	free(rows);
	free(weights);
}

START_TEST(one_long_bag)
{
	const u64 offsets[] = {0, IDS};
	struct small_model m = mean_model(DIM);
	struct direct *d = open_counted(&m);
	struct small_lookup l = bags(d, &d->inference, offsets, 1, 0, true);
	float whole[DIM];

	fill_table(d);
	begin(NULL, 0);
	ck_assert_uint_eq(direct_do(d, l.command), 0);
	expect_pieces("bag", 2089);
	whole_bag(d, &l, whole);
	ck_assert_mem_eq(l.out, whole, sizeof(whole));
	direct_free(d);
}
END_TEST

/* Lengths on both sides of a call's and of a piece's limit, empty bags between them. */
START_TEST(bags_at_the_limits)
{
	const u64 most = chunk_rows(DIM);
	const u64 lengths[] = {most, 0, most + 1, most - 1, 2 * most, 1, 2 * most + 1, 0};
	struct small_model m = mean_model(DIM);
	struct direct *d = open_counted(&m);
	u64 offsets[9] = {0};
	struct small_lookup l;

	for (u32 i = 0; i < 8; i++)
		offsets[i + 1] = offsets[i] + lengths[i];
	l = bags(d, &d->inference, offsets, 8, 0, true);
	fill_table(d);
	ck_assert_uint_eq(direct_do(d, l.command), 0);
	for (u32 i = 0; i < 8; i++) {
		struct embeng_lookup_feature one = *l.feature;
		struct small_lookup alone = {.feature = &one};
		float whole[DIM];

		one.id_count = lengths[i];
		one.ids.offset += 4 * offsets[i];
		one.weights.offset += 4 * offsets[i];
		whole_bag(d, &alone, whole);
		ck_assert_mem_eq(l.out + i * DIM, whole, sizeof(whole));
	}
	direct_free(d);
}
END_TEST

/* @hot: all occurrences are of one row */
static struct command *training_step(struct direct *d, bool hot)
{
	u64 *offsets = malloc((IDS + 1) * sizeof(*offsets));
	struct small_lookup l;

	for (u64 i = 0; i <= IDS; i++)
		offsets[i] = i;
	l = bags(d, &d->input[0], offsets, IDS, 1, false);
	free(offsets);
	if (hot)
		memset(d->arena + l.feature->ids.offset, 0, IDS * 4);
	begin(NULL, 0);
	ck_assert_uint_eq(direct_do(d, l.command), 0);
	expect_pieces("training lookup", 1087);
	return small_update(d, 0, 1, IDS, 0.5f);
}

START_TEST(a_long_update)
{
	struct small_model m = small_model(ROWS, 1);
	struct direct *d;
	struct command *update;

	if (_i & 2)
		m.table.flags &= ~EMBENG_TABLE_ACCUMULATE;
	d = open_counted(&m);
	update = training_step(d, _i & 1);
	begin(NULL, 0);
	ck_assert_uint_eq(direct_do(d, update), 0);
	expect_pieces("update", 680);
	ck_assert_uint_eq(d->context.model->applied, 1);
	direct_free(d);
}
END_TEST

static struct command *partition(struct direct *d, u64 count, bool minibatches)
{
	struct command *command = direct_command(&d->transfer, EMBENG_OP_PARTITION);
	struct grid g = grid_new(d, 1, 1, 1, count + 64);
	u32 *ids = (u32 *)grid_dense(&g, 0, count);

	g.head->columns = g.features[0].rows = 1u << 20;
	if (minibatches) {
		g.head->flags = EMBENG_PARTITION_MINIBATCHING;
		g.head->max_ids = (u32)count / 2;
	}
	for (u64 k = 0; k < count; k++)
		ids[k] = (u32)(k * 2654435761u >> 3) % (1u << 20);
	command->cmd.desc = g.desc;
	return command;
}

START_TEST(a_long_partition)
{
	struct small_model m = small_model(ROWS, 1);
	struct direct *d = open_counted(&m);

	for (u32 i = 0; i < 2; i++) {
		struct command *command = partition(d, IDS, _i);

		begin(NULL, 0);
		ck_assert_uint_eq(direct_do(d, command), 0);
		d->used = 0;
	}
	expect_pieces("partition", _i ? 1440 : 1205);
	direct_free(d);
}
END_TEST

START_TEST(long_rows)
{
	struct small_model m = small_model(IDS, 1);
	struct direct *d = open_counted(&m);
	struct command *command;
	struct embeng_rows *rows;
	u64 *ids;

	for (u32 i = 0; i < 3; i++) {
		static const u16 opcodes[] = {EMBENG_OP_ROWS_WRITE, EMBENG_OP_ROWS_READ,
					      EMBENG_OP_ROWS_WRITE};

		command = direct_command(&d->transfer, opcodes[i]);
		rows = direct_memory(d, sizeof(*rows), &command->cmd.desc);
		rows->count = IDS;
		ids = direct_memory(d, IDS * 8, &rows->ids);
		for (u64 k = 0; k < IDS; k++)
			ids[k] = (k * 7919) % IDS;
		direct_memory(d, IDS * 4, &rows->data);
		begin(NULL, 0);
		ck_assert_uint_eq(direct_do(d, command), 0);
		d->used = 0;
	}
	expect_pieces("rows", 592);
	direct_free(d);
}
END_TEST

/* A number that is drawn takes as long as many that are copied: 2^14 of them are a piece. */
START_TEST(random_rows)
{
	struct small_model m = small_model(1u << 14, 64);
	struct direct *d = open_counted(&m);

	for (u32 kind = 0; kind < 3; kind++) {
		static const struct {
			u32 fill;
			u64 least;
		} kinds[] = {{EMBENG_FILL_CONSTANT, 4},
			     {EMBENG_FILL_UNIFORM, 64},
			     {EMBENG_FILL_TRUNCATED_NORMAL, 64}};
		struct command *command = direct_command(&d->transfer, EMBENG_OP_ROWS_FILL);
		struct embeng_rows *rows = direct_memory(d, sizeof(*rows), &command->cmd.desc);

		rows->fill = kinds[kind].fill;
		rows->count = 1u << 14;
		rows->b = 0x3f800000; /* 1 */
		begin(NULL, 0);
		ck_assert_uint_eq(direct_do(d, command), 0);
		expect_pieces("fill", kinds[kind].least);
	}
	direct_free(d);
}
END_TEST

/* Whichever piece it is, the command ends there and the context can be freed. */
static void stop_everywhere(struct direct *d, struct command *(*make)(struct direct *d))
{
	u64 last = 0;

	for (u64 at = 1; !last; at += 1 + at / 8) {
		struct command *command = make(d);
		u16 status;

		begin(command, at);
		status = direct_do(d, command);
		last = d->context.dying ? 0 : seen.pieces;
		ck_assert_uint_eq(status, last ? 0 : EMBENG_STATUS_ABORTED);
		ck_assert_uint_le(seen.pieces, last ? at : at + 8);
		d->context.dying = false;
		d->used = 0;
		begin(NULL, 0);
	}
	ck_assert_uint_gt(last, 8);
}

static struct command *some_bag(struct direct *d)
{
	const u64 offsets[] = {0, 200000, 200000, 300000};

	return bags(d, &d->inference, offsets, 3, 0, true).command;
}

static struct command *some_partition(struct direct *d)
{
	return partition(d, 300000, false);
}

static struct command *some_minibatches(struct direct *d)
{
	return partition(d, 300000, true);
}

START_TEST(a_command_stops_at_any_piece)
{
	static struct command *(*const make[])(struct direct *d) = {some_bag, some_partition,
								    some_minibatches};
	struct small_model m = mean_model(DIM);
	struct direct *d = small_open(&m, 1);

	stop_everywhere(d, make[_i]);
	direct_free(d);
}
END_TEST

/* A context that ends in the middle of its update: nothing is used that is not whole. */
START_TEST(an_update_stops_with_its_context)
{
	bool done = false;

	for (u64 at = 1; !done; at += 1 + at / 4) {
		struct small_model m = small_model(ROWS, 1);
		struct direct *d = small_open(&m, (u32)_i);
		s64 *ids = malloc(300000 * sizeof(*ids));
		struct command *update;

		for (u64 k = 0; k < 300000; k++)
			ids[k] = (s64)(k * 2654435761u % 70000) % ROWS;
		ck_assert_uint_eq(
			direct_do(d, small_lookup(d, &d->input[0], 1, ids, 300000).command), 0);
		update = small_update(d, 0, 1, 300000, 0.5f);
		begin(update, at);
		done = !direct_do(d, update);
		ck_assert_uint_eq(d->context.model->applied, done);
		begin(NULL, 0);
		direct_free(d);
		free(ids);
	}
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, one_long_bag);
	tcase_add_test(t, bags_at_the_limits);
	tcase_add_loop_test(t, a_long_update, 0, 4);
	tcase_add_loop_test(t, a_long_partition, 0, 2);
	tcase_add_test(t, long_rows);
	tcase_add_test(t, random_rows);
	tcase_add_loop_test(t, a_command_stops_at_any_piece, 0, 3);
	tcase_add_loop_test(t, an_update_stops_with_its_context, 1, 3);
}

int main(void)
{
	return suite_main("pieces", add);
}
