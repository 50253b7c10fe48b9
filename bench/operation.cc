// Implements Operation: seven collectives, the values that they send and the results that must
// arrive.
#include "operation.h"

#include <algorithm>
#include <array>

#include "persistent.h"

namespace bench {
namespace {

constexpr std::array<const char*, 7> kNames = {"allreduce", "alltoall", "bcast",  "reduce",
                                               "allgather", "scan",     "barrier"};

}  // namespace

std::optional<Collective> find_collective(const std::string& name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<Collective>(i);
  }
  return std::nullopt;
}

Operation::Operation(Collective collective, long bytes, int rank, int size,
                     std::pmr::memory_resource* memory)
    : collective_(collective),
      count_(static_cast<int>(bytes / 8)),
      rank_(rank),
      size_(size),
      send_(memory),
      receive_(memory) {
  const bool all = collective == Collective::alltoall;
  const bool gathers = all || collective == Collective::allgather;
  const long count = count_;
  send_.resize(all ? count * size : count);
  receive_.resize(gathers ? count * size : count);
}

double Operation::sent(int by, long index) const {
  return by + index % 1009 + salt_;
}

void Operation::prepare(int salt) {
  salt_ = salt;
  for (long i = 0; i < static_cast<long>(send_.size()); ++i) send_[i] = sent(rank_, i);
  std::fill(receive_.begin(), receive_.end(), -1.0);
  if (collective_ == Collective::bcast && rank_ == 0) receive_ = send_;
}

void Operation::rewrite() {
  if (collective_ == Collective::bcast && rank_ != 0) return;
  for (volatile double& x : collective_ == Collective::bcast ? receive_ : send_) x = x;
}

void Operation::blocking(MPI_Comm comm) {
  const double* in = send_.data();
  double* out = receive_.data();
  switch (collective_) {
    case Collective::allreduce:
      MPI_Allreduce(in, out, count_, MPI_DOUBLE, op_, comm);
      break;
    case Collective::alltoall:
      MPI_Alltoall(in, count_, MPI_DOUBLE, out, count_, MPI_DOUBLE, comm);
      break;
    case Collective::bcast:
      MPI_Bcast(out, count_, MPI_DOUBLE, 0, comm);
      break;
    case Collective::reduce:
      MPI_Reduce(in, out, count_, MPI_DOUBLE, op_, 0, comm);
      break;
    case Collective::allgather:
      MPI_Allgather(in, count_, MPI_DOUBLE, out, count_, MPI_DOUBLE, comm);
      break;
    case Collective::scan:
      MPI_Scan(in, out, count_, MPI_DOUBLE, op_, comm);
      break;
    case Collective::barrier:
      MPI_Barrier(comm);
      break;
  }
}

void Operation::start(MPI_Comm comm, MPI_Request* request) {
  const double* in = send_.data();
  double* out = receive_.data();
  switch (collective_) {
    case Collective::allreduce:
      MPI_Iallreduce(in, out, count_, MPI_DOUBLE, op_, comm, request);
      break;
    case Collective::alltoall:
      MPI_Ialltoall(in, count_, MPI_DOUBLE, out, count_, MPI_DOUBLE, comm, request);
      break;
    case Collective::bcast:
      MPI_Ibcast(out, count_, MPI_DOUBLE, 0, comm, request);
      break;
    case Collective::reduce:
      MPI_Ireduce(in, out, count_, MPI_DOUBLE, op_, 0, comm, request);
      break;
    case Collective::allgather:
      MPI_Iallgather(in, count_, MPI_DOUBLE, out, count_, MPI_DOUBLE, comm, request);
      break;
    case Collective::scan:
      MPI_Iscan(in, out, count_, MPI_DOUBLE, op_, comm, request);
      break;
    case Collective::barrier:
      MPI_Ibarrier(comm, request);
      break;
  }
}

void Operation::initialise(MPI_Comm comm, MPI_Request* request) {
  need_persistent();
  const double* in = send_.data();
  double* out = receive_.data();
  switch (collective_) {
    case Collective::allreduce:
      MPI_Allreduce_init(in, out, count_, MPI_DOUBLE, op_, comm, MPI_INFO_NULL, request);
      break;
    case Collective::alltoall:
      MPI_Alltoall_init(in, count_, MPI_DOUBLE, out, count_, MPI_DOUBLE, comm, MPI_INFO_NULL,
                        request);
      break;
    case Collective::bcast:
      MPI_Bcast_init(out, count_, MPI_DOUBLE, 0, comm, MPI_INFO_NULL, request);
      break;
    case Collective::reduce:
      MPI_Reduce_init(in, out, count_, MPI_DOUBLE, op_, 0, comm, MPI_INFO_NULL, request);
      break;
    case Collective::allgather:
      MPI_Allgather_init(in, count_, MPI_DOUBLE, out, count_, MPI_DOUBLE, comm, MPI_INFO_NULL,
                         request);
      break;
    case Collective::scan:
      MPI_Scan_init(in, out, count_, MPI_DOUBLE, op_, comm, MPI_INFO_NULL, request);
      break;
    case Collective::barrier:
      MPI_Barrier_init(comm, MPI_INFO_NULL, request);
      break;
  }
}

bool Operation::receives() const {
  return collective_ != Collective::barrier && (collective_ != Collective::reduce || rank_ == 0);
}

double Operation::expected(long index) const {
  const long count = count_, block = index / count, within = index % count;
  switch (collective_) {
    case Collective::alltoall:
      return sent(static_cast<int>(block), rank_ * count + within);
    case Collective::allgather:
      return sent(static_cast<int>(block), within);
    case Collective::bcast:
      return sent(0, index);
    default: {
      const int ranks = collective_ == Collective::scan ? rank_ + 1 : size_;
      return ranks * sent(0, index) + ranks * (ranks - 1) / 2;
    }
  }
}

bool Operation::correct() const {
  if (!receives()) return true;
  for (long i = 0; i < static_cast<long>(receive_.size()); ++i) {
    if (receive_[i] != expected(i)) return false;
  }
  return true;
}

}  // namespace bench
