/* SPDX-License-Identifier: MIT */
/* Transports between threads of one process, with faults for tests. */
#ifndef EMBENG_GROUP_THREADS_H
#define EMBENG_GROUP_THREADS_H

#include <stddef.h>

#include "embeng/group.h"

enum thread_fault_kind {
	THREAD_DROP,	     /* the message is lost */
	THREAD_DELAY,	     /* it and those behind it come @ns later */
	THREAD_REORDER,	     /* it comes after the next one to the same rank */
	THREAD_TRUNCATE,     /* its second half is lost */
	THREAD_DUPLICATE,    /* it comes twice */
	THREAD_CORRUPT_HEAD, /* its 10th byte is another one */
	THREAD_CORRUPT_TAIL, /* its last byte is another one */
	THREAD_STOP,	     /* the rank neither sends nor gets anything from then on */
	THREAD_DIE,	     /* as THREAD_STOP, and the other ranks' transports say so */
};

/*
 * struct thread_fault - a fault of one message
 * @rank: its sender
 * @message: its number among those that the rank sends, from 0
 */
struct thread_fault {
	enum thread_fault_kind kind;
	uint32_t rank;
	uint64_t message, ns;
};

/* As embeng_group_threads(). @faults is copied. */
int threads_make(uint32_t ranks, const struct thread_fault *faults, size_t fault_count,
		 struct embeng_transport *out);

#endif
