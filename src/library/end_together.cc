// After MPI_Finalize ranks cannot send each other anything. A process that has come out of it says
// so by its name, which all others of the node can read.
#include "library/end_together.h"

#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "library/generated/library_calls.h"
#include "library/handles.h"

namespace weft {
namespace {

constexpr std::string_view kName = "weft-has-ended";
constexpr auto kPatience = std::chrono::seconds(5);

struct Process {
  std::uint64_t node;  // where process numbers mean the same
  std::int64_t number;
};

Process this_process() {
  std::string kernel;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> kernel;
  struct stat status = {};
  stat("/proc/self/ns/pid", &status);
  return {std::hash<std::string>()(kernel + std::to_string(status.st_ino)), getpid()};
}

// In a form that does not block: where ranks have asked for different levels of threads, MPICH's
// blocking collectives hang.
std::vector<Process> processes_of_job(const Process& own) {
  int ranks = 1, done = 0;
  library_calls.Comm_size(handles.comm_world, &ranks);
  std::vector<Process> all(static_cast<std::size_t>(ranks), own);
  MPI_Request request;
  if (library_calls.Iallgather(&own, sizeof own, handles.byte, all.data(), sizeof own, handles.byte,
                               handles.comm_world, &request) != MPI_SUCCESS)
    return {};
  while (library_calls.Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done)
    sched_yield();
  return all;
}

void take_name() {
  const int file = open("/proc/self/comm", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  [[maybe_unused]] const auto written = write(file, kName.data(), kName.size());
  close(file);
}

bool has_ended(const Process& process) {
  std::string name;
  std::ifstream file("/proc/" + std::to_string(process.number) + "/comm");
  return !(file >> name) || name == kName;
}

void wait_for(const std::vector<Process>& processes) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  for (const Process& process : processes)
    while (!has_ended(process) && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace

void end_together(int (*finalize)(), int status) {
  const Process own = this_process();
  auto processes = processes_of_job(own);
  const auto elsewhere =
      std::erase_if(processes, [&](const Process& process) { return process.node != own.node; });
  finalize();
  take_name();
  wait_for(processes);
  // Nobody hears of ranks on other nodes; they left the same barrier inside MPI_Finalize.
  if (elsewhere > 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  std::fflush(nullptr);
  std::_Exit(status);
}

}  // namespace weft
