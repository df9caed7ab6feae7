// SPDX-License-Identifier: MIT
/*
 * Asks a context of another program for the statistics of its tables: STATS commands on a validated
 * TRANSFER queue of that context, which is made for it and ended at once, with the memory for the
 * answers. They are asked for at whatever step the model is (EMBENG_STATS_NOW), which changes nothing
 * of the program's and is not refused, so that the device counts no failure of the program.
 *
 * The descriptor keeps the program's file open, and with it the context of a program that ends
 * meanwhile. So it is held for one look, a second at most, and never from one look to the next. Signals
 * wait as long, so that nothing stays in the program's context when the user ends this process. SIGKILL
 * cannot wait: after that, queue and memory stay until the program closes its file. The rings are
 * looked at without sleeping in the driver. The end of the queue wakes the program's own sleepers, who
 * find nothing new and sleep again.
 *
 * The other program shares the queue and the memory, and may write there what it likes. So
 * completions are checked, and answers are copied before they are read.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../board/board.h"
#include "borrow.h"
#include "hot.h"

#define ROUND 64u /* tables that are asked for at a time: as many as a queue of the board holds */
#define LOOK_NS BOARD_SECOND

struct asking {
	struct board board;
	struct board_queue queue;
	struct board_memory memory; /* [ROUND] struct embeng_stats */
	int64_t end_ns;
	struct finding finding;
};

static bool is_alive(struct asking *a)
{
	struct embeng_accel_context_state state;

	if (!board_context(&a->board, &state, &a->finding))
		return false;
	if (state.status == EMBENG_ACCEL_CONTEXT_NONE)
		finding_fail(&a->finding, "the program has not made its context yet");
	else if (state.status == EMBENG_ACCEL_CONTEXT_LOST)
		finding_fail(&a->finding, "the context was lost in a reset");
	else if (state.status == EMBENG_ACCEL_CONTEXT_IN_RESET)
		finding_fail(&a->finding, "the device is being reset");
	return finding_good(&a->finding);
}

/* Another question may count as a failure of the program. */
static bool can_answer(struct asking *a)
{
	struct embeng_caps caps;

	if (!board_caps(&a->board, &caps, &a->finding))
		return false;
	if (!(caps.features & EMBENG_CAP_STATS_NOW))
		finding_fail(&a->finding,
			     "the device's firmware is an older one, which only tells the program "
			     "itself; load one that has the capability stats_now");
	return finding_good(&a->finding);
}

static bool submit_question(struct asking *a, uint32_t slot, uint32_t table)
{
	struct embeng_cmd cmd = {
		.opcode = EMBENG_OP_STATS,
		.cookie = slot,
		.desc = {a->memory.key.index, a->memory.key.generation,
			 slot * sizeof(struct embeng_stats), sizeof(struct embeng_stats)},
		.arg = table | EMBENG_STATS_NOW,
	};
	int err = board_submit(&a->board, &a->queue, &cmd, NULL);

	if (err)
		finding_fail(&a->finding, "the driver refuses the question: %s", strerror(-err));
	return !err;
}

static bool take_answer(struct asking *a, struct embeng_cqe *cqe)
{
	int64_t left = a->end_ns - board_now_ns();
	int err = board_take(&a->queue, left > 0 ? left : 0, cqe);

	if (err == -ETIME)
		finding_fail(&a->finding, "the device did not answer within a second");
	else if (err)
		finding_fail(&a->finding, "the device was reset meanwhile");
	else if (cqe->cookie >= ROUND || cqe->flags != EMBENG_CQE_DONE)
		finding_fail(&a->finding, "the queue was used by its program as well");
	return finding_good(&a->finding);
}

/* Each answer says how many tables there are. */
static bool count_tables(struct asking *a, struct hot_look *look)
{
	struct embeng_cqe cqe;

	if (!submit_question(a, 0, 0) || !take_answer(a, &cqe))
		return false;
	if (cqe.status)
		finding_fail(&a->finding, "the device does not say how many tables there are: %s",
			     board_status_text(cqe.status));
	else if (!cqe.value)
		finding_fail(&a->finding, "the program has loaded no model");
	else if (cqe.value > UINT32_MAX)
		finding_fail(&a->finding, "the queue was used by its program as well");
	else
		look->model_tables = (uint32_t)cqe.value;
	return finding_good(&a->finding);
}

/* Each word is read once, whatever is written meanwhile. */
static void copy_answer(const struct asking *a, uint32_t slot, struct embeng_stats *to)
{
	const struct embeng_stats *answers = a->memory.data;
	const volatile uint64_t *from = (const volatile uint64_t *)&answers[slot];
	uint64_t words[sizeof(*to) / sizeof(uint64_t)];

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		words[i] = from[i];
	memcpy(to, words, sizeof(words));
}

static bool read_answer(struct asking *a, const struct embeng_cqe *cqe, uint32_t first,
			struct hot_look *look)
{
	uint32_t slot = (uint32_t)cqe->cookie, table = first + slot;
	struct embeng_stats stats;

	if (cqe->status)
		finding_fail(&a->finding, "the device does not tell the counts of table %u: %s",
			     table, board_status_text(cqe->status));
	else if (cqe->value != look->model_tables)
		finding_fail(&a->finding, "the program replaced its model meanwhile");
	if (!finding_good(&a->finding))
		return false;
	copy_answer(a, slot, &stats);
	if (table >= look->count || !hot_read(&stats, table, &look->tables[table]))
		finding_fail(&a->finding, "the answer about table %u was overwritten", table);
	return finding_good(&a->finding);
}

static bool read_tables(struct asking *a, struct hot_look *look)
{
	struct embeng_cqe cqe;

	for (uint32_t first = 0; first < look->count; first += ROUND) {
		uint32_t rest = (uint32_t)look->count - first, count = rest < ROUND ? rest : ROUND;

		for (uint32_t i = 0; i < count; i++) {
			if (!submit_question(a, i, first + i))
				return false;
		}
		for (uint32_t i = 0; i < count; i++) {
			if (!take_answer(a, &cqe) || !read_answer(a, &cqe, first, look))
				return false;
		}
	}
	return true;
}

static int ask_on_queue(struct asking *a, struct hot_look *look)
{
	if (!count_tables(a, look))
		return 0;
	look->count = look->model_tables < HOT_TABLES ? look->model_tables : HOT_TABLES;
	look->tables = calloc(look->count, sizeof(*look->tables));
	if (!look->tables)
		return -ENOMEM;
	for (uint32_t i = 0; i < look->count; i++)
		look->tables[i].table = i;
	if (!read_tables(a, look)) {
		look->count = 0;
		look->model_tables = 0;
	}
	return 0;
}

static int ask_alive_context(struct asking *a, struct hot_look *look)
{
	int err = 0;

	if (!board_memory_new(&a->board, ROUND * sizeof(struct embeng_stats), &a->memory,
			      &a->finding))
		return 0;
	if (board_queue_open(&a->board, EMBENG_QUEUE_TRANSFER, false, &a->queue, &a->finding)) {
		err = ask_on_queue(a, look);
		board_queue_close(&a->board, &a->queue);
	}
	board_memory_free(&a->board, &a->memory);
	return err;
}

int hot_ask(struct tree *tree, const struct sample_context *context, struct hot_look *look)
{
	struct asking a = {.end_ns = board_now_ns() + LOOK_NS};
	sigset_t all, before;
	int err = 0;

	a.board.fd = borrow_descriptor(tree, context, &a.finding);
	if (a.board.fd >= 0) {
		sigfillset(&all);
		sigprocmask(SIG_SETMASK, &all, &before);
		if (is_alive(&a) && can_answer(&a))
			err = ask_alive_context(&a, look);
		board_close(&a.board);
		sigprocmask(SIG_SETMASK, &before, NULL);
	}
	snprintf(look->reason, sizeof(look->reason), "%s", a.finding.text);
	return err;
}
