/* The MPI functions that a case of looked_up.cc uses, as it has found them. The header is also
 * valid C, for the plugin. */
#ifndef FAULTS_LOOKED_UP_CALLS_H
#define FAULTS_LOOKED_UP_CALLS_H

#include <mpi.h>

struct mpi_calls {
  int (*Iallreduce)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request*);
  int (*Allreduce_init)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info,
                        MPI_Request*);
  int (*Start)(MPI_Request*);
  int (*Wait)(MPI_Request*, MPI_Status*);
  int (*Waitall)(int, MPI_Request*, MPI_Status*);
  int (*Test)(MPI_Request*, int*, MPI_Status*);
  int (*Request_free)(MPI_Request*);
};

#endif
