// Prints why no collective can be enqueued in a stream on a machine without a GPU driver.
#include <mpi.h>
#include <stdio.h>

#include "weft_gpu.h"

int main(int argc, char** argv) {
  int level;
  weft_gpu_request request;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  const int code = weft_ibarrier_enqueue(MPI_COMM_WORLD, NULL, &request);
  printf("%s\n", weft_gpu_error());
  MPI_Finalize();
  return code == MPI_SUCCESS;
}
