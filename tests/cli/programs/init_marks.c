// Around MPI_Init, in the system calls of a process: "/mark/begin" and "/mark/end" by the program,
// and by the same file as a tool behind Weft (AS_A_TOOL) "/mark/library" before and after the MPI
// library's own part.
#include <mpi.h>
#include <unistd.h>

#if defined(AS_A_TOOL)
static void mark(void) {
  access("/mark/library", F_OK);
}

int MPI_Init(int* argc, char*** argv) {
  mark();
  const int code = PMPI_Init(argc, argv);
  mark();
  return code;
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  mark();
  const int code = PMPI_Init_thread(argc, argv, required, provided);
  mark();
  return code;
}
#else
int main(int argc, char** argv) {
  access("/mark/begin", F_OK);
  MPI_Init(&argc, &argv);
  access("/mark/end", F_OK);
  return MPI_Finalize();
}
#endif
