// SPDX-License-Identifier: MIT
/*
 * Messages over MPI: sends, receives and MPI_Testsome(). There is no collective and no barrier here,
 * and MPI_Testall() would complete no message before all are complete, so that every host would
 * look missing. It is a file because it is all that happens after a group has opened.
 *
 * Each group's thread calls, and the thread that ends the process: one lock is held around each use of MPI. An
 * operation's requests are freed with it; where MPI may still touch the memory of a message, they stay
 * for ever.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin.h"

#define DROP_LOOKS 200 /* until a cancelled receive counts as left behind */

static pthread_mutex_t calls = PTHREAD_MUTEX_INITIALIZER;
static bool ended;	   /* the process exits: MPI is not used any more */
static bool messages_left; /* a group failed, or left messages behind */

struct mpi_peer_link {
	struct mpi_link *link;
	int first_tag;
};

struct mpi_op {
	struct embeng_message *messages;
	int count, left;
	int *done;
	MPI_Status *statuses;
	MPI_Request requests[];
};

static void free_op(struct mpi_op *op)
{
	free(op->done);
	free(op->statuses);
	free(op);
}

static int begin_message(const struct mpi_peer_link *l, struct embeng_message *m, MPI_Request *r)
{
	const int tag = l->first_tag + (int)m->tag, bytes = (int)m->bytes;
	int ret;

	if (m->receive)
		ret = MPI_Irecv(m->data, bytes, MPI_BYTE, (int)m->peer, tag, l->link->comm, r);
	else
		ret = MPI_Isend(m->data, bytes, MPI_BYTE, (int)m->peer, tag, l->link->comm, r);
	return ret == MPI_SUCCESS ? 0 : -EIO;
}

static struct mpi_op *make_op(struct embeng_message *messages, size_t count)
{
	struct mpi_op *op = calloc(1, sizeof(*op) + count * sizeof(*op->requests));

	if (!op)
		return NULL;
	op->done = calloc(count, sizeof(*op->done));
	op->statuses = calloc(count, sizeof(*op->statuses));
	op->messages = messages;
	op->count = (int)count;
	if (op->done && op->statuses)
		return op;
	free_op(op);
	return NULL;
}

/* A message that cannot be begun has ended with its error. */
static int post_requests(void *self, struct embeng_message *messages, size_t count, void **out)
{
	struct mpi_op *op = make_op(messages, count);

	if (!op)
		return -ENOMEM;
	pthread_mutex_lock(&calls);
	for (size_t i = 0; i < count; i++) {
		op->requests[i] = MPI_REQUEST_NULL;
		messages[i].error = ended ? -ESHUTDOWN
					  : begin_message(self, &messages[i], &op->requests[i]);
		messages[i].done = messages[i].error != 0;
		op->left += !messages[i].done;
	}
	pthread_mutex_unlock(&calls);
	*out = op;
	return 0;
}

static void end_message(struct embeng_message *m, MPI_Status *status, int code)
{
	int class = MPI_SUCCESS, bytes = 0;

	if (code != MPI_SUCCESS)
		MPI_Error_class(code, &class);
	if (class == MPI_ERR_TRUNCATE)
		m->error = -EMSGSIZE;
	else if (class != MPI_SUCCESS)
		m->error = -EIO;
	else if (m->receive && MPI_Get_count(status, MPI_BYTE, &bytes) == MPI_SUCCESS)
		m->moved = (uint64_t)bytes;
	else
		m->moved = m->bytes;
	m->done = 1;
}

/* The lock is held. */
static int test_op(struct mpi_op *op)
{
	int count, ret;

	if (!op->left)
		return 0;
	if (ended)
		return -ESHUTDOWN;
	ret = MPI_Testsome(op->count, op->requests, &count, op->done, op->statuses);
	if (ret != MPI_SUCCESS && ret != MPI_ERR_IN_STATUS)
		return -EIO;
	for (int i = 0; count != MPI_UNDEFINED && i < count; i++) {
		end_message(&op->messages[op->done[i]], &op->statuses[i],
			    ret == MPI_ERR_IN_STATUS ? op->statuses[i].MPI_ERROR : MPI_SUCCESS);
		op->left--;
	}
	return 0;
}

static int test_requests(void *self, void *op)
{
	int ret;

	(void)self;
	pthread_mutex_lock(&calls);
	ret = test_op(op);
	pthread_mutex_unlock(&calls);
	return ret;
}

/* Receives can be cancelled; sends cannot, and are given a moment. The lock is held. */
static void cancel_op(struct mpi_op *op)
{
	for (int i = 0; !ended && op->left && i < op->count; i++) {
		if (op->messages[i].receive && op->requests[i] != MPI_REQUEST_NULL)
			MPI_Cancel(&op->requests[i]);
	}
	for (int look = 0; op->left && look < DROP_LOOKS; look++) {
		if (test_op(op))
			break;
		sched_yield();
	}
	messages_left |= op->left != 0;
}

static int drop_requests(void *self, void *dropped)
{
	struct mpi_op *op = dropped;

	(void)self;
	pthread_mutex_lock(&calls);
	cancel_op(op);
	pthread_mutex_unlock(&calls);
	if (op->left)
		return -EBUSY;
	free_op(op);
	return 0;
}

void messages_note_left(void)
{
	pthread_mutex_lock(&calls);
	messages_left = true;
	pthread_mutex_unlock(&calls);
}

static void note_failure(void *self)
{
	(void)self;
	messages_note_left();
}

bool messages_end(void)
{
	bool left;

	pthread_mutex_lock(&calls);
	ended = true;
	left = messages_left;
	pthread_mutex_unlock(&calls);
	return !left;
}

int make_transport(struct mpi_link *link, struct embeng_transport *out, struct embeng_error *error)
{
	struct mpi_peer_link *l = malloc(sizeof(*l));

	if (!l)
		return mpi_fail(error, -ENOMEM, "there is no memory for a transport over MPI");
	*l = (struct mpi_peer_link){
		.link = link,
		.first_tag = (int)(link->groups++ % ((uint64_t)link->tag_most / LINK_TAGS)) *
			     LINK_TAGS,
	};
	*out = (struct embeng_transport){
		.size = sizeof(*out),
		.self = l,
		.rank = (uint32_t)link->rank,
		.ranks = (uint32_t)link->ranks,
		.post = post_requests,
		.test = test_requests,
		.drop = drop_requests,
		.abort = note_failure,
		.close = free,
	};
	gethostname(out->name, sizeof(out->name) - 1);
	return 0;
}
