#include "library/session_communicators.h"

#include <mutex>
#include <unordered_set>

namespace weft {
namespace {

// The set of session communicators. It is never destroyed, since programs may free communicators
// while the process exits.
struct Known {
  std::mutex mutex;  // guards `communicators`
  std::unordered_set<MPI_Comm> communicators;
};

Known& known() {
  static auto* instance = new Known;
  return *instance;
}

}  // namespace

bool is_known_of_session(MPI_Comm comm) {
  const std::lock_guard lock(known().mutex);
  return known().communicators.contains(comm);
}

void note_of_session(MPI_Comm comm, bool is_of_session) {
  const std::lock_guard lock(known().mutex);
  auto& all = known().communicators;
  if (is_of_session)
    all.insert(comm);
  else
    all.erase(comm);
  session_communicators.store(static_cast<int>(all.size()), std::memory_order_relaxed);
}

}  // namespace weft
