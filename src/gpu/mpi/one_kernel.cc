#include "gpu/mpi/one_kernel.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "gpu/mpi/elements.h"
#include "gpu/mpi/form_trials.h"
#include "gpu/mpi/votes.h"

namespace weft::gpu {
namespace {

constexpr const char* kTaken =
    "all spots for collectives in one kernel are taken on this communicator";

// KernelVote: a rank's vote for the spots (gpu/peers.h) of a collective in kernels. It is exchanged
// as plain bytes.
struct KernelVote {
  Vote vote;
  std::int32_t room = 0;  // how many more blocks may wait on the rank's device
};

// Returns the spots that are free on all ranks, and the least room of any. If there is no such
// spot, *why_not gets the reason. All ranks must call it together.
Result<KernelVote> agreed_with_room(const KernelVote& mine, MPI_Comm comm, std::string* why_not) {
  const auto all = all_of(mine, comm);
  if (!all) return all.error();
  KernelVote least = mine;
  std::vector<Vote> votes;
  for (const KernelVote& one : *all) {
    votes.push_back(one.vote);
    least.room = std::min(least.room, one.room);
  }
  least.vote.spots = common(votes, kTaken, why_not);
  return least;
}

// Returns the bytes that each rank publishes in the call, which all ranks know; 0 if no kernel
// supports it. The number may exceed an int.
std::int64_t bytes_of(const Call& call, int ranks) {
  std::int64_t elements = 0;
  switch (call.kind) {
    case Kind::allreduce:
    case Kind::allgather:
    case Kind::bcast:
      elements = call.recvcounts.at(0);
      break;
    case Kind::alltoall:
    case Kind::reduce_scatter_block:
      elements = call.recvcounts.at(0) * ranks;
      break;
    case Kind::reduce_scatter:
      for (int rank = 0; rank < ranks; ++rank) elements += call.recvcounts.at(rank);
      break;
    default:  // the arguments may be ones that MPI ignores
      return 0;
  }
  MPI_Count size = 0;
  MPI_Type_size_x(call.recvtype, &size);
  return elements * size;
}

bool is_dense(MPI_Datatype type) {
  MPI_Aint begin = 0, extent = 0, true_begin = 0, true_extent = 0;
  int size = 0;
  MPI_Type_size(type, &size);
  MPI_Type_get_extent(type, &begin, &extent);
  MPI_Type_get_true_extent(type, &true_begin, &true_extent);
  return size == extent && begin == 0 && true_begin == 0 && true_extent == size;
}

// Fills in which elements of a reduction this rank takes. Returns an error if no kernel can do it.
Result<bool> describe_reduction(const Call& call, int rank, int ranks, OneKernelCall* own) {
  const auto type = type_of(call.recvtype);
  if (!type) return Error{"the kernel has no reduction of this data type"};
  const auto op = op_of(call.op);
  if (!op || !reduces_by_mpi(*type, *op)) return Error{"the kernel has no such reduction"};
  own->type = *type, own->op = *op;
  const auto count_of = [&](int one) {
    return static_cast<std::size_t>(call.recvcounts.at(call.recvcounts.is_array() ? one : 0));
  };
  own->count = own->published = count_of(rank);
  if (call.kind == Kind::allreduce) return true;
  own->takes_parts = true;
  own->published = 0;
  for (int one = 0; one < ranks; ++one) {
    if (one == rank) own->from = own->published;
    own->published += count_of(one);
  }
  return true;
}

// Fills in which bytes this rank takes without a reduction. Returns an error if no kernel can do
// it.
Result<bool> describe_copies(const Call& call, int rank, int ranks, OneKernelCall* own) {
  const bool in_place = call.sendbuf == MPI_IN_PLACE;
  const bool sends = call.kind != Kind::bcast && !in_place;
  if (!is_dense(call.recvtype) || (sends && !is_dense(call.sendtype))) {
    return Error{"the kernel needs data types without holes"};
  }
  const bool exchanges = call.kind == Kind::alltoall;
  own->what = OneKernelCall::What::gather;
  own->published = own->count = static_cast<std::size_t>(bytes_of(call, ranks));
  own->takes_parts = exchanges;
  if (exchanges) {
    own->count /= static_cast<std::size_t>(ranks);
    own->from = static_cast<std::size_t>(rank) * own->count;
  } else if (call.kind == Kind::bcast) {
    own->what = OneKernelCall::What::broadcast;
    own->root = call.root;
  } else if (in_place) {
    own->in = static_cast<const std::byte*>(own->out) + static_cast<std::size_t>(rank) * own->count;
  }
  return true;
}

// Returns this rank's part of the call in the form that its kernels need. Returns an error that
// says why they cannot carry it out.
Result<OneKernelCall> described(const Call& call, const Context& context, MPI_Comm comm) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  OneKernelCall own;
  const bool in_place = call.sendbuf == MPI_IN_PLACE;
  own.in = in_place || call.kind == Kind::bcast ? call.recvbuf : call.sendbuf;
  own.out = call.recvbuf;
  const auto good = reduces(call.kind) ? describe_reduction(call, rank, ranks, &own)
                                       : describe_copies(call, rank, ranks, &own);
  if (!good) return good.error();
  for (const void* const one : {own.in, static_cast<const void*>(own.out)}) {
    if (one == own.out && one != own.in && own.count == 0) continue;
    if (!is_of_device(context.driver(), one)) {
      return Error{"the data are not in memory of the device"};
    }
    if (!context.reaches(reinterpret_cast<Address>(one)))
      return Error{"the data are in memory of another device than the one that is current"};
  }
  if (call.kind == Kind::bcast && rank != call.root) own.in = nullptr;
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
  if (!why_never_.empty()) return true;
  const std::uint64_t mine[] = {options.in_one_kernel,
                                static_cast<std::uint64_t>(options.init_budget_us)};
  std::uint64_t least[2] = {};
  const auto asked = checked_vote(MPI_Allreduce(mine, least, 2, MPI_UINT64_T, MPI_MIN, comm_));
  most_bytes_ = least[0], budget_us_ = least[1];
  return asked;
}

Result<bool> OneKernelGroup::meet(Context* context, const Options& options) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(comm_, &rank);
  MPI_Comm_size(comm_, &ranks);
  met_ = true;
  Offer mine;
  auto peers = Peers::create(context, rank, ranks, options, &mine);
  const auto offers = all_of(mine, comm_);
  if (!offers) return offers.error();
  const auto opened = peers->open(*offers);
  Vote vote = opened ? Vote{} : refusal(opened.error().message);
  if (opened) vote.spots = 1;
  const auto all = agreed(vote, comm_, kTaken, &why_never_);
  if (!all) return all.error();
  if (opened) peers->all_have_opened();
  if (*all != 0) {
    peers_ = std::move(peers);
    return true;
  }
  peers->abandon();
  return true;
}

// Makes the ranks map memory of each other for two slots, of which a rank needs none if it
// publishes nothing. Returns whether all ranks have it; if not, *why_not gets the reason. All ranks
// must call it together.
Result<bool> OneKernelGroup::share_slots(const OneKernelCall& mine, ByKernel* made,
                                         std::string* why_not) {
  LongOffer offer;
  auto slots = peers_->create_slots(mine.in ? made->slot_bytes : 0, &offer);
  const auto offers = all_of(offer, comm_);
  if (!offers) return offers.error();
  std::vector<MemoryHandle> handles;
  for (const LongOffer& one : *offers)
    if (one.good) handles.push_back(one.handle);
  Result<bool> opened = slots ? Result<bool>(true) : slots.error();
  if (handles.size() == offers->size()) opened = (*slots)->open(handles);
  const auto all = agreed(opened ? Vote{.spots = 1} : refusal(opened.error().message), comm_,
                          "another rank has no memory", why_not);
  if (!all) return all.error();
  if (*all == 0) {
    if (slots) (*slots)->abandon();
    return false;
  }
  made->slots = std::move(*slots);
  return true;
}

// Returns the collective as kernels carry it out; nothing, with the reason in *why_not, if MPI
// must. held: whether this rank has the resources of an operation. All ranks must call it together.
Result<std::optional<OneKernelGroup::Agreed>> OneKernelGroup::agree(const Call& call,
                                                                    Context* context,
                                                                    const Result<Holdings>& held,
                                                                    std::string* why_not) {
  auto mine = described(call, *context, comm_);
  if (mine && !held) mine = held.error();
  if (mine && peers_->context() != context) {
    mine = Error{"another device is current than at the communicator's first collective"};
  }
  KernelVote own;
  if (mine)
    own = {.vote = {.spots = peers_->free_spots()}, .room = peers_->room()};
  else
    own.vote = refusal(mine.error().message);
  const auto all = agreed_with_room(own, comm_, why_not);
  if (!all) return all.error();
  const std::uint32_t spots = all->vote.spots;
  if (spots == 0) return std::optional<Agreed>();
  const auto bytes = static_cast<std::size_t>(bytes_of(call, peers_->ranks()));
  std::vector<Form> forms = forms_to_try(bytes, mine->takes_parts, all->room);
  if (forms.empty()) {
    *why_not = "kernels that wait for other collectives may fill a rank's device";
    return std::optional<Agreed>();
  }
  ByKernel made;
  made.peers = peers_;
  if (bytes > kSlotBytes) {
    made.slot_bytes = (bytes + kPackBytes - 1) / kPackBytes * kPackBytes;
    const auto shared = share_slots(*mine, &made, why_not);
    if (!shared) return shared.error();
    if (!*shared) return std::optional<Agreed>();
  }
  made.spot = __builtin_ctz(spots);
  made.call = *mine;
  made.form = forms.front();
  return std::optional(Agreed{std::move(made), std::move(forms)});
}

// Returns the form for a collective, after measuring the forms if no earlier collective of its kind
// and length was measured. All ranks must call it together.
Result<Form> OneKernelGroup::fastest(const Call& call, Context* context, Runtime* runtime,
                                     const Agreed& agreed) {
  const auto& [by_kernel, forms] = agreed;
  if (forms.size() == 1 || budget_us_ == 0) return forms.front();
  const std::array<std::uint64_t, 4> key{static_cast<std::uint64_t>(call.kind),
                                         by_kernel.call.bytes(),
                                         static_cast<std::uint64_t>(by_kernel.call.type),
                                         static_cast<std::uint64_t>(by_kernel.call.op)};
  const auto known = fastest_.find(key);
  const bool fits = known != fastest_.end() &&
                    std::find(forms.begin(), forms.end(), known->second) != forms.end();
  if (fits) return known->second;
  const auto found = fastest_form(runtime, context, by_kernel, forms,
                                  static_cast<std::int64_t>(budget_us_), comm_);
  if (found) fastest_[key] = *found;
  return found;
}

Result<Operation*> OneKernelGroup::decide(const Call& call, const Call& limited, Context* context,
                                          Runtime* runtime, std::string* why_not) {
  Operation* const none = nullptr;
  int ranks = 1;
  MPI_Comm_size(call.comm, &ranks);
  const std::int64_t bytes = bytes_of(call, ranks);
  if (bytes <= 0) {
    *why_not = "no kernel carries out this collective, or it has no data";
    return none;
  }
  if (comm_ == MPI_COMM_NULL) {
    const auto gathered = gather(call.comm, runtime->options());
    if (!gathered) return gathered.error();
  }
  if (static_cast<std::uint64_t>(bytes_of(limited, ranks)) > most_bytes_) {
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
  auto held = runtime->hold(context);
  auto agreed = agree(call, context, held, why_not);
  if (agreed && *agreed) {
    ByKernel& made = (*agreed)->by_kernel;
    peers_->take(made.spot);
    if (const auto form = fastest(call, context, runtime, **agreed)) {
      made.form = *form;
      peers_->take(made.spot);  // measurements give it back
      return runtime->add(context, std::move(made), std::move(*held));
    } else {
      *why_not = form.error().message;
      peers_->give_back(made.spot);
    }
  }
  if (held) context->give_back(held->channels, held->pinned, held->event);
  if (!agreed) return agreed.error();
  return none;
}

}  // namespace weft::gpu
