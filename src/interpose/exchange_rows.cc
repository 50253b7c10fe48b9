// Implements weft_exchange_rows_init() of weft.h, which initialises a persistent exchange of matrix
// rows between given ranks. The exchange is carried out like MPI_Neighbor_alltoallw, but the
// neighbours are passed with the call instead of being attached to the communicator.
#include <map>
#include <span>
#include <vector>

#include "interpose/hooks.h"
#include "library/generated/library_calls.h"
#include "library/handles.h"
#include "runtime/call/shape.h"
#include "runtime/comm/communicators.h"
#include "runtime/job/runtime.h"
#include "runtime/request/freed_later.h"
#include "runtime/start/initialise.h"

#define WEFT_API __attribute__((visibility("default")))
#include "weft.h"

namespace weft::interpose {
namespace {

using Lists = std::span<const weft_rows>;

int check(const Lists& lists, int ranks) {
  for (const weft_rows& list : lists) {
    if (list.rank < 0 || list.rank >= ranks) return MPI_ERR_RANK;
    if (list.count < 0) return MPI_ERR_COUNT;
    if (list.count > 0 && !list.rows) return MPI_ERR_ARG;
  }
  return MPI_SUCCESS;
}

// Describes the sending or the receiving side of the exchange: the other ranks, and for each of
// them a datatype that selects its rows from the whole matrix.
class Side {
 public:
  int set_up(const Lists& lists, MPI_Datatype row) {
    // The vectors reserve one entry more than needed, because MPI calls may reject the null pointer
    // of an empty vector.
    types.reserve(lists.size() + 1);
    counts.reserve(lists.size() + 1);
    displacements.reserve(lists.size() + 1);
    std::map<int, std::vector<int>> rows_of;
    for (const weft_rows& list : lists) {
      auto& rows = rows_of[list.rank];
      rows.insert(rows.end(), list.rows, list.rows + list.count);
    }
    for (const auto& [rank, rows] : rows_of) {
      if (rows.empty()) continue;
      MPI_Datatype type;
      const int code = make_type(rows, row, &type);
      if (code != MPI_SUCCESS) return code;
      partners.push_back(rank);
      types.push_back(type);
      owned.push_back(std::make_shared<FreedLater<MPI_Datatype>>(type, library_calls.Type_free));
    }
    counts.assign(partners.size(), 1);
    displacements.assign(partners.size(), 0);
    return MPI_SUCCESS;
  }

  std::vector<int> partners, counts;
  std::vector<MPI_Aint> displacements;
  std::vector<MPI_Datatype> types;
  std::vector<std::shared_ptr<FreedLater<MPI_Datatype>>> owned;

 private:
  // Makes the datatype that selects these rows of the matrix. Consecutive rows form one block.
  // Returns an MPI error code.
  static int make_type(const std::vector<int>& rows, MPI_Datatype row, MPI_Datatype* type) {
    std::vector<int> starts, lengths;
    for (const int number : rows) {
      if (!starts.empty() && starts.back() + lengths.back() == number) {
        ++lengths.back();
        continue;
      }
      starts.push_back(number);
      lengths.push_back(1);
    }
    const int code = library_calls.Type_indexed(static_cast<int>(starts.size()), lengths.data(),
                                                starts.data(), row, type);
    return code == MPI_SUCCESS ? library_calls.Type_commit(type) : code;
  }
};

Call call_of(const void* from, const Side& sent, void* to, const Side& received, MPI_Comm comm) {
  Call call;
  call.kind = Kind::neighbor_alltoallw;
  call.form = CallId::Ineighbor_alltoallw;
  call.sendbuf = from;
  call.sendcounts = Numbers(sent.counts.data());
  call.senddispls = Numbers(sent.displacements.data());
  call.sendtypes = sent.types.data();
  call.recvbuf = to;
  call.recvcounts = Numbers(received.counts.data());
  call.recvdispls = Numbers(received.displacements.data());
  call.recvtypes = received.types.data();
  call.comm = comm;
  return call;
}

int refused(MPI_Comm comm, int code) {
  library_calls.Comm_call_errhandler(comm, code);
  return code;
}

int initialise(Runtime& runtime, const void* from, const Side& sent, void* to, const Side& received,
               MPI_Comm comm, MPI_Request* request) {
  const auto communicator = Communicators::own().find_or_make(comm);
  if (!communicator) return refused(comm, MPI_ERR_COMM);
  if (!communicator->has_tag_left()) return refused(comm, MPI_ERR_OTHER);
  // The object `partners` describes a communicator whose neighbours are the given partners,
  // whatever the topology of `comm` is.
  Communicator partners(comm, InternalCommunicator{comm}, communicator->rank, communicator->size);
  partners.neighbors = Neighbors{received.partners, sent.partners};
  partners.nodes = communicator->nodes;
  const Call call = call_of(from, sent, to, received, comm);
  KeptForRequest types(sent.owned.begin(), sent.owned.end());
  types.insert(types.end(), received.owned.begin(), received.owned.end());
  return initialise_exchange(runtime, call, shape_of(call, partners), *communicator, types,
                             request);
}

int exchange_rows_init(Runtime& runtime, const void* from, const Lists& sent, void* to,
                       const Lists& received, MPI_Datatype row, MPI_Comm comm,
                       MPI_Request* request) {
  int ranks = 1;
  int code = library_calls.Comm_size(comm, &ranks);
  if (code != MPI_SUCCESS) return code;
  Side sends, receives;
  if (code = check(sent, ranks); code == MPI_SUCCESS) code = check(received, ranks);
  if (code == MPI_SUCCESS) code = sends.set_up(sent, row);
  if (code == MPI_SUCCESS) code = receives.set_up(received, row);
  if (code != MPI_SUCCESS) return refused(comm, code);
  return initialise(runtime, from, sends, to, receives, comm, request);
}

}  // namespace
}  // namespace weft::interpose

int weft_exchange_rows_init(const void* from, int sends, const weft_rows sent[], void* to,
                            int receives, const weft_rows received[], MPI_Datatype row,
                            MPI_Comm comm, MPI_Request* request) {
  using namespace weft::interpose;
  using weft::Runtime;
  const Entry entry(nullptr);
  Runtime* runtime = Runtime::active();
  if (!runtime || sends < 0 || receives < 0 || !request) return MPI_ERR_ARG;
  return exchange_rows_init(*runtime, from, Lists(sent, static_cast<std::size_t>(sends)), to,
                            Lists(received, static_cast<std::size_t>(receives)), row, comm,
                            request);
}
