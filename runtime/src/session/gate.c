// SPDX-License-Identifier: MIT
/*
 * The gate: commands that read the tables as they are after a certain step. It has complete steps
 * applied and holds later updates back until the readers are done. Submitting a command and running
 * one on the transfer queue are here too, since both have to mind the gate.
 *
 * Called with e->lock held, which is released while waiting. Only embeng_flush() takes it itself.
 */
#include <inttypes.h>

#include "session.h"
#include "wait.h"

static bool changes_rows(const struct embeng_cmd *cmd)
{
	return cmd->opcode == EMBENG_OP_ROWS_WRITE || cmd->opcode == EMBENG_OP_ROWS_FILL ||
	       cmd->opcode == EMBENG_OP_STAGE;
}

static bool nobody_reads(struct embeng *e, void *arg)
{
	(void)arg;
	return !e->direct;
}

static int finish_transfer(struct embeng *e, struct embeng_cmd *cmd, struct request *request,
			   struct deadline deadline)
{
	int ret = submit(e, &e->transfer, cmd, request);

	if (ret)
		return ret;
	/* A caller that waits to the end does the work: waking another thread would take longer. */
	if (!deadline_is_never(deadline))
		e->device->ops->kick(e->device);
	ret = wait_done(e, request, deadline);
	if (ret)
		ring_abandon(&e->transfer, request);
	return ret ? ret : session_aborted(e, request);
}

/* Calls that read rows without a command neither see half of a change nor wait for ever. */
static int run_transfer(struct embeng *e, struct embeng_cmd *cmd, struct request *request,
			struct deadline deadline)
{
	int ret;

	if (!changes_rows(cmd))
		return finish_transfer(e, cmd, request, deadline);
	e->changing++;
	ret = wait_until(e, nobody_reads, NULL, deadline_never());
	ret = ret ? ret : finish_transfer(e, cmd, request, deadline);
	e->changing--;
	e->device->ops->event_signal(e->device);
	return ret;
}

int transfer_quietly(struct embeng *e, struct embeng_cmd *cmd, struct embeng_cqe *answer)
{
	struct request request = {0};
	int ret = run_transfer(e, cmd, &request, deadline_never());

	if (!ret)
		*answer = request.answer;
	return ret;
}

int transfer(struct embeng *e, struct embeng_cmd *cmd, const char *what, struct embeng_cqe *answer)
{
	struct embeng_cqe own;
	int ret = transfer_quietly(e, cmd, &own);

	if (!ret && own.status)
		ret = table_command_error(e, what, &own);
	if (!ret && answer)
		*answer = own;
	return ret;
}

/*
 * With pipelining an update is held until all replicas have looked up the step
 * behind it. Once some have, a drain would have to wait for the others.
 */
static struct embeng_step_answer ask_drain(const struct embeng *e)
{
	struct embeng_steps steps = session_steps(e);

	return embeng_steps_drain_ready(&steps, UINT64_MAX);
}

static bool lookups_agree(struct embeng *e, void *arg)
{
	(void)arg;
	return ask_drain(e).verdict == EMBENG_STEP_READY;
}

static int drain_steps(struct embeng *e, uint64_t step, struct deadline deadline, const char *call)
{
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_DRAIN, .step = step};
	struct request request = {0};
	int ret = run_transfer(e, &cmd, &request, deadline);

	if (ret == -ETIME)
		return fail(ret, "%s: deadline passed while step %" PRIu64 " is applied", call,
			    step);
	if (!ret && request.status)
		ret = command_error(call, &request.answer);
	return ret;
}

static bool all_applied(struct embeng *e, void *arg)
{
	const uint64_t *step = arg;

	return session_applied(e) >= *step;
}

/* An update that failed after it was taken is never applied. */
static bool all_ended(struct embeng *e, void *arg)
{
	return e->failed || all_applied(e, arg);
}

/* A drain would not wait for parts that other handles have not given yet. */
static int wait_for_others(struct embeng *e, uint64_t step, struct deadline deadline,
			   const char *call)
{
	char missing[128];
	int ret = wait_until(e, all_applied, &step, deadline);

	if (!wait_is_over(ret))
		return ret;
	missing_part(e, missing, sizeof(missing));
	return fail(ret, "%s: deadline passed while step %" PRIu64 " is applied; missing is %s%s",
		    call, step, missing, wait_advice(ret));
}

int gate_enter(struct embeng *e, struct deadline deadline, const char *call, uint64_t *step)
{
	struct deadline lookups = deadline;
	char missing[128];
	int ret;

	lookups.lookups = true;
	ret = wait_until(e, lookups_agree, NULL, lookups);

	if (ret == -ETIME) {
		waited_part(e, ask_drain(e), missing, sizeof(missing));
		return fail(ret, "%s: %s is missing, some replicas looked that step up already",
			    call, missing);
	}
	if (ret)
		return ret;
	e->gate++;
	*step = session_complete(e);
	/* The driver refuses a drain that would pass by what waits for a fence. */
	if (session_applied(e) < *step && (e->shared || session_applied(e) < e->fenced)) {
		ret = wait_for_others(e, *step, deadline, call);
	} else if (session_applied(e) < *step) {
		/* It ends by itself, so that a deadline of 0 has nothing to report. */
		if (deadline.poll)
			deadline = deadline_never();
		ret = drain_steps(e, *step, deadline, call);
		/* The drain may be seen to end before the updates that it waited for. */
		ret = ret ? ret : wait_until(e, all_ended, step, deadline_never());
	}
	/* An update that failed after it was taken will never be in the tables. */
	ret = ret ? ret : session_failed(e);
	if (ret)
		gate_leave(e);
	return ret;
}

static bool nobody_is_shut_out(struct embeng *e, void *arg)
{
	(void)arg;
	return !e->shut_out;
}

int gate_give_way(struct embeng *e)
{
	return wait_until(e, nobody_is_shut_out, NULL, deadline_never());
}

void gate_leave(struct embeng *e)
{
	e->gate--;
	e->device->ops->event_signal(e->device);
}

int embeng_flush(struct embeng *e, int64_t timeout_ns)
{
	uint64_t step;
	int ret = session_check(e, "embeng_flush");

	if (ret)
		return ret;
	if (e->calls)
		return e->calls->flush(e, timeout_ns);
	pthread_mutex_lock(&e->lock);
	if (e->wants_fd)
		e->device->ops->fd_clear(e->device);
	ret = gate_enter(e, deadline_in(timeout_ns), "embeng_flush", &step);
	if (!ret)
		gate_leave(e);
	pthread_mutex_unlock(&e->lock);
	return ret;
}
