// Operation: one MPI collective over doubles with known results, blocking, non-blocking,
// persistent. Why: a measurement of a wrong result is worthless, so each one is followed by a
// check. Values are integers, so sums are exact in every order.
#pragma once

#include <mpi.h>

#include <memory_resource>
#include <optional>
#include <string>
#include <vector>

namespace bench {

enum class Collective { allreduce, alltoall, bcast, reduce, allgather, scan, barrier };
std::optional<Collective> find_collective(const std::string& name);

class Operation {
 public:
  // `bytes`: what the call's count argument describes (for alltoall and allgather one block).
  // memory: where its buffers come from.
  Operation(Collective collective, long bytes, int rank, int size,
            std::pmr::memory_resource* memory = std::pmr::get_default_resource());

  void reduce_by(MPI_Op op) { op_ = op; }  // else a sum
  void prepare(int salt);                  // fills the send buffer, clears the receive buffer
  void rewrite();  // what it sends, with what that is: as a program that computes it anew
  void blocking(MPI_Comm comm);
  void start(MPI_Comm comm, MPI_Request* request);
  void initialise(MPI_Comm comm, MPI_Request* request);  // a persistent request
  // Of the last call, with the salt of the last prepare, if it was a sum.
  bool correct() const;

 private:
  double sent(int by, long index) const;
  double expected(long index) const;
  bool receives() const;

  Collective collective_;
  MPI_Op op_ = MPI_SUM;
  int count_;
  int rank_, size_, salt_ = 0;
  std::pmr::vector<double> send_, receive_;
};

}  // namespace bench
