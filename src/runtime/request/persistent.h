// PersistentOperation: a collective from MPI_*_init, built once and repeated by every MPI_Start
// (MPI-4.1, 6.13). If it is not worth a thread, the application's start and wait calls carry it
// out. Its request, the carrier, is a persistent receive on a one-rank communicator of Weft. The
// carrier is started only if the library must see it, and completed by a message from this rank to
// itself. Completion calls that reach Weft do not use it.
#pragma once

#include <atomic>
#include <mutex>

#include "engine/shared_memory_call.h"
#include "runtime/job/runtime.h"
#include "runtime/request/requests.h"

namespace weft {

class PersistentOperation final : public CollectiveOperation,
                                  public std::enable_shared_from_this<PersistentOperation> {
 public:
  // Tells whether only the operation's caller advances it, in start, test and wait calls. no: all
  // threads that advance operations may do so from the start.
  enum class Stays : std::uint8_t {
    no,
    until_needed,  // other ranks may wait for this rank's later help: any thread that advances
                   // operations takes it over
    yes            // no other thread advances the operation, and no list contains it
  };

  PersistentOperation(CallId id, const Call& call, std::shared_ptr<Communicator> communicator,
                      std::shared_ptr<const Schedule> schedule, Kernel kernel, int tag,
                      Engine engine, std::unique_ptr<NodeMemory> node = nullptr,
                      std::unique_ptr<PeerBuffers> peers = nullptr,
                      std::shared_ptr<Leaders> leaders = nullptr, Stays stays = Stays::no)
      : CollectiveOperation(id, call, std::move(communicator), std::move(schedule), kernel, tag,
                            nullptr, Begins::with_starts),
        engine(engine),
        node_(std::move(node)),
        leaders_(std::move(leaders)),
        stays_inline_(works_on_copies() ? Stays::no : stays),
        alone_(this->schedule(), operands(), turn()) {
    reach(std::move(peers));
  }

  const Engine engine;
  PersistentOperation* persistent() override { return this; }

  // Makes the request that the application gets. Returns an MPI error code.
  int make_request();
  // Frees the library's request, when the application frees the request, or in MPI_Finalize.
  void free_request();

  // Makes the operation active, and returns true. Returns false if it is active already, or if an
  // earlier start has failed.
  bool restart(Runtime& runtime);
  // Returns whether only the operation's caller advances it. After hand_over() or taken_over()
  // other threads do.
  bool is_inline() const { return is_inline_.load(std::memory_order_relaxed); }
  // Advances an operation that its caller carries out. Returns true once it is complete.
  bool progress_inline(int polls = 1) {
    if (advance_inline(polls)) return true;
    if (stays_inline_ == Stays::until_needed) offer();
    return false;
  }
  // Makes the first advance. If other ranks wait only for this rank's first signal, it does not
  // look for their signals: a signal is a cache line, and reading it too early delays the rank that
  // writes it.
  void begin_inline() { progress_inline(stays_inline_ == Stays::yes ? 0 : 1); }
  // Returns whether the caller carries the operation out, so that no other thread can take it over
  // any more. Then the caller only calls advance_inline(), which returns true once it is complete.
  // polls: how often to look for a signal, as for an SharedMemoryCall.
  bool claim() { return offered_ ? withdraw() : is_inline(); }
  bool advance_inline(int polls) {
    if (done()) return true;
    const SharedMemoryCall::State state = alone_.progress(polls);
    if (state == SharedMemoryCall::State::blocked) return false;
    end_inline(state);
    return true;
  }
  void hand_over();
  void taken_over() override;
  bool active() const override { return active_.load(std::memory_order_acquire); }
  // Starts the library's request (the carrier), so that completion calls of the library see an
  // active request until the operation is complete.
  void show_to_library();
  // Makes the operation inactive after the application has completed it. The operation must be
  // complete.
  void deactivate() {
    if (!is_inline()) end_carrier();
    active_.store(false, std::memory_order_release);
    if (counted_) Requests::own().deactivated();
  }

 private:
  void offer();
  bool withdraw();
  void end_inline(SharedMemoryCall::State state) {
    if (state != SharedMemoryCall::State::over || Runtime::active()->observing()) [[unlikely]]
      observe_end(state);
    announced_ = true;
    Operation::end_inline();
  }
  void observe_end(SharedMemoryCall::State state);
  void announce() override;
  bool one_shot() const override { return false; }
  void complete_carrier();
  void end_carrier();

  const std::unique_ptr<NodeMemory> node_;  // memory of this request alone, since requests may be
                                            // started in different orders
  const std::shared_ptr<Leaders> leaders_;
  const Stays stays_inline_;
  SharedMemoryCall alone_;              // the part that the operation's caller carries out
  std::atomic<bool> is_inline_{false};  // becomes false in taken_over(); claim() reads it
  bool offered_ = false;                // the operation is offered to other threads
  bool counted_ = false;                // counted as active in Requests
  bool started_before_ = false;
  std::atomic<bool> active_{false};  // written by the application's start and completion calls
  int carrier_tag_ = 0;
  std::mutex carrier_mutex_;  // guards the following members, since announce() may run on a thread
                              // of Weft
  bool announced_ = false;
  bool carrier_started_ = false;
};

[[gnu::always_inline]] inline bool PersistentOperation::restart(Runtime& runtime) {
  if (active()) [[unlikely]] {
    if (!done() || runtime.completions_are_ours()) return false;
    deactivate();  // here another tool has completed the request without Weft
  }
  if (error_code() != MPI_SUCCESS) return false;
  if (started_before_) {
    if (!is_inline()) wait_done();  // the library may have reported completion a moment earlier
    rewind();
    alone_.rewind();
  }
  started_before_ = true;
  offered_ = false;
  if (node_) take_turn(node_->node_buffers(), Ends::in_order, schedule());
  if (leaders_) lead(*leaders_);
  announced_ = false;
  carrier_started_ = false;
  active_.store(true, std::memory_order_release);
  const bool is_inline = stays_inline_ != Stays::no && runtime.completions_are_ours();
  is_inline_.store(is_inline, std::memory_order_relaxed);
  counted_ = !is_inline || stays_inline_ == Stays::until_needed;
  if (counted_) {
    Requests::own().activated();
    bring_in();
  }
  return true;
}

}  // namespace weft
