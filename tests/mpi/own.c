// SPDX-License-Identifier: MIT
/*
 * A program with MPI and communicators of its own: the world, and half of it. Its messages have the
 * tags of the group's, and must not meet them.
 *
 * usage: own LEVEL, the number of a level of threads: 0 single to 3 multiple
 */
#include <stdio.h>
#include <stdlib.h>

#include "embeng/mpi.h"

static const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED,
			     MPI_THREAD_MULTIPLE};

/* Each rank sends its number in the world to all, and adds up what comes. */
static int add_numbers(MPI_Comm comm, int number, long *sum, struct embeng_error *error)
{
	struct embeng_transport transport;
	struct embeng_bytes send[64], came[64];
	struct embeng_exchange x = {.size = sizeof(x), .phase = "sum", .send = send};
	struct embeng_group *g;
	int ret = embeng_mpi_transport(comm, 20000000000u, &transport, error);

	ret = ret ? ret : embeng_group_open(&transport, NULL, &g, error);
	if (ret)
		return ret;
	for (uint32_t rank = 0; rank < transport.ranks; rank++)
		send[rank] = (struct embeng_bytes){&number, sizeof(number)};
	*sum = 0;
	for (x.step = 1; x.step <= 3 && !ret; x.step++) {
		ret = embeng_group_exchange(g, &x, came, error);
		for (uint32_t rank = 0; rank < transport.ranks && !ret; rank++)
			*sum += *(const int *)came[rank].data;
	}
	embeng_group_close(g);
	return ret;
}

int main(int argc, char **argv)
{
	struct embeng_error error = {.size = sizeof(error)};
	int rank, ranks, level, own = -1, sent, ret;
	MPI_Request requests[2];
	MPI_Status statuses[2];
	long all = 0, half = 0;
	MPI_Comm comm;

	MPI_Init_thread(&argc, &argv, levels[argc > 1 ? atoi(argv[1]) & 3 : 3], &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	sent = 1000 + rank;
	MPI_Irecv(&own, 1, MPI_INT, (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, &requests[0]);
	ret = add_numbers(MPI_COMM_WORLD, rank + 1, &all, &error);
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comm);
	ret = ret ? ret : add_numbers(comm, rank + 1, &half, &error);
	ret = ret ? ret : add_numbers(MPI_COMM_WORLD, rank + 1, &all, &error);
	MPI_Isend(&sent, 1, MPI_INT, (rank + 1) % ranks, 0, MPI_COMM_WORLD, &requests[1]);
	MPI_Waitall(2, requests, statuses);
	MPI_Comm_free(&comm);
	if (ret)
		printf("rank %d of %d: %d: %s\n", rank, ranks, ret, error.text);
	else
		printf("rank %d of %d: all %ld, half %ld, own %d\n", rank, ranks, all, half, own);
	fflush(stdout);
	MPI_Finalize();
	return ret ? 3 : 0;
}
