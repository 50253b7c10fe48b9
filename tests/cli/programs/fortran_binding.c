/* The part of MPI's Fortran binding that programs of tests call, for MPI libraries without one. As
 * a program (-DHEADER) it prints their mpif.h. Statuses are ignored.
 *
 * Why not the binding of another library: it uses more of its own library than MPI's calls. */
#include <mpi.h>
#include <stdio.h>

#ifdef HEADER
static void constant(const char* name, long value) {
  printf("      integer, parameter :: %s = %ld\n", name, value);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  constant("MPI_COMM_WORLD", MPI_Comm_c2f(MPI_COMM_WORLD));
  constant("MPI_REQUEST_NULL", MPI_Request_c2f(MPI_REQUEST_NULL));
  constant("MPI_INFO_NULL", MPI_Info_c2f(MPI_INFO_NULL));
  constant("MPI_DOUBLE_PRECISION", MPI_Type_c2f(MPI_DOUBLE));
  constant("MPI_SUM", MPI_Op_c2f(MPI_SUM));
  constant("MPI_MAX", MPI_Op_c2f(MPI_MAX));
  constant("MPI_SUCCESS", MPI_SUCCESS);
  constant("MPI_ADDRESS_KIND", sizeof(MPI_Aint));
  constant("MPI_STATUS_IGNORE", 0);
  puts("      integer :: MPI_IN_PLACE");
  puts("      common /weft_in_place/ MPI_IN_PLACE");
  return MPI_Finalize();
}
#else
typedef const MPI_Fint* In;
int weft_in_place_;

#define SENT(buffer) ((buffer) == (void*)&weft_in_place_ ? MPI_IN_PLACE : (buffer))
#define ARGUMENTS *count, MPI_Type_f2c(*type)
#define REDUCED SENT(send), receive, ARGUMENTS, MPI_Op_f2c(*op), MPI_Comm_f2c(*comm)
#define SPREAD buffer, ARGUMENTS, *root, MPI_Comm_f2c(*comm)
#define REDUCTION void *send, void *receive, In count, In type, In op, In comm
#define BROADCAST void *buffer, In count, In type, In root, In comm
/* Calls a function with a request, whose handle the program gets. */
#define WITH_REQUEST(call)                     \
  MPI_Request own = MPI_Request_f2c(*request); \
  *error = call;                               \
  *request = MPI_Request_c2f(own)

void mpi_init_(MPI_Fint* error) {
  *error = MPI_Init(NULL, NULL);
}
void mpi_finalize_(MPI_Fint* error) {
  *error = MPI_Finalize();
}
void mpi_comm_rank_(In comm, MPI_Fint* rank, MPI_Fint* error) {
  *error = MPI_Comm_rank(MPI_Comm_f2c(*comm), rank);
}
void mpi_comm_split_(In comm, In color, In key, MPI_Fint* made, MPI_Fint* error) {
  MPI_Comm own;
  *error = MPI_Comm_split(MPI_Comm_f2c(*comm), *color, *key, &own);
  *made = MPI_Comm_c2f(own);
}
void mpi_allreduce_(REDUCTION, MPI_Fint* error) {
  *error = MPI_Allreduce(REDUCED);
}
void mpi_iallreduce_(REDUCTION, MPI_Fint* request, MPI_Fint* error) {
  WITH_REQUEST(MPI_Iallreduce(REDUCED, &own));
}
void mpi_allreduce_init_(REDUCTION, In info, MPI_Fint* request, MPI_Fint* error) {
  WITH_REQUEST(MPI_Allreduce_init(REDUCED, MPI_Info_f2c(*info), &own));
}
void mpi_bcast_(BROADCAST, MPI_Fint* error) {
  *error = MPI_Bcast(SPREAD);
}
void mpi_ibcast_(BROADCAST, MPI_Fint* request, MPI_Fint* error) {
  WITH_REQUEST(MPI_Ibcast(SPREAD, &own));
}
void mpi_bcast_init_(BROADCAST, In info, MPI_Fint* request, MPI_Fint* error) {
  WITH_REQUEST(MPI_Bcast_init(SPREAD, MPI_Info_f2c(*info), &own));
}
void mpi_start_(MPI_Fint* request, MPI_Fint* error) {
  WITH_REQUEST(MPI_Start(&own));
}
void mpi_wait_(MPI_Fint* request, In status, MPI_Fint* error) {
  (void)status;
  WITH_REQUEST(MPI_Wait(&own, MPI_STATUS_IGNORE));
}
void mpi_request_free_(MPI_Fint* request, MPI_Fint* error) {
  WITH_REQUEST(MPI_Request_free(&own));
}
void mpi_get_address_(void* place, MPI_Aint* address, MPI_Fint* error) {
  *error = MPI_Get_address(place, address);
}
#endif
