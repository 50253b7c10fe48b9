// Defines Weft's active collectives, and the requests that the application holds for them. These
// are handles of the MPI library: a generalised request for a non-blocking collective, a persistent
// receive for a persistent one. Thus every completion call works on any mix of Weft's and the MPI
// library's requests, even if Weft does not see the call.
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

// A collective of the application that Weft carries out. This class itself is used if there is no
// request, as for a blocking collective. Derived classes have requests.
class CollectiveOperation : public Operation {
 public:
  // Says when input is copied, if the collective works on copies of the buffers: in the
  // constructor, or in each start.
  enum class Begins : std::uint8_t { at_once, with_starts };
  // kernel: the function that reduces with the call's operator and datatype; nullptr if
  // MPI_Reduce_local must be used. direct: a schedule that uses the other ranks' buffers in place,
  // which is tried first; nullptr if there is none. begins: when input is copied.
  CollectiveOperation(CallId id, const Call& call, std::shared_ptr<Communicator> communicator,
                      std::shared_ptr<const Schedule> schedule, Kernel kernel, int tag,
                      std::shared_ptr<const Schedule> direct = nullptr,
                      Begins begins = Begins::at_once);

  // Reserves a turn: the next use of the node's shared buffers, which collectives use in a fixed
  // order. It must be called before each start's first advance() if the schedule uses these
  // buffers. first: the schedule that is carried out first.
  void take_turn(NodeBuffers& node_buffers, Ends ends, const Schedule& first) {
    node_buffers.next(ends, first, &turn_);
    operands_.use(turn_, schedule());
  }

  // Uses the node's shared buffers by a turn that was reserved earlier.
  void use_turn(const NodeBufferUse& turn) {
    turn_ = turn;
    operands_.use(turn_, schedule());
  }

  // Reserves a turn for the collectives between the leaders of the nodes, which are made in a fixed
  // order. It must be called if the schedule contains such collectives. The leaders must exist as
  // long as this object.
  void lead(Leaders& leaders);

  // Sets the buffers of the other ranks, for a schedule that uses them in place.
  void reach(std::unique_ptr<PeerBuffers> peers) {
    peers_ = std::move(peers);
    operands_.peers = peers_.get();
  }

  // Returns the remaining steps of the collective in a form that another process of this node can
  // carry out; nullopt if that is impossible.
  std::optional<Work> work() const;

  CallId id() const { return id_; }
  Communicator& communicator() { return *communicator_; }
  // Returns the number of the collective on its communicator, modulo the number of tags.
  int number() const { return communicator_->tags.number_of(transport_.tag()); }
  bool has_memory() const { return temp_.there() && (!copies_ || copies_->there()); }
  // Copies the input, if the collective works on copies of the buffers, or sends it off if it moves
  // in pieces. It must be called before the first advance() of each start.
  void bring_in() {
    if (copies_) [[unlikely]]
      bring_in_copies();
  }
  // Returns whether the data move between copies and the application's buffers in pieces. Other
  // ranks cannot use the buffers in place then.
  bool moves_in_pieces() const { return in_pieces_ != nullptr; }
  // Waits until input that moves in pieces has arrived.
  void wait_for_input() { in_pieces_->wait_for_input(); }
  MPI_Request request() const { return request_; }

  virtual PersistentOperation* persistent() { return nullptr; }
  // Returns whether the collective has been started and the application has not completed it yet.
  virtual bool active() const { return true; }
  bool uses_type(MPI_Datatype type) const;
  bool uses_op(MPI_Op op) const { return call_.op == op; }
  // Keeps a datatype or operator, which the application has freed, until the collective no longer
  // needs it.
  void keep(std::shared_ptr<void> resource);

  int error_code() const { return error_code_; }  // MPI error code; valid once done() returns true
  // Returns true if the collective has failed and nobody has reported the error yet. It returns
  // true only once; the error must then be reported to the application's error handler.
  bool claim_error() { return error_code_ != MPI_SUCCESS && !error_reported_.exchange(true); }

  // Returns the exception that the application's reduction operator has thrown in this collective;
  // empty if there was none.
  Exception take_exception() { return transport_.take_exception(); }

  Times times;

 protected:
  const Call& call() const { return call_; }
  // Says that `later` carries out this collective, by a call of the MPI library.
  void leave_to(DeferredStep& later) { transport_.leave_to(later); }
  const Operands& operands() const { return operands_; }
  const NodeBufferUse& turn() const { return turn_; }
  bool works_on_copies() const { return copies_ != nullptr; }
  void finished(const Error* error) override;
  void failed(const Error& error);
  void release_kept();
  // Tells the MPI library that the request is complete. It is called when this rank has completed
  // the collective.
  virtual void announce() {}
  virtual bool one_shot() const { return true; }

  MPI_Request request_{};

 private:
  void make_copies(Begins begins);
  // Returns whether the whole collective is a call of the MPI library.
  bool is_by_library() const {
    const auto& steps = schedule().steps;
    return !steps.empty() && is_library(steps[0].kind);
  }
  bool may_move_in_pieces() const;
  void bring_in_copies();
  int end_copies(bool has_succeeded);

  const CallId id_;
  Call call_;
  KeptArrays arrays_;  // copies of the call's arrays, if they are needed after the start
  std::shared_ptr<Communicator> communicator_;
  TempBuffer temp_;
  // The buffers to work on; nullptr if the collective uses the application's buffers.
  std::unique_ptr<CallCopies> copies_;
  std::unique_ptr<PeerBuffers> peers_;  // the other ranks' buffers, if they are used in place
  Operands operands_;
  NodeBufferUse turn_;  // empty if the schedule uses no shared buffers
  MpiTransport transport_;
  // Carries out the steps if the copies move in pieces; otherwise nullptr.
  std::unique_ptr<StagedTransport> in_pieces_;
  int error_code_ = MPI_SUCCESS;  // written by finished(); valid once done() returns true
  std::atomic<bool> error_reported_{false};
  std::mutex kept_mutex_;  // guards kept_ and kept_closed_
  std::vector<std::shared_ptr<void>> kept_;
  bool kept_closed_ = false;
};

// A collective with a generalised request, which the MPI library frees when the application
// completes it.
class RequestedOperation : public CollectiveOperation {
 public:
  using CollectiveOperation::CollectiveOperation;

  // Makes the request for the application. Returns an MPI error code. The object must be added to
  // Requests before the application can complete the request.
  int make_request();

  // Continues an inline call, which only its caller could advance, as an ordinary collective.
  // request: its request, whose callback must call application_completed(). turn, call, state:
  // where the inline call has stopped.
  void take_over(MPI_Request request, const NodeBufferUse& turn, const SharedMemoryCall& call,
                 SharedMemoryCall::State state);
  static int application_completed(void* operation);

  // Increments `in_flight`, and decrements it when the application completes the request.
  void count_in(std::atomic<int>& in_flight) {
    in_flight_ = &in_flight;
    in_flight.fetch_add(1, std::memory_order_relaxed);
  }

 private:
  void announce() override;

  std::atomic<int>* in_flight_ = nullptr;  // nullptr if the collective is not counted
};

// Makes a generalised request. Returns an MPI error code. The MPI library calls completed(state)
// when the application has completed the request.
int make_generalised_request(int (*completed)(void*), void* state, MPI_Request* request);

// The error code if the ranks call a collective with different counts. Messages would reveal this
// only to the receiver; shared memory reveals it to both sides.
inline constexpr int kCollectiveMismatch = MPI_ERR_TRUNCATE;

// Says how to carry out a collective: on which communicator, by which schedule, and with which
// reduction function (kernel). The kernel is nullptr if MPI_Reduce_local must be used.
struct Recipe {
  Communicator* communicator = nullptr;
  std::shared_ptr<const Schedule> schedule;
  Kernel kernel = nullptr;
};

// Returns the buffers of a call for its schedule. temp: temporary buffer; nullptr if the schedule
// needs none.
inline Operands operands_of(const Call& call, Kernel kernel, std::byte* temp) {
  auto* const send = static_cast<std::byte*>(const_cast<void*>(call.sendbuf));
  return {{send, static_cast<std::byte*>(call.recvbuf), temp, nullptr}, kernel, nullptr};
}

// A request of the MPI library's own non-blocking collective. Weft tracks it for the summary and
// the trace, or to count the active calls of a call class (similar calls about which engine auto
// learns).
struct NativeRequest {
  CallId id;
  Times times;
  std::shared_ptr<Communicator> communicator{};  // keeps the object that `in_flight` points to
  // Counts active calls; decremented when the application completes the request. May be nullptr.
  std::atomic<int>* in_flight = nullptr;
};

// Sets the status that a non-blocking collective has: nothing received, no source.
void set_status(MPI_Status* status);

// Calls the error handler of the application's communicator, and returns `code`. If a reduction
// operator has thrown an exception, rethrows that instead.
int call_error_handler(CollectiveOperation& operation, int code);

// The number of communicators on which starts of collectives are deferred
// (runtime/start/deferred.h).
inline std::atomic<int> deferring{0};

// Returns when the wait for this collective ended, in ns. This is when the collective was complete,
// if that is known; otherwise `ended_ns`, the end of the completion call.
inline std::int64_t end_of_wait(const CollectiveOperation& operation, std::int64_t ended_ns) {
  const bool is_known = operation.done() && operation.times.finished > 0;
  return is_known ? std::min(operation.times.finished, ended_ns) : ended_ns;
}

// Counts Weft's requests by a hash of their handles. If the count for a handle is 0, the request is
// certainly not Weft's.
inline std::array<std::atomic<std::uint16_t>, 4096> counts_by_hash{};
inline std::atomic<std::uint16_t>& count_like(MPI_Request request) {
  return counts_by_hash[((std::uintptr_t)request * std::uint64_t{0x9E3779B97F4A7C15u}) >> 52];
}

class Requests {
 public:
  // Returns the only object of this process. Until the runtime has started, it has no requests, and
  // only existing(), active() and watching() may be called.
  static Requests& own();

  void add(std::shared_ptr<CollectiveOperation> operation);
  void remove(MPI_Request request);
  // Changes the number of Weft's requests that the application may have. They need not be
  // registered here.
  void count(MPI_Request request, int change) {
    existing_.fetch_add(change);
    note(request, change);
  }
  // Changes counts_by_hash for this handle, but not the number of existing requests. It is for a
  // request that Weft keeps and gives to the application again and again.
  void note(MPI_Request request, int change) {
    count_like(request).fetch_add(static_cast<std::uint16_t>(change));
  }
  std::shared_ptr<CollectiveOperation> find(MPI_Request request);
  // Returns the collective of a persistent request of Weft; nullptr if the request is another one.
  // The object exists until the application frees the request.
  PersistentOperation* find_persistent(MPI_Request request) {
    // The last result is reused, because a program with a single persistent request waits for the
    // one that it has just started.
    if (found_last.request == request && found_last.removals == removals()) [[likely]]
      return found_last.operation;
    return existing() == 0 ? nullptr : find_again(request);
  }
  std::vector<std::shared_ptr<CollectiveOperation>> all();
  // Returns how many of Weft's requests the application has: active ones, and inactive persistent
  // ones.
  int existing() const { return existing_.load(std::memory_order_relaxed); }
  // Returns false if the request is certainly not Weft's.
  static bool may_be_ours(MPI_Request request) {
    return count_like(request).load(std::memory_order_relaxed) != 0;
  }
  // Returns how many collectives of Weft are started and not completed by the application.
  int active() const { return active_.load(std::memory_order_relaxed); }
  void activated() { active_.fetch_add(1); }
  void deactivated() { active_.fetch_sub(1); }

  void watch(MPI_Request request, NativeRequest record);
  // Stops tracking a request of the MPI library, and stores what was recorded about it in *record.
  // Returns false if the request was not tracked.
  bool unwatch(MPI_Request request, NativeRequest* record);
  bool is_watched(MPI_Request request);
  // Adds `ns` nanoseconds of waiting to a tracked request. began_ns: when the wait began.
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

  std::mutex mutex_;  // guards operations_ and watched_
  std::unordered_map<MPI_Request, std::shared_ptr<CollectiveOperation>> operations_;
  std::unordered_map<MPI_Request, NativeRequest> watched_;
  std::atomic<std::uint32_t> removals_{1};  // persistent requests removed so far
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
