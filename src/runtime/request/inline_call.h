// InlineCall: a short collective with a request that its caller carries out alone, from the start
// to the wait or the tests that follow. It uses only the node's memory, and nobody waits for this
// rank after the start. So no list, lock or other thread needs to know of it, and its request need
// not be new. Any other event hands it over: it becomes an ordinary operation, which continues from
// there. There is only one at a time: the next user of the memory must be able to rely on this rank
// having ended the previous call, or on a thread that may end it while its caller blocks. Its
// request is a generalised request that is never completed for the library, and is reused for the
// next such call.
#pragma once

#include <memory>
#include <optional>

#include "base/floating_point.h"
#include "engine/alone.h"
#include "runtime/request/requests.h"

namespace weft {

class Runtime;

// Returns whether nobody waits for what a rank does once it waits itself, for a schedule in memory
// alone.
bool signals_at_once(const Schedule& schedule);

class InlineCall {
 public:
  InlineCall() = default;
  // Returns the object of this process. Before the runtime begins, only hand_over() and any() may
  // be called.
  static InlineCall& own();
  InlineCall(const InlineCall&) = delete;
  InlineCall& operator=(const InlineCall&) = delete;

  bool any() const { return any_; }
  bool has(MPI_Request request) const { return any_ && carrier_->request == request; }

  // Takes a call whose plan says so, while there is none. in_flight: counts the call if it becomes
  // an operation; may be nullptr. Returns false if the call is not taken; nothing has happened
  // then.
  bool start(Runtime& runtime, CallId id, const Call& call, const Recipe& recipe,
             std::atomic<int>* in_flight, MPI_Request* request);
  // Completes the current call. Returns an MPI error code.
  int wait(Runtime& runtime, MPI_Request* request, MPI_Status* status);
  // Advances the current call as far as possible, and operations left to callers, too.
  int test(Runtime& runtime, MPI_Request* request, int* flag, MPI_Status* status);

  // Must be called before anything else may come: makes the current call an ordinary operation.
  void hand_over() {
    if (any_) [[unlikely]]
      become_operation();
  }
  // Ends the use of this object, while the MPI library is still there.
  void end();

 private:
  // A request, and the operation that it belongs to; nullptr while the request is kept here.
  struct Carrier {
    MPI_Request request{};
    RequestedOperation* operation = nullptr;
  };
  static int completed(void* carrier);

  bool make_carrier();
  void become_operation();
  void progress(int polls);
  void wait_longer(Runtime& runtime);
  int complete(MPI_Request* request, MPI_Status* status);
  bool may_stay() const {
    if (state_ == AloneCall::State::over) return true;
    return state_ == AloneCall::State::blocked && alone_->begun();
  }

  // The number of calls that are ordinary operations after an inline call had to become one, since
  // that change costs more than an operation from the start.
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
  std::atomic<int>* in_flight_ = nullptr;
  FloatingPoint computes_as_;  // with a kernel
  Call call_;
  NodeTurn turn_;
  Operands operands_;
  std::optional<AloneCall> alone_;
};

// Hidden, like own_requests.
extern Immortal<InlineCall> own_inline_call __attribute__((visibility("hidden")));
inline InlineCall& InlineCall::own() {
  return own_inline_call.object;
}

}  // namespace weft
