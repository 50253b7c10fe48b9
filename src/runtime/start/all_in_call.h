// Handles collective calls without a non-blocking form if no thread of Weft can help. A rank inside
// such a call progresses nothing. Therefore it first waits until all other ranks have arrived, and
// progresses operations meanwhile.
#pragma once

#include <mpi.h>

#include "runtime/request/blocking_call.h"

namespace weft {

// Begins the calls that are deferred on this communicator, before a collective call.
void after_deferred(MPI_Comm comm);
// Waits for all ranks before a collective call that has no non-blocking form, if the call must not
// block. Meanwhile progresses operations. In the call itself the ranks then wait only for each
// other.
void join_collective(BlockingCall& call, MPI_Comm comm);
void join_collective_of_file(BlockingCall& call, MPI_File file);
void join_collective_of_window(BlockingCall& call, MPI_Win window);
// These functions record the communicator on which the ranks of a file or window can wait for each
// other, and forget it when the file is closed or the window is freed.
void opened_file(const BlockingCall& call, MPI_File file, MPI_Comm comm);
void closed_file(const BlockingCall& call, MPI_File file);
void opened_window(const BlockingCall& call, MPI_Win window, MPI_Comm comm, MPI_Info info);
void freed_window(const BlockingCall& call, MPI_Win window);

}  // namespace weft
