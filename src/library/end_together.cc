// Lets all ranks of a node exit at the same time. Ranks cannot communicate by MPI after
// MPI_Finalize. Instead, a process that has returned from it changes its process name, which the
// other processes of the node read in /proc. Once all have done so, the first process announces the
// time of the exit by changing its name again.
#include "library/end_together.h"

#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "library/generated/library_calls.h"
#include "library/handles.h"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

constexpr auto kPatience = std::chrono::seconds(5);
constexpr std::int64_t kNotice_ms = 20, kWrap_ms = 1'000'000;
// The process name of a rank that has returned from MPI_Finalize. The kernel limits process names
// to 15 characters.
const std::string kOut = "weft-out";

struct Process {
  // Identifies the running kernel and the process-ID namespace. Processes with equal values can
  // find each other in /proc by `number`, which is the process ID.
  std::uint64_t node;
  std::int64_t number;
};

Process this_process() {
  std::string kernel;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> kernel;
  struct stat status = {};
  stat("/proc/self/ns/pid", &status);
  return {std::hash<std::string>()(kernel + std::to_string(status.st_ino)), getpid()};
}

// Returns the processes of all ranks, by rank. Uses a non-blocking collective, because MPICH's
// blocking ones hang if ranks have requested different thread levels.
std::vector<Process> processes_of_job(const Process& own) {
  int ranks = 1, done = 0;
  library_calls.Comm_size(handles.comm_world, &ranks);
  std::vector<Process> all(static_cast<std::size_t>(ranks), own);
  MPI_Request request;
  if (library_calls.Iallgather(&own, sizeof own, handles.byte, all.data(), sizeof own, handles.byte,
                               handles.comm_world, &request) != MPI_SUCCESS)
    return {own};
  while (library_calls.Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done)
    sched_yield();
  return all;
}

void take_name(const std::string& name) {
  const int file = open("/proc/self/comm", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  [[maybe_unused]] const auto written = write(file, name.data(), name.size());
  close(file);
}

// Returns the name of the process; "" if the process has ended.
std::string name_of(const Process& process) {
  std::string name;
  std::ifstream("/proc/" + std::to_string(process.number) + "/comm") >> name;
  return name;
}

bool is_out(const Process& process) {
  const std::string name = name_of(process);
  return name.empty() || name.starts_with(kOut);
}

std::int64_t now_ms() {
  return std::chrono::duration_cast<Milliseconds>(Clock::now().time_since_epoch()).count();
}

void wait_until(const std::function<bool()>& done) {
  for (const auto until = Clock::now() + kPatience; !done() && Clock::now() < until;)
    std::this_thread::sleep_for(Milliseconds(1));
}

// Waits until all other processes have returned from MPI_Finalize, announces the time of the exit
// in this process's name (in milliseconds of the node's clock), and waits until that time.
void name_instant(const std::vector<Process>& others) {
  wait_until([&] { return std::ranges::all_of(others, is_out); });
  const std::int64_t instant = now_ms() + kNotice_ms;
  take_name(kOut + std::to_string(instant % kWrap_ms));
  std::this_thread::sleep_until(Clock::time_point(Milliseconds(instant)));
}

// Returns the time of the exit, in milliseconds of the node's clock, that a process name announces;
// nothing if it announces none.
std::optional<std::int64_t> instant_in(const std::string& name) {
  if (!name.starts_with(kOut)) return std::nullopt;
  std::int64_t instant = 0;
  const char* const end = name.data() + name.size();
  const auto [behind, failed] = std::from_chars(name.data() + kOut.size(), end, instant);
  return failed == std::errc() && behind == end ? std::optional(instant) : std::nullopt;
}

void wait_for_instant(const Process& first) {
  std::string name;
  wait_until([&] { return (name = name_of(first)).empty() || instant_in(name); });
  if (!instant_in(name)) return;
  const std::int64_t now = now_ms(), named = *instant_in(name);
  const std::int64_t left_ms = ((named - now) % kWrap_ms + kWrap_ms) % kWrap_ms;
  if (left_ms <= kNotice_ms)
    std::this_thread::sleep_until(Clock::time_point(Milliseconds(now + left_ms)));
}

}  // namespace

void end_together(int (*finalize)(), int status) {
  const Process own = this_process();
  auto processes = processes_of_job(own);
  const auto elsewhere =
      std::erase_if(processes, [&](const Process& process) { return process.node != own.node; });
  finalize();
  std::fflush(nullptr);
  take_name(kOut);
  // The names of processes on other nodes cannot be read. Those processes return from MPI_Finalize
  // at about the same time, so a short wait suffices for them.
  if (elsewhere > 0) std::this_thread::sleep_for(Milliseconds(300));
  if (processes.front().number == own.number)
    name_instant(processes);
  else
    wait_for_instant(processes.front());
  std::_Exit(status);
}

}  // namespace weft
