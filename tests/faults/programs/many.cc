// Hundreds of thousands of collectives, hundreds of communicators, and several threads. Numbers
// that wrap, memory that grows and requests that are completed twice only show in bulk.
#include <dlfcn.h>
#include <fcntl.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "faults.h"

namespace faults {
namespace {

long resident_kib() {
  std::FILE* file = std::fopen("/proc/self/status", "r");
  char line[200];
  long kib = 0;
  while (file && std::fgets(line, sizeof line, file))
    if (std::sscanf(line, "VmRSS: %ld", &kib) == 1) break;
  if (file) std::fclose(file);
  return kib;
}

// Counts what Weft has allocated, if own_allocations.c is preloaded.
struct Allocated {
  long count = 0, bytes = 0;
};

Allocated allocated_by_weft() {
  using Count = void(long*, long*);
  auto* count = reinterpret_cast<Count*>(dlsym(RTLD_DEFAULT, "own_allocations"));
  Allocated now;
  if (count) count(&now.count, &now.bytes);
  return now;
}

// A batch of `outstanding` collectives, which are all started before any is completed.
class Batch {
 public:
  explicit Batch(int outstanding, MPI_Comm comm)
      : comm_(comm), requests_(outstanding), in_(outstanding), out_(outstanding) {}

  void run(int number) {
    const int rank = rank_of(comm_), size = size_of(comm_), base = number % 1000;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      in_[i] = base + rank + static_cast<int>(i);
      out_[i] = -1;
      MPI_Iallreduce(&in_[i], &out_[i], 1, MPI_INT, MPI_SUM, comm_, &requests_[i]);
    }
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    bool right = true;
    for (std::size_t i = 0; i < requests_.size(); ++i)
      right = right && out_[i] == size * (base + static_cast<int>(i)) + sum_of_ranks(comm_);
    expect(right, "a sum among many");
  }

 private:
  MPI_Comm comm_;
  std::vector<MPI_Request> requests_;
  std::vector<int> in_, out_;
};

int from_environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : otherwise;
}

// Row 23 of tests/faults/README.md: after its first batch Weft must not allocate more. The
// process's memory is compared from the end of the first third of the batches on, since the MPI
// library's pools may grow while ranks run apart.
void very_many() {
  OwnWorld comm;
  const int outstanding = from_environment("FAULTS_OUTSTANDING", 2000);
  const int batches = from_environment("FAULTS_COLLECTIVES", 100000) / outstanding;
  const int warm = (batches + 2) / 3;
  Batch batch(outstanding, comm);
  long before = 0;
  Allocated first;
  for (int number = 0; number < batches; ++number) {
    batch.run(number);
    if (number == 0) first = allocated_by_weft();
    if (number + 1 == warm) before = resident_kib();
  }
  const Allocated last = allocated_by_weft();
  tell_all("of Weft's: %ld allocations, %ld more; %ld bytes, %ld more", first.count,
           last.count - first.count, first.bytes, last.bytes - first.bytes);
  tell_all("%d collectives, %d outstanding: %ld KiB warm, grew by %ld KiB", batches * outstanding,
           outstanding, before, resident_kib() - before);
}

// A rank may free a communicator long before its collective there is complete, while another rank
// has completed and freed it and continues.
void freed_at_different_times() {
  const int rank = rank_of(MPI_COMM_WORLD);
  constexpr int kTurns = 5;
  for (int turn = 0; turn < kTurns; ++turn) {
    OwnWorld comm;
    Sum sum(turn % 2 ? 50000 : 10, comm);
    MPI_Request request;
    int token = 0;
    sum.start(&request);
    if (rank == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free(comm.address());
    if (rank == 0) MPI_Send(&token, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
    if (rank == 1) MPI_Recv(&token, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank != 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(sum.right(), "allreduce on a communicator that was freed meanwhile");
  }
  OwnWorld unused;
}

// Makes the i-th communicator: of all ranks, of all ranks in reverse order, or of every second
// rank.
int make_communicator(int i, MPI_Comm* made) {
  const int rank = rank_of(MPI_COMM_WORLD);
  if (i % 3 == 0) return MPI_Comm_dup(MPI_COMM_WORLD, made);
  const int color = i % 3 == 1 ? 0 : rank % 2;
  return MPI_Comm_split(MPI_COMM_WORLD, color, -rank, made);
}

// Each rank starts one collective on each of many communicators before it completes any; half of
// the ranks start them in reverse order.
void many_kinds_of_communicators() {
  const int wanted = from_environment("FAULTS_COMMUNICATORS", 600);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  std::vector<MPI_Comm> comms;
  for (MPI_Comm comm; static_cast<int>(comms.size()) < wanted; comms.push_back(comm))
    if (make_communicator(static_cast<int>(comms.size()), &comm) != MPI_SUCCESS) break;
  const std::size_t count = comms.size();
  std::vector<Sum> sums;
  for (std::size_t i = 0; i < count; ++i) sums.emplace_back(i % 50 ? 3 : 30000, comms[i]);
  std::vector<MPI_Request> requests(count);
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = rank_of(MPI_COMM_WORLD) % 2 ? count - 1 - i : i;
      sums[at].reset();
      sums[at].start(&requests[at]);
    }
    MPI_Waitall(static_cast<int>(count), requests.data(), MPI_STATUSES_IGNORE);
    for (std::size_t i = 0; i < count; ++i)
      expect(sums[i].right_of(size_of(comms[i])), "allreduce on one of many kinds");
  }
  tell("%zu communicators", count);
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

int lines_of(const char* name) {
  std::FILE* file = std::fopen(name, "r");
  int lines = 0;
  for (int c; file && (c = std::fgetc(file)) != EOF;) lines += c == '\n';
  if (file) std::fclose(file);
  return lines;
}

int descriptors() {
  int open = 0;
  for (int number = 0; number < 1024; ++number) open += fcntl(number, F_GETFD) != -1;
  return open;
}

// Makes thousands of communicators, one after the other, and uses each before it is freed. Two
// exist at any time, so that the numbers of freed ones are used again.
void communicators_in_turn() {
  const int wanted = from_environment("FAULTS_COMMUNICATORS", 1000), warm = wanted / 5;
  MPI_Comm before = MPI_COMM_NULL, comm = MPI_COMM_NULL;
  int files = 0, maps = 0;
  long kib = 0;
  for (int i = 0; i < wanted; ++i) {
    expect(make_communicator(i, &comm) == MPI_SUCCESS, "a communicator after many");
    Sum sum(3, comm);
    MPI_Request request;
    sum.start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(sum.right_of(size_of(comm)), "allreduce on one after many");
    if (before != MPI_COMM_NULL) MPI_Comm_free(&before);
    before = comm;
    if (i + 1 != warm) continue;
    files = descriptors();
    maps = lines_of("/proc/self/maps");
    kib = resident_kib();
  }
  tell_all("%d in turn: %d more descriptors, %d more maps, grew by %ld KiB", wanted - warm,
           descriptors() - files, lines_of("/proc/self/maps") - maps, resident_kib() - kib);
  MPI_Comm_free(&before);
}

// Makes as many communicators as asked for, all alive at once, and checks that the last is as
// usable as the first.
void many_communicators() {
  const int wanted = from_environment("FAULTS_COMMUNICATORS", 600);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  std::vector<MPI_Comm> comms;
  while (static_cast<int>(comms.size()) < wanted) {
    MPI_Comm comm = MPI_COMM_NULL;
    if (MPI_Comm_dup(MPI_COMM_WORLD, &comm) != MPI_SUCCESS) break;
    comms.push_back(comm);
  }
  for (MPI_Comm comm : comms) {
    Sum sum(3, comm);
    MPI_Request request;
    sum.start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(sum.right(), "allreduce on one of many communicators");
  }
  tell("%zu communicators", comms.size());
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

// Makes many persistent collectives on one communicator. The first and the last one are in flight
// together.
void many_persistent() {
  const int wanted = from_environment("FAULTS_PERSISTENT", 1000);
  OwnWorld comm;
  std::deque<Sum> sums;
  std::vector<MPI_Request> requests(static_cast<std::size_t>(wanted));
  for (MPI_Request& request : requests) {
    sums.emplace_back(3, comm);
    sums.back().initialise(&request);
  }
  for (int round = 0; round < 3; ++round) {
    MPI_Request* const ends[2] = {&requests.front(), &requests.back()};
    for (MPI_Request* one : ends) MPI_Start(one);
    for (MPI_Request* one : ends) MPI_Wait(one, MPI_STATUS_IGNORE);
    expect(sums.front().right() && sums.back().right(), "the first and the last of many");
  }
  for (MPI_Request& request : requests) MPI_Request_free(&request);
}

bool threads_granted() {
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  return level == MPI_THREAD_MULTIPLE;
}

// Row 24 of tests/faults/README.md: short and long sums in turn, whose requests act() completes.
// Threads with communicators of their own are tested in tests/mpi/flight.cc.
template <class Act>
void with_many_sums(Act act) {
  if (!threads_granted()) return tell("no MPI_THREAD_MULTIPLE");
  OwnWorld comm;
  for (int round = 0; round < 50; ++round) {
    Sum sum(round % 2 ? 3 : 30000, comm);
    MPI_Request request;
    sum.start(&request);
    act(request);
    expect(sum.right(), "result");
  }
}

template <class Work>
void by_two_threads(Work work) {
  std::thread one(work), other(work);
  one.join();
  other.join();
}

void asked_by_two_threads() {
  with_many_sums([](MPI_Request& request) {
    by_two_threads([request] {
      for (int done = 0; !done; rest()) MPI_Request_get_status(request, &done, MPI_STATUS_IGNORE);
    });
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(request == MPI_REQUEST_NULL, "asked by two threads, then completed");
  });
}

void tested_by_two_threads() {
  with_many_sums([](MPI_Request& request) {
    std::mutex mutex;  // guards `request`
    std::atomic<int> completions{0};
    by_two_threads([&] {
      for (bool over = false; !over; rest()) {
        const std::lock_guard lock(mutex);
        const bool active = request != MPI_REQUEST_NULL;
        int done = 0;
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        completions += active && done;
        over = done;
      }
    });
    expect(completions == 1, "exactly one of two threads completes the request");
  });
}

// Row 34 of tests/faults/README.md: short non-blocking collectives on one communicator, of mixed
// kinds and with various roots.
class MixedCollectives {
 public:
  MixedCollectives(int seed, MPI_Comm comm)
      : comm_(comm), rank_(rank_of(comm)), next_(static_cast<unsigned>(seed)) {}

  void start(MPI_Request* request) {
    next_ = next_ * 1103515245 + 12345;
    kind_ = next_ / 65536 % 5;
    root_ = static_cast<int>(next_ / 1024 % 64) % size_of(comm_);
    in_ = rank_ + 1;
    out_.assign(static_cast<std::size_t>(size_of(comm_)), -1);
    const MPI_Comm comm = comm_;
    switch (kind_) {
      case 0:
        out_[0] = rank_ == root_ ? 7 : -1;
        MPI_Ibcast(out_.data(), 1, MPI_INT, root_, comm, request);
        break;
      case 1:
        MPI_Ireduce(&in_, out_.data(), 1, MPI_INT, MPI_SUM, root_, comm, request);
        break;
      case 2:
        MPI_Iallreduce(&in_, out_.data(), 1, MPI_INT, MPI_SUM, comm, request);
        break;
      case 3:
        MPI_Iallgather(&in_, 1, MPI_INT, out_.data(), 1, MPI_INT, comm, request);
        break;
      default:
        MPI_Ibarrier(comm, request);
    }
  }

  bool right() const {
    const int all = size_of(comm_) + sum_of_ranks(comm_);
    if (kind_ == 0) return out_[0] == 7;
    if (kind_ == 1) return rank_ != root_ || out_[0] == all;
    if (kind_ == 2) return out_[0] == all;
    return kind_ != 3 || out_.back() == size_of(comm_);
  }

 private:
  MPI_Comm comm_;
  int rank_;
  unsigned next_, kind_ = 0;
  int root_ = 0, in_ = 0;
  std::vector<int> out_;
};

constexpr int kAtATime = 3, kMixed = 200;

// On each communicator all ranks start and complete the collectives in the same order; across
// communicators the orders differ. There is also a blocking collective of the program.
void on_three_communicators() {
  OwnWorld comms[kAtATime], own;
  std::vector<MixedCollectives> mixed;
  for (int i = 0; i < kAtATime; ++i) mixed.emplace_back(i + 1, comms[i]);
  for (int round = 0; round < kMixed; ++round) {
    MPI_Request requests[kAtATime];
    for (int i = 0; i < kAtATime; ++i) {
      const int at = (i + rank_of(own)) % kAtATime;
      mixed[at].start(&requests[at]);
    }
    if (round % 4 == 0) MPI_Barrier(own);
    MPI_Waitall(kAtATime, requests, MPI_STATUSES_IGNORE);
    for (const auto& one : mixed) expect(one.right(), "one of three at a time");
  }
}

// Each collective is completed by the thread that started it, while other threads do the same on
// other communicators.
void by_three_threads() {
  if (!threads_granted()) return tell("no MPI_THREAD_MULTIPLE");
  OwnWorld comms[kAtATime];
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kAtATime; ++i)
    threads.emplace_back([i, &comms, &right] {
      MixedCollectives mixed(i + 1, comms[i]);
      for (int round = 0; round < kMixed; ++round) {
        MPI_Request request;
        mixed.start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        right += mixed.right();
      }
    });
  for (auto& thread : threads) thread.join();
  expect(right == kAtATime * kMixed, "results of three threads");
}

// Chooses engine tcc by a hint after MPI_Init.
void hinted_tcc() {
  OwnWorld comm;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "weft_engine", "tcc");
  MPI_Comm_set_info(comm, info);
  MPI_Info_free(&info);
  MixedCollectives mixed(1, comm);
  for (int round = 0; round < kMixed; ++round) {
    MPI_Request request;
    mixed.start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(mixed.right(), "with a hint");
  }
}

}  // namespace

const std::vector<Case>& many_cases() {
  static const std::vector<Case> cases = {
      {"very-many", very_many},
      {"freed-at-different-times", freed_at_different_times},
      {"many-communicators", many_communicators},
      {"many-kinds-of-communicators", many_kinds_of_communicators},
      {"communicators-in-turn", communicators_in_turn},
      {"many-persistent", many_persistent},
      {"asked-by-two-threads", asked_by_two_threads},
      {"tested-by-two-threads", tested_by_two_threads},
      {"on-three-communicators", on_three_communicators},
      {"by-three-threads", by_three_threads},
      {"hinted-tcc", hinted_tcc},
  };
  return cases;
}

}  // namespace faults
