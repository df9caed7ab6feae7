/* SPDX-License-Identifier: MIT */
/*
 * Pieces: the work of a command, however long it is, is cut so that each core gets to piece_over()
 * after a bounded part of it. There the device beats, lets others of its host run, and learns that
 * the command is to stop. These are the only bounds; no result depends on them.
 */
#ifndef EMBENG_ENGINE_PIECES_H
#define EMBENG_ENGINE_PIECES_H

#include "../types.h"

struct command;
struct engine;

/*
 * Ids, occurrences, words or numbers that one core handles between two calls of piece_over(). The
 * inputs of fuzzers are short, so that they are built with small pieces.
 */
#ifdef EMBENG_SMALL_PIECES
#define PIECE_ROWS 64u
#else
#define PIECE_ROWS (1u << 16)
#endif
/* Rows and numbers of one call of a kernel, which is not preempted. */
#define CHUNK_ROWS (PIECE_ROWS / 16)
#define CHUNK_NUMBERS (PIECE_ROWS * 4u)
/* Bytes that it copies or clears at most. */
#define PIECE_BYTES (1u << 20)

/* Where the piece ends that begins at @at. */
static inline u64 piece_end(u64 at, u64 last)
{
	return last - at < PIECE_ROWS ? last : at + PIECE_ROWS;
}

/**
 * piece_over() - a piece of a command is done; no lock is held, and no FP section open
 * @command: NULL: nobody waits for a sign of life, and nothing stops it
 *
 * Return: true where the command is to stop: it leaves the rest undone and ends as aborted. Nobody
 * may use results that it has not written yet.
 */
bool piece_over(struct command *command);

/* For loops whose steps do not come in stretches: one is done, @left are in this piece. */
static inline bool piece_step(struct command *command, u64 *left)
{
	if (--*left)
		return false;
	*left = PIECE_ROWS;
	return piece_over(command);
}

/* The same for stretches [@at, @last): where the part ends that belongs to this piece. */
static inline u64 piece_part(u64 at, u64 last, u64 *left)
{
	u64 end = last - at < *left ? last : at + *left;

	*left -= end - at;
	return end;
}

/* That part is done. */
static inline bool piece_spent(struct command *command, u64 *left)
{
	if (*left)
		return false;
	*left = PIECE_ROWS;
	return piece_over(command);
}

/* Copies @bytes in pieces. Return: as piece_over(). */
bool piece_copy(struct command *command, void *to, const void *from, u64 bytes);

/* A piece of work that no command stops, such as clearing memory. */
void piece_beat(struct engine *engine);

#endif
