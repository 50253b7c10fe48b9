// Faults around threads and blocked callers. A thread starts a collective while another thread of
// its process is blocked in MPI. Or a rank is blocked in a collective that the other ranks enter
// only after they have completed an earlier one, which this rank has only started.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "faults.h"

namespace faults {
namespace {

constexpr int kTag = 5, kGo = 6, kDone = 7;

// A way in which the first thread waits for a message from the last rank.
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

// Runs on rank 0. It starts a sum when the first thread is about to block and before the other
// ranks start theirs. It completes the sum when the first thread has returned, which is after the
// other ranks have completed theirs.
void second_thread(const MPI_Comm& comm) {
  for (int i = 1; i <= static_cast<int>(waits().size()); ++i) {
    await(blocking, i);
    if (stop) return;
    rest(50000);
    Sum sum(1, comm);
    MPI_Request request;
    sum.start(&request);
    for (int rank = 1; rank < size_of(comm); ++rank) MPI_Send(&i, 1, MPI_INT, rank, kGo, comm);
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

// Sends the message for which the first thread waits, once all ranks but the first have completed
// their sums. Some of these sums need later rounds of the first rank.
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

// The thread is created first, since the system may refuse it later.
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

// The objects on which the collectives without a non-blocking form are called.
struct Objects {
  MPI_Comm comm = MPI_COMM_NULL, beside = MPI_COMM_NULL;  // beside: communicator for messages
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Win window = MPI_WIN_NULL;
  MPI_File file = MPI_FILE_NULL;
  std::string path;
  int memory[4] = {};
};

struct CollectiveCall {
  const char* name;
  void (*make)(Objects& on);
};

const std::vector<CollectiveCall>& collective_calls() {
  static const std::vector<CollectiveCall> all = {
      {"Comm_split", [](Objects& on) { MPI_Comm_split(on.comm, 0, 0, &on.made); }},
      {"Comm_create",
       [](Objects& on) {
         MPI_Group group;
         MPI_Comm_group(on.comm, &group);
         MPI_Comm_create(on.comm, group, &on.made);
         MPI_Group_free(&group);
       }},
      {"Comm_dup_with_info",
       [](Objects& on) { MPI_Comm_dup_with_info(on.comm, MPI_INFO_NULL, &on.made); }},
      {"Cart_create",
       [](Objects& on) {
         const int extent = size_of(on.comm), periodic = 0;
         MPI_Cart_create(on.comm, 1, &extent, &periodic, 0, &on.made);
       }},
      {"Win_create",
       [](Objects& on) {
         MPI_Win_create(on.memory, sizeof on.memory, 1, MPI_INFO_NULL, on.comm, &on.window);
       }},
      {"Win_fence", [](Objects& on) { MPI_Win_fence(0, on.window); }},
      {"Win_free", [](Objects& on) { MPI_Win_free(&on.window); }},
      {"File_open",
       [](Objects& on) {
         MPI_File_open(on.comm, on.path.c_str(), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                       &on.file);
       }},
      {"File_set_view",
       [](Objects& on) {
         MPI_File_set_view(on.file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
       }},
      {"File_write_at_all",
       [](Objects& on) {
         MPI_File_write_at_all(on.file, rank_of(on.comm), on.memory, 1, MPI_INT, MPI_STATUS_IGNORE);
       }},
      {"File_read_all",
       [](Objects& on) { MPI_File_read_all(on.file, on.memory, 1, MPI_INT, MPI_STATUS_IGNORE); }},
      {"File_close", [](Objects& on) { MPI_File_close(&on.file); }},
  };
  return all;
}

// The first rank makes the call between start and wait. The others make it after their waits, for
// which they need later rounds of the first rank.
void in_another_order(const CollectiveCall& call, Objects& on) {
  int token = 0;
  Sum sum(1, on.comm);
  MPI_Request request;
  if (rank_of(on.comm) == 0) {
    sum.start(&request);
    for (int rank = 1; rank < size_of(on.comm); ++rank)
      MPI_Send(&token, 1, MPI_INT, rank, kGo, on.beside);
    call.make(on);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(&token, 1, MPI_INT, 0, kGo, on.beside, MPI_STATUS_IGNORE);
    rest(20000);
    sum.start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    call.make(on);
  }
  expect(sum.right(), call.name);
  if (on.made != MPI_COMM_NULL) MPI_Comm_free(&on.made);
  tell("%s has come back", call.name);
}

void blocked_in_collective_calls() {
  OwnWorld comm, beside;
  Objects on;
  on.comm = comm;
  on.beside = beside;
  const char* const directory = std::getenv("TMPDIR");
  on.path = std::string(directory ? directory : "/tmp") + "/weft-faults-callers";
  for (const CollectiveCall& call : collective_calls()) in_another_order(call, on);
  if (rank_of(comm) == 0) std::remove(on.path.c_str());
}

}  // namespace

const std::vector<Case>& caller_cases() {
  static const std::vector<Case> cases = {
      {"blocked-in-collective-calls", blocked_in_collective_calls},
      {"started-while-blocked", started_while_blocked, true},
  };
  return cases;
}

}  // namespace faults
