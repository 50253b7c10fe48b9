// Handles collective calls without a non-blocking form where no thread of Weft's can help. A rank
// inside such a call advances nothing; so it first waits until all others are inside too, and
// meanwhile helps later ones.
#pragma once

#include <mpi.h>

#include "runtime/request/blocking_call.h"

namespace weft {

// Lets the deferred calls on this communicator go first, before a collective call.
void after_deferred(MPI_Comm comm);
// If the call must not block, is collective and has no non-blocking form: helps until all its
// ranks are in it, which then wait only for each other.
void join_collective(BlockingCall& call, MPI_Comm comm);
void join_collective_of_file(BlockingCall& call, MPI_File file);
void join_collective_of_window(BlockingCall& call, MPI_Win window);
// These record on which communicator the ranks of files and windows can join_collective.
void opened_file(const BlockingCall& call, MPI_File file, MPI_Comm comm);
void closed_file(const BlockingCall& call, MPI_File file);
void opened_window(const BlockingCall& call, MPI_Win window, MPI_Comm comm);
void freed_window(const BlockingCall& call, MPI_Win window);

}  // namespace weft
