// Prints the sentence of nothing_called.h when a process exits. It does so only in the process that
// `weft run` itself has become, and only if that has not waited for a child process: a shell or
// script leaves MPI to other programs. The first of several ranks prints the sentence. If no
// summary was requested, a program with an MPI library need not use it.
#include "interpose/nothing_called.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/first_rank.h"
#include "base/log.h"
#include "base/started.h"
#include "library/search.h"
#include "select/selector.h"

namespace weft::interpose {
namespace {

bool has_begun = false;

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value && *value;
}

bool started_by_weft_run() {
  const char* process = std::getenv(kStartedVariable);
  return process && process == std::to_string(getpid());
}

bool had_children() {
  rusage used = {};
  return getrusage(RUSAGE_CHILDREN, &used) == 0 && used.ru_maxrss > 0;
}

bool wants_summary() {
  return is_set("WEFT_SUMMARY") && std::strcmp(std::getenv("WEFT_SUMMARY"), "0") != 0;
}

bool has_mpi_library() {
  return find_behind_weft("PMPI_Finalize") != nullptr;
}

// Prints that the program has not called MPI, if that is worth telling. Says nothing after a
// program that failed, which has reported its own reason.
void say_that_there_was_nothing_to_do(int status, void*) {
  if (status != 0 || has_begun || !started_by_weft_run() || !is_first_rank() || had_children())
    return;
  // Checks the settings, because an error in them would have been reported only in MPI_Init.
  if (const auto config = checked_config(); !config) say(config.error().message);
  if (!wants_summary() && has_mpi_library()) return;
  const std::string program = program_invocation_name;
  say((wants_summary() ? "no summary: " : "nothing to do: ") + program +
      " has not called MPI_Init of a shared MPI library; see with 'ldd " + program +
      "' whether it is linked to one");
}

// Registers the function that prints the sentence. A constructor does so before the program
// registers its own exit functions, so that the sentence comes after them.
[[gnu::constructor]] void watch_for_the_end() {
  if (started_by_weft_run()) on_exit(say_that_there_was_nothing_to_do, nullptr);
}

}  // namespace

void mpi_has_begun() {
  has_begun = true;
}

}  // namespace weft::interpose
