// BlockingCall marks that the application is inside an MPI call that may wait for another process.
#pragma once

#include <mpi.h>

#include <functional>

#include "base/left_calls.h"
#include "engine/progress.h"
#include "library/generated/call_ids.h"
#include "runtime/request/watchdog.h"

namespace weft {

// While this object lives, the application is inside an MPI call that may wait for another process.
// The progress thread then advances collectives that the calling thread would otherwise advance. If
// there is no such thread, the call is made in its non-blocking form, and the calling thread
// advances collectives while it waits.
class BlockingCall {
 public:
  explicit BlockingCall(CallId id);
  ~BlockingCall();
  BlockingCall(const BlockingCall&) = delete;
  BlockingCall& operator=(const BlockingCall&) = delete;

  // Returns whether there is no thread that could advance collectives. The result is constant and
  // equal on all ranks. It must be, because the blocking and the non-blocking form of a collective
  // do not match each other.
  bool must_not_block() const { return alone_; }
  // Returns whether this rank must advance collectives itself now. It may be used only for calls
  // whose blocking and non-blocking forms match each other, since the result differs between ranks.
  bool must_help() const;
  // Starts the call by post(), and advances collectives until it is complete. status: may be
  // nullptr. Returns an MPI error code.
  int drive(const std::function<int(MPI_Request*)>& post, MPI_Status* status);
  // Repeats ask(), the non-blocking form of the call, until it sets its flag. Between these calls
  // it advances collectives. Returns an MPI error code.
  int repeat(const std::function<int(int*)>& ask);

 private:
  const CallId id_;
  const WatchedCall watched_{id_};
  LongjmpSafe<Progress::Blocked> handed_over_;
  bool alone_ = false;
  long long began_ns_ = 0;  // when the call began; 0 without summary and trace
};

}  // namespace weft
