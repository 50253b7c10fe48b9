// Prints a message at exit if the program has not called MPI_Init. Only the process that `weft run`
// itself started prints it, and only if it had no child processes: a shell script, for instance,
// leaves MPI to the programs that it starts. If there are several ranks, rank 0 prints it. A
// program that is linked to an MPI library but does not use it gets the message only if a summary
// is requested.
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

// Prints that the program has not called MPI_Init. It prints nothing if the program has failed,
// since such a program reports its own reason.
void say_that_there_was_nothing_to_do(int status, void*) {
  if (status != 0 || has_begun || !started_by_weft_run() || !is_first_rank() || had_children())
    return;
  // The settings are checked here, because this is otherwise done in MPI_Init, which the program
  // has not called.
  if (const auto config = checked_config(); !config) say(config.error().message);
  if (!wants_summary() && has_mpi_library()) return;
  const std::string program = program_invocation_name;
  say((wants_summary() ? "no summary: " : "nothing to do: ") + program +
      " has not called MPI_Init of a shared MPI library; see with 'ldd " + program +
      "' whether it is linked to one");
}

// Registers the function that prints the message at exit. A constructor registers it before the
// program registers exit functions of its own. Exit functions run in reverse order, so the message
// comes last.
[[gnu::constructor]] void watch_for_the_end() {
  if (started_by_weft_run()) on_exit(say_that_there_was_nothing_to_do, nullptr);
}

}  // namespace

void mpi_has_begun() {
  has_begun = true;
}

}  // namespace weft::interpose
