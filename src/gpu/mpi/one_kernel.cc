#include "gpu/mpi/one_kernel.h"

#include <vector>

#include "gpu/mpi/elements.h"
#include "gpu/mpi/votes.h"

namespace weft::gpu {
namespace {

constexpr const char* kTaken =
    "all spots for collectives in one kernel are taken on this communicator";

// Returns the bytes per rank of the call, which all ranks know; 0 if no kernel supports it. The
// number may exceed an int.
std::int64_t bytes_of(const Call& call) {
  if (call.kind != Kind::allreduce && call.kind != Kind::allgather && call.kind != Kind::bcast) {
    return 0;
  }
  MPI_Count size = 0;
  MPI_Type_size_x(call.recvtype, &size);
  return call.recvcounts.at(0) * size;
}

bool is_dense(MPI_Datatype type) {
  MPI_Aint begin = 0, extent = 0, true_begin = 0, true_extent = 0;
  int size = 0;
  MPI_Type_size(type, &size);
  MPI_Type_get_extent(type, &begin, &extent);
  MPI_Type_get_true_extent(type, &true_begin, &true_extent);
  return size == extent && begin == 0 && true_begin == 0 && true_extent == size;
}

// Returns this rank's part of the call in the form that its kernel needs. Returns an error that
// says why the kernel cannot carry it out.
Result<OneKernelCall> described(const Call& call, const Context& context, MPI_Comm comm) {
  using What = OneKernelCall::What;
  const bool in_place = call.sendbuf == MPI_IN_PLACE;
  OneKernelCall own;
  own.in = in_place || call.kind == Kind::bcast ? call.recvbuf : call.sendbuf;
  own.out = call.recvbuf;
  if (call.kind == Kind::allreduce) {
    const auto type = type_of(call.recvtype);
    if (!type) return Error{"the kernel has no reduction of this data type"};
    const auto op = op_of(call.op);
    if (!op || !reduces_by_mpi(*type, *op)) return Error{"the kernel has no such reduction"};
    own.count = static_cast<std::size_t>(call.recvcounts.at(0));
    own.type = *type, own.op = *op;
  } else {
    const bool sends = call.kind == Kind::allgather && !in_place;
    if (!is_dense(call.recvtype) || (sends && !is_dense(call.sendtype))) {
      return Error{"the kernel needs data types without holes"};
    }
    own.what = call.kind == Kind::bcast ? What::broadcast : What::allgather;
    own.count = static_cast<std::size_t>(bytes_of(call));
    if (own.what == What::broadcast) {
      own.root = call.root;
    } else if (in_place) {
      int rank = 0;
      MPI_Comm_rank(comm, &rank);
      own.in = static_cast<const std::byte*>(own.out) + static_cast<std::size_t>(rank) * own.count;
    }
  }
  if (!is_of_device(context.driver(), own.in) || !is_of_device(context.driver(), own.out)) {
    return Error{"the data are not in memory of the device"};
  }
  for (const void* const one : {own.in, static_cast<const void*>(own.out)}) {
    if (!context.reaches(reinterpret_cast<Address>(one)))
      return Error{"the data are in memory of another device than the one that is current"};
  }
  return own;
}

}  // namespace

OneKernelGroup::~OneKernelGroup() {
  if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
}

void OneKernelGroup::forget() {
  comm_ = MPI_COMM_NULL;
  // Leaked on purpose: it must stay until the process ends.
  if (peers_) new std::shared_ptr<Peers>(std::move(peers_));
}

// Finds out whether all ranks are on one node, and how many bytes per rank one kernel may carry
// out. All ranks take the same steps, since these depend only on facts that they share.
Result<bool> OneKernelGroup::gather(MPI_Comm comm, const Options& options) {
  int ranks = 1, beside = 0;
  MPI_Comm_size(comm, &ranks);
  const auto split =
      checked_vote(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm_));
  if (!split) return split;
  MPI_Comm_size(comm_, &beside);
  if (beside < ranks) why_never_ = "the ranks are on several nodes";
  if (beside == ranks && ranks > kMostPeers) {
    why_never_ = "there are more than " + std::to_string(kMostPeers) + " ranks";
  }
  if (!why_never_.empty()) return true;
  const std::uint64_t mine = options.in_one_kernel;
  return checked_vote(MPI_Allreduce(&mine, &most_bytes_, 1, MPI_UINT64_T, MPI_MIN, comm_));
}

Result<bool> OneKernelGroup::meet(Context* context, const Options& options) {
  int rank = 0;
  MPI_Comm_rank(comm_, &rank);
  met_ = true;
  Offer mine;
  auto peers = Peers::create(context, rank, options, &mine);
  const auto offers = all_of(mine, comm_);
  if (!offers) return offers.error();
  const auto opened = peers->open(*offers);
  Vote vote = opened ? Vote{} : refusal(opened.error().message);
  if (opened) vote.spots = 1;
  const auto spots = agreed(vote, comm_, kTaken, &why_never_);
  if (!spots) return spots.error();
  if (opened) peers->all_have_opened();
  if (*spots != 0) {
    peers_ = std::move(peers);
    return true;
  }
  peers->abandon();
  return true;
}

// Returns the bit mask of the spots (memory for one operation) that are free on all ranks. Returns
// 0, with the reason in *why_not, if MPI must carry out the call. All ranks must call it together.
Result<std::uint32_t> OneKernelGroup::vote(const Result<OneKernelCall>& mine,
                                           const Result<Holdings>& held, const Context* context,
                                           std::string* why_not) {
  Vote vote;
  if (!mine) {
    vote = refusal(mine.error().message);
  } else if (!held) {
    vote = refusal(held.error().message);
  } else if (peers_->context() != context) {
    vote = refusal("another device is current than at the communicator's first collective");
  } else {
    vote.spots = peers_->free_spots();
  }
  return agreed(vote, comm_, kTaken, why_not);
}

Result<Operation*> OneKernelGroup::decide(const Call& call, Context* context, Runtime* runtime,
                                          std::string* why_not) {
  Operation* const none = nullptr;
  const std::int64_t bytes = bytes_of(call);
  if (bytes <= 0) {
    *why_not = "it is no allreduce, allgather or broadcast of data";
    return none;
  }
  if (comm_ == MPI_COMM_NULL) {
    const auto gathered = gather(call.comm, runtime->options());
    if (!gathered) return gathered.error();
  }
  if (static_cast<std::uint64_t>(bytes) > most_bytes_) {
    *why_not = "it has more than " + std::to_string(most_bytes_) + " bytes";
    return none;
  }
  if (why_never_.empty() && !met_) {
    if (const auto met = meet(context, runtime->options()); !met) return met.error();
  }
  if (!peers_) {
    *why_not = why_never_;
    return none;
  }
  const auto mine = described(call, *context, comm_);
  auto held = runtime->hold(context);
  const auto spots = vote(mine, held, context, why_not);
  if (spots && *spots != 0) {
    const int spot = __builtin_ctz(*spots);
    peers_->take(spot);
    return runtime->add(context, ByKernel{peers_, spot, *mine}, std::move(*held));
  }
  if (held) context->give_back(held->channels, held->pinned, held->event);
  if (!spots) return spots.error();
  return none;
}

}  // namespace weft::gpu
