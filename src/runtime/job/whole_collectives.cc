// Reads and sets Intel MPI's variable I_MPI_COLL_INTRANODE. The value pt2pt selects messages, shm
// shared memory. Intel MPI reads the variable in MPI_Init.
#include "runtime/job/whole_collectives.h"

#include <atomic>
#include <cstdlib>
#include <string_view>

#include "base/log.h"
#include "library/generated/library_calls.h"

namespace weft {
namespace {

constexpr const char* kInsideNode = "I_MPI_COLL_INTRANODE";
constexpr const char* kMessages = "pt2pt";

}  // namespace

void let_several_run(Library library) {
  constexpr int kOnlyWhereNotSet = 0;
  if (library == Library::intelmpi) setenv(kInsideNode, kMessages, kOnlyWhereNotSet);
}

bool several_may_run(Library library) {
  if (library != Library::intelmpi) return true;
  const char* chosen = std::getenv(kInsideNode);
  return chosen && std::string_view(chosen) == kMessages;
}

Engine possible_in_place_of(Engine asked, Library library, MPI_Comm comm) {
  if (asked != Engine::tcc || several_may_run(library)) return asked;
  static std::atomic<bool> said{false};
  int rank = 0;
  library_calls.Comm_rank(comm, &rank);
  if (rank == 0 && !said.exchange(true))
    say(std::string("engine thread is used in place of tcc: ") + kWhySeveralMayNotRun);
  return Engine::thread;
}

}  // namespace weft
