// The buffers that a collective uses in place of the application's: copies of data in a device's
// memory, and packed bytes of these or of the application's own.
#pragma once

#include <memory>

#include "runtime/call/device_memory.h"
#include "runtime/call/packed_data.h"

namespace weft {

class Communicator;

class CallCopies {
 public:
  // Returns nullptr if the collective uses the application's buffers directly. shape: of its
  // schedule.
  static std::unique_ptr<CallCopies> of(const Call& call, const Shape& shape,
                                        const Communicator& communicator);

  bool there() const { return (!staged_ || staged_->there()) && (!packed_ || packed_->there()); }
  // Returns the call with its buffers replaced by the copies.
  Call on_copies(Call call) const;

  void bring_in();  // before it begins, each time
  int take_out();   // after its end; MPI error code of both

 private:
  std::unique_ptr<StagedBuffers> staged_;
  std::unique_ptr<PackedData> packed_;
  int code_ = MPI_SUCCESS;  // of bring_in()
};

}  // namespace weft
