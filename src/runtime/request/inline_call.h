// InlineCall: a short collective with a request that its caller carries out by itself, in the start
// call and in the wait or test calls that follow. It uses only the node's shared memory, and no
// rank waits for this one after the start. Therefore no list, lock or other thread needs to know of
// it, and its request is reused. Any other event turns it into an ordinary operation, which
// continues from there. There is only one at a time: the next user of the memory relies on this
// rank having ended the previous call, or on a thread that can end it while its caller blocks. Its
// request is a generalised request that the library never completes.
#pragma once

#include <memory>
#include <optional>

#include "base/floating_point.h"
#include "engine/shared_memory_call.h"
#include "runtime/request/requests.h"

namespace weft {

class Runtime;

// Returns whether a rank gives all its signals before it waits for the first time. If so, no other
// rank waits for a rank that waits itself. schedule: uses only shared memory.
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

  // Starts a call whose plan allows it, if no other inline call is under way. in_flight: counts the
  // call if it becomes an ordinary operation; may be nullptr. Returns whether the call was started;
  // if not, nothing has changed.
  bool start(Runtime& runtime, CallId id, const Call& call, const Recipe& recipe,
             std::atomic<int>* in_flight, MPI_Request* request);
  // Completes the current call. Returns an MPI error code.
  int wait(Runtime& runtime, MPI_Request* request, MPI_Status* status);
  // Advances the current call as far as possible. Also advances operations that only application
  // threads inside MPI calls may advance.
  int test(Runtime& runtime, MPI_Request* request, int* flag, MPI_Status* status);

  // Turns the current call into an ordinary operation. Must be called before any other MPI activity
  // of this thread.
  void hand_over() {
    if (any_) [[unlikely]]
      become_operation();
  }
  // Frees the request that inline calls reuse. Must be called before the MPI library finalises.
  void end();

 private:
  // A generalised request and the operation that it belongs to; nullptr while an InlineCall holds
  // the request.
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
    if (state_ == SharedMemoryCall::State::over) return true;
    return state_ == SharedMemoryCall::State::blocked && alone_->begun();
  }

  // The number of calls that start as ordinary operations after an inline call had to become one,
  // since the conversion costs more than an ordinary start.
  static constexpr int kRest = 16;

  bool any_ = false;
  int rests_ = 0;
  SharedMemoryCall::State state_{};
  std::unique_ptr<Carrier> carrier_;  // nullptr before the first call
  CallId id_{};
  std::uint32_t number_ = 0;  // the call's sequence number on its communicator
  Communicator* communicator_ = nullptr;
  std::shared_ptr<const Schedule> schedule_;  // kept after the call, since the next call most
                                              // likely has the same schedule
  Kernel kernel_ = nullptr;
  std::atomic<int>* in_flight_ = nullptr;
  FloatingPoint computes_as_;  // the caller's floating-point mode; set if the call has a kernel
  Call call_;
  NodeBufferUse turn_;
  Operands operands_;
  std::optional<SharedMemoryCall> alone_;
};

// The variable has hidden visibility, which saves an instruction at each access.
extern Immortal<InlineCall> own_inline_call __attribute__((visibility("hidden")));
inline InlineCall& InlineCall::own() {
  return own_inline_call.object;
}

}  // namespace weft
