// Programs that end during collectives in every possible way, and events beside collectives: forked
// children, signals. What an intercepting library leaves running or registered has an effect when
// the process ends.
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <vector>

#include "faults.h"

namespace faults {
namespace {

// Rows 1 and 2 of tests/faults/README.md: collectives without end, during which the test kills
// ranks. The printed line tells the test that all ranks have begun.
void endless() {
  std::vector<Sum> sums;
  for (int i = 0; i < 4; ++i) sums.emplace_back(i % 2 ? 50000 : 10, MPI_COMM_WORLD);
  for (long round = 0;; ++round) {
    std::vector<MPI_Request> requests(sums.size());
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i].start(&requests[i]);
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    if (round == 3) tell_all("rank %d is process %d", rank_of(MPI_COMM_WORLD), getpid());
  }
}

// Starts a sum that its rank does not complete. The buffers are never freed.
Sum* left_behind(MPI_Request* request, int count = 50000) {
  auto* sum = new Sum(count, MPI_COMM_WORLD);
  sum->start(request);
  return sum;
}

// Row 3 of tests/faults/README.md: MPI_Abort during a collective.
void aborts() {
  MPI_Request requests[3];
  for (auto& request : requests) left_behind(&request);
  if (rank_of(MPI_COMM_WORLD) == 1) MPI_Abort(MPI_COMM_WORLD, 42);
  MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
  rest(60'000'000);
}

// Row 4 of tests/faults/README.md: exit during a collective.
void exits() {
  MPI_Request requests[3];
  for (auto& request : requests) left_behind(&request);
  std::exit(0);
}

// Row 5 of tests/faults/README.md: MPI_Finalize while a collective is incomplete. All ranks have
// started it and none completes it, or rank 0 alone has started it.
void finalizes_incomplete() {
  for (int i = 0; i < 1000; ++i) {
    MPI_Request request;
    left_behind(&request, 10);
  }
  MPI_Request barrier;
  MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
}

void finalizes_alone() {
  MPI_Request request;
  // The sum has the same length as the words on which ranks agree in MPI_Finalize, with which it
  // must not be matched.
  if (rank_of(MPI_COMM_WORLD) == 0) left_behind(&request, 2);
}

// Row 18 of tests/faults/README.md: each rank waits for the other's data, in two different
// collectives.
void misordered() {
  OwnWorld comm;
  const int rank = rank_of(comm);
  Sum first(10, comm);
  MPI_Request request;
  first.start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  std::vector<int> in(5000, rank), out(5000);
  if (rank == 0)
    MPI_Ireduce(in.data(), out.data(), 5000, MPI_INT, MPI_SUM, 0, comm, &request);
  else
    MPI_Ibcast(in.data(), 5000, MPI_INT, 0, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(false, "wrongly ordered collectives do not end");
}

bool all_right(std::vector<Sum>& sums, std::vector<MPI_Request>& requests) {
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  bool right = true;
  for (const auto& sum : sums) right = right && sum.right();
  return right;
}

enum class Child { exits, exits_at_once, becomes_another };

void wait_for(pid_t child) {
  int status = 0;
  for (int tries = 0; tries < 1000; ++tries, rest(10000))
    if (waitpid(child, &status, WNOHANG) == child)
      return expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child exits with 0");
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  expect(false, "the child ends");
}

// Row 26 of tests/faults/README.md: a child process is forked.
void forks() {
  for (const Child what : {Child::exits, Child::exits_at_once, Child::becomes_another}) {
    std::vector<Sum> sums;
    std::vector<MPI_Request> requests(4);
    for (int i = 0; i < 4; ++i) sums.emplace_back(i % 2 ? 50000 : 10, MPI_COMM_WORLD);
    for (int i = 0; i < 4; ++i) sums[i].start(&requests[i]);
    const pid_t child = fork();
    if (child == 0) {
      if (what == Child::exits) std::exit(0);
      if (what == Child::becomes_another) execl("/bin/true", "true", nullptr);
      _exit(what == Child::becomes_another);
    }
    wait_for(child);
    expect(all_right(sums, requests), "the parent's collectives");
  }
}

// Row 18 of tests/faults/README.md: rank 0 comes late to a blocking collective of a kind that all
// ranks have called before.
void late() {
  for (int round = 0; round < 4; ++round) {
    if (round == 3 && rank_of(MPI_COMM_WORLD) == 0) sleep(3);
    const int one = 1;
    int all = 0;
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    expect(all == size_of(MPI_COMM_WORLD), "a blocking collective, one rank late");
  }
}

volatile sig_atomic_t alarms = 0, alarms_elsewhere = 0;
pid_t main_thread = 0;

void count_alarm(int) {
  alarms = alarms + 1;
  if (syscall(SYS_gettid) != main_thread) alarms_elsewhere = alarms_elsewhere + 1;
}

// Row 27 of tests/faults/README.md: a timer interrupts system calls all the time. Only the
// application's thread must get the signals.
void interrupted() {
  main_thread = static_cast<pid_t>(syscall(SYS_gettid));
  struct sigaction action = {};
  action.sa_handler = count_alarm;  // without SA_RESTART, system calls fail with EINTR
  sigaction(SIGVTALRM, &action, nullptr);
  sigaction(SIGUSR1, &action, nullptr);
  for (int round = 0; round < 100; ++round) {
    std::vector<Sum> sums;
    std::vector<MPI_Request> requests(2);
    for (int i = 0; i < 2; ++i) sums.emplace_back(i ? 50000 : 10, MPI_COMM_WORLD);
    for (int i = 0; i < 2; ++i) sums[i].start(&requests[i]);
    kill(getpid(), SIGUSR1);
    const itimerval every_ms = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_VIRTUAL, &every_ms, nullptr);
    expect(all_right(sums, requests), "collectives under signals");
  }
  const itimerval never = {};
  setitimer(ITIMER_VIRTUAL, &never, nullptr);
  expect(alarms >= 100, "signals arrive");
  tell_all("signals in other threads: %d", static_cast<int>(alarms_elsewhere));
}

volatile sig_atomic_t continued = 0;

// Row 27 of tests/faults/README.md: each rank is stopped and continued from outside. It prints when
// it may be stopped.
void stoppable() {
  signal(SIGCONT, [](int) { continued = 1; });
  std::vector<Sum> sums;
  for (int i = 0; i < 4; ++i) sums.emplace_back(i % 2 ? 50000 : 10, MPI_COMM_WORLD);
  tell_all("rank %d is process %d", rank_of(MPI_COMM_WORLD), getpid());
  for (int over = 0; !over;) {
    std::vector<MPI_Request> requests(sums.size());
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i].reset();
      sums[i].start(&requests[i]);
    }
    expect(all_right(sums, requests), "collectives while ranks are stopped and continued");
    const int here = continued;
    MPI_Allreduce(&here, &over, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  }
}

// Row 37 of tests/faults/README.md: a program that finds out by SIGSEGV which of its pages are
// written, as incremental checkpoints and some garbage collectors do. The thread that progresses
// the collective writes the pages while the program computes.
std::size_t page_bytes;
char *tracked_begin, *tracked_end;
std::atomic<int> written{0};  // number of pages written

void note_page(int, siginfo_t* info, void*) {
  char* const at = static_cast<char*>(info->si_addr);
  if (at < tracked_begin || at >= tracked_end) _exit(5);
  const auto offset = static_cast<std::size_t>(at - tracked_begin) / page_bytes * page_bytes;
  mprotect(tracked_begin + offset, page_bytes, PROT_READ | PROT_WRITE);
  ++written;
}

// Ints on pages of their own, which a test protects.
class Tracked {
 public:
  explicit Tracked(int count) : bytes_(static_cast<std::size_t>(count) * sizeof(int)) {
    page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    tracked_begin = static_cast<char*>(
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    tracked_end = tracked_begin + bytes_;
    struct sigaction action = {};
    action.sa_sigaction = note_page;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &before_);
  }
  ~Tracked() {
    sigaction(SIGSEGV, &before_, nullptr);
    munmap(tracked_begin, bytes_);
  }
  Tracked(const Tracked&) = delete;
  Tracked& operator=(const Tracked&) = delete;

  int* data() const { return reinterpret_cast<int*>(tracked_begin); }
  int pages() const { return static_cast<int>(bytes_ / page_bytes); }
  void fill(int value) const {
    mprotect(tracked_begin, bytes_, PROT_READ | PROT_WRITE);
    std::fill(data(), data() + bytes_ / sizeof(int), value);
  }
  void protect() const {
    mprotect(tracked_begin, bytes_, PROT_READ);
    written = 0;
  }

 private:
  std::size_t bytes_;
  struct sigaction before_ = {};
};

void tracks_pages() {
  constexpr int kCount = 1 << 18;
  const Tracked out(kCount);
  const std::vector<int> in(kCount, rank_of(MPI_COMM_WORLD));
  for (int turn = 0; turn < 3; ++turn) {
    out.protect();
    MPI_Request request;
    MPI_Iallreduce(in.data(), out.data(), kCount, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    while (std::getenv("FAULTS_BY_THREAD") && written < out.pages()) rest();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    const int sum = sum_of_ranks(MPI_COMM_WORLD);
    expect(out.data()[0] == sum && out.data()[kCount - 1] == sum,
           "allreduce into pages that are tracked");
    expect(written == out.pages(), "every page was seen");
  }
}

// Row 37 of tests/faults/README.md with collectives that only move data, for which the kernel may
// copy from process to process.
void tracks_pages_of_moves() {
  constexpr int kCount = 1 << 18;
  const Tracked out(kCount);
  const MPI_Comm comm = MPI_COMM_WORLD;
  const int rank = rank_of(comm), block = kCount / size_of(comm), all = out.pages();
  const int of_block = all / size_of(comm), of_others = all - of_block;
  const std::vector<int> in(kCount, rank + 10);
  struct Move {
    const char* name;
    int pages;  // least number of pages that must be written on this rank
    std::function<int(MPI_Request*)> start;
    int first, last;  // expected first and last value of the result
  };
  const int here = rank + 10, of_last = size_of(comm) + 9;
  const Move moves[] = {
      {"bcast", rank == 0 ? 0 : all,
       [&](MPI_Request* r) { return MPI_Ibcast(out.data(), kCount, MPI_INT, 0, comm, r); }, 10, 10},
      {"gather", rank == 0 ? all : 0,
       [&](MPI_Request* r) {
         return MPI_Igather(in.data(), block, MPI_INT, out.data(), block, MPI_INT, 0, comm, r);
       },
       rank == 0 ? 10 : here, rank == 0 ? of_last : here},
      {"scatter", of_block,
       [&](MPI_Request* r) {
         return MPI_Iscatter(in.data(), block, MPI_INT, out.data(), block, MPI_INT, 0, comm, r);
       },
       10, here},
      {"allgather", all,
       [&](MPI_Request* r) {
         return MPI_Iallgather(in.data(), block, MPI_INT, out.data(), block, MPI_INT, comm, r);
       },
       10, of_last},
      {"alltoall", all,
       [&](MPI_Request* r) {
         return MPI_Ialltoall(in.data(), block, MPI_INT, out.data(), block, MPI_INT, comm, r);
       },
       10, of_last},
      {"alltoall in place", of_others,
       [&](MPI_Request* r) {
         return MPI_Ialltoall(MPI_IN_PLACE, 0, MPI_INT, out.data(), block, MPI_INT, comm, r);
       },
       10, of_last},
  };
  for (const Move& move : moves)
    for (int turn = 0; turn < 3; ++turn) {
      out.fill(here);
      MPI_Barrier(comm);
      out.protect();
      MPI_Request request;
      move.start(&request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      expect(out.data()[0] == move.first && out.data()[kCount - 1] == move.last, move.name);
      expect(written >= move.pages, "every page was seen");
      MPI_Barrier(comm);
    }
}

// Receives a message very late: when MPI_Finalize deletes the attributes of MPI_COMM_SELF. The
// message is an ordinary one on MPI_COMM_WORLD.
int receive_at_last(MPI_Comm, int, void*, void*) {
  std::int64_t bytes = 0;
  MPI_Recv(&bytes, sizeof bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  expect(bytes == 77, "a message that waited for MPI_Finalize");
  return MPI_SUCCESS;
}

void message_waits_for_the_end() {
  const int rank = rank_of(MPI_COMM_WORLD);
  const std::int64_t bytes = 77;
  if (rank == 1) MPI_Send(&bytes, sizeof bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
  Sum sum(50000, MPI_COMM_WORLD);
  MPI_Request request;
  sum.start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(sum.right(), "allreduce beside a message");
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, receive_at_last, &key, nullptr);
  if (rank == 0) MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
  MPI_Comm_free_keyval(&key);
}

}  // namespace

const std::vector<Case>& end_cases() {
  static const std::vector<Case> cases = {
      {"tracks-pages", tracks_pages},
      {"tracks-pages-of-moves", tracks_pages_of_moves},
      {"message-waits-for-the-end", message_waits_for_the_end},
      {"endless", endless},
      {"aborts", aborts},
      {"exits", exits},
      {"finalizes-incomplete", finalizes_incomplete},
      {"finalizes-alone", finalizes_alone},
      {"misordered", misordered},
      {"late", late},
      {"forks", forks},
      {"interrupted", interrupted},
      {"stoppable", stoppable},
  };
  return cases;
}

}  // namespace faults
