/* own_accesses FILE SECONDS rget|file|partitioned: what rank 0 starts with rank 1 and then leaves
   alone, making no MPI call until it is there. Prints "helped"; or "alone", where nobody has
   brought it forward for so many seconds. What has arrived is compared. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { COUNT = 1 << 18, PARTS = 4 };

static int rank, seconds;
static volatile double* said; /* shared by both */

static void fail(const char* what) {
  fprintf(stderr, "rank %d: %s is wrong\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* False: not in time. */
static int becomes(const volatile double* word, double value) {
  const time_t since = time(NULL);
  while (*word != value)
    if (time(NULL) - since > seconds) return 0;
  return 1;
}

static void check(const double* in) {
  for (int i = 0; i < COUNT; ++i)
    if (in[i] != i + 1) fail("what has arrived");
}

static int get(double* in) {
  double* base;
  MPI_Win window;
  MPI_Request request;
  int there = 1;
  MPI_Win_allocate(COUNT * sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base,
                   &window);
  for (int i = 0; i < COUNT; ++i) base[i] = i + 1;
  MPI_Win_fence(0, window);
  if (rank == 0) {
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window);
    MPI_Rget(in, COUNT, MPI_DOUBLE, 1, 0, COUNT, MPI_DOUBLE, window, &request);
    there = becomes(&in[COUNT - 1], COUNT);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_unlock(1, window);
    check(in);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_free(&window);
  return there;
}

static int write_file(const char* name, double* out) {
  MPI_File file;
  MPI_Request request;
  int there = 1;
  MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  MPI_File_iwrite_at_all(file, (MPI_Offset)(rank * COUNT * sizeof *out), out, COUNT, MPI_DOUBLE,
                         &request);
  if (rank == 0) there = becomes(&said[0], 1);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (rank == 1) said[0] = 1;
  memset(out, 0, COUNT * sizeof *out);
  MPI_File_read_at(file, (MPI_Offset)(rank * COUNT * sizeof *out), out, COUNT, MPI_DOUBLE,
                   MPI_STATUS_IGNORE);
  check(out);
  MPI_File_close(&file);
  return there;
}

static int partitioned(const double* out, double* in) {
  MPI_Request request;
  int there = 1;
  if (rank == 0)
    MPI_Precv_init(in, PARTS, COUNT / PARTS, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
                   &request);
  else
    MPI_Psend_init(out, PARTS, COUNT / PARTS, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
                   &request);
  MPI_Start(&request);
  for (int part = 0; rank == 1 && part < PARTS; ++part) MPI_Pready(part, request);
  for (int part = 0; rank == 0 && part < PARTS; ++part)
    there = becomes(&in[(part + 1) * COUNT / PARTS - 1], (part + 1) * COUNT / PARTS) && there;
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (rank == 0) check(in);
  MPI_Request_free(&request);
  return there;
}

int main(int argc, char** argv) {
  const int file = open(argv[1], O_RDWR | O_CREAT, 0600);
  double* const out = malloc(COUNT * sizeof *out);
  double* const in = calloc(COUNT, sizeof *in);
  int there;
  seconds = atoi(argv[2]);
  if (ftruncate(file, 4096) != 0) return 1;
  said = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < COUNT; ++i) out[i] = i + 1;
  if (strcmp(argv[3], "rget") == 0)
    there = get(in);
  else if (strcmp(argv[3], "file") == 0)
    there = write_file(argv[4], out);
  else
    there = partitioned(out, in);
  if (rank == 0) printf("%s\n", there ? "helped" : "alone");
  MPI_Finalize();
  free(out);
  free(in);
  return 0;
}
