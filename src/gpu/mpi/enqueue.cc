// Implements the public functions for collectives in streams. Collectives use internal
// communicators, since the agent starts them while the application's threads use the application's
// communicators. The communicator for enqueued collectives is duplicated by a non-blocking call at
// the first use. Persistent collectives use another one: the application's thread initialises them
// at once, while the agent of some ranks may still have earlier enqueued collectives to start.
#include "gpu/mpi/enqueue.h"

#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "gpu/mpi/calls.h"
#include "gpu/mpi/elements.h"
#include "gpu/mpi/nccl.h"
#include "gpu/mpi/one_kernel.h"
#include "gpu/mpi/staging.h"
#include "gpu/mpi/votes.h"
#include "gpu/operators.h"
#include "gpu/runtime.h"
#include "weft.h"

namespace weft::gpu {
namespace {

thread_local std::string last_error;

int failed(const Error& error) {
  last_error = error.message;
  return error.mpi_code ? error.mpi_code : MPI_ERR_OTHER;
}

Result<bool> checked(int code) {
  if (code == MPI_SUCCESS) return true;
  char words[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, words, &length);
  return Error{std::string(words, static_cast<std::size_t>(length)), code};
}

// The runtime is never destroyed, since CUDA graphs may call back while the process exits.
Runtime* made_runtime = nullptr;
std::atomic<bool> finalised{false};

// Ends Weft's collectives in streams. No MPI call may follow. patience: how long to wait for
// operations in progress, which are then given up.
void end(std::chrono::milliseconds patience) {
  if (finalised.exchange(true) || !made_runtime) return;
  const int under_way = made_runtime->agent().stop(patience);
  if (under_way > 0) {
    say(std::to_string(under_way) +
        " collectives that were started in streams had not ended in MPI_Finalize, and were given "
        "up");
  }
  if (const std::string untold = made_runtime->untold().sentence(); !untold.empty()) say(untold);
}

// Ends Weft's collectives in streams. The MPI library calls it in its MPI_Finalize, as the delete
// callback of an attribute, in case the wrapper of MPI_Finalize below was not called. It cannot
// wait for operations in progress.
int end_within(MPI_Comm, int, void*, void*) {
  end({});
  return MPI_SUCCESS;
}

Result<bool> check_mpi() {
  int initialised = 0, ended = 0, level = MPI_THREAD_SINGLE;
  MPI_Initialized(&initialised);
  MPI_Finalized(&ended);
  if (!initialised || ended || finalised) return Error{"MPI is not initialised, or not any more"};
  MPI_Query_thread(&level);
  if (level < MPI_THREAD_MULTIPLE) {
    return Error{
        "MPI was initialised without MPI_THREAD_MULTIPLE, which collectives in streams need"};
  }
  return true;
}

Result<Runtime*> make_runtime() {
  const auto options = options_of_environment();
  if (!options) return options.error();
  const auto found = driver();
  if (!found) return found.error();
  return made_runtime = new Runtime(**found, *options);
}

Result<Runtime*> runtime() {
  static const Result<Runtime*> made = make_runtime();
  return made;
}

// Returns whether the MPI library accepts device memory. If Weft is preloaded the answer is false,
// since Weft's collectives use host memory. Data are then copied to host memory here.
bool ask_whether_library_takes_device_memory() {
  if (weft_version) return false;
  using Query = int();
  for (const char* name : {"MPIX_Query_cuda_support", "MPIX_GPU_query_cuda"}) {
    if (auto* const query = reinterpret_cast<Query*>(dlsym(RTLD_DEFAULT, name)))
      return query() == 1;
  }
  return false;
}

bool library_takes_device_memory() {
  static const bool takes_it = ask_whether_library_takes_device_memory();
  return takes_it;
}

// Returns whether the MPI library accepts device memory for this collective. Open MPI's
// non-blocking and persistent reductions and its alltoallw access the buffers from the host even if
// it accepts device memory otherwise.
bool library_takes_device_memory(Kind kind) {
#ifndef WEFT_FAMILY_MPICH
  const bool is_w = kind == Kind::alltoallw || kind == Kind::neighbor_alltoallw;
  if (reduces(kind) || is_w) return false;
#endif
  return library_takes_device_memory();
}

// Duplicates the communicator. If Weft is preloaded, its engine for the duplicate is `function`:
// the agent tests the operations in progress, so Weft needs no progress thread there, and no start
// has to wake one.
Result<bool> duplicate(MPI_Comm comm, MPI_Comm* made) {
  const char* const engine = std::getenv("WEFT_ENGINE");
  if (!weft_version || (engine && std::string(engine) == "native")) {
    return checked(MPI_Comm_dup(comm, made));
  }
  MPI_Info hints = MPI_INFO_NULL;
  MPI_Info_create(&hints);
  MPI_Info_set(hints, "weft_engine", "function");
  const auto good = checked(MPI_Comm_dup_with_info(comm, hints, made));
  MPI_Info_free(&hints);
  return good;
}

class InternalCommunicator {
 public:
  static Result<std::shared_ptr<InternalCommunicator>> of(MPI_Comm comm);
  // Frees the communicators. It first waits until the duplicate that was begun by MPI_Comm_idup
  // exists, since all ranks must free theirs together.
  ~InternalCommunicator() {
    if (finalised) one_node_.forget(), nccl_.forget();
    if (finalised || !is_made()) return;
    for (MPI_Comm* one : {&comm_, &persistent_, &deferred_step_, &agreements_}) {
      if (*one != MPI_COMM_NULL) MPI_Comm_free(one);
    }
  }
  InternalCommunicator() = default;
  InternalCommunicator(const InternalCommunicator&) = delete;
  InternalCommunicator& operator=(const InternalCommunicator&) = delete;

  Result<bool> ready() {
    const std::lock_guard lock(mutex_);
    if (ready_) return true;
    int made = 0;
    if (const auto tested = checked(MPI_Test(&making_, &made, MPI_STATUS_IGNORE)); !tested) {
      return tested;
    }
    return ready_ = made != 0;
  }
  // Waits until the duplicate that was begun by MPI_Comm_idup exists. Returns false if the
  // duplication failed.
  bool is_made() {
    auto made = ready();
    for (; made && !*made; made = ready()) std::this_thread::yield();
    return static_cast<bool>(made);
  }
  // Returns the communicator for operations that are enqueued from now on. If it is MPI_COMM_NULL,
  // they must use first(), once ready() has returned true.
  MPI_Comm later() const { return deferred_step_; }
  MPI_Comm first() const { return comm_; }
  // Returns the communicator for persistent collectives. All ranks of `applications`, the
  // application's communicator, must call it together.
  Result<MPI_Comm> persistent(MPI_Comm applications) {
    if (!is_made()) return ready().error();
    if (agreements_ != MPI_COMM_NULL) return persistent_;
    for (MPI_Comm* one : {&persistent_, &deferred_step_}) {
      if (*one != MPI_COMM_NULL || (one == &deferred_step_ && !weft_version)) continue;
      if (const auto made = duplicate(applications, one); !made) return made.error();
    }
    const auto made = checked(MPI_Comm_dup(applications, &agreements_));
    if (!made) return made.error();
    return persistent_;
  }
  // Returns an error on all ranks if any rank passes one. All ranks must call it together.
  template <class T>
  Result<bool> all_have(const Result<T>& mine) {
    return gpu::all_have(mine ? Result<bool>(true) : mine.error(), agreements_);
  }
  const std::shared_ptr<Order>& order() const { return order_; }
  OneKernelGroup& one_node() { return one_node_; }
  NcclGroup& nccl() { return nccl_; }
  MPI_Comm agreements() const { return agreements_; }

 private:
  std::mutex mutex_;  // guards the next three members
  MPI_Comm comm_ = MPI_COMM_NULL;
  MPI_Request making_ = MPI_REQUEST_NULL;
  bool ready_ = false;
  MPI_Comm persistent_ = MPI_COMM_NULL;
  // Communicator on which ranks agree with each other. The agent starts nothing there.
  MPI_Comm agreements_ = MPI_COMM_NULL;
  // The communicator that later() returns. All ranks begin to use it at the same point of their
  // calls, after a persistent collective was initialised: until then Weft leaves all collectives to
  // the MPI library on comm_, because that was duplicated by a non-blocking call.
  MPI_Comm deferred_step_ = MPI_COMM_NULL;
  std::shared_ptr<Order> order_ = std::make_shared<Order>();
  OneKernelGroup one_node_;
  NcclGroup nccl_;
};

using Kept = std::shared_ptr<InternalCommunicator>;

int drop(MPI_Comm, int, void* kept, void*) {
  delete static_cast<Kept*>(kept);
  return MPI_SUCCESS;
}

Result<Kept> InternalCommunicator::of(MPI_Comm comm) {
  static const int key = [] {
    int made = MPI_KEYVAL_INVALID;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end_within, &made, nullptr);
    MPI_Comm_set_attr(MPI_COMM_SELF, made, nullptr);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, drop, &made, nullptr);
    return made;
  }();
  void* value = nullptr;
  int there = 0;
  if (const auto good = checked(MPI_Comm_get_attr(comm, key, &value, &there)); !good) {
    return good.error();
  }
  if (there) return *static_cast<Kept*>(value);
  auto made = std::make_shared<InternalCommunicator>();
  const auto begun = checked(MPI_Comm_idup(comm, &made->comm_, &made->making_));
  if (!begun) return begun.error();
  MPI_Comm_set_attr(comm, key, new Kept(made));
  return made;
}

class MpiCollective : public Collective {
 public:
  // context: that of the device whose memory the MPI library may access; nullptr if it may access
  // none.
  MpiCollective(Kept internal, Staged staged, Context* context)
      : internal_(std::move(internal)),
        deferred_step_(internal_->later()),
        context_(context),
        calls_(std::move(staged.calls)),
        arrays_(std::move(staged.arrays)),
        types_(std::move(staged.types)),
        by_processor_(std::move(staged.by_processor)),
        requests_(calls_.size(), MPI_REQUEST_NULL) {}
  ~MpiCollective() override {
    for (MPI_Request& one : requests_) {
      if (one != MPI_REQUEST_NULL) MPI_Request_free(&one);
    }
  }

  // Initialises the MPI library's persistent requests for all chunks. All ranks must call it
  // together.
  Result<bool> become_persistent() {
    const auto comm = internal_->persistent(calls_.front().comm);
    if (!comm) return comm.error();
    persistent_ = true;
    Result<bool> all = true;
    for (std::size_t chunk = 0; chunk < calls_.size(); ++chunk) {
      calls_[chunk].comm = *comm;
      const auto made = checked(prepare_by_mpi(calls_[chunk], &requests_[chunk]));
      // The loop goes on after an error, since the other ranks initialise the next chunk, too.
      if (all && !made) all = made;
    }
    return all;
  }

  Result<bool> start(std::size_t chunk) override {
    if (context_) context_->make_current();
    if (!persistent_ && deferred_step_ == MPI_COMM_NULL) {
      const auto ready = internal_->ready();
      if (!ready || !*ready) return ready;
    }
    if (const auto good = by_processor_.bring(chunk); !good) return good;
    if (persistent_) return checked(MPI_Start(&requests_[chunk]));
    calls_[chunk].comm = deferred_step_ == MPI_COMM_NULL ? internal_->first() : deferred_step_;
    return checked(start_by_mpi(calls_[chunk], &requests_[chunk]));
  }

  Result<bool> test(std::size_t chunk) override {
    int ended = 0;
    const int code = MPI_Test(&requests_[chunk], &ended, MPI_STATUS_IGNORE);
    if (const auto good = checked(code); !good) return good;
    if (!ended) return false;
    return by_processor_.take(chunk);
  }

 private:
  const Kept internal_;
  const MPI_Comm deferred_step_;
  Context* const context_;
  std::vector<Call> calls_;
  const KeptArrays arrays_;
  const KeptTypes types_;
  ByProcessor by_processor_;
  std::vector<MPI_Request> requests_;
  bool persistent_ = false;
};

Operation* operation_of(weft_gpu_request request) {
  return reinterpret_cast<Operation*>(request);
}

// ByMpi: a collective that MPI carries out. All its resources are allocated, so later steps cannot
// fail on this process alone.
struct ByMpi {
  std::unique_ptr<Operation> operation;
  MpiCollective* collective = nullptr;  // owned by `operation`
};

Result<ByMpi> stage_by_mpi(const Call& call, const Kept& internal, bool persistent,
                           Context* context) {
  const bool copies = !library_takes_device_memory(call.kind);
  const auto known = known_to_mpi(call);
  if (!known) return known.error();
  auto staged = stage(*known, context, copies);
  if (!staged) return staged.error();
  const Pinned pinned = staged->pinned;
  const std::size_t buffers = staged->buffers;
  std::vector<Chunk> chunks = std::move(staged->chunks);
  auto collective = std::make_unique<MpiCollective>(
      internal, std::move(*staged), library_takes_device_memory() ? context : nullptr);
  auto* const itself = collective.get();
  auto made = made_runtime->make(context, std::move(chunks), std::move(collective), pinned,
                                 persistent ? nullptr : internal->order(), buffers);
  if (!made) return made.error();
  return ByMpi{std::move(*made), itself};
}

Operation* watched(ByMpi made, const std::string& why_not) {
  made.operation->set_path("by calls of MPI's, not in one kernel: " + why_not);
  return made_runtime->watch(std::move(made.operation));
}

Result<Operation*> make_alone(const Call& call, const Kept& internal, Context* context) {
  auto made = stage_by_mpi(call, internal, false, context);
  // If only this rank has failed to enqueue the collective, this rank must enqueue no later one
  // either, since the other ranks would match it with this one.
  if (!made) internal->order()->break_next();
  return made ? Result<Operation*>(watched(std::move(*made), "it is not persistent"))
              : made.error();
}

// Makes a persistent collective without NCCL, as a single kernel if possible. All ranks must call
// it together. Each takes part in every step, even if an earlier step has failed there or on
// another rank. real: the program's call, which is another one if `call` is a trial in its place.
Result<Operation*> make_without_nccl(const Call& call, const Call& real, const Kept& internal,
                                     Context* context) {
  std::string why_not;
  const auto by_kernel = internal->one_node().decide(call, real, context, made_runtime, &why_not);
  if (!by_kernel) return by_kernel.error();
  if (*by_kernel) return by_kernel;
  auto made = stage_by_mpi(call, internal, true, context);
  auto all = internal->all_have(made);
  if (all) {
    all = internal->all_have(made->collective->become_persistent());
    if (!all)
      // No later collective may start, since it would match this one, which some ranks have
      // initialised.
      internal->order()->break_next();
  }
  if (all) return watched(std::move(*made), why_not);
  if (made) made_runtime->drop(std::move(made->operation));
  return all.error();
}

// Makes a persistent collective. All ranks must call it together.
Result<Operation*> make_together(const Call& call, const Kept& internal,
                                 const Result<Context*>& context) {
  // Open MPI hangs if ranks make another communicator while this duplicate is being made, so it is
  // waited for.
  if (!internal->is_made()) return internal->ready().error();
  if (const auto comm = internal->persistent(call.comm); !comm) return comm.error();
  if (const auto all = internal->all_have(context); !all) return all.error();
  return internal->nccl().make(
      call, internal->agreements(), *context, made_runtime,
      [&](const Call& one) { return make_without_nccl(one, call, internal, *context); });
}

// Checks this process and the call's arguments. Returns the context of the current device, in which
// the collective will run, or an error.
Result<Context*> context_for(const Call& call, const Kept& internal,
                             const weft_gpu_request* request) {
  const auto mine = runtime();
  if (!mine) return mine.error();
  if (!request) return Error{"there is no place for the request", MPI_ERR_ARG};
  if (const auto known = known_to_mpi(call); !known) return known.error();
  const auto context = (*mine)->context();
  if (!context) return context.error();
  if (internal->order()->is_broken()) {
    return Error{"an earlier collective on this communicator has failed"};
  }
  return context;
}

// Returns the internal communicators for the call's communicator, on which ranks agree whether they
// can continue. It does not depend on whether this rank has a device. Returns an error if MPI is
// not in use, or for an intercommunicator.
Result<Kept> internal_of(const Call& call) {
  if (const auto good = check_mpi(); !good) return good.error();
  int between_groups = 0;
  MPI_Comm_test_inter(call.comm, &between_groups);
  if (between_groups) {
    return Error{"a collective between two groups cannot be enqueued", MPI_ERR_COMM};
  }
  return InternalCommunicator::of(call.comm);
}

// Allows the calling thread to call MPI, which may call CUDA, during a stream capture.
void leave_capture(std::optional<OutsideCapture>* outside) {
  if (const auto found = driver()) outside->emplace(**found);
}

Result<int> capture_status(Stream stream) {
  const auto found = driver();
  if (!found) return found.error();
  int status = kNotCapturing;
  const int code = (*found)->capture_info(stream, &status, nullptr, nullptr, nullptr, nullptr);
  if (code != kSuccess) return (*found)->error("cuStreamGetCaptureInfo", code);
  return status;
}

int given(const Result<Operation*>& made, weft_gpu_request* request) {
  if (!made) return failed(made.error());
  *request = reinterpret_cast<weft_gpu_request>(*made);
  return MPI_SUCCESS;
}

}  // namespace

int prepare(const Call& call, weft_gpu_request* request) {
  std::optional<OutsideCapture> while_mpi_may_call_cuda;
  leave_capture(&while_mpi_may_call_cuda);
  const auto internal = internal_of(call);
  if (!internal) return failed(internal.error());
  return given(make_together(call, *internal, context_for(call, *internal, request)), request);
}

int enqueue(const Call& call, weft_gpu_stream stream, weft_gpu_request* request) {
  std::optional<OutsideCapture> while_mpi_may_call_cuda;
  leave_capture(&while_mpi_may_call_cuda);
  const auto internal = internal_of(call);
  if (!internal) return failed(internal.error());
  auto context = context_for(call, *internal, request);
  const auto status = capture_status(stream);
  if (context && !status) context = status.error();
  // All ranks have the same value here, since all capture their streams or none does.
  const bool captures = status && *status != kNotCapturing;
  if (context && captures && *status == kCaptureBroken) {
    context = Error{"the stream's capture has been invalidated by an earlier call"};
  }
  if (!context && !captures) {
    // A wrong argument (an error with an MPI code) makes all ranks fail alike. After any other
    // error the other ranks have enqueued the collective, so no later one may start on this rank.
    if (context.error().mpi_code == 0) (*internal)->order()->break_next();
    return failed(context.error());
  }
  const auto made =
      captures ? make_together(call, *internal, context) : make_alone(call, *internal, *context);
  if (!made) return failed(made.error());
  if (const auto started = (*made)->start(stream); !started) {
    made_runtime->release(*made);
    return failed(started.error());
  }
  return given(made, request);
}

}  // namespace weft::gpu

using namespace weft::gpu;
using weft::Error;

namespace {

const Error kNoRequest{"there is no request", MPI_ERR_REQUEST};

int code_of(const weft::Result<bool>& result) {
  return result ? MPI_SUCCESS : failed(result.error());
}

}  // namespace

extern "C" {

// Ends Weft's collectives in streams. If Weft is preloaded, it calls this function before its own
// end; otherwise the wrapper of MPI_Finalize below does.
WEFT_GPU_API void weft_gpu_finalize(void) {
  end(std::chrono::seconds(1));
}

// Wraps the MPI library's MPI_Finalize. MPICH takes no locks once MPI_Finalize has begun, even
// while other threads are in calls, so the agent must have left MPI by then.
WEFT_GPU_API int MPI_Finalize(void) {
  weft_gpu_finalize();
  static auto* const next = reinterpret_cast<int (*)()>(dlsym(RTLD_NEXT, "MPI_Finalize"));
  return next();
}

WEFT_GPU_API const char* weft_gpu_error(void) {
  return last_error.c_str();
}

WEFT_GPU_API int weft_start_enqueue(weft_gpu_request request, weft_gpu_stream stream) {
  if (!request) return failed(kNoRequest);
  if (!operation_of(request)->is_persistent()) {
    return failed({"only a persistent collective is started again", MPI_ERR_REQUEST});
  }
  return code_of(operation_of(request)->start(stream));
}

WEFT_GPU_API int weft_wait_enqueue(weft_gpu_request request, weft_gpu_stream stream) {
  return request ? code_of(operation_of(request)->wait(stream)) : failed(kNoRequest);
}

WEFT_GPU_API int weft_run_enqueue(weft_gpu_request request, weft_gpu_stream stream) {
  if (!request) return failed(kNoRequest);
  if (!operation_of(request)->is_persistent()) {
    return failed({"only a persistent collective is run", MPI_ERR_REQUEST});
  }
  return code_of(operation_of(request)->run(stream));
}

WEFT_GPU_API const char* weft_gpu_path_of(weft_gpu_request request) {
  return request ? operation_of(request)->path().c_str() : "";
}

WEFT_GPU_API int weft_gpu_request_status(weft_gpu_request request) {
  return request ? code_of(operation_of(request)->status()) : failed(kNoRequest);
}

WEFT_GPU_API int weft_gpu_request_free(weft_gpu_request* request) {
  if (!request || !*request) return failed(kNoRequest);
  const int code = weft_gpu_request_status(*request);
  made_runtime->release(operation_of(*request));
  *request = nullptr;
  return code;
}

WEFT_GPU_API int weft_gpu_flags_of(weft_gpu_request request, weft_gpu_flags* flags) {
  if (!request) return failed(kNoRequest);
  if (!flags) return failed({"there is no place for the flags", MPI_ERR_ARG});
  const auto found = operation_of(request)->flags();
  if (!found) return failed(found.error());
  *flags = *found;
  return MPI_SUCCESS;
}

WEFT_GPU_API MPI_Datatype weft_gpu_datatype(weft_gpu_type type) {
  return datatype_of(type);
}

WEFT_GPU_API int weft_reduce_local_enqueue(const void* in, void* inout, size_t count,
                                           weft_gpu_type type, weft_gpu_op op,
                                           weft_gpu_stream stream) {
  if (!supports(type, op)) return failed({"this type has no such operator", MPI_ERR_OP});
  if (const auto good = check_mpi(); !good) return failed(good.error());
  const auto mine = runtime();
  if (!mine) return failed(mine.error());
  const auto context = (*mine)->context();
  if (!context) return failed(context.error());
  return code_of((*context)->launch_reduction(in, inout, count, type, op, stream));
}

}  // extern "C"
