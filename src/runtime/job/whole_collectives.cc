// Intel MPI reads the variable in MPI_Init; its other value is shm.
#include "runtime/job/whole_collectives.h"

#include <cstdlib>
#include <string_view>

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

}  // namespace weft
