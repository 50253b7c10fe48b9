// Requests: Weft's operations and the requests that the application holds for them. These are
// handles of the MPI library (a generalised request for a single collective, a persistent receive
// for a persistent one). Therefore every completion call works on them, mixed with the library's
// requests, even if Weft does not see the call.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/buffer_pool.h"
#include "base/immortal.h"
#include "engine/mailbox.h"
#include "engine/operation.h"
#include "engine/shared_memory_call.h"
#include "library/generated/call_ids.h"
#include "runtime/call/call_copies.h"
#include "runtime/comm/communicators.h"
#include "runtime/job/records.h"
#include "transport/mpi/mpi_transport.h"

namespace weft {

class PersistentOperation;

// A collective of the application under way, independent of how the application waits for it. This
// class itself is used for a collective that its caller completes, such as a blocking call.
class CollectiveOperation : public Operation {
 public:
  // Tells when the input is copied if the collective works on copies: when the operation is made,
  // or in each start.
  enum class Begins : std::uint8_t { at_once, with_starts };
  // kernel: reduces with the call's operator and type; nullptr if MPI_Reduce_local must be used.
  // direct: a schedule to try first that uses other ranks' buffers in place; nullptr if there is
  // none.
  CollectiveOperation(CallId id, const Call& call, std::shared_ptr<Communicator> communicator,
                      std::shared_ptr<const Schedule> schedule, Kernel kernel, int tag,
                      std::shared_ptr<const Schedule> direct = nullptr,
                      Begins begins = Begins::at_once);

  // Reserves the next use of the node buffers (a turn), which operations use in a fixed order. Must
  // precede the first advance() of each start if the schedule needs that memory. first: the
  // schedule that is carried out first.
  void take_turn(NodeBuffers& node_buffers, Ends ends, const Schedule& first) {
    node_buffers.next(ends, first, &turn_);
    operands_.use(turn_, schedule());
  }

  // Uses the node buffers by a turn that was taken earlier.
  void use_turn(const NodeBufferUse& turn) {
    turn_ = turn;
    operands_.use(turn_, schedule());
  }

  // Takes the operation's place in the order in which collectives between the nodes' leaders are
  // made. Is for schedules that contain such collectives. The leaders must outlive the operation.
  void lead(Leaders& leaders);

  // Sets the other ranks' buffers for a direct schedule, which uses them in place.
  void reach(std::unique_ptr<PeerBuffers> peers) {
    peers_ = std::move(peers);
    operands_.peers = peers_.get();
  }

  // Returns the steps that are left of the operation, for another process of this node; nullopt if
  // no other process can carry them out.
  std::optional<Work> work() const;

  CallId id() const { return id_; }
  Communicator& communicator() { return *communicator_; }
  // Returns the operation's number on its communicator, modulo the number of tags.
  int number() const { return communicator_->tags.number_of(transport_.tag()); }
  bool has_memory() const { return temp_.there() && (!copies_ || copies_->there()); }
  // Copies the input. Must precede the first advance() of each start if the operation works on
  // copies.
  void bring_in() {
    if (copies_) [[unlikely]]
      copies_->bring_in();
  }
  MPI_Request request() const { return request_; }

  virtual PersistentOperation* persistent() { return nullptr; }
  // Returns whether the operation has been started and not completed by the application.
  virtual bool active() const { return true; }
  bool uses_type(MPI_Datatype type) const;
  bool uses_op(MPI_Op op) const { return call_.op == op; }
  // Keeps a freed datatype or operator until the operation no longer needs it.
  void keep(std::shared_ptr<void> resource);

  int error_code() const { return error_code_; }  // MPI error code; valid after done()
  // Returns true exactly once after an error, for the thread that reports it to the application's
  // handler.
  bool claim_error() { return error_code_ != MPI_SUCCESS && !error_reported_.exchange(true); }

  // Returns the exception of the application's reduction operator that made the operation fail;
  // empty if there is none.
  Exception take_exception() { return transport_.take_exception(); }

  Times times;

 protected:
  const Call& call() const { return call_; }
  // Declares that the schedule is a whole collective of the library, which `later` carries out.
  void leave_to(DeferredStep& later) { transport_.leave_to(later); }
  const Operands& operands() const { return operands_; }
  const NodeBufferUse& turn() const { return turn_; }
  bool works_on_copies() const { return copies_ != nullptr; }
  void finished(const Error* error) override;
  void failed(const Error& error);
  void release_kept();
  // Completes the operation's request in the library. Is called when the collective is complete on
  // this rank.
  virtual void announce() {}
  virtual bool one_shot() const { return true; }

  MPI_Request request_{};

 private:
  void make_copies(Begins begins);

  const CallId id_;
  Call call_;
  KeptArrays arrays_;  // copies of the call's arrays, if they are needed later
  std::shared_ptr<Communicator> communicator_;
  TempBuffer temp_;
  std::unique_ptr<CallCopies> copies_;  // nullptr if the operation works on the application's
                                        // buffers
  std::unique_ptr<PeerBuffers> peers_;  // other ranks' buffers; set if they are used in place
  Operands operands_;
  NodeBufferUse turn_;  // empty if the schedule needs no node memory
  MpiTransport transport_;
  int error_code_ = MPI_SUCCESS;  // written by finished(), read after done()
  std::atomic<bool> error_reported_{false};
  std::mutex kept_mutex_;  // guards kept_ and kept_closed_
  std::vector<std::shared_ptr<void>> kept_;
  bool kept_closed_ = false;
};

// A collective whose request is a generalised request, which the library frees when the application
// completes it.
class RequestedOperation : public CollectiveOperation {
 public:
  using CollectiveOperation::CollectiveOperation;

  // Makes the request that the application gets. Returns an MPI error code. The operation must be
  // added to Requests before the application can complete it.
  int make_request();

  // Continues an inline call in state `state` as an ordinary operation. request: its request, whose
  // completion callback calls application_completed().
  void take_over(MPI_Request request, const NodeBufferUse& turn, const SharedMemoryCall& call,
                 SharedMemoryCall::State state);
  static int application_completed(void* operation);

  // Counts the operation in `in_flight` until the application completes it.
  void count_in(std::atomic<int>& in_flight) {
    in_flight_ = &in_flight;
    in_flight.fetch_add(1, std::memory_order_relaxed);
  }

 private:
  void announce() override;

  std::atomic<int>* in_flight_ = nullptr;  // nullptr if the operation is not counted
};

// Makes a generalised request. Returns an MPI error code. completed: is called by the library when
// the application has completed the request.
int make_generalised_request(int (*completed)(void*), void* state, MPI_Request* request);

// The error code if ranks call a collective with different counts. Unlike messages, shared memory
// shows the mismatch on both sides.
inline constexpr int kCollectiveMismatch = MPI_ERR_TRUNCATE;

// The communicator on which an operation is carried out, its schedule and its reduction kernel. The
// kernel is nullptr if MPI_Reduce_local must be used.
struct Recipe {
  Communicator* communicator = nullptr;
  std::shared_ptr<const Schedule> schedule;
  Kernel kernel = nullptr;
};

// Returns the buffers of a call. temp: temporary buffer; nullptr if the schedule needs none.
inline Operands operands_of(const Call& call, Kernel kernel, std::byte* temp) {
  auto* const send = static_cast<std::byte*>(const_cast<void*>(call.sendbuf));
  return {{send, static_cast<std::byte*>(call.recvbuf), temp, nullptr}, kernel, nullptr};
}

// A request of the library's own non-blocking collective. It is watched for summary and trace, or
// to count the calls in flight of a call class.
struct NativeRequest {
  CallId id;
  Times times;
  std::shared_ptr<Communicator> communicator{};  // keeps `in_flight` valid
  std::atomic<int>* in_flight = nullptr;  // counts the request until the application completes it;
                                          // may be nullptr
};

// Sets the status of a non-blocking collective: nothing received, no source.
void set_status(MPI_Status* status);

// Calls the error handler of the application's communicator and returns `code`. If a reduction
// operator threw an exception, rethrows it.
int call_error_handler(CollectiveOperation& operation, int code);

// The number of communicators with deferred calls (runtime/start/deferred.h).
inline std::atomic<int> deferring{0};

// Returns the time in ns when the operation completed, if that is known and earlier than
// `ended_ns`; otherwise `ended_ns`, when the call that waits for it ended.
inline std::int64_t end_of_wait(const CollectiveOperation& operation, std::int64_t ended_ns) {
  const bool is_known = operation.done() && operation.times.finished > 0;
  return is_known ? std::min(operation.times.finished, ended_ns) : ended_ns;
}

// Counts Weft's requests by a hash of their handles, so that requests of the library are recognised
// quickly.
inline std::array<std::atomic<std::uint16_t>, 4096> counts_by_hash{};
inline std::atomic<std::uint16_t>& count_like(MPI_Request request) {
  return counts_by_hash[((std::uintptr_t)request * std::uint64_t{0x9E3779B97F4A7C15u}) >> 52];
}

class Requests {
 public:
  // Returns the object of this process. Before the runtime begins it has no requests, and only
  // existing(), active() and watching() may be called.
  static Requests& own();

  void add(std::shared_ptr<CollectiveOperation> operation);
  void remove(MPI_Request request);
  // Changes the number of requests that the application may have, whether or not they are
  // registered here.
  void count(MPI_Request request, int change) {
    existing_.fetch_add(change);
    note(request, change);
  }
  // Changes only the count of requests with this hash, for a request that Weft keeps and lends to
  // the application from time to time.
  void note(MPI_Request request, int change) {
    count_like(request).fetch_add(static_cast<std::uint16_t>(change));
  }
  std::shared_ptr<CollectiveOperation> find(MPI_Request request);
  // Returns the operation of a persistent request of Weft; nullptr if the request is another one.
  // The object lives until the application frees the request.
  PersistentOperation* find_persistent(MPI_Request request) {
    // A program with a single persistent request waits for the one it has just started.
    if (found_last.request == request && found_last.removals == removals()) [[likely]]
      return found_last.operation;
    return existing() == 0 ? nullptr : find_again(request);
  }
  std::vector<std::shared_ptr<CollectiveOperation>> all();
  // Returns the number of Weft's requests that the application has: incomplete ones and persistent
  // ones.
  int existing() const { return existing_.load(std::memory_order_relaxed); }
  // Returns true if the request may be Weft's, false if it certainly is not.
  static bool may_be_ours(MPI_Request request) {
    return count_like(request).load(std::memory_order_relaxed) != 0;
  }
  // Returns the number of Weft's requests that are started and not completed by the application.
  int active() const { return active_.load(std::memory_order_relaxed); }
  void activated() { active_.fetch_add(1); }
  void deactivated() { active_.fetch_sub(1); }

  void watch(MPI_Request request, NativeRequest record);
  // Ends the watch of a library request, and stores its record. Returns whether the request was
  // watched.
  bool unwatch(MPI_Request request, NativeRequest* record);
  bool is_watched(MPI_Request request);
  // Adds `ns` of waiting to a watched request. began_ns: when the wait began.
  void waited_for(MPI_Request request, std::int64_t began_ns, std::int64_t ns);
  bool watching() const { return watched_count_.load(std::memory_order_relaxed) > 0; }

 private:
  // The request that this thread looked up last. It is valid until a persistent request is removed.
  struct Found {
    std::uint32_t removals = 0;
    MPI_Request request{};
    PersistentOperation* operation = nullptr;
  };
  static constinit thread_local Found found_last;
  std::uint32_t removals() const { return removals_.load(std::memory_order_acquire); }
  PersistentOperation* find_again(MPI_Request request);

  std::mutex mutex_;  // guards both maps
  std::unordered_map<MPI_Request, std::shared_ptr<CollectiveOperation>> operations_;
  std::unordered_map<MPI_Request, NativeRequest> watched_;
  std::atomic<std::uint32_t> removals_{1};  // number of persistent requests removed so far
  std::atomic<int> existing_{0};
  std::atomic<int> active_{0};
  std::atomic<int> watched_count_{0};
};

// The variable has hidden visibility, which saves an instruction at each access.
extern Immortal<Requests> own_requests __attribute__((visibility("hidden")));
inline Requests& Requests::own() {
  return own_requests.object;
}

}  // namespace weft
