// Communicators of sessions: those that are made of a group alone, and all that are made of these.
// Their groups must meet no group of MPI_COMM_WORLD's in a call, so that they have to be known from
// where they come from. Sessions may be there before MPI_Init and after MPI_Finalize.
#pragma once

#include <mpi.h>

#include <atomic>

namespace weft {

// The number of known ones; 0 in programs without sessions.
inline std::atomic<int> session_communicators{0};

bool is_known_of_session(MPI_Comm comm);
void note_of_session(MPI_Comm comm, bool is_of_session);

inline bool is_of_session(MPI_Comm comm) {
  return session_communicators.load(std::memory_order_relaxed) != 0 && is_known_of_session(comm);
}

// The library returned `code` and, if that is success, a communicator made of `parent`.
inline int made_of(MPI_Comm parent, const MPI_Comm* made, int code) {
  if (session_communicators.load(std::memory_order_relaxed) != 0 && code == MPI_SUCCESS)
      [[unlikely]]
    note_of_session(*made, is_known_of_session(parent));
  return code;
}

// Groups of sessions are known in the same way.
inline int made_of_groups(const MPI_Comm* made, int code) {
  if (code == MPI_SUCCESS) note_of_session(*made, true);
  return code;
}

// Must be called before the library frees the communicator, since it may reuse the handle.
inline void forget_if_of_session(MPI_Comm comm) {
  if (session_communicators.load(std::memory_order_relaxed) != 0) [[unlikely]]
    note_of_session(comm, false);
}

// Frees `comm` by `free`. Its handle is forgotten before, since another communicator may get it,
// and known again if the library refuses.
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
