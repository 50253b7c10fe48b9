// Tracks communicators of MPI sessions: those made from a group alone, and all communicators made
// from them. MPI forbids combining their groups with groups of MPI_COMM_WORLD, so Weft must
// recognise them. Sessions may exist before MPI_Init and after MPI_Finalize.
#pragma once

#include <mpi.h>

#include <atomic>

namespace weft {

// The number of session communicators that exist; 0 in programs without sessions.
inline std::atomic<int> session_communicators{0};

bool is_known_of_session(MPI_Comm comm);
void note_of_session(MPI_Comm comm, bool is_of_session);

inline bool is_of_session(MPI_Comm comm) {
  return session_communicators.load(std::memory_order_relaxed) != 0 && is_known_of_session(comm);
}

// Tracks the new communicator `*made` if `parent` belongs to a session. It must be called after the
// MPI library has made the communicator from `parent`. code: the MPI library's result, which is
// returned unchanged.
inline int made_of(MPI_Comm parent, const MPI_Comm* made, int code) {
  if (session_communicators.load(std::memory_order_relaxed) != 0 && code == MPI_SUCCESS)
      [[unlikely]]
    note_of_session(*made, is_known_of_session(parent));
  return code;
}

// Tracks the new communicator `*made` as one of a session. It must be called after the MPI library
// has made the communicator from a session's group. code: the MPI library's result, which is
// returned unchanged.
inline int made_of_groups(const MPI_Comm* made, int code) {
  if (code == MPI_SUCCESS) note_of_session(*made, true);
  return code;
}

// Stops tracking `comm`. It must be called before the MPI library frees the communicator, since the
// MPI library may then give the same handle to a new communicator.
inline void forget_if_of_session(MPI_Comm comm) {
  if (session_communicators.load(std::memory_order_relaxed) != 0) [[unlikely]]
    note_of_session(comm, false);
}

// Calls free(comm) and returns its result. The handle is forgotten before the call, since another
// thread's new communicator may get the same handle at once. It is tracked again if the MPI library
// does not free it.
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
