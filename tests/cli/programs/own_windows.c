/* Usage: own_windows FILE SECONDS WHAT. It tests windows that other ranks lock and access.
 * answers: rank 0 makes no MPI call until rank 1 has locked, accessed and unlocked its windows,
 * by every call and in windows of every kind. It prints "right"; or "alone" if that has not
 * happened within SECONDS. values: all ranks access each other's windows with every kind of
 * synchronisation and check the data. Rank 0 prints "right". ends: windows are freed in another
 * order, stay until MPI_Finalize, or have the info no_locks. Rank 0 prints "right". */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "own_thread.h"

enum { COUNT = 1 << 14, MOST_RANKS = 8 };
enum { GET, PUT, ACCUMULATE, GET_ACCUMULATE, FETCH, SWAP, GET_BY_REQUEST, CALLS };
enum { CREATED, ALLOCATED, DYNAMIC, SHARED, KINDS };
enum { LOCK, LOCK_ALL, FENCE, POST, WAYS };

static int rank, ranks;
static double seconds;
static volatile int* said; /* memory that all ranks share */

static void fail(const char* what) {
  fprintf(stderr, "rank %d: %s is wrong\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + 1e-9 * time.tv_nsec;
}

/* Waits until *word is `value`. Returns 0 if that takes too long. */
static int becomes(const volatile int* word, int value) {
  const double since = now();
  while (*word != value)
    if (now() - since > seconds) return 0;
  return 1;
}

typedef struct {
  MPI_Win window;
  long* base;
  MPI_Aint at[MOST_RANKS]; /* displacement of each rank's part */
  int is_own;              /* whether the program has allocated the memory */
} Window;

static long initial(int of, int i) {
  return 1000 * of + i;
}

static Window make(int kind, MPI_Info info) {
  Window made;
  const MPI_Aint bytes = COUNT * sizeof(long);
  memset(&made, 0, sizeof made);
  if (kind == CREATED) {
    made.is_own = 1;
    made.base = malloc(bytes);
    MPI_Win_create(made.base, bytes, sizeof(long), info, MPI_COMM_WORLD, &made.window);
  } else if (kind == ALLOCATED) {
    MPI_Win_allocate(bytes, sizeof(long), info, MPI_COMM_WORLD, &made.base, &made.window);
  } else if (kind == DYNAMIC) {
    made.is_own = 1;
    made.base = malloc(bytes);
    MPI_Win_create_dynamic(info, MPI_COMM_WORLD, &made.window);
    MPI_Win_attach(made.window, made.base, bytes);
    MPI_Get_address(made.base, &made.at[rank]);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_AINT, made.at, 1, MPI_AINT, MPI_COMM_WORLD);
  } else {
    MPI_Win_allocate_shared(bytes, sizeof(long), info, MPI_COMM_WORLD, &made.base, &made.window);
  }
  return made;
}

static void free_it(Window* made, int kind) {
  if (kind == DYNAMIC) MPI_Win_detach(made->window, made->base);
  MPI_Win_free(&made->window);
  if (made->is_own) free(made->base);
}

/* Accesses the first `count` words at the target once. Fetched words go to `in`. The comparison
 * of a compare-and-swap finds the initial word, so it succeeds. */
static void access_by(int call, int target, int count, const long* out, long* in,
                      const Window* of) {
  const MPI_Aint at = of->at[target];
  const long first = initial(target, 0);
  const MPI_Win w = of->window;
  MPI_Request request;
  switch (call) {
    case GET:
      MPI_Get(in, count, MPI_LONG, target, at, count, MPI_LONG, w);
      break;
    case PUT:
      MPI_Put(out, count, MPI_LONG, target, at, count, MPI_LONG, w);
      break;
    case ACCUMULATE:
      MPI_Accumulate(out, count, MPI_LONG, target, at, count, MPI_LONG, MPI_SUM, w);
      break;
    case GET_ACCUMULATE:
      MPI_Get_accumulate(out, count, MPI_LONG, in, count, MPI_LONG, target, at, count, MPI_LONG,
                         MPI_SUM, w);
      break;
    case FETCH:
      MPI_Fetch_and_op(out, in, MPI_LONG, target, at, MPI_SUM, w);
      break;
    case SWAP:
      MPI_Compare_and_swap(out, &first, in, MPI_LONG, target, at, w);
      break;
    case GET_BY_REQUEST:
      MPI_Rget(in, count, MPI_LONG, target, at, count, MPI_LONG, w, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      break;
  }
}

/* Rank 1 makes every access in an epoch of its own, with few and with many words, while rank 0
 * computes. */
static void access_all(const Window* of) {
  long* const in = malloc(COUNT * sizeof *in);
  long* const out = malloc(COUNT * sizeof *out);
  for (int i = 0; i < COUNT; ++i) out[i] = 1;
  for (int call = 0; call < 2 * CALLS; ++call) {
    const int count = call < CALLS ? 1 : COUNT;
    MPI_Win_lock(call % 2 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 0, 0, of->window);
    access_by(call % CALLS, 0, count, out, in, of);
    MPI_Win_unlock(0, of->window);
  }
  MPI_Win_lock_all(0, of->window);
  for (int call = 0; call < CALLS; ++call) {
    access_by(call, 0, 1, out, in, of);
    MPI_Win_flush(0, of->window);
  }
  MPI_Win_unlock_all(of->window);
  free(in);
  free(out);
}

static int answers(int kind) {
  Window made = make(kind, MPI_INFO_NULL);
  int there = 1;
  if (rank == 1) {
    access_all(&made);
    said[kind] = 1;
  } else if (rank == 0) {
    there = becomes(&said[kind], 1);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  free_it(&made, kind);
  return there;
}

/* Values ----------------------------------------------------------------------------------------*/

static void begin(int way, int target, MPI_Group all, MPI_Win w) {
  if (way == LOCK) MPI_Win_lock(MPI_LOCK_SHARED, target, 0, w);
  if (way == LOCK_ALL) MPI_Win_lock_all(0, w);
  if (way == FENCE) MPI_Win_fence(0, w);
  if (way == POST) {
    MPI_Win_post(all, 0, w);
    MPI_Win_start(all, 0, w);
  }
}

static void end(int way, int target, MPI_Win w) {
  if (way == LOCK) MPI_Win_unlock(target, w);
  if (way == LOCK_ALL) {
    MPI_Win_flush(target, w);
    MPI_Win_unlock_all(w);
  }
  if (way == FENCE) MPI_Win_fence(0, w);
  if (way == POST) {
    MPI_Win_complete(w);
    MPI_Win_wait(w);
  }
}

static long sent(int by, int i) {
  return 10 * by + i + 1;
}

/* Checks the effects of a call. The previous rank has accessed this rank's window, and this rank
 * the next rank's. */
static void compare(int call, int count, const long* base, const long* in) {
  const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
  const int is_fetched = call != PUT && call != ACCUMULATE;
  const int replaces = call == PUT || call == SWAP;
  const int adds = call == ACCUMULATE || call == GET_ACCUMULATE || call == FETCH;
  for (int i = 0; i < count; ++i) {
    const long was = initial(rank, i), came = sent(before, i);
    if (base[i] != (replaces ? came : adds ? was + came : was)) fail("what others have brought");
    if (is_fetched && in[i] != initial(next, i)) fail("what has been fetched");
  }
}

static void set(const Window* of) {
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, of->window);
  for (int i = 0; i < COUNT; ++i) of->base[i] = initial(rank, i);
  MPI_Win_unlock(rank, of->window);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void values(int kind) {
  Window made = make(kind, MPI_INFO_NULL);
  const int next = (rank + 1) % ranks;
  long* const in = malloc(COUNT * sizeof *in);
  long* const out = malloc(COUNT * sizeof *out);
  MPI_Group all;
  MPI_Win_get_group(made.window, &all);
  for (int i = 0; i < COUNT; ++i) out[i] = sent(rank, i);
  for (int way = LOCK; way < WAYS; ++way)
    for (int each = 0; each < 2 * CALLS; ++each) {
      const int call = each % CALLS;
      const int count = each < CALLS || call == FETCH || call == SWAP ? 1 : COUNT;
      if (call == GET_BY_REQUEST && way >= FENCE) continue; /* MPI_Rget needs a lock */
      set(&made);
      begin(way, next, all, made.window);
      access_by(call, next, count, out, in, &made);
      end(way, next, made.window);
      MPI_Barrier(MPI_COMM_WORLD);
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, made.window);
      compare(call, count, made.base, in);
      MPI_Win_unlock(rank, made.window);
    }
  MPI_Group_free(&all);
  free(in);
  free(out);
  free_it(&made, kind);
}

/* Ends ------------------------------------------------------------------------------------------*/

static void thread_comes_to_rest(void) {
  const double since = now();
  for (long seen = -2, new; (new = sleeps_of_thread()) != seen; seen = new) {
    if (now() - since > seconds) fail("the thread's rest");
    usleep(100000);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void ends(void) {
  static const int order[] = {1, 2, 0};
  Window made[3];
  MPI_Info info;
  for (int i = 0; i < 3; ++i) made[i] = make(CREATED, MPI_INFO_NULL);
  for (int i = 0; i < 3; ++i) free_it(&made[order[i]], CREATED);
  thread_comes_to_rest();
  MPI_Info_create(&info);
  MPI_Info_set(info, "no_locks", "true");
  made[0] = make(ALLOCATED, info);
  thread_comes_to_rest();
  MPI_Win_fence(0, made[0].window);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, made[0].window);
  free_it(&made[0], ALLOCATED);
  MPI_Info_free(&info);
  make(ALLOCATED, MPI_INFO_NULL); /* is not freed before MPI_Finalize */
}

/* Returns whether all ranks can share the memory of a window. */
static int on_one_node(void) {
  MPI_Comm node;
  int size;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_size(node, &size);
  MPI_Comm_free(&node);
  return size == ranks;
}

int main(int argc, char** argv) {
  const int file = open(argv[1], O_RDWR | O_CREAT, 0600);
  int kinds, there = 1;
  seconds = atof(argv[2]);
  if (ftruncate(file, 4096) != 0) return 1;
  said = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  kinds = on_one_node() ? KINDS : SHARED;
  if (strcmp(argv[3], "ends") == 0) ends();
  for (int kind = 0; kind < kinds; ++kind)
    if (strcmp(argv[3], "answers") == 0)
      there = answers(kind) && there;
    else if (strcmp(argv[3], "values") == 0)
      values(kind);
  if (rank == 0) printf("%s\n", there ? "right" : "alone");
  MPI_Finalize();
  return 0;
}
