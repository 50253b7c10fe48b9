// InlineCall is a short non-blocking collective that the calling thread carries out alone, in the
// start call and in the wait or test calls. It uses only the node's shared memory, and no rank
// waits for this rank after its start. Therefore no list, lock or other thread needs to know of it,
// and its request (a generalised request that the MPI library never completes) can be reused.
//
// There is at most one inline call at a time. Any other MPI activity makes it an ordinary
// collective, which continues at the same point. This keeps the use of shared memory in order: the
// next user of the memory relies on the previous call having ended on this rank, or on a thread
// that can end it.
#pragma once

#include <memory>
#include <optional>

#include "base/floating_point.h"
#include "engine/shared_memory_call.h"
#include "runtime/request/requests.h"

namespace weft {

class Runtime;

// Returns whether a rank gives all its signals before it first waits for another rank. If so, no
// rank waits for a rank that is itself waiting. schedule: must use only shared memory.
bool signals_at_once(const Schedule& schedule);

class InlineCall {
 public:
  InlineCall() = default;
  // Returns the only object of this process. Until the runtime has started, only hand_over() and
  // any() may be called.
  static InlineCall& own();
  InlineCall(const InlineCall&) = delete;
  InlineCall& operator=(const InlineCall&) = delete;

  bool any() const { return any_; }
  bool has(MPI_Request request) const { return any_ && carrier_->request == request; }

  // Starts a collective that only the calling thread will advance (an inline call), unless another
  // inline call is active. The plan must permit that. in_flight: a counter of active calls, used if
  // the call becomes an ordinary collective; may be nullptr. Returns false, without any effect, if
  // the call was not started.
  bool start(Runtime& runtime, CallId id, const Call& call, const Recipe& recipe,
             std::atomic<int>* in_flight, MPI_Request* request);
  // Waits for the current inline call to complete. Returns an MPI error code.
  int wait(Runtime& runtime, MPI_Request* request, MPI_Status* status);
  // Advances the current inline call as far as possible. Also advances other collectives that only
  // application threads may advance. Returns an MPI error code.
  int test(Runtime& runtime, MPI_Request* request, int* flag, MPI_Status* status);

  // Makes the current inline call, which only its caller can advance, an ordinary collective. It
  // must be called before any other MPI activity of this thread.
  void hand_over() {
    if (any_) [[unlikely]]
      become_operation();
  }
  // Frees the request that inline calls (collectives that only their caller advances) use one after
  // the other. It must be called before the MPI library is finalised.
  void end();

 private:
  // A generalised request, and the ordinary collective to which it belongs; nullptr while the
  // request belongs to an inline call.
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

  // After an inline call had to become an ordinary collective, this many calls are started as
  // ordinary collectives at once, because the conversion takes longer than an ordinary start.
  static constexpr int kRest = 16;

  bool any_ = false;
  int rests_ = 0;
  SharedMemoryCall::State state_{};
  std::unique_ptr<Carrier> carrier_;  // the request of inline calls; nullptr before the first call
  CallId id_{};
  std::uint32_t number_ = 0;  // sequence number of the call on its communicator
  Communicator* communicator_ = nullptr;
  // The schedule is kept after the call, since the next call most likely has the same one.
  std::shared_ptr<const Schedule> schedule_;
  Kernel kernel_ = nullptr;
  std::atomic<int>* in_flight_ = nullptr;
  FloatingPoint computes_as_;  // floating-point mode of the calling thread; set for reductions only
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
