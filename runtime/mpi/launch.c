// SPDX-License-Identifier: MIT
/*
 * Checks how this process was started. Under the launcher of another MPI, each process is a job of
 * one rank: each would train its own tables and overwrite the others' checkpoint, without a word.
 * It is a file because that is about the environment and not about messages.
 *
 * There is no state.
 */
#define _GNU_SOURCE /* secure_getenv */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "plugin.h"

#ifdef OPEN_MPI
const char *const mpi_words = "Open MPI";
#define OTHER_NAME "mpich"
#define SRUN_WORDS "srun --mpi=pmix"
#else
const char *const mpi_words = "MPICH";
#define OTHER_NAME "openmpi"
#define SRUN_WORDS "srun --mpi=pmi2"
#endif

int mpi_fail(struct embeng_error *error, int code, const char *fmt, ...)
{
	va_list args;

	if (!error || error->size < sizeof(*error))
		return code;
	error->code = code;
	error->status = 0;
	va_start(args, fmt);
	vsnprintf(error->text, sizeof(error->text), fmt, args);
	va_end(args);
	return code;
}

/* Launchers that say of how many processes this is one, the innermost one first. */
static const struct {
	const char *variable, *launcher;
} launchers[] = {
	{"OMPI_COMM_WORLD_SIZE", "Open MPI's mpirun"},
	{"PMI_SIZE", "MPICH's mpirun, or srun --mpi=pmi2"},
	{"SLURM_STEP_NUM_TASKS", "srun"},
	{"WORLD_SIZE", "torchrun"},
};

/* The start that works. In a job of Slurm that is the launcher at hand, once it is told the MPI. */
static const char *tell_start(void)
{
	return secure_getenv("SLURM_STEP_NUM_TASKS") ? "by " SRUN_WORDS " or by the mpirun of "
						     : "by the mpirun of ";
}

int check_launcher(struct embeng_error *error)
{
	int ranks;

	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (size_t i = 0; ranks == 1 && i < sizeof(launchers) / sizeof(*launchers); i++) {
		const char *value = secure_getenv(launchers[i].variable);
		const long processes = value ? strtol(value, NULL, 10) : 0;

		if (processes > 1)
			return mpi_fail(
				error, -EPROTO,
				"this process was started as one of %ld by %s (%s=%ld), and "
				"%s sees 1 rank; start it %s%s, or ask for \"%s\"",
				processes, launchers[i].launcher, launchers[i].variable, processes,
				mpi_words, tell_start(), mpi_words, OTHER_NAME);
	}
	return 0;
}

int check_threads(int least, struct embeng_error *error)
{
	static const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED,
				     MPI_THREAD_MULTIPLE};
	static const char *const names[] = {"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED",
					    "MPI_THREAD_SERIALIZED", "MPI_THREAD_MULTIPLE"};
	const char *has = "an unknown level", *needs = "";
	int level;

	MPI_Query_thread(&level);
	for (size_t i = 0; i < 4; i++) {
		has = levels[i] == level ? names[i] : has;
		needs = levels[i] == least ? names[i] : needs;
	}
	if (level >= least)
		return 0;
	return mpi_fail(
		error, -ENOTSUP,
		"%s was initialised with %s; the thread of a group calls MPI, so that it needs "
		"MPI_Init_thread() with %s",
		mpi_words, has, needs);
}
