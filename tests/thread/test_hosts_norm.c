// SPDX-License-Identifier: MIT
/*
 * embeng_gradient_norm() and embeng_weight_gradients() on a handle over all hosts: the bits of one process, for
 * 2, 3, 4 and 8 hosts, of which some feed no replica.
 */
#include "hosts_help.h"
#include "suite.h"

#define DEADLINE (20 * 1000 * GROUP_MS)
#define REPLICAS 4
#define IDS (RUN_SAMPLES * RUN_BAG)

/* A feature of a sequence has 3 rows a sample; gradients have so many floats at most. */
#define FLOATS (RUN_SAMPLES * 96)

/**
 * struct found - results of calls
 * @weights: gradients of weights by replica and feature
 */
struct found {
	struct embeng_gradient_norms norms;
	double tables[RUN_TABLES];
	float weights[REPLICAS][RUN_FEATURES][IDS];
};

static struct found expected, of_hosts[RUN_HOSTS_MOST];
static int infinite; /* replica 2 has a gradient that is not finite */

/* A batch of a replica with its gradients; @given[3] is NULL. */
struct part {
	struct run_bags bags[RUN_FEATURES];
	float room[RUN_FEATURES][FLOATS];
	const float *given[RUN_FEATURES];
	struct embeng_gradients g;
	struct embeng_batch *b;
};

static struct part *make_part(struct run *run, struct embeng *e, uint32_t replica)
{
	struct part *p = calloc(1, sizeof(*p));

	p->b = embeng_batch_new(e, EMBENG_TRAIN, replica);
	for (int f = 0; f < RUN_FEATURES; f++) {
		run_input(run, p->b, 1, replica, f, &p->bags[f]);
		for (size_t i = 0; i < FLOATS; i++)
			p->room[f][i] = (float)(run_mix(i * 7 + replica + (uint64_t)f) % 97) / 97 -
					0.3f;
		p->given[f] = f == 3 ? NULL : p->room[f];
	}
	if (infinite && replica == 2)
		p->room[5][4] = INFINITY;
	p->g = EMBENG_INIT(embeng_gradients, .replica = replica, .count = RUN_FEATURES,
			   .features = p->given);
	return p;
}

static void free_part(struct part *p)
{
	embeng_batch_free(p->b);
	free(p);
}

static int find_norms(struct run *run, struct embeng *e, struct found *out)
{
	struct embeng_device_info info = EMBENG_INIT(embeng_device_info);
	struct embeng_batch *batches[REPLICAS];
	const struct embeng_gradients *gradients[REPLICAS];
	struct part *parts[REPLICAS];
	int ret;

	ck_assert_int_eq(embeng_info(e, &info), 0);
	for (uint32_t i = 0; i < info.replica_count; i++) {
		parts[i] = make_part(run, e, info.first_replica + i);
		batches[i] = parts[i]->b;
		gradients[i] = &parts[i]->g;
	}
	out->norms = EMBENG_INIT(embeng_gradient_norms, .tables = out->tables,
				 .table_count = RUN_TABLES);
	ret = embeng_gradient_norm(e, batches, gradients, info.replica_count, &out->norms);
	for (uint32_t i = 0; i < info.replica_count; i++)
		free_part(parts[i]);
	return ret;
}

/* As many calls on each host; one that has no replica left asks for nothing. */
static int find_weights(struct run *run, struct embeng *e, uint32_t calls, struct found *out)
{
	struct embeng_device_info info = EMBENG_INIT(embeng_device_info);
	int ret = embeng_info(e, &info);

	for (uint32_t i = 0; !ret && i < calls; i++) {
		const uint32_t r = info.first_replica + i;
		float *weights[RUN_FEATURES] = {0};
		size_t counts[RUN_FEATURES] = {0};
		struct embeng_batch *none = embeng_batch_new(e, EMBENG_INFERENCE, 0);
		const float *nothing[RUN_FEATURES] = {0};
		struct embeng_gradients g = EMBENG_INIT(embeng_gradients, .count = RUN_FEATURES,
							.features = nothing);
		struct part *p = i < info.replica_count ? make_part(run, e, r) : NULL;

		for (int f = 0; !p && f < RUN_FEATURES; f++)
			ck_assert_int_eq(embeng_batch_dense(none, f, EMBENG_I32, NULL, 0,
							    (const int64_t[]){0}, 1),
					 0);
		for (int f = 0; p && f < RUN_FEATURES; f++) {
			if (f == RUN_DENSE || f == RUN_SEQUENCE)
				continue;
			weights[f] = out->weights[r][f];
			counts[f] = p->b->inputs[f].id_count;
		}
		ret = embeng_weight_gradients(e, p ? p->b : none, p ? &p->g : &g, weights, counts,
					      RUN_FEATURES);
		if (p)
			free_part(p);
		embeng_batch_free(none);
	}
	return ret;
}

static uint32_t calls_of(uint32_t hosts)
{
	return (REPLICAS + hosts - 1) / hosts;
}

static void find_norms_of_host(struct run_host *h)
{
	run_note(h, find_norms(h->run, h->e, &of_hosts[h->rank]));
}

/* Steps before and after, so that calls stand among them. */
static void find_weights_of_host(struct run_host *h)
{
	const uint32_t calls = calls_of(embeng_group_ranks(h->group));

	if (run_note(h, run_train(h->run, h->e, 1)))
		return;
	run_note(h, find_weights(h->run, h->e, calls, &of_hosts[0]));
}

static struct embeng *open_alone(const struct run *run)
{
	struct embeng_model *model = run_model(run);
	struct embeng *e;

	ck_assert_int_eq(embeng_open(RUN_DEVICE, model, &e, NULL), 0);
	embeng_model_free(model);
	return e;
}

static void expect_hosts(struct run *run, uint32_t count, void (*body)(struct run_host *h))
{
	struct run_host hosts[RUN_HOSTS_MOST];

	memset(of_hosts, 0, sizeof(of_hosts));
	run_hosts(run, count, body, NULL, 0, DEADLINE, hosts);
	for (uint32_t k = 0; k < count; k++)
		ck_assert_msg(!hosts[k].code, "%u hosts, host %u: %d, %s", count, k, hosts[k].code,
			      hosts[k].text);
	run_free_rows(run);
}

static const uint32_t host_counts[] = {2, 3, 4, 8};

static void compare_norms(const struct run *kind)
{
	struct run run = *kind;
	struct embeng *e = open_alone(&run);

	ck_assert_int_eq(find_norms(&run, e, &expected), 0);
	embeng_close(e);
	ck_assert_msg(infinite || expected.norms.norm > 0, "%g", expected.norms.norm);
	for (size_t i = 0; i < 4; i++) {
		run = *kind;
		expect_hosts(&run, host_counts[i], find_norms_of_host);
		for (uint32_t k = 0; k < host_counts[i]; k++) {
			struct found *f = &of_hosts[k];

			ck_assert_int_eq(memcmp(&f->norms.norm, &expected.norms.norm, 8), 0);
			ck_assert_int_eq(memcmp(f->tables, expected.tables, sizeof(f->tables)), 0);
			ck_assert_int_eq(f->norms.non_finite, expected.norms.non_finite);
			ck_assert_int_eq(f->norms.feature, expected.norms.feature);
			ck_assert_uint_eq(f->norms.part, expected.norms.part);
			ck_assert_uint_eq(f->norms.sample, expected.norms.sample);
			ck_assert_uint_eq(f->norms.element, expected.norms.element);
		}
	}
}

static const enum embeng_combiner_name combiners[] = {EMBENG_SUM, EMBENG_MEAN, EMBENG_SQRTN,
						      EMBENG_MAX};

static struct run make_kind(int combiner)
{
	return (struct run){.optimizer = embeng_adagrad(0.1f),
			    .replicas = REPLICAS,
			    .steps = 2,
			    .combiner = combiners[combiner],
			    .weights = combiners[combiner] != EMBENG_MAX};
}

START_TEST(norms)
{
	struct run kind = make_kind(_i);

	infinite = 0;
	compare_norms(&kind);
	kind.device = RUN_ROWS;
	compare_norms(&kind);
	kind.device = RUN_GRADS;
	compare_norms(&kind);
}
END_TEST

START_TEST(norms_that_are_not_finite)
{
	struct run kind = make_kind(0);

	infinite = 1;
	compare_norms(&kind);
	ck_assert_int_eq(expected.norms.non_finite, 1);
	ck_assert_uint_eq(expected.norms.part, 2);
	infinite = 0;
}
END_TEST

START_TEST(gradients_of_weights)
{
	const struct run kind = make_kind(_i);
	struct run run = kind;
	struct embeng *e = open_alone(&run);
	double sum = 0;

	infinite = 0;
	memset(&expected, 0, sizeof(expected));
	run_make_rows(&run);
	ck_assert_int_eq(run_train(&run, e, 1), 0);
	ck_assert_int_eq(embeng_flush(e, -1), 0);
	ck_assert_int_eq(find_weights(&run, e, REPLICAS, &expected), 0);
	run_free_rows(&run);
	embeng_close(e);
	for (size_t i = 0; i < IDS; i++)
		sum += fabs((double)expected.weights[1][0][i]);
	ck_assert_msg(sum > 0, "%g", sum);
	for (size_t i = 0; i < 8; i++) {
		run = kind;
		run.device = i < 4 ? RUN_DEVICE : RUN_ROWS;
		expect_hosts(&run, host_counts[i % 4], find_weights_of_host);
		ck_assert_int_eq(
			memcmp(of_hosts[0].weights, expected.weights, sizeof(expected.weights)), 0);
	}
}
END_TEST

/* -- refusals -- */

static void expect_refusal_of(struct run_host *h, int ret, int code, const char *text)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);

	embeng_last_error(&error);
	ck_assert_msg(ret == code, "host %u: %d, %s", h->rank, ret, error.text);
	ck_assert_msg(strstr(error.text, text) && strstr(error.text, "host 1 ("), "host %u: %s",
		      h->rank, error.text);
}

/* All hosts return it if host 1 alone gives something wrong, and the next calls work. */
static void refuse_on_one(struct run_host *h)
{
	struct part *p = make_part(h->run, h->e, h->rank * 2);
	struct embeng_gradient_norms norms = EMBENG_INIT(embeng_gradient_norms);
	struct embeng_batch *batches[] = {p->b};
	const struct embeng_gradients *gradients[] = {&p->g};
	float *weights[RUN_FEATURES] = {0};
	size_t counts[RUN_FEATURES] = {0};
	const int64_t id = p->bags[1].ids[0];

	if (h->rank == 1)
		p->bags[1].ids[0] = 300;
	weights[1] = of_hosts[h->rank].weights[0][1];
	counts[1] = p->b->inputs[1].id_count;
	expect_refusal_of(h, embeng_gradient_norm(h->e, batches, gradients, 1, &norms), -ERANGE,
			  "feature f1");
	expect_refusal_of(h,
			  embeng_weight_gradients(h->e, p->b, &p->g, weights, counts, RUN_FEATURES),
			  -ERANGE, "feature f1");
	p->bags[1].ids[0] = id;
	norms.size = h->rank == 1 ? 0 : sizeof(norms);
	expect_refusal_of(h, embeng_gradient_norm(h->e, batches, gradients, 1, &norms), -EINVAL,
			  "norms must be given");
	norms.size = sizeof(norms);
	expect_refusal_of(h,
			  embeng_weight_gradients(h->e, h->rank == 1 ? NULL : p->b, &p->g, weights,
						  counts, RUN_FEATURES),
			  -EINVAL, "embeng_weight_gradients");
	run_note(h, embeng_gradient_norm(h->e, batches, gradients, 1, &norms));
	run_note(h, embeng_weight_gradients(h->e, p->b, &p->g, weights, counts, RUN_FEATURES));
	ck_assert(norms.norm > 0);
	free_part(p);
}

START_TEST(refusals_of_one_host)
{
	struct run run = make_kind(0);

	expect_hosts(&run, 2, refuse_on_one);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, norms, 0, 4);
	tcase_add_test(tcase, norms_that_are_not_finite);
	tcase_add_loop_test(tcase, gradients_of_weights, 0, 3);
	tcase_add_test(tcase, refusals_of_one_host);
}

int main(void)
{
	return suite_main("hosts_norm", add_tests);
}
