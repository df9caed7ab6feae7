/* SPDX-License-Identifier: MIT */
/*
 * Arming, the second look and sleep (DOC: The rule in uapi/embeng_barrier.h) between one
 * program and one device, on processors that keep their stores back: each has a buffer, whose
 * stores reach memory later and in order. Run by tests/model/check.sh.
 *
 * A lost wake-up shows as an invalid end state: the program sleeps for ever. Each define takes away
 * something that one side needs, and then a lost wake-up must be found.
 *
 *	NO_PROGRAM_BARRIER	the look after the arm does not wait for the arm
 *	NO_DEVICE_BARRIER	the look at the arm does not wait for the completion
 *	NO_LOOK			sleeps right after the arm
 *	ONE_WORD		the device knows by the index alone that an arm is new
 *	LATE_SEEN		the count of events is taken after the look
 */
#ifndef COMPLETIONS
#define COMPLETIONS 3
#endif
#define ROOM 4

mtype = { CQ_TAIL, ARM, ARMED };

byte cq_tail, arm, armed;   /* memory that both see */
byte events;                /* interrupts so far, as the kernel or the event loop counts them */

chan of_program = [ROOM] of { mtype, byte };
chan of_device = [ROOM] of { mtype, byte };

inline reach_memory(buffer, word, value)
{
	atomic {
		buffer ? word, value;
		if
		:: word == CQ_TAIL -> cq_tail = value
		:: word == ARM -> arm = value
		:: word == ARMED -> armed = value
		fi;
		word = 0;
		value = 0
	}
}

active proctype memory()
{
	mtype word;
	byte value;

end:	do
	:: nempty(of_program) -> reach_memory(of_program, word, value)
	:: nempty(of_device) -> reach_memory(of_device, word, value)
	od
}

active proctype program()
{
	byte head, seen, count;

	do
	:: head == COMPLETIONS -> break
	:: else ->
#ifndef LATE_SEEN
		seen = events;
#endif
		of_program ! ARM, head;
		count++;
		of_program ! ARMED, count;
#ifndef NO_PROGRAM_BARRIER
		empty(of_program);
#endif
		if
#ifndef NO_LOOK
		:: cq_tail != head -> head = cq_tail
#endif
		:: else ->
#ifdef LATE_SEEN
			seen = events;
#endif
			events != seen;
			if
			:: cq_tail != head -> head = cq_tail
			:: else
			fi
		fi
	od
}

active proctype device()
{
	byte tail, known, now, index;

	do
	:: tail == COMPLETIONS -> break
	:: else ->
		tail++;
		of_device ! CQ_TAIL, tail;
#ifndef NO_DEVICE_BARRIER
		empty(of_device);
#endif
		now = armed;
		index = arm;
		if
#ifdef ONE_WORD
		:: index != known && tail > index -> known = index; events++
#else
		:: now != known && tail > index -> known = now; events++
#endif
		:: else
		fi
	od
}
