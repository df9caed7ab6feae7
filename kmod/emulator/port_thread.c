// SPDX-License-Identifier: GPL-2.0-only
/*
 * The part of engine/port.h that is locks, events and threads, in terms of the kernel.
 *
 * Each object is allocated by its port_*_new() or port_thread_start() and freed by its
 * counterpart, when nobody uses it any more. An event is a counter with a wait queue: a waiter
 * names the count that it saw, so that a signal between look and sleep is not lost. Threads wait
 * in TASK_IDLE, because a core without work is neither load nor a hung task.
 */
#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/mutex.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/wait.h>

#include "../../engine/port.h"

struct port_mutex {
	struct mutex mutex; /* wrapped, since engine/port.h declares only the struct */
};

struct port_mutex *port_mutex_new(void)
{
	struct port_mutex *m = kmalloc(sizeof(*m), GFP_KERNEL);

	if (m)
		mutex_init(&m->mutex);
	return m;
}

void port_mutex_free(struct port_mutex *m)
{
	mutex_destroy(&m->mutex);
	kfree(m);
}

void port_lock(struct port_mutex *m)
{
	mutex_lock(&m->mutex);
}

void port_unlock(struct port_mutex *m)
{
	mutex_unlock(&m->mutex);
}

struct port_event {
	atomic_t counter;
	wait_queue_head_t queue;
};

struct port_event *port_event_new(void)
{
	struct port_event *e = kzalloc(sizeof(*e), GFP_KERNEL);

	if (e)
		init_waitqueue_head(&e->queue);
	return e;
}

void port_event_free(struct port_event *e)
{
	kfree(e);
}

u32 port_event_read(struct port_event *e)
{
	return atomic_read_acquire(&e->counter);
}

/* TASK_IDLE, since a core without work is neither load nor a hung task. */
void port_event_wait(struct port_event *e, u32 seen, u64 timeout_ns)
{
	ktime_t expires = timeout_ns > KTIME_MAX ? KTIME_MAX : ns_to_ktime(timeout_ns);
	DEFINE_WAIT(wait);

	prepare_to_wait(&e->queue, &wait, TASK_IDLE);
	if (port_event_read(e) == seen)
		schedule_hrtimeout(&expires, HRTIMER_MODE_REL);
	finish_wait(&e->queue, &wait);
}

/* The full barrier of wq_has_sleeper() pairs with the one of prepare_to_wait(). */
void port_event_signal(struct port_event *e)
{
	atomic_inc(&e->counter);
	if (wq_has_sleeper(&e->queue))
		wake_up_all(&e->queue);
}

void port_event_signal_some(struct port_event *e, u32 count)
{
	port_event_signal(e);
}

struct port_thread {
	struct task_struct *task;
	void (*fn)(void *arg);
	void *arg;
};

static int run_thread(void *data)
{
	struct port_thread *t = data;

	t->fn(t->arg);
	return 0;
}

struct port_thread *port_thread_start(void (*fn)(void *arg), void *arg, const char *name, int cpu)
{
	struct port_thread *t = kzalloc(sizeof(*t), GFP_KERNEL);

	if (!t)
		return NULL;
	t->fn = fn;
	t->arg = arg;
	t->task = kthread_create(run_thread, t, "%s", name);
	if (IS_ERR(t->task)) {
		kfree(t);
		return NULL;
	}
	if (cpu >= 0 && cpu < nr_cpu_ids && cpu_online(cpu))
		kthread_bind(t->task, cpu);
	get_task_struct(t->task);
	wake_up_process(t->task);
	return t;
}

void port_thread_join(struct port_thread *t)
{
	kthread_stop_put(t->task);
	kfree(t);
}

bool port_alone(void)
{
	return num_online_cpus() == 1;
}

void port_yield(void)
{
	cond_resched();
}

void port_relax(void)
{
	cpu_relax();
	cond_resched();
}
