// SPDX-License-Identifier: MIT
/*
 * The engine does what place_is_elementwise() says of each optimizer and option: a table, and the same
 * table cut by columns, are trained side by side. Where it says yes, no bit differs. Where it says no,
 * some do; otherwise the cut would be refused for nothing.
 */
#include "hosts/place.h"
#include "test_model.h"

enum { ROWS = 24, DIM = 40, CUT = 16, SAMPLES = 32, BAG = 3, STEPS = 4 };

struct variant {
	const char *name; /* optimizer */
	float max_norm;
	enum embeng_non_finite non_finite;
	enum embeng_combiner_name combiner;
	bool off; /* accumulation */
	bool nan; /* a gradient of the last column is */
	bool quantized, decays, clips;
	bool elementwise;
};

static const struct variant variants[] = {
	{.name = "sgd", .elementwise = true},
	{.name = "adagrad", .elementwise = true},
	{.name = "adagrad_momentum", .elementwise = true},
	{.name = "ftrl", .elementwise = true},
	{.name = "adam", .elementwise = true},
	{.name = "adam_corrected", .elementwise = true},
	{.name = "momentum", .elementwise = true},
	{.name = "lion", .elementwise = true},
	{.name = "rms_prop", .elementwise = true},
	{.name = "centered_rms_prop", .elementwise = true},
	{.name = "adadelta", .elementwise = true},
	{.name = "proximal_adagrad", .elementwise = true},
	{.name = "assign", .elementwise = true},
	{.name = "laprop", .elementwise = true},
	{.name = "proximal_yogi", .elementwise = true},
	{.name = "bounded_adagrad", .elementwise = true},
	{.name = "online_yogi", .elementwise = true},
	{.name = "frequency_aware_adagrad", .elementwise = true},
	{.name = "mdl_adagrad_light", .elementwise = true},
	{.name = "rowwise_adagrad"},
	{.name = "partial_rowwise_adam"},
	{.name = "sgd", .max_norm = 0.5f},
	{.name = "adam", .non_finite = EMBENG_NON_FINITE_DROP, .nan = true},
	{.name = "adam", .non_finite = EMBENG_NON_FINITE_ALLOW, .nan = true, .elementwise = true},
	{.name = "adagrad", .combiner = EMBENG_MAX, .elementwise = true},
	{.name = "adagrad", .combiner = EMBENG_SUM, .off = true, .elementwise = true},
	{.name = "adam", .combiner = EMBENG_SQRTN, .quantized = true, .elementwise = true},
	{.name = "adagrad", .decays = true, .clips = true, .elementwise = true},
};

static float number(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return (float)(int32_t)(*state >> 8) / (float)(1 << 23) - 1.0f;
}

static struct embeng_optimizer optimizer_of(const struct variant *v)
{
	struct embeng_optimizer o = EMBENG_INIT(embeng_optimizer);

	if (!strcmp(v->name, "adam_corrected"))
		o = embeng_adam_corrected(0.1f);
	else
		ck_assert_int_eq(embeng_optimizer_by_name(v->name, 0.1f, &o), 0);
	o.max_norm = v->max_norm;
	if (v->off)
		o.use_gradient_accumulation = EMBENG_OFF;
	if (v->decays)
		o.weight_decay_factor = 0.01f;
	if (v->clips) {
		o.has_clip_min = o.has_clip_max = o.has_clip_weight_max = 1;
		o.clip_min = -0.3f;
		o.clip_max = 0.3f;
		o.clip_weight_max = 0.7f;
	}
	return o;
}

/* Tables of these columns, one feature each, with the rows that the whole table has there. */
static struct embeng *open_cut(const struct variant *v, const int64_t *dims, size_t count)
{
	struct embeng_model *m = embeng_model_new();
	struct embeng_error error = EMBENG_INIT(embeng_error);
	struct embeng *e = NULL;

	for (size_t t = 0; t < count; t++) {
		struct embeng_table_config c = table_config(NULL);
		struct embeng_feature_config f = feature_config(NULL);

		c.vocabulary_size = ROWS;
		c.dim = dims[t];
		c.combiner = v->combiner;
		c.optimizer = optimizer_of(v);
		if (v->quantized)
			c.quantization = (struct embeng_quantization){16, -1.0f, 1.0f};
		ck_assert_int_eq(embeng_model_add_table(m, &c), (int)t);
		f.table = (int)t;
		ck_assert_int_ge(embeng_model_add_feature(m, &f), 0);
	}
	ck_assert_int_eq(embeng_model_set_engine(m, &EMBENG_INIT(embeng_engine_config,
								 .non_finite = v->non_finite)),
			 0);
	ck_assert_int_eq(place_is_elementwise(m, 0, NULL), v->elementwise);
	ck_assert_msg(!embeng_open("soft:cores=1,memory=64M", m, &e, &error), "%s", error.text);
	embeng_model_free(m);
	return e;
}

static void write_start(struct embeng *e, const int64_t *dims, size_t count)
{
	static float rows[ROWS * DIM], part[ROWS * DIM];
	uint32_t state = 1;
	size_t first = 0;

	for (size_t i = 0; i < ROWS * DIM; i++)
		rows[i] = number(&state);
	for (size_t t = 0; t < count; t++) {
		for (size_t r = 0; r < ROWS; r++)
			memcpy(part + r * (size_t)dims[t], rows + r * DIM + first,
			       (size_t)dims[t] * sizeof(float));
		ck_assert_int_eq(embeng_rows_write(e, (int)t, NULL, NULL, ROWS, part), 0);
		first += (size_t)dims[t];
	}
}

static void enqueue_step(struct embeng *e, size_t count, uint32_t *state)
{
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, 0);
	int64_t ids[SAMPLES * BAG], lengths[SAMPLES];

	for (size_t i = 0; i < SAMPLES * BAG; i++)
		ids[i] = (int64_t)((number(state) + 1.0f) * 0.499f * ROWS);
	for (size_t s = 0; s < SAMPLES; s++)
		lengths[s] = BAG;
	for (size_t t = 0; t < count; t++)
		ck_assert_int_eq(embeng_batch_ragged(b, (int)t, EMBENG_I64, ids, SAMPLES * BAG,
						     lengths, SAMPLES, NULL, 0),
				 0);
	ck_assert_int_eq(embeng_enqueue(e, b, -1), 0);
	embeng_batch_free(b);
}

/* A gradient is made of the activation, so that they are compared too. */
static void apply_step(struct embeng *e, const struct variant *v, const int64_t *dims, size_t count)
{
	struct embeng_activations a = EMBENG_INIT(embeng_activations);
	static float gradients[2][SAMPLES * DIM];
	const float *features[2] = {gradients[0], gradients[1]};
	size_t first = 0;

	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
	for (size_t t = 0; t < count; t++) {
		const size_t dim = (size_t)dims[t];

		for (size_t s = 0; s < SAMPLES; s++) {
			for (size_t c = 0; c < dim; c++)
				gradients[t][s * dim + c] = 0.7f * a.features[t].data[s * dim + c] +
							    0.01f * (float)((first + c) * 7 % 11);
		}
		if (v->nan && first + dim == DIM)
			gradients[t][dim - 1] = 0.0f / 0.0f;
		first += dim;
	}
	ck_assert_int_eq(embeng_apply_gradients(e,
						&EMBENG_INIT(embeng_gradients, .count = count,
							     .features = features),
						-1),
			 0);
}

/* Numbers of the parameters or of a slot of dim columns, at their places in the whole table. */
static void read_cut(struct embeng *e, const char *slot, const int64_t *dims, size_t count,
		     float *out)
{
	static float part[ROWS * DIM];
	size_t first = 0;

	for (size_t t = 0; t < count; t++) {
		ck_assert_int_eq(embeng_rows_read(e, (int)t, slot, NULL, ROWS, part), 0);
		for (size_t r = 0; r < ROWS; r++)
			memcpy(out + r * DIM + first, part + r * (size_t)dims[t],
			       (size_t)dims[t] * sizeof(float));
		first += (size_t)dims[t];
	}
}

START_TEST(the_list_is_what_the_engine_does)
{
	static const int64_t whole[] = {DIM}, cut[] = {CUT, DIM - CUT};
	static float a[ROWS * DIM], b[ROWS * DIM];
	const struct variant *v = &variants[_i];
	struct embeng *one = open_cut(v, whole, 1), *two = open_cut(v, cut, 2);
	const struct embeng_model *m = embeng_get_model(one);
	bool differs = false;
	uint32_t state = 5, again = 5;

	write_start(one, whole, 1);
	write_start(two, cut, 2);
	for (int step = 0; step < STEPS; step++) {
		enqueue_step(one, 1, &state);
		enqueue_step(two, 2, &again);
		apply_step(one, v, whole, 1);
		apply_step(two, v, cut, 2);
	}
	for (size_t s = 0; s <= m->tables[0].slot_count; s++) {
		if (model_width(&m->tables[0], s) != DIM)
			continue;
		read_cut(one, model_slot_name(m, 0, s), whole, 1, a);
		read_cut(two, model_slot_name(m, 0, s), cut, 2, b);
		differs |= memcmp(a, b, sizeof(a)) != 0;
	}
	ck_assert_msg(differs == !v->elementwise, "variant %d, %s: the bits %s", _i, v->name,
		      differs ? "differ" : "are equal");
	embeng_close(one);
	embeng_close(two);
}
END_TEST

START_TEST(reasons)
{
	static const struct {
		struct variant v;
		const char *why;
	} cases[] = {
		{{.name = "rowwise_adagrad"}, "slot of one number a row"},
		{{.name = "partial_rowwise_adam"}, "slot of one number a row"},
		{{.name = "sgd", .max_norm = 1.0f}, "max_norm"},
		{{.name = "sgd", .non_finite = EMBENG_NON_FINITE_DROP}, "drops the update"},
	};
	const int64_t dim = DIM;
	const char *why;

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct embeng *e = open_cut(&cases[i].v, &dim, 1);

		ck_assert(!place_is_elementwise(embeng_get_model(e), 0, &why));
		ck_assert_msg(strstr(why, cases[i].why), "%s", why);
		embeng_close(e);
	}
}
END_TEST

/* A step may give max_norm, although the model's is 0; and no optimizer changes nothing at all. */
START_TEST(options_that_steps_give)
{
	const struct embeng_dynamic norm = {"max_norm", "norm"};
	struct embeng_model *m = embeng_model_new();
	struct embeng_table_config c = table_config("moved");
	const char *why;

	c.optimizer.dynamic = &norm;
	c.optimizer.dynamic_count = 1;
	ck_assert_int_eq(embeng_model_add_table(m, &c), 0);
	c = table_config("still");
	c.optimizer = (struct embeng_optimizer){0};
	ck_assert_int_eq(embeng_model_add_table(m, &c), 1);
	ck_assert_int_eq(
		embeng_model_set_engine(m, &EMBENG_INIT(embeng_engine_config,
							.non_finite = EMBENG_NON_FINITE_DROP)),
		0);
	ck_assert(!place_is_elementwise(m, 0, NULL));
	ck_assert(place_is_elementwise(m, 1, &why));
	ck_assert_ptr_null(why);
	embeng_model_free(m);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, the_list_is_what_the_engine_does, 0, COUNT(variants));
	tcase_add_test(tcase, reasons);
	tcase_add_test(tcase, options_that_steps_give);
}

int main(void)
{
	return suite_main("place_bits", add_tests);
}
