// Makes the MPI call for each kind and form of collective. A rank whose side has no blocks passes
// arrays with one unused entry.
#include "calls.h"

#include <cstdlib>

namespace conformance {
namespace {

struct Names {
  const char *upper, *lower;
};

constexpr Names kNames[] = {
#define CONFORMANCE_NAMES(Name, name) {#Name, #name},
    CONFORMANCE_COLLECTIVES(CONFORMANCE_NAMES)
#undef CONFORMANCE_NAMES
};

#ifdef CONFORMANCE_NO_PERSISTENT
#define PERSISTENT(Name, suffix, ...) return MPI_ERR_OTHER
#else
#define PERSISTENT(Name, suffix, ...) \
  return MPI_##Name##_init##suffix(__VA_ARGS__, MPI_INFO_NULL, request)
#endif

#define CASE(Name, name, suffix, ...)                                                \
  case Kind::name:                                                                   \
    if (form == Form::blocking) return MPI_##Name##suffix(__VA_ARGS__);              \
    if (form == Form::nonblocking) return MPI_I##name##suffix(__VA_ARGS__, request); \
    PERSISTENT(Name, suffix, __VA_ARGS__);

// Parts of the calls' argument lists.
#define SEND a.send, n.send_counts[0], a.send_types[0]
#define SEND_V a.send, n.send_counts.data(), n.send_places.data(), a.send_types[0]
#define SEND_W(places) a.send, n.send_counts.data(), places.send_places.data(), a.send_types.data()
#define RECV a.receive, n.receive_counts[0], a.receive_types[0]
#define RECV_V a.receive, n.receive_counts.data(), n.receive_places.data(), a.receive_types[0]
#define RECV_W(places) \
  a.receive, n.receive_counts.data(), places.receive_places.data(), a.receive_types.data()
#define REDUCE a.send, a.receive, n.receive_counts[0], a.receive_types[0], a.op

#define CASES(suffix)                                                                      \
  CASE(Bcast, bcast, suffix, RECV, a.root, a.comm)                                         \
  CASE(Gather, gather, suffix, SEND, RECV, a.root, a.comm)                                 \
  CASE(Gatherv, gatherv, suffix, SEND, RECV_V, a.root, a.comm)                             \
  CASE(Scatter, scatter, suffix, SEND, RECV, a.root, a.comm)                               \
  CASE(Scatterv, scatterv, suffix, SEND_V, RECV, a.root, a.comm)                           \
  CASE(Allgather, allgather, suffix, SEND, RECV, a.comm)                                   \
  CASE(Allgatherv, allgatherv, suffix, SEND, RECV_V, a.comm)                               \
  CASE(Alltoall, alltoall, suffix, SEND, RECV, a.comm)                                     \
  CASE(Alltoallv, alltoallv, suffix, SEND_V, RECV_V, a.comm)                               \
  CASE(Alltoallw, alltoallw, suffix, SEND_W(n), RECV_W(n), a.comm)                         \
  CASE(Reduce, reduce, suffix, REDUCE, a.root, a.comm)                                     \
  CASE(Allreduce, allreduce, suffix, REDUCE, a.comm)                                       \
  CASE(Reduce_scatter, reduce_scatter, suffix, a.send, a.receive, n.receive_counts.data(), \
       a.receive_types[0], a.op, a.comm)                                                   \
  CASE(Reduce_scatter_block, reduce_scatter_block, suffix, REDUCE, a.comm)                 \
  CASE(Scan, scan, suffix, REDUCE, a.comm)                                                 \
  CASE(Exscan, exscan, suffix, REDUCE, a.comm)                                             \
  CASE(Neighbor_allgather, neighbor_allgather, suffix, SEND, RECV, a.comm)                 \
  CASE(Neighbor_allgatherv, neighbor_allgatherv, suffix, SEND, RECV_V, a.comm)             \
  CASE(Neighbor_alltoall, neighbor_alltoall, suffix, SEND, RECV, a.comm)                   \
  CASE(Neighbor_alltoallv, neighbor_alltoallv, suffix, SEND_V, RECV_V, a.comm)             \
  CASE(Neighbor_alltoallw, neighbor_alltoallw, suffix, SEND_W(a.larges), RECV_W(a.larges), a.comm)

}  // namespace

std::string kind_name(Kind kind) {
  return kNames[static_cast<int>(kind)].lower;
}

std::string call_name(Kind kind, Form form, bool large) {
  const Names& names = kNames[static_cast<int>(kind)];
  std::string name = form == Form::nonblocking ? std::string("MPI_I") + names.lower
                                               : std::string("MPI_") + names.upper;
  if (form == Form::persistent) name += "_init";
  return name + (large && kind != Kind::barrier ? "_c" : "");
}

bool is_neighbor(Kind kind) {
  return kind >= Kind::neighbor_allgather;
}

bool is_reduction(Kind kind) {
  return kind >= Kind::reduce && kind <= Kind::exscan;
}

bool has_root(Kind kind) {
  return (kind >= Kind::bcast && kind <= Kind::scatterv) || kind == Kind::reduce;
}

bool has_in_place(Kind kind) {
  return kind >= Kind::gather && !is_neighbor(kind);
}

bool is_vector(Kind kind) {
  const std::string name = kind_name(kind);
  return name.back() == 'v' || has_each_type(kind) || kind == Kind::reduce_scatter;
}

bool has_each_type(Kind kind) {
  return kind == Kind::alltoallw || kind == Kind::neighbor_alltoallw;
}

bool has_send_places(Kind kind) {
  const bool scattered = kind_name(kind).find("gather") == std::string::npos;
  return scattered && is_vector(kind) && !is_reduction(kind);
}

bool has_receive_places(Kind kind) {
  return kind != Kind::scatterv && is_vector(kind) && !is_reduction(kind);
}

int call(Kind kind, Form form, [[maybe_unused]] bool large, const Arguments& a,
         MPI_Request* request) {
  if (kind == Kind::barrier) {
    switch (kind) {
      CASE(Barrier, barrier, , a.comm)
      default:
        std::abort();
    }
  }
#ifndef CONFORMANCE_NO_LARGE_COUNTS
  if (large) {
    const auto& n = a.larges;
    switch (kind) {
      CASES(_c)
      default:
        std::abort();
    }
  }
#endif
  const auto& n = a.ints;
  switch (kind) {
    CASES()
    default:
      std::abort();
  }
}

}  // namespace conformance
