// SPDX-License-Identifier: MIT
/* A program and the service thread use small rings, which are always full, at the same time. */
#include <pthread.h>

#include "../unit/engine/queue/fake_model.h"
#include "rig.h"
#include "suite.h"

#define COMMANDS 20000u
#define PROGRAMS 2u

struct program {
	struct rig_queue *q;
	u64 submitted, completed;
	bool runs; /* helps by running the engine itself */
};

static bool has_room(const struct rig_queue *q)
{
	u32 head = embeng_observe_sq_head(&rig_header((struct rig_queue *)q)->sq_head);

	return q->tail - head < q->layout.sq_entries;
}

static void submit(struct program *p)
{
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_NOP, .cookie = p->submitted};

	if (p->submitted % 3 == 0)
		cmd = (struct embeng_cmd){
			.opcode = EMBENG_OP_DRAIN, .cookie = p->submitted, .step = 1};
	rig_submit(p->q, &cmd);
	p->submitted++;
	engine_kick(p->q->rig->engine);
}

static void *program_main(void *arg)
{
	struct program *p = arg;
	struct embeng_cqe cqe;

	while (p->completed < COMMANDS) {
		while (p->submitted < COMMANDS && has_room(p->q))
			submit(p);
		if (p->runs && p->completed % 5 == 0)
			engine_run(p->q->rig->engine, ENGINE_RUN_ALL);
		while (rig_reap(p->q, &cqe)) {
			ck_assert_uint_eq(cqe.cookie, p->completed);
			ck_assert_uint_eq(cqe.status, EMBENG_STATUS_OK);
			p->completed++;
		}
		engine_kick(p->q->rig->engine);
		ck_assert_uint_ne(rig_report(p->q).state, EMBENG_QUEUE_ERROR);
	}
	return NULL;
}

/* The indices pass 2^32 on the way; the completion ring is smaller than the submissions. */
START_TEST(nothing_is_lost_or_reordered)
{
	struct program programs[PROGRAMS];
	pthread_t threads[PROGRAMS];
	struct rig *rig;
	u32 i;

	fake = (struct fake_model){.admitted = U64_MAX, .ready = U64_MAX};
	rig = rig_new(2, 1);
	for (i = 0; i < PROGRAMS; i++)
		programs[i] = (struct program){
			.q = rig_queue_at(rig, 0, EMBENG_QUEUE_TRANSFER, 0, 8, 4, -(COMMANDS / 2)),
			.runs = i && _i,
		};
	for (i = 0; i < PROGRAMS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, program_main, &programs[i]), 0);
	for (i = 0; i < PROGRAMS; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(reg_read64(rig->engine, EMBENG_REG_COUNT_COMMANDS), PROGRAMS * COMMANDS);
	rig_free(rig);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_loop_test(t, nothing_is_lost_or_reordered, 0, 2);
}

int main(void)
{
	return suite_main("ring_torture", add);
}
