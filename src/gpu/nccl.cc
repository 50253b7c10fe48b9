#include "gpu/nccl.h"

#include <dlfcn.h>

namespace weft::gpu {
namespace {

constexpr const char* kLibrary = "libnccl.so.2";
// The oldest version that Weft takes, 2.10, is the first with bfloat16. Since 2.9, graphs may
// contain NCCL's collectives.
constexpr int kOldest = 21000;
constexpr int kInProgress = 7;  // ncclInProgress

// Returns the version as text. Before 2.9, NCCL has another form of numbers.
std::string words_of(int version) {
  const int scale = version < 10000 ? 1000 : 10000;
  return std::to_string(version / scale) + "." + std::to_string(version % scale / 100) + "." +
         std::to_string(version % 100);
}

Result<Nccl> load() {
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (!library) return Error{std::string("NCCL cannot be loaded here (") + kLibrary + ")"};
  Nccl found;
  const char* lacking = nullptr;
#define WEFT_FIND(Type, member, symbol, parameters)                             \
  found.member = reinterpret_cast<Type(*) parameters>(dlsym(library, #symbol)); \
  if (!found.member && !lacking) lacking = #symbol;
  WEFT_NCCL_CALLS(WEFT_FIND)
#undef WEFT_FIND
  int version = 0;
  if (found.version && found.version(&version) != kSuccess) version = 0;
  if (version > 0 && version < kOldest) {
    return Error{"NCCL " + words_of(version) + " is too old; Weft needs 2.10 or later"};
  }
  if (lacking) return Error{std::string("this NCCL lacks ") + lacking};
  if (version == 0) return Error{"this NCCL does not tell its version (ncclGetVersion)"};
  found.name = "NCCL " + words_of(version);
  return found;
}

}  // namespace

Error Nccl::error(const char* call, int code) const {
  const char* const text = text_of(code);
  return Error{std::string(call) + ": " + (text ? text : "an unknown error")};
}

Result<const Nccl*> nccl() {
  static const Result<Nccl> found = load();
  if (!found) return found.error();
  return &*found;
}

Result<std::shared_ptr<NcclComm>> NcclComm::create(const Nccl& nccl, const Context* context,
                                                   int rank, int ranks, const NcclId& id) {
  std::shared_ptr<NcclComm> made(new NcclComm(nccl, context, rank, ranks));
  const Driver& driver = context->driver();
  const OutsideCapture now(driver);
  // This rank joins even if it lacks something else, since the other ranks wait for it.
  const int joined = nccl.join(&made->comm_, ranks, id, rank);
  if (joined != kSuccess) {
    made->comm_ = nullptr;
    return nccl.error("ncclCommInitRank", joined);
  }
  const char* call = "cuStreamCreate";
  int code = driver.create_stream(&made->stream_, kStreamNonBlocking);
  for (Event* const one : {&made->begun_, &made->ended_}) {
    if (code != kSuccess) break;
    call = "cuEventCreate";
    code = driver.create_event(one, kEventWithTiming);
  }
  if (code == kSuccess) return made;
  // The other ranks take no part in the end of this communicator.
  made->abort();
  return driver.error(call, code);
}

NcclComm::~NcclComm() {
  // After a reset of the device everything here is gone.
  if (context_->is_gone()) return;
  const Driver& driver = context_->driver();
  const OutsideCapture now(driver);
  if (comm_) nccl_.destroy(comm_);
  if (stream_) driver.destroy_stream(stream_);
  for (Event const one : {begun_, ended_}) {
    if (one) driver.destroy_event(one);
  }
}

Result<bool> NcclComm::enqueue(const NcclCall& call, Stream stream) {
  const std::lock_guard lock(mutex_);
  if (!comm_) return Error{"NCCL has given up the collective's communicator"};
  const int code = launch(call, stream);
  if (code == kSuccess) return true;
  constexpr const char* kNames[] = {"ncclAllReduce", "ncclAllGather", "ncclBroadcast",
                                    "ncclReduceScatter", "ncclSend"};
  return nccl_.error(kNames[static_cast<int>(call.what)], code);
}

int NcclComm::launch(const NcclCall& call, Stream stream) const {
  using What = NcclCall::What;
  const auto& [what, in, out, count, element_bytes, type, op, root] = call;
  switch (what) {
    case What::allreduce:
      return nccl_.allreduce(in, out, count, type, op, comm_, stream);
    case What::allgather:
      return nccl_.allgather(in, out, count, type, comm_, stream);
    case What::broadcast:
      return nccl_.broadcast(in, out, count, type, root, comm_, stream);
    case What::reduce_scatter:
      return nccl_.reduce_scatter(in, out, count, type, op, comm_, stream);
    case What::alltoall:
      break;
  }
  return exchange(call, stream);
}

// Sends a block to each rank, and receives one from each, in one group.
int NcclComm::exchange(const NcclCall& call, Stream stream) const {
  const std::size_t bytes = call.count * call.element_bytes;
  int code = nccl_.begin_group();
  if (code != kSuccess) return code;
  for (int step = 0; step < ranks_ && code == kSuccess; ++step) {
    const int to = (rank_ + step) % ranks_, from = (rank_ - step + ranks_) % ranks_;
    const auto* const out = static_cast<const std::byte*>(call.in);
    auto* const in = static_cast<std::byte*>(call.out);
    code = nccl_.send(out + static_cast<std::size_t>(to) * bytes, call.count, call.type, to, comm_,
                      stream);
    if (code != kSuccess) break;
    code = nccl_.receive(in + static_cast<std::size_t>(from) * bytes, call.count, call.type, from,
                         comm_, stream);
  }
  // The group is ended after an error, too, since it would take up later calls otherwise.
  const int ended = nccl_.end_group();
  return code == kSuccess ? ended : code;
}

void NcclComm::abort() {
  const std::lock_guard lock(mutex_);
  is_aborted_ = true;
  if (!comm_) return;
  if (!context_->is_gone()) nccl_.abort(comm_);
  comm_ = nullptr;
}

Result<bool> NcclComm::state() {
  // A thread may hold the lock while NCCL waits for other ranks. The agent must not wait with it.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || !comm_) return true;
  int found = kSuccess;
  const int code = nccl_.later_error(comm_, &found);
  if (code != kSuccess) return nccl_.error("ncclCommGetAsyncError", code);
  if (found == kSuccess || found == kInProgress) return true;
  return nccl_.error("a collective by NCCL", found);
}

Result<bool> NcclComm::follow(Stream stream) {
  const Driver& driver = context_->driver();
  if (const int code = driver.record(begun_, stream); code != kSuccess) {
    return driver.error("cuEventRecord", code);
  }
  const int code = driver.wait_event(stream_, begun_, 0);
  return code == kSuccess ? Result<bool>(true) : driver.error("cuStreamWaitEvent", code);
}

Result<bool> NcclComm::mark_end() {
  const Driver& driver = context_->driver();
  const int code = driver.record(ended_, stream_);
  return code == kSuccess ? Result<bool>(true) : driver.error("cuEventRecord", code);
}

Result<bool> NcclComm::await_end(Stream stream) {
  const Driver& driver = context_->driver();
  const int code = driver.wait_event(stream, ended_, 0);
  return code == kSuccess ? Result<bool>(true) : driver.error("cuStreamWaitEvent", code);
}

bool NcclComm::has_ended() const {
  return context_->driver().query(ended_) != kNotReady;
}

Result<bool> NcclComm::begin_timing() {
  const Driver& driver = context_->driver();
  const int code = driver.record(begun_, stream_);
  return code == kSuccess ? Result<bool>(true) : driver.error("cuEventRecord", code);
}

Result<double> NcclComm::timed_us() const {
  const Driver& driver = context_->driver();
  float milliseconds = 0;
  const int code = driver.elapsed(&milliseconds, begun_, ended_);
  if (code != kSuccess) return driver.error("cuEventElapsedTime", code);
  return 1e3 * static_cast<double>(milliseconds);
}

}  // namespace weft::gpu
