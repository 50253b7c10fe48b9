// idle: measures what the other threads of a process do while no communication is in progress,
// since a loaded library must cost nothing then. It runs for `seconds` seconds and prints one line
// for each thread except the calling one: its name, the CPU ticks that it has used, and how often
// it woke up, from the kernel's counters.
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace {

struct Activity {
  std::string name;
  long ticks = 0;
  long wakes = 0;  // voluntary context switches: each is a system call in which the thread slept
};

Activity activity(const std::filesystem::path& task) {
  Activity result;
  std::getline(std::ifstream(task / "comm") >> std::ws, result.name);
  std::string stat;
  std::getline(std::ifstream(task / "stat"), stat);
  long user = 0, system = 0;
  const char* after_name = stat.c_str() + stat.rfind(')') + 1;
  std::sscanf(after_name, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user, &system);
  result.ticks = user + system;
  std::ifstream status(task / "status");
  for (std::string line; std::getline(status, line);) {
    std::sscanf(line.c_str(), "voluntary_ctxt_switches: %ld", &result.wakes);
  }
  return result;
}

std::map<int, Activity> other_threads() {
  std::map<int, Activity> result;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const int id = std::atoi(task.path().filename().c_str());
    if (id != getpid()) result[id] = activity(task.path());
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  const int seconds = argc > 1 ? std::atoi(argv[1]) : 10;
  MPI_Init(&argc, &argv);
  int rank = 0;
  // Large data, for which Weft starts a thread if it ever does.
  std::vector<int> in(1 << 20, 1), out(1 << 20);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Request request;
  MPI_Iallreduce(in.data(), out.data(), 1 << 20, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  usleep(200000);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  sleep(1);
  auto before = other_threads();
  sleep(seconds);
  for (const auto& [id, now] : other_threads()) {
    std::printf("rank %d thread %s: %ld ticks, %ld wakes in %d s\n", rank, now.name.c_str(),
                now.ticks - before[id].ticks, now.wakes - before[id].wakes, seconds);
  }
  MPI_Finalize();
  return 0;
}
