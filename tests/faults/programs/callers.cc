// Callers: a program whose threads call MPI at the same time, of which one starts a collective while
// another is blocked.
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "faults.h"

namespace faults {
namespace {

constexpr int kTag = 5, kGo = 6, kDone = 7;

// How the first thread waits for a message of the last rank's.
struct Wait {
  const char* name;
  std::function<void(int* token, int from, MPI_Comm comm)> wait;
};

const std::vector<Wait>& waits() {
  static const std::vector<Wait> all = {
      {"Recv",
       [](int* token, int from, MPI_Comm comm) {
         MPI_Recv(token, 1, MPI_INT, from, kTag, comm, MPI_STATUS_IGNORE);
       }},
      {"Wait",
       [](int* token, int from, MPI_Comm comm) {
         MPI_Request request;
         MPI_Irecv(token, 1, MPI_INT, from, kTag, comm, &request);
         MPI_Wait(&request, MPI_STATUS_IGNORE);
       }},
      {"Waitall",
       [](int* token, int from, MPI_Comm comm) {
         MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
         MPI_Irecv(token, 1, MPI_INT, from, kTag, comm, &requests[1]);
         MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
       }},
      {"Waitany",
       [](int* token, int from, MPI_Comm comm) {
         MPI_Request request;
         int index = 0;
         MPI_Irecv(token, 1, MPI_INT, from, kTag, comm, &request);
         MPI_Waitany(1, &request, &index, MPI_STATUS_IGNORE);
       }},
      {"Waitsome",
       [](int* token, int from, MPI_Comm comm) {
         MPI_Request request;
         int completed = 0, index = 0;
         MPI_Irecv(token, 1, MPI_INT, from, kTag, comm, &request);
         MPI_Waitsome(1, &request, &completed, &index, MPI_STATUSES_IGNORE);
       }},
  };
  return all;
}

std::atomic<int> blocking{0}, come_back{0}, reduced{0}, stop{0};

void await(const std::atomic<int>& counter, int value) {
  while (counter < value && !stop) rest(1000);
}

// Of rank 0: starts a sum once the first thread is about to block, before the other ranks start
// theirs, and completes it when that thread has come back, which is after they have completed theirs.
void second_thread(const MPI_Comm& comm) {
  for (int i = 1; i <= static_cast<int>(waits().size()); ++i) {
    await(blocking, i);
    if (stop) return;
    rest(50000);
    Sum sum(1, comm);
    MPI_Request request;
    sum.start(&request);
    for (int rank = 1; rank < size_of(comm); ++rank)
      MPI_Send(&i, 1, MPI_INT, rank, kGo, comm);
    await(come_back, i);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(sum.right(), "a sum that was started while another thread was blocked");
    reduced = i;
  }
}

void first_thread(MPI_Comm comm) {
  int next = 0;
  for (const Wait& one : waits()) {
    int token = 0;
    blocking = ++next;
    one.wait(&token, size_of(comm) - 1, comm);
    come_back = next;
    await(reduced, next);
    tell("%s has come back", one.name);
  }
}

// Once all ranks but the first have completed theirs, of which some need the first one's later rounds.
void tell_the_first(MPI_Comm comm) {
  const int rank = rank_of(comm), last = size_of(comm) - 1;
  int token = 0;
  if (rank > 1) MPI_Recv(&token, 1, MPI_INT, rank - 1, kDone, comm, MPI_STATUS_IGNORE);
  MPI_Send(&token, 1, MPI_INT, rank < last ? rank + 1 : 0, rank < last ? kDone : kTag, comm);
}

void other_rank(MPI_Comm comm) {
  int token = 1;
  for (std::size_t i = 0; i < waits().size(); ++i) {
    MPI_Recv(&token, 1, MPI_INT, 0, kGo, comm, MPI_STATUS_IGNORE);
    rest(20000);
    Sum sum(1, comm);
    MPI_Request request;
    sum.start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(sum.right(), "a sum");
    tell_the_first(comm);
  }
}

// The thread comes first: the system may refuse it later.
void started_while_blocked() {
  MPI_Comm comm = MPI_COMM_NULL;
  std::thread second([&comm] { second_thread(comm); });
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  expect(provided == MPI_THREAD_MULTIPLE, "MPI_THREAD_MULTIPLE");
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  if (rank_of(comm) == 0)
    first_thread(comm);
  else
    other_rank(comm);
  stop = 1;
  second.join();
  MPI_Comm_free(&comm);
  MPI_Finalize();
}

}  // namespace

const std::vector<Case>& caller_cases() {
  static const std::vector<Case> cases = {
      {"started-while-blocked", started_while_blocked, true},
  };
  return cases;
}

}  // namespace faults
