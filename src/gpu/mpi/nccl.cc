#include "gpu/mpi/nccl.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "gpu/mpi/elements.h"
#include "gpu/mpi/sides.h"
#include "gpu/mpi/votes.h"

namespace weft::gpu {
namespace {

// Each way is run once, and then measured kRounds times over kRuns runs.
constexpr int kRounds = 3, kRuns = 4;

// NcclOffer: a rank's vote for NCCL, and the identity of its GPU.
struct NcclOffer {
  Vote vote;
  DeviceUuid device{};
};

bool is_nccls(Kind kind) {
  return kind == Kind::allreduce || kind == Kind::allgather || kind == Kind::bcast ||
         kind == Kind::reduce_scatter_block || kind == Kind::alltoall;
}

// Returns ncclDataType_t for the type; -1 if NCCL has none.
int nccls(weft_gpu_type type) {
  constexpr int kTypes[] = {0, -1, 2, 4, 1, -1, 3, 5, 6, 9, 7, 8};
  return kTypes[type];
}

// Returns ncclRedOp_t for the operator; -1 if NCCL has none.
int nccls(weft_gpu_op op) {
  switch (op) {
    case WEFT_GPU_SUM:
      return 0;
    case WEFT_GPU_PROD:
      return 1;
    case WEFT_GPU_MAX:
      return 2;
    case WEFT_GPU_MIN:
      return 3;
    default:
      return -1;
  }
}

std::int64_t block_bytes(const Call& call) {
  return call.recvcounts.at(0) * measures_of(call.recvtype).size;
}

// Returns why NCCL has nothing to do with such a call; empty if it has.
std::string why_impossible(const Call& call, MPI_Comm comm) {
  int ranks = 1;
  MPI_Comm_size(comm, &ranks);
  if (!is_nccls(call.kind)) return "it has no such collective";
  if (ranks == 1) return "there is only one rank";
  return block_bytes(call) > 0 ? "" : "there are no data";
}

Result<NcclCall> described_reduction(const Call& call, NcclCall made) {
  const auto type = type_of(call.recvtype);
  const auto op = op_of(call.op);
  if (!type || nccls(*type) < 0) return Error{"NCCL has no reduction of this data type"};
  if (!op || nccls(*op) < 0) return Error{"NCCL has no such reduction"};
  made.type = nccls(*type), made.op = nccls(*op);
  made.count = static_cast<std::size_t>(call.recvcounts.at(0));
  made.element_bytes = element_bytes(*type);
  return made;
}

Result<NcclCall> described_copy(const Call& call, NcclCall made) {
  const bool sends = call.kind != Kind::bcast && call.sendbuf != MPI_IN_PLACE;
  if (!measures_of(call.recvtype).dense || (sends && !measures_of(call.sendtype).dense)) {
    return Error{"NCCL needs data types without holes"};
  }
  made.count = static_cast<std::size_t>(block_bytes(call));
  return made;
}

// Returns this rank's part of the call in NCCL's form. Returns an error that says why NCCL cannot
// carry it out.
Result<NcclCall> described(const Call& call, const Context& context, MPI_Comm comm) {
  using What = NcclCall::What;
  int rank = 0, ranks = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  const bool in_place = call.sendbuf == MPI_IN_PLACE;
  NcclCall empty;
  empty.in = in_place || call.kind == Kind::bcast ? call.recvbuf : call.sendbuf;
  empty.out = call.recvbuf, empty.root = call.root;
  const bool reduces = call.kind == Kind::allreduce || call.kind == Kind::reduce_scatter_block;
  auto made = reduces ? described_reduction(call, empty) : described_copy(call, empty);
  if (!made) return made.error();
  switch (call.kind) {
    case Kind::allreduce:
      break;
    case Kind::allgather:
      made->what = What::allgather;
      if (in_place) {
        made->in =
            static_cast<const std::byte*>(made->out) + static_cast<std::size_t>(rank) * made->count;
      }
      break;
    case Kind::bcast:
      made->what = What::broadcast;
      if (call.root < 0 || call.root >= ranks) return Error{"there is no such root"};
      break;
    default:
      made->what = call.kind == Kind::alltoall ? What::alltoall : What::reduce_scatter;
      if (in_place) return Error{"NCCL needs a second buffer for this collective"};
  }
  for (const void* const one : {made->in, static_cast<const void*>(made->out)}) {
    if (!is_of_device(context.driver(), one)) {
      return Error{"the data are not in memory of the device"};
    }
    if (!context.reaches(reinterpret_cast<Address>(one))) {
      return Error{"the data are in memory of another device than the one that is current"};
    }
  }
  return made;
}

// Returns a call like this one on memory of Weft's, of which it uses the first half to send and the
// second to receive. It has as many bytes as the call, if they fit.
Call trial_of(const Call& call, Address scratch, int ranks) {
  const bool reduces = call.kind == Kind::allreduce || call.kind == Kind::reduce_scatter_block;
  const bool is_whole = call.kind == Kind::allreduce || call.kind == Kind::bcast;
  constexpr std::int64_t kHalf = Context::kScratchBytes / 2;
  const std::int64_t most = kHalf / (is_whole ? 1 : ranks);
  Call made = call;
  // Ranks may describe equal data by different types, but not in reductions.
  const std::int64_t size = reduces ? measures_of(call.recvtype).size : 1;
  if (!reduces) made.sendtype = made.recvtype = MPI_BYTE;
  const auto count = static_cast<int>(std::min(block_bytes(call), std::max(most, size)) / size);
  made.sendcounts = made.recvcounts = Numbers(count);
  made.recvbuf = reinterpret_cast<void*>(scratch + kHalf);
  if (call.kind == Kind::bcast) {
    made.sendbuf = made.recvbuf;
  } else if (call.sendbuf != MPI_IN_PLACE) {
    made.sendbuf = reinterpret_cast<const void*>(scratch);
  }
  return made;
}

// Measured: what a measurement enqueues in NCCL's stream.
struct Measured {
  std::function<Result<bool>()> run;  // enqueues it once
  std::function<void()> give_up;
  bool tells_others;  // whether give_up() also ends what other ranks have enqueued
};

// Returns this rank's time for a run in microseconds. If a rank cannot enqueue the work, or its
// stream has failed, all ranks give the work up, and get an error. All ranks must call it together.
Result<double> timed(int runs, NcclComm* by, const Driver& driver, MPI_Comm comm,
                     const Measured& work) {
  MPI_Barrier(comm);
  Result<bool> enqueued = by->begin_timing();
  for (int i = 0; i < runs && enqueued; ++i) enqueued = work.run();
  if (enqueued) enqueued = by->mark_end();
  const auto all = all_have(enqueued, comm);
  if (!all) work.give_up();
  const int code = driver.synchronise(by->stream());
  if (!all) return all.error();
  // Other ranks may wait for this rank's part, which still runs unless the stream is dead. So work
  // that cannot tell them is given up only when all know.
  if (code != kSuccess && work.tells_others) work.give_up();
  const auto passed = all_have(
      code == kSuccess ? Result<bool>(true) : driver.error("cuStreamSynchronize", code), comm);
  if (!passed) work.give_up();
  if (!passed) return passed.error();
  const auto took = by->timed_us();
  // A rank that cannot tell the time lets no way win.
  return took ? *took / runs : std::numeric_limits<double>::max();
}

double median(std::array<double, kRounds> all) {
  std::sort(all.begin(), all.end());
  return all[kRounds / 2];
}

std::string in_us(double microseconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f us", microseconds);
  return text;
}

}  // namespace

void NcclGroup::forget() {
  // Leaked on purpose: they must stay until the process ends.
  new std::array<std::shared_ptr<NcclComm>, kComms>(std::move(comms_));
}

std::uint32_t NcclGroup::free_comms() const {
  std::uint32_t found = 0;
  for (std::size_t i = 0; i < kComms; ++i) {
    if (!comms_[i] || comms_[i]->is_free()) found |= 1U << i;
  }
  return found;
}

// Finds out whether all ranks have NCCL, and a GPU of their own. All ranks take the same steps.
Result<bool> NcclGroup::meet(MPI_Comm comm, Context* context, const Options& options) {
  met_ = true, context_ = context;
  constexpr std::uint32_t kMay = 1, kMust = 2;
  const Driver& driver = context->driver();
  NcclOffer mine;
  const auto found = options.nccl == UseNccl::off ? Result<const Nccl*>(nullptr) : nccl();
  int device = 0, code = driver.current_device(&device);
  if (options.nccl == UseNccl::off) {
    mine.vote = refusal("WEFT_GPU_NCCL is off");
  } else if (!found) {
    mine.vote = refusal(found.error().message);
  } else if (!driver.device_uuid || !driver.set_dependencies) {
    mine.vote = refusal("CUDA's driver is too old for NCCL in graphs");
  } else if (code == kSuccess && (code = driver.device_uuid(&mine.device, device)) != kSuccess) {
    mine.vote = refusal(driver.error("cuDeviceGetUuid", code).message);
  } else {
    nccl_ = *found;
    mine.vote.spots = options.nccl == UseNccl::on ? kMay | kMust : kMay;
  }
  const auto offers = all_of(mine, comm);
  if (!offers) return offers.error();
  std::vector<Vote> votes;
  for (const NcclOffer& one : *offers) votes.push_back(one.vote);
  const std::uint32_t all = common(votes, "", &why_never_);
  is_forced_ = (all & kMust) != 0;
  for (std::size_t i = 0; i < offers->size() && all != 0; ++i) {
    for (std::size_t other = 0; other < i; ++other) {
      if (std::memcmp(&(*offers)[i].device, &(*offers)[other].device, sizeof mine.device) != 0) {
        continue;
      }
      why_never_ = "ranks " + std::to_string(other) + " and " + std::to_string(i) +
                   " share a GPU, and NCCL needs one for each rank";
    }
  }
  return true;
}

// Creates an NCCL communicator. After a failure NCCL is not used on this communicator any more.
Result<bool> NcclGroup::create(std::size_t index, MPI_Comm comm) {
  struct {
    Vote vote;
    NcclId id;
  } first{};
  int rank = 0, ranks = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  if (rank == 0) {
    const int code = nccl_->create_id(&first.id);
    first.vote.spots = 1;
    if (code != kSuccess) first.vote = refusal(nccl_->error("ncclGetUniqueId", code).message);
  }
  const auto told = checked_vote(MPI_Bcast(&first, sizeof first, MPI_BYTE, 0, comm));
  if (!told) return told;
  if (first.vote.spots == 0) {
    common({first.vote}, "", &why_never_);
    return true;
  }
  const auto made = NcclComm::create(*nccl_, context_, rank, ranks, first.id);
  Vote vote = made ? Vote{} : refusal(made.error().message);
  if (made) vote.spots = 1;
  const auto all = agreed(vote, comm, "", &why_never_);
  if (!all) return all.error();
  if (made && *all == 0) (*made)->abort();
  if (*all != 0) comms_[index] = *made;
  return true;
}

// Returns all that NCCL needs to carry the call out; nothing, with the reason in *why_not, if it
// cannot.
Result<std::optional<NcclGroup::Candidate>> NcclGroup::candidate(const Call& call, MPI_Comm comm,
                                                                 Context* context, Runtime* runtime,
                                                                 std::string* why_not) {
  // The first reason depends only on facts that all ranks share.
  *why_not = why_impossible(call, comm);
  if (why_not->empty() && !met_) {
    if (const auto met = meet(comm, context, runtime->options()); !met) return met.error();
  }
  if (why_not->empty()) *why_not = why_never_;
  if (!why_not->empty()) return std::optional<Candidate>();
  const auto mine = described(call, *context, comm);
  auto held = runtime->hold(context);
  const auto scratch = is_forced_ ? Result<Address>(Address{}) : context->scratch();
  Vote vote;
  if (!mine) {
    vote = refusal(mine.error().message);
  } else if (!held || !scratch) {
    vote = refusal((held ? scratch.error() : held.error()).message);
  } else if (context_ != context) {
    vote = refusal("another device is current than at the communicator's first collective");
  } else {
    vote.spots = free_comms();
  }
  const auto all =
      agreed(vote, comm, "all of its communicators are taken on this communicator", why_not);
  Result<bool> created = true;
  std::size_t index = 0;
  if (all && *all != 0) {
    index = static_cast<std::size_t>(__builtin_ctz(*all));
    if (!comms_[index]) created = create(index, comm);
    *why_not = why_never_;
  }
  if (all && created && why_not->empty()) {
    return std::optional<Candidate>(Candidate{comms_[index], *mine, std::move(*held)});
  }
  if (held) context->give_back(held->channels, held->pinned, held->event);
  if (!all) return all.error();
  if (!created) return created.error();
  return std::optional<Candidate>();
}

// Measures NCCL against the other way, both on memory of Weft's. All ranks must call it together.
Result<NcclGroup::Verdict> NcclGroup::compare(const Call& call, MPI_Comm comm, NcclComm* by,
                                              Runtime* runtime, const Otherwise& otherwise) const {
  int ranks = 1;
  MPI_Comm_size(comm, &ranks);
  const Driver& driver = context_->driver();
  const Call trial = trial_of(call, *context_->scratch(), ranks);
  const auto by_nccl = described(trial, *context_, comm);
  const auto other = otherwise(trial);
  if (!other) return other.error();
  std::array<double, 2 * kRounds> mine{}, slowest{};
  const Measured others_work{[&] { return (*other)->run(by->stream()); },
                             [&] { (*other)->abandon(); }, (*other)->is_by_kernel()};
  const Measured own_work{[&] { return by->enqueue(*by_nccl, by->stream()); }, [&] { by->abort(); },
                          false};
  Result<bool> all = true;
  for (int round = -1; round < kRounds && all; ++round) {
    const int runs = round < 0 ? 1 : kRuns;
    const auto without = timed(runs, by, driver, comm, others_work);
    const auto with = !without ? without : timed(runs, by, driver, comm, own_work);
    if (!with) all = with.error();
    if (round < 0 || !all) continue;
    mine[static_cast<std::size_t>(round)] = *with;
    mine[static_cast<std::size_t>(kRounds + round)] = *without;
  }
  Verdict verdict{false, 0, 0, (*other)->path()};
  runtime->release(*other);
  if (!all) return all.error();
  const auto told = checked_vote(
      MPI_Allreduce(mine.data(), slowest.data(), 2 * kRounds, MPI_DOUBLE, MPI_MAX, comm));
  if (!told) return told.error();
  std::array<double, kRounds> with{}, without{};
  std::copy_n(slowest.begin(), kRounds, with.begin());
  std::copy_n(slowest.begin() + kRounds, kRounds, without.begin());
  verdict.by_nccl_us = median(with), verdict.otherwise_us = median(without);
  // As in other comparisons of Weft's, the rule's way stays unless it is slower by a tenth.
  verdict.is_for_nccl = verdict.by_nccl_us <= 0.9 * verdict.otherwise_us;
  return verdict;
}

Result<Operation*> NcclGroup::make(const Call& call, MPI_Comm comm, Context* context,
                                   Runtime* runtime, const Otherwise& otherwise) {
  std::string why_not;
  auto found = candidate(call, comm, context, runtime, &why_not);
  if (!found) return found.error();
  if (*found) {
    Candidate& it = **found;
    std::string why = "as WEFT_GPU_NCCL says";
    bool is_chosen = is_forced_;
    if (!is_forced_) {
      const auto verdict = compare(call, comm, it.comm.get(), runtime, otherwise);
      if (!verdict) {
        context->give_back(it.held.channels, it.held.pinned, it.held.event);
        return verdict.error();
      }
      is_chosen = verdict->is_for_nccl;
      const std::string by_nccl = in_us(verdict->by_nccl_us);
      const std::string other = in_us(verdict->otherwise_us);
      why = "in " + by_nccl + "; it took " + other + " " + verdict->otherwise;
      why_not = "it took " + by_nccl + ", this way " + other;
    }
    if (is_chosen) {
      it.comm->take();
      Operation* const made = runtime->add(context, ByNccl{it.comm, it.call}, std::move(it.held));
      made->set_path("by " + nccl_->name + ", " + why);
      return made;
    }
    context->give_back(it.held.channels, it.held.pinned, it.held.event);
  }
  const auto made = otherwise(call);
  if (made) (*made)->set_path((*made)->path() + "; not by NCCL: " + why_not);
  return made;
}

}  // namespace weft::gpu
