// Compares collectives with counts for each rank with the MPI library's own, on a communicator that
// Weft leaves to the library. Every call has other counts: some are 0, some are not 0 on one rank
// only, some are large. The calls are blocking, non-blocking with several in flight, and
// persistent; they are made by all ranks and by some.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kKinds = 5, kMostRanks = 8, kMostInFlight = 3, kGap = 3 };
enum { kForms = 3, kBlocking = 0, kNonblocking = 1, kPersistent = 2 };

typedef struct {
  MPI_Comm weft, library;
  int rank, size;
} Ranks;

typedef struct {
  int kind, root, longest;
  int sends[kMostRanks], send_at[kMostRanks], gets[kMostRanks], get_at[kMostRanks];
  MPI_Datatype types[kMostRanks];
  int *in, *got, *wanted;
  size_t get_bytes;
} One;

static unsigned mixed(unsigned a, unsigned b, unsigned c, unsigned d) {
  unsigned h = a * 2654435761u ^ b * 40503u ^ c * 2246822519u ^ d * 97u;
  h = (h ^ (h >> 15)) * 2246822519u;
  return h ^ (h >> 13);
}

// Returns how many elements `from` sends to `to`. In an allgatherv the number is the same for all
// receivers.
static int elements(int kind, int number, int from, int to, int longest) {
  const unsigned h = mixed((unsigned)number, (unsigned)from, kind == 1 ? 0u : (unsigned)to, 5u);
  if (number % 7 == 3) return from == number % 3 ? longest : 0;
  if (number % 7 == 5) return longest;
  return h % 4 == 0 ? 0 : (int)(h / 4 % (unsigned)(longest + 1));
}

static void fill(One* one, const Ranks* ranks, int kind, int number, int longest) {
  one->kind = kind;
  one->root = number % ranks->size;
  one->longest = longest;
  int send_end = 0, get_end = 0;
  for (int i = 0; i < ranks->size; ++i) {
    one->sends[i] = elements(kind, number, ranks->rank, i, longest);
    one->gets[i] = elements(kind, number, i, ranks->rank, longest);
    if (kind == 2) one->gets[i] = elements(kind, number, i, one->root, longest);
    if (kind == 3) one->sends[i] = elements(kind, number, one->root, i, longest);
    one->send_at[i] = send_end;
    one->get_at[i] = get_end;
    send_end += one->sends[i] + kGap;
    get_end += one->gets[i] + kGap;
    one->types[i] = MPI_INT;
  }
  if (kind == 4)
    for (int i = 0; i < ranks->size; ++i) {
      one->send_at[i] *= (int)sizeof(int);
      one->get_at[i] *= (int)sizeof(int);
    }
  one->get_bytes = sizeof(int) * (size_t)(get_end + longest + 1);
  one->in = malloc(sizeof(int) * (size_t)(send_end + longest + 1));
  for (int i = 0; i < send_end + longest + 1; ++i)
    one->in[i] = (int)mixed((unsigned)number, (unsigned)ranks->rank, (unsigned)i, 1u);
  one->got = malloc(one->get_bytes);
  one->wanted = malloc(one->get_bytes);
  memset(one->got, 7, one->get_bytes);
  memset(one->wanted, 7, one->get_bytes);
}

#define V one->in, one->sends, one->send_at, MPI_INT
#define INTO(out) out, one->gets, one->get_at, MPI_INT
#define EACH(out) \
  one->in, one->sends, one->send_at, one->types, out, one->gets, one->get_at, one->types
#define BY_FORM(Name, name, ...)                                     \
  if (form == kBlocking) MPI_##Name(__VA_ARGS__, comm);              \
  if (form == kNonblocking) MPI_I##name(__VA_ARGS__, comm, request); \
  if (form == kPersistent) MPI_##Name##_init(__VA_ARGS__, comm, MPI_INFO_NULL, request);

static void call(One* one, const Ranks* ranks, int form, MPI_Comm comm, int* out,
                 MPI_Request* request) {
  const int root = one->root, rank = ranks->rank;
  const int own = one->kind == 2 ? one->sends[root] : one->sends[rank];
  switch (one->kind) {
    case 0:
      BY_FORM(Alltoallv, alltoallv, V, INTO(out))
      break;
    case 1:
      BY_FORM(Allgatherv, allgatherv, one->in, own, MPI_INT, INTO(out))
      break;
    case 2:
      BY_FORM(Gatherv, gatherv, one->in, own, MPI_INT, INTO(out), root)
      break;
    case 3:
      BY_FORM(Scatterv, scatterv, V, out, own, MPI_INT, root)
      break;
    default:
      BY_FORM(Alltoallw, alltoallw, EACH(out))
  }
}

static int check(One* one, const Ranks* ranks, int form) {
  call(one, ranks, kBlocking, ranks->library, one->wanted, NULL);
  const int is_right = memcmp(one->got, one->wanted, one->get_bytes) == 0;
  if (!is_right)
    printf("rank %d of %d: kind %d, form %d, up to %d elements: wrong\n", ranks->rank, ranks->size,
           one->kind, form, one->longest);
  free(one->in);
  free(one->got);
  free(one->wanted);
  return !is_right;
}

static int check_all(const Ranks* ranks, int calls) {
  static const int kLongest[] = {3, 40, 3000, 70000, 1 << 20};
  int wrong = 0;
  for (int number = 0; number < calls; ++number) {
    const int longest = kLongest[number % 5], kind = number / 5 % kKinds;
    const int form = number / 5 / kKinds % kForms;
    One all[kMostInFlight];
    MPI_Request requests[kMostInFlight];
    const int count = form == kBlocking ? 1 : kMostInFlight;
    for (int i = 0; i < count; ++i) {
      fill(&all[i], ranks, (kind + i) % kKinds, number + i, longest);
      call(&all[i], ranks, form, ranks->weft, all[i].got, &requests[i]);
    }
    for (int start = 0; form == kPersistent && start < 2; ++start) {
      MPI_Startall(count, requests);
      if (start == 0) MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    }
    if (form != kBlocking) MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    if (form == kPersistent)
      for (int i = 0; i < count; ++i) MPI_Request_free(&requests[i]);
    for (int i = 0; i < count; ++i) wrong += check(&all[i], ranks, form);
  }
  return wrong;
}

// Many short calls of one kind and form, then longer ones, and so on: short and longer ones are
// learnt about separately (runtime/adaptive/calls_by_length.h).
static int check_phases(const Ranks* ranks, int kind, int form) {
  enum { kCalls = 100, kPhases = 4, kShort = 3, kLonger = 5000 };
  int wrong = 0;
  for (int number = 0; number < kPhases * kCalls; ++number) {
    One one;
    MPI_Request request;
    fill(&one, ranks, kind, number, number / kCalls % 2 ? kLonger : kShort);
    call(&one, ranks, form, ranks->weft, one.got, &request);
    if (form == kNonblocking) MPI_Wait(&request, MPI_STATUS_IGNORE);
    wrong += check(&one, ranks, form);
  }
  return wrong;
}

static Ranks ranks_of(MPI_Comm comm) {
  Ranks ranks;
  MPI_Info hints;
  MPI_Info_create(&hints);
  MPI_Info_set(hints, "weft_engine", "native");
  MPI_Comm_dup(comm, &ranks.weft);
  MPI_Comm_dup_with_info(comm, hints, &ranks.library);
  MPI_Info_free(&hints);
  MPI_Comm_rank(comm, &ranks.rank);
  MPI_Comm_size(comm, &ranks.size);
  return ranks;
}

int main(int argc, char** argv) {
  int provided, wrong = 0, all_wrong = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  Ranks world = ranks_of(MPI_COMM_WORLD);
  const int calls = argc > 1 ? atoi(argv[1]) : 75;
  wrong += check_all(&world, calls);
  for (int kind = 0; kind < kKinds; ++kind)
    for (int form = kBlocking; form <= kNonblocking; ++form)
      wrong += check_phases(&world, kind, form);
  MPI_Comm some;
  MPI_Comm_split(MPI_COMM_WORLD, world.rank == 0 && world.size > 2 ? MPI_UNDEFINED : 0, -world.rank,
                 &some);
  if (some != MPI_COMM_NULL) {
    Ranks others = ranks_of(some);
    wrong += check_all(&others, calls / 3);
    MPI_Comm_free(&some);
  }
  MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, world.library);
  if (world.rank == 0) printf("%d wrong\n", all_wrong);
  MPI_Finalize();
  return all_wrong != 0;
}
