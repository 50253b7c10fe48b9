// Requests: Weft's operations behind the requests that the application holds.
// Why handles of the MPI library (a generalised request for one collective, a persistent receive
// for a persistent one): every completion call works on them, mixed with the library's requests,
// even one that Weft does not see.
#pragma once

#include <mpi.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/buffer_pool.h"
#include "engine/alone.h"
#include "engine/operation.h"
#include "engine/orders.h"
#include "library/generated/call_ids.h"
#include "runtime/call/call_copies.h"
#include "runtime/comm/communicators.h"
#include "transport/mpi/mpi_transport.h"

namespace weft {

// Times of one started collective, in ns; only kept while a summary or a trace is wanted.
struct Times {
  std::int64_t started = 0;   // the start call returned
  std::int64_t finished = 0;  // the collective was complete
  std::int64_t waiting_since = 0;
};

class PersistentOperation;
struct Site;

// One collective of the application's under way, however it is waited for. As it is, one that the
// caller carries out to its end (a blocking call).
class CollectiveOperation : public Operation {
 public:
  // with_starts: each start brings in what the collective reads.
  enum class Begins : std::uint8_t { at_once, with_starts };
  // kernel: of the call's operator and type; nullptr where MPI_Reduce_local must do it.
  // direct: a schedule to be tried first; nullptr: none.
  CollectiveOperation(CallId id, const Call& call, std::shared_ptr<Communicator> communicator,
                      std::shared_ptr<const Schedule> schedule, Kernel kernel, int tag,
                      std::shared_ptr<const Schedule> direct = nullptr,
                      Begins begins = Begins::at_once);

  // Before the first advance() since the start, where the schedule needs the node's memory.
  // first: its schedule, or what is tried before that.
  void take_turn(NodeWindows& windows, Ends ends, const Schedule& first) {
    windows.next(ends, first, &turn_);
    operands_.use(turn_, schedule());
  }

  // It has one already.
  void use_turn(const NodeTurn& turn) {
    turn_ = turn;
    operands_.use(turn_, schedule());
  }

  // The same where it calls collectives between leaders, which must outlive it.
  void lead(Leaders& leaders);

  // Of a direct schedule.
  void reach(std::unique_ptr<PeerBuffers> peers) {
    peers_ = std::move(peers);
    operands_.peers = peers_.get();
  }

  // What is left of it, for another process of this node; nullopt: others cannot do it.
  std::optional<Work> work() const;

  CallId id() const { return id_; }
  Communicator& communicator() { return *communicator_; }
  // On its communicator, modulo the tags there are.
  int number() const { return communicator_->tags.number_of(transport_.tag()); }
  bool has_memory() const { return temp_.there() && (!copies_ || copies_->there()); }
  // Before the first advance() of each start, where it works on copies.
  void bring_in() {
    if (copies_) [[unlikely]]
      copies_->bring_in();
  }
  MPI_Request request() const { return request_; }

  virtual PersistentOperation* persistent() { return nullptr; }
  // Between the start and the completion by the application.
  virtual bool active() const { return true; }
  bool uses_type(MPI_Datatype type) const;
  bool uses_op(MPI_Op op) const { return call_.op == op; }
  // Kept until the operation needs it no more: freed datatypes and operators.
  void keep(std::shared_ptr<void> resource);

  int error_code() const { return error_code_; }  // of the MPI library; after done()
  // True once: whoever reports the error to the application's handler.
  bool claim_error() { return error_code_ != MPI_SUCCESS && !error_reported_.exchange(true); }

  // The exception of the application's operator that made it fail; none: nothing was thrown.
  Exception take_exception() { return transport_.take_exception(); }

  Times times;

 protected:
  const Call& call() const { return call_; }
  // Its schedule is a collective of the library's.
  void leave_to(Later& later) { transport_.leave_to(later); }
  const Operands& operands() const { return operands_; }
  const NodeTurn& turn() const { return turn_; }
  bool works_on_copies() const { return copies_ != nullptr; }
  void finished(const Error* error) override;
  void failed(const Error& error);
  void release_kept();
  // The collective is complete on this rank: whoever holds the request may know.
  virtual void announce() {}
  virtual bool one_shot() const { return true; }

  MPI_Request request_{};

 private:
  void make_copies(Begins begins);

  const CallId id_;
  Call call_;
  KeptArrays arrays_;  // of the call, where they are needed later on
  std::shared_ptr<Communicator> communicator_;
  TempBuffer temp_;
  std::unique_ptr<CallCopies> copies_;  // nullptr: it works on the application's buffers
  std::unique_ptr<PeerBuffers> peers_;  // where a schedule is direct
  Operands operands_;
  NodeTurn turn_;  // none where the schedule needs no memory of the node's
  MpiTransport transport_;
  int error_code_ = MPI_SUCCESS;  // written by finished(), read after done()
  std::atomic<bool> error_reported_{false};
  std::mutex kept_mutex_;  // guards kept_ and kept_closed_
  std::vector<std::shared_ptr<void>> kept_;
  bool kept_closed_ = false;
};

// Behind a generalised request, which the library frees when the application completes it.
class RequestedOperation : public CollectiveOperation {
 public:
  using CollectiveOperation::CollectiveOperation;

  // Makes the request that the application gets. MPI error code. The operation must be among the
  // Requests before the application can complete it.
  int make_request();

  // It goes on from where its caller has brought `call`, which is over or held up, or has failed;
  // with this request, whose completion calls application_completed().
  void take_over(MPI_Request request, const NodeTurn& turn, const AloneCall& call,
                 AloneCall::State state);
  static int application_completed(void* operation);

  // Of a call that engine auto learns about: its site counts it until the application completes it.
  void count_in(std::atomic<int>& in_flight) {
    in_flight_ = &in_flight;
    in_flight.fetch_add(1, std::memory_order_relaxed);
  }

 private:
  void announce() override;

  std::atomic<int>* in_flight_ = nullptr;  // of its site; nullptr: it has none
};

// MPI error code. completed: what the library calls once the application has completed it.
int make_generalised_request(int (*completed)(void*), void* state, MPI_Request* request);

// What MPI calls it where ranks of one collective have different counts, which memory, unlike
// messages, shows on both sides.
inline constexpr int kOtherCall = MPI_ERR_TRUNCATE;

// Where the buffers of a call lie. temp: nullptr where the schedule needs none.
inline Operands operands_of(const Call& call, Kernel kernel, std::byte* temp) {
  auto* const send = static_cast<std::byte*>(const_cast<void*>(call.sendbuf));
  return {{send, static_cast<std::byte*>(call.recvbuf), temp, nullptr}, kernel, nullptr};
}

// The library's own requests of non-blocking collectives, watched for summary and trace, and where
// a site counts how many are in flight.
struct NativeRequest {
  CallId id;
  Times times;
  std::shared_ptr<Communicator> communicator{};  // of `site`
  Site* site = nullptr;                          // as for a RequestedOperation
};

// Like the statuses of the library's own non-blocking collectives: nothing received, no source.
void set_status(MPI_Status* status);

// Calls the handler of the communicator that the application used; returns `code`. Where an
// operator has thrown an exception, it throws that on.
int call_error_handler(CollectiveOperation& operation, int code);

// How many communicators hold calls (runtime/start/held.h).
inline std::atomic<int> holding{0};

// How many of Weft's requests have handles alike, so that the library's are told apart at once.
inline std::array<std::atomic<std::uint16_t>, 4096> held_alike{};
inline std::atomic<std::uint16_t>& held_like(MPI_Request request) {
  return held_alike[((std::uintptr_t)request * std::uint64_t{0x9E3779B97F4A7C15u}) >> 52];
}

class Requests {
 public:
  void add(std::shared_ptr<CollectiveOperation> operation);
  void remove(MPI_Request request);
  // One more, or less, that the application may hold, whether it is found here or not.
  void count(MPI_Request request, int change) {
    held_.fetch_add(change);
    note(request, change);
  }
  // The same of one that is kept: the application holds it now and then.
  void note(MPI_Request request, int change) {
    held_like(request).fetch_add(static_cast<std::uint16_t>(change));
  }
  std::shared_ptr<CollectiveOperation> find(MPI_Request request);
  // nullptr: none of Weft's, or not persistent. Lives until the application frees the request.
  PersistentOperation* find_persistent(MPI_Request request) {
    // What is started is waited for next, where there is but one.
    if (found_last.request == request && found_last.removals == removals()) [[likely]]
      return found_last.operation;
    return held() == 0 ? nullptr : find_again(request);
  }
  std::vector<std::shared_ptr<CollectiveOperation>> all();
  // Weft's requests that the application holds: to be completed, or persistent.
  int held() const { return held_.load(std::memory_order_relaxed); }
  // False: it is none of them.
  static bool may_be_held(MPI_Request request) {
    return held_like(request).load(std::memory_order_relaxed) != 0;
  }
  // Of these, started and not completed by the application yet.
  int active() const { return active_.load(std::memory_order_relaxed); }
  void activated() { active_.fetch_add(1); }
  void deactivated() { active_.fetch_sub(1); }

  void watch(MPI_Request request, NativeRequest record);
  // Ends the watch; false: not watched.
  bool unwatch(MPI_Request request, NativeRequest* record);
  bool watching() const { return watched_count_.load(std::memory_order_relaxed) > 0; }

 private:
  // Those that this thread found last, while none has been removed since.
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
  std::atomic<std::uint32_t> removals_{1};  // of persistent ones
  std::atomic<int> held_{0};
  std::atomic<int> active_{0};
  std::atomic<int> watched_count_{0};
};

}  // namespace weft
