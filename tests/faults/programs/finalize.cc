// Row 39 of tests/faults/README.md: what the delete callbacks of MPI_COMM_SELF do inside
// MPI_Finalize, where all MPI calls are still permitted. Libraries such as PETSc finalise
// themselves there.
#include <dlfcn.h>

#include <iterator>
#include <vector>

#include "faults.h"

namespace faults {
namespace {

// Objects that the program makes before MPI_Finalize for its callbacks. Never destroyed, since the
// callbacks may run after main().
struct Left {
  MPI_Comm late = MPI_COMM_NULL;
  MPI_Request pending = MPI_REQUEST_NULL, persistent = MPI_REQUEST_NULL;
  Sum* pending_sum = nullptr;
  Sum* persistent_sum = nullptr;
  std::vector<int> called;  // numbers of the callbacks that were called, in order
};
Left* left = nullptr;
int ranks = 0, rank = 0;

// Makes a sum in every possible way.
void add_up(MPI_Comm comm) {
  const int size = size_of(comm);
  Sum started(10, comm), replayed(10, comm);
  MPI_Request requests[2];
  started.start(&requests[0]);
  replayed.initialise(&requests[1]);
  MPI_Start(&requests[1]);
  int own = 1, all = 0;
  MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_SUM, comm);
  MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  MPI_Request_free(&requests[1]);
  expect(all == size, "a blocking sum in a callback");
  expect(started.right_of(size), "a sum started in a callback");
  expect(replayed.right_of(size), "a persistent sum made in a callback");
}

// Rank 0 makes sums in a callback that the other ranks have made before MPI_Finalize.
void add_up_late() {
  add_up(left->late);
}

void end_what_is_pending() {
  MPI_Wait(&left->pending, MPI_STATUS_IGNORE);
  expect(left->pending_sum->right(), "a sum that was pending in MPI_Finalize");
  for (int i = 0; i < 3; ++i) {
    left->persistent_sum->reset();
    MPI_Start(&left->persistent);
    MPI_Wait(&left->persistent, MPI_STATUS_IGNORE);
    expect(left->persistent_sum->right(), "a persistent sum started in a callback");
  }
  MPI_Request_free(&left->persistent);
}

void use_new_communicators() {
  MPI_Comm copy, half, self;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  add_up(copy);
  MPI_Comm_split(copy, rank == 0 ? 0 : 1, rank, &half);
  add_up(half);
  MPI_Comm_dup(MPI_COMM_SELF, &self);
  for (MPI_Comm* one : {&self, &half, &copy}) MPI_Comm_free(one);
}

// Some ranks call a collective of the MPI library before they wait for the one they have started.
// The other ranks wait first.
void cross() {
  Sum sum(1000, MPI_COMM_WORLD);
  MPI_Request request;
  sum.start(&request);
  if (rank % 2) MPI_Wait(&request, MPI_STATUS_IGNORE);
  int word = rank;
  MPI_Bcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (rank % 2 == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(sum.right() && word == 0, "a broadcast between a sum's start and its wait");
}

// Like cross(), with a message in place of the library's collective.
void cross_a_message() {
  Sum sum(1000, MPI_COMM_WORLD);
  MPI_Request request;
  sum.start(&request);
  int word = rank;
  if (rank == 0) MPI_Recv(&word, 1, MPI_INT, ranks - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (rank == ranks - 1) MPI_Send(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
  expect(sum.right() && word == (rank == 0 ? ranks - 1 : rank), "a message before a sum's wait");
}

// The last rank starts only after it has received a message, which rank 0 sends when it has called
// MPI_Test.
void cross_a_test() {
  Sum sum(1000, MPI_COMM_WORLD);
  MPI_Request request;
  int word = rank, done;
  if (rank == ranks - 1) MPI_Recv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  sum.start(&request);
  MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  if (rank == 0) MPI_Send(&word, 1, MPI_INT, ranks - 1, 0, MPI_COMM_WORLD);
  if (!done) MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(sum.right() && word == (rank == ranks - 1 ? 0 : rank), "a message behind a test");
}

// Ranks start collectives on two communicators, and wait for them, in different orders.
void cross_communicators() {
  OwnWorld copy;
  Sum first(1000, MPI_COMM_WORLD), second(1000, copy);
  MPI_Request requests[2];
  const int begun = rank % 2;
  (begun == 0 ? first : second).start(&requests[begun]);
  (begun == 0 ? second : first).start(&requests[1 - begun]);
  for (const int one : {begun, 1 - begun}) MPI_Wait(&requests[one], MPI_STATUS_IGNORE);
  expect(first.right() && second.right(), "sums on two communicators");
}

using Part = void (*)();
// MPI calls the callbacks in reverse order. Until rank 0 has called add_up_late(), no other rank is
// in MPI_Finalize.
constexpr Part kParts[] = {cross_communicators,   cross_a_test,        cross_a_message, cross,
                           use_new_communicators, end_what_is_pending, add_up_late};
// Number of callbacks, from the first on, that need more progress than a blocked caller makes.
constexpr int kMoreThanCallers = 2;

int part(MPI_Comm, int, void* which, void*) {
  int finalized = 1;
  MPI_Finalized(&finalized);
  expect(!finalized, "MPI_Finalized in a callback");
  const Part* const now = static_cast<const Part*>(which);
  left->called.push_back(static_cast<int>(now - kParts));
  if (*now != add_up_late || rank == 0) (*now)();
  return MPI_SUCCESS;
}

void begin() {
  MPI_Init(nullptr, nullptr);
  left = new Left;
  ranks = size_of(MPI_COMM_WORLD);
  rank = rank_of(MPI_COMM_WORLD);
  MPI_Comm_dup(MPI_COMM_WORLD, &left->late);
  left->pending_sum = new Sum(10, MPI_COMM_WORLD);
  left->persistent_sum = new Sum(10, MPI_COMM_WORLD);
  left->persistent_sum->initialise(&left->persistent);
}

using Set = int(MPI_Comm comm, int key, void* value);

void set_on_self(MPI_Comm_delete_attr_function* callback, const Part* value, Set* set) {
  int key;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, callback, &key, nullptr);
  set(MPI_COMM_SELF, key, const_cast<Part*>(value));
  MPI_Comm_free_keyval(&key);
}

void use_mpi_in_finalize(int first, Set* set) {
  begin();
  std::vector<int> expected;
  for (int i = first; i < static_cast<int>(std::size(kParts)); ++i) {
    set_on_self(part, &kParts[i], set);
    expected.insert(expected.begin(), i);
  }
  left->pending_sum->start(&left->pending);
  if (rank > 0) add_up(left->late);
  MPI_Finalize();
  expect(left->called == expected, "the order of callbacks");
}

void uses_mpi_in_finalize() {
  use_mpi_in_finalize(0, MPI_Comm_set_attr);
}

// Row 39 of tests/faults/README.md with attributes that are set by a tool's function which Weft
// does not see (set_unseen.c).
void uses_mpi_in_finalize_unseen() {
  auto* const set = reinterpret_cast<Set*>(dlsym(RTLD_DEFAULT, "set_unseen"));
  expect(set != nullptr, "set_unseen");
  use_mpi_in_finalize(kMoreThanCallers, set);
}

int fail(MPI_Comm, int, void*, void*) {
  return MPI_ERR_OTHER;
}

// A callback fails. After that, Open MPI calls no other callback, and MPICH ends the program.
void fails_in_finalize() {
  begin();
  set_on_self(fail, nullptr, MPI_Comm_set_attr);
  add_up(MPI_COMM_WORLD);
  MPI_Finalize();
}

}  // namespace

const std::vector<Case>& finalize_cases() {
  static const std::vector<Case> cases = {
      {"uses-mpi-in-finalize", uses_mpi_in_finalize, true},
      {"uses-mpi-in-finalize-unseen", uses_mpi_in_finalize_unseen, true},
      {"fails-in-finalize", fails_in_finalize, true}};
  return cases;
}

}  // namespace faults
