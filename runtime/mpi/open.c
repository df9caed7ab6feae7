// SPDX-License-Identifier: MIT
/*
 * Opens MPI for groups: initialises it if nobody has, and finds a communicator on which no one else
 * sends. It is a file because who initialises, duplicates and finalizes is decided here alone.
 *
 * A duplicate is kept as an attribute of the program's communicator and freed with it. One lock
 * holds for opening; a communicator is used by one group at a time.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "plugin.h"

#define DEADLINE_NS (300ull * 1000000000u)

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static int keyval = MPI_KEYVAL_INVALID;
static struct mpi_link world; /* MPI_COMM_WORLD, if the plug-in initialised MPI */
static bool initialised_here;
static pid_t initialiser; /* the process that did */

static uint64_t read_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * At exit, also of a program that has not closed its groups: their threads still run. After a failure a rank
 * may be gone, and MPI_Finalize() would wait for it.
 */
static void finalize_mpi(void)
{
	bool all_alive;
	int finalized;

	/* MPI is the parent's in a child, and so is the lock, which a thread may have held. */
	if (getpid() != initialiser)
		return;
	all_alive = messages_end();
	MPI_Finalized(&finalized);
	if (!finalized && all_alive)
		MPI_Finalize();
}

static void describe_link(struct mpi_link *link, MPI_Comm comm)
{
	int *most, found;

	link->comm = comm;
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	MPI_Comm_rank(comm, &link->rank);
	MPI_Comm_size(comm, &link->ranks);
	/* an attribute of the world alone */
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &found);
	link->tag_most = found ? *most : 32767;
}

static int delete_link(MPI_Comm comm, int key, void *value, void *extra)
{
	struct mpi_link *link = value;

	(void)comm;
	(void)key;
	(void)extra;
	free(link);
	return MPI_SUCCESS;
}

/* Duplicates without waiting longer than allowed: MPI_Comm_dup() would wait for ever. */
static int duplicate_comm(MPI_Comm comm, uint64_t deadline_ns, MPI_Comm *out,
			  struct embeng_error *error)
{
	const uint64_t allowed = deadline_ns ? deadline_ns : DEADLINE_NS, began = read_clock();
	static MPI_Comm copy; /* MPI writes to it, even after this call gave up */
	MPI_Request request;
	int done = 0;

	if (MPI_Comm_idup(comm, &copy, &request) != MPI_SUCCESS)
		return mpi_fail(error, -EIO, "%s cannot duplicate the communicator", mpi_words);
	while (!done) {
		if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
			return mpi_fail(error, -EIO, "%s cannot duplicate the communicator",
					mpi_words);
		if (!done && read_clock() - began > allowed) {
			messages_note_left();
			return mpi_fail(error, -ETIME,
					"not all ranks of the communicator opened a group within "
					"%.1f s",
					(double)allowed / 1e9);
		}
		if (!done)
			sched_yield();
	}
	*out = copy;
	return 0;
}

/* The link that a communicator has already, or a new one. */
static int find_link(MPI_Comm comm, uint64_t deadline_ns, struct mpi_link **out,
		     struct embeng_error *error)
{
	struct mpi_link *link;
	MPI_Comm copy = MPI_COMM_NULL;
	int found = 0, ret;

	if (keyval == MPI_KEYVAL_INVALID)
		MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_link, &keyval, NULL);
	MPI_Comm_get_attr(comm, keyval, out, &found);
	if (found)
		return 0;
	ret = duplicate_comm(comm, deadline_ns, &copy, error);
	if (ret)
		return ret;
	link = calloc(1, sizeof(*link));
	if (!link)
		return mpi_fail(error, -ENOMEM, "there is no memory for a communicator");
	describe_link(link, copy);
	MPI_Comm_set_attr(comm, keyval, link);
	*out = link;
	return 0;
}

static int check_mpi(struct embeng_error *error)
{
	int initialized, finalized;

	MPI_Initialized(&initialized);
	MPI_Finalized(&finalized);
	if (finalized)
		return mpi_fail(error, -ESHUTDOWN, "%s was finalized; open groups before",
				mpi_words);
	if (!initialized)
		return mpi_fail(error, -ESHUTDOWN, "%s is not initialised", mpi_words);
	return 0;
}

int embeng_mpi_transport(MPI_Comm comm, uint64_t deadline_ns, struct embeng_transport *out,
			 struct embeng_error *error)
{
	struct mpi_link *link;
	int ret = check_mpi(error);

	ret = ret ? ret : check_threads(MPI_THREAD_MULTIPLE, error);
	ret = ret ? ret : check_launcher(error);
	if (!ret && (!out || comm == MPI_COMM_NULL))
		ret = mpi_fail(error, -EINVAL,
			       "embeng_mpi_transport: a communicator and out must be given");
	if (ret)
		return ret;
	pthread_mutex_lock(&opening);
	ret = find_link(comm, deadline_ns, &link, error);
	ret = ret ? ret : make_transport(link, out, error);
	pthread_mutex_unlock(&opening);
	return ret;
}

/* Nobody else uses this MPI, so that the world need not be duplicated. */
static int initialise_mpi(struct embeng_error *error)
{
	int level;

	if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level) != MPI_SUCCESS)
		return mpi_fail(error, -EIO, "%s cannot be initialised", mpi_words);
	initialised_here = true;
	initialiser = getpid();
	atexit(finalize_mpi);
	describe_link(&world, MPI_COMM_WORLD);
	return 0;
}

/* The entry of the plug-in, for embeng_group_transport(). */
EMBENG_API int embeng_transport_open(struct embeng_transport *out, struct embeng_error *error);

int embeng_transport_open(struct embeng_transport *out, struct embeng_error *error)
{
	int initialized, finalized, ret = 0;

	MPI_Initialized(&initialized);
	MPI_Finalized(&finalized);
	if (finalized || (initialized && !initialised_here))
		return embeng_mpi_transport(MPI_COMM_WORLD, 0, out, error);
	pthread_mutex_lock(&opening);
	if (!initialised_here)
		ret = initialise_mpi(error);
	ret = ret ? ret : check_threads(MPI_THREAD_SERIALIZED, error);
	ret = ret ? ret : check_launcher(error);
	ret = ret ? ret : make_transport(&world, out, error);
	pthread_mutex_unlock(&opening);
	return ret;
}
