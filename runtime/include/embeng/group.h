/* SPDX-License-Identifier: MIT */
/*
 * Groups of hosts that exchange bytes in lock-step: the transport below them, and the exchange in
 * which a missing host is named. Included by programs that need it; embeng.h's rules hold.
 *
 * A host is one rank of a group: a process that MPI started, or a thread of one process. A
 * transport carries messages between two ranks and knows nothing of steps. A group makes
 * exchanges of them: in one exchange each host gives bytes to every host and gets bytes from every
 * host. Hosts must make the same exchanges in the same order; one that does not is found by the
 * header that each message begins with.
 *
 * Each exchange has a deadline. When it passes, the hosts that are left agree on one sentence,
 * which names the step, the phase and the host that is missing, and every one of them returns it at
 * most a second later. The group is dead from then on. libembeng itself uses no MPI.
 */
#ifndef EMBENG_GROUP_API_H
#define EMBENG_GROUP_API_H

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define EMBENG_GROUP_RANKS_MOST 4096
#define EMBENG_GROUP_CHANNELS 4 /* exchanges that may be in flight at the same time */
#define EMBENG_HOST_TEXT 128
#define EMBENG_PHASE_TEXT 24

/**
 * struct embeng_message - a message of a transport, on its way
 * @data: bytes to send, or room for what comes; it stays where it is until @done
 * @bytes: length of @data; a message that comes may be shorter, and one that is longer is an error
 * @moved: out: bytes that were sent or came
 * @peer: the other rank, never one's own
 * @tag: from 0 to 15. Messages of one tag from one rank to another arrive in the order in which they
 *	were posted
 * @receive: 0: send, 1: receive
 * @error: out: 0, or the negative errno with which this message ended
 * @done: out: 1 from when the message has ended and @data is the caller's again
 */
struct embeng_message {
	void *data;
	uint64_t bytes, moved;
	uint32_t peer, tag;
	int32_t receive, error, done;
};

/**
 * struct embeng_transport - messages between two ranks, filled by a plug-in or by the program
 * @size: sizeof(struct embeng_transport)
 * @self: first argument of every function
 * @rank: number of this host, below @ranks
 * @ranks: hosts, from 1 to EMBENG_GROUP_RANKS_MOST
 * @name: name of this host, for sentences: usually the machine's
 * @post: begins @count sends and receives, which are one operation. @messages stay where they are
 *	until @drop. Return: 0 and *op, or a negative errno and nothing begun
 * @test: moves messages on and sets @moved, @error and @done of those that ended; it may do so for other
 *	operations, too. It never waits. Return: 0, or a negative errno if no message can be moved any
 *	more
 * @drop: ends an operation, whether or not all of its messages are done. Return: 0, or -EBUSY if
 *	the transport may still touch the memory of the messages, which the group then never frees
 * @wait: NULL, or waits until a message may have moved, @wake was called, or @ns have passed.
 *	A group tests every few microseconds, and later every millisecond, where it is NULL
 * @wake: ends @wait, from any thread; NULL if and only if @wait is
 * @abort: NULL, or told that the group has failed: a rank may be gone, and @close waits for none
 * @close: frees @self; no other function is called after it
 *
 * All functions but @wake are called by one thread of the group. A message of more than 1 GiB is
 * never posted.
 */
struct embeng_transport {
	size_t size;
	void *self;
	uint32_t rank, ranks;
	char name[EMBENG_HOST_TEXT];
	int (*post)(void *self, struct embeng_message *messages, size_t count, void **op);
	int (*test)(void *self, void *op);
	int (*drop)(void *self, void *op);
	void (*wait)(void *self, uint64_t ns);
	void (*wake)(void *self);
	void (*abort)(void *self);
	void (*close)(void *self);
};

/**
 * embeng_group_transport() - load a plug-in that carries messages
 * @name: "openmpi" or "mpich", or "mpi": the one whose launcher started this process, or that is
 *	loaded already, or else the first that is installed
 * @out: the transport of this process, for embeng_group_open()
 * @error: NULL, or where the sentence goes
 *
 * A plug-in is libembeng-NAME.so.0, and uses that MPI's MPI_COMM_WORLD. If nobody has initialised
 * MPI, the plug-in does, and finalizes it when the process exits, unless a group has failed: a rank
 * may be gone then, and would be waited for. A program that has initialised MPI
 * must have asked for MPI_THREAD_MULTIPLE, since a group's thread calls MPI beside it; it finalizes
 * MPI after its groups are closed. Without a launcher there is one rank.
 *
 * Return: 0; -EINVAL; -ENOENT (no such name); -ENOTSUP (not installed, or too few threads);
 * -EPROTO (this process was started as one of several, by a launcher that this MPI does not
 * know); -ESHUTDOWN (MPI was finalized); -EIO (MPI failed).
 */
EMBENG_API int embeng_group_transport(const char *name, struct embeng_transport *out,
				      struct embeng_error *error);

/**
 * embeng_group_threads() - make transports between the threads of this process
 * @ranks: from 1 to EMBENG_GROUP_RANKS_MOST
 * @out: [ranks]; hand each to embeng_group_open() in a thread of its own, since that waits for the
 *	others
 *
 * A program for many hosts can so be tried, and tested, in one process. Return: 0, -ERANGE, -ENOMEM.
 */
EMBENG_API int embeng_group_threads(uint32_t ranks, struct embeng_transport *out);

/**
 * struct embeng_group_options - how a group works; all zero but the size: defaults
 * @size: sizeof(struct embeng_group_options)
 * @deadline_ns: time that an exchange may take, also the first one in embeng_group_open();
 *	0: 5 minutes
 * @piece_bytes: most bytes of a message, from 4096; what is longer is cut. 0: 1 GiB, which is also
 *	the most
 */
struct embeng_group_options {
	size_t size;
	uint64_t deadline_ns, piece_bytes;
};

struct embeng_group;

/**
 * embeng_group_open() - join the group of all ranks of a transport
 * @transport: the group's from a successful call on, which closes it with the group; after a failure
 *	it is closed, too
 * @options: NULL: defaults
 * @out: the group
 * @error: NULL, or where the sentence goes
 *
 * Waits until all ranks have called, and tells each the others' names. A thread of the group
 * drives the transport from then on, so that exchanges go on while the program computes.
 *
 * Return: 0; -EINVAL; -ERANGE; -ENOMEM; -ETIME naming the ranks that did not come; -EPROTO (a
 * rank runs another version, has another byte order or sees another number of ranks); -EINTR (the
 * program wanted it, see embeng_ask()); what the transport returned.
 */
EMBENG_API int embeng_group_open(const struct embeng_transport *transport,
				 const struct embeng_group_options *options,
				 struct embeng_group **out, struct embeng_error *error);

/**
 * embeng_group_close() - leave a group
 * @g: NULL is allowed
 *
 * Tells the other hosts, whose exchanges end with a sentence that says so. Memory that
 * embeng_group_end() gave is gone.
 */
EMBENG_API void embeng_group_close(struct embeng_group *g);

/** embeng_group_rank() / embeng_group_ranks() - this host's number, and how many hosts there are; 0 for NULL */
EMBENG_API uint32_t embeng_group_rank(const struct embeng_group *g);
EMBENG_API uint32_t embeng_group_ranks(const struct embeng_group *g);

/**
 * embeng_group_host() - the name of a host, "" if there is no such rank
 *
 * It is valid until embeng_group_close().
 */
EMBENG_API const char *embeng_group_host(const struct embeng_group *g, uint32_t rank);

/**
 * struct embeng_bytes - bytes for a host, or from one
 * @data: may be NULL where @bytes is 0
 * @bytes: any number
 */
struct embeng_bytes {
	const void *data;
	uint64_t bytes;
};

/**
 * struct embeng_exchange - a host's part in an exchange
 * @size: sizeof(struct embeng_exchange)
 * @phase: name of the exchange, in up to 23 bytes, for sentences: "rows"
 * @step: number of the step
 * @model: any number that must be equal on all hosts, such as a hash of the model
 * @rates: another one, such as a hash of the learning rates
 * @replicas: another one
 * @channel: below EMBENG_GROUP_CHANNELS. Exchanges of one channel follow each other, those of
 *	different channels overlap
 * @status: 0, or a negative errno: this host cannot take part in the step. Its @send is not sent
 * @text: with @status: why, in one sentence
 * @timeout_ns: time that this exchange may take; 0: the deadline of the group. If it is longer than that deadline,
 *	the hosts that are waited for are asked whether they are alive, and one that does not answer for as
 *	long as the deadline fails the exchange
 * @send: [ranks]: bytes for each host, this one too; NULL: none for any
 */
struct embeng_exchange {
	size_t size;
	const char *phase;
	uint64_t step, model, rates;
	uint32_t replicas, channel;
	int status;
	const char *text;
	uint64_t timeout_ns;
	const struct embeng_bytes *send;
};

/**
 * embeng_group_begin() - begin an exchange, and return at once
 * @x: its bytes are copied
 *
 * Return: 0; -EINVAL; -ERANGE; -ENOMEM; -EBUSY (the channel has an exchange that
 * embeng_group_end() has not ended); -ESHUTDOWN with the first cause if the group is dead; -ENOTSUP
 * in the child of a fork.
 */
EMBENG_API int embeng_group_begin(struct embeng_group *g, const struct embeng_exchange *x,
				  struct embeng_error *error);

/**
 * embeng_group_wait() - wait until an exchange has ended, so that embeng_group_end() will not wait
 * @channel: that of the exchange
 * @timeout_ns: most time that this call takes; 0: it only looks; below 0: no limit. The exchange goes
 *	on afterwards, up to its own deadline
 *
 * Return: 0 (embeng_group_end() tells how it ended); -ETIME (it goes on); -EINVAL (no exchange was
 * begun); -ENOTSUP in the child of a fork.
 */
EMBENG_API int embeng_group_wait(struct embeng_group *g, uint32_t channel, int64_t timeout_ns,
				 struct embeng_error *error);

/**
 * embeng_group_end() - wait for an exchange, and see what came
 * @channel: that of the exchange
 * @received: out: [ranks]: valid until the channel's next embeng_group_begin()
 *
 * Where a host brought a status, all hosts return it, with the sentence "host 3 (n17) says: ...";
 * with several it is that of the lowest rank. The group goes on then. All other failures end the
 * group, and each host that is left returns the same error: from the call of its exchange in flight, or
 * else from its next call.
 *
 * Return: 0; -EINVAL (no exchange was begun); a host's status; -ETIME naming the hosts that were
 * silent; -EHOSTDOWN (a host left, or the transport says that it is gone); -EPROTO (another step,
 * phase, model, rates, replicas, or ranks); -EBADMSG (a message was damaged, cut, lost or doubled);
 * -ENOMEM; -ESHUTDOWN with the first cause if the group is dead.
 */
EMBENG_API int embeng_group_end(struct embeng_group *g, uint32_t channel,
				struct embeng_bytes *received, struct embeng_error *error);

/**
 * embeng_group_exchange() - embeng_group_begin() and embeng_group_end() in one
 *
 * Return: as both.
 */
EMBENG_API int embeng_group_exchange(struct embeng_group *g, const struct embeng_exchange *x,
				     struct embeng_bytes *received, struct embeng_error *error);

struct embeng;
struct embeng_model;

#define EMBENG_GROUP_REPLICAS_MOST 65536

/**
 * embeng_open_group() - open a model whose tables are spread over the hosts of a group
 * @device: this host's device, as for embeng_open(), without the prefix of a group. Its options may have
 *	exchange=table, columns, rows or rows+grads, for all tables that allow it, exchange:items=rows for the
 *	table items, and for rows sharding=mod or div
 * @model: the whole model, the same on all hosts. Copied
 * @group: joined by all hosts. It stays the program's, which makes no exchange of its own in it before the
 *	handle is closed, and closes it afterwards
 * @out: the handle
 * @error: NULL, or where the sentence goes
 *
 * embeng_open() does the same with "mpi:" before the device's name, and opens and closes the group itself.
 * Each host makes the same calls. Host h of H has the replicas from h * R / H on, as embeng_info()
 * tells, feeds these alone, and may have none. Tables, and columns of large ones, are dealt to the hosts,
 * or rows are spread over all. A model may have EMBENG_GROUP_REPLICAS_MOST replicas. If it has more than a
 * device, which has 64, the rows of all its tables are spread; and if it is pipelined, too, a step is given up by all
 * replicas or by none.
 * All numbers are those of one process with R replicas, to the bit.
 *
 * In a step, embeng_enqueue() of the last replica of a host waits until the batches of all hosts are
 * there. A batch that one host refuses makes it fail on all, with that host's sentence; no host takes the
 * step, and batches of it that other calls enqueued are withdrawn. Inference, rows, statistics,
 * checkpoints and all else that touches tables are collective: every host makes the call, in the same order.
 * Each may name rows of its own; of several that write a row the highest host's stays. A refusal of one host is
 * all hosts'. embeng_table_frozen(), embeng_usage() and embeng_counters() are each host's own. Calls that are
 * impossible over hosts return -ENOTSUP.
 *
 * When a host fails, every call that waits returns what embeng_group_end() says, or the next call
 * does; all later ones return -ESHUTDOWN with the first cause. embeng_close() on a host without replicas
 * waits until the others have left.
 *
 * Return: 0, as embeng_open(), as embeng_group_end(); -EINVAL also if a table has to be spread that cannot be;
 * -ERANGE if there are too many replicas.
 */
EMBENG_API int embeng_open_group(const char *device, const struct embeng_model *model,
				 struct embeng_group *group, struct embeng **out,
				 struct embeng_error *error);

#ifdef __cplusplus
}
#endif

#endif
