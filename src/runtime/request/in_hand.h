// InHand: a short collective for a request, in the hand of its caller from the start to the wait or
// the tests that follow. All happens in the node's memory, and nobody waits for what this rank does
// after the start: so no list, lock or other thread needs to know of it, and the application's
// request need not be a new one. Whatever else comes than these hands it over: it becomes an
// operation among the others, which goes on from there. Why one only: whoever uses the memory next
// must be able to rely on it that this rank has ended what went before, or that a thread may end it
// while its caller blocks. Its request is a generalised request like the others', which is not
// shown to be complete: it is the same one for the next such call.
#pragma once

#include <memory>
#include <optional>

#include "base/floating_point.h"
#include "engine/alone.h"
#include "runtime/request/requests.h"

namespace weft {

class Runtime;
struct Plan;
struct Site;

// Of one that is done in memory alone: whether nobody waits for what a rank does once it waits
// itself.
bool signals_at_once(const Schedule& schedule);

class InHand {
 public:
  InHand() = default;
  InHand(const InHand&) = delete;
  InHand& operator=(const InHand&) = delete;

  bool any() const { return any_; }
  bool has(MPI_Request request) const { return any_ && carrier_->request == request; }

  // Of a plan that says so, while there is none. False: not this one, and nothing has happened.
  bool start(Runtime& runtime, CallId id, const Call& call, const Plan& plan, Site* site,
             MPI_Request* request);
  // Of the one that there is: to its end. MPI error code.
  int wait(Runtime& runtime, MPI_Request* request, MPI_Status* status);
  // As far as it goes now: it stays unless it has ended. What is left to callers goes on, too.
  int test(Runtime& runtime, MPI_Request* request, int* flag, MPI_Status* status);

  // Before anything else may come: there is none any more.
  void hand_over() {
    if (any_) [[unlikely]]
      become_operation();
  }
  // There will be none any more; while the MPI library is still there.
  void end();

 private:
  // The request, and whose it is: nullptr while it is in hand or kept.
  struct Carrier {
    MPI_Request request{};
    RequestedOperation* operation = nullptr;
  };
  static int completed(void* carrier);

  bool make_carrier();
  void become_operation();
  void go_on(int polls);
  void wait_longer(Runtime& runtime);
  int complete(MPI_Request* request, MPI_Status* status);
  bool may_stay() const {
    if (state_ == AloneCall::State::over) return true;
    return state_ == AloneCall::State::held_up && alone_->begun();
  }

  // Calls that are handed over cost more than they do otherwise. So the next few are not taken.
  static constexpr int kRest = 16;

  bool any_ = false;
  int rests_ = 0;
  AloneCall::State state_{};
  std::unique_ptr<Carrier> carrier_;  // nullptr: there is none yet
  CallId id_{};
  std::uint32_t number_ = 0;  // on its communicator
  Communicator* communicator_ = nullptr;
  std::shared_ptr<const Schedule> schedule_;  // kept, since the next one is most likely the same
  Kernel kernel_ = nullptr;
  Site* site_ = nullptr;       // of a call that engine auto learns about
  FloatingPoint computes_as_;  // with a kernel
  Call call_;
  NodeTurn turn_;
  Operands operands_;
  std::optional<AloneCall> alone_;
};

}  // namespace weft
