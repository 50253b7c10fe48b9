// Tracks communicators of sessions: those made from a group alone, and all made from these. Their
// groups must not be combined with groups of MPI_COMM_WORLD, so they are recognised by their
// origin. Sessions may exist before MPI_Init and after MPI_Finalize.
#pragma once

#include <mpi.h>

#include <atomic>

namespace weft {

// The number of tracked communicators; 0 in programs without sessions.
inline std::atomic<int> session_communicators{0};

bool is_known_of_session(MPI_Comm comm);
void note_of_session(MPI_Comm comm, bool is_of_session);

inline bool is_of_session(MPI_Comm comm) {
  return session_communicators.load(std::memory_order_relaxed) != 0 && is_known_of_session(comm);
}

// Tracks a new communicator if its parent is tracked. Must be called when the library has made it
// from `parent`. Returns `code`, the library's result.
inline int made_of(MPI_Comm parent, const MPI_Comm* made, int code) {
  if (session_communicators.load(std::memory_order_relaxed) != 0 && code == MPI_SUCCESS)
      [[unlikely]]
    note_of_session(*made, is_known_of_session(parent));
  return code;
}

// Tracks a new communicator. Must be called when the library has made it from a session's groups.
// Returns `code`, the library's result.
inline int made_of_groups(const MPI_Comm* made, int code) {
  if (code == MPI_SUCCESS) note_of_session(*made, true);
  return code;
}

// Stops tracking a communicator. Must be called before the library frees it, since the library may
// reuse the handle.
inline void forget_if_of_session(MPI_Comm comm) {
  if (session_communicators.load(std::memory_order_relaxed) != 0) [[unlikely]]
    note_of_session(comm, false);
}

// Frees `comm` by `free`, and returns the result of that. The handle is forgotten first, since
// another communicator may get it, and tracked again if the library refuses.
template <class Free>
int free_of_session(MPI_Comm* comm, Free free) {
  const MPI_Comm handle = *comm;
  const bool was_known = is_of_session(handle);
  forget_if_of_session(handle);
  const int code = free(comm);
  if (was_known && code != MPI_SUCCESS) note_of_session(handle, true);
  return code;
}

}  // namespace weft
