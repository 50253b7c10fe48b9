// CallCopies holds the buffers on which a collective works in place of the application's. They are
// copies of data in GPU memory, or packed data whose datatype has gaps.
#pragma once

#include <memory>
#include <vector>

#include "runtime/call/device_memory.h"
#include "runtime/call/packed_data.h"

namespace weft {

class Communicator;

class CallCopies {
 public:
  // Returns the copies that the collective needs; nullptr if it can use the application's buffers
  // directly. shape: the collective's arguments as the schedule sees them.
  static std::unique_ptr<CallCopies> of(const Call& call, const Shape& shape,
                                        const Communicator& communicator);

  bool there() const { return (!staged_ || staged_->there()) && (!packed_ || packed_->there()); }
  // Returns the call with its buffers replaced by the copies.
  Call on_copies(Call call) const;

  void bring_in();  // copies the input; must be called before each start
  // Copies the output back to the application's buffers. It must be called after the collective.
  // Returns the MPI error code of bring_in() or of this function.
  int take_out();

  // Returns whether the data may move in pieces by a StagedTransport, in place of bring_in() and
  // take_out(). Packed data may not.
  bool may_move_in_pieces() const { return staged_ && !packed_; }
  // The next three functions are for data that move in pieces. begin() must be called before each
  // start. end() returns the MPI error code of all copies since then.
  std::vector<StagedBuffer> described() const { return staged_->described(); }
  void begin() { staged_->begin(); }
  int end() const { return staged_->have_failed() ? MPI_ERR_OTHER : MPI_SUCCESS; }

 private:
  std::unique_ptr<StagedBuffers> staged_;
  std::unique_ptr<PackedData> packed_;
  int code_ = MPI_SUCCESS;  // the MPI error code of bring_in()
};

}  // namespace weft
