// Row 41 of tests/faults/README.md: while a collective is in flight, a communicator is revoked or a
// rank killed. Then the remaining ranks shrink the communicator and continue. This is for MPI
// libraries with these calls (fault tolerance, ULFM).
#include <signal.h>
#include <unistd.h>

#include "faults.h"

#if defined(OPEN_MPI) && __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

namespace faults {

#ifdef OMPI_HAVE_MPI_EXT_FTMPI

namespace {

constexpr int kSizes[] = {1, 65536};

void return_errors(MPI_Comm comm) {
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
}

// Completes enough collectives for engine `auto` to have learnt.
void complete_some(int count, MPI_Comm comm) {
  Sum sum(count, comm);
  for (int i = 0; i < 40; ++i) {
    MPI_Request request;
    sum.start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  expect(sum.right_of(size_of(comm)), "a sum before the failure");
}

// Starts a sum on all ranks but the last, which cannot complete without the last rank. Each rank
// tells the last one when it has started. Returns the sum's error code.
int code_of_interrupted(int count, MPI_Comm comm, MPI_Comm told) {
  Sum sum(count, comm);
  MPI_Request request;
  sum.start(&request);
  MPI_Send(nullptr, 0, MPI_INT, size_of(comm) - 1, 0, told);
  return MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void await_starts(MPI_Comm told) {
  for (int rank = 0; rank < size_of(told) - 1; ++rank)
    MPI_Recv(nullptr, 0, MPI_INT, rank, 0, told, MPI_STATUS_IGNORE);
}

MPI_Comm shrunk(MPI_Comm comm) {
  MPI_Comm left = MPI_COMM_NULL;
  expect(MPIX_Comm_shrink(comm, &left) == MPI_SUCCESS, "MPIX_Comm_shrink");
  return_errors(left);
  return left;
}

// Starts a sum on a new communicator, which the last rank interrupts. Returns a new communicator of
// the remaining ranks.
MPI_Comm interrupted(int count, MPI_Comm all, void (*interrupt)(MPI_Comm comm)) {
  MPI_Comm comm;
  MPI_Comm_dup(all, &comm);
  return_errors(comm);
  complete_some(count, comm);
  if (rank_of(comm) == size_of(comm) - 1) {
    await_starts(all);
    interrupt(comm);
  } else {
    expect(code_of_interrupted(count, comm, all) != MPI_SUCCESS, "an error of the interrupted sum");
  }
  MPIX_Comm_revoke(comm);
  int revoked = 0, agreed = 1;
  MPIX_Comm_is_revoked(comm, &revoked);
  expect(revoked, "MPIX_Comm_is_revoked");
  const MPI_Comm left = shrunk(comm);
  expect(MPIX_Comm_agree(left, &agreed) == MPI_SUCCESS && agreed == 1, "MPIX_Comm_agree");
  complete_some(count, left);
  tell_all("rank %d: %d integers, %d ranks left", rank_of(MPI_COMM_WORLD), count, size_of(left));
  MPI_Comm_free(&comm);
  return left;
}

void interrupt_often(void (*interrupt)(MPI_Comm comm)) {
  MPI_Init(nullptr, nullptr);
  int level = MPI_THREAD_MULTIPLE;
  MPI_Query_thread(&level);
  expect(level == MPI_THREAD_SINGLE, "the level of threads, which nobody has raised");
  return_errors(MPI_COMM_WORLD);
  tell_all("rank %d is process %d", rank_of(MPI_COMM_WORLD), getpid());
  MPI_Comm left;
  MPI_Comm_dup(MPI_COMM_WORLD, &left);
  return_errors(left);
  for (const int count : kSizes) {
    const MPI_Comm all = left;
    left = interrupted(count, all, interrupt);
    MPI_Comm_free(const_cast<MPI_Comm*>(&all));
  }
  MPI_Comm_free(&left);
  MPI_Finalize();
}

void revoked() {
  interrupt_often([](MPI_Comm comm) { MPIX_Comm_revoke(comm); });
}

void killed() {
  interrupt_often([](MPI_Comm) { raise(SIGKILL); });
}

}  // namespace

const std::vector<Case>& failure_cases() {
  static const std::vector<Case> cases = {{"revoked", revoked, true}, {"killed", killed, true}};
  return cases;
}

#else

const std::vector<Case>& failure_cases() {
  static const std::vector<Case> cases;
  return cases;
}

#endif

}  // namespace faults
