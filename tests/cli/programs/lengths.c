/* lengths FORM CALLS PHASES: alltoallvs of a communicator in this form (blocking, nonblocking, or
 * persistent, with a new request in each phase), short ones and longer ones in turn, CALLS in each
 * phase, in a planted state of the machine (planted_state.c): the library is faster for short ones,
 * Weft for longer ones. Says "right" if data are right and, in the phases after the first two, the
 * faster side carries out most calls. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Blocks of some pairs of ranks are GAP bytes longer. The parts of three ranks or more are on both
 * sides of 8 KiB (select/agreed_length.h). */
enum { MOST_RANKS = 4, SHORT = 1024, LONGER = 3072, GAP = 8, MOST = LONGER + GAP };

static unsigned char in[MOST_RANKS * MOST], out[MOST_RANKS * MOST];
static int sends[MOST_RANKS], gets[MOST_RANKS], places[MOST_RANKS];
static int rank, ranks, calls, wrong;
static int *copy_us, *library_us;
static const int* library_calls;

static void set_blocks(int bytes) {
  for (int peer = 0; peer < ranks; ++peer) {
    sends[peer] = bytes + GAP * ((rank + 2 * peer) % 3 == 0);
    gets[peer] = bytes + GAP * ((peer + 2 * rank) % 3 == 0);
    places[peer] = peer * MOST;
  }
}

#define BLOCKS in, sends, places, MPI_BYTE, out, gets, places, MPI_BYTE, MPI_COMM_WORLD

static void alltoallv(char form, MPI_Request* request) {
  if (form == 'b') {
    MPI_Alltoallv(BLOCKS);
    return;
  }
  if (form == 'n')
    MPI_Ialltoallv(BLOCKS, request);
  else
    MPI_Start(request);
  MPI_Wait(request, MPI_STATUS_IGNORE);
}

static unsigned char byte(int from, int call, int at) {
  return (unsigned char)(call + 3 * at + from);
}

static void check(int call) {
  for (int peer = 0; peer < ranks; ++peer)
    for (int i = 0; i < MOST; ++i) {
      const unsigned char sent = byte(peer, call, rank * MOST + i);
      wrong |= out[peer * MOST + i] != (i < gets[peer] ? sent : 7);
    }
}

/* Returns how many calls of a phase the library has carried out. */
static int calls_of_library(char form) {
  int of_library = 0;
  MPI_Request request;
  if (form == 'p') MPI_Alltoallv_init(BLOCKS, MPI_INFO_NULL, &request);
  for (int call = 0; call < calls; ++call) {
    for (int i = 0; i < ranks * MOST; ++i) in[i] = byte(rank, call, i);
    memset(out, 7, sizeof out);
    const int before = *library_calls;
    alltoallv(form, &request);
    of_library += *library_calls == before + 1;
    check(call);
  }
  if (form == 'p') MPI_Request_free(&request);
  return of_library;
}

int main(int argc, char** argv) {
  copy_us = dlsym(RTLD_DEFAULT, "planted_copy_us");
  library_us = dlsym(RTLD_DEFAULT, "planted_library_us");
  library_calls = dlsym(RTLD_DEFAULT, "planted_library_calls");
  if (argc < 4 || !copy_us || !library_us || !library_calls) return 2;
  const char form = argv[1][0];
  calls = atoi(argv[2]);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int phase = 0; phase < atoi(argv[3]); ++phase) {
    const int is_long = phase % 2;
    *copy_us = is_long ? 100 : 1000;
    *library_us = is_long ? 3000 : 500;
    set_blocks(is_long ? LONGER : SHORT);
    const int of_library = calls_of_library(form);
    const int of_slower = is_long ? of_library : calls - of_library;
    printf("rank %d, %s: the library has %d of %d\n", rank, is_long ? "longer" : "short",
           of_library, calls);
    wrong |= phase >= 2 && of_slower > calls / 2;
  }
  MPI_Finalize();
  if (!wrong) printf("right\n");
  return 0;
}
