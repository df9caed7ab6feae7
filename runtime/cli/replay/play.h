/* SPDX-License-Identifier: MIT */
/* Plays a recording on a device in this process, and compares what comes with what was recorded. */
#ifndef CLI_REPLAY_PLAY_H
#define CLI_REPLAY_PLAY_H

#include "../recording/recording.h"

#define PLAY_WORDS 256

/**
 * struct play_options - the device to play on
 * @cores: engine cores; 0: as many as recorded
 * @variant: kernel variant; NULL: the best of this processor
 */
struct play_options {
	uint32_t cores;
	const char *variant;
};

/**
 * struct difference - the first thing that differs
 * @entry: number of the recording's entry
 * @offset: byte of the file at which that begins
 * @command: the command, in words
 * @what: the thing that differs
 * @recorded: its recorded value
 * @here: the value that came
 */
struct difference {
	uint64_t entry, offset;
	char command[PLAY_WORDS], what[PLAY_WORDS];
	char recorded[PLAY_WORDS], here[PLAY_WORDS];
};

/**
 * struct play_result - the findings of a replay
 * @entries: entries that were played
 * @commands: commands that were submitted
 * @completions: completions that were compared
 * @outputs: parts of memory that were compared
 * @output_bytes: their bytes
 * @skipped: outputs that were not compared, since they tell about cores of which there are others here
 * @faults: faults that were recorded
 * @injected: those of them that struck here as well; the others change no result
 * @cores: cores of the device here
 * @variant: kernel variant here
 * @differs: @difference is set
 * @impossible: the sentence why the replay ended before the end of the recording, or ""
 * @unfinished: a sentence about commands that the recording does not see the end of, or ""
 */
struct play_result {
	uint64_t entries, commands, completions, outputs, output_bytes, skipped;
	uint64_t faults, injected;
	uint32_t cores;
	char variant[16];
	bool differs;
	struct difference difference;
	char impossible[PLAY_WORDS], unfinished[PLAY_WORDS];
};

/* Return: 0, or -ENOMEM. @result has the rest, also that a recording contradicts itself. */
int play(const struct recording_entry *entries, size_t count, const struct play_options *options,
	 struct play_result *result);

#endif
