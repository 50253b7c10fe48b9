// Programs that ask MPI for little, that never or hardly initialise MPI, and one that needs
// progress whatever the system refuses (refuse.c).
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "faults.h"

namespace faults {
namespace {

std::string first_line(const std::string& path, const char* field) {
  std::FILE* file = std::fopen(path.c_str(), "r");
  char line[4096];
  std::string found;
  while (file && std::fgets(line, sizeof line, file)) {
    if (std::strncmp(line, field, std::strlen(field)) != 0) continue;
    found = line + std::strlen(field);
    while (!found.empty() && (found.back() == '\n')) found.pop_back();
    break;
  }
  if (file) std::fclose(file);
  return found;
}

struct Thread {
  std::string name, cores;
};

std::vector<Thread> threads_of_this_process() {
  std::vector<Thread> threads;
  DIR* tasks = opendir("/proc/self/task");
  while (const dirent* entry = tasks ? readdir(tasks) : nullptr) {
    if (entry->d_name[0] == '.') continue;
    const std::string status = std::string("/proc/self/task/") + entry->d_name + "/status";
    threads.push_back({first_line(status, "Name:\t"), first_line(status, "Cpus_allowed_list:\t")});
  }
  if (tasks) closedir(tasks);
  return threads;
}

bool has_thread(const char* name) {
  const auto threads = threads_of_this_process();
  return std::any_of(threads.begin(), threads.end(), [&](auto& t) { return t.name == name; });
}

// Prints this process's threads and the cores on which each may run. A thread gets its name and its
// core with its first work, so this waits for the thread that FAULTS_AWAITED_THREAD names.
void list_threads() {
  const char* awaited = std::getenv("FAULTS_AWAITED_THREAD");
  constexpr int kWorthAThread = 1 << 20;
  Sum sum(kWorthAThread, MPI_COMM_WORLD);
  MPI_Request request;
  sum.start(&request);
  for (int tries = 0; awaited && !has_thread(awaited) && tries < 1000; ++tries) rest(10000);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (const auto& [name, cores] : threads_of_this_process())
    tell_all("rank %d: thread %s on cores %s", rank_of(MPI_COMM_WORLD), name.c_str(),
             cores.c_str());
}

// A legal program that needs progress while it blocks elsewhere: rank 0 waits for a message that
// rank 1 sends only after its collective is complete, which needs later rounds of rank 0.
void blocks_elsewhere(MPI_Comm comm) {
  const int rank = rank_of(comm);
  for (int count : {1, 50000}) {
    Sum sum(count, comm);
    MPI_Request request;
    sum.start(&request);
    int token = 0;
    if (rank == 0) MPI_Recv(&token, 1, MPI_INT, 1, 3, comm, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(&token, 1, MPI_INT, 0, 3, comm);
    expect(sum.right(), "allreduce with a rank blocked elsewhere");
    MPI_Barrier(comm);
  }
}

void work(MPI_Comm comm) {
  MPI_Comm own;
  MPI_Comm_dup(comm, &own);
  blocks_elsewhere(own);
  MPI_Comm_free(&own);
  blocks_elsewhere(comm);
}

// Row 28 of tests/faults/README.md: initialises MPI, makes collectives and finalises MPI while the
// system refuses resources.
void start_and_work() {
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  work(MPI_COMM_WORLD);
  tell_all("works");
  MPI_Finalize();
}

std::int64_t own_status(const char* field) {
  return std::atoll(first_line("/proc/self/status", field).c_str());
}

int open_descriptors() {
  int open = 0;
  for (int i = 0; i < 1024; ++i) open += fcntl(i, F_GETFD) >= 0;
  return open;
}

// Row 36 of tests/faults/README.md: each rank prints what the process takes from the system after
// it has used shared memory and communicators.
void resources() {
  std::vector<OwnWorld> communicators(20);
  constexpr int kCount = 1 << 18;
  int *mine = nullptr, *sums = nullptr;
  MPI_Alloc_mem(kCount * sizeof(int), MPI_INFO_NULL, &mine);
  MPI_Alloc_mem(kCount * sizeof(int), MPI_INFO_NULL, &sums);
  std::fill(mine, mine + kCount, rank_of(MPI_COMM_WORLD));
  const int expected = sum_of_ranks(MPI_COMM_WORLD);
  for (int i = 0; i < 3; ++i) {
    MPI_Allreduce(mine, sums, kCount, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    expect(std::count(sums, sums + kCount, expected) == kCount,
           "allreduce on memory of MPI_Alloc_mem");
  }
  for (const OwnWorld& comm : communicators) {
    Sum sum(1000, comm);
    MPI_Request request;
    sum.start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(sum.right(), "allreduce");
  }
  tell_all("rank %d: addresses %lld KiB, shared pages %lld KiB, descriptors %d",
           rank_of(MPI_COMM_WORLD), static_cast<long long>(own_status("VmSize:")),
           static_cast<long long>(own_status("RssShmem:")), open_descriptors());
  MPI_Free_mem(mine);
  MPI_Free_mem(sums);
  MPI_Barrier(MPI_COMM_WORLD);
}

// Row 36 of tests/faults/README.md in a program that has locked its present and future memory by
// mlockall().
void locked_before() {
  expect(mlockall(MCL_CURRENT | MCL_FUTURE) == 0, "mlockall before MPI_Init");
  MPI_Init(nullptr, nullptr);
  resources();
  MPI_Finalize();
}
void locked_after() {
  MPI_Init(nullptr, nullptr);
  resources();
  expect(mlockall(MCL_CURRENT | MCL_FUTURE) == 0, "mlockall after MPI_Init");
  resources();
  MPI_Finalize();
}

// Row 25 of tests/faults/README.md: the thread level that is asked for.
void level_asked() {
  for (const auto& [name, level] : {std::pair{"single", MPI_THREAD_SINGLE},
                                    {"funneled", MPI_THREAD_FUNNELED},
                                    {"serialized", MPI_THREAD_SERIALIZED}}) {
    const char* asked = std::getenv("FAULTS_LEVEL");
    if (!asked || std::strcmp(asked, name) != 0) continue;
    int provided = -1, queried = -1, is_main = 0;
    MPI_Init_thread(nullptr, nullptr, level, &provided);
    MPI_Query_thread(&queried);
    MPI_Is_thread_main(&is_main);
    expect(provided >= level && queried == provided && is_main, "at least the level asked for");
    work(MPI_COMM_WORLD);
    list_threads();
    MPI_Finalize();
  }
}

void plain_init() {
  MPI_Init(nullptr, nullptr);
  int provided = -1;
  MPI_Query_thread(&provided);
  expect(provided >= MPI_THREAD_SINGLE, "a level");
  work(MPI_COMM_WORLD);
  list_threads();
  MPI_Finalize();
}

// Row 29 of tests/faults/README.md: MPI is never initialised.
void never_init() {
  int flag = 1;
  MPI_Initialized(&flag);
  expect(!flag, "not initialised");
  tell("never initialised");
}

void init_fails() {
  const int code = MPI_Init(nullptr, nullptr);
  expect(code != MPI_SUCCESS, "the tool behind makes MPI_Init fail");
  tell("MPI_Init returned an error");
}

void sessions_only() {
  MPI_Session session;
  if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) != MPI_SUCCESS)
    return tell("no sessions here");
  MPI_Group group;
  MPI_Comm comm;
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "faults", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
  MPI_Group_free(&group);
  int one = 1, sum = 0;
  MPI_Request request;
  MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(sum == size_of(comm), "allreduce in a session");
  if (rank_of(comm) == 0) tell_all("sessions: right");
  MPI_Comm_free(&comm);
  MPI_Session_finalize(&session);
}

// The only communication between the ranks is one message.
void waits_for_rank_0() {
  int token = 0;
  if (rank_of(MPI_COMM_WORLD) == 0) MPI_Send(&token, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
  if (rank_of(MPI_COMM_WORLD) == 1)
    MPI_Recv(&token, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// An element has more bytes than an int can count. No element is ever moved.
void huge_type() {
  MPI_Datatype huge;
  MPI_Type_create_hvector(1 << 29, 1, 0, MPI_DOUBLE, &huge);
  MPI_Type_commit(&huge);
  std::vector<double> sent(1), received(static_cast<std::size_t>(size_of(MPI_COMM_WORLD)));
  MPI_Request request;
  for (const int count : {0, 1}) {
    MPI_Allgather_init(sent.data(), count, huge, received.data(), count, huge, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &request);
    MPI_Request_free(&request);
  }
  MPI_Ibcast(sent.data(), 0, huge, 0, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Type_free(&huge);
  tell_all("a huge type: right");
}

}  // namespace

const std::vector<Case>& limit_cases() {
  static const std::vector<Case> cases = {
      {"level-asked", level_asked, true},
      {"plain-init", plain_init, true},
      {"resources", resources},
      {"locked-before", locked_before, true},
      {"locked-after", locked_after, true},
      {"never-init", never_init, true},
      {"init-fails", init_fails, true},
      {"sessions-only", sessions_only, true},
      {"list-threads", list_threads},
      {"work", start_and_work, true},
      {"waits-for-rank-0", waits_for_rank_0},
      {"huge-type", huge_type},
  };
  return cases;
}

}  // namespace faults
