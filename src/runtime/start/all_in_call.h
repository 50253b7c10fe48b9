// Handles collective calls that have no non-blocking form, such as MPI_Win_create, if Weft has no
// progress thread. A rank inside such a call advances no collectives. Therefore each rank first
// waits until all other ranks have arrived, and advances collectives meanwhile.
#pragma once

#include <mpi.h>

#include "runtime/request/blocking_call.h"

namespace weft {

// Starts the collectives that are deferred on this communicator. It must be called before a
// collective call on it.
void after_deferred(MPI_Comm comm);
// Waits until all ranks of `comm` have arrived, if this call must not block. Meanwhile it advances
// collectives. It must be called before a collective call that has no non-blocking form; in that
// call the ranks then wait only for each other.
void join_collective(BlockingCall& call, MPI_Comm comm);
void join_collective_of_file(BlockingCall& call, MPI_File file);
void join_collective_of_window(BlockingCall& call, MPI_Win window);
// opened_file() and opened_window() record a communicator of the ranks of a file or window, on
// which they can wait for each other. closed_file() and freed_window() drop it.
void opened_file(const BlockingCall& call, MPI_File file, MPI_Comm comm);
void closed_file(const BlockingCall& call, MPI_File file);
void opened_window(const BlockingCall& call, MPI_Win window, MPI_Comm comm, MPI_Info info);
void freed_window(const BlockingCall& call, MPI_Win window);

}  // namespace weft
