/* states FORM CALLS COPY_US:LIBRARY_US...: bcasts of 2 KiB in this form (blocking, nonblocking, or
 * persistent, with a new request for every CALLS), while the machine is in one planted state after
 * the other (planted_state.c). Each state lasts for twice as many calls. Says "right" if data are
 * right, the faster side, Weft or the library, carries out nearly all calls of each second half,
 * and blocking calls are compared a few times at most. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 2048, MOST_COMPARISONS = 5 };

static unsigned char data[BYTES];
static int rank, ranks, calls, wrong, comparisons;
static const int* library_calls;

static void bcast(char form, MPI_Request* request) {
  if (form == 'b') {
    MPI_Bcast(data, BYTES, MPI_BYTE, 0, MPI_COMM_WORLD);
    return;
  }
  if (form == 'n')
    MPI_Ibcast(data, BYTES, MPI_BYTE, 0, MPI_COMM_WORLD, request);
  else
    MPI_Start(request);
  MPI_Wait(request, MPI_STATUS_IGNORE);
}

/* The root of a bcast may be far ahead of the others, which delays what the ranks agree on. */
static void let_others_catch_up(void) {
  for (int other = 1; rank == 0 && other < ranks; ++other)
    MPI_Recv(NULL, 0, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank != 0) MPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
}

/* Returns how many of so many calls the library has carried out. */
static int calls_of_library(char form) {
  int of_library = 0;
  MPI_Request request;
  if (form == 'p')
    MPI_Bcast_init(data, BYTES, MPI_BYTE, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int call = 0; call < calls; ++call) {
    const int before = *library_calls;
    if (rank == 0) memset(data, call, BYTES);
    bcast(form, &request);
    of_library += *library_calls == before + 1;
    comparisons += *library_calls > before + 1;
    if (call % 4 == 0) let_others_catch_up();
    for (int i = 0; i < BYTES; ++i) wrong |= data[i] != (unsigned char)call;
  }
  if (form == 'p') MPI_Request_free(&request);
  return of_library;
}

int main(int argc, char** argv) {
  int* const copy_us = dlsym(RTLD_DEFAULT, "planted_copy_us");
  int* const library_us = dlsym(RTLD_DEFAULT, "planted_library_us");
  const char form = argc > 1 ? argv[1][0] : 'b';
  library_calls = dlsym(RTLD_DEFAULT, "planted_library_calls");
  if (!copy_us || !library_us || !library_calls) return 2;
  calls = argc > 2 ? atoi(argv[2]) : 300;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int state = 3; state < argc; ++state) {
    if (sscanf(argv[state], "%d:%d", copy_us, library_us) != 2) return 2;
    comparisons = 0;
    const int at_first = calls_of_library(form);
    const int then = calls_of_library(form);
    const int of_slower = *library_us < *copy_us ? calls - then : then;
    printf("rank %d, %s: the library has %d, then %d of %d; %d comparisons\n", rank, argv[state],
           at_first, then, calls, comparisons);
    wrong |= of_slower > calls / 10 || (form == 'b' && comparisons > MOST_COMPARISONS);
  }
  MPI_Finalize();
  if (!wrong) printf("right\n");
  return 0;
}
