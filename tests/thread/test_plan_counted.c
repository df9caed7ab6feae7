// SPDX-License-Identifier: MIT
/*
 * The bytes and messages that a plan of hosts tells are what a transport carries when threads make the
 * exchanges of each kind: whole tables and columns to the byte, rows within 2 %. Owners
 * answer by what they were asked, and by no formula.
 */
#include <math.h>

#include "counted_transport.h"
#include "embeng/hosts.h"
#include "group_help.h"
#include "test_model.h"

enum { TABLES = 4, SAMPLES = 512, BAG = 12, LENGTH = 5, STEPS = 3, SEGMENT = 24, PHASES = 3 };

static const struct {
	int64_t rows, dim, length;
	bool rowwise;
} shapes[TABLES] = {
	{4000, 48, 0, false}, {30000, 16, 0, false}, {700, 64, 0, true}, {9000, 24, LENGTH, false}};

static const double zipf = 1.05;

/* Bytes that grow. A sender puts, a receiver takes. */
struct body {
	char *data;
	size_t bytes, room, at;
};

static void put(struct body *b, const void *from, size_t bytes)
{
	if (!bytes)
		return;
	if (b->bytes + bytes > b->room) {
		b->room = 2 * (b->bytes + bytes);
		b->data = realloc(b->data, b->room);
		if (!b->data)
			abort();
	}
	if (from)
		memcpy(b->data + b->bytes, from, bytes);
	else
		memset(b->data + b->bytes, 0, bytes);
	b->bytes += bytes;
}

/* An array, rounded up to 8 bytes. */
static void put_array(struct body *b, const void *from, size_t count, size_t each)
{
	put(b, from, count * each);
	put(b, NULL, (8 - count * each % 8) % 8);
}

static const void *take(struct body *b, size_t bytes)
{
	const char *from = b->data + b->at;

	b->at += bytes;
	return from;
}

/* Numbers of what follows: samples, ids, owned bags, rows. As long as a feature's head. */
struct head {
	uint64_t numbers[4];
};

/* One host's work, and the exchange that it makes of each table. */
struct work {
	const struct embeng_model *model;
	const struct embeng_hosts_plan *plan;
	int kinds[TABLES];
	struct counted counted[GROUP_RANKS_MOST];
	uint64_t sent[GROUP_RANKS_MOST], messages[GROUP_RANKS_MOST];
	double *sums[TABLES]; /* a row's is the sum of probabilities up to it */
};

static struct work *work; /* one test at a time */

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static int64_t id_of(uint64_t step, uint32_t replica, int t, size_t i)
{
	const double x = (double)(mix(mix(step * 64 + replica) + (uint64_t)t * 100000 + i) >> 11) *
			 0x1p-53;
	int64_t low = 0, high = shapes[t].rows - 1;

	while (low < high) {
		const int64_t middle = (low + high) / 2;

		if (work->sums[t][middle] > x)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static size_t each_of(int t)
{
	return (size_t)(shapes[t].length ? shapes[t].length : BAG);
}

static const struct embeng_hosts_part *part_of(int t, uint32_t host)
{
	const struct embeng_hosts_table *table = &work->plan->tables[t];

	for (size_t i = 0; i < table->part_count; i++) {
		const struct embeng_hosts_part *part = &work->plan->parts[table->first_part + i];

		if (part->host == host)
			return part;
	}
	return NULL;
}

static bool is_home(uint32_t replica, uint32_t host)
{
	uint32_t first = 0;

	for (uint32_t h = 0; h < host; h++)
		first += work->plan->each[h].replicas;
	return replica >= first && replica < first + work->plan->each[host].replicas;
}

/* -- ids ----------------------------------------------------------------- */

static void put_whole_ids(struct body *b, const int64_t *ids, int t)
{
	const size_t count = SAMPLES * each_of(t);
	const struct head head = {{SAMPLES, count, 0, 0}};
	int64_t offsets[SAMPLES + 1];
	static float weights[SAMPLES * BAG];

	for (size_t s = 0; s <= SAMPLES; s++)
		offsets[s] = (int64_t)(s * each_of(t));
	put(b, &head, sizeof(head));
	put_array(b, offsets, SAMPLES + 1, sizeof(*offsets));
	put_array(b, ids, count, sizeof(*ids));
	if (!shapes[t].length)
		put_array(b, weights, count, sizeof(*weights));
}

/* Places of the owner's rows, each once. */
static void put_places(struct body *b, const int64_t *ids, int t, uint32_t owner)
{
	const uint32_t hosts = work->plan->hosts;
	const size_t count = SAMPLES * each_of(t);
	bool *seen = calloc((size_t)shapes[t].rows, sizeof(*seen));
	struct head head = {{0}};
	size_t at = b->bytes, last = SIZE_MAX;

	put(b, NULL, sizeof(head));
	for (size_t i = 0; i < count; i++) {
		const uint32_t place = (uint32_t)(ids[i] / hosts);
		const size_t bag = shapes[t].length ? i : i / BAG;

		if ((uint32_t)(ids[i] % hosts) != owner)
			continue;
		head.numbers[2] += bag != last;
		last = bag;
		if (!seen[ids[i]])
			put(b, &place, sizeof(place));
		head.numbers[1]++;
		head.numbers[3] += !seen[ids[i]];
		seen[ids[i]] = true;
	}
	memcpy(b->data + at, &head, sizeof(head));
	free(seen);
}

static void put_ids(struct body *b, uint64_t step, uint32_t replica, uint32_t owner)
{
	int64_t ids[SAMPLES * BAG];

	put(b, NULL, SEGMENT);
	for (int t = 0; t < TABLES; t++) {
		for (size_t i = 0; i < SAMPLES * each_of(t); i++)
			ids[i] = id_of(step, replica, t, i);
		if (work->kinds[t] == 0 && part_of(t, owner))
			put_whole_ids(b, ids, t);
		else if (work->kinds[t] != 0)
			put_places(b, ids, t, owner);
	}
}

/* -- answers and gradients ----------------------------------------------- */

/* Goes over what was asked of a table. Return: what it asks for. */
static struct head take_question(struct body *b, int t)
{
	struct head head;

	memcpy(&head, take(b, sizeof(head)), sizeof(head)); /* nothing keeps it aligned */
	if (work->kinds[t] == 0) {
		take(b, (head.numbers[0] + 1) * 8 + head.numbers[1] * 8);
		if (!shapes[t].length)
			take(b, head.numbers[1] * 4);
	} else {
		take(b, head.numbers[3] * 4);
	}
	return head;
}

/* A place for each id and a gradient for each bag; bags have numbers of ids, and ids weights. */
static void put_samples(struct body *b, const struct head *head, int t, size_t row)
{
	put(b, NULL, 24);
	put_array(b, NULL, head->numbers[1], sizeof(uint32_t));
	put_array(b, NULL, head->numbers[2], row);
	if (shapes[t].length)
		return;
	put_array(b, NULL, head->numbers[2], sizeof(uint32_t));
	put_array(b, NULL, head->numbers[1], sizeof(float));
}

/* Floats of one replica's answers from an owner, or of the gradients to it. */
static void put_floats(struct body *b, struct body *question, uint32_t owner, bool gradients)
{
	put(b, NULL, SEGMENT);
	take(question, SEGMENT);
	for (int t = 0; t < TABLES; t++) {
		const size_t row = (size_t)shapes[t].dim * sizeof(float);
		const struct embeng_hosts_part *part = part_of(t, owner);
		struct head head;

		if (work->kinds[t] == 0 && !part)
			continue;
		head = take_question(question, t);
		if (work->kinds[t] == 0 && gradients)
			put(b, NULL, 8);
		if (work->kinds[t] == 0)
			put_array(b, NULL, (shapes[t].length ? head.numbers[1] : head.numbers[0]),
				  part->columns * sizeof(float));
		else if (work->kinds[t] == 1 || !gradients)
			put(b, NULL, head.numbers[3] * row);
		else
			put_samples(b, &head, t, row);
	}
}

static void send_bodies(struct host *h, uint64_t step, const char *phase, struct body *bodies,
			struct body *came)
{
	struct embeng_bytes send[GROUP_RANKS_MOST], received[GROUP_RANKS_MOST];

	for (uint32_t to = 0; to < h->ranks; to++)
		send[to] = (struct embeng_bytes){bodies[to].data, bodies[to].bytes};
	if (host_exchange(h,
			  &EMBENG_INIT(embeng_exchange, .phase = phase, .step = step, .send = send),
			  received))
		return;
	for (uint32_t from = 0; came && from < h->ranks; from++) {
		came[from] = (struct body){0};
		put(&came[from], received[from].data, received[from].bytes);
	}
}

static void drop_bodies(struct body *bodies, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		free(bodies[i].data);
	memset(bodies, 0, count * sizeof(*bodies));
}

static void make_step(struct host *h, uint64_t step)
{
	struct body asked[GROUP_RANKS_MOST] = {0}, came[GROUP_RANKS_MOST] = {0},
		    floats[GROUP_RANKS_MOST] = {0};

	for (uint32_t o = 0; o < h->ranks; o++) {
		for (uint32_t r = 0; r < work->plan->replicas; r++)
			if (is_home(r, h->rank))
				put_ids(&asked[o], step, r, o);
	}
	send_bodies(h, step, "ids", asked, came);
	for (uint32_t from = 0; from < h->ranks; from++) {
		while (came[from].at < came[from].bytes)
			put_floats(&floats[from], &came[from], h->rank, false);
	}
	send_bodies(h, step, "activations", floats, NULL);
	drop_bodies(floats, h->ranks);
	for (uint32_t o = 0; o < h->ranks; o++) {
		while (asked[o].at < asked[o].bytes)
			put_floats(&floats[o], &asked[o], o, true);
	}
	send_bodies(h, step, "gradients", floats, NULL);
	drop_bodies(asked, h->ranks);
	drop_bodies(came, h->ranks);
	drop_bodies(floats, h->ranks);
}

static void make_steps(struct host *h)
{
	struct counted *c = h->transport.self;
	const uint64_t messages = c->messages, sent = c->sent;

	for (uint64_t step = 0; step < STEPS; step++)
		make_step(h, step);
	work->messages[h->rank] = c->messages - messages;
	work->sent[h->rank] = c->sent - sent;
}

/* -- comparison ---------------------------------------------------------- */

static struct embeng_model *make_model(uint32_t replicas)
{
	struct embeng_model *m = embeng_model_new();

	for (int t = 0; t < TABLES; t++) {
		struct embeng_table_config c = table_config(NULL);
		struct embeng_feature_config f = feature_config(NULL);

		c.vocabulary_size = shapes[t].rows;
		c.dim = shapes[t].dim;
		c.optimizer = shapes[t].rowwise ? embeng_rowwise_adagrad(0.1f)
						: embeng_adagrad(0.1f);
		ck_assert_int_eq(embeng_model_add_table(m, &c), t);
		f.table = t;
		f.max_sequence_length = shapes[t].length;
		ck_assert_int_eq(embeng_model_add_feature(m, &f), t);
	}
	ck_assert_int_eq(embeng_model_set_engine(
				 m, &EMBENG_INIT(embeng_engine_config, .replicas = replicas)),
			 0);
	return m;
}

static void make_sums(struct work *w)
{
	for (int t = 0; t < TABLES; t++) {
		double sum = 0.0;

		w->sums[t] = malloc((size_t)shapes[t].rows * sizeof(double));
		for (int64_t r = 0; r < shapes[t].rows; r++)
			w->sums[t][r] = sum += pow((double)r + 1.0, -zipf);
		for (int64_t r = 0; r < shapes[t].rows; r++)
			w->sums[t][r] /= sum;
	}
}

static struct embeng_hosts_plan *make_plan(const struct embeng_model *m, uint32_t hosts)
{
	const struct embeng_plan_options sizes = EMBENG_INIT(
		embeng_plan_options, .batch_size = SAMPLES, .ids_per_sample = BAG,
		.id_type = EMBENG_I64, .weights = 1);
	struct embeng_hosts_plan *plan = NULL;

	ck_assert_int_eq(embeng_model_plan_hosts(m,
						 &EMBENG_INIT(embeng_hosts_options, .hosts = hosts,
							      .plan = &sizes, .zipf = zipf),
						 &plan),
			 0);
	return plan;
}

static void run_counted(uint32_t hosts)
{
	struct embeng_transport transports[GROUP_RANKS_MOST];
	pthread_t threads[GROUP_RANKS_MOST];
	struct host host[GROUP_RANKS_MOST];

	ck_assert_int_eq(embeng_group_threads(hosts, transports), 0);
	for (uint32_t rank = 0; rank < hosts; rank++) {
		count_transport(&transports[rank], &work->counted[rank]);
		host[rank] = (struct host){.transport = transports[rank],
					   .options = EMBENG_INIT(embeng_group_options,
								  .deadline_ns = 60000 * GROUP_MS),
					   .run = make_steps,
					   .rank = rank,
					   .ranks = hosts};
		ck_assert_int_eq(pthread_create(&threads[rank], NULL, host_thread, &host[rank]), 0);
	}
	for (uint32_t rank = 0; rank < hosts; rank++)
		pthread_join(threads[rank], NULL);
	for (uint32_t rank = 0; rank < hosts; rank++)
		ck_assert_msg(!host[rank].code, "rank %u: %s", rank, host[rank].text);
}

static void assert_within(uint64_t got, uint64_t want, double part, const char *what)
{
	const double most = part * (double)want;

	ck_assert_msg(fabs((double)got - (double)want) <= most, "%s: %llu counted, %llu planned",
		      what, (unsigned long long)got, (unsigned long long)want);
}

/* All tables by one kind: 0, 1, 2; or 3: each by the one that the plan chose. */
static void compare(uint32_t hosts, uint32_t replicas, int kind)
{
	struct embeng_model *m = make_model(replicas);
	struct embeng_hosts_plan *plan = make_plan(m, hosts);
	struct work w = {.model = m, .plan = plan};
	uint64_t planned = (uint64_t)hosts * (hosts - 1) * PHASES * 128 +
			   (uint64_t)replicas * (hosts - 1) * PHASES * SEGMENT;
	uint64_t sent = 0, messages = 0;

	for (int t = 0; t < TABLES; t++) {
		const struct embeng_exchange_cost *c;

		w.kinds[t] = kind == 3 ? (int)plan->tables[t].chosen : kind;
		c = &plan->tables[t].costs[w.kinds[t]];
		planned += c->ids + c->forward + c->backward;
	}
	make_sums(&w);
	work = &w;
	run_counted(hosts);
	for (uint32_t h = 0; h < hosts; h++) {
		sent += w.sent[h];
		messages += w.messages[h];
	}
	assert_within(sent, STEPS * planned, kind == 0 ? 0.0 : 0.02, "bytes");
	if (kind == 3) {
		assert_within(sent, STEPS * plan->sent, 0.02, "bytes of the plan");
		assert_within(messages, STEPS * plan->messages, 0.02, "messages");
		for (uint32_t h = 0; h < hosts; h++)
			assert_within(w.sent[h], STEPS * plan->each[h].sent, 0.03, "a host");
	}
	for (int t = 0; t < TABLES; t++)
		free(w.sums[t]);
	embeng_hosts_plan_free(plan);
	embeng_model_free(m);
}

static const struct {
	uint32_t hosts, replicas;
} groups[] = {{2, 2}, {3, 4}, {4, 2}, {8, 8}};

START_TEST(counted_bytes_are_as_planned)
{
	compare(groups[_i / 4].hosts, groups[_i / 4].replicas, _i % 4);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, counted_bytes_are_as_planned, 0, 4 * (int)COUNT(groups));
}

int main(void)
{
	return suite_main("plan_counted", add_tests);
}
