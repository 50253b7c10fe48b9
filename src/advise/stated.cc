#include "advise/stated.h"

#include <algorithm>

#include "library/generated/library_calls.h"
#include "library/handles.h"
#include "transport/mpi/predefined.h"

namespace weft::advise {
namespace {

std::uint64_t bytes_of(std::int64_t count, MPI_Datatype type) {
  int size = 0;
  if (count == 0) return 0;
  if (count < 0 || type == handles.datatype_null ||
      library_calls.Type_size(type, &size) != MPI_SUCCESS || size < 0)
    return kNoBytes;
  return static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(size);
}

std::uint8_t type_number(MPI_Datatype type) {
  const Element* const found = element_of(type);
  if (!found) return 0;
  const auto number = [](Element element) {
    return static_cast<std::uint8_t>(1 + static_cast<int>(element));
  };
  switch (*found) {
    case Element::int8:
    case Element::uint8:
    case Element::byte:
    case Element::boolean:
    case Element::float_int:
    case Element::double_int:
    case Element::long_int:
    case Element::two_int:
    case Element::short_int:
    case Element::long_double_int:
      return 0;
    case Element::uint16:
      return number(Element::int16);
    case Element::uint32:
      return number(Element::int32);
    case Element::uint64:
      return number(Element::int64);
    case Element::float_complex:
      return number(Element::float32);
    case Element::double_complex:
      return number(Element::float64);
    case Element::long_double_complex:
      return number(Element::long_double);
    default:
      return number(*found);
  }
}

std::uint8_t operator_number(MPI_Op op) {
  const weft::Operator* const found = operator_of(op);
  return found ? static_cast<std::uint8_t>(1 + static_cast<int>(*found)) : 0;
}

// Describes the send or receive arguments of a call, if they are significant on this rank.
struct Side {
  const Numbers& counts;
  MPI_Datatype type;
  const MPI_Datatype* types;  // datatype of each peer; nullptr if `type` applies to all

  std::uint64_t at(int peer) const { return bytes_of(counts.at(peer), types ? types[peer] : type); }
};

class Reader {
 public:
  Reader(const Call& call, const Communicator& comm)
      : comm_(comm),
        root_rank_(call.root),
        root_(comm.rank == call.root),
        send_{call.sendcounts, call.sendtype, call.sendtypes},
        recv_{call.recvcounts, call.recvtype, call.recvtypes},
        in_place_(call.sendbuf == MPI_IN_PLACE),
        stays_(call.recvbuf == MPI_IN_PLACE) {
    std::fill_n(stated_.to, kPeers, kNoBytes);
    std::fill_n(stated_.from, kPeers, kNoBytes);
  }

  Stated read(const Call& call) {
    switch (call.kind) {
      case Kind::bcast:
        alike(recv_);
        break;
      case Kind::reduce:
      case Kind::allreduce:
      case Kind::scan:
      case Kind::exscan:
      case Kind::reduce_scatter_block:
        alike(recv_);
        stated_.op = operator_number(call.op);
        break;
      case Kind::gather:
        alike(root_ ? recv_ : send_);
        break;
      case Kind::scatter:
        alike(root_ ? send_ : recv_);
        break;
      case Kind::allgather:
      case Kind::alltoall:
        alike(recv_, in_place_ ? nullptr : &send_);
        break;
      default:
        if (comm_.size <= kPeers && root_rank_ >= 0 && root_rank_ < comm_.size) by_peer(call.kind);
        if (call.kind == Kind::reduce_scatter) stated_.op = operator_number(call.op);
    }
    return stated_;
  }

 private:
  void alike(const Side& side, const Side* own = nullptr) {
    stated_.bytes = side.at(0);
    if (stated_.bytes != 0 && stated_.bytes != kNoBytes) stated_.type = type_number(side.type);
    if (own) stated_.own = own->at(0);
  }

  void by_peer(Kind kind) {
    switch (kind) {
      case Kind::gatherv:
        if (root_) each(stated_.from, recv_);
        if (!in_place_) stated_.to[root_rank_] = send_.at(0);
        break;
      case Kind::scatterv:
        if (root_) each(stated_.to, send_);
        if (!stays_) stated_.from[root_rank_] = recv_.at(0);
        break;
      case Kind::allgatherv:
        each(stated_.from, recv_);
        std::fill_n(stated_.to, comm_.size, in_place_ ? recv_.at(comm_.rank) : send_.at(0));
        break;
      case Kind::reduce_scatter:
        each(stated_.to, recv_);
        std::fill_n(stated_.from, comm_.size, recv_.at(comm_.rank));
        break;
      case Kind::alltoallv:
      case Kind::alltoallw:
        each(stated_.from, recv_);
        each(stated_.to, in_place_ ? recv_ : send_);
        break;
      default:
        return;
    }
    stated_.by_peer = true;
  }

  void each(std::uint64_t* amounts, const Side& side) const {
    for (int i = 0; i < comm_.size; ++i) amounts[i] = side.at(i);
  }

  const Communicator& comm_;
  const int root_rank_;
  const bool root_;
  const Side send_, recv_;
  const bool in_place_, stays_;
  Stated stated_;
};

}  // namespace

bool has_root(Kind kind) {
  switch (kind) {
    case Kind::bcast:
    case Kind::reduce:
    case Kind::gather:
    case Kind::gatherv:
    case Kind::scatter:
    case Kind::scatterv:
      return true;
    default:
      return false;
  }
}

Stated stated_by(const Call& call, const Communicator& comm) {
  return Reader(call, comm).read(call);
}

}  // namespace weft::advise
