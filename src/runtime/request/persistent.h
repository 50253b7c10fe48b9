// PersistentOperation is a persistent collective: it is built once in MPI_*_init, and carried out
// after every MPI_Start (MPI-4.1, 6.13). If the progress thread would not be worth while, the
// application's start and wait calls carry it out. The application's request (the carrier) is a
// persistent receive of the MPI library, on a communicator that contains only this rank. The
// receive is started only if the MPI library must see an active request, and is completed by a
// message from this rank to itself. Completion calls that reach Weft do not need it.
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
  // Says which threads advance the collective. no: any thread that advances collectives may do so.
  enum class Stays : std::uint8_t {
    no,
    // At first only the calling thread advances the collective, in its start, test and wait calls.
    // But other ranks may later wait for this rank, so any thread that advances collectives can
    // take it over.
    until_needed,
    // Only the calling thread advances the collective, in its start, test and wait calls, and no
    // list contains it.
    yes
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

  // Makes the request for the application. Returns an MPI error code.
  int make_request();
  // Frees the MPI library's request. It is called when the application frees its request, and in
  // MPI_Finalize.
  void free_request();

  // Starts the collective again. Returns false if it is still active, or if an earlier start has
  // failed.
  bool restart(Runtime& runtime);
  // Returns whether only the calling thread advances the collective (inline). This is false after
  // hand_over() or taken_over().
  bool is_inline() const { return is_inline_.load(std::memory_order_relaxed); }
  // Advances an inline collective. Returns true once it is complete. polls: how often to look for a
  // signal of another rank.
  bool progress_inline(int polls = 1) {
    if (advance_inline(polls)) return true;
    if (stays_inline_ == Stays::until_needed) offer();
    return false;
  }
  // Advances an inline collective for the first time, in the start call. If no rank needs this
  // rank's later help, it does not look for signals of other ranks: a signal is a cache line, and
  // reading it too early delays the rank that writes it.
  void begin_inline() { progress_inline(stays_inline_ == Stays::yes ? 0 : 1); }
  // claim() returns true if the calling thread may carry out the collective alone; no other thread
  // can take it over then. The thread must afterwards call only advance_inline(), which returns
  // true once the collective is complete. polls: how often to look for a signal of another rank.
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
  // Starts the MPI library's request (the carrier). The MPI library's completion calls then see an
  // active request until the collective is complete.
  void show_to_library();
  // Makes the persistent request inactive. It must be called when the application has completed the
  // request; the collective must be complete.
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

  // Shared memory for this request alone, since ranks may start their requests in different orders.
  const std::unique_ptr<NodeMemory> node_;
  const std::shared_ptr<Leaders> leaders_;
  const Stays stays_inline_;
  SharedMemoryCall alone_;              // carries out the collective on the calling thread
  std::atomic<bool> is_inline_{false};  // set to false by taken_over(), and read by claim()
  bool offered_ = false;                // whether other threads may take the collective over
  bool counted_ = false;                // whether Requests counts this collective as active
  bool started_before_ = false;
  std::atomic<bool> active_{false};  // changed by the application's start and completion calls
  int carrier_tag_ = 0;
  // Guards the following members, since announce() may run on a thread of Weft.
  std::mutex carrier_mutex_;
  bool announced_ = false;
  bool carrier_started_ = false;
};

[[gnu::always_inline]] inline bool PersistentOperation::restart(Runtime& runtime) {
  if (active()) [[unlikely]] {
    if (!done() || runtime.completions_are_ours()) return false;
    // The request is still active, but its collective is complete: another PMPI tool has completed
    // the request without Weft's knowledge.
    deactivate();
  }
  if (error_code() != MPI_SUCCESS) return false;
  if (started_before_) {
    // The MPI library may have reported the completion a moment before the thread that advances the
    // collective is done with it.
    if (!is_inline()) wait_done();
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
