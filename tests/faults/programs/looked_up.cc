// MPI functions that the program looks up instead of linking to them: in the MPI library itself, in
// the program's search order, behind the program (RTLD_NEXT), and in a plugin that finds the MPI
// library first.
#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "faults.h"
#include "looked_up_calls.h"

namespace faults {
namespace {

constexpr int kTimes = 3;

struct Way {
  std::string name;
  mpi_calls calls;
};

template <class Find>
mpi_calls found_by(Find find, const std::string& prefix) {
  mpi_calls calls{};
  const auto bind = [&](auto& slot, const char* name) {
    void* const found = find((prefix + name).c_str());
    expect(found != nullptr, name);
    std::memcpy(&slot, &found, sizeof slot);
  };
  bind(calls.Iallreduce, "Iallreduce");
  bind(calls.Allreduce_init, "Allreduce_init");
  bind(calls.Start, "Start");
  bind(calls.Wait, "Wait");
  bind(calls.Waitall, "Waitall");
  bind(calls.Test, "Test");
  bind(calls.Request_free, "Request_free");
  return calls;
}

template <class Find>
void add_found(std::vector<Way>& ways, const std::string& name, Find find) {
  for (const char* prefix : {"MPI_", "PMPI_"})
    ways.push_back({name + ", " + prefix, found_by(find, prefix)});
}

void* library() {
  std::string file;
  const auto visit = [](dl_phdr_info* object, std::size_t, void* found) {
    const std::string name = object->dlpi_name;
    if (name.find("/libmpi.so") != std::string::npos) *static_cast<std::string*>(found) = name;
    return 0;
  };
  dl_iterate_phdr(visit, &file);
  return dlopen(file.c_str(), RTLD_NOW | RTLD_NOLOAD);
}

void* behind_program(const char* name) {
  return dlsym(RTLD_NEXT, name);
}

void add_plugins(std::vector<Way>& ways, const char* file) {
  void* const plugin = dlopen(file, RTLD_LAZY | RTLD_LOCAL | RTLD_DEEPBIND);
  expect(plugin != nullptr, "the plugin is opened");
  if (!plugin) return;
  const auto table = [&](const char* name) {
    return *static_cast<const mpi_calls*>(dlsym(plugin, name));
  };
  ways.push_back({"plugin, table", table("plugin_table")});
  ways.push_back({"plugin, functions", table("plugin_functions")});
  using Finds = void*(const char*);
  add_found(ways, "plugin, looks up", reinterpret_cast<Finds*>(dlsym(plugin, "plugin_finds")));
  add_found(ways, "plugin's handle", [&](const char* name) { return dlsym(plugin, name); });
}

mpi_calls linked() {
  return {MPI_Iallreduce, MPI_Allreduce_init, MPI_Start,       MPI_Wait,
          MPI_Waitall,    MPI_Test,           MPI_Request_free};
}

std::vector<Way> all_ways() {
  std::vector<Way> ways{{"linked", linked()}};
  void* const handle = library();
  expect(handle != nullptr, "the library's handle");
  add_found(ways, "library", [&](const char* name) { return dlsym(handle, name); });
  add_found(ways, "first", [](const char* name) { return dlsym(RTLD_DEFAULT, name); });
  add_found(ways, "next", behind_program);
  if (const char* const file = std::getenv("FAULTS_PLUGIN")) add_plugins(ways, file);
  return ways;
}

// A sum that is started and completed by looked-up functions.
struct LookedUpSum {
  int in = 1, out = 0;
  void check(const Way& starts, const Way& ends, const char* how) {
    const std::string what = how + (": started by " + starts.name) + ", ended by " + ends.name;
    expect(out == size_of(MPI_COMM_WORLD), what.c_str());
    out = 0;
  }
};

void test_until_done(const mpi_calls& calls, MPI_Request* request) {
  for (int done = 0; !done;) calls.Test(request, &done, MPI_STATUS_IGNORE);
}

void nonblocking(const Way& starts, const Way& ends) {
  LookedUpSum one, other;
  MPI_Request requests[2];
  const auto start = [&](LookedUpSum& sum, MPI_Request* request) {
    starts.calls.Iallreduce(&sum.in, &sum.out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, request);
  };
  for (int i = 0; i < kTimes; ++i) {
    start(one, requests);
    ends.calls.Wait(requests, MPI_STATUS_IGNORE);
    one.check(starts, ends, "Wait");
    start(one, requests);
    test_until_done(ends.calls, requests);
    one.check(starts, ends, "Test");
    start(one, requests);
    start(other, requests + 1);
    ends.calls.Waitall(2, requests, MPI_STATUSES_IGNORE);
    one.check(starts, ends, "Waitall");
    other.check(starts, ends, "Waitall");
  }
}

void persistent(const Way& starts, const Way& ends) {
  for (const mpi_calls& makes : {starts.calls, ends.calls}) {
    LookedUpSum sum;
    MPI_Request request;
    makes.Allreduce_init(&sum.in, &sum.out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                         &request);
    for (int i = 0; i < kTimes; ++i) {
      starts.calls.Start(&request);
      ends.calls.Wait(&request, MPI_STATUS_IGNORE);
      sum.check(starts, ends, "Start and Wait");
      starts.calls.Start(&request);
      test_until_done(ends.calls, &request);
      sum.check(starts, ends, "Start and Test");
    }
    ends.calls.Request_free(&request);
    expect(request == MPI_REQUEST_NULL, "freed");
  }
}

// Row 42 of tests/faults/README.md, in a program with one thread: only in such a program can short
// calls be completed inline.
void looked_up() {
  const std::vector<Way> ways = all_ways();
  MPI_Init(nullptr, nullptr);
  for (const Way& way : ways)
    for (const auto& [starts, ends] : {std::pair{ways[0], way}, {way, ways[0]}, {way, way}}) {
      nonblocking(starts, ends);
      persistent(starts, ends);
    }
  tell_all("%d ways", static_cast<int>(ways.size()));
  MPI_Finalize();
}

}  // namespace

const std::vector<Case>& looked_up_cases() {
  static const std::vector<Case> cases{{"looked-up", looked_up, true}};
  return cases;
}

}  // namespace faults
