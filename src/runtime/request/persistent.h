// PersistentOperation: an MPI_*_init, built once and replayed by every MPI_Start (MPI-4.1, 6.13).
// If it is not worth a thread, the application's own start and wait carry it out. Its request is a
// persistent receive on a one-rank communicator of Weft's, the carrier. It is started only if a
// call of the library's must look at it, and completed by a message to this rank itself. Completion
// calls that reach Weft answer without it.
#pragma once

#include <atomic>
#include <mutex>

#include "engine/alone.h"
#include "runtime/job/runtime.h"
#include "runtime/request/requests.h"

namespace weft {

class PersistentOperation final : public CollectiveOperation,
                                  public std::enable_shared_from_this<PersistentOperation> {
 public:
  // Says whether its caller alone advances it, in start, test and wait.
  enum class Stays : std::uint8_t {
    no,
    until_needed,  // others may wait for this rank's later help: who advances others takes it over
    yes            // no other thread and no list knows of it
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
  // Is called when the application has freed the request, or MPI ends.
  void free_request();

  // Makes the operation active. Returns false if it already is, or if an earlier start failed.
  bool restart(Runtime& runtime);
  // Returns whether only its caller advances it; after hand_over() or taken_over() others do.
  bool is_inline() const { return is_inline_.load(std::memory_order_relaxed); }
  // Advances an operation that its caller carries out. Returns true once it is done.
  bool progress_inline(int polls = 1) {
    if (advance_inline(polls)) return true;
    if (stays_inline_ == Stays::until_needed) offer();
    return false;
  }
  // Makes the first advance. If nobody waits for more than this rank's signal, it does not wait for
  // the others' signals: a look at a slot that is too early delays it.
  void begin_inline() { progress_inline(stays_inline_ == Stays::yes ? 0 : 1); }
  // Returns whether the caller carries it out and nobody can take it over any more; it then needs
  // only advance_inline(), which returns true once it is done. polls: as for an AloneCall.
  bool claim() { return offered_ ? withdraw() : is_inline(); }
  bool advance_inline(int polls) {
    if (done()) return true;
    const AloneCall::State state = alone_.progress(polls);
    if (state == AloneCall::State::blocked) return false;
    end_inline(state);
    return true;
  }
  void hand_over();
  void taken_over() override;
  bool active() const override { return active_.load(std::memory_order_acquire); }
  // Makes the request active for the library's completion calls until the operation is done.
  void show_to_library();
  // Makes the operation inactive after the application has completed it; it must be done.
  void deactivate() {
    if (!is_inline()) end_carrier();
    active_.store(false, std::memory_order_release);
    if (counted_) Requests::own().deactivated();
  }

 private:
  void offer();
  bool withdraw();
  void end_inline(AloneCall::State state) {
    if (state != AloneCall::State::over || Runtime::active()->observing()) [[unlikely]]
      observe_end(state);
    announced_ = true;
    Operation::end_inline();
  }
  void observe_end(AloneCall::State state);
  void announce() override;
  bool one_shot() const override { return false; }
  void complete_carrier();
  void end_carrier();

  const std::unique_ptr<NodeMemory> node_;  // of this request alone: others start in other orders
  const std::shared_ptr<Leaders> leaders_;
  const Stays stays_inline_;
  AloneCall alone_;                     // what its caller carries out
  std::atomic<bool> is_inline_{false};  // turns false in taken_over(); claim() finds out
  bool offered_ = false;                // to those that advance others
  bool counted_ = false;                // as active
  bool started_before_ = false;
  std::atomic<bool> active_{false};  // written by start and completion calls of the application
  int carrier_tag_ = 0;
  std::mutex carrier_mutex_;  // guards the rest: announce() may run on a thread of Weft's
  bool announced_ = false;
  bool carrier_started_ = false;
};

[[gnu::always_inline]] inline bool PersistentOperation::restart(Runtime& runtime) {
  if (active()) [[unlikely]] {
    if (!done() || runtime.completions_are_ours()) return false;
    deactivate();  // another tool has completed it, past Weft
  }
  if (error_code() != MPI_SUCCESS) return false;
  if (started_before_) {
    if (!is_inline()) wait_done();  // the library may have seen the carrier's end a moment before
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
