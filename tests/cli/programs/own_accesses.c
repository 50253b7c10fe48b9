/* Usage: own_accesses FILE SECONDS WHAT. Rank 0 starts the transfer WHAT with rank 1 and makes
 * no MPI call until the data have arrived. It prints "helped"; or "alone" if the transfer did
 * not progress within SECONDS. The data that have arrived are checked. WHAT: put, get,
 * accumulate, get_accumulate (without requests), rget, file, partitioned, or posted or fenced:
 * accesses of rank 1 to a window that rank 0 has exposed by MPI_Win_post or MPI_Win_fence. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { COUNT = 1 << 18, PARTS = 4 };

static int rank;
static double seconds;
static volatile double* said; /* memory that both ranks share */

static void fail(const char* what) {
  fprintf(stderr, "rank %d: %s is wrong\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + 1e-9 * time.tv_nsec;
}

/* Waits until *word is `value`. Returns 0 if that takes more than `seconds`. */
static int becomes(const volatile double* word, double value) {
  const double since = now();
  while (*word != value)
    if (now() - since > seconds) return 0;
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

/* Rank 1 calls MPI all the time, until the data have arrived or rank 0 has given up. */
static void serve(const volatile double* word, double value) {
  int found;
  while (*word != value && said[1] == 0)
    MPI_Iprobe(0, 99, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
  said[0] = 1;
}

/* The window lies in the program's own memory, so that the library cannot share it with other
 * ranks beforehand. */
static int access_window(const char* what, const double* out, double* in) {
  const int puts = strcmp(what, "put") == 0, gets = strcmp(what, "get") == 0;
  const int accumulates = strcmp(what, "accumulate") == 0, brings = puts || accumulates;
  double* const base = malloc(COUNT * sizeof *base);
  MPI_Win window;
  int there = 1;
  for (int i = 0; i < COUNT; ++i) base[i] = brings ? 0 : i + 1;
  MPI_Win_create(base, COUNT * sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_fence(0, window);
  if (rank == 1) {
    serve(brings ? &base[COUNT - 1] : &said[2], brings ? COUNT : 1);
  } else {
    if (puts)
      MPI_Put(out, COUNT, MPI_DOUBLE, 1, 0, COUNT, MPI_DOUBLE, window);
    else if (gets)
      MPI_Get(in, COUNT, MPI_DOUBLE, 1, 0, COUNT, MPI_DOUBLE, window);
    else if (accumulates)
      MPI_Accumulate(out, COUNT, MPI_DOUBLE, 1, 0, COUNT, MPI_DOUBLE, MPI_SUM, window);
    else
      MPI_Get_accumulate(out, COUNT, MPI_DOUBLE, in, COUNT, MPI_DOUBLE, 1, 0, COUNT, MPI_DOUBLE,
                         MPI_REPLACE, window);
    there = brings ? becomes(&said[0], 1) : becomes(&in[COUNT - 1], COUNT);
    said[brings ? 1 : 2] = 1;
  }
  MPI_Win_fence(0, window);
  if (rank == 1) check(base);
  if (rank == 0 && !brings) check(in);
  MPI_Win_free(&window);
  free(base);
  return there;
}

static int open_window(const double* out, int fences) {
  const int other = 1 - rank;
  double* const base = calloc(COUNT, sizeof *base);
  MPI_Group world, others;
  MPI_Win window;
  int there = 1;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 1, &other, &others);
  MPI_Win_create(base, COUNT * sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  if (fences)
    MPI_Win_fence(0, window);
  else if (rank == 0)
    MPI_Win_post(others, 0, window);
  else
    MPI_Win_start(others, 0, window);
  if (rank == 0)
    there = becomes(&base[COUNT - 1], COUNT);
  else
    MPI_Put(out, COUNT, MPI_DOUBLE, 0, 0, COUNT, MPI_DOUBLE, window);
  if (fences)
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
  else if (rank == 0)
    MPI_Win_wait(window);
  else
    MPI_Win_complete(window);
  if (rank == 0) check(base);
  MPI_Win_free(&window);
  MPI_Group_free(&others);
  MPI_Group_free(&world);
  free(base);
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
  seconds = atof(argv[2]);
  if (ftruncate(file, 4096) != 0) return 1;
  said = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < COUNT; ++i) out[i] = i + 1;
  if (strcmp(argv[3], "rget") == 0)
    there = get(in);
  else if (strcmp(argv[3], "file") == 0)
    there = write_file(argv[4], out);
  else if (strcmp(argv[3], "partitioned") == 0)
    there = partitioned(out, in);
  else if (strcmp(argv[3], "posted") == 0 || strcmp(argv[3], "fenced") == 0)
    there = open_window(out, strcmp(argv[3], "fenced") == 0);
  else
    there = access_window(argv[3], out, in);
  if (rank == 0) printf("%s\n", there ? "helped" : "alone");
  MPI_Finalize();
  free(out);
  free(in);
  return 0;
}
