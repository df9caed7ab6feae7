/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * Named barriers of the embeng rings: who publishes, who observes.
 *
 * DOC: The rule
 *
 * Every word that two sides share has one writer. The writer publishes it with
 * a release store after everything that the word vouches for; the reader
 * observes it with an acquire load before it touches any of that. There is one
 * place that needs more: arming an interrupt, where each side writes one word
 * and then reads the other's (embeng_arm_then_recheck()).
 *
 * The words are ordinary cacheable memory on the soft device and in the
 * emulator. On a chip the doorbell words are an uncached mapping: x86 keeps
 * uncached stores behind earlier write-back stores, other architectures need
 * the I/O barrier that writel() carries, which is why the doorbell has
 * functions of its own here.
 *
 * Unstable until the driver has lived on it.
 */
#ifndef _EMBENG_BARRIER_H_
#define _EMBENG_BARRIER_H_

#include <linux/types.h>

#ifdef __KERNEL__
#include <asm/barrier.h>
#define EMBENG_LOAD_ACQUIRE(p) smp_load_acquire(p)
#define EMBENG_STORE_RELEASE(p, v) smp_store_release(p, v)
#define EMBENG_FULL_BARRIER() smp_mb()
#else
#define EMBENG_LOAD_ACQUIRE(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define EMBENG_STORE_RELEASE(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define EMBENG_FULL_BARRIER() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/**
 * embeng_doorbell_tail() - hand submissions to the device
 * @word: &embeng_doorbell.sq_tail
 * @tail: free-running index one past the last command written
 *
 * Program publishes the commands below @tail. Device observes with
 * embeng_observe_tail() before it copies them.
 */
static inline void embeng_doorbell_tail(__u32 *word, __u32 tail)
{
	EMBENG_STORE_RELEASE(word, tail);
}

/** embeng_observe_tail() - device: which commands may be copied */
static inline __u32 embeng_observe_tail(const __u32 *word)
{
	return EMBENG_LOAD_ACQUIRE(word);
}

/**
 * embeng_publish_sq_head() - hand command slots back to the program
 * @word: &embeng_ring_header.sq_head
 * @head: free-running index one past the last command copied
 *
 * Device publishes that it has copied everything below @head. Program observes
 * with embeng_observe_sq_head() before it overwrites a slot.
 */
static inline void embeng_publish_sq_head(__u32 *word, __u32 head)
{
	EMBENG_STORE_RELEASE(word, head);
}

/** embeng_observe_sq_head() - program: which command slots are free */
static inline __u32 embeng_observe_sq_head(const __u32 *word)
{
	return EMBENG_LOAD_ACQUIRE(word);
}

/**
 * embeng_publish_cq_tail() - hand completions to the program
 * @word: &embeng_ring_header.cq_tail
 * @tail: free-running index one past the last completion written
 *
 * Device publishes the completions below @tail and every output that they
 * vouch for (activations, rows, statistics). Program observes with
 * embeng_observe_cq_tail() before it reads any of them.
 */
static inline void embeng_publish_cq_tail(__u32 *word, __u32 tail)
{
	EMBENG_STORE_RELEASE(word, tail);
}

/** embeng_observe_cq_tail() - program: which completions may be read */
static inline __u32 embeng_observe_cq_tail(const __u32 *word)
{
	return EMBENG_LOAD_ACQUIRE(word);
}

/**
 * embeng_doorbell_cq_head() - hand completion slots back to the device
 * @word: &embeng_doorbell.cq_head
 * @head: free-running index one past the last completion read
 *
 * Program publishes that it has read everything below @head. Device observes
 * with embeng_observe_cq_head() before it overwrites a slot.
 */
static inline void embeng_doorbell_cq_head(__u32 *word, __u32 head)
{
	EMBENG_STORE_RELEASE(word, head);
}

/** embeng_observe_cq_head() - device: which completion slots are free */
static inline __u32 embeng_observe_cq_head(const __u32 *word)
{
	return EMBENG_LOAD_ACQUIRE(word);
}

/**
 * embeng_arm_then_recheck() - order an arm before the look that follows it
 *
 * Program: write &embeng_doorbell.arm, call this, look at cq_tail once more,
 * only then sleep. Device: publish cq_tail, call this, look at arm, interrupt
 * if armed. Either the program sees the completion or the device sees the arm:
 * no wake-up is lost.
 */
static inline void embeng_arm_then_recheck(void)
{
	EMBENG_FULL_BARRIER();
}

/**
 * embeng_report_begin() / embeng_report_end() - device: replace a queue report
 * @epoch: &embeng_queue_report.epoch
 * @value: the report's number, even; odd while it is being written
 *
 * A reader takes the epoch, the fields, and the epoch again; equal and even
 * means that the fields belong together (embeng_report_read_retry()).
 */
static inline void embeng_report_begin(__u32 *epoch, __u32 value)
{
	EMBENG_STORE_RELEASE(epoch, value - 1);
	EMBENG_FULL_BARRIER();
}

static inline void embeng_report_end(__u32 *epoch, __u32 value)
{
	EMBENG_STORE_RELEASE(epoch, value);
}

/** embeng_report_read_begin() - program: start to read a queue report */
static inline __u32 embeng_report_read_begin(const __u32 *epoch)
{
	return EMBENG_LOAD_ACQUIRE(epoch);
}

/** embeng_report_read_retry() - program: 1 when the report changed meanwhile */
static inline int embeng_report_read_retry(const __u32 *epoch, __u32 begun)
{
	EMBENG_FULL_BARRIER();
	return (begun & 1) || EMBENG_LOAD_ACQUIRE(epoch) != begun;
}

#ifdef __cplusplus
}
#endif

#endif
