/* A plugin that is opened with RTLD_DEEPBIND, so that it finds the MPI library, to which it is
 * linked, before preloaded libraries. Its table of functions is bound when the plugin is opened.
 * Its own calls are bound when they are first made. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "looked_up_calls.h"

const struct mpi_calls plugin_table = {
    PMPI_Iallreduce, MPI_Allreduce_init, PMPI_Start,        MPI_Wait,
    PMPI_Waitall,    MPI_Test,           PMPI_Request_free,
};

static int Iallreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op,
                      MPI_Comm comm, MPI_Request* request) {
  return MPI_Iallreduce(in, out, count, type, op, comm, request);
}

static int Allreduce_init(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op,
                          MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return PMPI_Allreduce_init(in, out, count, type, op, comm, info, request);
}

static int Start(MPI_Request* request) {
  return MPI_Start(request);
}
static int Wait(MPI_Request* request, MPI_Status* status) {
  return PMPI_Wait(request, status);
}
static int Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  return MPI_Waitall(count, requests, statuses);
}
static int Test(MPI_Request* request, int* flag, MPI_Status* status) {
  return PMPI_Test(request, flag, status);
}
static int Request_free(MPI_Request* request) {
  return MPI_Request_free(request);
}

const struct mpi_calls plugin_functions = {
    Iallreduce, Allreduce_init, Start, Wait, Waitall, Test, Request_free,
};

void* plugin_finds(const char* name) {
  return dlsym(RTLD_DEFAULT, name);
}
