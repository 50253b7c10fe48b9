// Ends: programs that stop in the middle of collectives, in every way there is, and what comes and
// goes beside them: forked children, signals.
// Why: what an intercepting library leaves running or registered shows when the process ends.
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "faults.h"

namespace faults {
namespace {

// Rows 1, 2: collectives without end, to be killed in. The line tells the test that all have begun.
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

// Buffers that outlive everything: the collectives are not completed by their ranks.
Sum* left_behind(MPI_Request* request, int count = 50000) {
  auto* sum = new Sum(count, MPI_COMM_WORLD);
  sum->start(request);
  return sum;
}

// Row 3.
void aborts() {
  MPI_Request requests[3];
  for (auto& request : requests) left_behind(&request);
  if (rank_of(MPI_COMM_WORLD) == 1) MPI_Abort(MPI_COMM_WORLD, 42);
  MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
  rest(60'000'000);
}

// Row 4.
void exits() {
  MPI_Request requests[3];
  for (auto& request : requests) left_behind(&request);
  std::exit(0);
}

// Row 5: all ranks take part, none completes; or rank 0 alone has started.
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
  if (rank_of(MPI_COMM_WORLD) == 0) left_behind(&request, 10);
}

// Row 18: each waits for the other's data, in two collectives.
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

// Row 26.
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

// Row 18: rank 0 comes late to a blocking collective that all have made before.
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

// Row 27: a timer interrupts system calls all the time. Only the application's thread sees it.
void interrupted() {
  main_thread = static_cast<pid_t>(syscall(SYS_gettid));
  struct sigaction action = {};
  action.sa_handler = count_alarm;  // without SA_RESTART
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

// Row 27: stopped and continued from outside; says when it may be stopped.
void stoppable() {
  std::vector<Sum> sums;
  for (int i = 0; i < 4; ++i) sums.emplace_back(i % 2 ? 50000 : 10, MPI_COMM_WORLD);
  tell_all("rank %d is process %d", rank_of(MPI_COMM_WORLD), getpid());
  const double began = MPI_Wtime();
  for (int over = 0; !over;) {
    std::vector<MPI_Request> requests(sums.size());
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i].reset();
      sums[i].start(&requests[i]);
    }
    expect(all_right(sums, requests), "collectives while ranks are stopped and continued");
    over = rank_of(MPI_COMM_WORLD) == 0 && MPI_Wtime() - began > 2.0;
    MPI_Bcast(&over, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
}

}  // namespace

const std::vector<Case>& end_cases() {
  static const std::vector<Case> cases = {
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
