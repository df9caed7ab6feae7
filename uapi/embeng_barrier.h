/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * Barriers of the embeng rings, each named by its use: one side publishes, the other observes.
 *
 * DOC: The rule
 *
 * Every word that two sides share has one writer. The writer first writes everything that the
 * word vouches for and then publishes the word with a release store. The reader observes the
 * word with an acquire load and only then touches what it vouches for.
 *
 * One place needs more. To arm an interrupt, each side writes one word and then reads the
 * other's, which takes a full barrier in between (embeng_arm_then_recheck()).
 *
 * The words are ordinary cacheable memory on the soft device and in the emulator. On a chip the
 * doorbell words are an uncached mapping. x86 keeps uncached stores behind earlier write-back
 * stores; other architectures need the I/O barrier that writel() has. The doorbell therefore
 * has functions of its own here.
 *
 * The interface is unstable until the driver has been used with it for some time.
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
 * embeng_doorbell_tail() - hand commands to the device
 * @word: &embeng_doorbell.sq_tail
 * @tail: free-running index one past the last command written
 *
 * The program publishes the commands below @tail. The device observes them with
 * embeng_observe_tail() before it copies them.
 */
static inline void embeng_doorbell_tail(__u32 *word, __u32 tail)
{
	EMBENG_STORE_RELEASE(word, tail);
}

/**
 * embeng_observe_tail() - read, in the device, how many commands may be copied
 * @word: &embeng_doorbell.sq_tail
 *
 * Return: free-running index one past the last command written.
 */
static inline __u32 embeng_observe_tail(const __u32 *word)
{
	return EMBENG_LOAD_ACQUIRE(word);
}

/**
 * embeng_publish_sq_head() - hand command slots back to the program
 * @word: &embeng_ring_header.sq_head
 * @head: free-running index one past the last command copied
 *
 * The device publishes that it has copied every command below @head. The program observes this
 * with embeng_observe_sq_head() before it overwrites a slot.
 */
static inline void embeng_publish_sq_head(__u32 *word, __u32 head)
{
	EMBENG_STORE_RELEASE(word, head);
}

/**
 * embeng_observe_sq_head() - read, in the program, which command slots are free
 * @word: &embeng_ring_header.sq_head
 *
 * Return: free-running index one past the last command copied.
 */
static inline __u32 embeng_observe_sq_head(const __u32 *word)
{
	return EMBENG_LOAD_ACQUIRE(word);
}

/**
 * embeng_publish_cq_tail() - hand completions to the program
 * @word: &embeng_ring_header.cq_tail
 * @tail: free-running index one past the last completion written
 *
 * The device publishes the completions below @tail and all output that they vouch for
 * (activations, rows, statistics). The program observes them with embeng_observe_cq_tail()
 * before it reads any of it.
 */
static inline void embeng_publish_cq_tail(__u32 *word, __u32 tail)
{
	EMBENG_STORE_RELEASE(word, tail);
}

/**
 * embeng_observe_cq_tail() - read, in the program, which completions are there
 * @word: &embeng_ring_header.cq_tail
 *
 * Return: free-running index one past the last completion written.
 */
static inline __u32 embeng_observe_cq_tail(const __u32 *word)
{
	return EMBENG_LOAD_ACQUIRE(word);
}

/**
 * embeng_doorbell_cq_head() - hand completion slots back to the device
 * @word: &embeng_doorbell.cq_head
 * @head: free-running index one past the last completion read
 *
 * The program publishes that it has read every completion below @head. The device observes this
 * with embeng_observe_cq_head() before it overwrites a slot.
 */
static inline void embeng_doorbell_cq_head(__u32 *word, __u32 head)
{
	EMBENG_STORE_RELEASE(word, head);
}

/**
 * embeng_observe_cq_head() - read, in the device, which completion slots are free
 * @word: &embeng_doorbell.cq_head
 *
 * Return: free-running index one past the last completion read.
 */
static inline __u32 embeng_observe_cq_head(const __u32 *word)
{
	return EMBENG_LOAD_ACQUIRE(word);
}

/**
 * embeng_arm_then_recheck() - order an arming before the look that follows it
 *
 * The program writes &embeng_doorbell.arm, calls this function, looks at cq_tail once more, and
 * only then sleeps. The device publishes cq_tail, calls this function, looks at arm, and
 * interrupts if it is armed. Either the program sees the completion or the device sees the
 * arming, so no wake-up is lost.
 */
static inline void embeng_arm_then_recheck(void)
{
	EMBENG_FULL_BARRIER();
}

/**
 * embeng_report_begin() / embeng_report_end() - replace, in the device, a queue report
 * @epoch: &embeng_queue_report.epoch
 * @value: number of the new report, even; @epoch is odd while the report is being written
 *
 * A reader takes the epoch, then the fields, and then the epoch again. The fields belong
 * together if both epochs are equal and even (embeng_report_read_retry()).
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

/**
 * embeng_report_read_begin() - start, in the program, to read a queue report
 * @epoch: &embeng_queue_report.epoch
 *
 * Return: the epoch, for embeng_report_read_retry().
 */
static inline __u32 embeng_report_read_begin(const __u32 *epoch)
{
	return EMBENG_LOAD_ACQUIRE(epoch);
}

/**
 * embeng_report_read_retry() - ask, in the program, whether a report changed while it was read
 * @epoch: &embeng_queue_report.epoch
 * @begun: epoch from embeng_report_read_begin()
 *
 * Return: 1 if the report changed and must be read again, otherwise 0.
 */
static inline int embeng_report_read_retry(const __u32 *epoch, __u32 begun)
{
	EMBENG_FULL_BARRIER();
	return (begun & 1) || EMBENG_LOAD_ACQUIRE(epoch) != begun;
}

#ifdef __cplusplus
}
#endif

#endif
