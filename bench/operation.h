// Operation: one MPI collective on doubles whose results are known, in blocking, non-blocking and
// persistent form. Each measurement is followed by a check, since the time of a wrong result is
// worthless. Values are integers, so sums are exact in every order.
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
  // bytes: the size that the call's count argument describes (for alltoall and allgather, that of
  // one block). memory: where the buffers are allocated.
  Operation(Collective collective, long bytes, int rank, int size,
            std::pmr::memory_resource* memory = std::pmr::get_default_resource());

  // Sets the operator of a reduction, which is MPI_SUM otherwise.
  void reduce_by(MPI_Op op) { op_ = op; }
  // Fills the send buffer with values that depend on `salt`, and clears the receive buffer.
  void prepare(int salt);
  // Overwrites the send buffer with the same values, as a program that computes them anew.
  void rewrite();
  void blocking(MPI_Comm comm);
  void start(MPI_Comm comm, MPI_Request* request);
  void initialise(MPI_Comm comm, MPI_Request* request);  // initialises a persistent request
  // Returns whether the last call's result is right for the salt of the last prepare(). Of the
  // reductions, only sums are checked.
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
