// Collectives that are called wrongly or unusually: bad arguments, counts that differ, aliased
// buffers, neighbourhoods, large-count calls, and operators that are slow or call MPI. Buffers have
// guard pages, so that a read or write one byte outside ends the program at once, under any MPI
// library, even where a sanitizer cannot be loaded.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "faults.h"

namespace faults {
namespace {

// `count` ints at the end of their own pages, between two pages that may not be accessed.
class Guarded {
 public:
  explicit Guarded(int count, int value = -1) : count_(count) {
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(int);
    const std::size_t inside = (bytes + page - 1) / page * page;
    mapped_ = inside + 2 * page;
    base_ =
        static_cast<char*>(mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_ + page, inside, PROT_READ | PROT_WRITE);
    slack_ = base_ + page;
    std::memset(slack_, 0x5a, inside);
    data_ = reinterpret_cast<int*>(slack_ + (inside - bytes));
    for (int i = 0; i < count; ++i) data_[i] = value;
  }
  ~Guarded() { munmap(base_, mapped_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  int* data() { return data_; }
  int operator[](int i) const { return data_[i]; }
  // Returns whether nothing before the buffer has been written.
  bool intact() const {
    for (const char* at = slack_; at < reinterpret_cast<const char*>(data_); ++at)
      if (*at != 0x5a) return false;
    return true;
  }
  bool all(int value) const {
    for (int i = 0; i < count_; ++i)
      if (data_[i] != value) return false;
    return true;
  }

 private:
  int count_;
  std::size_t mapped_ = 0;
  char* base_ = nullptr;
  char* slack_ = nullptr;
  int* data_ = nullptr;
};

int wait(MPI_Request* request) {
  return MPI_Wait(request, MPI_STATUS_IGNORE);
}

int test(MPI_Request* request) {
  for (int flag = 0; !flag;)
    if (const int code = MPI_Test(request, &flag, MPI_STATUS_IGNORE); code != MPI_SUCCESS)
      return code;
  return MPI_SUCCESS;
}

// Completes one request by MPI_Waitall. Returns the error code in its status.
int wait_all(MPI_Request* request) {
  MPI_Status status;
  const int code = MPI_Waitall(1, request, &status);
  if (code == MPI_SUCCESS) return code;
  expect(class_of(code) == MPI_ERR_IN_STATUS, "MPI_Waitall says that the status has the error");
  return status.MPI_ERROR;
}

// Rank 0 starts with `mine` elements, the other ranks with `theirs`. Each kind of collective has a
// communicator of its own, which an error may make unusable. There are two ranks and thus one
// exchange, so that no rank waits for a later round after an error.
void with_counts(int mine, int theirs, int (*complete)(MPI_Request*)) {
  using Start = std::function<int(int*, int*, int, MPI_Comm, MPI_Request*)>;
  struct Kind {
    const char* name;
    int blocks;
    Start start;
  };
  const Kind kinds[] = {
      {"bcast", 1,
       [](int*, int* out, int n, MPI_Comm comm, MPI_Request* request) {
         return MPI_Ibcast(out, n, MPI_INT, 0, comm, request);
       }},
      {"reduce", 1,
       [](int* in, int* out, int n, MPI_Comm comm, MPI_Request* request) {
         return MPI_Ireduce(in, out, n, MPI_INT, MPI_SUM, 0, comm, request);
       }},
      {"allreduce", 1,
       [](int* in, int* out, int n, MPI_Comm comm, MPI_Request* request) {
         return MPI_Iallreduce(in, out, n, MPI_INT, MPI_SUM, comm, request);
       }},
      {"allgather", 2,
       [](int* in, int* out, int n, MPI_Comm comm, MPI_Request* request) {
         return MPI_Iallgather(in, n, MPI_INT, out, n, MPI_INT, comm, request);
       }},
      {"alltoall", 2,
       [](int* in, int* out, int n, MPI_Comm comm, MPI_Request* request) {
         return MPI_Ialltoall(in, n, MPI_INT, out, n, MPI_INT, comm, request);
       }},
      {"gatherv", 2,
       [](int* in, int* out, int n, MPI_Comm comm, MPI_Request* request) {
         static int counts[2], places[2];
         counts[0] = counts[1] = places[1] = n;
         return MPI_Igatherv(in, n, MPI_INT, out, counts, places, MPI_INT, 0, comm, request);
       }},
      {"alltoallv", 2,
       [](int* in, int* out, int n, MPI_Comm comm, MPI_Request* request) {
         static int counts[2], places[2];
         counts[0] = counts[1] = places[1] = n;
         return MPI_Ialltoallv(in, counts, places, MPI_INT, out, counts, places, MPI_INT, comm,
                               request);
       }},
  };
  for (const auto& kind : kinds) {
    OwnWorld comm;
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    const int count = rank_of(comm) == 0 ? mine : theirs;
    Guarded in(count * kind.blocks, 7), out(count * kind.blocks);
    MPI_Request request = MPI_REQUEST_NULL;
    int code = kind.start(in.data(), out.data(), count, comm, &request);
    if (code == MPI_SUCCESS) code = complete(&request);
    expect(request == MPI_REQUEST_NULL, "the request is null");
    tell_all("%s: rank %d, %d elements: %s", kind.name, rank_of(comm), count,
             class_of(code) == MPI_SUCCESS        ? "no error"
             : class_of(code) == MPI_ERR_TRUNCATE ? "truncated"
                                                  : "another error");
    expect(in.intact() && out.intact() && in.all(7), "memory outside the buffers is untouched");
  }
}

// As with_counts(), for persistent calls with counts for each rank.
void with_persistent_counts(int mine, int theirs) {
  for (const bool gathers : {true, false}) {
    OwnWorld comm;
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    const int n = rank_of(comm) == 0 ? mine : theirs;
    Guarded in(2 * n, 7), out(2 * n);
    const int counts[2] = {n, n}, places[2] = {0, n};
    MPI_Request request = MPI_REQUEST_NULL;
    int code = gathers ? MPI_Gatherv_init(in.data(), n, MPI_INT, out.data(), counts, places,
                                          MPI_INT, 0, comm, MPI_INFO_NULL, &request)
                       : MPI_Alltoallv_init(in.data(), counts, places, MPI_INT, out.data(), counts,
                                            places, MPI_INT, comm, MPI_INFO_NULL, &request);
    if (code == MPI_SUCCESS) code = MPI_Start(&request);
    if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    tell_all("%s: rank %d, %d elements: %s", gathers ? "gatherv" : "alltoallv", rank_of(comm), n,
             class_of(code) == MPI_SUCCESS        ? "no error"
             : class_of(code) == MPI_ERR_TRUNCATE ? "truncated"
                                                  : "another error");
    expect(in.intact() && out.intact() && in.all(7), "memory outside the buffers is untouched");
    MPI_Request_free(&request);
  }
}

void persistent_counts_differ() {
  with_persistent_counts(20, 10);
  with_persistent_counts(10, 20);
}

// Row 17 of tests/faults/README.md: the ranks' counts differ.
void counts_differ() {
  for (const auto complete : {wait, test, wait_all}) {
    with_counts(20, 10, complete);
    with_counts(10, 20, complete);
  }
}

// Row 16 of tests/faults/README.md: an error that only occurs at completion, on a communicator that
// returns errors.
void truncated(MPI_Comm comm) {
  std::vector<int> box(rank_of(comm) == 0 ? 200 : 100);
  MPI_Request request;
  int code = MPI_Ibcast(box.data(), static_cast<int>(box.size()), MPI_INT, 0, comm, &request);
  if (code == MPI_SUCCESS) code = wait(&request);
  tell_all("bcast: %s", code == MPI_SUCCESS ? "no error" : "returned an error");
}

void error_returns() {
  OwnWorld lenient, strict;
  MPI_Comm_set_errhandler(lenient, MPI_ERRORS_RETURN);
  truncated(lenient);
  Sum sum(10, strict);
  MPI_Request request;
  sum.start(&request);
  wait(&request);
  expect(sum.right(), "the other communicator is usable");
}

void error_is_fatal() {
  OwnWorld lenient, strict;
  MPI_Comm_set_errhandler(lenient, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(strict, MPI_ERRORS_ARE_FATAL);
  truncated(strict);
  tell_all("still here");
}

// Row 15 of tests/faults/README.md: a bad communicator. Other bad arguments are in the group
// `mistakes` of tests/mpi/lifetime.cc.
void bad_communicator() {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  int in = 1, out = 0;
  MPI_Request request;
  const int blocking = MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_NULL);
  const int started = MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_NULL, &request);
  expect(class_of(started) == MPI_ERR_COMM, "the error's class");
  expect(class_of(started) == class_of(blocking), "the class of the blocking call");
}

// Row 19 of tests/faults/README.md: the standard forbids aliased buffers. The MPI library decides
// what happens, and the test compares that with and without Weft.
void aliased() {
  OwnWorld comm;
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  const int rank = rank_of(comm);
  std::vector<int> data(100, rank + 1);
  MPI_Request request = MPI_REQUEST_NULL;
  int code = MPI_Iallreduce(data.data(), data.data(), 100, MPI_INT, MPI_SUM, comm, &request);
  if (code == MPI_SUCCESS) code = wait(&request);
  tell("allreduce onto its own input: class %d, first value %d", class_of(code), data[0]);
  std::vector<int> blocks(100, rank + 1);
  code = MPI_Iscan(blocks.data(), blocks.data(), 100, MPI_INT, MPI_MAX, comm, &request);
  if (code == MPI_SUCCESS) code = wait(&request);
  tell("scan onto its own input: class %d, first value %d", class_of(code), blocks[0]);
  std::vector<int> all(static_cast<std::size_t>(size_of(comm)), rank + 1);
  code = MPI_Iallgather(&all[rank], 1, MPI_INT, all.data(), 1, MPI_INT, comm, &request);
  if (code == MPI_SUCCESS) code = wait(&request);
  tell("allgather from the place in its result: class %d, first value %d", class_of(code), all[0]);
}

// The root receives a block where it sends from. The other ranks do not know this, so all ranks
// must take the same path if the library permits it.
void aliased_at_the_root() {
  OwnWorld comm;
  const int rank = rank_of(comm), size = size_of(comm), root = size - 1;
  for (const bool blocking : {true, false, true, false}) {
    MPI_Request request = MPI_REQUEST_NULL;
    std::vector<int> all(size, -1), own{rank};
    int* const from = rank == root ? &all[root] : own.data();
    *from = rank;
    if (blocking)
      MPI_Gather(from, 1, MPI_INT, all.data(), 1, MPI_INT, root, comm);
    else
      MPI_Igather(from, 1, MPI_INT, all.data(), 1, MPI_INT, root, comm, &request);
    wait(&request);
    for (int i = 0; i < size && rank == root; ++i)
      expect(all[i] == i, "gather from its own result");
    *from = rank == root ? rank : -1;
    if (blocking)
      MPI_Scatter(all.data(), 1, MPI_INT, from, 1, MPI_INT, root, comm);
    else
      MPI_Iscatter(all.data(), 1, MPI_INT, from, 1, MPI_INT, root, comm, &request);
    wait(&request);
    expect(*from == rank, "scatter into its own input");
  }
}

// Reductions whose result overwrites an operand, on the root and on one of all ranks.
void reduced_onto_operands() {
  OwnWorld comm;
  const int rank = rank_of(comm), last = size_of(comm) - 1, sum = sum_of_ranks(comm);
  for (const bool blocking : {true, false, true, false})
    for (const int count : {3, 50000}) {
      MPI_Request request = MPI_REQUEST_NULL;
      std::vector<int> in(count, rank), out(count, rank);
      int* const operand = rank == last ? out.data() : in.data();
      const auto right = [&](int expected) { return out[0] == expected && out.back() == expected; };
      if (blocking)
        MPI_Reduce(operand, out.data(), count, MPI_INT, MPI_SUM, last, comm);
      else
        MPI_Ireduce(operand, out.data(), count, MPI_INT, MPI_SUM, last, comm, &request);
      wait(&request);
      expect(right(rank == last ? sum : rank), "reduction onto its own operand");
      std::fill(out.begin(), out.end(), rank);
      if (blocking)
        MPI_Allreduce(operand, out.data(), count, MPI_INT, MPI_SUM, comm);
      else
        MPI_Iallreduce(operand, out.data(), count, MPI_INT, MPI_SUM, comm, &request);
      wait(&request);
      expect(right(sum), "allreduce of which one rank's operand is its result");
    }
}

// Each rank sends and receives its own block at the same address; on rank 0 this block is empty.
// Blocks for other ranks come from one half of the buffer and go to the other half.
void aliased_but_for_an_empty_block() {
  OwnWorld comm;
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  constexpr int kBlock = 100;
  const int rank = rank_of(comm), size = size_of(comm);
  const std::size_t half = static_cast<std::size_t>(size) * kBlock;
  for (const bool blocking : {true, false}) {
    std::vector<int> buffer(2 * half, rank), counts(size, kBlock), from(size), to(size);
    if (rank == 0) counts[0] = 0;
    for (int i = 0; i < size; ++i) {
      from[i] = i * kBlock;
      to[i] = i == rank ? from[i] : static_cast<int>(half) + i * kBlock;
    }
    MPI_Request request = MPI_REQUEST_NULL;
    int *const data = buffer.data(), code = MPI_SUCCESS;
    if (blocking)
      code = MPI_Alltoallv(data, counts.data(), from.data(), MPI_INT, data, counts.data(),
                           to.data(), MPI_INT, comm);
    else
      code = MPI_Ialltoallv(data, counts.data(), from.data(), MPI_INT, data, counts.data(),
                            to.data(), MPI_INT, comm, &request);
    tell_all("rank %d: class %d", rank, class_of(code));  // the error class is the MPI library's
    if (code != MPI_SUCCESS) continue;
    wait(&request);
    for (int i = 0; i < size; ++i)
      expect(buffer[static_cast<std::size_t>(to[i])] == i, "alltoallv within one buffer");
  }
}

// Row 20 of tests/faults/README.md: neighbourhood collectives on a ring in which each rank gets its
// neighbours' numbers, and other ones with count 0.
void neighbourhoods() {
  const int size = size_of(MPI_COMM_WORLD), periodic = 1;
  MPI_Comm ring;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
  const int rank = rank_of(ring);
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;
  int got[2] = {-1, -1}, sent[2] = {10 * rank, 10 * rank + 1};
  MPI_Request request;
  MPI_Ineighbor_allgather(&rank, 1, MPI_INT, got, 1, MPI_INT, ring, &request);
  wait(&request);
  expect(got[0] == left && got[1] == right, "neighbor_allgather");
  // With two ranks both neighbours are the same rank, and their order is the library's.
  if (size > 2) {
    MPI_Ineighbor_alltoall(sent, 1, MPI_INT, got, 1, MPI_INT, ring, &request);
    wait(&request);
    expect(got[0] == 10 * left + 1 && got[1] == 10 * right, "neighbor_alltoall");
  }
  Sum sum(50, ring);
  sum.start(&request);
  wait(&request);
  expect(sum.right(), "allreduce on a communicator with a topology");
  MPI_Comm_free(&ring);
}

void nothing_to_move() {
  OwnWorld comm;
  int untouched = 5;
  MPI_Request requests[6];
  MPI_Ibcast(&untouched, 0, MPI_INT, 0, comm, &requests[0]);
  MPI_Ireduce(&untouched, &untouched + 0, 0, MPI_INT, MPI_SUM, 0, comm, &requests[1]);
  MPI_Iallreduce(MPI_IN_PLACE, &untouched, 0, MPI_INT, MPI_SUM, comm, &requests[2]);
  MPI_Iallgather(MPI_IN_PLACE, 0, MPI_INT, &untouched, 0, MPI_INT, comm, &requests[3]);
  MPI_Ialltoall(MPI_IN_PLACE, 0, MPI_INT, &untouched, 0, MPI_INT, comm, &requests[4]);
  MPI_Iscan(MPI_IN_PLACE, &untouched, 0, MPI_INT, MPI_SUM, comm, &requests[5]);
  MPI_Waitall(6, requests, MPI_STATUSES_IGNORE);
  expect(untouched == 5, "nothing is written where nothing is moved");
}

// The map x -> a x + b. Its composition does not commute.
struct Map {
  std::int64_t a, b;
};

void compose(void* in, void* inout, int* length, MPI_Datatype*) {
  const auto* first = static_cast<const Map*>(in);
  auto* second = static_cast<Map*>(inout);
  for (int i = 0; i < *length; ++i)
    second[i] = {first[i].a * second[i].a, first[i].a * second[i].b + first[i].b};
}

void slow_compose(void* in, void* inout, int* length, MPI_Datatype* type) {
  rest(20000);
  compose(in, inout, length, type);
}

// An operator that calls MPI functions that do not communicate, in whatever thread it runs.
void asking_compose(void* in, void* inout, int* length, MPI_Datatype* type) {
  int size = 0, rank = -1, flag = 0;
  MPI_Type_size(*type, &size);
  MPI_Comm_rank(MPI_COMM_SELF, &rank);
  MPI_Initialized(&flag);
  if (size == static_cast<int>(sizeof(Map)) && rank == 0 && flag) compose(in, inout, length, type);
}

Map map_of(int rank) {
  return {rank + 2, rank + 1};
}

Map expected_up_to(int last) {
  Map total = map_of(0);
  for (int rank = 1; rank <= last; ++rank) {
    Map next = map_of(rank);
    int one = 1;
    compose(&total, &next, &one, nullptr);
    total = next;
  }
  return total;
}

bool equal(const Map& left, const Map& right) {
  return left.a == right.a && left.b == right.b;
}

void reduce_maps(MPI_User_function* function, int count, bool large_calls) {
  OwnWorld comm;
  const int rank = rank_of(comm), size = size_of(comm);
  MPI_Datatype type;
  MPI_Op op;
  MPI_Type_contiguous(2, MPI_INT64_T, &type);
  MPI_Type_commit(&type);
  MPI_Op_create(function, 0, &op);
  std::vector<Map> in(count, map_of(rank)), all(count), upto(count);
  MPI_Request requests[2];
  if (large_calls) {
#if MPI_VERSION >= 4
    MPI_Iallreduce_c(in.data(), all.data(), count, type, op, comm, &requests[0]);
    MPI_Iscan_c(in.data(), upto.data(), count, type, op, comm, &requests[1]);
#endif
  } else {
    MPI_Iallreduce(in.data(), all.data(), count, type, op, comm, &requests[0]);
    MPI_Iscan(in.data(), upto.data(), count, type, op, comm, &requests[1]);
  }
  // A rank that is blocked in another call must not prevent the operator from running.
  int token = 0;
  if (rank == 0) MPI_Recv(&token, 1, MPI_INT, size - 1, 1, comm, MPI_STATUS_IGNORE);
  if (rank == size - 1) MPI_Send(&token, 1, MPI_INT, 0, 1, comm);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < count; ++i)
    expect(equal(all[i], expected_up_to(size - 1)) && equal(upto[i], expected_up_to(rank)),
           "the operator's result");
  MPI_Op_free(&op);
  MPI_Type_free(&type);
}

// Row 21 of tests/faults/README.md: large-count calls. Holes and negative lower bounds are tested
// in tests/mpi/results.cc.
void large_count_calls() {
#if MPI_VERSION < 4
  tell("no calls with large counts");
#else
  for (int count : {1, 1000}) reduce_maps(compose, count, true);
  OwnWorld comm;
  const int rank = rank_of(comm), size = size_of(comm);
  std::vector<int> all(size), mine(size, rank), to(size);
  int box = rank == 0 ? 9 : -1;
  MPI_Request requests[4];
  MPI_Ibcast_c(&box, 1, MPI_INT, 0, comm, &requests[0]);
  MPI_Iallgather_c(&rank, 1, MPI_INT, all.data(), 1, MPI_INT, comm, &requests[1]);
  MPI_Ialltoall_c(mine.data(), 1, MPI_INT, to.data(), 1, MPI_INT, comm, &requests[2]);
  MPI_Ibarrier(comm, &requests[3]);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  expect(box == 9, "bcast");
  for (int r = 0; r < size; ++r) expect(all[r] == r && to[r] == r, "allgather, alltoall");
#endif
}

// Row 22 of tests/faults/README.md: a slow operator.
void slow_operator() {
  reduce_maps(slow_compose, 2, false);
}

void asking_operator() {
  for (int count : {1, 10000}) reduce_maps(asking_compose, count, false);
}

// Hints should be the same on all ranks (MPI-4.1, 10.2 leaves that to each hint). Ranks give
// different ones here, which must have no effect.
void different_hints() {
  const bool first = rank_of(MPI_COMM_WORLD) == 0;
  const auto is_right = [](MPI_Comm comm) {
    Sum sum(50000, comm);
    MPI_Request request;
    sum.start(&request);
    wait(&request);
    expect(sum.right(), "allreduce on a communicator with hints that differ");
    MPI_Barrier(comm);
  };
  OwnWorld told;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "weft_engine", first ? "tcc" : "native");
  MPI_Comm_set_info(told, info);
  is_right(told);
  MPI_Info_delete(info, "weft_engine");
  if (!first) MPI_Info_set(info, "weft_algorithm", "allreduce=ring");
  MPI_Comm made;
  MPI_Comm_dup_with_info(told, info, &made);
  MPI_Info_free(&info);
  is_right(made);
  MPI_Comm_free(&made);
}

// Row 35 of tests/faults/README.md: MPI_Pcontrol is called on one rank only, as profilers and their
// users do.
void profiling_controlled_on_one_rank() {
  OwnWorld comm;
  for (const int level : {0, 1, 2}) {
    if (rank_of(comm) == 0) MPI_Pcontrol(level);
    for (const int count : {1, 50000}) {
      Sum sum(count, comm);
      MPI_Request request;
      sum.start(&request);
      wait(&request);
      expect(sum.right(), "allreduce while one rank has called MPI_Pcontrol");
      MPI_Barrier(comm);
    }
  }
}

}  // namespace

const std::vector<Case>& collective_cases() {
  static const std::vector<Case> cases = {
      {"counts-differ", counts_differ},
      {"persistent-counts-differ", persistent_counts_differ},
      {"error-returns", error_returns},
      {"error-is-fatal", error_is_fatal},
      {"bad-communicator", bad_communicator},
      {"aliased", aliased},
      {"aliased-at-the-root", aliased_at_the_root},
      {"aliased-but-for-an-empty-block", aliased_but_for_an_empty_block},
      {"reduced-onto-operands", reduced_onto_operands},
      {"different-hints", different_hints},
      {"profiling-controlled-on-one-rank", profiling_controlled_on_one_rank},
      {"neighbourhoods", neighbourhoods},
      {"nothing-to-move", nothing_to_move},
      {"large-count-calls", large_count_calls},
      {"slow-operator", slow_operator},
      {"asking-operator", asking_operator},
  };
  return cases;
}

}  // namespace faults
