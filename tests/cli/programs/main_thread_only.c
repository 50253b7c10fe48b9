/* A PMPI tool between Weft and the MPI library. It ends the process if another thread than the
 * main one calls a function that Weft uses while collectives are in flight. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void check(const char* name) {
  if (gettid() == getpid()) return;
  fprintf(stderr, "%s on another thread\n", name);
  _exit(3);
}

#define WATCHED(name, parameters, arguments)             \
  int name parameters {                                  \
    static int(*next) parameters;                        \
    check(#name);                                        \
    if (!next) *(void**)&next = dlsym(RTLD_NEXT, #name); \
    return next arguments;                               \
  }

WATCHED(PMPI_Grequest_complete, (MPI_Request r), (r))
WATCHED(PMPI_Send, (const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c),
        (b, n, t, to, tag, c))
WATCHED(PMPI_Isend,
        (const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request* r),
        (b, n, t, to, tag, c, r))
WATCHED(PMPI_Irecv, (void* b, int n, MPI_Datatype t, int by, int tag, MPI_Comm c, MPI_Request* r),
        (b, n, t, by, tag, c, r))
WATCHED(PMPI_Test, (MPI_Request * r, int* flag, MPI_Status* s), (r, flag, s))
WATCHED(PMPI_Iprobe, (int by, int tag, MPI_Comm c, int* flag, MPI_Status* s), (by, tag, c, flag, s))
WATCHED(PMPI_Pack, (const void* b, int n, MPI_Datatype t, void* to, int size, int* at, MPI_Comm c),
        (b, n, t, to, size, at, c))
WATCHED(PMPI_Unpack,
        (const void* b, int size, int* at, void* to, int n, MPI_Datatype t, MPI_Comm c),
        (b, size, at, to, n, t, c))
WATCHED(PMPI_Type_free, (MPI_Datatype * t), (t))
WATCHED(PMPI_Op_free, (MPI_Op * o), (o))
WATCHED(PMPI_Comm_free, (MPI_Comm * c), (c))
