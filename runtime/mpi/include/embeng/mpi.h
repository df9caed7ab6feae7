/* SPDX-License-Identifier: MIT */
/*
 * Groups over a communicator of the program. This is the only header of embeng that includes mpi.h.
 * Link libembeng-openmpi or libembeng-mpich, whichever the program's MPI is.
 */
#ifndef EMBENG_MPI_API_H
#define EMBENG_MPI_API_H

#include <mpi.h>

#include <embeng/group.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * embeng_mpi_transport() - make a transport of a communicator
 * @comm: intra-communicator, all of whose ranks call. It is duplicated, and the duplicate is kept
 *	with it for later calls; the program's own messages cannot meet the group's
 * @deadline_ns: time that the others may take until they call, too; 0: 5 minutes
 * @out: for embeng_group_open()
 * @error: NULL, or where the sentence goes
 *
 * MPI must have been initialised with MPI_THREAD_MULTIPLE, since a group's thread calls it beside the
 * program. Close the group before the communicator is freed and before MPI_Finalize().
 *
 * Return: 0; -EINVAL; -ENOTSUP (too few threads); -ESHUTDOWN (MPI was not initialised, or was
 * finalized); -EPROTO (a launcher that this MPI does not know started several processes);
 * -ETIME (not all ranks called); -ENOMEM; -EIO (MPI failed).
 */
EMBENG_API int embeng_mpi_transport(MPI_Comm comm, uint64_t deadline_ns,
				    struct embeng_transport *out, struct embeng_error *error);

#ifdef __cplusplus
}
#endif

#endif
